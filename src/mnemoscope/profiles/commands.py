"""Commands and lines of Python that compute a number of a profile again."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Sequence
from typing import Any

from mnemoscope.measures import get
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.construction import DEFAULT_SIZES
from mnemoscope.nn.registry import NETWORKS
from mnemoscope.profiles.registry import Call
from mnemoscope.profiles.settings import Settings

__all__ = ["network_words", "python_call", "spell"]

_FLAGS = {"hidden_size": "--hidden", "input_size": "--input-size", "num_layers": "--layers"}


def python_call(specs: Sequence[NetworkSpec], settings: Settings, fresh: bool) -> str:
    """Return the line of Python that makes a profile again."""
    chosen = {"quick": settings.quick, "seed": settings.seed, "seeds": settings.seeds, "fresh": fresh}
    more = {name: value for name, value in chosen.items() if value}
    if len(specs) == 1:
        more = {**specs[0].sizes, **specs[0].options, **more}
    names = [
        repr(each.what) if isinstance(each.what, str) else "module" if each.trained else each.name for each in specs
    ]
    function = "profile" if len(specs) == 1 else "compare"
    return f"ms.{function}({', '.join([*names, *(f'{name}={value!r}' for name, value in more.items())])})"


def network_words(spec: NetworkSpec, input_size: int | None = None) -> str | None:
    """Return the network as commands take it, with its sizes; None when no command can name it."""
    if not isinstance(spec.what, str):
        return None
    if spec.saved:
        return shlex.quote(spec.what)
    sizes = spec.sizes if input_size is None else {**spec.sizes, "input_size": input_size}
    if spec.what in NETWORKS and getattr(NETWORKS[spec.what], "kind", None) == "recurrent":
        sizes = {"hidden_size": DEFAULT_SIZES["hidden_size"], **sizes}
    given = [f"{flag} {sizes[name]}" for name, flag in _FLAGS.items() if name in sizes]
    given += [f"--set {shlex.quote(f'{name}={value}')}" for name, value in spec.options.items()]
    return " ".join([shlex.quote(spec.what), *given])


def spell(spec: NetworkSpec, call: Call, seed: int) -> str:
    """Return the command of a measure; a line of Python for a module that no command can name."""
    words = network_words(spec, call.input_size)
    if words is None:
        return _python(spec, call, seed)
    options = [_option(name, value) for name, value in call.options.items()]
    seeded = [f"--seed {seed}"] if _is_seeded(call) or not spec.trained else []
    return " ".join(["mnemoscope measure", call.measure, words, *options, *seeded])


def _option(name: str, value: Any) -> str:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {','.join(map(str, value)) if isinstance(value, tuple) else value}"


def _python(spec: NetworkSpec, call: Call, seed: int) -> str:
    entry = get(call.measure)
    function = entry.of_network or entry.function
    keywords = {**call.options, **({"seed": seed} if _is_seeded(call) else {})}
    given = "".join(f", {name}={value!r}" for name, value in keywords.items())
    return f"ms.measures.{function.__name__}({_network(spec, call, seed)}{given})"


def _network(spec: NetworkSpec, call: Call, seed: int) -> str:
    """Return what stands for the network in a line of Python: the module itself, or how a class is built."""
    if spec.trained:
        return "module"
    sized = spec if call.input_size is None else spec.replace(input_size=call.input_size)
    return f"ms.nn.{sized.replace(seed=seed)!r}.build()"


def _is_seeded(call: Call) -> bool:
    entry = get(call.measure)
    return "seed" in inspect.signature(entry.of_network or entry.function).parameters
