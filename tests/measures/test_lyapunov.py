"""Lyapunov exponents against eigenvalues, maps whose exponents are known, and the determinant."""

import math

import mpmath
import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.lyapunov import log_moduli, lyapunov_exponents
from mnemoscope.measures.trajectory import drive


class Henon(nn.Module):
    """x' = 1 - a x^2 + y, y' = b x: exponents 0.4192 and -1.6232, whose sum is ln b."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor(1.4, dtype=torch.float64))
        self.b = nn.Parameter(torch.tensor(0.3, dtype=torch.float64))

    def forward(self, x, h):
        first = 1 - self.a * h[:, 0] ** 2 + h[:, 1] + 0 * x[:, 0]
        return torch.stack([first, self.b * h[:, 0]], dim=1)


class Logistic(nn.Module):
    """h' = r h (1 - h): exponent ln 2 at r = 4."""

    def __init__(self, r: float) -> None:
        super().__init__()
        self.r = nn.Parameter(torch.tensor(r, dtype=torch.float64))

    def forward(self, x, h):
        return self.r * h * (1 - h) + 0 * x


def alone(module: nn.Module, start: list[float]) -> nn.Module:
    state = torch.tensor(start, dtype=torch.float64)
    return ms.adapt(module, kind="cell", input_size=1, init_state=lambda batch: state.expand(batch, -1))


def test_henon_map():
    found = lyapunov_exponents(alone(Henon(), [0.1, 0.1]), scale=0.0, horizon=2500, trajectories=24)
    np.testing.assert_allclose(found.exponents, [0.41922, -1.62319], atol=5 * found.stderr.max())
    assert found.stderr.max() < 0.003
    assert found.exponents.sum() == pytest.approx(math.log(0.3), abs=1e-12)
    assert found.dimension == pytest.approx(1.2583, abs=0.005)
    assert abs(found.drift) < 0.03


@pytest.mark.parametrize(("r", "exponent"), [(4.0, math.log(2)), (3.2, math.log(0.16) / 2), (2.5, math.log(0.5))])
def test_logistic_map(r, exponent):
    # At r = 3.2 there is an orbit of two points with multiplier 4 + 2 r - r^2 = 0.16; at 2.5 a point with 2 - r.
    found = lyapunov_exponents(alone(Logistic(r), [0.3]), scale=0.0, horizon=2000, trajectories=8, washout=200)
    assert found.exponents[0] == pytest.approx(exponent, abs=max(5 * found.stderr[0], 1e-9))


