"""The complex recurrence: its planes, and its real form, against the naive twin and against float64."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import mnemoscope as ms
from mnemoscope.nn import first_order
from mnemoscope.nn.ops import kernel, planes
from mnemoscope.nn.ops.phi import PHIS
from mnemoscope.nn.ops.recurrence import Plan, naive_recurrence, recurrence

WAYS = {"planes": 1, "real form": 10**9}


def problem(steps, batch, width, units, *, norm=1.0, seed=0, dtype=torch.float64):
    """Return x, U, V, h_0, c; V is norm times a unitary matrix."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape, dtype=torch.float64):
        return torch.randn(*shape, generator=generator, dtype=dtype)

    v = norm * torch.linalg.qr(draw(units, units, dtype=torch.complex128))[0]
    parts = draw(steps, batch, width), draw(2 * units, width), v, draw(batch, 2 * units), 0.3 * draw(units)
    return [t.to(dtype.to_complex() if t.is_complex() else dtype) for t in parts]


def assert_twins(tensors, plan, b=None):
    x, u, v, h0, c = tensors
    c = c if "modrelu" in plan.phi else None
    leaves = [t.clone().requires_grad_() for t in (x, u, v, h0, b, c) if t is not None]
    found = []
    for function in (recurrence, naive_recurrence):
        source = iter(leaves)
        given = [None if t is None else next(source) for t in (x, u, v, h0, b, c)]
        out = function(given[0], given[1], given[4], given[2], given[3], given[5], plan)
        g = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)
        found.append((out, *torch.autograd.grad(out, leaves, g)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@settings(deadline=None, max_examples=60)
@given(
    steps=st.integers(1, 12),
    batch=st.integers(0, 5),
    width=st.integers(1, 4),
    units=st.integers(1, 7),
    way=st.sampled_from(sorted(WAYS)),
    norm=st.sampled_from([0.0, 0.5, 1.0]),
    starts=st.booleans(),
    seed=st.integers(0, 10_000),
)
@example(1, 1, 1, 1, "planes", 1.0, True, 0)
@example(3, 0, 2, 3, "planes", 1.0, True, 0)
def test_complex_recurrence_equals_naive(steps, batch, width, units, way, norm, starts, seed):
    tensors = problem(steps, batch, width, units, norm=norm, seed=seed)
    tensors[3] = tensors[3] if starts else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planes, "_UNITS", WAYS[way])
        assert planes.fits((*tensors[:2], None, tensors[2], None, None), Plan("complex-modrelu")) == (way == "planes")
        assert_twins(tensors, Plan("complex-modrelu"))


@pytest.mark.parametrize("starts", [True, False])
@pytest.mark.parametrize("steps", [8, 9, 40])
def test_chunks_follow_each_other(steps, starts, monkeypatch):
    monkeypatch.setattr(planes, "_UNITS", 1)
    monkeypatch.setattr(kernel, "_CHUNK", 4 * 3 * 5)
    monkeypatch.setattr(kernel, "_ROWS", 1)
    tensors = problem(steps, 3, 2, 5)
    tensors[3] = tensors[3] if starts else None
    assert kernel.steps_in_cache(3, 5) == 4
    assert_twins(tensors, Plan("complex-modrelu"))


@pytest.mark.parametrize("plan", [Plan("complex-modrelu", (3, 3, 2, 1)), Plan("complex-modrelu", None, 2)])
def test_ragged_sequences_and_checkpoints_take_the_real_form(plan, monkeypatch):
    monkeypatch.setattr(planes, "_UNITS", 1)
    assert_twins(problem(4, 3, 2, 5), plan)


@pytest.mark.parametrize("phi", sorted(set(PHIS) - {"modrelu", "complex-modrelu"}))
def test_other_nonlinearities_take_the_real_form(phi, monkeypatch):
    monkeypatch.setattr(planes, "_UNITS", 1)
    assert_twins(problem(4, 3, 2, 5), Plan(phi), b=torch.linspace(-1, 1, 10, dtype=torch.float64))


def test_populations_take_the_real_form(monkeypatch):
    monkeypatch.setattr(planes, "_UNITS", 1)
    members = zip(problem(4, 3, 2, 5), problem(4, 3, 2, 5, seed=1), strict=True)
    assert_twins([torch.stack(pair) for pair in members], Plan("complex-modrelu"))


@pytest.mark.parametrize("way", sorted(WAYS))
def test_gradients_are_right_to_second_order(way, monkeypatch):
    monkeypatch.setattr(planes, "_UNITS", WAYS[way])
    leaves = [t.requires_grad_() for t in problem(3, 2, 2, 2, norm=0.9)]

    def function(x, u, v, h0, c):
        return recurrence(x, u, None, v, h0, c, Plan("complex-modrelu"))

    assert torch.autograd.gradcheck(function, leaves)
    assert torch.autograd.gradgradcheck(function, leaves)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_gradient_at_zero_is_lost_in_nan(dtype, monkeypatch):
    monkeypatch.setattr(planes, "_UNITS", 1)
    x, u, v, _, _ = problem(2, 1, 2, 3, dtype=dtype)
    c = torch.tensor([0.5, -0.5, 0.0], dtype=dtype)
    leaves = [torch.zeros_like(x).requires_grad_(), *(t.requires_grad_() for t in (u, v, c))]
    out = recurrence(leaves[0], leaves[1], None, leaves[2], None, leaves[3], Plan("complex-modrelu"))
    assert torch.equal(out, torch.zeros_like(out))
    for part in torch.autograd.grad(out.sum(), leaves):
        assert torch.isfinite(torch.view_as_real(part) if part.is_complex() else part).all()


def test_rounding_after_many_steps_is_that_of_the_real_form(monkeypatch):
    """Three products cancel where four do not: what that costs is a few roundings."""
    x, u, v, h0, c = problem(220, 4, 3, 128)
    u, c = u / 10, c / 100
    exact = recurrence(x, u, None, v, h0, c, Plan("complex-modrelu"))
    errors = {}
    for way, units in WAYS.items():
        monkeypatch.setattr(planes, "_UNITS", units)
        rounded = recurrence(x.float(), u.float(), None, v.cfloat(), h0.float(), c.float(), Plan("complex-modrelu"))
        errors[way] = float((rounded - exact).abs().max() / exact.abs().max())
    assert errors["planes"] < 3 * errors["real form"] < 1e-5


@pytest.mark.parametrize(
    ("name", "options"),
    [("urnn", {}), ("scurnn", {}), ("full-urnn", {"field": "complex"}), ("exprnn", {"field": "complex"})],
)
def test_layers_are_the_same_without_the_engine(name, options, monkeypatch):
    monkeypatch.setattr(planes, "_UNITS", 1)
    generator = torch.Generator().manual_seed(3)
    layer = ms.nn.create(
        name, input_size=3, hidden_size=6, num_layers=2, dtype=torch.float64, generator=generator, **options
    )
    x = torch.randn(7, 4, 3, dtype=torch.float64, generator=generator).requires_grad_()

    def values():
        output, state = layer(x)
        loss = output.sin().sum() + state.abs().square().sum()
        return [output, state, *torch.autograd.grad(loss, [x, *layer.parameters()])]

    fast = values()
    monkeypatch.setattr(first_order, "can_fuse", lambda w: False)
    for one, other in zip(fast, values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-12], ids=["ordinary", "small", "lost to rounding"])
def test_gradients_next_to_the_jump_of_modrelu_are_finite(way, size, monkeypatch):
    """|z| comes back as |y| - c, with the relative error eps c / |z|."""
    monkeypatch.setattr(planes, "_UNITS", WAYS[way])
    x, u, v, _, c = problem(1, 3, 2, 5, dtype=torch.float32)
    found = []
    for function, dtype in ((recurrence, torch.float32), (naive_recurrence, torch.float64)):
        leaves = [
            t.to(dtype.to_complex() if t.is_complex() else dtype).requires_grad_() for t in (size * x, u, c.abs())
        ]
        out = function(leaves[0], leaves[1], None, v.to(dtype.to_complex()), None, leaves[2], Plan("complex-modrelu"))
        found.append([part.double() for part in torch.autograd.grad(out.sin().sum(), leaves)])
    lost = 50 * torch.finfo(torch.float32).eps / size
    for one, other in zip(*found, strict=True):
        assert one.isfinite().all()
        assert float((one - other).norm() / other.norm()) < max(lost, 1e-5) or lost > 1
