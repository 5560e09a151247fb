"""Fisher memory of vector networks against its definition in high precision, closed forms, identities, simulation."""

import functools
import importlib.util
import pathlib
import warnings

import mpmath
import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given
from hypothesis import strategies as st

import mnemoscope as ms
from mnemoscope.measures.fisher import certified
from mnemoscope.measures.fisher.certified import prove_stable
from mnemoscope.measures.fisher.vector import FisherMemory, fisher_memory
from mnemoscope.measures.fisher.white import Coordinates
from mnemoscope.measures.spectral.eigenvalues import spectral_radius
from mnemoscope.theory import TABLE_5, delay_line, delay_line_curve, feedback_delay_line, kerg_matrix

_SPEC = importlib.util.spec_from_file_location("fisher_oracle", pathlib.Path(__file__).with_name("fisher_oracle.py"))
_ORACLE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_ORACLE)
truth = _ORACLE.truth


def random_matrix(kind: str, size: int, radius: float, seed: int) -> np.ndarray:
    """Draw a stable matrix: dense, normal, strongly non-normal, or such a one in rotated coordinates."""
    random = np.random.default_rng(seed)
    dense = random.standard_normal((size, size))
    if kind == "dense":
        return dense * radius / np.abs(np.linalg.eigvals(dense)).max()
    orthogonal = np.linalg.qr(dense)[0]
    if kind == "normal":
        return radius * orthogonal
    upper = np.triu(0.6 * random.standard_normal((size, size)), 1) + np.diag(random.uniform(-radius, radius, size))
    return upper if kind == "triangular" else orthogonal @ upper @ orthogonal.T


@functools.cache
def table_5_row(alpha: float, beta: float, d: float) -> tuple[FisherMemory, tuple]:
    W, v = kerg_matrix(100, alpha, beta, d), np.eye(100)[0]
    found = fisher_memory(W, v)
    return found, truth(W, v, len(found.curve), bits=320)


def test_a_unit_that_forgets_slowly_has_its_closed_form_at_a_million_lags():
    w = 0.99999
    found = ms.measures.fisher_memory([[w]], [1.0])
    lags = np.arange(len(found.curve))
    assert len(lags) > 10**6
    assert np.allclose(found.curve, (1 - w * w) * w ** (2.0 * lags), rtol=1e-9, atol=0)
    assert found.total == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(("alpha", "beta", "d"), list(TABLE_5))
def test_table_5_has_ten_digits(alpha, beta, d):
    found, exact = table_5_row(alpha, beta, d)
    assert found.total == pytest.approx(exact.total, rel=1e-12)
    np.testing.assert_allclose(found.curve, exact.curve, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found.spatial, exact.spatial, atol=1e-10)
    assert found.digits >= 11
    assert found.self_check < 1e-11
    assert found.precision == (256 if d else 53)


def test_table_5_values_begin_as_the_errata_say():
    totals = [fisher_memory(kerg_matrix(100, alpha, d=0.2), np.eye(100)[0]).total for alpha in (0.95, 1.0, 1.05)]
    assert [f"{total:.5f}" for total in totals] == ["11.93939", "16.29823", "20.83706"]