@pytest.mark.parametrize("seed", range(4))
def test_linear_networks_have_their_eigenvalues(seed):
    layer = ms.nn.LinearRNN(2, 7).double()
    W = torch.randn(7, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    layer.weight_hh_l0 = W
    found = lyapunov_exponents(layer)
    moduli = np.sort(np.abs(np.linalg.eigvals(W.numpy())))[::-1]
    np.testing.assert_allclose(found.exponents, np.log(moduli), atol=1e-12)
    assert found.linear
    assert found.status == "exact"
    assert found.digits >= 12
    np.testing.assert_array_equal(lyapunov_exponents(layer, count=3).exponents, found.exponents[:3])


def test_qr_finds_the_eigenvalues_too():
    """A network that is linear in all but a part that fades: the general path against the eigenvalues."""

    class AlmostLinear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.W = nn.Parameter(torch.diag(torch.tensor([0.9, 0.6, 0.2])) + torch.triu(torch.ones(3, 3), 1))

        def forward(self, x, h):
            return h @ self.W.T + h**3

    net = ms.adapt(AlmostLinear(), kind="cell", input_size=1, init_state=lambda batch: 1e-3 * torch.ones(batch, 3))
    found = lyapunov_exponents(net, scale=0.0, horizon=400, washout=100, transient=200)
    assert not found.linear
    np.testing.assert_allclose(found.exponents, np.log([0.9, 0.6, 0.2]), atol=1e-6)


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm", "goru", "2rnn"])
def test_sum_of_the_exponents_is_the_mean_logarithm_of_the_determinant(name):
    layer = ms.nn.create(name, input_size=2, hidden_size=4)
    options = {"trajectories": 2, "washout": 10}
    found = lyapunov_exponents(layer, horizon=40, transient=0, seed=3, **options)
    flow = Dynamics.of(layer)
    path = drive(flow, steps=40, scale=1.0, generator=torch.Generator().manual_seed(3), **options)
    determinants = torch.linalg.slogdet(path.jacobians(0, 40).state).logabsdet
    assert found.exponents.sum() == pytest.approx(float(determinants.mean()), abs=1e-9)


def test_exponents_of_a_layer_do_not_see_the_layers_above_it():
    deep = ms.nn.RNN(2, 4, num_layers=2, activation="depth", nonlinearity="tanh")
    wanted = [np.log(np.abs(np.linalg.eigvals(getattr(deep, f"weight_hh_l{k}").detach().double()))) for k in (0, 1)]
    found = lyapunov_exponents(deep, horizon=1000, transient=200, trajectories=1)
    np.testing.assert_allclose(found.exponents, np.sort(np.concatenate(wanted))[::-1], atol=2e-2)
    assert not found.linear


def test_nilpotent_and_dead_networks_have_no_finite_exponent():
    line = torch.diag(torch.ones(4), -1)
    for layer in (ms.nn.LinearRNN(1, 5), ms.nn.RNN(1, 5), ms.nn.RNN(1, 5, nonlinearity="relu")):
        layer.weight_hh_l0 = line
        found = lyapunov_exponents(layer, horizon=50)
        assert np.isneginf(found.exponents).all()
        assert not found.stderr.any()
        assert str(found).startswith("largest Lyapunov exponent -inf")
        assert found.plot().to_dict()


def test_rank_deficient_matrix_has_both_kinds():
    layer = ms.nn.RNN(1, 4)
    layer.weight_hh_l0 = torch.tensor([[1.0, 2, 0, 1], [0, 1, -1, 1], [1, 3, -1, 2], [1, 1, 1, 0]]) / 4  # rank 2
    found = lyapunov_exponents(layer, horizon=100)
    assert np.isfinite(found.exponents[:2]).all()
    assert np.isneginf(found.exponents[2:]).all()


@pytest.mark.parametrize("name", ["henaff", "scornn", "exprnn"])
def test_orthogonal_networks_without_bias_are_at_the_edge(name):
    layer = ms.nn.create(name, input_size=2, hidden_size=6, bias=False)
    found = lyapunov_exponents(layer)
    np.testing.assert_allclose(found.exponents, 0, atol=1e-6)
    assert "at the edge" in str(found)


@pytest.mark.parametrize("power", [2, 6])
def test_error_bound_covers_the_error_of_a_non_normal_matrix(power):
    """Eigenvalues 1, 1/2, .. 1/12 under a similarity of condition 10^2, where floats will do, and of 10^6.

    Against those of the same rounded matrix in 60 digits.
    """
    rng = np.random.default_rng(0)
    values = 1 / np.arange(1, 13)
    left, right = (np.linalg.qr(rng.normal(size=(12, 12)))[0] for _ in range(2))
    S = left * np.logspace(0, power, 12) @ right
    W = S @ np.diag(values) @ np.linalg.inv(S)
    logs, errors = log_moduli(W)
    with mpmath.workdps(60):
        exact = sorted((abs(v) for v in mpmath.eig(mpmath.matrix(W.tolist()), left=False, right=False)), reverse=True)
    assert (np.abs(logs - np.log(np.array(exact, dtype=float))) <= errors + 1e-15).all()
    assert (errors.max() > 1e-14) == (power == 2)  # then exact arithmetic takes over
    triangle = np.triu(rng.normal(size=(5, 5)))
    np.testing.assert_array_equal(log_moduli(triangle)[1], 0)


def test_same_seed_same_numbers_and_results_export():
    layer = ms.nn.LSTM(2, 3)
    one, two = (lyapunov_exponents(layer, horizon=60, seed=5) for _ in range(2))
    assert np.array_equal(one.exponents, two.exponents)
    assert (np.diff(one.exponents) <= 0).all()
    assert one.to_dict()["exponents"] == one.exponents.tolist()
    assert "fading" in str(one)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 4}, "count must be at most 3, the numbers in the state, got 4"),
        ({"horizon": 2.5}, "horizon must be a positive integer, got 2.5"),
        ({"transient": -1}, "transient must be a positive integer, got -1"),
        ({"scale": float("nan")}, "scale must be a number of at least 0, got nan"),
        ({"horizon": 10**13}, r"lyapunov_exponents would take about \d+ hours .* grows as B T S\^2 M; fewer steps"),
    ],
)
def test_mistakes_are_said_in_one_line(options, message):
    with pytest.raises(ValueError, match="^" + message):
        lyapunov_exponents(ms.nn.RNN(2, 3), **options)


