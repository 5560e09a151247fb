"""Fisher memory of any network: against a naive twin, closed forms, simulations with noise, and the vector measure."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
import mnemoscope.measures.fisher.network as network_module
from mnemoscope.core.errors import UserError
from mnemoscope.measures.dynamics import Dynamics, Jacobians
from mnemoscope.measures.fisher.linearised import information, propagate
from mnemoscope.measures.fisher.network import network_fisher_memory
from mnemoscope.measures.fisher.noise import Noise, unit_groups
from mnemoscope.measures.fisher.vector import fisher_memory
from mnemoscope.measures.trajectory import Path, drive


def linear(W: np.ndarray, U: np.ndarray) -> nn.Module:
    layer = ms.nn.LinearRNN(U.shape[1], len(W), bias=False).double()
    layer.weight_hh_l0, layer.weight_ih_l0 = torch.from_numpy(W), torch.from_numpy(U)
    return layer


def naive(Ws: list[np.ndarray], vs: list[np.ndarray], noise: float) -> np.ndarray:
    """J(k) by its definition, from Jacobians in the order of time."""
    size, steps = len(Ws[0]), len(Ws)
    products = [np.eye(size)]
    for W in Ws[::-1][: steps - 1]:
        products.append(products[-1] @ W)
    C = noise * sum(P @ P.T for P in products)
    signals = [P @ v for P, v in zip(products, vs[::-1], strict=True)]
    return np.array([s @ np.linalg.solve(C, s) for s in signals])


def random_matrices(size: int, inputs: int, radius: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(size, size))
    return W * radius / np.abs(np.linalg.eigvals(W)).max(), rng.normal(size=(size, inputs))


@pytest.mark.parametrize(("radius", "noise", "horizon"), [(0.5, 1.0, 30), (0.9, 0.01, 7), (1.3, 4.0, 12)])
def test_linear_network_is_its_definition(radius, noise, horizon):
    W, U = random_matrices(9, 3, radius, seed=1)
    u = np.array([1.0, -2.0, 0.5])
    found = network_fisher_memory(linear(W, U), u, noise=noise, horizon=horizon)
    np.testing.assert_allclose(found.curve, naive([W] * horizon, [U @ u] * horizon, noise), rtol=1e-9)
    assert found.linear
    assert found.stderr == 0
    assert found.total == pytest.approx(found.curve.sum(), rel=1e-12)


@pytest.mark.parametrize("horizon", [None, 25])
def test_linear_network_is_the_vector_measure(horizon):
    W, U = random_matrices(8, 1, 0.8, seed=2)
    found = network_fisher_memory(linear(W, U), [1.0], noise=0.3, horizon=horizon)
    wanted = fisher_memory(W, U[:, 0], noise=0.3, horizon=horizon)
    assert found.total == pytest.approx(wanted.total, rel=1e-10)
    lags = min(len(found.curve), len(wanted.curve))
    np.testing.assert_allclose(found.curve[:lags], wanted.curve[:lags], atol=1e-10 * wanted.total)


@pytest.mark.parametrize("gain", [0.7, 1.0, 1.2])
def test_delay_line_has_its_closed_form(gain):
    N, k = 40, np.arange(40)
    found = network_fisher_memory(linear(np.diag(np.full(N - 1, gain**0.5), -1), np.eye(N)[:, :1]))
    wanted = 1 / (k + 1) if gain == 1 else gain**k * (gain - 1) / (gain ** (k + 1) - 1)
    np.testing.assert_allclose(found.curve[:N], wanted, rtol=1e-9)
    assert found.settled
    # A horizon that ends within the line is another question, and has not settled.
    assert not network_fisher_memory(
        linear(np.diag(np.full(N - 1, gain**0.5), -1), np.eye(N)[:, :1]), horizon=9
    ).settled


def test_covariance_of_condition_1e24_keeps_its_digits():
    # The last d = 0.2 row with beta = 0 of Kerg's Table 5, whose true value starts 20.83706.
    W = np.diag(np.full(100, 0.2)) + np.diag(np.full(99, 1.05), -1)
    state, entry = torch.from_numpy(W)[None, None], torch.eye(100, dtype=torch.float64)[None, None, :, :1]
    found = propagate([Jacobians(state, entry)] * 200, torch.eye(100, dtype=torch.float64), 1, until_settled=False)
    assert found.factor is not None
    assert information(found.answers(), np.ones(1)).sum() == pytest.approx(20.83706, abs=5e-6)


def test_depth_makes_one_larger_linear_network():
    layer = ms.nn.LinearRNN(2, 3, num_layers=2, bias=False).double()
    V1, V2, U1, U2 = (
        getattr(layer, name).detach().numpy()
        for name in ("weight_hh_l0", "weight_hh_l1", "weight_ih_l0", "weight_ih_l1")
    )
    W = np.block([[V1, np.zeros((3, 3))], [U2 @ V1, V2]])
    v = np.concatenate([U1, U2 @ U1]) @ [0.6, 0.8]
    found = network_fisher_memory(layer, [0.6, 0.8], horizon=20)
    np.testing.assert_allclose(found.curve, naive([W] * 20, [v] * 20, 1.0), rtol=1e-9)


def test_nonlinear_network_is_its_definition_along_its_trajectory():
    layer = ms.nn.GRU(2, 4).double()
    found = network_fisher_memory(layer, [1.0, 0.0], horizon=15, trajectories=1, washout=0, seed=5)
    x = torch.randn(15, 1, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    state, Ws, vs = layer.init_state(1), [], []
    for step in x:
        by_state, by_input = torch.autograd.functional.jacobian(
            lambda h, x_t: layer.step(x_t, h[None, None])[1].flatten(), (state.flatten(), step)
        )
        Ws.append(by_state.numpy())
        vs.append(by_input.squeeze(1).numpy()[:, 0])
        state = layer.step(step, state)[1].detach()
    np.testing.assert_allclose(found.curve, naive(Ws, vs, 1.0), rtol=1e-10)


def test_small_noise_simulations_agree():
    """Mean and covariance of 200,000 noisy runs of a tanh network, by finite differences and by counting."""
    layer = ms.nn.RNN(1, 2).double()
    layer.weight_hh_l0 = torch.tensor([[0.9, -0.5], [0.6, 0.7]])
    layer.weight_ih_l0 = torch.tensor([[0.8], [-0.3]])
    steps, noise, runs = 6, 1e-4, 200_000
    found = network_fisher_memory(layer, [1.0], noise=noise, horizon=steps, trajectories=1, washout=0, seed=3)
    x = torch.randn(steps, 1, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    z = noise**0.5 * torch.randn(steps, runs, 2, generator=generator, dtype=torch.float64)

    def end(lag: int, push: float) -> torch.Tensor:
        h = layer.init_state(runs)
        with torch.no_grad():
            for t in range(steps):
                shift = push if t == steps - 1 - lag else 0.0
                h = layer.step((x[t] + shift).expand(runs, 1), h)[1] + z[t]
        return h[0]

    covariance = torch.cov(end(0, 0.0).T)
    for lag in range(steps):
        moved = ((end(lag, 1e-3) - end(lag, -1e-3)) / 2e-3).mean(0)
        # The standard error of a quadratic form of a covariance from n runs is sqrt(2/n) of it: 0.3 %.
        assert float(moved @ torch.linalg.solve(covariance, moved)) == pytest.approx(found.curve[lag], rel=0.015)


def test_best_direction_is_the_best():
    layer = ms.nn.LSTM(3, 5)
    options = {"horizon": 20, "trajectories": 3, "seed": 1}
    best = network_fisher_memory(layer, **options)
    assert np.linalg.norm(best.direction) == pytest.approx(1)
    again = network_fisher_memory(layer, best.direction, **options)
    assert again.total == pytest.approx(best.total, rel=1e-12)
    for u in np.random.default_rng(0).normal(size=(20, 3)):
        assert network_fisher_memory(layer, u / np.linalg.norm(u), **options).total <= best.total * (1 + 1e-12)


def test_best_direction_of_a_linear_network_is_the_best():
    W, U = random_matrices(6, 4, 0.7, seed=4)
    best = network_fisher_memory(linear(W, U))
    _, vectors = np.linalg.eigh(U.T @ fisher_memory(W, U[:, 0]).spatial @ U)
    assert abs(vectors[:, -1] @ best.direction) == pytest.approx(1, rel=1e-9)


def test_information_about_the_noise_sums_to_the_units():
    """With the identity as input map every direction is noise's own: the totals of all directions sum to N / noise."""

    class Outside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(5, 5)

        def forward(self, x, h):
            return torch.tanh(self.inner(h)) + x

    cell = ms.adapt(Outside(), kind="cell", init_state=lambda batch: torch.zeros(batch, 5))
    totals = [network_fisher_memory(cell, u, noise=0.2, horizon=30, trajectories=2).total for u in np.eye(5)]
    assert sum(totals) == pytest.approx(5 / 0.2, rel=1e-10)


