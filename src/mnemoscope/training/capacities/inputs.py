"""Inputs of a capacity search, checked: the network of each seed, the levels that are tried."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import nn

from mnemoscope.core.errors import Description, UserError, expected, positive_int, unknown
from mnemoscope.core.seeds import check_seed, stream
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.construction import DEFAULT_SIZES
from mnemoscope.tasks import Task
from mnemoscope.tasks.control import Environment
from mnemoscope.training.configuration import describe_network
from mnemoscope.training.control.settings import PPO
from mnemoscope.training.model import spec_for
from mnemoscope.training.options import Options

__all__ = [
    "Builder",
    "Network",
    "Tried",
    "checked_seeds",
    "checked_training",
    "maker",
    "next_by_bisection",
    "next_on_grid",
    "share",
    "strategy",
]

Tried = Mapping[int, bool]
"""Difficulties that were tried, and whether the network mastered them."""


def next_by_bisection(
    tried: Tried, start: int, least: int = 1, largest: int | None = None, resolution: float = 0.1
) -> int | None:
    """Return the next difficulty, or None when the limit is known well enough.

    From `start` the difficulty doubles as long as it is mastered (or halves as long as it is not); then the gap between
    the hardest that was mastered and the easiest that was not is halved, until it is at most `resolution` times the
    former, or 1. That takes about 2 log2(limit / start) + log2(1 / resolution) levels.

    Parameters
    ----------
    tried
        What was tried so far; the answer depends on nothing else, so that a search can be taken up again.
    start
        The first difficulty.
    least, largest
        The range of difficulties; None: no end.
    resolution
        How wide the last gap may be, as a share of the limit.

    Examples
    --------
    >>> tried = {}
    >>> while (level := next_by_bisection(tried, 10)) is not None:
    ...     tried[level] = level <= 57
    >>> list(tried)
    [10, 20, 40, 80, 60, 50, 55]
    """
    failed = min((level for level, passed in tried.items() if not passed), default=None)
    # A level that was mastered above one that was not is luck: the limit is looked for below the failure.
    passed = max((level for level, good in tried.items() if good and (failed is None or level < failed)), default=None)
    if passed is None and failed is None:
        return max(least, start if largest is None else min(start, largest))
    if failed is None and passed is not None:
        return _unless_tried(tried, 2 * passed if largest is None else min(2 * passed, largest))
    if passed is None and failed is not None:
        return _unless_tried(tried, max(least, failed // 2))
    assert passed is not None
    assert failed is not None
    if failed - passed <= max(1, resolution * passed):
        return None
    return (passed + failed) // 2


def next_on_grid(tried: Tried, grid: Sequence[int], failures: int = 2) -> int | None:
    """Return the next difficulty of an ascending grid, or None after so many failures in a row or at its end.

    Examples
    --------
    >>> next_on_grid({10: True, 20: False}, [10, 20, 30, 40])
    30
    >>> next_on_grid({10: True, 20: False, 30: False}, [10, 20, 30, 40]) is None
    True
    """
    row = 0
    for level in grid:
        if level not in tried:
            return level
        row = 0 if tried[level] else row + 1
        if row >= failures:
            return None
    return None


def _unless_tried(tried: Tried, level: int) -> int | None:
    return None if level in tried else level


_FIRST = 8
"""The first level is the task's own over this."""
_NOT_OPTIONS = {
    "input_size": "is the task's",
    "output_size": "is the task's",
    "hidden_size": "has an argument of its own (--hidden)",
    "num_layers": "has an argument of its own (--layers)",
    "parameters": "has an argument of its own (--parameters)",
    "count": "has an argument of its own (--count)",
}
"""What is not among a network's options, and why."""
_OWN = ("iterations", "seed", "target")
"""Settings of trainings that the search gives."""
_WAYS = ("readout", "layout", "workers")


class Builder(NamedTuple):
    """What builds the network of a seed, what it is called, and what it is as JSON."""

    label: str
    build: Callable[[int], nn.Module]
    spec: dict[str, Any]


Network = str | Callable[..., nn.Module] | nn.Module | NetworkSpec | Builder


def maker(
    network: Network,
    task: Task | Environment,
    *,
    hidden_size: int | None = None,
    num_layers: int = 1,
    parameters: int | None = None,
    count: str = "recurrent",
    options: Mapping[str, Any] = MappingProxyType({}),
    about: Mapping[str, Any] | None = None,
) -> Builder:
    """Return what builds the network of each seed; `about` is advice on a stranger's module, and its weights."""
    if isinstance(network, Builder):
        return network
    if isinstance(network, nn.Module):
        return _copies(network, hidden_size, parameters, options)
    if isinstance(network, NetworkSpec):
        if hidden_size is not None or parameters is not None or options or num_layers > 1:
            raise UserError("a NetworkSpec has its sizes and options already: give them there")
        return _described(network, task)
    layers = positive_int("num_layers", num_layers)
    if not isinstance(network, str) and not callable(network):
        raise expected("network", "a name, a class, a function or a layer", Description(f"a {type(network).__name__}"))
    sizes: dict[str, Any] = {"hidden_size": hidden_size, "num_layers": layers if layers > 1 else None}
    budget: dict[str, Any] = {"parameters": parameters, "count": count}
    return _described(NetworkSpec(network, **sizes, **budget, options=options, **(about or {})), task)