@pytest.mark.parametrize("kind", ["dense", "normal", "triangular", "rotated"])
@pytest.mark.parametrize("radius", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_equals_the_definition(kind, radius, size):
    W = random_matrix(kind, size, radius, seed=size)
    v = np.random.default_rng(size).standard_normal(size)
    found = fisher_memory(W, v, noise=0.7)
    exact = truth(W, v, min(150, len(found.curve)))
    assert found.total == pytest.approx(exact.total / 0.7, rel=1e-9)
    np.testing.assert_allclose(found.curve[:150], exact.curve / 0.7, rtol=1e-8, atol=1e-12 * found.curve[0])
    np.testing.assert_allclose(found.spatial, exact.spatial / 0.7, atol=1e-9)


@given(
    kind=st.sampled_from(["dense", "normal", "triangular", "rotated"]),
    size=st.integers(2, 24),
    distance=st.sampled_from([0.5, 0.1, 1e-2, 1e-4, 1e-6]),
    seed=st.integers(0, 1000),
    gain=st.sampled_from([1.0, 2.0]),
    whole=st.booleans(),
)
def test_claimed_digits_of_float64_are_there(kind, size, distance, seed, gain, whole):
    W = random_matrix(kind, size, 1 - distance, seed)
    if kind in ("triangular", "rotated"):
        W = W + (gain - 1) * np.eye(size, k=1 if kind == "triangular" else -1) * 0.3
    v = np.random.default_rng(seed).standard_normal(size)
    lags = None if whole and distance > 1e-3 else 60
    try:
        prove_stable(W)
        found = fisher_memory(W, v, precision=53, lags=lags)
    except ValueError:
        return  # W is unstable, or float64 gives up
    exact = truth(W, v, min(60, len(found.curve)))
    curve = found.curve[:60]
    if found.digits:
        assert abs(found.total - exact.total) <= 10.0**-found.digits * exact.total
        assert np.abs(curve - exact.curve).max() <= 10.0**-found.digits * exact.curve.max()
    if found.lag_digits:
        large = exact.curve >= 2e-12 * exact.curve.max()
        apart = np.abs(curve - exact.curve)[large]
        assert (apart <= 10.0**-found.lag_digits * exact.curve[large]).all()


@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 16, 31])
@pytest.mark.parametrize("radius", [0.5, 1.0, 1.6])
def test_finite_horizons_equal_the_definition(horizon, radius):
    W = random_matrix("dense", 9, radius, seed=3)
    v = np.random.default_rng(3).standard_normal(9)
    found = fisher_memory(W, v, horizon=horizon)
    exact = truth(W, v, horizon, horizon)
    np.testing.assert_allclose(found.curve, exact.curve, rtol=1e-9, atol=1e-300)
    assert len(found.curve) == horizon
    assert found.total == pytest.approx(exact.total, rel=1e-10)
    assert found.total == pytest.approx(found.curve.sum(), rel=1e-10)
    assert np.trace(found.spatial) == pytest.approx(9, rel=1e-10)


def test_a_long_unstable_horizon_needs_extended_precision_and_gets_it():
    W = np.array([[1.1, 0.0], [1.0, 0.3]])
    found = fisher_memory(W, [1, 1], horizon=1500)
    exact = truth(W, [1, 1], 1500, 1500, bits=1200)
    np.testing.assert_allclose(found.curve, exact.curve, rtol=1e-9, atol=1e-300)
    assert found.precision > 53


def test_equals_mpmath_on_a_small_network():
    W, v = random_matrix("dense", 4, 0.8, seed=5), np.array([1.0, -2.0, 0.5, 3.0])
    with mpmath.workdps(60):
        transition = mpmath.matrix(W.tolist())
        power, covariance = mpmath.eye(4), mpmath.zeros(4)
        for _ in range(800):
            covariance += power * power.T
            power = transition * power
        inverse = covariance**-1
        signal = mpmath.matrix(v.tolist())
        expected = []
        for _ in range(10):
            expected.append(float((signal.T * inverse * signal)[0]))
            signal = transition * signal
    np.testing.assert_allclose(fisher_memory(W, v).curve[:10], expected, rtol=1e-12)


def test_agrees_with_scipys_lyapunov_solver_where_that_is_accurate():
    W, v = random_matrix("normal", 30, 0.9, seed=1), np.ones(30)
    W = W + 0.05 * np.random.default_rng(2).standard_normal((30, 30)) / np.sqrt(30)
    covariance = scipy.linalg.solve_discrete_lyapunov(W, np.eye(30))
    spatial = scipy.linalg.solve_discrete_lyapunov(W.T, np.linalg.inv(covariance))
    np.testing.assert_allclose(fisher_memory(W, v).spatial, spatial, atol=1e-10)


def test_a_simulation_agrees():
    """Var of the optimal unbiased estimate of one input from the last state is 1 / J(k)."""
    W, v, noise, lag = random_matrix("dense", 3, 0.7, seed=8), np.array([1.0, 0.5, -1.0]), 0.4, 2
    found = fisher_memory(W, v, noise=noise, horizon=30)
    random = np.random.default_rng(0)
    state = np.zeros((200_000, 3))
    for _ in range(30):
        state = state @ W.T + np.sqrt(noise) * random.standard_normal(state.shape)
    response = np.linalg.matrix_power(W, lag) @ v
    # The score of s_{t-k} at zero signal is response^T C^-1 h, its variance the Fisher information.
    score = state @ np.linalg.solve(np.cov(state.T), response)
    assert found.curve[lag] == pytest.approx(score.var(), rel=0.02)