@pytest.mark.parametrize("name", [name for name in ms.nn.names("recurrent") if not ms.nn.get(name).grows])
def test_every_network_settles_or_says_that_it_does_not(name):
    cls, few = ms.nn.get(name), {"ntm": {"memory": (3, 2)}, "matntm": {"memory": (3, 2, 2)}}
    vectors = isinstance(cls.small_sizes["hidden_size"], int)
    sizes = {"input_size": 2, "hidden_size": 4} if vectors else cls.small_sizes
    layer = ms.nn.create(name, **sizes, **few.get(name, {}))
    before = {key: value.clone() for key, value in layer.state_dict().items()}
    found = network_fisher_memory(layer, trajectories=2, longest=48, washout=8)
    assert np.isfinite(found.curve).all()
    assert (found.curve >= 0).all()
    assert found.horizon == len(found.curve)
    assert found.settled or found.horizon == 48
    assert found.settled == (not any("not settled" in each for each in found.assumptions))
    assert layer.training
    assert all(torch.equal(value, before[key]) for key, value in layer.state_dict().items())


def test_settled_curve_does_not_change_with_a_longer_horizon():
    layer = ms.nn.RNN(2, 6)
    found = network_fisher_memory(layer, trajectories=1, longest=200)
    longer = network_fisher_memory(layer, found.direction, trajectories=1, horizon=200)
    assert found.settled
    assert found.horizon < 200
    np.testing.assert_allclose(longer.curve[: found.horizon], found.curve, rtol=1e-8, atol=1e-12)
    assert longer.total == pytest.approx(found.total, rel=1e-9)


