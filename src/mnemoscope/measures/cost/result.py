"""The result of `resources`: how it is printed and drawn."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from mnemoscope.core.memory import human
from mnemoscope.core.result import Result, result
from mnemoscope.report import chart

__all__ = ["Resources"]


@result
class Resources(Result):
    """What `resources` found.

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
        title = f"Memory of training: T^{self.exponent:.2f}"
        saved = chart.lines(
            {"saved": (self.lengths, self.memory / 2**20)},
            x="sequence length T (steps)",
            y=f"saved for the backward pass (MB, batch {self.batch})",
            title=title,
            log_x=True,
            log_y=True,
            marks=True,
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
            marks=True,
            legend="quantile",
        )
        return chart.beside(saved, times)


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} µs" if seconds < 0.01 else f"{1e3 * seconds:.0f} ms"
