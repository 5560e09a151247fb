"""tanh as it is, and by sigmoid, whatever this machine prefers."""

import pytest
import torch

from mnemoscope.nn import phi
from mnemoscope.nn.recurrence import Plan, naive_recurrence, recurrence


@pytest.fixture(params=[True, False], ids=["by sigmoid", "as it is"])
def by_sigmoid(request, monkeypatch):
    monkeypatch.setattr(phi, "_sigmoid_is_faster", lambda z: request.param)
    return request.param


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
def test_tanh_is_its_definition(by_sigmoid, members, driven, sizes):
    tensors = problem(*members, driven=driven)
    leaves, found = [t for t in tensors if t is not None], []
    for function in (recurrence, naive_recurrence):
        out = function(*tensors, Plan("tanh", sizes))
        found.append((out, *torch.autograd.grad(out.sin().sum(), leaves)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_rounding_after_many_steps_stays_small(by_sigmoid):
    """Of an orthogonal V, which forgets no error, by no more than some tens of roundings."""
    generator = torch.Generator().manual_seed(0)
    x, u = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((220, 8, 3), (64, 3)))
    v = torch.linalg.qr(torch.randn(64, 64, generator=generator, dtype=torch.float64))[0]
    exact = recurrence(x, 0.1 * u, None, v, None, None, Plan("tanh"))
    rounded = recurrence(x.float(), 0.1 * u.float(), None, v.float(), None, None, Plan("tanh"))
    assert (rounded - exact).abs().max() < 3e-6


def test_rest_stays_rest(by_sigmoid):
    zeros = torch.zeros(5, 2, 6)
    assert torch.equal(recurrence(zeros, None, None, torch.eye(6), None, None, Plan("tanh")), zeros)


def test_16_bits_keep_their_small_numbers():
    z = torch.tensor([[[1e-3, 1e-2, 0.1]]]).bfloat16()
    out = recurrence(z, None, None, torch.eye(3).bfloat16(), None, None, Plan("tanh"))
    assert torch.equal(out, torch.tanh(z))


@pytest.mark.parametrize(
    ("processor", "mkl", "slow"),
    [("AMD EPYC", True, True), ("Intel(R) Xeon(R)", True, False), ("", True, True), ("Neoverse-N1", False, False)],
)
def test_tanh_is_replaced_where_it_is_that_of_mkl_on_another_makers_processor(processor, mkl, slow, monkeypatch):
    monkeypatch.setattr(torch._C, "has_mkl", mkl)
    monkeypatch.setattr(phi, "_processor", lambda: processor)
    assert phi._has_slow_mkl.__wrapped__() == slow