def test_orthogonal_network_cannot_settle():
    layer = ms.nn.LinearRNN(1, 6, init="random", bias=False)
    found = network_fisher_memory(layer, longest=50)
    assert not found.settled
    strength = float(layer.weight_ih_l0.detach().square().sum())
    np.testing.assert_allclose(found.curve, strength / 50, rtol=1e-5)
    assert found.total == pytest.approx(strength, rel=1e-5)


@pytest.mark.parametrize("module", [nn.LSTMCell(2, 3), nn.GRU(2, 3), nn.LSTM(2, 3, num_layers=2)])
def test_modules_of_torch_are_adapted(module):
    found = network_fisher_memory(module, horizon=6, trajectories=2)
    assert found.size == {"LSTMCell": 6, "GRU": 3, "LSTM": 12}[type(module).__name__]
    assert found.total > 0


def test_adapted_lstm_is_ours():
    ours = ms.nn.LSTM(2, 3)
    theirs = nn.LSTM(2, 3)
    theirs.load_state_dict(ours.state_dict())
    options = {"horizon": 10, "trajectories": 2}
    a, b = network_fisher_memory(ours, **options), network_fisher_memory(theirs, **options)
    np.testing.assert_allclose(a.curve, b.curve, rtol=1e-12)


def test_same_seed_same_numbers_and_error_falls_with_trajectories():
    layer = ms.nn.RNN(1, 4)
    few, again = (network_fisher_memory(layer, trajectories=8, horizon=20, seed=7) for _ in range(2))
    assert np.array_equal(few.curve, again.curve)
    many = network_fisher_memory(layer, trajectories=800, horizon=20, seed=8)
    assert many.stderr < few.stderr / 4
    assert abs(few.total - many.total) < 5 * few.stderr


def test_result_prints_plots_and_exports():
    found = network_fisher_memory(ms.nn.RNN(1, 4), trajectories=3)
    assert str(found).startswith("Fisher memory ")
    assert "±" in str(found)
    assert found.plot().to_dict()["layer"]
    assert found.to_dict()["total"] == found.total
    assert "Ganguli" in found._repr_html_()


class Detached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.RNNCell(2, 3)

    def forward(self, x, h):
        return self.inner(x, h).detach()


class Rounded(Detached):
    def forward(self, x, h):
        return torch.round(8 * self.inner(x, h)) / 8


def cell(module: nn.Module) -> nn.Module:
    return ms.adapt(module, kind="cell", init_state=lambda batch: torch.zeros(batch, 3))


