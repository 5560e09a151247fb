"""The product of Givens rotations against the same by autograd: values, derivatives of every kind, and memory."""

import pytest
import torch

from mnemoscope.nn.maps.givens import Givens
from mnemoscope.nn.maps.rotations import naive_rotations, rotations

SIZES = [(5, 5), (6, 4), (7, 3), (2, 1)]


def drawn(n, m, batch=()):
    layers = Givens(n, m)._layers
    count = sum(pairs for _, pairs in layers)
    generator = torch.Generator().manual_seed(n + m)
    angles = 3 * torch.randn(*batch, count, generator=generator, dtype=torch.float64)
    weights = torch.randn(n, n, generator=generator, dtype=torch.float64)
    return angles, layers, weights


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_values_and_first_and_second_derivatives(n, m):
    angles, layers, _ = drawn(n, m)
    assert torch.equal(rotations(angles, layers, n), naive_rotations(angles, layers, n))
    angles.requires_grad_()
    assert torch.autograd.gradcheck(lambda a: rotations(a, layers, n), (angles,))
    assert torch.autograd.gradgradcheck(lambda a: rotations(a, layers, n), (angles,))


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_transforms_are_those_of_plain_operations(n, m):
    batch, layers, weights = drawn(n, m, (3,))

    def found(function):
        def loss(angles):
            return (function(angles, layers, n) * weights).sum()

        def matrix(angles):
            return function(angles, layers, n)

        return (
            torch.vmap(torch.func.grad(loss))(batch),
            torch.vmap(torch.func.jacrev(matrix))(batch),
            torch.func.jacfwd(matrix)(batch[0]),
            torch.func.hessian(loss)(batch[0]),
        )

    torch.testing.assert_close(found(rotations), found(naive_rotations))


def test_what_is_kept_for_the_gradient_does_not_grow_with_the_layers():
    kept = []
    for count in (2, 32):
        angles, layers, _ = drawn(32, count)
        total = 0

        def pack(tensor):
            nonlocal total
            total += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            rotations(angles.requires_grad_(), layers, 32)
        kept.append(total - angles.numel())
    assert kept == [32 * 32, 32 * 32]
