"""Table of measures: their names, what each takes, needs and costs, and how one is called."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from mnemoscope.core.errors import UserError
from mnemoscope.core.registry import Registry
from mnemoscope.core.result import Result

if TYPE_CHECKING:
    from mnemoscope.measures.pace import Pace

__all__ = ["MEASURES", "Cost", "Measure", "get", "measure", "names"]

NEEDS = {
    "matrix": "its matrices",
    "step": "a pure step",
    "jacobian": "a differentiable step",
    "polynomial": "a form that is a polynomial of its weights and inputs",
    "attention": "attention to its own past states",
    "memory": "an external memory that it writes to and reads",
}
"""What a measure can need of a network, in words."""

HOMES = {
    "attention": "attention_weights",
    "attention-paths": "gradient_paths",
    "copy-capacity": "copying",
    "cp-rank": "tensor_train.cp",
    "drift": "weight_drift",
    "effective-state-size": "state_use",
    "encoder-geometry": "relations",
    "fisher": "fisher.vector",
    "gradients": "gradients",
    "hankel": "hankel",
    "latent-embedding": "embedding",
    "lyapunov": "lyapunov",
    "matrix-fisher": "fisher.matrix",
    "memory-capacity": "capacity.memory",
    "memory-use": "machine_memory",
    "mode-parity": "parity.forms",
    "network-fisher": "fisher.network",
    "odd-even-rank": "tensor_train.odd_even",
    "output-memory": "outputs",
    "polynomial-degree": "degree",
    "pseudospectrum": "spectral.pseudo",
    "queue-fisher": "fisher.queue",
    "relational-dependence": "relations",
    "relations": "relations",
    "remembrance": "remembrance",
    "resources": "cost.network",
    "separation-conjecture": "separation.conjecture",
    "separation-rank": "separation.rank",
    "separation-saturation": "separation.saturation",
    "spectrum": "spectral.matrix",
    "state-inventory": "inventory.state",
    "state-tracking-witness": "tracking.witness",
    "tensor-network": "rac_graph.cut",
    "tracking": "tracking.gate",
}
"""The file of each measure, imported when the measure is asked for. `tests/measures/test_registry.py` keeps it true."""

LONGEST = 6 * 3600.0
"""Seconds from which on a measure is refused: it would not end while anybody waits."""

LETTERS = {
    "S": "numbers in a state",
    "T": "steps",
    "B": "trajectories",
    "d": "inputs",
    "L": "layers",
    "P": "samples",
}
"""What the letters of a cost mean where it does not say so itself."""

F = TypeVar("F", bound=Callable[..., Result])


@dataclass(frozen=True)
class Cost:
    """Time and memory of a measure, as functions of its sizes. Text and estimate are one statement.

    Attributes
    ----------
    time
        Products of sizes, and the seconds that a unit of each takes on one core of a common machine; what grows
        fastest comes first: ``{"B T S^3": 2.5e-10, "T": 1e-4}``.
    memory
        The product with which the memory grows: ``"B T S d"``.
    sizes
        The argument that a letter is (of several, separated by spaces, the first that is given), or a function of all
        arguments and of S and d, which are the network's own.
    letters
        What letters mean that `LETTERS` does not know.
    paced
        Seconds for a network whose `mnemoscope.measures.pace.Pace` is known, from that and all sizes and arguments;
        None: by `time`.

    Examples
    --------
    >>> cost = Cost(time={"B T S^3": 1e-9, "T": 1e-4}, memory="B T S", sizes={"T": "horizon", "B": "trajectories"})
    >>> print(cost)
    O(B T S^3) time, O(B T S) memory; B trajectories, S numbers in a state, T steps
    >>> round(cost.seconds({"B": 4, "T": 100, "S": 100}), 3)
    0.41
    """

    time: Mapping[str, float]
    memory: str
    sizes: Mapping[str, str | Callable[[Mapping[str, Any]], float]] = field(default_factory=dict)
    letters: Mapping[str, str] = field(default_factory=dict)
    paced: Callable[[Mapping[str, Any], Pace], float] | None = None

    def __str__(self) -> str:
        leading = next(iter(self.time))
        used = sorted(set(re.findall(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])", f"{leading} {self.memory}")), key=str.lower)
        meaning = {**LETTERS, **self.letters}
        words = ", ".join(f"{letter} {meaning[letter]}" for letter in used)
        return f"O({leading}) time, O({self.memory}) memory; {words}"

    def seconds(self, sizes: Mapping[str, float]) -> float:
        """Return about how long it takes, on one core of a common machine."""
        return sum(rate * _product(term, sizes) for term, rate in self.time.items())

    def require_end(self, what: str, **sizes: float) -> None:
        """Raise where it would take longer than anybody waits."""
        seconds = self.seconds(sizes)
        if seconds <= LONGEST:
            return
        given = ", ".join(f"{letter} = {size:g}" for letter, size in sizes.items())
        raise UserError(
            f"{what} would take about {seconds / 3600:.0f} hours for {given}: it grows as {next(iter(self.time))};"
            " fewer steps, fewer trajectories or a smaller network would end"
        )


def _product(term: str, sizes: Mapping[str, float]) -> float:
    """Return the value of ``"B T S^3"``; an exponent may be a letter, and ``log(T)`` is a factor."""
    value = 1.0
    for factor in term.split():
        base, _, power = factor.partition("^")
        logarithm = re.fullmatch(r"log\((\w)\)", base)
        size = max(1.0, math.log2(max(sizes[logarithm[1]], 1.0))) if logarithm else sizes[base]
        value *= float(size) ** (float(sizes[power]) if power.isalpha() else float(power or 1))
    return value


@dataclass(frozen=True)
class Measure:
    """A measure, and what it says of itself.

    Attributes
    ----------
    name
        Its registry name, which is also its command.
    function
        What computes it. Its docstring explains it, its signature gives the command its options.
    kinds
        The kinds of network that it accepts; empty when it takes matrices only; ``"run"``: networks at the checkpoints
        of a run.
    needs
        What it needs of the network: keys of `NEEDS`.
    matrices
        Which arguments are arrays, and the options by which the command takes their files: ``{"W": "matrix"}``.
    of_network
        What computes it for a network where `function` takes matrices; None when `function` takes networks itself
        (its first argument is then the network).
    quick
        Arguments of a quick look, for the ``--quick`` set; None: not part of it.
    cost
        What it costs; None: nobody said so.
    any_module
        Whether it also takes modules that no adapter reads as a network.
    """

    name: str
    function: Callable[..., Result]
    kinds: tuple[str, ...] = ("recurrent",)
    needs: tuple[str, ...] = ()
    matrices: Mapping[str, str] = field(default_factory=dict)
    of_network: Callable[..., Result] | None = None
    quick: Mapping[str, Any] | None = None
    cost: Cost | None = None
    any_module: bool = False

    @property
    def summary(self) -> str:
        """The first sentence of the function's docstring."""
        return " ".join((inspect.getdoc(self.function) or "").partition("\n\n")[0].split())

    def seconds(self, state_size: int, input_size: int = 1, pace: Pace | None = None, **arguments: Any) -> float | None:
        """Return about how long it takes for a network of this size and these arguments; None where nobody said so.

        With the `pace` of the network it is an estimate for this machine, else for a common one.

        Examples
        --------
        >>> from mnemoscope.measures import get
        >>> fisher = get("network-fisher")
        >>> 3.5 < fisher.seconds(2048, horizon=500) / fisher.seconds(1024, horizon=500) < 4.1
        True
        """
        if self.cost is None:
            return None
        parameters = inspect.signature(self.function).parameters.values()
        known = {each.name: each.default for each in parameters if each.default is not each.empty}
        known |= {"S": state_size, "d": input_size, **arguments}
        sizes = {"S": float(state_size), "d": float(input_size)}
        for letter, source in self.cost.sizes.items():
            if callable(source):
                sizes[letter] = float(source(known))
            else:
                sizes[letter] = float(next(known[name] for name in source.split() if known.get(name) is not None))
        if pace is None or self.cost.paced is None:
            return self.cost.seconds(sizes)
        return self.cost.paced({**known, **sizes}, pace)


MEASURES: Registry[Measure] = Registry(
    "measure",
    "mnemoscope.measures",
    Measure,
    table={name: f"mnemoscope.measures.{home}" for name, home in HOMES.items()},
    listed="mnemoscope measure",
)


def measure(name: str, **facts: Any) -> Callable[[F], F]:
    """Return a decorator that registers a function as a measure, with the facts of `Measure`."""

    def file(function: F) -> F:
        MEASURES.register(name)(Measure(name, function, **facts))
        return function

    return file


def names() -> list[str]:
    """Return the names of all measures, sorted."""
    return MEASURES.names()


def get(name: str) -> Measure:
    """Return a measure by its name, or raise with the nearest."""
    return MEASURES[name]