def test_bidirectional_networks_are_refused():
    with pytest.raises(ValueError, match="^lyapunov_exponents needs a causal network"):
        lyapunov_exponents(ms.nn.RNN(2, 3, bidirectional=True))


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn", "urnn"])
def test_leading_exponents_are_those_of_the_transposed_product(name):
    """From the same frame, cotangents through autograd equal the plain loop over transposed Jacobians, to rounding."""
    layer = ms.nn.create(name, input_size=2, hidden_size=16)
    options = {"trajectories": 2, "washout": 10}
    found = lyapunov_exponents(layer, count=4, horizon=50, transient=0, seed=5, **options)
    flow = Dynamics.of(layer)
    generator = torch.Generator().manual_seed(5)
    path = drive(flow, steps=50, scale=1.0, generator=generator, **options)
    frame = np.linalg.qr(torch.randn(2, flow.size, 4, generator=generator, dtype=torch.float64).numpy())[0]
    logs = np.zeros(4)
    for jacobian in reversed(path.jacobians(0, 50).state.numpy()):
        frame, triangle = np.linalg.qr(jacobian.swapaxes(1, 2) @ frame)
        logs += np.log(np.abs(np.diagonal(triangle, axis1=1, axis2=2))).mean(0) / 50
    np.testing.assert_allclose(found.exponents, np.sort(logs)[::-1], atol=1e-10)
    assert (found.size, len(found.exponents)) == (flow.size, 4)


@pytest.mark.parametrize(
    ("names", "size", "seeds"),
    [
        (("gru", "nnrnn"), 32, 1),
        pytest.param(
            ("lstm", "rnn", "gru", "nnrnn", "goru", "mingru", "scornn", "mirnn"), 64, 3, marks=pytest.mark.slow
        ),
    ],
)
def test_intervals_of_leading_exponents_cover_the_truth(names, size, seeds):
    """Against all exponents over a time ten times as long and another input: the frame's part of the error counts."""
    covered = []
    for name in names:
        torch.manual_seed(len(name))
        flow = Dynamics.of(ms.nn.create(name, input_size=1, hidden_size=size))
        truth = lyapunov_exponents(flow, horizon=1000 * seeds, transient=400, trajectories=2, seed=99)
        for seed in range(seeds):
            found = lyapunov_exponents(flow, count=8, horizon=200, transient=60, trajectories=2, seed=seed)
            error = np.abs(found.exponents - truth.exponents[:8])
            covered.append(error <= 2 * np.hypot(found.stderr, truth.stderr[:8]))
    assert np.mean(covered) >= 0.93
    assert found.stderr.max() < 0.1


class Close(nn.Module):
    """Units with rates between -0.034 and -0.026 in a rotated basis, all scaled alike by the input."""

    input_size, hidden_size = 1, 64

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.rates = torch.linspace(-0.026, -0.034, 64, dtype=torch.float64)
        turned = torch.linalg.qr(torch.randn(64, 64, generator=generator, dtype=torch.float64)).Q
        self.W = nn.Parameter(turned @ torch.diag(self.rates.exp()) @ turned.T)

    def forward(self, x, h):
        return (h @ self.W.T) * torch.exp(0.002 * x)


def test_exponents_too_close_for_the_time_have_the_error_of_a_frame_that_has_not_turned():
    net = Close()
    options = {"count": 8, "horizon": 200, "transient": 60, "trajectories": 2}
    found = lyapunov_exponents(ms.adapt(net, kind="cell"), **options)
    error = np.abs(found.exponents - net.rates[:8].numpy())
    scatter = np.sqrt(found.stderr**2 - found.frame_error**2)
    assert (error > 4 * scatter).mean() > 0.5
    assert (error <= 2 * found.stderr).all()
    assert found.stderr.max() < 0.01


def test_what_sixteen_exponents_do_not_tell_is_said():
    found = lyapunov_exponents(ms.nn.create("nnrnn", 1, 64), count=4, horizon=40, transient=10, trajectories=1)
    assert found.above(-0.05) == (4 / 64, False)
    assert "4 of 64 exponents" in str(found)
    fading = lyapunov_exponents(ms.nn.LSTM(1, 16), count=4, horizon=40, transient=10, trajectories=1)
    assert fading.above(-0.05) == (0.0, True)
    assert fading.dimension_known
    assert fading.dimension == 0


class Doubled(torch.autograd.Function):
    """x + tanh(x), of old style: neither vmap nor forward mode know it; its backward is not differentiable again."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x + torch.tanh(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (2 - torch.tanh(x) ** 2)


class Old(nn.Module):
    def __init__(self, size: int = 16) -> None:
        super().__init__()
        self.W = nn.Parameter(
            0.3 * torch.linalg.qr(torch.randn(size, size, generator=torch.Generator().manual_seed(1))).Q
        )
        self.old = True

    def forward(self, x, h):
        z = h @ self.W.T + x
        return Doubled.apply(z) if self.old else z + torch.tanh(z)


def test_a_step_without_rules_for_vmap_is_pulled_back_by_autograd():
    found = []
    for old in (True, False):
        module = Old()
        module.old = old
        net = ms.adapt(module, kind="cell", input_size=1, init_state=lambda batch: torch.zeros(batch, 16))
        found.append(lyapunov_exponents(net, count=3, horizon=30, transient=5, trajectories=2).exponents)
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)
