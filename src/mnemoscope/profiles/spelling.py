"""The command that computes a number again, as it is typed."""

from __future__ import annotations

from typing import Any

from mnemoscope.profiles.registry import Call
from mnemoscope.profiles.target import Target

__all__ = ["spell"]


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
    from mnemoscope.measures import get

    entry = get(call.measure)
    function = entry.of_network or entry.function
    keywords = {**call.options, **({"seed": seed} if _is_seeded(call) else {})}
    given = "".join(f", {name}={value!r}" for name, value in keywords.items())
    return f"ms.measures.{function.__name__}({target.label if not target.trained else 'module'}{given})"


def _is_seeded(call: Call) -> bool:
    import inspect

    from mnemoscope.measures import get

    entry = get(call.measure)
    return "seed" in inspect.signature(entry.of_network or entry.function).parameters
