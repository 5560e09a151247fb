"""What was found out about a foreign module, and how the search for it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.nn.adapt_call import ORDERS, Call, Key, Signature, is_output_name, is_state_name, parts, pick, shown
from mnemoscope.nn.adapt_probe import CallFailed, Invoke, Lab, spell
from mnemoscope.nn.adapt_sizes import Width
from mnemoscope.nn.adapt_state import Layout, Start
from mnemoscope.nn.causality import Causality, causality, mixes

__all__ = ["Plan", "check_behaviour", "check_causality", "close", "output_key", "search", "signature_of"]

_LONG = 24


@dataclass(frozen=True)
class Plan:
    """How a module is to be used.

    Attributes
    ----------
    call
        How it is called.
    input_size, output_size
        Numbers per step.
    guesses
        What was guessed, in plain words.
    causality
        What a check found; None where a module reads single steps.
    start, layout
        Of the state, where there is one.
    """

    call: Call
    input_size: int
    output_size: int
    guesses: tuple[str, ...]
    causality: Causality | None = None
    start: Start | None = None
    layout: Layout | None = None


def signature_of(lab: Lab, kind: str) -> Signature:
    """Read the arguments of the module, and refuse those that nobody can guess."""
    signature = Signature.of(lab.module, lab.told.state_name, lab.told.keywords)
    if signature.missing:
        name = signature.missing[0]
        call = spell(kind=kind, keywords=f'{{"{name}": ...}}')
        raise UserError(f"{lab.name}.forward must not need more than input and state, got {name!r} too; call {call}")
    return signature


def search(lab: Lab, kind: str, hints: dict[str, Any], attempts: Iterable[tuple[Width, Callable[[], Plan]]]) -> Plan:
    """Return the first plan that works; a width that the module does not state must be the only one.

    Parameters
    ----------
    hints
        What the user could say, for the message when nothing works.
    """
    found: dict[int, Plan] = {}
    wrong: list[UserError] = []
    failed: list[CallFailed] = []
    sure = False
    for width, attempt in attempts:
        sure = sure or width.sure
        if width.size in found:
            continue
        try:
            found[width.size] = attempt()
        except CallFailed as error:
            failed.append(error)
        except UserError as error:
            wrong.append(error)
        if width.sure and width.size in found:
            return found[width.size]
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        sizes = " and ".join(map(str, found))
        call = spell(kind=kind, input_size=next(iter(found)))
        raise UserError(f"cannot tell the input width of {lab.name}: {sizes} both work; call for instance {call}")
    raise wrong[0] if wrong else _explained(lab, kind, hints, failed, sure)


def _explained(lab: Lab, kind: str, hints: dict[str, Any], failed: list[CallFailed], sure: bool) -> UserError:
    if _reads_tokens(lab):
        return UserError(
            f"the input of {lab.name} must be real vectors, got a module that reads whole numbers; "
            f"give what comes after its embedding, as in ms.adapt(module.rnn)"
        )
    reasons = {str(error).split(", called with")[0] for error in failed}
    if not sure and len(reasons) != 1:
        return UserError(f"cannot tell the input width of {lab.name}; call {spell(kind=kind, input_size=...)}")
    return UserError(f"{lab.name} raised {failed[0]}; say how it is called: {spell(kind=kind, **hints)}")


def _reads_tokens(lab: Lab) -> bool:
    for shape in ((lab.batch, lab.time), (lab.batch,)):
        try:
            lab.module(torch.zeros(shape, dtype=torch.int64, device=lab.device))
        except Exception:
            continue
        return True
    return False


def output_key(lab: Lab, returned: Any, order: str | None, taken: Key = None) -> Key:
    """Return where the output stands: a tensor with an entry for every example and step.

    Parameters
    ----------
    taken
        Where the state stands, if that is known.
    """
    if lab.told.output is not None:
        return lab.told.output
    sizes = {"T": lab.time, "B": lab.batch, "D": "features"}
    wanted = [sizes[axis] for axis in order or "BD"]
    beside = taken if isinstance(taken, tuple) else (taken,)
    found: dict[Key, Any] = {None: returned} if isinstance(returned, Tensor) else parts(returned)
    fits = [key for key, value in found.items() if key not in beside and _fits(value, wanted)]
    if isinstance(returned, Tensor) and _fits(returned, wanted):
        return None
    if fits:
        return min(fits, key=lambda key: (not is_output_name(key), is_state_name(key)))
    shape = f"({', '.join(map(str, wanted))})"
    which = "step" if order else "example"
    raise UserError(f"{lab.name} must return one output per {which}, a tensor of shape {shape}, got {shown(returned)}")


def _fits(value: Any, wanted: list[Any]) -> bool:
    if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
        return False
    least = max(axis for axis, size in enumerate(wanted) if size != "features") + 1
    named = zip(value.shape, wanted, strict=False)
    return value.dim() >= least and all(size in (want, size if want == "features" else want) for size, want in named)


def check_behaviour(lab: Lab, invoke: Invoke, x: Tensor) -> None:
    """Refuse a module that is not a function of each example by itself."""
    y = invoke(lab.module, x)
    if not bool(y.isfinite().all()):
        raise UserError(
            f"{lab.name} must return finite numbers for a standard normal input, got NaN or infinity; "
            "are its parameters initialised?"
        )
    if not close(invoke(lab.module, x), y):
        raise UserError(
            f"{lab.name} must give one output for one input in eval mode, got two that differ; "
            "take out its random numbers or what it keeps between calls"
        )
    if any(mixes(run, x, lab.normal(*x.shape), axis=1) for run in lab.runs(invoke, x)):
        raise UserError(f"{lab.name} must treat the examples of a batch one by one, got outputs that depend on others")


def check_causality(lab: Lab, invoke: Invoke, input_size: int) -> Causality:
    """Find whether any output depends on later inputs, on long sequences where the module takes them."""
    for steps in [lab.told.length] if lab.told.length else [_LONG, lab.time]:
        x, other = lab.normal(steps, 1, input_size), lab.normal(steps, 1, input_size)
        try:
            found = [causality(run, x, other) for run in lab.runs(invoke, x.expand(-1, steps - 1, -1))]
        except Exception:
            continue
        return next((each for each in found if not each.causal), max(found, key=lambda each: each.remembers))
    raise expected("length", "a number of steps that the module takes", Description(f"{lab.time}, which fails"))


def close(a: Any, b: Any) -> bool:
    """Whether two pytrees of tensors have the same numbers but for rounding."""
    pairs = list(zip(tree_leaves(a), tree_leaves(b), strict=True))
    return all(x.shape == y.shape and torch.allclose(x, y, **_slack(x)) for x, y in pairs)


def _slack(x: Tensor) -> dict[str, float]:
    eps = torch.finfo(x.dtype).eps if x.is_floating_point() or x.is_complex() else 0.0
    return {"rtol": eps**0.6 if eps else 0.0, "atol": eps**0.6 if eps else 0.0}
