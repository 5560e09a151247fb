"""Gradients against finite differences, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from mnemoscope.testing.checking import check
from mnemoscope.testing.compare import require
from mnemoscope.testing.report import CheckFailed, Skipped
from mnemoscope.testing.subject import Network, Subject

__all__ = ["check_gradient_input", "check_gradient_packed", "check_gradient_parameters", "check_gradient_state"]

TIME, BATCH = 3, 2
_ADVICE = "use differentiable operations only, and correct the backward pass if you wrote one"


@check(_ADVICE)
def check_gradient_input(subject: Subject) -> None:
    """The gradient of output and state with respect to the input is that of finite differences (float64)."""
    network = subject.build_deep().double()
    x = subject.inputs(network, time=TIME, batch=BATCH).requires_grad_()
    _gradcheck(lambda x: _leaves(subject.run(network, x)), (x,), "the input")


@check(_ADVICE)
def check_gradient_state(subject: Subject) -> None:
    """The gradient with respect to hx, real or complex, is that of finite differences (float64)."""
    network = subject.build_deep().double()
    x = subject.inputs(network, time=TIME, batch=BATCH)
    leaves, spec = tree_flatten(subject.state(network, batch=BATCH))
    free = [i for i, leaf in enumerate(leaves) if _is_inexact(leaf)]

    def run(*parts: Tensor) -> tuple[Tensor, ...]:
        filled = list(leaves)
        for i, part in zip(free, parts, strict=True):
            filled[i] = part
        return _leaves(subject.run(network, x, tree_unflatten(filled, spec)))

    _gradcheck(run, tuple(leaves[i].clone().requires_grad_() for i in free), "hx")


@check(_ADVICE)
def check_gradient_parameters(subject: Subject) -> None:
    """The gradient with respect to every parameter is that of finite differences (float64)."""
    network = subject.build_deep().double()
    x = subject.inputs(network, time=TIME, batch=BATCH)
    parameters = {name: p.detach().clone() for name, p in network.named_parameters()}
    if not parameters:
        raise Skipped("the network has no parameters")
    for name, value in parameters.items():

        def run(value: Tensor, name: str = name) -> tuple[Tensor, ...]:
            return _leaves(functional_call(network, parameters | {name: value}, (_given(network, x),)))

        _gradcheck(run, (value.requires_grad_(),), f"the parameter {name}")
        value.requires_grad_(False)


@check(_ADVICE)
def check_gradient_packed(subject: Subject) -> None:
    """The gradient with respect to the data of a PackedSequence is that of finite differences (float64)."""
    network = subject.build_deep().double()
    x = subject.inputs(network, time=TIME, batch=BATCH)
    packed = pack_padded_sequence(x, torch.tensor([TIME, 1]))

    def run(data: Tensor) -> tuple[Tensor, ...]:
        y, state = subject.run(network, PackedSequence(data, packed.batch_sizes))
        return _leaves((y.data, state))

    _gradcheck(run, (packed.data.clone().requires_grad_(),), "the data of a PackedSequence")


def _gradcheck(function: Callable[..., tuple[Tensor, ...]], inputs: tuple[Tensor, ...], of: str) -> None:
    if all(part.numel() == 0 for part in inputs):
        return
    outputs = function(*inputs)
    require(any(y.requires_grad for y in outputs), f"let the gradient reach {of}: nothing that forward returns has any")
    try:
        gradcheck(function, inputs, eps=1e-6, atol=1e-5, rtol=1e-3)
    except torch.autograd.gradcheck.GradcheckError as error:
        raise CheckFailed(f"correct the gradient with respect to {of}: it is not that of finite differences") from error


def _given(network: Network, x: Tensor) -> Tensor:
    return x.transpose(0, 1) if getattr(network, "batch_first", False) else x


def _leaves(tree: Any) -> tuple[Tensor, ...]:
    return tuple(leaf for leaf in tree_leaves(tree) if _is_inexact(leaf))


def _is_inexact(leaf: Tensor) -> bool:
    return leaf.is_floating_point() or leaf.is_complex()
