"""Memory capacity: exact values against many digits, estimates against exact values, chance, and another library."""

import copy

import mpmath as mp
import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.capacity import linear as capacity_exact
from mnemoscope.measures.capacity.estimate import count, longest_lag, polynomials, products
from mnemoscope.measures.capacity.memory import memory_capacity
from mnemoscope.measures.capacity.readout import GramReadout, Readout
from mnemoscope.measures.registry import MEASURES
from mnemoscope.theory import capacity_from_eigenvalues, ring_capacity


def orthogonal(random, size):
    return np.linalg.qr(random.normal(size=(size, size)))[0]


def leverages(W, v, lags, digits=150):
    """Return the leverages of the columns of [v, W v, .., W^(lags-1) v], with many digits."""
    with mp.workdps(digits):
        matrix, column = mp.matrix(W.tolist()), mp.matrix(v.tolist())
        columns = []
        for _ in range(lags):
            columns.append(column)
            column = matrix * column
        inverse = sum((c * c.T for c in columns[1:]), columns[0] * columns[0].T) ** -1
        return np.array([float((c.T * inverse * c)[0]) for c in columns])


def naive(W, v, lags, steps=20_000, ridge=1e-6):
    """Regress past inputs on simulated states, as it is usually done."""
    random = np.random.default_rng(0)
    u = random.uniform(-1, 1, size=steps)
    x, states = np.zeros(len(v)), []
    for each in u:
        x = W @ x + v * each
        states.append(x)
    X = np.array(states)[lags:]
    Z = np.stack([u[lags - k : steps - k] for k in range(lags)], axis=1)
    weights = np.linalg.solve(X.T @ X + ridge * np.eye(len(v)), X.T @ Z)
    return 1 - ((Z - X @ weights) ** 2).mean(axis=0) / (Z**2).mean(axis=0)