def broken() -> nn.Module:
    layer = ms.nn.RNN(2, 3)
    with torch.no_grad():
        layer.weight_hh_l0[0, 0] = torch.nan
    return layer


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (
            lambda: ms.nn.RNN(2, 3, bidirectional=True),
            {},
            "network_fisher_memory needs a causal network.*bidirectional",
        ),
        (lambda: cell(Detached()), {}, "network_fisher_memory needs a differentiable step, and this one is not"),
        (lambda: cell(Rounded()), {}, "network_fisher_memory needs a differentiable step, and this one is not"),
        (broken, {}, "every weight of RNN must be finite, got NaN or inf in weight_hh_l0$"),
        (lambda: ms.nn.RNN(2, 3), {"direction": [1.0]}, "direction must be of length 2, got 1$"),
        (lambda: ms.nn.RNN(2, 3), {"direction": [0.0, 0.0]}, "direction must be a vector that is not zero"),
        (lambda: ms.nn.RNN(2, 3), {"noise": 0.0}, "noise must be a positive number, got 0.0$"),
        (lambda: ms.nn.RNN(2, 3), {"horizon": 0}, "horizon must be a positive integer, got 0$"),
        (lambda: ms.nn.RNN(2, 3), {"scale": -1.0}, "scale must be a number of at least 0, got -1.0$"),
        (lambda: ms.nn.RNN(2, 3), {"horizon": 10**12}, "network_fisher_memory over 1000000000000 steps.*would fit"),
        (lambda: nn.Linear(2, 3), {}, "network_fisher_memory needs a network of kind 'recurrent', got Linear"),
        (lambda: "rnn", {}, "network must be a torch.nn.Module, got a str$"),
        (
            lambda: linear(1.5 * np.eye(2), np.ones((2, 1))),
            {},
            "network_fisher_memory needs a stable network .* spectral radius 1.5; give a horizon",
        ),
    ],
)
def test_mistakes_are_said_in_one_line(build, options, message):
    with pytest.raises(ValueError, match="^" + message) as caught:
        network_fisher_memory(build(), **options)
    assert "\n" not in str(caught.value)


def test_chaotic_network_ends_where_its_digits_do():
    layer = ms.nn.RNN(1, 48, bias=False)
    layer.weight_hh_l0 = 3 * torch.randn(48, 48) / 48**0.5
    options = {"trajectories": 2, "scale": 0.1, "direction": [1.0]}
    found = network_fisher_memory(layer, **options)
    assert not found.settled
    assert found.horizon < 200
    assert any(each.startswith("rounding may have changed") for each in found.assumptions)
    with pytest.raises(
        ValueError, match=r"within \d+ steps that no digit of its memory is left; horizon=\d+ would"
    ) as caught:
        network_fisher_memory(layer, **options, horizon=300)
    offered = int(str(caught.value).rpartition("horizon=")[2].split()[0])
    assert network_fisher_memory(layer, **options, horizon=offered).total > 0


def test_expanding_linear_network_is_left_to_the_vector_measure():
    W, U = random_matrices(5, 1, 3.0, seed=6)
    found = network_fisher_memory(linear(W, U), [1.0], horizon=60)
    wanted = fisher_memory(W, U[:, 0], horizon=60)
    assert found.digits == wanted.digits
    np.testing.assert_array_equal(found.curve, wanted.curve)