@given(
    size=st.integers(1, 30),
    gain=st.floats(0.2, 3.0),
    noise=st.floats(1e-6, 1e6),
)
def test_delay_lines_have_their_closed_form(size, gain, noise):
    line = delay_line(size, gain)
    found = fisher_memory(line.W, line.v, noise=noise)
    closed = delay_line_curve(size, line.W[-1, -2] ** 2 if size > 1 else gain, noise, lags=len(found.curve))
    np.testing.assert_allclose(found.curve, closed, rtol=1e-12, atol=0)
    assert found.interference == pytest.approx(0, abs=1e-14)
    assert found.total == pytest.approx(closed.sum(), rel=1e-12)


def test_an_orthogonal_transform_changes_nothing_but_the_directions():
    line = delay_line(20, 1.2)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 20)))[0]
    plain, turned = fisher_memory(line.W, line.v), fisher_memory(Q @ line.W @ Q.T, Q @ line.v)
    np.testing.assert_allclose(turned.curve[:20], plain.curve, rtol=1e-11)
    np.testing.assert_allclose(turned.spatial, Q @ plain.spatial @ Q.T, atol=1e-12)
    assert turned.interference < 1e-13
    np.testing.assert_allclose(turned.worst_direction, np.sign(turned.worst_direction @ Q[:, -1]) * Q[:, -1], atol=1e-9)


@pytest.mark.parametrize("radius", [0.1, 0.9, 0.9999])
def test_normal_networks_have_one_over_noise(radius):
    found = fisher_memory(random_matrix("normal", 12, radius, seed=0), np.eye(12)[3], noise=0.25)
    assert found.total == pytest.approx(4, rel=1e-11)
    assert found.best_total == pytest.approx(4, rel=1e-10)
    assert found.worst_total == pytest.approx(4, rel=1e-10)


def test_directions_attain_their_totals_and_bound_every_other():
    W = random_matrix("triangular", 15, 0.8, seed=4)
    found = fisher_memory(W, np.ones(15), noise=2.0)
    best, worst = fisher_memory(W, found.best_direction, 2.0), fisher_memory(W, found.worst_direction, 2.0)
    assert best.total == pytest.approx(found.best_total, rel=1e-10)
    assert worst.total == pytest.approx(found.worst_total, rel=1e-6)
    values = np.linalg.eigvalsh(found.spatial)
    assert found.best_total == pytest.approx(values[-1], rel=1e-12)
    assert found.worst_total <= found.total / 15 <= found.best_total
    assert found.worst_total * 1e3 < found.best_total


def test_a_tiny_worst_total_is_right():
    line = delay_line(30, 4.0)
    found = fisher_memory(line.W, line.v)  # the last unit's own noise variance is the sum of 4^k
    assert found.worst_total == pytest.approx(3 / (4.0**30 - 1), rel=1e-6)


def test_matrix_has_the_curve_on_its_diagonal():
    W, v = random_matrix("dense", 6, 0.7, seed=2), np.arange(6.0)
    found = fisher_memory(W, v, horizon=9)
    exact = np.linalg.inv(sum(np.linalg.matrix_power(W, k) @ np.linalg.matrix_power(W, k).T for k in range(9)))
    columns = np.stack([np.linalg.matrix_power(W, k) @ v for k in range(9)], axis=1)
    np.testing.assert_allclose(found.matrix, columns.T @ exact @ columns, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.matrix.diagonal(), found.curve, rtol=1e-12)
    off = found.matrix - np.diag(found.matrix.diagonal())
    assert found.interference == pytest.approx(np.linalg.norm(off) / np.linalg.norm(found.matrix), rel=1e-12)
    assert fisher_memory(W, v, horizon=9, matrix_lags=4).matrix.shape == (4, 4)


