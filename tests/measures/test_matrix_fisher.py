"""Fisher memory of matrix networks against dense twins in high precision, closed forms, laws and limits."""

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.measures.fisher.blocks import total_memory
from mnemoscope.measures.fisher.extended import Extended
from mnemoscope.measures.fisher.matrix import matrix_fisher_memory
from mnemoscope.measures.fisher.roots import Dense, Kronecker, sum_of_products, sum_of_squares
from mnemoscope.measures.registry import get


def gaussian(random, n, radius):
    found = random.standard_normal((n, n))
    return found * (radius / np.abs(np.linalg.eigvals(found)).max())


def rotation_normal(random, n, radius):
    """A real normal matrix with complex eigenvalues."""
    frame = scipy.linalg.qr(random.standard_normal((n, n)))[0]
    blocks = [
        r * np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
        for r, t in zip(random.uniform(0.1, radius, n // 2), random.uniform(0, 3, n // 2), strict=True)
    ]
    return frame @ scipy.linalg.block_diag(*blocks, *([[radius]] * (n % 2))) @ frame.T


def jordan(n, diagonal, above, rest=0.0):
    return np.triu(np.full((n, n), rest), 2) + diagonal * np.eye(n) + above * np.eye(n, k=1)


def dense_twin(U, V, W, steps, digits=60):
    """J(0), J(1), .. of the column-stacked vector network, all sums written out, in `digits` decimal digits."""
    with mp.workdps(digits):
        step = mp.matrix(len(U) * len(V), len(U) * len(V))
        n = len(U)
        for i in range(step.rows):
            for j in range(step.cols):
                step[i, j] = mp.mpf(float(V[j // n, i // n])) * mp.mpf(float(U[j % n, i % n]))
        covariance, power = mp.zeros(step.rows), mp.eye(step.rows)
        sources = [mp.matrix([float(x) for x in W.T.reshape(-1)])]
        for _ in range(steps):
            covariance += power * power.T
            power = step * power
            sources.append(step * sources[-1])
        inverse = covariance**-1
        return np.array([float((w.T * inverse * w)[0]) for w in sources[:-1]])


def float_twin(U, V, W):
    """The total from SciPy's Lyapunov solver on the stacked network: good where the covariance is tame."""
    step = np.kron(V.T, U.T)
    covariance = scipy.linalg.solve_discrete_lyapunov(step, np.eye(len(step)))
    spatial = scipy.linalg.solve_discrete_lyapunov(step.T, np.linalg.inv(covariance))
    w = W.T.reshape(-1)
    return w @ spatial @ w, spatial


@pytest.mark.parametrize("shape", [(3, 3), (2, 3), (4, 2)])
@pytest.mark.parametrize("horizon", [1, 2, 5, 8])
def test_a_finite_horizon_is_that_of_the_stacked_network(shape, horizon):
    random = np.random.default_rng(horizon)
    U, V = gaussian(random, shape[0], 1.1), gaussian(random, shape[1], 1.3)  # unstable: allowed
    W = random.standard_normal(shape)
    found = matrix_fisher_memory(U, V, W, noise=(2.0, 0.25), horizon=horizon)
    expected = dense_twin(U, V, W, horizon) / 0.5
    np.testing.assert_allclose(found.curve, expected, rtol=1e-11)
    assert found.total == pytest.approx(expected.sum(), rel=1e-12)
    assert found.relative == pytest.approx(0.5 * expected.sum() / (W**2).sum(), rel=1e-12)
    assert found.tail == 0
    assert np.trace(found.spatial) == pytest.approx(W.size / 0.5, rel=1e-11)


def test_the_stationary_state_is_that_of_the_stacked_network():
    random = np.random.default_rng(5)
    U, V, W = gaussian(random, 3, 0.7), gaussian(random, 3, 0.8), random.standard_normal((3, 3))
    expected = dense_twin(U, V, W, 120)
    found = matrix_fisher_memory(U, V, W)
    np.testing.assert_allclose(found.curve, expected[: len(found.curve)], rtol=1e-9, atol=1e-15)
    assert found.total == pytest.approx(expected.sum(), rel=1e-13)
    assert expected[len(found.curve) :].sum() <= 1e-12 * expected.sum()
    assert expected[len(found.curve) - 1 :].sum() > 1e-12 * expected.sum()
    assert found.digits >= 13


@pytest.mark.parametrize(("n", "radius"), [(5, 0.5), (8, 0.9), (10, 0.97)])
def test_larger_networks_agree_with_a_lyapunov_solver(n, radius):
    random = np.random.default_rng(n)
    U, V, W = gaussian(random, n, radius), gaussian(random, n, 1.0), random.standard_normal((n, n))
    total, spatial = float_twin(U, V, W)
    found = matrix_fisher_memory(U, V, W)
    assert found.total == pytest.approx(total, rel=1e-9)
    np.testing.assert_allclose(found.spatial, spatial, atol=1e-8)
    assert found.best_total == pytest.approx(np.linalg.eigvalsh(spatial)[-1], rel=1e-8)
    again = matrix_fisher_memory(U, V, found.best_input)
    assert again.total == pytest.approx(found.best_total, rel=1e-8)


def test_the_total_is_linear_in_the_spatial_matrix_and_in_the_curve():
    random = np.random.default_rng(0)
    U, V, W = gaussian(random, 4, 0.9), jordan(4, 0.3, 1.0), random.standard_normal((4, 4))
    found = matrix_fisher_memory(U, V, W)
    w = W.reshape(-1, order="F")
    assert found.total == pytest.approx(w @ found.spatial @ w, rel=1e-12)
    assert found.total == pytest.approx(found.curve.sum(), rel=2e-12)
    assert (np.diff(found.curve) <= 1e-13).all()  # a stationary network only forgets


@pytest.mark.parametrize("seed", range(3))
def test_normal_matrices_keep_exactly_one_input(seed):
    random = np.random.default_rng(seed)
    U, V = rotation_normal(random, 5, 0.95), rotation_normal(random, 4, 0.9)
    W = random.standard_normal((5, 4))
    found = matrix_fisher_memory(U, V, W, noise=(0.5, 3.0))
    assert found.relative == pytest.approx(1, rel=1e-13)
    assert found.method == "closed form"
    np.testing.assert_allclose(found.spatial, np.eye(20) / 1.5, atol=1e-13)
    step, w = np.kron(V.T, U.T), W.T.reshape(-1)
    inverse = np.linalg.inv(scipy.linalg.solve_discrete_lyapunov(step, np.eye(20)))
    sources = [np.linalg.matrix_power(step, k) @ w for k in range(6)]
    np.testing.assert_allclose(found.curve[:6], [v @ inverse @ v / 1.5 for v in sources], rtol=1e-11)


@pytest.mark.parametrize("which", ["left", "right"])
def test_one_normal_side_splits_the_network(which):
    random = np.random.default_rng(3)
    one, other, W = rotation_normal(random, 4, 0.9), gaussian(random, 3, 0.9), random.standard_normal((4, 3))
    U, V, W = (one, other, W) if which == "left" else (other, one, W.T)
    found = matrix_fisher_memory(U, V, W)
    total, spatial = float_twin(U, V, W)
    assert found.total == pytest.approx(total, rel=1e-11)
    np.testing.assert_allclose(found.spatial, spatial, atol=1e-10)


def test_blocks_add_up():
    random = np.random.default_rng(4)
    U = scipy.linalg.block_diag(gaussian(random, 2, 0.8), gaussian(random, 3, 0.7))
    order = random.permutation(5)
    V, W = gaussian(random, 3, 0.9), random.standard_normal((5, 3))
    whole = matrix_fisher_memory(U[np.ix_(order, order)], V, W[order])
    parts = [matrix_fisher_memory(U[s, s], V, W[s]) for s in (slice(0, 2), slice(2, 5))]
    assert whole.total == pytest.approx(sum(part.total for part in parts), rel=1e-12)
    np.testing.assert_allclose(whole.curve[:9], sum(part.curve[:9] for part in parts), rtol=1e-11)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 4), m=st.integers(1, 4), scale=st.floats(0.1, 10))
def test_laws(seed, n, m, scale):
    random = np.random.default_rng(seed)
    U, V = gaussian(random, n, random.uniform(0.05, 0.9)), gaussian(random, m, random.uniform(0.05, 0.9))
    W = random.standard_normal((n, m))
    found = matrix_fisher_memory(U, V, W)
    assert np.trace(found.spatial) == pytest.approx(n * m, rel=1e-9)
    assert found.published_total <= found.total * (1 + 1e-10)
    assert found.total <= found.bound * (1 + 1e-10)
    same = matrix_fisher_memory(scale * U, V / scale, W)
    assert same.total == pytest.approx(found.total, rel=1e-9)
    turned = matrix_fisher_memory(V, U, W.T)
    assert turned.total == pytest.approx(found.total, rel=1e-9)
    longer = matrix_fisher_memory(U, V, 3 * W, noise=(9.0, 1.0))
    np.testing.assert_allclose(longer.curve[:3], found.curve[:3], rtol=1e-12)


def published_twin(U, V, W, lags):
    psi = scipy.linalg.solve_discrete_lyapunov(U.T, np.eye(len(U)))
    sigma = scipy.linalg.solve_discrete_lyapunov(V.T, np.eye(len(V)))
    curve = []
    for _ in range(lags):
        curve.append(np.trace(np.linalg.inv(sigma) @ W.T @ np.linalg.inv(psi) @ W))
        W = U.T @ W @ V
    return np.array(curve)


@pytest.mark.parametrize("normal", [False, True])
def test_the_published_form_is_that_of_the_document(normal):
    random = np.random.default_rng(7)
    make = rotation_normal if normal else gaussian
    U, V, W = make(random, 4, 0.9), make(random, 3, 0.8), random.standard_normal((4, 3))
    found = matrix_fisher_memory(U, V, W, noise=(2.0, 3.0), form="published")
    twin = published_twin(U, V, W, 400) / 6
    np.testing.assert_allclose(found.curve, twin[: len(found.curve)], rtol=1e-9, atol=1e-14)
    assert found.total == pytest.approx(twin.sum(), rel=1e-11)
    beside = matrix_fisher_memory(U, V, W, noise=(2.0, 3.0))
    assert beside.published_total == pytest.approx(found.total, rel=1e-12)
    np.testing.assert_allclose(beside.published_curve, found.curve, rtol=1e-12)


@pytest.mark.parametrize("normal", [False, True])
def test_the_published_form_over_a_horizon_sums_that_many_terms(normal):
    random = np.random.default_rng(8)
    make = rotation_normal if normal else gaussian
    U, V, W = make(random, 4, 1.2), make(random, 3, 0.8), random.standard_normal((4, 3))
    powers = [(np.linalg.matrix_power(U, k), np.linalg.matrix_power(V, k)) for k in range(5)]
    psi, sigma = (sum(p[side].T @ p[side] for p in powers) for side in (0, 1))
    twin = [np.trace(np.linalg.inv(sigma) @ v.T @ W.T @ u @ np.linalg.inv(psi) @ u.T @ W @ v) for u, v in powers]
    found = matrix_fisher_memory(U, V, W, horizon=5, form="published")
    np.testing.assert_allclose(found.curve, twin, rtol=1e-11)


def test_only_the_product_of_the_radii_counts():
    random = np.random.default_rng(2)
    U, V, W = gaussian(random, 3, 0.9), gaussian(random, 3, 0.9), random.standard_normal((3, 3))
    found = matrix_fisher_memory(8 * U, V / 8, W)
    assert found.total == pytest.approx(matrix_fisher_memory(U, V, W).total, rel=1e-12)
    assert found.published_total is None
    with pytest.raises(UserError, match=r"needs rho\(U\) and rho\(V\) below 1"):
        matrix_fisher_memory(8 * U, V / 8, W, form="published")
    with pytest.raises(UserError, match=r"rho\(U\) rho\(V\) must be below 1 .* got 51.84.* finite horizon"):
        matrix_fisher_memory(8 * U, 8 * V, W)


@pytest.mark.parametrize(("n", "diagonal", "above"), [(8, 0.5, 2.0), (10, 0.5, 2.0), (10, 0.8, 1.0)])
def test_the_digits_that_are_promised_are_there(n, diagonal, above):
    """Jordan blocks whose covariance has condition numbers up to 1e24; truth from ball arithmetic."""
    random = np.random.default_rng(n)
    U, V, W = jordan(n, diagonal, above, 0.1), jordan(n, diagonal, above).T, random.standard_normal((n, n))
    part = Extended(V.T, U.T, W, (), (1,), None)
    truth = total_memory([part], None, n)
    assert part.defect() < 1e-20
    found = matrix_fisher_memory(U, V, W)
    assert found.total == pytest.approx(truth.totals[0], rel=10.0**-found.digits)
    assert found.digits >= 10
    np.testing.assert_allclose(found.curve, truth.curves[0], atol=10.0**-found.digits * found.total)


def test_float64_says_what_it_lost_where_balls_would_take_too_long(monkeypatch):
    monkeypatch.setattr("mnemoscope.measures.fisher.engine.LARGEST", 0)
    U, V = jordan(10, 0.8, 1.0, 0.1), jordan(10, 0.8, 1.0).T
    W = np.random.default_rng(0).standard_normal((10, 10))
    truth = total_memory([Extended(V.T, U.T, W, (), (1,), None)], None, 10).totals[0]
    found = matrix_fisher_memory(U, V, W)
    assert found.method == "square root in float64"
    assert 3 <= found.digits < 10
    assert found.total == pytest.approx(truth, rel=10.0**-found.digits)


def test_where_no_digit_is_left_nothing_is_returned(monkeypatch):
    monkeypatch.setattr("mnemoscope.measures.fisher.engine.LARGEST", 0)
    random = np.random.default_rng(0)
    U, V = gaussian(random, 3, 3.0), gaussian(random, 3, 1.0)
    with pytest.raises(UserError, match="float64 leaves no digit of the covariance of 9 state numbers"):
        matrix_fisher_memory(U, V, np.eye(3), horizon=100)


def test_what_float64_cannot_hold_goes_to_balls():
    """A rotated Jordan block: its powers, squared in float64, do not even decay."""
    random = np.random.default_rng(1)
    frame = scipy.linalg.qr(random.standard_normal((6, 6)))[0]
    U, V = frame @ jordan(6, 0.5, 40.0) @ frame.T, jordan(2, 0.5, 1.0)
    found = matrix_fisher_memory(U, V, random.standard_normal((6, 2)))
    assert found.method == "extended precision"
    assert np.trace(found.spatial) == pytest.approx(12, rel=1e-13)
    expected = dense_twin(U, V, np.eye(6, 2), 12, digits=80)
    np.testing.assert_allclose(matrix_fisher_memory(U, V, np.eye(6, 2), horizon=12).curve, expected, rtol=1e-11)


def test_a_nilpotent_network_forgets_after_its_last_unit():
    line = np.eye(4, k=1)
    W = np.zeros((4, 4))
    W[0, 0] = 1.0
    found = matrix_fisher_memory(line, line, W)
    # Along the diagonal of the state runs a delay line of gain 1: J(k) = 1 / (k + 1).
    np.testing.assert_allclose(found.curve, [1, 1 / 2, 1 / 3, 1 / 4], rtol=1e-13)
    assert matrix_fisher_memory(np.zeros((2, 2)), np.eye(2), np.ones((2, 2))).total == pytest.approx(4)


@pytest.mark.parametrize("radius", [1.0, 1.5, 40.0])
def test_long_horizons_of_growing_modes_do_not_overflow(radius):
    found = matrix_fisher_memory([[radius]], [[1.0]], [[1.0]], horizon=2000)
    q = mp.mpf(radius) ** 2
    assert found.curve[-1] == pytest.approx(float(q**1999 / sum(q**k for k in range(2000))), rel=1e-12)
    assert found.total == pytest.approx(1, rel=1e-12)


def test_slow_networks_have_their_exact_total_and_say_what_the_curve_lacks():
    found = matrix_fisher_memory(np.diag([1 - 1e-9, 0.5]), np.eye(2), np.ones((2, 2)))
    assert found.total == pytest.approx(4, rel=1e-12)
    assert found.total == pytest.approx(found.curve.sum() / (1 - found.tail), rel=1e-9)
    assert found.tail > 0.1
    assert any("cut off" in line for line in found.assumptions)
    fast = matrix_fisher_memory(np.diag([1 - 1e-4, 0.5]), np.eye(2), np.ones((2, 2)))
    assert fast.tail <= 1e-12
    assert fast.curve.sum() == pytest.approx(4, rel=1e-11)


@pytest.mark.parametrize("squared", [False, True])
def test_doubling_is_the_sum(squared):
    random = np.random.default_rng(0)
    a, b = gaussian(random, 3, 1.0), gaussian(random, 2, 0.9)
    start = random.standard_normal((1, 6, 6))
    for horizon in (1, 2, 3, 7, 12, None):
        step = Kronecker(a[None], b[None])
        matrix = np.kron(a, b)
        terms = [start[0] @ np.linalg.matrix_power(matrix, k) for k in range(horizon or 600)]
        direct = sum(term.T @ term for term in terms)
        for one in (step, Dense(matrix[None])):
            root = sum_of_squares(start, one, horizon)[0]
            formed = sum_of_products(start.transpose(0, 2, 1) @ start, one, horizon)[0]
            np.testing.assert_allclose(formed if squared else root.T @ root, direct, rtol=1e-9)


def test_torch_lists_and_float32_are_taken():
    U = torch.tensor([[0.5, 0.1], [0.0, 0.25]])
    found = matrix_fisher_memory(U, U.double().numpy(), [[1, 0], [0, 1]])
    again = matrix_fisher_memory(U.double(), U.double(), np.eye(2))
    assert found.total == again.total
    assert isinstance(found.total, float)
    assert isinstance(found.curve, np.ndarray)


def test_result_prints_plots_and_exports():
    found = matrix_fisher_memory(np.diag([0.9, 0.5]), np.diag([0.8, 0.3]), np.eye(2))
    assert str(found).startswith("Fisher memory 2 (published formula: 0.840236) of at most 8")
    assert "published, total 0.8402" in found.plot().to_json()
    assert found.to_dict()["published_total"] == pytest.approx(0.84023629674317)
    published = matrix_fisher_memory(np.diag([0.9, 0.5]), np.diag([0.8, 0.3]), np.eye(2), form="published")
    assert str(published).startswith("Published Fisher memory 0.8402363")
    assert get("matrix-fisher").matrices == {"U": "u", "V": "v", "W": "w"}
    assert get("matrix-fisher").kinds == ("recurrent",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"U": np.ones((2, 3))}, r"U must be a square matrix, got an array of shape \(2, 3\)"),
        ({"V": [[np.nan, 0], [0, 0]]}, "V must be finite, got 1 NaN or infinite of 4 entries"),
        ({"W": np.ones((2, 3))}, r"W must be of shape \(2, 2\) to fit U and V, got \(2, 3\)"),
        ({"W": np.zeros((2, 2))}, "W must have an entry other than 0"),
        ({"noise": (0.0, 1.0)}, r"noise\[0\] must be a positive number, got 0.0"),
        ({"noise": 1.0}, "noise must be two positive variances, of rows and of columns, got 1.0"),
        ({"noise": (1.0,)}, "noise must be two positive variances"),
        ({"horizon": 0}, "horizon must be a positive integer, got 0"),
        ({"horizon": 10**15}, r"a curve of 1000000000000000 lags needs .* horizon=\d+ would fit"),
        ({"form": "publishd"}, "form must be 'exact' or 'published', got 'publishd'; did you mean 'published'?"),
        ({"U": np.eye(2), "V": np.eye(2)}, r"rho\(U\) rho\(V\) must be below 1 for horizon=None, got 1"),
    ],
)
def test_bad_input_is_said_in_one_line(change, message):
    arguments = {"U": 0.5 * np.eye(2), "V": np.eye(2), "W": np.eye(2), **change}
    with pytest.raises(UserError, match=message) as caught:
        matrix_fisher_memory(**arguments)
    assert "\n" not in str(caught.value)


