"""Recall ceiling: how many bits of associations a trained network recalls, beside the bits of its state."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from mnemoscope.core.errors import choice, expected
from mnemoscope.core.result import Result, result
from mnemoscope.report import chart
from mnemoscope.tasks import Task, create
from mnemoscope.training.capacities.inputs import Builder, Network, maker
from mnemoscope.training.capacities.result import Capacity
from mnemoscope.training.capacities.search import capacity
from mnemoscope.training.series import checked_minutes

__all__ = ["VARIANTS", "Recall", "recall", "recalled_bits"]

VARIANTS = ("mqar", "mqar-forgetting", "mqar-compositional")
"""Associative recall; with values that are replaced; over two links."""


@result
class Recall(Result):
    """Associations that a network learns to recall, in bits, beside what its state could hold.

    Attributes
    ----------
    network
        What was trained, in words.
    variants
        The tasks.
    pairs
        By variant the most pairs that were mastered, below which none failed; 0 for none.
    bits
        Pairs x log2 of the values that each can have.
    state_bits
        Real numbers in the state x bits of each; None where the state grows.
    best_bits
        By variant the most bits that any number of pairs leaves at the accuracy reached there, by Fano's inequality:
        less than all of many pairs may be more than all of few.
    values
        That a key can have.
    capacities
        The searches, by variant.
    complete, reason
        Whether all searches came to their end.
    seconds
        Of training.
    """

    measure: ClassVar[str] = "recall"
    references: ClassVar[tuple[str, ...]] = ("arora2024",)

    network: str
    variants: tuple[str, ...]
    pairs: tuple[int, ...]
    bits: Float[np.ndarray, " variants"]
    state_bits: int | None
    best_bits: Float[np.ndarray, " variants"]
    values: int
    capacities: tuple[Capacity, ...]
    complete: bool
    reason: str
    seconds: float

    def __str__(self) -> str:
        found = ", ".join(
            f"{pairs} pairs of {name} ({bits:.4g} bits)"
            for name, pairs, bits in zip(self.variants, self.pairs, self.bits, strict=True)
        )
        held = "a state that grows" if self.state_bits is None else f"a state of {self.state_bits:,} bits"
        end = "" if self.complete else f"; {self.reason}"
        return f"{self.network} recalls {found} with {held}{end}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON, the searches too."""
        return {**super().to_dict(), "capacities": [each.to_dict() for each in self.capacities]}

    def plot(self) -> chart.Chart:
        """Draw the mean score against the number of pairs."""
        series = {
            each.task: (each.levels, np.nan_to_num(each.scores).mean(1)) for each in self.capacities if len(each.levels)
        }
        return chart.lines(series, x="pairs", y="accuracy, mean over seeds", title="Recall", log_x=True, points=True)


def recalled_bits(pairs: int, accuracy: float, values: int) -> float:
    r"""Return the bits that answers of an accuracy must have about the values of so many pairs, by Fano's inequality.

    .. math:: n \left( \log_2 V - H(e) - e \log_2 (V - 1) \right), \quad e = 1 - \text{accuracy}

    Examples
    --------
    >>> recalled_bits(8, 1.0, 32), round(recalled_bits(8, 1 / 32, 32), 9)
    (40.0, 0.0)
    """
    if values < 2:
        raise expected("values", "at least 2: one value says nothing", values)
    error = min(max(1 - accuracy, 0.0), 1 - 1 / values)
    entropy = -sum(p * math.log2(p) for p in (error, 1 - error) if p > 0)
    return pairs * (math.log2(values) - entropy - error * math.log2(max(values - 1, 1)))