def test_the_curve_of_an_infinite_horizon_ends_where_it_is_negligible():
    W, v = random_matrix("dense", 8, 0.95, seed=6), np.ones(8)
    found = fisher_memory(W, v)
    missing = truth(W, v, 1).total - found.curve.sum()
    assert 0 <= missing <= 1.1e-12 * found.total
    assert missing + found.curve[-1] > 1e-12 * found.total  # and not later
    assert len(fisher_memory(0.01 * W, v).curve) == 8
    short = fisher_memory(W, v, lags=3)
    assert len(short.curve) == 3
    assert short.total == pytest.approx(found.total, rel=1e-13)


def test_the_curve_never_rises():
    found = fisher_memory(random_matrix("triangular", 25, 0.9, seed=9), np.ones(25))
    assert (np.diff(found.curve) <= 1e-15 * found.curve[0]).all()


@pytest.mark.parametrize(
    ("W", "v", "total"),
    [
        ([[0.5]], [2.0], 4.0),
        (np.zeros((3, 3)), [1.0, 2.0, 3.0], 14.0),
        (0.5 * np.eye(3), [0.0, 0.0, 0.0], 0.0),
        ([[0.0, 0.0], [1e-200, 0.0]], [1.0, 0.0], 1.0),
        ([[0.0, 0.0], [1e6, 0.0]], [1.0, 0.0], 2 - 1e-12),
    ],
    ids=["one unit", "no recurrence", "no input", "weak", "strong"],
)
def test_corner_cases(W, v, total):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fisher_memory(W, v)
        assert found.total == pytest.approx(total, rel=1e-13)
        assert found.digits >= 13
        assert str(found).startswith("Fisher memory")


@pytest.mark.parametrize("noise", [1e-300, 1e-12, 1e12, 1e290])
def test_noise_only_scales(noise):
    W, v = random_matrix("dense", 5, 0.8, seed=1), np.ones(5)
    found, plain = fisher_memory(W, v, noise=noise), fisher_memory(W, v)
    np.testing.assert_allclose(found.curve * noise, plain.curve, rtol=1e-14)
    np.testing.assert_allclose(found.spatial * noise, plain.spatial, rtol=1e-14)
    assert found.total * noise == pytest.approx(plain.total, rel=1e-14)
    assert found.bound * noise == pytest.approx(25)


def test_large_and_small_inputs_only_scale():
    W, v = random_matrix("dense", 5, 0.8, seed=1), np.ones(5)
    assert fisher_memory(W, 1e150 * v).total == pytest.approx(1e300 * fisher_memory(W, v).total, rel=1e-13)
    assert fisher_memory(W, 1e-150 * v).total == pytest.approx(1e-300 * fisher_memory(W, v).total, rel=1e-13)


def test_full_extended_precision_agrees_with_the_helped_float64():
    W, v = kerg_matrix(40, 1.05, 0.005, 0.2), np.eye(40)[0]
    precise, bits = certified.whiten_precisely(Coordinates(W, v, np.eye(40)), None, 256)
    assert bits == 256
    assert precise.total == pytest.approx(truth(W, v, 1).total, rel=1e-15)
    assert fisher_memory(W, v).total == pytest.approx(precise.total, rel=1e-12)


def test_a_network_that_overflows_float64_is_measured_in_extended_precision():
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((30, 30)))[0]
    W = Q @ (kerg_matrix(30, 1.05, 0.0, 0.2) * np.linspace(1, 6, 30)[:, None] / 3) @ Q.T
    v = Q[:, 0]
    try:
        prove_stable(W)
    except ValueError:
        pytest.skip("rounding made this one unstable")
    found = fisher_memory(W, v, lags=50)
    exact = truth(W, v, 50)
    assert found.precision >= 256
    assert found.total == pytest.approx(exact.total, rel=1e-10)
    np.testing.assert_allclose(found.curve, exact.curve, rtol=1e-8, atol=1e-14)


