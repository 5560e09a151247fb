"""Linear recurrence with diagonal decays, h_t = a_t h_{t-1} + b_t, over whole sequences.

The states are computed in order, one fused multiplication and addition per step, into one buffer: the work is linear
in T, no product of decays is ever formed, and so nothing overflows or loses its digits that the recurrence itself
would not. The gradient G_t = g_t + conj(a_{t+1}) G_{t+1} is the same recurrence from the end, and is computed by the
same function; that makes second derivatives, forward-mode derivatives and `torch.vmap` those of the one function. The
naive twin is `naive_linear_scan`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from mnemoscope.nn.ops.kernel import below_autograd
from mnemoscope.nn.ops.recurrence import last_alive
from mnemoscope.nn.ops.scan import mask_of, scan

__all__ = ["linear_scan", "naive_linear_scan"]

_BATCHED = torch._C._dispatch_key_parse("Batched")


def linear_scan(
    inputs: Tensor, decay: Tensor, start: Tensor | None = None, lengths: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return h_1 .. h_T of h_t = a_t h_{t-1} + b_t, and the last state.

    Parameters
    ----------
    inputs
        b, (T, B, ..), real or complex.
    decay
        a, of as many axes as the inputs, or of fewer, when it is the same at every step; it broadcasts with them.
    start
        h_0, (B, ..); by default zeros.
    lengths
        Where the sequences end, descending; after that outputs are zero and the state stays. None: all are full.

    Examples
    --------
    >>> import torch
    >>> outputs, last = linear_scan(torch.ones(4, 1, 1), torch.tensor([0.5]))
    >>> outputs.flatten()
    tensor([1.0000, 1.5000, 1.7500, 1.8750])
    """
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return naive_linear_scan(inputs, decay, start, lengths)
    a, b, h0 = _aligned(inputs, decay, start)
    states: Tensor = _States.apply(a, b, h0, False)  # type: ignore[no-untyped-call]
    _, outputs = torch.split(states, [1, len(inputs)])  # the gradient of a slice fills all of it with zeros first
    mask = mask_of(lengths, outputs)
    if lengths is None or mask is None:
        return outputs, states[-1]
    alive = mask.reshape(*mask.shape, *[1] * (outputs.dim() - 2))
    return torch.where(alive, outputs, 0.0), last_alive(outputs, lengths)


def naive_linear_scan(
    inputs: Tensor, decay: Tensor, start: Tensor | None = None, lengths: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the same by the definition."""
    a, b, h0 = _aligned(inputs, decay, start)

    def step(now: tuple[Tensor, Tensor], h: Tensor) -> tuple[Tensor, Tensor]:
        h = now[0] * h + now[1]
        return h, h

    return scan(step, (a.expand(len(b), *a.shape[1:]), b), h0, mask_of(lengths, b))


def _aligned(inputs: Tensor, decay: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return all three in one type and with as many axes; a decay for every step has one on its axis of time."""
    dtype = torch.promote_types(inputs.dtype, decay.dtype)
    if decay.dim() < inputs.dim():
        decay = decay.reshape(*[1] * (inputs.dim() - decay.dim()), *decay.shape)
    b = inputs.to(dtype)
    return decay.to(dtype), b, torch.zeros_like(b[0]) if start is None else start.to(dtype)


class _States(Function):
    """All T + 1 states, with the start among them; `backwards`, the start is the last and time runs to the first."""

    @staticmethod
    def forward(a: Tensor, b: Tensor, start: Tensor, backwards: bool) -> Tensor:
        if any(torch._C._dispatch_keys(tensor).has(_BATCHED) for tensor in (a, b, start)):
            return _naive_states(a, b, start, backwards)
        with below_autograd():
            return _states(a.resolve_conj(), b.resolve_conj(), start, backwards)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        a, b, start, ctx.backwards = inputs
        ctx.save_for_backward(a, output)
        ctx.save_for_forward(a, output)
        ctx.shapes = a.shape, b.shape, start.shape

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        a, states = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        earlier, later = slice(None, -1), slice(1, None)
        before, after = (later, earlier) if ctx.backwards else (earlier, later)
        last, first = (g[0], -1) if ctx.backwards else (g[-1], 0)
        total = _States.apply(a.conj(), g[before], last, not ctx.backwards)  # type: ignore[no-untyped-call]
        a_shape, b_shape, start_shape = ctx.shapes
        da = (total[after] * states[before].conj()).sum_to_size(a_shape) if wanted[0] else None
        db = total[after].sum_to_size(b_shape) if wanted[1] else None
        return da, db, total[first].sum_to_size(start_shape) if wanted[2] else None, None

    @staticmethod
    def jvp(ctx: Any, da: Tensor | None, db: Tensor | None, dstart: Tensor | None, _: None) -> Tensor:
        a, states = ctx.saved_tensors
        before = states[1:] if ctx.backwards else states[:-1]
        pushed = torch.zeros_like(before) if da is None else da * before
        pushed = pushed if db is None else pushed + db
        dstart = torch.zeros_like(before[0]) if dstart is None else dstart
        out: Tensor = _States.apply(a, pushed, dstart, ctx.backwards)  # type: ignore[no-untyped-call]
        return out

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Tensor, int]:
        *tensors, backwards = inputs
        moved = [
            tensor.unsqueeze(place) if dim is None else tensor.movedim(dim, place)
            for tensor, dim, place in zip(tensors, in_dims, (1, 1, 0), strict=False)
        ]
        return _States.apply(*moved, backwards), 1  # type: ignore[no-untyped-call]


def _states(a: Tensor, b: Tensor, start: Tensor, backwards: bool) -> Tensor:
    steps = len(b)
    shape = torch.broadcast_shapes(a.shape[1:], b.shape[1:], start.shape)  # type: ignore[no-untyped-call]
    states = b.new_empty(steps + 1, *shape)
    places = states.unbind(0)
    decays, inputs = a.unbind(0) if len(a) == steps else a.unbind(0) * steps, b.unbind(0)
    places[-1 if backwards else 0].copy_(start)
    if backwards:
        for t in reversed(range(steps)):
            torch.addcmul(inputs[t], decays[t], places[t + 1], out=places[t])
    else:
        for t in range(steps):
            torch.addcmul(inputs[t], decays[t], places[t], out=places[t + 1])
    return states


def _naive_states(a: Tensor, b: Tensor, start: Tensor, backwards: bool) -> Tensor:
    """Return the same out of place, which torch's older vmap (`is_grads_batched=True`) needs."""
    a, order = a.expand(len(b), *a.shape[1:]), range(len(b))
    states = [start]
    for t in reversed(order) if backwards else order:
        states.append(a[t] * states[-1] + b[t])
    return torch.stack(states[::-1] if backwards else states)
