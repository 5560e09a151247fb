"""Checks of a network before it is measured: it runs, its outputs are finite, two equal calls agree."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mnemoscope.core.errors import UserError

__all__ = ["brief", "check_network", "forms_agree"]

_STEPS, _BATCH = 12, 3


def check_network(network: Any, name: str) -> tuple[str, ...]:
    """Raise when nothing that is measured of a network would mean anything; return what a reader should know.

    Raises
    ------
    UserError
        When it raises on a plain input, its outputs are NaN or infinite, or two equal calls differ.
    """
    if getattr(network, "kind", None) not in ("recurrent", "sequence"):
        return ()
    first, second = _outputs(network, name), _outputs(network, name)
    _check_finite(first, name)
    _check_same(first, second, name)
    return tuple(said for said in (_backward(network, name), _causal(network, name)) if said)


def forms_agree(network: Any) -> float | None:
    """Return by how much the ways to run a network differ: whole sequences in each of its forms, and step by step.

    Relative to the largest output; None where there is one way only, or a stranger's network fails at another.
    """
    if getattr(network, "kind", None) != "recurrent":
        return None
    training, x = network.training, _input(network)
    try:
        with torch.no_grad():
            whole = _run(network.eval(), x)
            apart = [_stepped(network, x), *_other_forms(network, x)]
            size = float(whole.abs().max())
            furthest = max(float((each - whole).abs().max()) for each in apart)
    except Exception:  # a stranger's step may fail as it likes
        return None
    finally:
        network.train(training)
    return furthest / size if size > 0 else furthest


def _stepped(network: Any, x: Tensor) -> Tensor:
    first = bool(getattr(network, "batch_first", False))
    steps = x.unbind(1 if first else 0)
    like = next((p for p in network.parameters() if p.is_floating_point()), x)
    state, outputs = network.init_state(_BATCH, device=like.device, dtype=like.dtype), []
    for one in steps:
        y, state = network.step(one, state)
        outputs.append(y)
    return torch.stack(outputs, 1 if first else 0)


def _other_forms(network: Any, x: Tensor) -> list[Tensor]:
    """Return the outputs in every form that a network can be told to take."""
    told = getattr(network, "mode", None)
    if not isinstance(told, str) or len(network.modes) < 2:
        return []
    try:
        found = []
        for mode in network.modes:
            network.mode = mode
            found.append(_run(network, x))
        return found
    finally:
        network.mode = told


def _input(network: Any, grad: bool = False) -> Tensor:
    like = next((p for p in network.parameters() if p.is_floating_point()), torch.zeros(()))
    shape = (_BATCH, _STEPS) if getattr(network, "batch_first", False) else (_STEPS, _BATCH)
    sizes = getattr(network, "input_shape", (network.input_size,))
    x = torch.randn(*shape, *sizes, generator=torch.Generator().manual_seed(0))
    return x.to(device=like.device, dtype=like.dtype).requires_grad_(grad)


def _run(network: Any, x: Tensor) -> Tensor:
    returned = network(x)
    output: Tensor = returned[0] if isinstance(returned, tuple) else returned
    return output


def _outputs(network: nn.Module, name: str) -> Tensor:
    training = network.training
    try:
        with torch.no_grad():
            return _run(network.eval(), _input(network))
    except UserError:
        raise
    except Exception as error:  # a stranger's forward may fail as it likes
        raise UserError(f"{name} fails on a standard normal input of {_STEPS} steps: {brief(error)}") from error
    finally:
        network.train(training)


def _check_finite(output: Tensor, name: str) -> None:
    bad = ~output.isfinite()
    if not bool(bad.any()):
        return
    what = "NaN" if bool(output.isnan().any()) else "infinite"
    raise UserError(
        f"{name} gives outputs that are {what} for a standard normal input of {_STEPS} steps; nothing can be measured "
        "of it before that is mended"
    )


def _check_same(first: Tensor, second: Tensor, name: str) -> None:
    if torch.equal(first, second):
        return
    far = float((first - second).abs().max())
    raise UserError(
        f"{name} is not deterministic: two calls in eval mode on the same input differ by up to {far:.3g}; switch the "
        "noise inside it off in eval mode"
    )


def _backward(network: nn.Module, name: str) -> str:
    if not any(p.requires_grad for p in network.parameters()):
        return ""
    training = network.training
    try:
        x = _input(network, grad=True)
        found = torch.autograd.grad(_run(network.eval(), x).square().sum(), x, allow_unused=True)[0]
    except Exception as error:  # a stranger's backward may fail as it likes
        return f"{name} fails on the backward pass: {brief(error)}; what needs gradients fails too"
    finally:
        network.train(training)
    if found is not None and not bool(found.isfinite().all()):
        return f"{name} gives gradients that are not finite for a standard normal input of {_STEPS} steps"
    return ""


def _causal(network: Any, name: str) -> str:
    if getattr(network, "causal", True):
        return ""
    why = getattr(network, "future", "") or "it reads the future"
    return f"{name} is not causal, and what asks how long it remembers does not apply: {why}"


def brief(error: BaseException) -> str:
    """Return an error in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:300]}" if words else type(error).__name__