def test_beyond_the_limit_the_lost_digits_are_said(monkeypatch):
    monkeypatch.setattr("mnemoscope.measures.fisher.precision.LIMIT", 50)
    W, v = kerg_matrix(100, 1.05, 0.005, 0.2), np.eye(100)[0]
    found = fisher_memory(W, v)
    exact = table_5_row(1.05, 0.005, 0.2)[1]
    assert found.precision == 53
    assert 4 <= found.digits <= 8
    assert abs(found.total / exact.total - 1) < 10.0**-found.digits
    assert fisher_memory(W, v, precision=256).total == pytest.approx(exact.total, rel=1e-12)


def test_stability_is_decided_where_float64s_eigenvalues_cannot():
    # The radius is 2 (a b)^(1/4) cos(pi / 151) = 0.9268; LAPACK's eigenvalues exceed 1 in some orders of the units.
    line = feedback_delay_line(150, 0.875**2, 0.24553571**2)
    exact = 2 * (0.875 * 0.24553571) ** 0.5 * np.cos(np.pi / 151)
    assert spectral_radius(line.W) == pytest.approx(exact, rel=1e-12)
    found = fisher_memory(line.W, line.v)
    assert found.digits >= 9
    assert found.self_check < 1e-9
    with pytest.raises(ValueError, match="spectral radius below 1"):
        fisher_memory(1.1 * line.W, line.v)  # 1.0195
    with pytest.raises(ValueError, match="spectral radius below 1"):
        prove_stable(np.eye(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"W": [[1.5, 0], [0, 0.5]]}, r"spectral radius below 1 for an infinite horizon, got 1\.5; .*horizon=100"),
        ({"W": np.eye(2)}, "spectral radius below 1 for an infinite horizon, got 1;"),
        ({"W": [[0, -1], [1, 0]]}, "spectral radius below 1 for an infinite horizon, got 1;"),
        ({"W": np.ones((2, 3))}, r"W must be a square matrix, got an array of shape \(2, 3\)"),
        ({"W": [[np.nan, 0], [0, 0]]}, "W must be finite, got 1 NaN or infinite of 4 entries"),
        ({"W": [["a", "b"], ["c", "d"]]}, "W must be an array of real numbers"),
        ({"v": [1, 2, 3]}, "v must be of length 2, got 3"),
        (
            {"v": np.ones((2, 2))},
            r"v must be a vector of length 2, got an array of shape \(2, 2\); .*network_fisher_memory",
        ),
        ({"v": [1, np.inf]}, "v must be finite"),
        ({"noise": 0.0}, "noise must be a positive number, got 0.0"),
        ({"noise": -1.0}, "noise must be a positive number, got -1.0"),
        ({"noise": 1e-308}, "must be below 1.8e308, got noise=1e-308"),
        ({"horizon": 0}, "horizon must be a positive integer, got 0"),
        ({"horizon": 10**15}, "a curve of 1000000000000000 lags needs 29103.8 TB of memory, .* would fit"),
        ({"lags": 0}, "lags must be a positive integer, got 0"),
        ({"W": (1 - 1e-14) * np.eye(2)}, "lags .* would fit, and leave the total as it is"),
        ({"W": [[2.0, 1], [0, 1.5]], "horizon": 5000}, "amplifies its noise so much .* horizon=5000; a shorter"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        fisher_memory(**{"W": [[0.5, 0.1], [0.0, 0.5]], "v": [1.0, 0.0], **arguments})
    assert "\n" not in str(caught.value)


def test_torch_and_columns_are_taken():
    W, v = torch.tensor([[0.5, 0.0], [1.0, 0.5]]), torch.tensor([[1.0], [0.0]])
    assert fisher_memory(W, v).total == pytest.approx(1.64, rel=1e-12)


def test_the_result_prints_plots_and_exports():
    found = fisher_memory(kerg_matrix(12, 1.1), np.eye(12)[0])
    assert str(found) == f"Fisher memory {found.total:.8g} of at most 12 over an infinite horizon, 14 digits trusted"
    document = found.to_dict()
    assert document["measure"] == "fisher"
    assert document["curve"] == found.curve.tolist()
    assert "Ganguli" in found._repr_html_()
    titles = str(found.plot().to_dict())
    assert "lag k (steps)" in titles
    assert "Fisher information" in titles
    assert ms.measures.get("fisher").matrices == {"W": "matrix", "v": "input"}
