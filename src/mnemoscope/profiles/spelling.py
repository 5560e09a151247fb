"""The command that computes a number again, as it is typed."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from mnemoscope.measures import get
from mnemoscope.profiles.registry import Call
from mnemoscope.profiles.settings import Settings
from mnemoscope.profiles.target import Target

__all__ = ["python_call", "spell"]


def python_call(targets: Sequence[Target], settings: Settings, fresh: bool) -> str:
    """Return the line of Python that makes a profile again."""
    chosen = {"quick": settings.quick, "seed": settings.seed, "seeds": settings.seeds, "fresh": fresh}
    more = {name: value for name, value in chosen.items() if value}
    if len(targets) == 1:
        more = {**targets[0].sizes, **targets[0].options, **more}
    names = [
        repr(each.what) if isinstance(each.what, str) else "module" if each.trained else each.label for each in targets
    ]
    function = "profile" if len(targets) == 1 else "compare"
    return f"ms.{function}({', '.join([*names, *(f'{name}={value!r}' for name, value in more.items())])})"


def spell(target: Target, call: Call, seed: int) -> str:
    """Return the command of a measure; a line of Python for a module that no command can name."""
    words = target.words(call.input_size)
    if words is None:
        return _python(target, call, seed)
    options = [_option(name, value) for name, value in call.options.items()]
    seeded = [f"--seed {seed}"] if _is_seeded(call) or not target.trained else []
    return " ".join(["mnemoscope measure", call.measure, words, *options, *seeded])


def _option(name: str, value: Any) -> str:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {','.join(map(str, value)) if isinstance(value, tuple) else value}"


def _python(target: Target, call: Call, seed: int) -> str:
    entry = get(call.measure)
    function = entry.of_network or entry.function
    keywords = {**call.options, **({"seed": seed} if _is_seeded(call) else {})}
    given = "".join(f", {name}={value!r}" for name, value in keywords.items())
    return f"ms.measures.{function.__name__}({_network(target, call, seed)}{given})"


def _network(target: Target, call: Call, seed: int) -> str:
    """Return what stands for the network in a line of Python: the module itself, or how a class is built."""
    if target.trained:
        return "module"
    options = f", {dict(target.options)!r}" if target.options else ""
    width = "" if call.input_size is None else f", {call.input_size}"
    return f"ms.profiles.Target({target.label}, {dict(target.sizes)!r}{options}).network({seed}{width})"


def _is_seeded(call: Call) -> bool:
    entry = get(call.measure)
    return "seed" in inspect.signature(entry.of_network or entry.function).parameters
