"""tanh in the fused recurrence: its definition, its digits."""

import pytest
import torch

from mnemoscope.nn.ops.recurrence import Plan, naive_recurrence, recurrence


def problem(*members, driven=False, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*members, *shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()

    u, b = (None, None) if driven else (draw(6, 2), draw(6))
    v = torch.linalg.qr(draw(6, 6).detach().double())[0].to(dtype).requires_grad_()
    return draw(9, 4, 6 if driven else 2), u, b, v, draw(4, 6), None


@pytest.mark.parametrize("sizes", [None, (4, 4, 3, 3, 3, 2, 2, 1, 1)], ids=["whole", "ragged"])
@pytest.mark.parametrize("driven", [False, True], ids=["U x + b", "driven"])
@pytest.mark.parametrize("members", [(), (3,)], ids=["one", "members"])
def test_tanh_is_its_definition(members, driven, sizes):
    tensors = problem(*members, driven=driven)
    leaves, found = [t for t in tensors if t is not None], []
    for function in (recurrence, naive_recurrence):
        out = function(*tensors, Plan("tanh", sizes))
        found.append((out, *torch.autograd.grad(out.sin().sum(), leaves)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_rounding_after_many_steps_stays_small():
    """Of an orthogonal V, which forgets no error, by no more than some tens of roundings."""
    generator = torch.Generator().manual_seed(0)
    x, u = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((220, 8, 3), (64, 3)))
    v = torch.linalg.qr(torch.randn(64, 64, generator=generator, dtype=torch.float64))[0]
    exact = recurrence(x, 0.1 * u, None, v, None, None, Plan("tanh"))
    rounded = recurrence(x.float(), 0.1 * u.float(), None, v.float(), None, None, Plan("tanh"))
    assert (rounded - exact).abs().max() < 3e-6


def test_rest_stays_rest():
    zeros = torch.zeros(5, 2, 6)
    assert torch.equal(recurrence(zeros, None, None, torch.eye(6), None, None, Plan("tanh")), zeros)


def test_16_bits_keep_their_small_numbers():
    z = torch.tensor([[[1e-3, 1e-2, 0.1]]]).bfloat16()
    out = recurrence(z, None, None, torch.eye(3).bfloat16(), None, None, Plan("tanh"))
    assert torch.equal(out, torch.tanh(z))


@pytest.mark.parametrize("scale", [1e-8, 1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("members", [(), (3,)], ids=["one", "members"])
def test_float32_keeps_its_digits_near_zero(scale, members):
    z = scale * torch.randn(*members, 1, 64, 32, generator=torch.Generator().manual_seed(0))
    out = recurrence(z, None, None, torch.eye(32).expand(*members, 32, 32), None, None, Plan("tanh"))
    exact = torch.tanh(z.double())
    assert ((out - exact) / exact).abs().max() < 1e-6
