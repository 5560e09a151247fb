"""The loop over time."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from mnemoscope.core.errors import UserError

__all__ = ["for_onnx", "forward_mode", "mask_of", "of_traced_length", "reverse", "scan", "tracing", "transforming"]

State = TypeVar("State")


def scan(
    step: Callable[[Any, State], tuple[Tensor, State]],
    inputs: Any,
    state: State,
    mask: Bool[Tensor, "time batch"] | None = None,
) -> tuple[Tensor, State]:
    """Run ``output_t, state_t = step(inputs_t, state_{t-1})`` over the leading axis of `inputs`.

    Parameters
    ----------
    step
        A pure function of one step's input and the state.
    inputs
        A pytree of tensors with the same leading axis, time.
    state
        A pytree of tensors with the batch in front.
    mask
        Where it is False the sequence has ended: its state is carried unchanged and its output is zero.

    Returns
    -------
    The outputs, stacked over time, and the last state.
    """
    if mask is None and _keeps_loop():
        return _scan_in_graph(step, inputs, state)
    leaves, structure = tree_flatten(inputs)
    outputs = []
    # Cut at once: the gradient of an indexed step is as large as all steps, and there are as many of them.
    for t, parts in enumerate(zip(*(leaf.unbind(0) for leaf in leaves), strict=True)):
        output, proposed = step(tree_unflatten(parts, structure), state)
        if t == 0:
            _check_structure(proposed, state)
        if mask is None:
            state = proposed
        else:
            state = tree_map(lambda new, old, t=t: _where(mask[t], new, old), proposed, state)
            output = _where(mask[t], output, torch.zeros_like(output))
        outputs.append(output)
    return torch.stack(outputs), state


def _keeps_loop() -> bool:
    """Say whether a graph is being made that keeps the loop: one without gradients; others are written out."""
    return torch.compiler.is_exporting() and (not torch.is_grad_enabled() or for_onnx())


def _scan_in_graph(
    step: Callable[[Any, State], tuple[Tensor, State]], inputs: Any, state: State
) -> tuple[Tensor, State]:
    """Return the same by torch's own scan, which an exported graph keeps as a loop, of any length.

    It takes and gives lists of real tensors, each in memory of its own.
    """
    from torch._higher_order_ops.scan import scan as loop

    if not torch.compiler.is_dynamo_compiling():
        _forget_compiled(loop)
    given, state_spec = tree_flatten(state)
    if torch.is_grad_enabled() and not all(leaf.is_floating_point() for leaf in given):
        raise UserError("this network's state has integers: export it within torch.no_grad()")
    driven, input_spec = tree_flatten(inputs)
    given_complex, driven_complex = ([leaf.is_complex() for leaf in leaves] for leaves in (given, driven))

    def turn(flat: list[Tensor], now: list[Tensor]) -> tuple[list[Tensor], Tensor]:
        before = tree_unflatten(_from_real(flat, given_complex), state_spec)
        output, proposed = step(tree_unflatten(_from_real(now, driven_complex), input_spec), before)
        return [_real(leaf).clone() for leaf in tree_flatten(proposed)[0]], output.clone()

    last, outputs = loop(turn, [*map(_real, given)], [*map(_real, driven)], dim=0)
    return outputs, tree_unflatten(_from_real(last, given_complex), state_spec)


def _forget_compiled(loop: Any) -> None:
    """Let torch's scan forget what it compiled: asking whether that fits would fix a length that is to stay open."""
    from torch._dynamo.eval_frame import remove_from_cache

    for part in loop.__code__.co_consts:
        if isinstance(part, CodeType):
            remove_from_cache(part)


def _real(leaf: Tensor) -> Tensor:
    return (torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf).contiguous()


def _from_real(leaves: list[Tensor], were_complex: list[bool]) -> list[Tensor]:
    return [torch.view_as_complex(leaf) if was else leaf for leaf, was in zip(leaves, were_complex, strict=True)]


def mask_of(lengths: Tensor | None, x: Tensor) -> Bool[Tensor, "time batch"] | None:
    """Return where the sequences of `x`, (time, batch, ..), have not ended yet; None when none ends early."""
    if lengths is None:
        return None
    return torch.arange(x.shape[0], device=x.device)[:, None] < lengths.to(x.device)


def reverse(x: Tensor, lengths: Tensor | None, time: int = 0) -> Tensor:
    """Turn every sequence around within its own length; all are full where `lengths` is None, along the axis `time`."""
    if lengths is None:
        return x.flip(time)
    times = torch.arange(x.shape[0], device=x.device)[:, None]
    ends = lengths.to(x.device)
    index = torch.where(times < ends, ends - 1 - times, times)
    return x.gather(0, index.reshape(*index.shape, *[1] * (x.dim() - 2)).expand_as(x))


def for_onnx() -> bool:
    """Say whether an export to ONNX is at work; asked directly, torch.compile takes the answer to be no."""
    return torch.onnx.is_in_onnx_export()


# What torch.compiler.assume_constant_result sets, which would import the compiler.
vars(for_onnx)["_dynamo_marked_constant"] = True


def tracing() -> bool:
    """Say whether `torch.jit.trace` is at work."""
    return torch._C._get_tracing_state() is not None


def of_traced_length(x: Tensor) -> Tensor:
    """Return x, (time, ..); in what `torch.jit.trace` records, refuse any other number of steps in one line."""
    # Sizes of tensors are tensors while it records, numpy's are not; it has no bfloat16, but truth values.
    steps = len(x.detach().bool().numpy(force=True))
    found: Tensor = _require_steps()(x, steps)
    return found


@functools.cache
def _require_steps() -> Any:
    def require_steps(x: Tensor, steps: int) -> Tensor:
        if x.size(0) != steps:
            raise RuntimeError(
                "this layer was traced for " + str(steps) + " steps, got " + str(x.size(0)) + ": use torch.export"
            )
        return x

    # What is scripted keeps its condition in a trace. It reads annotations by eval, so they must be types, not text.
    require_steps.__annotations__ = {"x": Tensor, "steps": int, "return": Tensor}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(require_steps)


def transforming() -> bool:
    """Say whether a transform of `torch.func` is at work."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def forward_mode() -> bool:
    """Say whether forward-mode derivatives are being taken (`torch.func.jvp`, `jacfwd`, `hessian`)."""
    if torch.compiler.is_compiling():
        return False
    if torch.autograd.forward_ad._current_level >= 0:
        return True
    transforms = torch._C._functorch.get_interpreter_stack() or ()
    return any(transform.key() == torch._C._functorch.TransformType.Jvp for transform in transforms)


def _check_structure(proposed: Any, state: Any) -> None:
    """Refuse a step whose state has another structure than the one it got, which no later call could take."""
    if isinstance(proposed, Tensor) and isinstance(state, Tensor) and proposed.shape == state.shape:
        return
    came, given = tree_flatten(proposed), tree_flatten(state)
    shapes = [[getattr(leaf, "shape", None) for leaf in leaves] for leaves in (came[0], given[0])]
    if came[1] != given[1] or shapes[0] != shapes[1]:
        raise UserError(
            "a step must return a state of the structure and shapes that it got, "
            f"{given[1]} of {_shapes(shapes[1])}, got {came[1]} of {_shapes(shapes[0])}"
        )


def _shapes(shapes: list[Any]) -> str:
    return ", ".join(str(tuple(shape)) if shape is not None else "no tensor" for shape in shapes)


def _where(alive: Bool[Tensor, " batch"], new: Tensor, old: Tensor) -> Tensor:
    return torch.where(alive.reshape(-1, *[1] * (new.dim() - 1)), new, old)
