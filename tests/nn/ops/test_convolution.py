"""Convolution by the fast Fourier transform against its twin."""

import pytest
import torch
from tests.nn.ops.twins import assert_safe_in_float32, assert_twins, ragged

from mnemoscope.nn.ops.convolution import convolution, naive_convolution


def problem(steps, *, complex=False, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    dtype = dtype.to_complex() if complex else dtype
    return [torch.randn(*shape, generator=generator, dtype=dtype) for shape in ((steps, 3, 2), (steps, 2))]


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("steps", [1, 5, 30])
def test_twins(steps, complex):
    for lengths in (None, ragged(3, steps)):
        assert_twins(convolution, naive_convolution, problem(steps, complex=complex), lengths)


def test_derivatives_and_vmap():
    x, k = problem(4)
    assert torch.autograd.gradgradcheck(convolution, [x.requires_grad_(), k.requires_grad_()])
    many = torch.stack([x, 2 * x])
    torch.testing.assert_close(torch.vmap(convolution, in_dims=(0, None))(many, k)[1], 2 * convolution(x, k))


def test_float32_at_4096_steps():
    x, k = problem(4096, dtype=torch.float32)
    decaying = k * torch.exp(-torch.arange(4096.0) / 500)[:, None]
    assert_safe_in_float32(convolution, [x, decaying], 1e-5)
