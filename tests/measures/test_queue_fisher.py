"""Fisher memory with a queue against written-out recursions in high precision, closed forms, laws and limits."""

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.measures.fisher.matrix import matrix_fisher_memory
from mnemoscope.measures.fisher.queue import queue_fisher_memory, queue_radius
from mnemoscope.measures.registry import get


def gaussian(random, n, radius):
    found = random.standard_normal((n, n))
    return found * (radius / np.abs(np.linalg.eigvals(found)).max())


def symmetric(random, n, radius):
    frame = scipy.linalg.qr(random.standard_normal((n, n)))[0]
    return frame @ np.diag(random.uniform(-radius, radius, n)) @ frame.T


def exact_kron(U, V):
    n = len(U)
    step = mp.matrix(n * len(V), n * len(V))
    for i in range(step.rows):
        for j in range(step.cols):
            step[i, j] = mp.mpf(float(V[j // n, i // n])) * mp.mpf(float(U[j % n, i % n]))
    return step


def responses(U, V, weights, steps):
    """G_0, G_1, .. by their recursion."""
    step = exact_kron(U, V)
    found = [mp.eye(step.rows)]
    for k in range(1, steps):
        now = step * found[k - 1]
        for i, weight in enumerate(weights, start=1):
            if k - 1 - i >= 0:
                now += mp.mpf(float(weight)) * found[k - 1 - i]
        found.append(now)
    return found


def twin(U, V, W, weights, steps, digits=50):
    """J(k) of the last state and of the last two, all sums written out."""
    with mp.workdps(digits):
        all_g = responses(U, V, weights, steps)
        w = mp.matrix([float(x) for x in W.T.reshape(-1)])
        n = all_g[0].rows
        inverse = sum((g * g.T for g in all_g), mp.zeros(n)) ** -1
        single = [float(((g * w).T * inverse * (g * w))[0]) for g in all_g]
        both, pairs = mp.zeros(2 * n), []
        for k, g in enumerate(all_g):
            stacked = mp.zeros(2 * n, n)
            stacked[:n, :] = g
            if k:
                stacked[n:, :] = all_g[k - 1]
            pairs.append(stacked)
            both += stacked * stacked.T
        if steps == 1:
            return np.array(single), np.array(single)
        inverse = both**-1
        joint = [float(((g * w).T * inverse * (g * w))[0]) for g in pairs]
    return np.array(single), np.array(joint)


@pytest.mark.parametrize("weights", [(0.3,), (1.0,), (0.2, -0.4), (0.0, 0.0, 0.5)])
@pytest.mark.parametrize("horizon", [1, 2, 3, 6])
def test_a_finite_horizon_is_the_recursion_written_out(weights, horizon):
    random = np.random.default_rng(horizon)
    U, V, W = gaussian(random, 2, 0.9), gaussian(random, 3, 1.2), random.standard_normal((2, 3))
    found = queue_fisher_memory(U, V, W, weights=weights, noise=(0.5, 4.0), horizon=horizon)
    single, joint = twin(U, V, W, weights, horizon)
    np.testing.assert_allclose(found.curve, single / 2, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(found.joint_curve, joint / 2, rtol=1e-10, atol=1e-13)
    assert found.relative == pytest.approx(single.sum() / (W**2).sum(), rel=1e-11)


@pytest.mark.parametrize("normal", [False, True])
def test_the_stationary_state_is_the_limit(normal):
    random = np.random.default_rng(0)
    make = symmetric if normal else gaussian
    U, V, W = make(random, 2, 0.7), make(random, 2, 0.7), random.standard_normal((2, 2))
    found = queue_fisher_memory(U, V, W, weights=(0.2, 0.1))
    single, joint = twin(U, V, W, (0.2, 0.1), 250)
    length = len(found.curve)
    np.testing.assert_allclose(found.curve, single[:length], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(found.joint_curve, joint[:length], rtol=1e-9, atol=1e-14)
    assert found.total == pytest.approx(single.sum(), rel=1e-11)
    assert found.joint_total == pytest.approx(joint.sum(), rel=1e-11)
    assert found.stable


@pytest.mark.parametrize("seed", range(4))
def test_a_queue_of_weight_zero_is_no_queue(seed):
    random = np.random.default_rng(seed)
    U, V, W = gaussian(random, 3, 0.9), gaussian(random, 4, 0.9), random.standard_normal((3, 4))
    found = queue_fisher_memory(U, V, W, weights=(0.0,))
    plain = matrix_fisher_memory(U, V, W)
    assert found.total == pytest.approx(plain.total, rel=1e-10)
    np.testing.assert_allclose(found.curve[:20], plain.curve[:20], rtol=1e-9)
    assert found.radius == pytest.approx(plain.radius)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), weight=st.floats(-0.5, 0.5))
def test_laws(seed, weight):
    random = np.random.default_rng(seed)
    U, V, W = gaussian(random, 2, 0.5), gaussian(random, 3, 0.6), random.standard_normal((2, 3))
    found = queue_fisher_memory(U, V, W, weights=(weight,))
    assert found.stable
    assert found.self_check < 1e-10  # trace(J^s) = N^2, and 2 N^2 for two states
    assert found.total <= found.joint_total * (1 + 1e-9)
    assert found.joint_total <= 2 * found.bound
    assert (found.curve <= found.joint_curve * (1 + 1e-8) + 1e-13).all()
    sources = np.eye(6).reshape(6, 2, 3)
    every = [queue_fisher_memory(U, V, source, weights=(weight,)) for source in sources]
    assert sum(one.total for one in every) == pytest.approx(6, rel=1e-9)
    assert sum(one.joint_total for one in every) == pytest.approx(12, rel=1e-9)


@pytest.mark.parametrize("weights", [(0.3,), (-0.2, 0.1)])
def test_normal_networks_gain_nothing_but_by_a_second_state(weights):
    random = np.random.default_rng(1)
    U, V, W = symmetric(random, 6, 0.8), symmetric(random, 5, 0.8), random.standard_normal((6, 5))
    found = queue_fisher_memory(U, V, W, weights=weights)
    assert found.method == "modes"
    assert found.relative == pytest.approx(1, rel=1e-12)
    assert found.joint_relative == pytest.approx(2, rel=1e-11)
    later = matrix_fisher_memory(U, V, W)
    assert abs(found.curve[:3] - later.curve[:3]).max() > 1e-3  # yet the lags share it otherwise


def test_radius_is_that_of_the_companion_matrix():
    random = np.random.default_rng(2)
    U, V = gaussian(random, 3, 0.9), gaussian(random, 2, 0.8)
    step, n = np.kron(V.T, U.T), 6
    companion = np.zeros((18, 18))
    companion[:n, :n], companion[:n, n : 2 * n], companion[:n, 2 * n :] = step, 0.3 * np.eye(n), -0.2 * np.eye(n)
    companion[n:, : 2 * n] = np.eye(12)
    expected = np.abs(np.linalg.eigvals(companion)).max()
    assert queue_radius(U, V, (0.3, -0.2)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_one_slot_of_weight_one_is_never_stable(seed):
    random = np.random.default_rng(seed)
    U, V = gaussian(random, 3, random.uniform(0.01, 0.99)), gaussian(random, 3, 0.9)
    assert queue_radius(U, V, (1.0,)) >= 1
    with pytest.raises(UserError, match="must be stable for horizon=None, got a companion matrix of spectral radius"):
        queue_fisher_memory(U, V, np.eye(3), weights=(1.0,))
    found = queue_fisher_memory(U, V, np.eye(3), weights=(1.0,), horizon=12)
    assert not found.stable
    assert "unstable, radius" in str(found)
    np.testing.assert_allclose(found.curve, twin(U, V, np.eye(3), (1.0,), 12)[0], rtol=1e-9)


def test_what_float64_cannot_hold_goes_to_balls():
    frame = scipy.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    U, V = frame @ (np.eye(3) * 0.4 + 6000 * np.eye(3, k=1)) @ frame.T, np.array([[0.5, 3000.0], [0.0, 0.4]])
    W = np.random.default_rng(0).standard_normal((3, 2))
    found = queue_fisher_memory(U, V, W, weights=(0.25,), horizon=9)
    single, joint = twin(U, V, W, (0.25,), 9, digits=100)
    np.testing.assert_allclose(found.curve, single, rtol=1e-9)
    np.testing.assert_allclose(found.joint_curve, joint, rtol=1e-9)
    assert found.method == "extended precision"
    assert found.self_check < 1e-20


def published_twin(U, V, W, m_max, lags):
    """Theorem 4 with its Lyapunov equations solved one after the other, in float64."""
    lyapunov = scipy.linalg.solve_discrete_lyapunov
    psi, sigma = [lyapunov(U.T, np.eye(len(U)))], [lyapunov(V.T, np.eye(len(V)))]
    for _ in range(m_max):
        psi.append(lyapunov(U.T, psi[-1]))
        sigma.append(lyapunov(V.T, sigma[-1]))
    resolvent = np.linalg.inv(np.eye(W.size) - np.kron(V.T, U.T))
    curve, now = [], W
    for _ in range(lags):
        terms = [now.reshape(-1, order="F")]
        for _ in range(m_max):
            terms.append(resolvent @ terms[-1])
        D = sum(terms).reshape(W.shape, order="F")
        curve.append(np.trace(np.linalg.solve(sum(sigma), D.T) @ np.linalg.solve(sum(psi), D)))
        now = U.T @ now @ V
    return np.array(curve), [np.trace(one) for one in psi], [np.trace(one) for one in sigma]


@pytest.mark.parametrize("normal", [False, True])
def test_the_published_form_is_that_of_the_document(normal):
    random = np.random.default_rng(3)
    make = symmetric if normal else gaussian
    U, V, W = make(random, 3, 0.6), make(random, 2, 0.5), random.standard_normal((3, 2))
    found = queue_fisher_memory(U, V, W, noise=(2.0, 3.0), form="published", m_max=6)
    curve, psi, sigma = published_twin(U, V, W, 6, 60)
    np.testing.assert_allclose(found.curve, curve[: len(found.curve)] / 6, rtol=1e-9, atol=1e-14)
    assert found.total == pytest.approx(curve.sum() / 6, rel=1e-10)
    np.testing.assert_allclose(found.terms[0], psi, rtol=1e-10)
    np.testing.assert_allclose(found.terms[1], sigma, rtol=1e-10)


@pytest.mark.parametrize("normal", [False, True])
def test_the_published_series_reports_its_divergence(normal):
    random = np.random.default_rng(4)
    make = symmetric if normal else gaussian
    U, V, W = make(random, 3, 0.9), make(random, 3, 0.8), random.standard_normal((3, 3))
    found = queue_fisher_memory(U, V, W, form="published", m_max=60)
    assert found.diverges
    assert not found.stable
    ratios = found.terms[:, -1] / found.terms[:, -2]
    np.testing.assert_allclose(ratios, found.growth, rtol=2e-2)
    assert "the series diverges" in str(found)
    other = queue_fisher_memory(U, V, W, form="published", m_max=30)
    assert other.total != pytest.approx(found.total, rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_published_form_of_normal_networks_never_exceeds_no_queue(seed):
    random = np.random.default_rng(seed)
    U, V, W = symmetric(random, 4, 0.95), symmetric(random, 4, 0.95), random.standard_normal((4, 4))
    plain = matrix_fisher_memory(U, V, W, form="published")
    found = queue_fisher_memory(U, V, W, form="published", m_max=8)
    length = min(len(plain.curve), len(found.curve))
    assert (found.curve[:length] <= plain.curve[:length] * (1 + 1e-10)).all()


def test_result_prints_plots_and_exports():
    found = queue_fisher_memory(np.diag([0.9, 0.5]), np.diag([0.9, 0.5]), np.eye(2), weights=(0.1,))
    assert str(found).startswith("Fisher memory 2 of one state and 4 of two, of at most 8 and 16")
    assert "last two states, total 4" in found.plot().to_json()
    exported = found.to_dict()
    assert exported["stable"] is True
    assert exported["joint_total"] == pytest.approx(4)
    published = queue_fisher_memory(0.5 * np.eye(2), 0.5 * np.eye(2), np.eye(2), form="published")
    assert "cut off at m = 20" in published.plot().to_json()
    assert get("queue-fisher").matrices == {"U": "u", "V": "v", "W": "w"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": ()}, r"weights must be a vector, got an array of shape \(0,\)"),
        ({"weights": (0.1, np.inf)}, "weights must be finite"),
        ({"weights": (0.1, 0.2), "form": "published"}, "weights must be of one slot for form='published'"),
        ({"horizon": 5, "form": "published"}, "horizon must be None for form='published', whose series are infinite"),
        ({"U": 1.5 * np.eye(2), "form": "published"}, r"needs rho\(U\) and rho\(V\) below 1, got 1.5 and 0.5"),
        ({"form": "published", "m_max": 0}, "m_max must be a positive integer, got 0"),
        ({"form": "published", "m_max": 5000}, "leaves float64 before m_max=5000"),
        ({"form": "exakt"}, "form must be 'exact' or 'published'"),
        ({"noise": (1.0, -1.0)}, r"noise\[1\] must be a positive number, got -1.0"),
        ({"W": np.ones(2)}, "W must be a matrix"),
        ({"weights": (0.9,)}, "got a companion matrix of spectral radius 1.08"),
    ],
)
def test_bad_input_is_said_in_one_line(change, message):
    arguments = {"U": 0.5 * np.eye(2), "V": 0.5 * np.eye(2), "W": np.eye(2), **change}
    with pytest.raises(UserError, match=message) as caught:
        queue_fisher_memory(**arguments)
    assert "\n" not in str(caught.value)
