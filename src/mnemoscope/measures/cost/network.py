"""Resources of a network: parameters, state, multiply-adds and time of a step, training memory, and their growth."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.core.memory import human
from mnemoscope.core.result import Result, result
from mnemoscope.measures.cost.step import SteppedNetwork, call, step_costs, training_memory
from mnemoscope.measures.dynamics import Dynamics, few_threads
from mnemoscope.measures.growth import growth_exponent, slope
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.nn.options import public_class
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.sequence import SequenceNetwork

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["Resources", "resources"]


@result
class Resources(Result):
    """Result of `resources`.

    Attributes
    ----------
    network
        The class of the network.
    parameters, parameter_bytes
        Numbers that training adjusts, and their bytes.
    state_size, state_bytes
        Real numbers in the state of one example, and the bytes of all that the state holds; None when it grows with
        time, or when the network keeps none.
    multiply_adds
        Of one step of one example, at the longest length: matrix products and products of single numbers.
    elementwise
        The products of single numbers among them.
    map_multiply_adds, map_seconds
        Of the matrices that are functions of parameters: once per call, whatever its length.
    lengths
        T, the numbers of steps at which the following were measured.
    work
        Multiply-adds per step at each length.
    step_p50, step_p99
        Seconds of one step at each length: median, and what 99 of 100 steps stay below. NaN when it cannot stream.
    memory
        Bytes that a training pass over each length saves for its backward half, without parameters and input.
    exponent
        p of memory = c + a T^p.
    work_exponent
        The same of `work`.
    time_exponent
        Slope of ln `step_p50` against ln T: 0 when a step takes as long however late it comes.
    batch
        Examples in the batch that was timed and trained on.
    uncounted
        Operations that ran in a step and whose multiplications have no known number; empty for most.
    """

    measure: ClassVar[str] = "resources"
    references: ClassVar[tuple[str, ...]] = ("kerg2020",)

    network: str
    parameters: int
    parameter_bytes: int
    state_size: int | None
    state_bytes: int | None
    multiply_adds: int
    elementwise: int
    map_multiply_adds: int
    map_seconds: float
    lengths: Int[np.ndarray, " k"]
    work: Float[np.ndarray, " k"]
    step_p50: Float[np.ndarray, " k"]
    step_p99: Float[np.ndarray, " k"]
    memory: Int[np.ndarray, " k"]
    exponent: float
    work_exponent: float
    time_exponent: float
    batch: int
    uncounted: tuple[str, ...]

    def __str__(self) -> str:
        state = "no state of fixed size" if self.state_size is None else f"a state of {self.state_size:,} numbers"
        timed = f" in {_micro(self.step_p50[-1])}" if np.isfinite(self.step_p50[-1]) else ""
        return (
            f"{self.network}: {self.parameters:,} parameters, {state}, {self.multiply_adds:,} multiply-adds per "
            f"step{timed}, memory of training ~ T^{self.exponent:.2f}"
        )

    def facts(self) -> dict[str, str]:
        """Return the table."""
        longest = int(self.lengths[-1])
        found = {
            "parameters": f"{self.parameters:,} ({human(self.parameter_bytes)})",
            "state": "grows with time, or none" if self.state_size is None else self._state(),
            "multiply-adds per step": f"{self.multiply_adds:,} ({self.elementwise:,} of single numbers)",
            "maps, once per call": f"{self.map_multiply_adds:,} multiply-adds, {_micro(self.map_seconds)}",
        }
        if np.isfinite(self.step_p50[-1]):
            p50, p99 = _micro(self.step_p50[-1]), _micro(self.step_p99[-1])
            found["time per step"] = f"{p50} (p50), {p99} (p99) near T={longest}, batch of {self.batch}"
            found["time per step grows as"] = f"T^{self.time_exponent:.2f}"
        found["multiply-adds per step grow as"] = f"T^{self.work_exponent:.2f}"
        found["memory of training"] = f"{human(int(self.memory[-1]))} at T={longest}, batch of {self.batch}"
        found["memory of training grows as"] = f"T^{self.exponent:.2f}"
        return found

    def _state(self) -> str:
        return f"{self.state_size:,} numbers ({human(self.state_bytes or 0)})"

    def plot(self) -> chart.Chart:
        """Draw memory of training and time per step against the length."""
        from mnemoscope.report import chart

        title = f"Memory of training: T^{self.exponent:.2f}"
        saved = chart.lines(
            {"saved": (self.lengths, self.memory / 2**20)},
            x="sequence length T (steps)",
            y=f"saved for the backward pass (MB, batch {self.batch})",
            title=title,
            log_x=True,
            log_y=True,
            points=True,
        )
        if not np.isfinite(self.step_p50).all():
            return saved
        times = chart.lines(
            {"p50": (self.lengths, 1e6 * self.step_p50), "p99": (self.lengths, 1e6 * self.step_p99)},
            x="steps so far T",
            y="time of one step (µs)",
            title="Time of a step, streaming",
            log_x=True,
            log_y=True,
            points=True,
        )
        return chart.beside(saved, times)


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} µs" if seconds < 0.01 else f"{1e3 * seconds:.0f} ms"


_COST = Cost(
    time={"R T S^2": 1e-10, "R T": 1.2e-4},
    memory="T S",
    sizes={"T": lambda given: max(given["lengths"]), "R": lambda given: given["repeats"] + 2},
    letters={"R": "passes"},
    paced=lambda n, pace: n["R"] * n["T"] * (pace.step.base / 3 + pace.step.each) + 5 * pace.maps,
)


@measure("resources", kinds=("recurrent", "sequence"), quick={"lengths": (64, 128, 256, 512), "repeats": 3}, cost=_COST)
def resources(
    network: nn.Module | Dynamics,
    *,
    lengths: tuple[int, ...] = (128, 256, 512, 1024),
    batch: int = 1,
    repeats: int = 5,
    seed: int = 0,
) -> Resources:
    """Measure what a network costs: parameters, state, multiply-adds, time of a step, memory of training, their growth.

    Multiply-adds are counted while a step runs, from every tensor operation in it: products of matrices, and products
    of single numbers (a complex one is four); sums and functions such as tanh are not. An LSTM of n units and d inputs
    has 4n(n + d) + 3n. Matrices that are functions of parameters are computed once per call, and counted apart.

    Time per step is that of `step`, called for one input after the other; at length T the median and the 99% quantile
    of the steps between T/2 and T. A network without a state must read its whole past again for each new output.

    Memory is what autograd saves in the forward half of a training pass over T steps, each storage counted once. Its
    exponent p is that of the best fit c + a T^p.

    Parameters
    ----------
    network
        Any recurrent or sequence network, or a module that `mnemoscope.adapt` understands.
    lengths
        Sequence lengths T, at least three.
    batch
        Examples at once, for time and memory.
    repeats
        How often the longest sequence is streamed for the times.
    seed
        Of the random inputs.

    Returns
    -------
    Resources

    References
    ----------
    Kerg et al. 2020 compare the memory of recurrent and attentive networks so.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> from mnemoscope.measures.cost.network import resources
    >>> found = resources(ms.nn.LSTM(10, 64), lengths=(16, 32, 64))
    >>> found.parameters, found.state_size, found.multiply_adds == 4 * 64 * (64 + 10) + 3 * 64
    (19456, 128, True)
    >>> round(found.exponent, 2)
    1.0
    """
    steps = _checked_lengths(lengths)
    positive_int("batch", batch)
    positive_int("repeats", repeats)
    subject = _copy(network)
    asked, steps = steps, _taken(subject, steps)
    cuda = sorted({p.device.index or 0 for p in subject.parameters() if p.device.type == "cuda"})
    with few_threads(getattr(subject, "state_size", None) or subject.output_size), torch.random.fork_rng(cuda):
        torch.manual_seed(_seed(seed))
        x = _inputs(subject, steps[-1], batch)
        saved = training_memory(deepcopy(subject).train(), x, steps)
        grows = getattr(subject, "grows", False) and getattr(subject, "capacity", None) is None
        if grows:
            subject.capacity = steps[-1]
        spent = step_costs(subject.eval(), x, steps, repeats)
    grid, several = np.array(steps, dtype=float), len(steps) > 1
    return Resources(
        status="estimate",
        digits=None,
        assumptions=(
            *(() if steps == asked else (f"it does not take {asked[-1]} steps, and was run on at most {steps[-1]}",)),
            *((f"steps are those of a memory with room for {steps[-1]}",) if grows else ()),
            *_assumptions(subject, x, spent.uncounted),
        ),
        cost="time of (repeats + 2) T steps, memory of one training pass over the longest T",
        network=_name(subject),
        parameters=sum(p.numel() for p in subject.parameters()),
        parameter_bytes=sum(p.numel() * p.element_size() for p in subject.parameters()),
        state_size=None if grows else spent.state_size,
        state_bytes=None if grows else spent.state_bytes,
        multiply_adds=round(spent.work[-1]),
        elementwise=round(spent.elementwise),
        map_multiply_adds=spent.maps,
        map_seconds=spent.map_seconds,
        lengths=np.array(steps),
        work=np.array(spent.work),
        step_p50=np.array(spent.p50),
        step_p99=np.array(spent.p99),
        memory=np.array(saved),
        exponent=growth_exponent(grid, np.array(saved, dtype=float)) if several else float("nan"),
        work_exponent=growth_exponent(grid, np.array(spent.work)) if several else float("nan"),
        time_exponent=slope(grid, np.array(spent.p50)) if several else float("nan"),
        batch=batch,
        uncounted=tuple(sorted(spent.uncounted)),
    )


def _copy(network: Any) -> SteppedNetwork:
    """Return the network as a copy, so that nothing of the caller's changes."""
    from mnemoscope.nn.adapt import adapt

    adapted = adapt(network.original if isinstance(network, Dynamics) else network)
    if not isinstance(adapted, Recurrent | SequenceNetwork):
        kind = Description(f"kind {getattr(adapted, 'kind', None)!r}")
        raise expected("network", "recurrent or a sequence network", kind)
    return deepcopy(adapted)