class TestExact:
    @pytest.mark.parametrize("seed", range(3))
    def test_orthogonal_at_radius_099(self, seed):
        random = np.random.default_rng(seed)
        W, v = 0.99 * orthogonal(random, 50), random.normal(size=50)
        found = memory_capacity((W, v))
        assert found.total == found.rank == 50
        assert found.status == "exact"
        assert found.digits >= 12
        assert found.curve.sum() == pytest.approx(50, rel=1e-11)
        assert naive(W, v, 100).sum() < 46  # what is usually done: a regression on 2 N lags

    def test_every_lag_against_many_digits(self):
        random = np.random.default_rng(5)
        W, v = 0.9 * orthogonal(random, 12), random.normal(size=12)
        found = memory_capacity((W, v))
        # 400 columns are the whole sum: what is left out is below 0.9^800.
        np.testing.assert_allclose(found.curve[:60], leverages(W, v, 400, 60)[:60], rtol=1e-11)

    @pytest.mark.parametrize("size", [30, 80])
    def test_rotated_jordan_block(self, size):
        """Every eigenvalue is wrong in most of its digits, and the curve is not."""
        random = np.random.default_rng(size)
        Q = orthogonal(random, size)
        W = Q @ (0.3 * np.eye(size) + np.diag(np.full(size - 1, 0.65), -1)) @ Q.T
        found = memory_capacity((W, Q[:, 0]))
        assert found.total == size
        assert found.digits >= 8
        np.testing.assert_allclose(
            found.curve[: 2 * size], capacity_from_eigenvalues([0.3] * size, 2 * size), atol=1e-10
        )

    def test_both_methods_agree(self, monkeypatch):
        random = np.random.default_rng(1)
        W, v = random.normal(size=(40, 40)), random.normal(size=40)
        W *= 0.98 / np.abs(np.linalg.eigvals(W)).max()
        polynomial = memory_capacity((W, v), lag=200)
        monkeypatch.setattr(capacity_exact, "ALWAYS_EXACT", 0)
        eigenvalues = memory_capacity((W, v), lag=200)
        np.testing.assert_allclose(polynomial.curve, eigenvalues.curve, atol=1e-11)
        assert np.abs(polynomial.curve - eigenvalues.curve).max() < 10.0**-eigenvalues.digits

    def test_floats_that_disagree_with_themselves_are_replaced(self, monkeypatch):
        random = np.random.default_rng(2)
        size = 90
        Q = orthogonal(random, size)
        triangle = 0.2 * np.eye(size) + np.tril(np.full((size, size), 0.005), -2) + np.diag(np.full(size - 1, 1.05), -1)
        W = Q @ triangle @ Q.T
        v = Q[:, 0]
        right = memory_capacity((W, v), lag=150)
        assert right.digits >= 12
        monkeypatch.setattr(capacity_exact, "MOST_EXACT", 0)
        floats = memory_capacity((W, v), lag=150)
        assert floats.digits < 10
        assert np.abs(floats.curve - right.curve).max() < 10.0**-floats.digits

    def test_ring(self):
        W = 0.97 * np.roll(np.eye(20), 1, axis=0)
        np.testing.assert_allclose(
            memory_capacity((W, np.eye(20)[3]), lag=99).curve, ring_capacity(20, 0.97, 100), rtol=1e-12
        )

    @pytest.mark.parametrize("weight", [0.1, 1.0, 3.0])
    def test_delay_line_holds_its_length_whatever_its_input(self, weight):
        found = memory_capacity((weight * np.diag(np.ones(39), -1), np.random.default_rng(0).normal(size=40)))
        assert found.total == 40
        np.testing.assert_allclose(found.curve, 1, atol=1e-13)

    @pytest.mark.parametrize(
        ("name", "expected"),
        [("scalar", 1), ("repeated", 3), ("hidden", 20), ("edge", 49), ("many", 45), ("twins", 3), ("weak", 3)],
    )
    def test_what_the_input_does_not_reach(self, name, expected):
        random = np.random.default_rng(8)
        Q, small = orthogonal(random, 50), orthogonal(random, 6)
        even = np.linspace(-0.9, 0.9, 50)
        twin = np.kron(np.eye(2), 0.3 * random.normal(size=(3, 3)))
        W, v = {
            "scalar": (0.9 * np.eye(4), np.ones(4)),
            "repeated": (small @ np.diag([0.5, 0.5, 0.3, 0.2, 0.2, 0.2]) @ small.T, random.normal(size=6)),
            "hidden": (Q @ np.diag(even) @ Q.T, Q[:, :20].sum(axis=1)),
            "edge": (Q @ np.diag(even) @ Q.T, Q[:, :-1].sum(axis=1)),
            "many": (Q @ np.diag(np.r_[np.linspace(-0.9, 0.9, 45), [0.9] * 5]) @ Q.T, random.normal(size=50)),
            "twins": (small @ twin @ small.T, small @ np.ones(6)),
            "weak": (np.diag([0.5, 0.4, 0.3]) + 1e-10 * np.diag([1.0, 1.0], -1), np.eye(3)[0]),
        }[name]
        found = memory_capacity((W, v))
        assert found.rank == found.total == expected
        assert found.curve.sum() == pytest.approx(expected, rel=1e-10)
        assert found.digits >= 8

    def test_an_unstable_part_that_is_not_reached_does_not_matter(self):
        W = np.diag([0.5, 3.0])
        assert memory_capacity((W, [1.0, 0.0])).total == 1
        assert memory_capacity((W, [0.0, 0.0])).total == 0

    @pytest.mark.parametrize("radius", [0.8, 1.0, 1.2])
    def test_horizon_against_many_digits(self, radius):
        random = np.random.default_rng(4)
        W, v = radius * orthogonal(random, 8), random.normal(size=8)
        found = memory_capacity((W, v), horizon=25)
        np.testing.assert_allclose(found.curve, leverages(W, v, 25), rtol=1e-12)
        assert found.total == 8
        np.testing.assert_array_equal(memory_capacity((W, v), horizon=6).curve, np.ones(6))

    def test_long_horizon_is_the_stationary_value(self):
        random = np.random.default_rng(4)
        W, v = 0.8 * orthogonal(random, 8), random.normal(size=8)
        np.testing.assert_allclose(
            memory_capacity((W, v), horizon=200, lag=40).curve, memory_capacity((W, v), lag=40).curve, rtol=1e-12
        )

    @pytest.mark.parametrize("horizon", [None, 30])
    def test_readout_noise_against_the_definition(self, horizon):
        random = np.random.default_rng(6)
        W, v = 0.8 * orthogonal(random, 7), random.normal(size=7)
        found = memory_capacity((W, v), noise=0.01, scale=2.0, horizon=horizon)
        columns = [v * 2 / np.sqrt(3)]
        for _ in range((horizon or 400) - 1):
            columns.append(W @ columns[-1])
        K = np.stack(columns, axis=1)
        curve = (K * np.linalg.solve(K @ K.T + 0.01 * np.eye(7), K)).sum(axis=0)
        np.testing.assert_allclose(found.curve, curve[: len(found.curve)], rtol=1e-10)
        assert found.total == pytest.approx(curve.sum(), rel=1e-10)

    def test_little_noise_is_no_noise(self):
        W, v = 0.8 * orthogonal(np.random.default_rng(6), 7), np.ones(7)
        assert memory_capacity((W, v), noise=1e-14).total == pytest.approx(7, rel=1e-8)

    def test_torch_and_lists_are_arrays_too(self):
        W = np.array([[0.5, 0.2], [0.0, 0.3]])
        first = memory_capacity((W, [0.0, 1.0]))
        second = memory_capacity((torch.tensor(W), torch.tensor([0.0, 1.0])))
        np.testing.assert_array_equal(first.curve, second.curve)