def _described(given: NetworkSpec, task: Task | Environment) -> Builder:
    """Return what builds the networks of a description, at the sizes that the task and the budget decide."""
    for name in given.options:
        if name in _NOT_OPTIONS:
            raise UserError(f"{name} {_NOT_OPTIONS[name]}, and cannot be given as an option of the network")
    if given.saved:
        raise UserError(f"{given.what!r} has weights of its own, and a search trains from scratch: give its class")
    spec = spec_for(given, task).resolved()
    layers = spec.num_layers or 1
    width = DEFAULT_SIZES["hidden_size"] if spec.hidden_size is None else spec.hidden_size
    deep = f", {layers} layers" if layers > 1 else ""
    name = given.what if isinstance(given.what, str) else getattr(given.what, "__name__", "network")
    known = {"network": name, "hidden_size": width, "num_layers": layers, "options": dict(given.options)}
    known |= {"advice": dict(spec.advice)} if spec.advice else {}
    known |= {"weights": spec.weights} if spec.weights else {}
    if spec.digest is not None:  # what was kept of another version of the file is not this network's
        known["digest"] = spec.digest
    relational = "panels" in spec.options and spec.hidden_size is None
    return Builder(
        spec.name if relational else f"{spec.name} (n = {width}{deep})",
        lambda seed: spec.replace(seed=seed).build(),
        known,
    )


def _copies(layer: nn.Module, hidden_size: int | None, parameters: int | None, options: Mapping[str, Any]) -> Builder:
    if hidden_size is not None or parameters is not None or options:
        raise UserError("a layer has its sizes and options already: give its class to choose them")
    reset: Any = getattr(layer, "reset_parameters", None)
    if not callable(reset):
        raise UserError(
            f"{type(layer).__name__} has no reset_parameters(), so that seeds cannot differ: give its class"
        )

    def build(seed: int) -> Any:
        twin: Any = copy.deepcopy(layer)
        with torch.random.fork_rng(devices=[]):
            torch.random.set_rng_state(stream(seed, "layer").get_state())
            twin.reset_parameters()
        return twin

    return Builder(type(layer).__name__, build, {"network": describe_network(layer)})


def strategy(
    task: Task | Environment, *, start: int | None, largest: int | None, grid: Sequence[int] | None, resolution: float
) -> Callable[[Tried], int | None]:
    """Return what says the next level of those that were tried."""
    least, most = task.limits()
    if grid is not None:
        if start is not None or largest is not None:
            raise UserError("a grid says itself where the levels begin and end: give it, or start and largest")
        levels = [positive_int("grid", level) for level in grid]
        if not levels or levels != sorted(set(levels)):
            raise expected("grid", "ascending levels, one or more", list(grid))
        _check_levels(task, levels)
        return lambda tried: next_on_grid(tried, levels)
    if isinstance(resolution, bool) or not isinstance(resolution, int | float) or not 0 < resolution <= 1:
        raise expected("resolution", "a number above 0 and at most 1", resolution)
    # Levels double, which from 0 they would not; 0 is still tried where 1 fails.
    first = max(least, 1, getattr(task, task.difficulty) // _FIRST) if start is None else positive_int("start", start)
    ends = [end for end in (most, None if largest is None else positive_int("largest", largest)) if end is not None]
    last = min(ends, default=None)
    if first < least or (last is not None and first > last):
        raise expected("start", f"from {least} to {'any' if last is None else last}", first)
    _check_levels(task, [first])
    return lambda tried: next_by_bisection(tried, first, least, last, resolution)


def _check_levels(task: Task | Environment, levels: Sequence[int]) -> None:
    """Raise about a level that there is not, or that needs another network, before the first is trained."""
    for level in levels:
        if task.harder(level).input_size != task.input_size:
            raise UserError(
                f"{task.name} has another input size at each {task.difficulty}, so that no network fits all levels: "
                "train it at one, or choose another task"
            )


def checked_training(settings: Mapping[str, Any], task: Any, also: Sequence[str] = ()) -> dict[str, Any]:
    """Return settings of the trainings of a search, or raise about one that there is not, or that the search gives.

    Parameters
    ----------
    settings
        By name.
    task
        What is trained: environments have other settings than tasks.
    also
        Names that are allowed besides those that a text can give.
    """
    plays = isinstance(task, Environment)
    names = [*Options.names(), *(PPO.names() if plays else _WAYS)]
    known = [*(name for name in names if name not in _OWN), *also]
    for name in settings:
        if name not in known:
            raise unknown(f"training has no setting {name!r} within a search", name, known)
    return dict(settings)


def checked_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """Return the seeds: 0, 1, .. when their number is given."""
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        return tuple(range(positive_int("seeds", seeds)))
    try:
        found = tuple(check_seed(seed) for seed in seeds)  # type: ignore[union-attr]
    except TypeError:
        raise expected("seeds", "a number or a list of whole numbers", seeds) from None
    if not found or len(set(found)) != len(found):
        raise expected("seeds", "different whole numbers, one or more", list(found))
    return found


def share(name: str, value: Any) -> float:
    """Return a number above 0 and at most 1, or raise the standard error."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1 or not math.isfinite(value):
        raise expected(name, "a number above 0 and at most 1", value)
    return float(value)
