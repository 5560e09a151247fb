"""Gradient of a network that attends to its past, split by how many states it passes on its way."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.nn.attention import Attentive

__all__ = ["gradients_by_skips"]


def gradients_by_skips(
    network: Attentive,
    x: Float[Tensor, "time batch ..."],
    cotangents: Float[Tensor, "ways batch macro"],
    *,
    skips: int,
    layer: int = 0,
) -> Float[Tensor, "time skips ways batch n"]:
    r"""Return g ds_T/dh_t for each g of the cotangents, divided into the parts that pass 0, 1, .. states.

    The state h_t acts on a later macro-state directly, by attention and by the recurrent way, or by way of states that
    were made between them:

    .. math::
        \frac{ds_{t+k}}{dh_t} = \sum_s \xi_k(s), \quad \xi_k(0) = \frac{\partial s_{t+k}}{\partial h_t}, \quad
        \xi_k(s) = \sum_{j<k} \Big(\frac{\partial s_{t+k}}{\partial h_{t+j+1}} \frac{\partial h_{t+j+1}}{\partial
        s_{t+j}} + [j = k-1] \frac{\partial s_{t+k}}{\partial s_{t+k-1}}\Big)\, \xi_j(s-1)

    with the derivatives of the weights of attention. It is the recursion of
    `mnemoscope.measures.gradient_paths`, from the last step to the first: what comes to a macro-state by s states goes
    on to the states that it attended to as it is, and to the macro-state before it as s + 1. The cell of an LSTM core
    is part of the macro-state. All parts of a step are one batch of vector-Jacobian products.

    Parameters
    ----------
    network
        In evaluation, where nothing is cut or dropped.
    x
        Inputs in the network's own order of time and batch.
    cotangents
        The vectors g that the last macro-state is multiplied by.
    skips
        Parts pass 0 .. skips states; those that pass more stand in the last.
    layer
        Which layer; of two directions the one that reads forward.
    """
    with torch.no_grad():
        weights, x, cells = network.before_layer(x, None, layer)
        w, state = weights[layer * network.directions], cells[layer * network.directions]
        driven, states = network.drive(w, x), []
        for a in driven.unbind(0):
            states.append(state)
            _, state = network.advance(w, a, state)
    grades = (skips + 1, len(cotangents))
    g_macro = _first(cotangents, skips).flatten(0, 1)
    g_carried = [g_macro.new_zeros(len(g_macro), *part.shape) for part in state.carried]
    g_slots = g_macro.new_zeros(len(g_macro), *state.states.shape)
    found = []
    for a, before in zip(reversed(driven.unbind(0)), reversed(states), strict=True):
        step = _Step(network, w, a, before)
        g_h, g_slots, by_query = step.of_memory(g_macro, g_slots)
        by_core, *g_carried = step.of_core(g_h, g_carried)
        g_macro = _one_more(by_core + by_query, grades)
        g_carried = [_one_more(part, grades) for part in g_carried]
        found.append(g_h.reshape(*grades, *g_h.shape[1:]))
    return torch.stack(found[::-1])


def _first(cotangents: Tensor, skips: int) -> Tensor:
    """Return what has passed no state yet."""
    return torch.cat([cotangents.unsqueeze(0), cotangents.new_zeros(skips, *cotangents.shape)])


def _one_more(parts: Tensor, grades: tuple[int, int]) -> Tensor:
    """Return parts that have passed one state more; in the last they stand together."""
    parts = parts.reshape(*grades, *parts.shape[1:])
    moved = torch.cat([torch.zeros_like(parts[:1]), parts[:-1]])
    moved[-1] += parts[-1]
    return moved.flatten(0, 1)


class _Step:
    """One step of a layer in two halves, with leaves where they meet: the core makes h, the memory makes s of it."""

    def __init__(self, network: Attentive, w: Any, a: Tensor, state: Any) -> None:
        with torch.enable_grad():
            self.macro, self.slots = _leaf(state.macro), _leaf(state.states)
            self.carried = tuple(_leaf(part) for part in state.carried)
            state = state._replace(macro=self.macro, states=self.slots, carried=self.carried)
            self.made = network.produce(w, a, state)
            self.h = _leaf(self.made[0])
            _, after, _ = network.remember(w, self.h, self.made[1], state)
        self.after = (after.macro, after.states)

    def of_memory(self, g_macro: Tensor, g_slots: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of h, of the slots before, and of the macro-state before through the query."""
        return _products(self.after, (self.h, self.slots, self.macro), (g_macro, g_slots))

    def of_core(self, g_h: Tensor, g_carried: list[Tensor]) -> tuple[Tensor, ...]:
        """Return the gradients of the macro-state before through the core, and of what the core carried."""
        h, carried = self.made
        return _products((h, *carried), (self.macro, *self.carried), (g_h, *g_carried))


def _leaf(part: Tensor) -> Tensor:
    return part.detach().requires_grad_()


def _products(outputs: Any, inputs: Any, cotangents: Any) -> tuple[Tensor, ...]:
    found: tuple[Tensor, ...] = torch.autograd.grad(
        outputs, inputs, cotangents, retain_graph=True, is_grads_batched=True, allow_unused=True, materialize_grads=True
    )
    return found
