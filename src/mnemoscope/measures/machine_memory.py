"""Use that a machine makes of its memory: where its heads write and read, and what stands in the slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.core.result import Result, result
from mnemoscope.measures.inputs import answering, arranged, input_sequences
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.nn.machine import Machine

if TYPE_CHECKING:
    from mnemoscope.report.figure import Figure
    from mnemoscope.report.vega import Chart

__all__ = ["MemoryUse", "memory_use"]

_COLUMNS = 120  # of a map; of longer sequences and larger memories blocks are drawn


@result
class MemoryUse(Result):
    """Result of `memory_use`, of one sequence.

    Attributes
    ----------
    layer
        Whose memory it is.
    inputs, outputs
        The sequence, and what the network answers, flat.
    read, write
        ``[t, i]``: weight on slot i at step t, in the mean over heads.
    memory
        ``[t, i]``: size of what stands in slot i after step t, less what stood there at the start.
    contents
        What stands in the slots at the end, flat.
    written
        Slots on which a write weight exceeds the threshold at some step.
    returned
        Of these, the share that is read later with more than the threshold.
    sharpness
        Mean over steps of the largest weight, of reading and of writing.
    threshold
        As given.
    """

    measure: ClassVar[str] = "memory-use"
    references: ClassVar[tuple[str, ...]] = ("renanse2021", "graves2014")

    layer: int
    inputs: Float[np.ndarray, "T d"]
    outputs: Float[np.ndarray, "T o"]
    read: Float[np.ndarray, "T N"]
    write: Float[np.ndarray, "T N"]
    memory: Float[np.ndarray, "T N"]
    contents: Float[np.ndarray, "N width"]
    written: int
    returned: float
    sharpness: tuple[float, float]
    threshold: float

    def __str__(self) -> str:
        steps, slots = self.read.shape
        return (
            f"{self.written} of {slots} slots written in {steps} steps, {self.returned:.0%} of them read later; "
            f"largest weight {self.sharpness[0]:.2g} in reading, {self.sharpness[1]:.2g} in writing"
        )

    def figures(self) -> list[Figure]:
        """Return the pictures: inputs, outputs, write and read weights, the memory over time, and its contents."""
        from mnemoscope.report.figure import Figure, HeatMap

        def drawn(name: str, title: str, values: Any, y: str, unit: str) -> Figure:
            cells, x_labels, y_labels = _blocks(np.asarray(values).T)
            diverging = bool(cells.min() < 0)
            return Figure(
                name=name,
                title=title,
                alt=f"{title}, one column for each step.",
                drawing=HeatMap(
                    values=cells.tolist(),
                    x_title="step",
                    y_title=y,
                    title=unit,
                    x_labels=x_labels,
                    y_labels=y_labels,
                    diverging=diverging,
                ),
            )

        return [
            drawn("inputs", "Inputs", self.inputs, "number", "value"),
            drawn("outputs", "Outputs", self.outputs, "number", "value"),
            drawn("write", "Write weights", self.write, "slot", "weight"),
            drawn("read", "Read weights", self.read, "slot", "weight"),
            drawn("memory", "Size of what was written", self.memory, "slot", "norm"),
        ]

    def plot(self) -> Chart:
        """Draw inputs and outputs, write and read weights, and the memory over time, as the document does."""
        from mnemoscope.report.vega import beside, chart

        return beside(*(chart(figure) for figure in self.figures()))


def _blocks(values: Float[np.ndarray, "rows steps"]) -> tuple[np.ndarray, list[str], list[str]]:
    """Return at most so many rows and columns, each the entry of a block that is largest in size."""
    first = [np.arange(0, size, -(-size // _COLUMNS)) for size in values.shape]
    high, low = values, values
    for axis, starts in enumerate(first):
        high, low = np.maximum.reduceat(high, starts, axis=axis), np.minimum.reduceat(low, starts, axis=axis)
    cells = np.where(np.abs(low) > np.abs(high), low, high)
    return cells, [str(x) for x in first[1]], [str(y) for y in first[0]]


_COST = Cost(
    time={"T S": 1e-8, "T": 2e-3},
    memory="T S",
    sizes={"T": "horizon"},
)


@measure("memory-use", kinds=("recurrent",), needs=("memory",), quick={"horizon": 20}, cost=_COST)
def memory_use(
    network: Any,
    *,
    horizon: int = 41,
    layer: int = 0,
    threshold: float = 0.5,
    scale: float = 1.0,
    inputs: Any = None,
    seed: int = 0,
) -> MemoryUse:
    r"""Show what a machine does with its memory along one sequence: write, read, and what it holds.

    With w_t and r_t the weights of the write and read heads over the slots, in the mean over heads, and M_t the memory:

    .. math::
        \text{written} = \{i : \max_t w_{t,i} > \theta\}, \qquad
        \text{returned} = \{i : w_{t,i} > \theta,\ r_{t',i} > \theta,\ t' > t\}, \qquad
        m_{t,i} = \|M_{t,i} - M_{0,i}\|.

    Parameters
    ----------
    network
        A network with ``trace(x)``, trained or not: ntm, matntm.
    horizon
        Steps, T.
    layer
        Which layer's memory.
    threshold
        theta, below 1: what a weight must exceed to count.
    scale
        Standard deviation of the Gaussian inputs.
    inputs
        Inputs (time, 1, *input_shape) in place of Gaussian ones: a sequence of a task, say.
    seed
        Of the inputs.

    Returns
    -------
    MemoryUse

    References
    ----------
    Renanse, Sharma and Chandra (2021), figures 6 and 8: inputs and outputs, the memory, read and write weights.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> machine = ms.nn.create("ntm", input_size=2, hidden_size=8, memory=(5, 3))
    >>> found = memory_use(machine, horizon=12)
    >>> found.read.shape, found.contents.shape
    ((12, 5), (5, 3))
    """
    if not isinstance(network, Machine):
        raise expected(
            "network", "a machine with an external memory, ntm or matntm", Description(type(network).__name__)
        )
    limit = positive("threshold", threshold)
    if limit >= 1:
        raise expected("threshold", "below 1", threshold)
    x = input_sequences(network, horizon, 1, scale, inputs, seed)
    if x.shape[1] != 1:
        raise expected("inputs", "one sequence, (time, 1, ..)", tuple(x.shape))
    with answering(network), torch.no_grad():
        order = arranged(network, x)
        trace, output = network.trace(order, layer=layer), network(order)[0]
        outputs = (output.transpose(0, 1) if network.batch_first else output)[:, 0].flatten(1)
        start = network.init_state(1)[layer * network.directions].memory
    read, write = (part[:, 0].mean(1).double().cpu().numpy() for part in (trace.read, trace.write))
    sizes = (trace.memory[:, 0] - start).flatten(2).norm(dim=-1).double().cpu().numpy()
    if not (np.isfinite(read).all() and np.isfinite(sizes).all()):
        raise UserError("the weights or the memory are NaN or infinite; take a shorter horizon or smaller inputs")
    written = (write > limit).any(axis=0)
    return MemoryUse(
        status="exact",
        digits=None,
        assumptions=("one sequence of Gaussian inputs" if inputs is None else "the sequence that was given",),
        cost="O(T N w) time and memory for N slots of w numbers",
        layer=layer,
        inputs=x[:, 0].flatten(1).numpy(),
        outputs=outputs.double().cpu().numpy(),
        read=read,
        write=write,
        memory=sizes,
        contents=trace.memory[-1, 0].flatten(1).double().cpu().numpy(),
        written=int(written.sum()),
        returned=_returned(write > limit, read > limit),
        sharpness=(float(read.max(axis=1).mean()), float(write.max(axis=1).mean())),
        threshold=limit,
    )


def _returned(write: np.ndarray, read: np.ndarray) -> float:
    """Return the share of written slots that are read at a later step."""
    before = np.cumsum(write, axis=0) - write > 0  # written at an earlier step
    count = int(write.any(axis=0).sum())
    return float((before & read).any(axis=0).sum() / count) if count else 0.0
