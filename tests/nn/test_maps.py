"""The fast Cayley transform and exponential against torch's, and their orthogonality."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.nn.maps import gram_error
from mnemoscope.nn.maps.functions import cayley, exponential, naive_cayley, naive_exponential, polar

PAIRS = {"cayley": (cayley, naive_cayley), "exponential": (exponential, naive_exponential)}


def skew(size, norm, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(size, size, generator=generator, dtype=dtype)
    matrix = matrix - matrix.mH
    largest = float(torch.linalg.matrix_norm(matrix, 2))
    return matrix * (norm / largest) if largest else matrix


def skew_part(matrix):
    return (matrix - matrix.mH) / 2


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(sorted(PAIRS)),
    size=st.integers(1, 12),
    norm=st.sampled_from([0.0, 1e-6, 0.3, 1.0, 3.0, 10.0, 40.0]),
    dtype=st.sampled_from([torch.float64, torch.complex128]),
    seed=st.integers(0, 1000),
)
def test_value_and_gradient_are_those_of_the_naive_twin(name, size, norm, dtype, seed):
    fast, naive = PAIRS[name]
    a = skew(size, norm, dtype, seed).requires_grad_()
    g = torch.randn(size, size, dtype=dtype, generator=torch.Generator().manual_seed(seed + 1))
    for x, y in (
        (fast(a), naive(a)),
        (*torch.autograd.grad(fast(a), a, g), *torch.autograd.grad(naive(a), a, g)),
    ):
        torch.testing.assert_close(x, y, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", sorted(PAIRS))
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradients_to_second_order(name, dtype):
    fast, _ = PAIRS[name]
    a = skew(3, 2.0, dtype).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: fast(skew_part(x)), a)
    assert torch.autograd.gradgradcheck(lambda x: fast(skew_part(x)), a)


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_vmap_is_a_batch(name):
    fast, _ = PAIRS[name]
    batch = torch.stack([skew(4, norm, torch.float64) for norm in (0.1, 2.0, 9.0)])
    one_by_one = torch.stack([fast(a) for a in batch])
    torch.testing.assert_close(torch.vmap(fast)(batch), one_by_one, rtol=1e-12, atol=1e-12)

    def loss(a):
        return fast(skew_part(a)).pow(3).sum()

    mapped = torch.vmap(torch.func.grad(loss))(batch)
    torch.testing.assert_close(mapped, torch.stack([torch.func.grad(loss)(a) for a in batch]), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", sorted(PAIRS))
@pytest.mark.parametrize("size", [128, 512])
@pytest.mark.parametrize("norm", [0.1, 1.0, 10.0])
def test_orthogonal_to_1e_5_in_single_precision(name, size, norm):
    fast, naive = PAIRS[name]
    a = skew(size, norm, torch.float32)
    v = fast(a)
    assert gram_error(v.double()) <= 1e-5
    assert float((v.double() - naive(a.double())).abs().max()) <= 2e-5


def test_polar_squares_the_distance_from_orthogonality():
    v = naive_cayley(skew(20, 2.0, torch.float64)) + 1e-4 * torch.randn(20, 20, dtype=torch.float64)
    once, twice = polar(v), polar(polar(v))
    assert gram_error(v) > 1e-4
    assert gram_error(once) < 1e-6
    assert gram_error(twice) < 1e-11
    left, _, right = torch.linalg.svd(v)
    torch.testing.assert_close(polar(twice), left @ right, rtol=0, atol=1e-12)


def test_not_a_number_comes_through():
    a = torch.full((3, 3), torch.nan)
    assert exponential(a).isnan().all()


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_forward_mode_takes_the_naive_twin(name):
    fast, _ = PAIRS[name]
    a = skew(3, 2.0, torch.float64)

    def function(x):
        return fast(skew_part(x))

    torch.testing.assert_close(torch.func.jacfwd(function)(a), torch.func.jacrev(function)(a), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_a_batch_gives_each_matrix_what_it_gets_alone(dtype):
    """Bit for bit, whatever the others are: large, infinite or no numbers at all; alone to rounding.

    Libraries multiply one small matrix and a batch of them in another order on some processors.
    """
    kinds = [skew(4, norm, dtype) for norm in (0.0, 0.5, 30.0, 1e4)]
    kinds += [torch.full((4, 4), value, dtype=dtype) for value in (torch.nan, torch.inf, torch.finfo(dtype).max)]
    batch = torch.stack(kinds).requires_grad_()
    g = torch.randn(batch.shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    together = exponential(batch)
    (gradients,) = torch.autograd.grad(together, batch, g)
    tame = torch.stack([*kinds[:4], *kinds[1:2] * 3]).requires_grad_()
    others = exponential(tame)
    assert torch.equal(others[:4], together[:4])
    assert torch.equal(torch.autograd.grad(others, tame, g)[0][:4], gradients[:4])
    for k, kind in enumerate(kinds[:4]):
        a = kind.clone().requires_grad_()
        alone = exponential(a)
        near = {"rtol": 0, "atol": 100 * max(1.0, kind.abs().max().item()) * torch.finfo(dtype).eps}
        torch.testing.assert_close(alone, together[k], **near)
        torch.testing.assert_close(*torch.autograd.grad(alone, a, g[k]), gradients[k], **near)
    assert together[4:].isnan().all()


@pytest.mark.parametrize("norm", [1e5, 1e8])
def test_a_large_matrix_is_still_orthogonal(norm):
    v = exponential(skew(4, norm, torch.float64))
    assert gram_error(v) < 1e-12
