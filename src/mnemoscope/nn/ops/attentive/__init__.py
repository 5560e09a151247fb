"""A recurrence that attends to its own past states, with a backward pass written by hand.

At every step the core makes h_t from the macro-state s_{t-1}, a memory decides which past states stay, and

    e_i = v . tanh(W s_{t-1} + U h_i),   alpha = softmax(e),   c_t = sum_i alpha_i h_i,   s_t = combine(h_t, c_t).

Autograd would keep a copy of all attended states at each step. Here each state stands once in a table of rows; memories
hold numbers of rows, and what is kept is the table, the numbers and the weights alpha. The backward pass computes s and
the scores again. tanh(z) is 2 sigmoid(2z) - 1, which is ten times as fast, and no weight feels the constant: rows of
the table are [h, 2 U h]. The naive twin is `naive_attentive_recurrence`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from mnemoscope.nn.ops.attentive.backward import Backward
from mnemoscope.nn.ops.attentive.definition import Inputs, Plan, naive_attentive_recurrence
from mnemoscope.nn.ops.attentive.forward import Forward
from mnemoscope.nn.ops.kernel import below_autograd

__all__ = ["Inputs", "Plan", "attentive_recurrence", "naive_attentive_recurrence"]


def attentive_recurrence(plan: Plan, memory: Any, inputs: Inputs) -> tuple[Any, ...]:
    """Return h_1 .. h_T, s_1 .. s_T, the cells of an LSTM, the last relevance, and states, steps, length of the memory.

    `memory` is a named tuple whose `states` are numbers of rows (B, m, 1): those of `inputs.rows`, then h_1 .. h_T.
    """
    return _Attentive.apply(plan, memory, *inputs)  # type: ignore[no-any-return, no-untyped-call]


class _Attentive(Function):
    @staticmethod
    def forward(ctx: Any, plan: Plan, memory: Any, *tensors: Any) -> Any:
        with below_autograd():
            made = Forward(plan, Inputs(*tensors))
            memory, start = made.run(memory), memory
        ctx.plan, ctx.memory, ctx.shapes = plan, start, [part.shape for part in made.weights]
        ctx.set_materialize_grads(False)
        weights = torch.cat([part.reshape(-1) for part in made.weights])
        index = weights.new_empty(0) if plan.in_order else torch.cat([part.reshape(-1) for part in made.index])
        filled = weights.new_empty(0) if plan.top is None else torch.cat([part.reshape(-1) for part in made.filled])
        cells = torch.stack(made.cells) if plan.phi == "lstm" else None
        states = made.table[..., : made.width].contiguous()
        whole = (memory.states, memory.steps, memory.length)
        ctx.save_for_backward(*tensors, states, cells, weights, index, filled, memory.states)
        ctx.mark_non_differentiable(*whole)
        relevance = getattr(memory, "relevance", None)
        return states[made.first :], torch.stack(made.macros), cells, relevance, *whole

    @staticmethod
    def backward(ctx: Any, *g: Any) -> Any:
        needed = ctx.needs_input_grad[2:]
        saved = ctx.saved_tensors  # with autograd: under torch.utils.checkpoint this runs the forward pass again
        if torch.is_grad_enabled():
            return (None, None, *_again(ctx.plan, ctx.memory, saved[:12], g[:4], needed))
        with below_autograd():
            found = Backward(ctx, saved, *g[:4]).run()
        return (None, None, *(part if need else None for part, need in zip(found, needed, strict=True)))


def _again(plan: Plan, memory: Any, tensors: Any, g: Any, needed: Any) -> list[Tensor | None]:
    """Return the gradients by autograd through the naive twin, so that they can be differentiated again."""
    outputs = naive_attentive_recurrence(plan, memory, Inputs(*tensors))
    pairs = [(out, part) for out, part in zip(outputs, g, strict=True) if part is not None]
    wanted = [tensor for tensor, need in zip(tensors, needed, strict=True) if need]
    outputs, parts = zip(*pairs, strict=True)
    found = iter(torch.autograd.grad(outputs, wanted, parts, create_graph=True, allow_unused=True))
    return [next(found) if need else None for need in needed]