def _inputs(network: SteppedNetwork, steps: int, batch: int) -> Tensor:
    like = next((p for p in network.parameters() if p.is_floating_point()), torch.zeros(()))
    return torch.randn(steps, batch, *network.input_shape, dtype=like.dtype).to(like.device)


def _taken(network: SteppedNetwork, steps: list[int]) -> list[int]:
    """Return the lengths, shorter where a stranger's module takes none of these: its only one, or half and half."""
    only = getattr(network, "fixed_length", None)
    if only is not None:
        return [only]
    if not hasattr(network, "module"):
        return steps
    found = steps
    while len(set(found)) == len(steps) and found[0] > 0:
        try:
            with torch.no_grad():
                call(network, _inputs(network, found[-1], 1))
        except UserError:  # a table of positions may end before
            found = [length // 2 for length in found]
        else:
            return found
    return steps


def _checked_lengths(lengths: Any) -> list[int]:
    if not isinstance(lengths, Sequence | np.ndarray) or isinstance(lengths, str):
        raise expected("lengths", "several numbers of steps", lengths)
    steps = sorted({positive_int("each of lengths", length) for length in lengths})
    if len(steps) < 3:
        raise expected("lengths", "at least three different numbers of steps", lengths)
    return steps


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise expected("seed", "a whole number of at least 0", seed)
    return seed


def _name(network: SteppedNetwork) -> str:
    return public_class(type(getattr(network, "module", network))).__name__


def _assumptions(network: SteppedNetwork, x: Tensor, uncounted: set[str]) -> tuple[str, ...]:
    kind = str(x.dtype).removeprefix("torch.")
    found = [f"times are of this machine: {x.device.type}, {torch.get_num_threads()} threads, {kind}"]
    if not network.causal:
        found.append(f"it cannot stream, since {network.future}; multiply-adds are a whole call's divided by T")
    elif isinstance(network, SequenceNetwork):
        found.append("it has no state: each new output reads the past again; multiply-adds are a call's divided by T")
    if uncounted:
        found.append(f"the multiplications of {', '.join(sorted(uncounted))} are not counted")
    return tuple(found)