def test_noise_and_reading_are_those_of_the_readout_state():
    """An LSTM of which only h is read, and has noise: the definition with the full Jacobians between two selections."""
    layer = ms.nn.LSTM(1, 3).double()
    layer.readout_state = lambda state: state[0]
    found = network_fisher_memory(layer, [1.0], horizon=8, trajectories=1, washout=0, seed=2)
    assert found.size == 3
    x = torch.randn(8, 1, 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    flow = Dynamics.of(layer)
    parts = Path(flow, x, flow.drive(x, flow.start(1))).jacobians(0, 8)
    R = np.eye(3, 6)
    P, C, signals = R, np.zeros((3, 3)), []
    for A, B in zip(parts.state[:, 0].numpy()[::-1], parts.input[:, 0].numpy()[::-1], strict=True):
        C = C + P @ R.T @ R @ P.T
        signals.append(P @ B[:, 0])
        P = P @ A
    np.testing.assert_allclose(found.curve, [s @ np.linalg.solve(C, s) for s in signals], rtol=1e-9)


def test_states_that_overflow_are_named():
    class Explosive(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.tensor(3.0))

        def forward(self, x, h):
            return self.gain * h + h.sin() * h**2 + x

    net = ms.adapt(Explosive(), kind="cell", input_size=2, init_state=lambda batch: torch.ones(batch, 2))
    with pytest.raises(ValueError, match="^network_fisher_memory needs states that stay finite, .* take a shorter"):
        network_fisher_memory(net, horizon=2000)


class Rescaled(Dynamics):
    """The same function in other units: every number of the state multiplied, both parts of a complex one alike."""

    def factors(self) -> torch.Tensor:
        groups = unit_groups(self.network.init_state(1))
        return (1000.0 ** torch.linspace(-1, 1, int(groups.max()) + 1, dtype=torch.float64))[groups]

    def _times(self, state, factors):
        return self.network.unflatten_state(self.network.flatten_state(state) * factors, state)

    def start(self, batch):
        return self._times(self.network.init_state(batch), self.factors())

    def probe_states(self, batch, generator):
        return self._times(super().probe_states(batch, generator), self.factors())


def rescaled(flow: Dynamics) -> Rescaled:
    found = Rescaled(flow.network, flow.original, flow.step, flow.what)
    factors = found.factors()

    def step(x, state):
        y, after = flow.step(x, found._times(state, 1 / factors))
        return y, found._times(after, factors)

    return replace(found, step=step)


SIZES = {"ntm": 2, "s4": 2, "s4d": 2, "mamba2": 2, "relrnn": 4, "rellstm": 4}
"""Networks whose states are many times their hidden size."""


def registry_networks() -> list[str]:
    names = []
    for name in ms.nn.registry.NETWORKS:
        cls = ms.nn.registry.NETWORKS[name]
        if getattr(cls, "kind", None) == "recurrent" and not getattr(cls, "grows", False) and "mat" not in name:
            names.append(name)
    return names


@pytest.mark.parametrize("name", registry_networks())
def test_relative_noise_does_not_see_the_scale_of_units(name):
    torch.manual_seed(3)
    flow = Dynamics.of(ms.nn.create(name, 1, SIZES.get(name, 4)))
    if flow.size > 200:
        pytest.skip("a state of hundreds of numbers is the same case, and takes seconds")
    options = {"noise": "relative", "horizon": 12, "trajectories": 2, "washout": 10}
    try:
        found = network_fisher_memory(flow, **options)
    except UserError:  # of what grows no digit is left: so it is in other units
        with pytest.raises(UserError, match="no digit|constant|overflow"):
            network_fisher_memory(rescaled(flow), **options)
        return
    other = network_fisher_memory(rescaled(flow), **options)
    np.testing.assert_allclose(other.curve, found.curve, rtol=1e-5, atol=1e-9 * found.curve.max(initial=0))


def test_relative_and_mixed_noise_are_their_definition():
    """Against covariances of the states themselves, in the order of time, with a unit that is constant left out."""
    layer = ms.nn.RNN(1, 5).double()
    with torch.no_grad():
        layer.weight_hh_l0[4], layer.weight_ih_l0[4] = 0, 0
    flow = Dynamics.of(layer)
    options = {"horizon": 9, "trajectories": 1, "washout": 20, "seed": 4}
    path = drive(flow, steps=9, scale=1.0, trajectories=1, washout=20, generator=torch.Generator().manual_seed(4))
    states = torch.cat([flow.flatten(state) for state in path.states]).numpy()[:, :4]
    covariance = np.cov(states.T, bias=True)
    jacobians = path.jacobians(0, 9)
    Ws, vs = jacobians.state[:, 0, :4, :4].numpy(), jacobians.input[:, 0, :4, 0].numpy()
    for kind, N in (
        ("relative", np.diag(np.diag(covariance))),
        ("mixture", 0.9 * covariance + 0.1 * np.diag(np.diag(covariance))),
    ):
        found = network_fisher_memory(layer, [1.0], noise=kind, **options)
        L = np.linalg.cholesky(N)
        inverse = np.linalg.inv(L)
        wanted = naive([inverse @ W @ L for W in Ws], [inverse @ v for v in vs], 1.0)
        np.testing.assert_allclose(found.curve, wanted, rtol=1e-9)
        assert found.size == 4


def test_duplicated_units_average_their_own_noise_and_not_shared_noise():
    torch.manual_seed(0)
    one = ms.nn.RNN(1, 6).double()
    two = ms.nn.RNN(1, 12).double()
    with torch.no_grad():
        two.weight_hh_l0.copy_(torch.cat([torch.cat([one.weight_hh_l0, 0 * one.weight_hh_l0], 1)] * 2))
        for name in ("weight_ih_l0", "bias_l0") if hasattr(one, "bias_l0") else ("weight_ih_l0",):
            getattr(two, name).copy_(torch.cat([getattr(one, name)] * 2))
    totals = {
        (kind, len(net.weight_hh_l0)): network_fisher_memory(net, noise=kind, horizon=20, trajectories=2).total
        for kind in ("relative", "mixture")
        for net in (one, two)
    }
    assert totals["relative", 12] > 1.3 * totals["relative", 6]
    assert totals["mixture", 12] < 1.2 * totals["mixture", 6]


@pytest.mark.parametrize(
    ("names", "size"),
    [
        (("lstm", "nnrnn", "gru"), 48),
        pytest.param(
            ("lstm", "gru", "rnn", "nnrnn", "scornn", "goru", "mirnn", "lru", "urnn"), 192, marks=pytest.mark.slow
        ),
    ],
)
def test_a_subspace_covers_what_the_whole_covariance_gives(names, size, monkeypatch):
    """The value is below the dense one, and the dense one within what is said to be missing and the scatter."""
    cases = []
    for name in names:
        for kind in (1.0, "relative", "mixture"):
            torch.manual_seed(len(name))
            flow = Dynamics.of(ms.nn.create(name, 1, size // 2 if name in ("lstm", "lru", "urnn") else size))
            options = {"noise": kind, "longest": 48, "trajectories": 2, "seed": len(name)}
            monkeypatch.setattr(network_module, "DENSE", 512)
            dense = network_fisher_memory(flow, **options)
            monkeypatch.setattr(network_module, "DENSE", 8)
            found = network_fisher_memory(flow, **options, krylov=3)
            assert found.total <= dense.total * (1 + 1e-9)
            cases.append(dense.total <= found.total * (1 + 1.05 * found.missing + 1e-9) or found.missing > 0.5)
            assert found.horizon == dense.horizon
            whole = network_fisher_memory(flow, **options)
            np.testing.assert_allclose(whole.total, dense.total, rtol=2e-2)
    assert np.mean(cases) >= 0.93


def test_windows_are_said():
    found = network_fisher_memory(ms.nn.create("nnrnn", 1, 16), noise="relative", longest=64, trajectories=2)
    assert not found.settled
    assert found.horizon == 64
    assert found.half_life <= 63
    assert network_fisher_memory(ms.nn.LSTM(1, 4), longest=256, trajectories=2).settled


@pytest.mark.parametrize("noise", ["loud", -1.0, 0])
def test_noise_is_a_variance_or_a_shape(noise):
    with pytest.raises(UserError, match="noise must be"):
        network_fisher_memory(ms.nn.LSTM(1, 4), noise=noise)


def test_stability_that_floats_deny_is_certified():
    """A delay line with feedback, strongly amplifying: of radius .927, where floats find 1.2."""
    W = np.diag(np.full(59, 2.0), -1)
    W[0, -1] = 0.927**60 / 2.0**59
    layer = ms.nn.LinearRNN(1, 60).double()
    entry = np.zeros(60)
    entry[0] = 1.0
    layer.weight_hh_l0 = torch.tensor(W)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.tensor(entry)[:, None])
    found = ms.measures.network_fisher_memory(layer, horizon=None)
    assert found.total == pytest.approx(ms.measures.fisher_memory(W, entry).total, rel=1e-6)


def test_noise_on_some_numbers_of_a_state_is_the_product_with_its_rows():
    generator = torch.Generator().manual_seed(0)
    drawn = {"generator": generator, "dtype": torch.float64}
    places = torch.tensor([8, 0, 2, 3])
    rows = torch.eye(9, dtype=torch.float64)[places]
    noise = Noise(places, 9, torch.rand(4, **drawn) + 0.5)
    assert torch.equal(noise.rows, rows)
    states, units, root = torch.randn(3, 2, 9, **drawn), torch.randn(3, 2, 4, **drawn), torch.diag(noise.scale)
    for found, wanted in (
        (noise.read(states), states @ rows.mT @ root.inverse()),
        (noise.enter(units), units @ root @ rows),
        (noise.read_back(units), units @ root.inverse() @ rows),
        (noise.enter_back(states), states @ rows.mT @ root),
    ):
        torch.testing.assert_close(found, wanted)
