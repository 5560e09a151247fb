"""The readout with the classes in front against the product that defines it."""

import pytest
import torch

from mnemoscope.training.objective import Buffers, class_major

STEPS, MEMBERS, BATCH, UNITS, CLASSES = 5, 3, 4, 6, 2


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def assert_same(fast, slow, leaves):
    g = torch.randn(slow.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.testing.assert_close(fast, slow, rtol=1e-12, atol=1e-12)
    pairs = zip(torch.autograd.grad(fast, leaves, g), torch.autograd.grad(slow, leaves, g), strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("members", [(), (MEMBERS,)], ids=["one", "members"])
def test_readout_is_its_definition(members, first, biased):
    h, weight = draw(*members, STEPS, BATCH, UNITS), draw(*members, CLASSES, UNITS, seed=2)
    bias = draw(*members, CLASSES, seed=3) if biased else None
    slow = torch.einsum("...tbn,...cn->...ctb", h[..., first:, :, :], weight).flatten(-2)
    slow = slow if bias is None else slow + bias[..., None]
    fast = class_major(h, weight, bias, Buffers(), first)
    assert_same(fast, slow, [h, weight] if bias is None else [h, weight, bias])


def test_a_buffer_that_is_used_again_is_zero_before_the_steps_that_count():
    h, weight, buffers = draw(STEPS, BATCH, UNITS), draw(CLASSES, UNITS, seed=2), Buffers()
    for first in (0, 3, 1):
        (gradient,) = torch.autograd.grad(class_major(h, weight, None, buffers, first).sum(), h)
        expected = weight.sum(0).detach().expand(STEPS, BATCH, -1).clone()
        expected[:first] = 0
        torch.testing.assert_close(gradient, expected)


def test_second_derivatives_of_the_readout_are_refused():
    h, weight = draw(MEMBERS, STEPS, BATCH, UNITS), draw(MEMBERS, CLASSES, UNITS, seed=2)
    out = class_major(h, weight, None, Buffers())
    (gradient,) = torch.autograd.grad(out.square().sum(), weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
