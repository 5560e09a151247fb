"""Search for the way to call a foreign module, and the message when there is none."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from mnemoscope.core.errors import UserError
from mnemoscope.nn.adapt.call import Signature, arguments_of
from mnemoscope.nn.adapt.plan import Plan, Unusable
from mnemoscope.nn.adapt.probe import CallFailed, Probe, call_text
from mnemoscope.nn.adapt.sizes import Width, input_widths

__all__ = ["Attempt", "Raised", "search", "signature_of"]

Attempt = tuple[Width, Callable[[], Plan]]
"""A width of the input and the trial of it."""

_ABOUT_SIZES = re.compile("shape|size|dimension|channel|broadcast|must match|NoneType|unpack|expected", re.IGNORECASE)
"""What torch says of inputs and states of the wrong width."""


_ABOUT_GPUS = re.compile("CUDA|NVIDIA")


class Raised(UserError):
    """The module raised in every way to call it that was tried."""


def signature_of(probe: Probe, kind: str) -> Signature:
    """Read the arguments of the module, and refuse those that nobody can guess."""
    signature = probe.signature
    if signature.missing:
        name = signature.missing[0]
        call = call_text(kind=kind, keywords=f'{{"{name}": ...}}')
        raise UserError(f"{probe.name}.forward must need no more than input and state, got {name!r} too; call {call}")
    return signature


def search(probe: Probe, kind: str, hints: dict[str, Any], attempts: Iterable[Attempt]) -> Plan:
    """Return the first plan that works; a width that the module does not state must be the only one.

    Parameters
    ----------
    hints
        What the user could say, for the message when nothing works.
    """
    found: dict[int, Plan] = {}
    unusual: dict[int, Plan] = {}
    wrong: list[UserError] = []
    failed: list[CallFailed] = []
    for width, attempt in attempts:
        if width.size in found:
            continue
        try:
            plan = attempt()
        except CallFailed as error:
            failed.append(error)
            if "indices" in error.reason and _embeds(probe):  # no other width or state makes it read vectors
                raise _tokens(probe) from error
        except UserError as error:
            wrong.append(error)
        except Exception as error:  # a module that took the first input may still raise anything on another one
            failed.append(CallFailed(error, (probe.batch, width.size)))
        else:
            (unusual if plan.unusual else found).setdefault(width.size, plan)
            if width.sure and not plan.unusual:
                return plan
    if found or unusual:
        return _only(probe, kind, found or unusual)
    wrong.sort(key=lambda error: not isinstance(error, Unusable))
    raise wrong[0] if wrong else _explained(probe, kind, hints, failed)


def _only(probe: Probe, kind: str, found: dict[int, Plan]) -> Plan:
    if len(found) == 1:
        return next(iter(found.values()))
    sizes = " and ".join(map(str, found))
    call = call_text(kind=kind, input_size=next(iter(found)))
    raise UserError(f"cannot tell the input width of {probe.name}: {sizes} work; call for instance {call}")


def _explained(probe: Probe, kind: str, hints: dict[str, Any], failed: list[CallFailed]) -> UserError:
    if _reads_tokens(probe):
        return _tokens(probe)
    if (gpu := next((each.reason for each in failed if _ABOUT_GPUS.search(each.reason)), None)) is not None:
        return Unusable(f"{probe.name} needs a GPU, and this machine has none: {gpu}")
    if (read := _not_sequences(probe)) is not None:
        return Unusable(
            f"not applicable: {probe.name} reads {read}, and what is measured here are sequences of vectors"
        )
    if kept := _kept(probe):
        wanted = "let forward take the state and return the next one, forward(x, state) -> (output, state)"
        return Unusable(f"{probe.name} keeps its state on itself between calls, as {' and '.join(kept)}: {wanted}")
    # Before the kind is known, the call leaves it open: the search goes on through all of them.
    hints = hints if probe.advice.kind is None and kind != "sequence" else {"kind": kind, **hints}
    stated = [width.size for width in input_widths(probe.module, None) if width.sure]
    known = stated or probe.advice.input_size or probe.advice.init_state
    reported = failed[:1] if known else _telling(failed)
    if not reported:
        return Raised(f"cannot tell the input width of {probe.name}; call {call_text(input_size=..., **hints)}")
    if probe.advice.input_size not in stated[:1]:
        hints = {"input_size": stated[0] if stated and probe.advice.input_size else ..., **hints}
    shape, reason = reported[0].shape, reported[0].reason
    return Raised(f"{probe.name} must take an input of shape {shape}, got {reason}; call {call_text(**hints)}")


def _kept(probe: Probe) -> list[str]:
    """Return the tensors on a module that one call for a single step writes, where it takes such a call."""
    held = [tensor for _, tensor in probe.module.named_buffers() if tensor.dim() == 2]
    for width in dict.fromkeys([probe.advice.input_size or 1, *(size for each in held for size in each.shape)]):
        try:
            twin = copy.deepcopy(probe.module).eval()
            before = {name: tensor.clone() for name, tensor in _held(twin).items()}
            twin(torch.ones(probe.batch, width, device=probe.device))
        except Exception:  # copies and the module's own forward may raise anything
            continue
        after = _held(twin)
        return [name for name in after if name not in before or not torch.equal(after[name], before[name])]
    return []


def _held(module: nn.Module) -> dict[str, Tensor]:
    own = {name: value for name, value in vars(module).items() if isinstance(value, Tensor)}
    return {name: tensor.detach() for name, tensor in {**dict(module.named_buffers()), **own}.items()}


def _telling(failed: list[CallFailed]) -> list[CallFailed]:
    """Return the failures of guessed widths that are about something else than the width."""
    if len({error.reason for error in failed}) == 1:
        return failed[:1]
    return [error for error in failed if not (error.state_guessed or _ABOUT_SIZES.search(error.reason))]


def _not_sequences(probe: Probe) -> str | None:
    """Return what a module reads that is no sequence of vectors, by its layers and by the names of its arguments."""
    names = [parameter.name.lower() for parameter in arguments_of(probe.module)]
    if any("coeff" in name or "spline" in name for name in names):
        return "coefficients of a spline"
    if any(isinstance(part, nn.Conv2d | nn.Conv3d | nn.BatchNorm2d) for part in probe.module.modules()):
        return "images"
    return None


def _tokens(probe: Probe) -> Unusable:
    after = [name for name, part in probe.module.named_children() if not isinstance(part, nn.Embedding)]
    return Unusable(
        f"the input of {probe.name} must be real vectors, got a module that reads whole numbers; "
        f"give what comes after its embedding" + (f", as in ms.adapt(module.{after[0]})" if after else "")
    )


def _embeds(probe: Probe) -> bool:
    return any(isinstance(part, nn.Embedding) for part in probe.module.modules())


def _reads_tokens(probe: Probe) -> bool:
    if not _embeds(probe):
        return False
    for shape in ((probe.batch, probe.time), (probe.batch,)):
        try:
            probe.module(torch.zeros(shape, dtype=torch.int64, device=probe.device))
        except Exception:  # the module's own forward may raise anything: then it does not read tokens
            continue
        return True
    return False