def test_what_does_not_fit_in_memory_is_refused(monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_MEMORY", "0.001")
    random = np.random.default_rng(0)
    with pytest.raises(UserError, match=r"covariance of 400 state numbers needs 9.8 MB .* states of 11 x 11 would fit"):
        matrix_fisher_memory(gaussian(random, 20, 0.9), gaussian(random, 20, 0.9), np.eye(20))


@pytest.mark.slow
def test_sixty_four_by_sixty_four():
    random = np.random.default_rng(0)
    U, V, W = gaussian(random, 64, 0.95), gaussian(random, 64, 1.0), random.standard_normal((64, 64))
    found = matrix_fisher_memory(U, V, W)
    assert found.digits >= 9
    assert found.self_check < 1e-10
    # Krylov columns, whitened by conjugate gradients on the covariance as an operator: nothing shared but the network.
    w = W.reshape(-1, order="F")
    apply = _covariance_operator(U, V)
    for lag in range(3):
        solution, _ = scipy.sparse.linalg.cg(apply, w, rtol=1e-13, maxiter=4000)
        assert w @ solution == pytest.approx(found.curve[lag], rel=1e-8)
        w = (U.T @ w.reshape(64, 64, order="F") @ V).reshape(-1, order="F")


def _covariance_operator(U, V, terms=600):
    def multiply(x):
        # C x = sum_k K^k K^kT x, by Horner's rule from the last term.
        images = [x.reshape(64, 64, order="F")]
        for _ in range(terms):
            images.append(U @ images[-1] @ V.T)
        found = np.zeros((64, 64))
        for image in reversed(images):
            found = image + U.T @ found @ V
        return found.reshape(-1, order="F")

    return scipy.sparse.linalg.LinearOperator((4096, 4096), matvec=multiply, dtype=float)
