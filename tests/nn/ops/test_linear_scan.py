"""The linear scan against its naive twin: values, last state, all gradients, and every way to compose it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nn.ops.twins import assert_safe_in_float32, assert_twins, ragged

from mnemoscope.nn.ops.linear_scan import linear_scan, naive_linear_scan


def problem(steps=7, batch=3, units=4, *, complex=False, constant=False, seed=0, dtype=torch.float64):
    """Return b, a and h_0 with |a| < 1."""
    generator = torch.Generator().manual_seed(seed)
    dtype = dtype.to_complex() if complex else dtype

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=dtype)

    a = draw(units) if constant else draw(steps, batch, units)
    return draw(steps, batch, units), a / (1 + a.abs()), draw(batch, units)


@settings(deadline=None, max_examples=40)
@given(
    steps=st.integers(1, 9),
    batch=st.integers(0, 4),
    units=st.integers(1, 4),
    complex=st.booleans(),
    constant=st.booleans(),
    unequal=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_twins(steps, batch, units, complex, constant, unequal, seed):
    tensors = problem(steps, batch, units, complex=complex, constant=constant, seed=seed)
    lengths = ragged(batch, steps, seed) if unequal else None
    assert_twins(linear_scan, naive_linear_scan, tensors, lengths)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("complex", [True, False])
def test_derivatives_to_second_order_and_forward(complex, constant):
    tensors = [tensor.requires_grad_() for tensor in problem(4, 2, 2, complex=complex, constant=constant)]
    assert torch.autograd.gradcheck(linear_scan, tensors, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(linear_scan, tensors)


@pytest.mark.parametrize("mapped", [(0, 0, 0), (0, None, None), (None, 0, None), (None, None, 1)])
@pytest.mark.parametrize("constant", [True, False])
def test_vmap_and_its_gradient_are_a_loop(mapped, constant):
    members = [problem(constant=constant, seed=seed) for seed in range(3)]
    tensors = [
        torch.stack(list(of), dim) if dim is not None else of[0]
        for of, dim in zip(zip(*members, strict=True), mapped, strict=True)
    ]

    def function(*some):
        return sum(part.square().sum() for part in linear_scan(*some))

    def pick(k):
        return [t if dim is None else t.select(dim, k) for t, dim in zip(tensors, mapped, strict=True)]

    together = torch.vmap(torch.func.grad(function, argnums=(0, 1, 2)), in_dims=mapped)(*tensors)
    for k in range(3):
        alone = torch.func.grad(function, argnums=(0, 1, 2))(*pick(k))
        for a, b in zip(together, alone, strict=True):
            torch.testing.assert_close(a[k], b)


def test_a_geometric_sum_in_float32_at_16384_steps():
    """Constant input 1 - a from zero gives 1 - a^t: a closed form at every length."""
    a = torch.tensor([0.5, 0.99, 0.9999])
    outputs, last = linear_scan((1 - a).expand(16384, 2, 3), a)
    steps = torch.arange(1, 16385, dtype=torch.float64)
    torch.testing.assert_close(outputs[:, 0].double(), 1 - a.double() ** steps[:, None], rtol=0, atol=2e-5)
    torch.testing.assert_close(last, outputs[-1])


def test_float32_at_4096_steps_where_gates_underflow():
    """Products of gates of 1e-30 underflow within two steps: neither states nor gradients may become NaN."""
    b, a, h0 = problem(4096, 2, 5, dtype=torch.float32)
    tensors = b, torch.where(torch.rand(a.shape, generator=torch.Generator().manual_seed(0)) < 0.5, 1e-30, 0.999), h0
    assert_safe_in_float32(linear_scan, tensors, 1e-5)
