"""Checks of a network before it is measured: it runs, its outputs are finite, two equal calls agree."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from mnemoscope.core.errors import UserError
from mnemoscope.measures.inventory.state import idle_numbers
from mnemoscope.measures.parity.running import STEPS, forms_of, recurrent_of, relative
from mnemoscope.nn.recurrent import Recurrent

__all__ = ["brief", "check_network", "forms_agree"]

_STEPS, _BATCH = 12, 3

_DRIVEN = 100
"""Steps after which a number in the state that has not moved is called dead."""

_NAMED = 8
"""Units that are named."""


def check_network(network: Any, name: str) -> tuple[str, ...]:
    """Raise when nothing that is measured of a network would mean anything; return what a reader should know.

    Raises
    ------
    UserError
        When it raises on a plain input, its outputs are NaN or infinite, two equal calls differ, or two different
        inputs make no difference.
    """
    if getattr(network, "kind", None) not in ("recurrent", "sequence"):
        return ()
    first, second = _outputs(network, name), _outputs(network, name)
    _check_finite(first, name)
    _check_same(first, second, name)
    said = (_blind(network, name), _idle(network), _backward(network, name), _causal(network, name))
    return tuple(each for each in said if each)


def forms_agree(network: Any) -> float | None:
    """Return by how much the ways to run a network differ: whole sequences in each of its forms, and step by step.

    Relative to the largest output; None where there is one way only, or a stranger's network fails at another.
    """
    if not isinstance(network, Recurrent):
        return None
    try:
        with torch.no_grad():
            twin = recurrent_of(network, "parity")
            x = _input(twin).transpose(0, 1) if twin.batch_first else _input(twin)
            forms = forms_of(twin)
            wanted = forms[STEPS](twin, x)[0]
            return max(relative(run(twin, x)[0], wanted) for name, run in forms.items() if name != STEPS)
    except Exception:  # a stranger's own step, init_state or form may raise anything: then there is one way only
        return None


def _input(network: Any, grad: bool = False, seed: int = 0, steps: int = _STEPS) -> Tensor:
    like = next((p for p in network.parameters() if p.is_floating_point()), torch.zeros(()))
    steps = getattr(network, "fixed_length", None) or steps
    shape = (_BATCH, steps) if getattr(network, "batch_first", False) else (steps, _BATCH)
    sizes = getattr(network, "input_shape", (network.input_size,))
    x = torch.randn(*shape, *sizes, generator=torch.Generator().manual_seed(seed))
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


def _blind(network: Any, name: str) -> str:
    """Say that outputs do not depend on inputs; raise where states do not either."""
    training = network.training
    try:
        with torch.no_grad():
            ends = [network.eval()(_input(network, seed=seed)) for seed in (0, 1)]
    finally:
        network.train(training)
    leaves = [[each for each in tree_leaves(end) if isinstance(each, Tensor)] for end in ends]
    moves = [_differ(one, other) for one, other in zip(*leaves, strict=True)]
    if not moves or moves[0]:
        return ""
    if not any(moves):
        one = " (a normalisation over a single input is constant: --input-size 2)" if network.input_size == 1 else ""
        raise UserError(
            f"{name} gives the same outputs and states whatever its inputs are; there is nothing that it "
            f"could remember{one}"
        )
    return (
        f"the outputs of {name} do not depend on its inputs, its state does: what is measured on outputs says nothing"
    )


def _idle(network: Any) -> str:
    """Name the numbers in a state that stay as they are whatever the inputs, and those that do what others do."""
    if getattr(network, "kind", None) != "recurrent" or getattr(network, "grows", False):
        return ""
    x = _input(network, steps=_DRIVEN)
    steps, training = x.unbind(1 if getattr(network, "batch_first", False) else 0), network.training
    try:
        with torch.no_grad():
            state = network.eval().init_state(_BATCH, device=x.device, dtype=x.dtype)
            flat = []
            for one in steps:
                _, state = network.step(one, state)
                numbers = network.flatten_state(state)
                if not bool(numbers.isfinite().all()):  # from here on nothing can be said of what moves
                    break
                flat.append(numbers)
    except Exception:  # a stranger's own step or flatten_state may raise anything: its measures say so, this is a note
        return ""
    finally:
        network.train(training)
    if not flat:
        return ""
    active = torch.stack(flat).flatten(0, 1).double()
    still, same = (each.nonzero().flatten().tolist() for each in idle_numbers(active))
    of = f"of the {active.shape[1]} numbers in its state"
    said = [f"{len(still)} {of} never move, whatever the input: {_named(still)}"] if still else []
    said += [f"units are redundant: {len(same)} {of} are others times a factor: {_named(same)}"] if same else []
    return "; ".join(said)


def _named(places: list[int]) -> str:
    return ", ".join(map(str, places[:_NAMED])) + (", .." if len(places) > _NAMED else "")


def _differ(one: Tensor, other: Tensor) -> bool:
    """Say whether two results differ by more than rounding."""
    if one.shape != other.shape or not (one.is_floating_point() or one.is_complex()):
        return False
    size = max(float(one.abs().max()), float(other.abs().max())) if one.numel() else 0.0
    return size > 0 and float((one - other).abs().max()) > 16 * torch.finfo(one.dtype).eps * size


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
    return f"{name} is not causal, and only its last output is asked what it remembers: {why}"


def brief(error: BaseException) -> str:
    """Return an error in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:300]}" if words else type(error).__name__
