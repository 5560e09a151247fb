"""Relations between images that a relational network answers from, and how far nothing else decides its answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from mnemoscope.measures import RelationalDependence, RelationMatrix
from mnemoscope.nn.registry import NETWORKS
from mnemoscope.profiles.drawing import SectionView, slug
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Figure, HeatMap

__all__ = ["RelationsSection"]

_EXCHANGED = "Every example is shown twice, the second time with all objects exchanged and every relation kept."
_ROWS = "Of the rows of the relation matrix that are distributions, in the mean over rows and examples."


@section("relations", title="Relations between images", order=15)
class RelationsSection(ProfileSection):
    """Share of the scores that relations alone decide, and the matrix of relations with its entropy."""

    kinds = ("relational",)
    listed_for_others = False
    references = RelationMatrix.references
    text = (
        "A network that answers from relations alone gives the same scores when all objects are exchanged and their"
        " relations kept. Where it computes a matrix of relations, a sharp row singles out one image, a flat one none."
    )
    quantities = (
        Quantity(
            name="share",
            title="share of relations in the scores",
            better="higher",
            least=0.0,
            how=f"{_EXCHANGED} 1 minus half the mean square change of the scores, over their variance.",
            meaning="of the scores' variance depends on relations only",
            compared=True,
        ),
        Quantity(
            name="agreement",
            title="answers that stay",
            better="higher",
            least=0.0,
            how=f"{_EXCHANGED} The share of examples with the same answer.",
            compared=True,
        ),
        Quantity(
            name="change",
            title="change of a score by the exchange",
            least=0.0,
            how=f"{_EXCHANGED} The root mean square change.",
        ),
        Quantity(
            name="spread", title="spread of a score", least=0.0, how="The standard deviation of a score over examples."
        ),
        Quantity(name="entropy", title="entropy of a row of relations", unit="nats", least=0.0, how=_ROWS),
        Quantity(
            name="sharpness",
            title="sharpness of relations",
            least=0.0,
            how=f"{_ROWS} 1 minus the entropy over its largest value.",
            compared=True,
        ),
    )

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure of dependence, and that of the matrix for networks that have one."""
        dependence = Call("relational-dependence", {"examples": 200 if context.quick else 1000})
        name = context.facts.name
        if name in NETWORKS and not getattr(NETWORKS[name], "has_relations", True):
            return (dependence,)
        return (dependence, Call("relations", {"examples": 64 if context.quick else 256}))

    def run(self, network: Any, context: Context) -> Measurement:
        """Measure one network, on the first task that has its panels and answers."""
        dependence, *matrix = self.calls(context)
        found: RelationalDependence = dependence(network, context)
        scalars = {name: Scalar(value=getattr(found, name)) for name in ("agreement", "change", "spread")}
        scalars["share"] = Scalar(value=round(found.share, 6))  # further digits are the rounding of float32
        shown = f"Measured on examples of {found.task}."
        if not matrix or not network.has_relations:
            return Measurement(scalars=scalars, data={"task": found.task}, notes=(shown, "It has no relation matrix."))
        relations: RelationMatrix = matrix[0](network, context)
        lacking = "" if relations.entropy is not None else "the rows of its relation matrix are no distributions"
        scalars["entropy"] = Scalar(value=relations.entropy, note=lacking)
        scalars["sharpness"] = Scalar(value=relations.sharpness, note=lacking)
        return Measurement(scalars=scalars, data={"task": found.task, "matrix": relations.mean}, notes=(shown,))

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the relation matrix of every network that has one, and of several networks the rankings."""
        matrices = [_matrix(view, place, row) for place, row in enumerate(view.rows) if view.data(row).get("matrix")]
        return [*matrices, *(super().figures(view) if len(view.rows) > 1 else ())]


def _matrix(view: SectionView, place: int, row: Row) -> Figure:
    found = view.data(row)
    drawing = HeatMap(
        values=found["matrix"],
        x_title="related to panel",
        y_title="panel",
        title="relation",
        diverging=any(each is not None and each < 0 for line in found["matrix"] for each in line),
    )
    title = f"Relations that {row.label} sees"
    how = f"The mean over examples of {found['task']}, at the first seed."
    alt = f"{title}: how much each panel, a row, is related to each panel, a column."
    command = view.of(row).commands.get("relations", "")  # of this network alone, as the matrix is
    figure = view.figure(slug("relations", place, row.key), title, drawing, how)
    return dataclasses.replace(figure, alt=alt, command=command)