class TestNetworks:
    @pytest.mark.parametrize("layers", [1, 2])
    def test_linear_networks_are_found_to_be_linear(self, layers):
        torch.manual_seed(0)
        network = ms.nn.create("linear-rnn", input_size=3, hidden_size=6, num_layers=layers)
        found = memory_capacity(network, direction=(0.0, 1.0, 1.0))
        assert found.status == "exact"
        assert found.total == 6 * layers
        if layers == 1:
            W = network.weight_hh_l0.detach().double().numpy()
            v = network.weight_ih_l0.detach().double().numpy() @ [0.0, 1.0, 1.0]
            np.testing.assert_allclose(found.curve, memory_capacity((W, v)).curve, atol=1e-14)

    def test_simulated_linear_networks_agree_with_the_exact_value(self):
        random = np.random.default_rng(3)
        W, v = 0.9 * orthogonal(random, 30), random.normal(size=30)
        exact = memory_capacity((W, v))
        found = memory_capacity((W, v), exact=False, lag=120)
        assert abs(found.total - exact.total) < 4 * found.stderr + 0.05
        np.testing.assert_allclose(found.curve, exact.curve[:121], atol=0.05)

    def test_a_degree_above_one_finds_nothing_in_linear_networks(self):
        random = np.random.default_rng(3)
        W, v = 0.7 * orthogonal(random, 10), random.normal(size=10)
        found = memory_capacity((W, v), exact=False, degree=3, lag=15)
        assert found.by_degree[0] == pytest.approx(memory_capacity((W, v), lag=15).curve.sum(), abs=0.3)
        np.testing.assert_allclose(found.by_degree[1:], 0, atol=0.3)

    @pytest.mark.parametrize("distribution", ["uniform", "gaussian"])
    def test_known_nonlinear_memory(self, distribution):
        """A state of known products: u(t-1) u(t-2), the quadratic polynomial of u(t), and u(t-1)."""

        class Products(torch.nn.Module):
            input_size, hidden_size = 1, 4

            def forward(self, x, h):
                u, one, two = x[:, 0], h[:, 0], h[:, 1]
                return torch.stack([u, one, one * two, u**2], dim=1)

        found = memory_capacity(ms.adapt(Products(), kind="cell"), degree=3, lag=4, distribution=distribution)
        # The third unit is u(t-1) u(t-2); the fourth is u(t)^2, up to a constant a polynomial of the basis.
        np.testing.assert_allclose(found.by_degree, [2, 2, 0], atol=0.15)
        np.testing.assert_allclose(found.curve, [1, 1, 0, 0, 0], atol=0.02)
        np.testing.assert_allclose(found.profile[1], [1, 0, 1, 0, 0], atol=0.08)

    def test_bound_and_sweep(self):
        torch.manual_seed(1)
        network = ms.nn.create("rnn", input_size=1, hidden_size=12)
        found = memory_capacity(network, degree=3, lag=12, scales=(0.05, 1.0, 6.0))
        assert found.size == 12
        assert (found.totals < 12 + 4 * found.stderr).all()
        assert found.totals_by_degree.shape == (3, 3)
        # Small inputs leave tanh linear; large ones exchange linear memory for nonlinear.
        linear = found.totals_by_degree[:, 0]
        assert linear[0] > linear[1] > linear[2]
        assert found.totals_by_degree[0, 2] < 1 < found.totals_by_degree[2, 2]

    def test_whole_capacity_of_a_network_with_fading_memory(self):
        """Dambre's theorem: all degrees together give the number of independent units."""
        torch.manual_seed(2)
        network = ms.nn.create("rnn", input_size=1, hidden_size=3).double()
        found = memory_capacity(network, degree=5, lag=8, scale=1.5, threshold=True)
        assert found.by_degree[0] < 2.95
        assert found.total == pytest.approx(3, abs=0.04)

    def test_many_products_of_high_degree_are_unbiased(self):
        """Products are large where states are: without weights, 1287 of them would add up to -0.2."""
        torch.manual_seed(2)
        network = ms.nn.create("rnn", input_size=1, hidden_size=3).double()
        found = [memory_capacity(network, degree=5, lag=8, seed=seed).by_degree[4] for seed in range(4)]
        assert abs(np.mean(found)) < 0.1

    def test_nothing_is_changed(self):
        network = ms.nn.create("lstm", input_size=2, hidden_size=5).train()
        before = copy.deepcopy(network.state_dict())
        first = memory_capacity(network, samples=1000, lag=10, seed=3)
        second = memory_capacity(network, samples=1000, lag=10, seed=3)
        np.testing.assert_array_equal(first.curve, second.curve)
        assert network.training
        assert all(torch.equal(a, b) for a, b in zip(before.values(), network.state_dict().values(), strict=True))
        assert first.total != memory_capacity(network, samples=1000, lag=10, seed=4).total

    def test_state_and_output(self):
        torch.manual_seed(0)
        network = torch.nn.LSTM(1, 4, batch_first=True)
        state = memory_capacity(network, samples=2000, lag=10)
        output = memory_capacity(network, samples=2000, lag=10, read="output")
        assert (state.size, output.size) == (8, 4)
        assert output.total < state.total + 3 * state.stderr

    @pytest.mark.parametrize("name", ["gru", "nnrnn", "urnn", "goru"])
    def test_other_networks(self, name):
        torch.manual_seed(0)
        network = ms.nn.create(name, input_size=2, hidden_size=6)
        found = memory_capacity(network, samples=2000, lag=30, washout=60)
        assert 0 < found.total < found.size + 4 * found.stderr

    def test_horizon_of_a_network(self):
        random = np.random.default_rng(0)
        W, v = orthogonal(random, 10), random.normal(size=10)
        exact = memory_capacity((W, v), horizon=25)
        found = memory_capacity((W, v), horizon=25, exact=False)
        assert found.total == pytest.approx(exact.total, abs=0.2)
        np.testing.assert_allclose(found.curve, exact.curve, atol=0.06)

    def test_a_curve_that_is_cut_short_says_so(self):
        W, v = 0.98 * orthogonal(np.random.default_rng(0), 20), np.ones(20)
        assert any("beyond lag 10" in each for each in memory_capacity((W, v), exact=False, lag=10).assumptions)
        short = memory_capacity((0.3 * W, v), exact=False, lag=60)
        assert len(short.assumptions) == 1


