"""Relations between images that a network sees, how far its answers depend on nothing else, and its encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.nn.relational import Relational
from mnemoscope.tasks import create, get, names
from mnemoscope.tasks.relational import Relational as RelationalTask

if TYPE_CHECKING:
    from mnemoscope.report.chart import Chart

__all__ = [
    "EncoderGeometry",
    "RelationMatrix",
    "RelationalDependence",
    "encoder_geometry",
    "relation_matrix",
    "relational_dependence",
]

_COST = Cost(
    time={"E": 1e-3}, memory="E", sizes={"E": "examples"}, letters={"E": "examples, each a pass of the network"}
)


@result
class RelationMatrix(Result):
    """Result of `relation_matrix`.

    Attributes
    ----------
    task
        The task whose examples were shown.
    matrix
        Of the first example: how much panel i (row) is related to panel j (column).
    mean
        Over all examples.
    entropy
        Of a row, in nats, in the mean over rows and examples; None where rows are no distributions.
    sharpness
        1 - entropy / its largest value: 0 when all panels count alike, 1 when one does.
    """

    measure: ClassVar[str] = "relations"
    references: ClassVar[tuple[str, ...]] = ("kerg2022",)

    task: str
    matrix: Float[np.ndarray, "panels panels"]
    mean: Float[np.ndarray, "panels panels"]
    entropy: float | None
    sharpness: float | None

    def __str__(self) -> str:
        if self.entropy is None:
            return f"relations of {len(self.matrix)} panels of {self.task}; rows are no distributions"
        return f"entropy {self.entropy:.3g} nats a row, sharpness {self.sharpness:.3g}, on {self.task}"

    def plot(self) -> Chart:
        """Draw the matrix of the first example."""
        from mnemoscope.report.chart import heat_map

        ticks = list(range(len(self.matrix)))
        signed = bool((self.matrix < 0).any())
        return heat_map(
            self.matrix,
            x="related to panel",
            y="panel",
            value="relation",
            title=f"Relations in one example of {self.task}",
            x_ticks=ticks,
            y_ticks=ticks,
            diverging=signed,
        )


@measure("relations", kinds=("relational",), cost=_COST)
def relation_matrix(
    network: Any, task: str | RelationalTask | None = None, *, examples: int = 64, seed: int = 0
) -> RelationMatrix:
    """Return the matrix of relations between panels that a relational network answers from, and its entropy.

    R of CoRelNet; the weights with which ESBN reads earlier panels; the attention of a transformer, in the mean over
    heads; how often heads of PrediNet compare two panels. Entropy -sum_j R_ij ln R_ij is taken over rows that sum to 1.

    Parameters
    ----------
    network
        A relational network that has such a matrix.
    task
        A relational task, or its name; by default the first that fits the network's panels and answers.
    examples
        How many are shown.
    seed
        Draws them.
    """
    layer, found = _checked(network, task)
    batch = found.sample(positive_int("examples", examples), torch.Generator().manual_seed(seed))
    relations = _quietly(layer, lambda: layer.relations(layer.represent(_typed(batch.inputs, layer))))
    matrices = relations.double().cpu().numpy()
    return RelationMatrix(
        status="exact",
        digits=None,
        assumptions=(),
        cost="one call on the examples",
        task=found.name,
        matrix=matrices[0],
        mean=matrices.mean(0),
        **_entropy(matrices),
    )


def _entropy(matrices: Float[np.ndarray, "examples panels panels"]) -> dict[str, float | None]:
    rows = matrices[np.isclose(matrices.sum(-1), 1, atol=1e-4)]
    if not len(rows) or (rows < 0).any():
        return {"entropy": None, "sharpness": None}
    safe = np.where(rows > 0, rows, 1.0)
    each = -(rows * np.log(safe)).sum(-1)
    most = np.log(np.maximum((rows > 0).sum(-1), 1))
    open_rows = most > 0  # the first row has nothing to choose from
    share = float((each[open_rows] / most[open_rows]).mean()) if open_rows.any() else 0.0
    return {"entropy": float(each.mean()), "sharpness": 1 - share}


@result
class RelationalDependence(Result):
    """Result of `relational_dependence`.

    Attributes
    ----------
    task
        The task whose examples were shown.
    share
        Of the variance of the scores that stays when all objects are exchanged: 1 when relations alone decide.
    agreement
        Share of examples whose answer stays.
    change
        Root mean square change of a score by the exchange.
    spread
        Standard deviation of the scores over examples.
    """

    measure: ClassVar[str] = "relational-dependence"
    references: ClassVar[tuple[str, ...]] = ("kerg2022",)

    task: str
    share: float
    agreement: float
    change: float
    spread: float

    def __str__(self) -> str:
        kept = f"{100 * self.share:.3g}% of the scores' variance depends on relations only"
        return f"{kept}; {100 * self.agreement:.3g}% of answers stay, on {self.task}"

    def plot(self) -> Chart:
        """Draw the change by the exchange beside the spread of the scores."""
        from mnemoscope.report.chart import lines

        values = {"scores": ([0, 1], [self.change, self.spread])}
        return lines(
            values, x="change by exchange (0), spread over examples (1)", y="score", title=self.task, points=True
        )


@measure("relational-dependence", kinds=("relational",), cost=_COST)
def relational_dependence(
    network: Any, task: str | RelationalTask | None = None, *, examples: int = 1000, seed: int = 0
) -> RelationalDependence:
    r"""Return how much of a relational network's answers depends on relations between objects, and not on the objects.

    Every example x is shown twice, x and x', the second time with all its objects exchanged for others and every
    relation kept. With scores y centred over answers, share = 1 - E|y(x) - y(x')|^2 / (2 Var y), limited to [0, 1].

    Parameters
    ----------
    network
        A relational network, trained or not.
    task
        A relational task, or its name; by default the first that fits the network's panels and answers.
    examples
        How many are shown.
    seed
        Draws them.
    """
    layer, found = _checked(network, task)
    count = positive_int("examples", examples)
    if count < 2:
        raise expected("examples", "at least 2", examples)
    pair = found.sample_twice(count, torch.Generator().manual_seed(seed))
    first, second = (_quietly(layer, lambda b=b: layer(_typed(b.inputs, layer))).double() for b in pair)
    y, other = (scores - scores.mean(1, keepdim=True) for scores in (first, second))
    both = torch.cat([y, other])
    variance = float((both - both.mean(0)).square().sum(1).mean())
    change = float((y - other).square().sum(1).mean())
    share = 1.0 if not variance else min(max(1 - change / (2 * variance), 0.0), 1.0)
    return RelationalDependence(
        status="estimate",
        digits=None,
        assumptions=("Examples are drawn from the task's training part unless another is given.",),
        cost="two calls on the examples",
        task=found.name,
        share=share,
        agreement=float((first.argmax(1) == second.argmax(1)).double().mean()),
        change=(change / layer.answers) ** 0.5,
        spread=(variance / layer.answers) ** 0.5,
    )


@result
class EncoderGeometry(Result):
    """Result of `encoder_geometry`.

    Attributes
    ----------
    task
        The task whose images were encoded.
    images
        How many.
    self_wins
        Share of ordered pairs of different images of which the first is more similar to itself, z.z, than to the other:
        what a dot product needs to tell the same from the different, and has only when norms are alike.
    dimension
        Of the features, by the participation ratio (sum v)^2 / sum v^2 of the variances along principal axes.
    norm_spread
        Standard deviation of the norms over their mean.
    cosine
        Between features of different images, in the mean.
    random_self_wins, random_dimension, random_norm_spread, random_cosine
        The same of an encoder of this kind with fresh random weights.
    """

    measure: ClassVar[str] = "encoder-geometry"
    references: ClassVar[tuple[str, ...]] = ("kerg2022",)

    task: str
    images: int
    self_wins: float
    dimension: float
    norm_spread: float
    cosine: float
    random_self_wins: float
    random_dimension: float
    random_norm_spread: float
    random_cosine: float

    def __str__(self) -> str:
        own = f"{100 * self.self_wins:.3g}% of images are nearest to themselves, dimension {self.dimension:.3g}"
        return f"{own}; random encoder {100 * self.random_self_wins:.3g}% and {self.random_dimension:.3g}"

    def plot(self) -> Chart:
        """Draw what both encoders reach."""
        from mnemoscope.report.chart import lines

        own = [self.self_wins, self.cosine, self.norm_spread]
        fresh = [self.random_self_wins, self.random_cosine, self.random_norm_spread]
        series = {"this encoder": ([0, 1, 2], own), "random encoder": ([0, 1, 2], fresh)}
        return lines(
            series, x="self wins (0), cosine (1), spread of norms (2)", y="value", title=self.task, points=True
        )


@measure("encoder-geometry", kinds=("relational",), cost=_COST)
def encoder_geometry(
    network: Any, task: str | RelationalTask | None = None, *, examples: int = 200, seed: int = 0
) -> EncoderGeometry:
    """Return how a relational network's encoder spreads the images of a task, beside an encoder with random weights.

    Parameters
    ----------
    network
        A relational network, trained or not.
    task
        A relational task, or its name; by default the first that fits the network's panels and answers.
    examples
        How many are drawn; their distinct images are encoded.
    seed
        Draws them, and the random encoder.
    """
    layer, found = _checked(network, task)
    batch = found.sample(positive_int("examples", examples), torch.Generator().manual_seed(seed))
    images = torch.unique(batch.inputs.images[batch.inputs.index.unique()], dim=0)
    if len(images) < 2:
        raise expected("examples", "more, since these have a single image", examples)
    fresh = type(layer.image_encoder)(*layer.input_shape).to(images)
    fresh.draw(torch.Generator().manual_seed(seed))
    with torch.no_grad():
        own = _geometry(_quietly(layer, lambda: layer.image_encoder(images.to(_like(layer)))))
        random = _geometry(fresh(images))
    return EncoderGeometry(
        status="exact",
        digits=None,
        assumptions=("Features before context normalisation.",),
        cost="one call of the encoder, and products of all pairs of images",
        task=found.name,
        images=len(images),
        **own,
        **{f"random_{name}": value for name, value in random.items()},
    )


def _geometry(features: Float[Tensor, "images features"]) -> dict[str, float]:
    z = features.double().cpu()
    products, norms = z @ z.T, z.norm(dim=1)
    apart = ~torch.eye(len(z), dtype=torch.bool)
    wins = (products.diagonal().unsqueeze(1) > products)[apart]
    cosines = (products / (norms[:, None] * norms).clamp_min(1e-300))[apart]
    variances = torch.linalg.svdvals(z - z.mean(0)).square()
    return {
        "self_wins": float(wins.double().mean()),
        "dimension": float(variances.sum() ** 2 / variances.square().sum().clamp_min(1e-300)),
        "norm_spread": float(norms.std() / norms.mean().clamp_min(1e-300)),
        "cosine": float(cosines.mean()),
    }


def _checked(network: Any, task: Any) -> tuple[Relational, RelationalTask]:
    """Return a relational network and a task that fits it, or raise one line."""
    if not isinstance(network, Relational):
        came = f"a {type(network).__name__} of kind {getattr(network, 'kind', 'unknown')}"
        raise expected("network", "a relational network with an encoder of images (nn.Relational)", Description(came))
    if task is None:
        return network, fitting_task(network)
    found = create(task) if isinstance(task, str) else task
    if not isinstance(found, RelationalTask) or not _fits(network, found):
        shape = f"{network.panels} panels of {network.input_shape} and {network.answers} answers"
        raise expected("task", f"a relational task with {shape}", Description(str(getattr(found, "name", found))))
    return network, found


_BASIC = ("same-different", "rmts", "dist3", "identity-rules")
"""Tasks that come before all others: the document asks them first."""


def fitting_task(network: Relational) -> RelationalTask:
    """Return a task that has a network's panels, answers and size of images, basic ones first, or raise one line."""
    for name in (*_BASIC, *names()):
        cls = get(name)
        if (
            issubclass(cls, RelationalTask)
            and _fits(network, made := create(name))
            and isinstance(made, RelationalTask)
        ):
            return made
    shape = f"{network.panels} panels of {network.input_shape} and {network.answers} answers"
    raise UserError(f"no task has {shape}: give task=")


def _fits(network: Relational, task: Any) -> bool:
    sizes = (task.steps, task.output_size, task.input_shape)
    return sizes == (network.panels, network.answers, network.input_shape)


def _like(layer: Relational) -> Tensor:
    return next(layer.parameters())


def _typed(panels: Any, layer: Relational) -> Any:
    return panels._replace(images=panels.images.to(_like(layer)), index=panels.index.to(_like(layer).device))


@torch.no_grad()
def _quietly(layer: Relational, work: Any) -> Tensor:
    """Return what `work` gives while the network answers instead of learning."""
    training = layer.training
    layer.eval()
    try:
        found: Tensor = work()
        return found
    finally:
        layer.train(training)
