"""State tracking: which automata the transitions of a network rule out, and by which theorem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mnemoscope.measures import TrackingGate
from mnemoscope.profiles.drawing import SectionView, slug
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Column, Figure, Mark, Plane, Table

__all__ = ["Tracking"]

_WIDTH = 3
"""Inputs of the networks that are asked: with one number a step all transitions of many of them commute."""

_RUNGS = 7
_SHOWN = 256
"""Eigenvalues in the chart."""

_HOW = (
    "Eigenvalues of the state's Jacobian at moments of driven trajectories, part by part of the state; what the "
    "network declares of its transitions holds for all weights."
)

_COLUMNS = (
    Column(title="Automaton", numeric=False),
    Column(title="Ruled out", numeric=False),
    Column(title="Why", numeric=False),
    Column(title="Theorem", numeric=False),
)


@section("tracking", title="What it can track", order=72)
class Tracking(ProfileSection):
    """Automata of the ladder that no theorem rules out: Z2, Z3, Z60, S3, A5, S5, and brackets."""

    needs_causal = True
    references = TrackingGate.references
    text = (
        "To track a group is to say the product of all its elements so far, at any length: parity is Z2, five cups "
        "that are moved about S5. A network that is linear in its state has transitions whose eigenvalues rule some of "
        "that out before anything is trained; for one that is nonlinear in its state they rule out nothing. What is "
        "not ruled out need not be learned: only training says that (mnemoscope ladder)."
    )
    quantities = (
        Quantity(
            name="allowed",
            title="automata that its transitions do not rule out",
            unit=f"of {_RUNGS}",
            better="higher",
            least=0.0,
            most=float(_RUNGS),
            how=_HOW,
            meaning="automata are not ruled out: six groups from parity to S5, and brackets",
            axis=Axis(
                name="tracking",
                remedy="transitions that depend on the input with negative or complex eigenvalues",
                says=f"theorems leave it {{value}} of {_RUNGS} automata to track (parity to S5, brackets), learned or "
                "not",
                column="not ruled out",
                place=8,
                counted=True,
            ),
        ),
    )

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the gate, of the network with three inputs where it can be built so."""
        rebuilt = context.rebuild is not None and (context.facts.input_size or 1) < _WIDTH
        return (Call("tracking", {"count": 4} if context.quick else {}, _WIDTH if rebuilt else None),)

    def seconds(self, network: Any, context: Context) -> float:
        """Return about how long it takes: blocks that a network declares cost next to nothing."""
        declared = getattr(network, "transition_blocks", None) is not None
        return 0.2 * context.load if declared else super().seconds(network, context)

    def run(self, network: Any, context: Context) -> Measurement:
        """Look at the transitions of one network."""
        (call,) = self.calls(context)
        asked = network if call.input_size is None or context.rebuild is None else context.rebuild(call.input_size)
        found: TrackingGate = call(asked, context)
        facts = "" if not found.linear else f", transitions {found.structure}"
        said = [f"It is {'linear' if found.linear else 'nonlinear'} in its state{facts}."]
        if found.linear and any(each.holds == "for these weights" for each in found.excluded):
            said.append("Some of it holds for these weights alone: training may change it.")
        if not found.linear:
            said.append("Eigenvalues rule out nothing for it.")
        return Measurement(
            scalars={"allowed": Scalar(value=float(len(found.allowed)))},
            data={
                "allowed": list(found.allowed),
                "excluded": [
                    {"group": e.group, "because": e.because, "theorem": e.theorem, "holds": e.holds}
                    for e in found.excluded
                ],
                "linear": found.linear,
                "structure": found.structure,
                "input_dependent": found.input_dependent,
                "eigenvalues": found.eigenvalues.ravel()[:_SHOWN],
            },
            notes=tuple(said),
        )

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the eigenvalues of the transitions, and what is not ruled out."""
        plane = Plane(
            points={
                row.key: [complex(*pair) for pair in found]
                for row in view.rows
                if (found := view.data(row).get("eigenvalues"))
            },
            title="eigenvalues of the transitions, at the first seed",
            marks=(Mark(kind="circle", label="unit circle", value=1.0),),
        )
        ranking = view.ranking(self.quantity("allowed"), "tracking-allowed", "How much theorems leave it to track")
        return [view.figure("transitions", "Which signs and turns a step can make", plane, _HOW), ranking]

    def tables(self, view: SectionView) -> Sequence[Table]:
        """Return the ladder of every network that the page is about."""
        return [_table(place, row) for place, row in enumerate(view.subjects, 1)]


def _table(place: int, row: Row) -> Table:
    found = row.section("tracking").data
    ruled = {each["group"]: each for each in found.get("excluded") or ()}
    rungs = [*ruled, *(each for each in found.get("allowed") or () if each not in ruled)]
    order = ["Z2", "Z3", "Z60", "S3", "A5", "S5"]
    rungs.sort(key=lambda each: order.index(each) if each in order else len(order))
    lines = [
        [each, *(ruled[each][word] for word in ("holds", "because", "theorem"))]
        if each in ruled
        else [each, "no", "", ""]
        for each in rungs
    ]
    title = f"What theorems leave {row.label} to track"
    return Table(name=slug("tracking", place, row.key), title=title, columns=_COLUMNS, rows=lines)