class TestEstimator:
    def test_states_that_know_nothing_give_nothing(self):
        random = np.random.default_rng(0)
        states = random.normal(size=(4, 200, 40)) @ random.normal(size=(40, 40))
        readout = Readout(states, 1e-13)
        found = readout.recovered(random.uniform(-1, 1, size=(4, 200, 3000))).mean(axis=0)
        # In-sample, 3000 targets would get 40 / 800 each; held out without correction, -40 / 600.
        assert abs(found.mean()) < 4 * found.std() / np.sqrt(3000)
        assert found.std() == pytest.approx(readout.chance, rel=0.1)

    @pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0])
    def test_shares_are_unbiased(self, share):
        random = np.random.default_rng(1)
        states = random.normal(size=(4, 150, 30))
        weights = random.normal(size=(30, 2000))
        weights /= np.linalg.norm(weights, axis=0)
        targets = np.sqrt(share) * states @ weights + np.sqrt(1 - share) * random.normal(size=(4, 150, 2000))
        found = Readout(states, 1e-13).recovered(targets).mean(axis=0)
        signal = share * (states**2).mean()  # of these states, not of their distribution
        realised = signal / (signal + 1 - share)
        assert found.mean() == pytest.approx(realised, abs=4 * found.std() / np.sqrt(2000) + 1e-3)

    def test_tiny_directions_of_the_states_count(self):
        random = np.random.default_rng(2)
        white = random.normal(size=(4, 300, 6))
        mixed = white * 10.0 ** -np.arange(0, 12, 2) @ orthogonal(random, 6)
        found = Readout(mixed, 1e-14).recovered(white).mean(axis=0)
        np.testing.assert_allclose(found, 1, atol=1e-6)

    def test_gram_matrices_recover_what_qr_recovers(self):
        """Down to directions of 1e-10 of the largest, which one Gram matrix in float64 would lose."""
        random = np.random.default_rng(3)
        white = random.normal(size=(4, 320, 8))
        states = white * np.logspace(0, -10, 8) @ orthogonal(random, 8) + 0.5
        weights = random.normal(size=(8, 40)) / np.sqrt(8)
        targets = np.concatenate([white, white @ weights + random.normal(size=(4, 320, 40))], axis=2)
        found = GramReadout(states.transpose(1, 0, 2).copy(), 4, 1e-13, targets)
        plain = Readout(states, 1e-13)
        np.testing.assert_allclose(found.recovered(targets)[:, :8], 1, atol=1e-4)
        np.testing.assert_allclose(found.recovered(targets), plain.recovered(targets), atol=0.01)
        assert found.chance == pytest.approx(plain.chance, rel=0.2)  # the intercept is an effective unit there

    def test_the_ridge_is_that_which_predicts_best(self):
        random = np.random.default_rng(4)
        white, sizes, mixed = random.normal(size=(200, 16, 12)), np.logspace(0, -9, 12), orthogonal(random, 12)
        guide = white.reshape(200, 4, 4, 12).swapaxes(0, 1).reshape(4, 800, 12)
        assert GramReadout(white * sizes @ mixed, 4, None, guide).regularisation <= 1e-8
        # A direction of 1e-7 that says the opposite in the part by which the ridge is chosen.
        white[:, :4, 8] *= -1
        assert GramReadout(white * sizes @ mixed, 4, None, guide[:, :, 8:9]).regularisation >= 1e-6

    def test_basis_is_orthonormal(self):
        for distribution, nodes in {
            "uniform": np.polynomial.legendre.leggauss(30),
            "gaussian": np.polynomial.hermite_e.hermegauss(30),
        }.items():
            points, weights = nodes
            values = polynomials(points[None], 6, distribution)[:, 0]
            np.testing.assert_allclose((values * weights / weights.sum()) @ values.T, np.eye(7), atol=1e-12)

    def test_products_are_all_there_and_distinct(self):
        found = products(3, 4, 9)
        assert len(found) == count(3, 4) == 35
        assert len({tuple(row) for row in found.tolist()}) == 35
        degrees = (found // 9).sum(axis=1)
        assert (degrees == 3).all()
        assert longest_lag(found, 9).max() == 4

    def test_threshold_leaves_only_what_is_significant(self):
        W, v = 0.5 * orthogonal(np.random.default_rng(0), 5), np.ones(5)
        found = memory_capacity((W, v), exact=False, threshold=True, lag=100)
        assert (found.curve >= 0).all()
        assert (found.curve[50:] == 0).all()
        assert found.total == pytest.approx(5, abs=0.1)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_readouts_do_not_depend_on_the_size_of_states(size):
    """Not even where the squares of states leave the numbers, as those of a product network do."""
    random = np.random.default_rng(0)
    states, targets = random.normal(size=(4, 60, 5)), random.normal(size=(4, 60, 3))
    targets[..., 0] = states @ random.normal(size=5)
    scaled = size * states
    np.testing.assert_allclose(
        Readout(scaled, 1e-13).recovered(targets), Readout(states, 1e-13).recovered(targets), rtol=1e-9, atol=1e-12
    )
    read = [each.transpose(1, 0, 2).copy() for each in (scaled, states)]
    of_scaled, of_states = (GramReadout(each, 4, 1e-6, targets).recovered(targets) for each in read)
    np.testing.assert_allclose(of_scaled, of_states, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_states_that_never_change_tell_nothing():
    targets = np.random.default_rng(0).normal(size=(4, 60, 3))
    assert not GramReadout(np.ones((60, 4, 5)), 4, None, targets).recovered(targets).any()
    assert np.abs(Readout(np.ones((4, 60, 5)), 1e-13).recovered(targets)).max() < 0.1


def test_reservoirpy_agrees():
    pytest.importorskip("reservoirpy")
    from reservoirpy.nodes import Reservoir, Ridge
    from reservoirpy.observables import memory_capacity as theirs

    random = np.random.default_rng(0)
    size, lag = 20, 40
    W, v = 0.9 * orthogonal(random, size), random.uniform(-0.5, 0.5, size=size)
    reservoir = Reservoir(size, W=W, Win=v[:, None], bias=np.zeros(size), lr=1.0)
    series = random.uniform(-0.8, 0.8, size=(12_000, 1))
    other = theirs(reservoir >> Ridge(ridge=1e-12), k_max=lag, as_list=True, series=series)
    network = ms.nn.create("rnn", input_size=1, hidden_size=size, bias=False).double()
    with torch.no_grad():
        network.weight_hh_l0.copy_(torch.as_tensor(W))
        network.weight_ih_l0.copy_(torch.as_tensor(v[:, None]))
    ours = memory_capacity(network, lag=lag, scale=0.8)
    np.testing.assert_allclose(ours.curve[1:], other, atol=0.05)  # theirs starts at lag 1
    assert ours.curve[1:].sum() == pytest.approx(np.sum(other), abs=0.4)


def test_result_prints_draws_and_exports():
    exact = memory_capacity((0.5 * np.eye(1), [1.0]))
    assert str(exact) == (
        "memory capacity 1 of at most 1 (exact, 14 digits); inputs reach 1 dimensions of the state; "
        "at least half of u(t-k) up to lag k = 0"
    )
    assert str(memory_capacity((0.9 * np.eye(1), [1.0]))).endswith("; less than half of u(t)")
    network = ms.nn.create("rnn", input_size=1, hidden_size=4)
    found = memory_capacity(network, degree=2, lag=6, samples=1000, scales=(0.5, 2.0))
    assert "by degree" in str(found)
    assert "\n" not in str(found)
    assert {"totals", "curve", "schema"} <= set(found.to_dict())
    assert len(found.plot().to_dict()["concat"]) == 2
    assert "Legend" not in str(exact.plot().to_dict())


def test_it_is_registered():
    registered = MEASURES["memory-capacity"]
    assert registered.kinds == ("recurrent",)
    assert registered.quick is not None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: memory_capacity((1.5 * np.eye(2), [1.0, 1.0])), "spectral radius 1.5; horizon=n"),
        (lambda: memory_capacity((np.zeros((2, 3)), [1.0, 1.0])), "W must be a square matrix"),
        (lambda: memory_capacity((np.eye(2) / 2, [1.0])), "v must be of length 2, got 1"),
        (lambda: memory_capacity((np.array([[np.nan]]), [1.0])), "W must be finite"),
        (lambda: memory_capacity("lstm"), "network must be a network, or a pair"),
        (lambda: memory_capacity((np.eye(2) / 2, [1.0, 1.0]), degree=0), "degree must be a positive integer"),
        (lambda: memory_capacity((np.eye(2) / 2, [1.0, 1.0]), lag=-1), "lag must be a whole number of at least 0"),
        (lambda: memory_capacity((np.eye(2) / 2, [1.0, 1.0]), noise=-1.0), "noise must be a number of at least 0"),
        (lambda: memory_capacity((np.eye(2) / 2, [1.0, 1.0]), distribution="normal"), "distribution must be"),
        (lambda: memory_capacity((np.eye(2) / 2, [1.0, 1.0]), scale=0.0), "scale must be a positive number"),
        (lambda: memory_capacity((np.eye(2) / 2, [1.0, 1.0]), scales=(1.0, -1.0)), "scales must be positive"),
        (lambda: memory_capacity((np.eye(2) / 2, [1.0, 1.0]), horizon=5, lag=5), "lag must be below horizon = 5"),
        (lambda: memory_capacity(torch.nn.GRU(2, 3), read="all"), "read must be 'state' or 'output'"),
        (lambda: memory_capacity(torch.nn.GRU(2, 3), direction=(1.0,)), "direction must be of length 2, got 1"),
        (lambda: memory_capacity(torch.nn.GRU(2, 3), direction=(0.0, 0.0)), "direction must be a vector with"),
        (lambda: memory_capacity(torch.nn.GRU(2, 3), samples=20), "samples must be at least 40 for 3 units"),
        (lambda: memory_capacity(torch.nn.GRU(2, 3), washout=2), "washout must be at least lag = 6"),
        (lambda: memory_capacity(torch.nn.GRU(2, 3, bidirectional=True)), "causal"),
        (lambda: memory_capacity(torch.nn.Linear(2, 2)), "Linear"),
    ],
)
def test_bad_input(call, said):
    with pytest.raises(UserError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_too_little_memory(monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_MEMORY", "0.01")
    with pytest.raises(UserError, match=r"needs .* of memory, .* fewer samples"):
        memory_capacity(torch.nn.GRU(1, 50), samples=100_000)
    with pytest.raises(UserError, match=r"horizon=100000 .* needs .* would fit"):
        memory_capacity((np.eye(2), [1.0, 1.0]), horizon=100_000)


def test_broken_weights_and_exploding_states():
    network = torch.nn.GRU(1, 3)
    with torch.no_grad():
        network.weight_hh_l0[0, 0] = torch.inf
    with pytest.raises(UserError, match="finite"):
        memory_capacity(network)
    with pytest.raises(UserError, match="stay finite"):
        memory_capacity((1e10 * np.eye(2), [1.0, 1.0]), exact=False)


def test_of_large_states_products_are_tried_until_they_are_chance(monkeypatch):
    """Against all products: what is left out is what chance alone would have added."""
    layer = ms.nn.GRU(1, 24, generator=torch.Generator().manual_seed(0))
    whole = memory_capacity(layer, degree=2, lag=60, samples=2048, threshold=True)
    monkeypatch.setattr("mnemoscope.measures.capacity.estimate.QR", 8)
    tried = []
    recovered = GramReadout.recovered
    monkeypatch.setattr(GramReadout, "recovered", lambda self, y: tried.append(y.shape[2]) or recovered(self, y))
    found = memory_capacity(layer, degree=2, lag=60, samples=2048, threshold=True)
    assert sum(tried) < 1000 < 61 + 61 * 62 // 2
    np.testing.assert_allclose(found.curve, whole.curve, atol=0.01)
    assert whole.by_degree[1] - 0.3 <= found.by_degree[1] <= whole.by_degree[1] + 0.05
    assert found.by_degree[1] > 0.1
    assert any("until 256" in each for each in found.assumptions)
    assert any("five ridges" in each for each in found.assumptions)
    assert 1e-13 <= found.regularisation <= 1e-4


def test_sums_of_a_state_bound_its_capacity_from_below():
    layer = ms.nn.GRU(1, 48, generator=torch.Generator().manual_seed(0))
    whole = memory_capacity(layer, degree=2, lag=40, samples=4096, threshold=True)
    found = memory_capacity(layer, degree=2, lag=40, samples=4096, threshold=True, sums=24)
    assert (found.size, found.state_size) == (24, 48)
    assert 0.3 * whole.total < found.total < min(24, whole.total)
    assert "a lower bound: 24 sums of the 48 numbers in the state were read" in found.assumptions
    with pytest.raises(UserError, match="sums must be a positive integer, got 0"):
        memory_capacity(layer, sums=0)


@pytest.mark.heavy
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_capacities_by_degree_are_those_of_rcbench(scale):
    """Information processing capacity as another package computes it, on states of a tanh network."""
    ipc = pytest.importorskip("rcbench.tasks.ipc", reason="rcbench is not installed")
    network = ms.nn.RNN(1, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u = np.random.default_rng(0).uniform(-1, 1, 30_000)
    with torch.no_grad():
        states = network(torch.as_tensor(scale * u)[:, None, None])[0][:, 0].numpy()
    # Its delays begin with 1: the input is shifted, so that this is the present one.
    other = ipc.IPCEvaluator(u[1:], states[:-1], max_delay=7, max_degree=3)
    theirs = other.calculate_total_capacity(feature_selection_method="kbest", modeltype="Linear")["capacity_by_degree"]
    ours = memory_capacity(network, degree=3, lag=6, scale=scale, samples=30_000)
    for degree in (1, 2, 3):
        assert ours.by_degree[degree - 1] == pytest.approx(theirs[degree], abs=0.12), degree


def test_the_rank_of_what_inputs_reach_stands_beside_the_curve():
    W, v = np.diag([0.5, 0.5, 0.2]), np.array([1.0, 2.0, 1.0])
    found = memory_capacity((W, v), scales=(0.1, 1.0, 10.0))
    assert found.rank == 2, "two units with one eigenvalue are one dimension"
    assert found.totals == pytest.approx(2)
    assert "inputs reach 2 dimensions of the state" in str(found)
    assert "from 2.00 to 2.00 over input scales 0.1 to 10" in str(found)
    assert "dimensions reached" in str(found.plot().to_dict())
