"""Gradients against finite differences, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.autograd.gradcheck import GradcheckError
from torch.func import functional_call
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from mnemoscope.testing.checking import check
from mnemoscope.testing.compare import require
from mnemoscope.testing.report import CheckFailed, Skipped
from mnemoscope.testing.subject import Subject

__all__ = ["check_gradient_input", "check_gradient_packed", "check_gradient_parameters", "check_gradient_state"]

TIME, BATCH = 3, 2
_ADVICE = "use differentiable operations only, and correct the backward pass if you wrote one"


def _in_double(network: Any) -> Any:
    """Return the network in float64, complex weights included, which `double()` leaves as they are."""
    return network.double()._apply(lambda t: t.to(torch.complex128) if t.dtype == torch.complex64 else t)


@check(_ADVICE)
def check_gradient_input(subject: Subject) -> None:
    """The gradient of output and state with respect to the input is that of finite differences (float64)."""
    network = _in_double(subject.build_deep())
    x = subject.inputs(network, time=TIME, batch=BATCH)
    _require_gradient(lambda x: subject.run(network, x), [x], "the input")


@check(_ADVICE)
def check_gradient_state(subject: Subject) -> None:
    """The gradient with respect to hx, real or complex, is that of finite differences (float64)."""
    network = _in_double(subject.build_deep())
    x = subject.inputs(network, time=TIME, batch=BATCH)
    leaves, spec = tree_flatten(subject.state(network, batch=BATCH))
    free = [i for i, leaf in enumerate(leaves) if _is_inexact(leaf)]

    def run(*parts: Tensor) -> Any:
        filled = list(leaves)
        for i, part in zip(free, parts, strict=True):
            filled[i] = part
        return subject.run(network, x, tree_unflatten(filled, spec))

    _require_gradient(run, [leaves[i] for i in free], "hx")


@check(_ADVICE)
def check_gradient_parameters(subject: Subject) -> None:
    """The gradient with respect to every parameter is that of finite differences (float64)."""
    network = _in_double(subject.build_deep())
    x = subject.given(network, subject.inputs(network, time=TIME, batch=BATCH))
    parameters = {name: p.detach() for name, p in network.named_parameters() if p.numel()}
    if not parameters:
        raise Skipped("the network has no parameters")
    for name, value in parameters.items():

        def run(value: Tensor, name: str = name) -> Any:
            return functional_call(network, parameters | {name: value}, (x,))

        _require_gradient(run, [value], f"the parameter {name}")


@check(_ADVICE)
def check_gradient_packed(subject: Subject) -> None:
    """The gradient with respect to the data of a PackedSequence is that of finite differences (float64)."""
    network = _in_double(subject.build_deep())
    x = subject.inputs(network, time=TIME, batch=BATCH)
    packed = pack_padded_sequence(x, torch.tensor([TIME, 1]))

    def run(data: Tensor) -> Any:
        y, state = subject.run(network, PackedSequence(data, packed.batch_sizes))
        return y.data, state

    _require_gradient(run, [packed.data], "the data of a PackedSequence")


def _require_gradient(function: Callable[..., Any], inputs: list[Tensor], of: str) -> None:
    """Compare the gradient of a random combination of all that `function` returns: one backward for all outputs."""
    generator = torch.Generator().manual_seed(0)
    variables = [value.detach().clone().requires_grad_() for value in inputs]
    leaves = _inexact(function(*variables))
    directions = [torch.randn(leaf.shape, dtype=leaf.dtype, generator=generator) for leaf in leaves]

    def combine(*values: Tensor) -> Tensor:
        parts = zip(_inexact(function(*values)), directions, strict=True)
        return sum(((leaf * direction).sum().real for leaf, direction in parts), torch.zeros((), dtype=torch.float64))

    reached = combine(*variables).requires_grad
    require(reached, f"let the gradient reach {of}: nothing that forward returns depends on it for autograd")
    try:
        gradcheck(combine, variables, eps=1e-6, atol=1e-5, rtol=1e-3)
    except GradcheckError as error:
        raise CheckFailed(f"correct the gradient with respect to {of}: it is not that of finite differences") from error


def _inexact(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if _is_inexact(leaf)]


def _is_inexact(leaf: Tensor) -> bool:
    return leaf.is_floating_point() or leaf.is_complex()