def recall(
    network: Network | None = None,
    *,
    variants: Sequence[str] = VARIANTS,
    vocabulary: int = 64,
    length: int = 96,
    hidden_size: int | None = None,
    num_layers: int = 1,
    parameters: int | None = None,
    count: str = "recurrent",
    options: Mapping[str, Any] | None = None,
    minutes: float | None = None,
    folder: str | Path | None = None,
    build: Callable[[Task], Builder] | None = None,
    **search: Any,
) -> Recall:
    """Find how many key-value pairs a network learns to recall, and set their bits beside those of its state.

    A pair has log2(vocabulary / 2) bits. A recurrence of S numbers of b bits can hold no more than S b of them: that is
    the ceiling, and most networks stay far below it. The pairs are searched by `capacity`, for plain recall, for
    recall with values that are replaced, and for recall over two links.

    Parameters
    ----------
    network
        As in `mnemoscope.training.capacity`.
    variants
        Which, of `VARIANTS`.
    vocabulary
        Keys and values together, even.
    length
        Steps of a sequence.
    hidden_size, num_layers, parameters, count, options
        Of a network that is built, as in `capacity`.
    minutes
        Of training in all, divided among the variants.
    folder
        Keeps a record of every search; the same call goes on where it was.
    build
        Instead of a network: what builds it for a task.
    search
        Settings of `capacity`: ``seeds``, ``criterion``, ``iterations``, ``start``, ``lr``, ..

    Returns
    -------
    Recall

    Examples
    --------
    >>> import mnemoscope as ms
    >>> found = ms.training.recall(
    ...     "rnn", variants=["mqar"], hidden_size=8, vocabulary=8, length=12, iterations=2, seeds=1, test_size=4
    ... )
    >>> found.values, found.state_bits
    (4, 256)
    """
    names = [choice("a variant", each, VARIANTS) for each in ([variants] if isinstance(variants, str) else variants)]
    if not names or len(set(names)) != len(names):
        raise expected("variants", "different ones, one or more", names)
    given = checked_minutes(minutes)
    tasks = [create(name, vocabulary=vocabulary, length=length, pairs=1) for name in names]

    def usual(task: Task) -> Builder:
        if network is None:
            raise expected("network", "a name, a class or a layer", None)
        sizes: dict[str, Any] = {"hidden_size": hidden_size, "num_layers": num_layers}
        budget: dict[str, Any] = {"parameters": parameters, "count": count}
        return maker(network, task, **sizes, **budget, options=dict(options or {}))

    made = [(build or usual)(task) for task in tasks]
    found = [
        capacity(
            builder,
            task,
            minutes=None if given is None else given / len(tasks),
            folder=None if folder is None else Path(folder) / task.name,
            **search,
        )
        for builder, task in zip(made, tasks, strict=True)
    ]
    values = vocabulary // 2
    reason = next((each.reason for each in found if not each.complete), "")
    return Recall(
        status="estimate",
        digits=None,
        assumptions=(
            "trained within a number of iterations: more could recall more",
            "every number of the state counts with all bits of its type, which no gradient uses",
        ),
        cost="O(variants levels seeds iterations T) time",
        network=made[0].label,
        variants=tuple(names),
        pairs=tuple(each.limit or 0 for each in found),
        bits=np.array([(each.limit or 0) * math.log2(values) for each in found]),
        state_bits=_state_bits(made[0].build(0)),
        best_bits=np.array([_best(each, values) for each in found]),
        values=values,
        capacities=tuple(found),
        complete=not reason,
        reason=reason,
        seconds=sum(each.seconds for each in found),
    )


def _best(found: Capacity, values: int) -> float:
    scores = np.nan_to_num(found.scores).max(1) if len(found.levels) else np.zeros(0)
    each = [recalled_bits(int(n), float(p), values) for n, p in zip(found.levels, scores, strict=True)]
    return max(each, default=0.0)


def _state_bits(layer: Any) -> int | None:
    """Return the bits of a state, each number with those of the network's own type; None where it grows."""
    size = getattr(layer, "state_size", None)
    if size is None:
        from mnemoscope.nn.adapt import adapt

        size = getattr(adapt(layer), "state_size", None)
    kind = next((p.dtype for p in layer.parameters() if p.is_floating_point() or p.is_complex()), None)
    bits = 32 if kind is None else 8 * kind.to_real().itemsize
    return None if size is None else int(size) * bits
