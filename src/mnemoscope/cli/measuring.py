"""One measure on one source: which function is called, with what, and whether it can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mnemoscope.cli.options import Option, options_of
from mnemoscope.cli.sources import LINEAR, Source
from mnemoscope.core.docs import REQUIRED, Argument, function_arguments
from mnemoscope.core.errors import UserError
from mnemoscope.core.result import Result
from mnemoscope.measures import MEASURES, Measure

__all__ = [
    "apply",
    "apply_to_network",
    "measure_options",
    "network_function",
    "no_network",
    "reason_against",
    "takes_nothing",
    "ways",
]


def network_function(entry: Measure) -> Callable[..., Result] | None:
    """Return what computes a measure for a network, or None when nothing does.

    Where a measure of matrices names no function for networks, that is the measure ``network-NAME``, if there is one.
    """
    if entry.of_network is not None or entry.kinds:
        return entry.of_network or entry.function
    twin = f"network-{entry.name}"
    return MEASURES[twin].function if twin in MEASURES else None


def takes_nothing(entry: Measure) -> bool:
    """Say whether a measure takes neither a network nor matrices, but numbers only."""
    return not entry.matrices and network_function(entry) is None


def measure_options(entry: Measure) -> dict[str, Option]:
    """Return the options of a measure's functions: what is neither the network, nor a matrix, nor the seed."""
    found: dict[str, Option] = {}
    for function in (entry.function, network_function(entry)):
        if function is not None:
            found = {**_function_options(entry, function), **found}
    return found


def ways(entry: Measure) -> str:
    """Say in words what a measure can be pointed at."""
    if takes_nothing(entry):
        return "nothing but its options"
    files = " ".join(f"--{flag} FILE" for flag in entry.matrices.values() or LINEAR)
    return f"a network or {files}" if network_function(entry) else files


def apply(entry: Measure, source: Source, given: Mapping[str, Any]) -> Result:
    """Compute a measure of what was typed, `given` the values of its options."""
    if source.network is not None and source.files:
        flags = ", ".join(f"--{flag}" for flag in source.files)
        raise UserError(f"give a network or files, not both: got {source.network!r} and {flags}")
    if takes_nothing(entry):
        return entry.function(**_keywords(entry, entry.function, source.seed, given))
    if source.network is None and not source.files:
        raise UserError(f"{entry.name} needs {ways(entry)}; mnemoscope measure {entry.name} --help says more")
    if source.network is None and entry.matrices:
        return _apply_to_matrices(entry, source, given)
    against = _wrong_kind(entry, source.kind)
    if source.kind is not None and against is not None:
        raise UserError(f"{entry.name} cannot measure {source.network}: {against}")
    return apply_to_network(entry, source.build(), source.seed, given)


def apply_to_network(entry: Measure, network: Any, seed: int, given: Mapping[str, Any]) -> Result:
    """Compute a measure of a network."""
    function = network_function(entry)
    reason = reason_against(entry, network, given)
    if reason is not None or function is None:
        raise UserError(f"{entry.name} cannot measure this network: {reason}")
    return function(network, **_keywords(entry, function, seed, given))


def reason_against(entry: Measure, network: Any, given: Mapping[str, Any]) -> str | None:
    """Say why a measure cannot be computed of a network, or None when it can be tried."""
    function = network_function(entry)
    if function is None:
        return f"it takes {'' if takes_nothing(entry) else 'matrices: '}{ways(entry)}"
    against = _wrong_kind(entry, getattr(network, "kind", None))
    if against is not None:
        return against
    if "polynomial" in entry.needs and not hasattr(network, "evaluate"):
        return "it needs a network that is a polynomial of its weights and inputs"
    missing = [o.flag for o in _function_options(entry, function).values() if o.required and o.name not in given]
    return f"it needs {' and '.join(missing)}" if missing else None


def _wrong_kind(entry: Measure, kind: str | None) -> str | None:
    if not entry.kinds or kind in entry.kinds:
        return None
    return f"it takes networks of kind {' or '.join(entry.kinds)}, and this one is of kind {kind}"


def no_network(entry: Measure) -> str:
    """Say that a measure takes no network."""
    return f"{entry.name} takes {'' if takes_nothing(entry) else 'matrices, not a network: '}{ways(entry)}"


def _apply_to_matrices(entry: Measure, source: Source, given: Mapping[str, Any]) -> Result:
    source.refuse_sizes("the sizes are those of the files")
    arguments = {argument.name: argument for argument in function_arguments(entry.function)}
    needed = [flag for name, flag in entry.matrices.items() if _is_required(arguments.get(name))]
    missing = [f"--{flag}" for flag in needed if flag not in source.files]
    missing += [o.flag for o in _function_options(entry, entry.function).values() if o.required and o.name not in given]
    if missing:
        raise UserError(f"{entry.name} of matrices also needs {' and '.join(missing)}")
    matrices = {name: source.array(flag) for name, flag in entry.matrices.items() if flag in source.files}
    keywords = _keywords(entry, entry.function, source.seed, given)
    named = {name: array for name, array in matrices.items() if name in arguments}
    # Matrices that no argument is named after stand together in the place of a network: (W, v).
    together = tuple(array for name, array in matrices.items() if name not in arguments)
    first = (together if len(together) > 1 else together[0],) if together else ()
    return entry.function(*first, **named, **keywords)


def _is_required(argument: Argument | None) -> bool:
    return argument is None or argument.default is REQUIRED


def _keywords(entry: Measure, function: Callable[..., Any], seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
    accepted = _function_options(entry, function)
    for name in given:
        if name not in accepted:
            known = ", ".join(option.flag for option in accepted.values()) or "no options"
            flag = "--" + name.replace("_", "-")
            other = "a network" if function is entry.function else "matrices"
            raise UserError(f"{flag} belongs to {entry.name} of {other}; here there are {known}")
    takes_seed = any(argument.name == "seed" for argument in function_arguments(function))
    return {**given, **({"seed": seed} if takes_seed else {})}


def _function_options(entry: Measure, function: Callable[..., Any]) -> dict[str, Option]:
    of_network = function is network_function(entry)
    first = [function_arguments(function)[0].name] if of_network else []
    return options_of(function, {"seed", *entry.matrices, *first})
