"""Spectrum and non-normality, against closed forms, high precision, brute force and identities."""

import json
import math

import mpmath
import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.spectral import kreiss
from mnemoscope.measures.spectral.eigenvalues import eigenvalues
from mnemoscope.measures.spectral.kreiss import kreiss_constant
from mnemoscope.measures.spectral.matrix import spectrum
from mnemoscope.measures.spectral.pseudo import pseudospectrum
from mnemoscope.measures.spectral.series import spectra


def gaussian(n, radius, seed):
    W = np.random.default_rng(seed).normal(size=(n, n))
    return W * radius / np.abs(np.linalg.eigvals(W)).max()


def rotation(n, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]


def triangle(n, diagonal, below, rest):
    return np.tril(np.full((n, n), rest), -2) + np.diag(np.full(n - 1, below), -1) + diagonal * np.eye(n)


# Eigenvalues, departure, Schur form -----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.booleans())
def test_departure_and_schur_form_agree_with_their_definitions(seed, n, imaginary):
    random = np.random.default_rng(seed)
    W = random.normal(size=(n, n)) + (1j * random.normal(size=(n, n)) if imaginary else 0)
    W = W / (2 * np.linalg.norm(W, 2))
    found = spectrum(W)
    values = np.linalg.eigvals(W)
    assert sorted(np.abs(found.eigenvalues)) == pytest.approx(sorted(np.abs(values)), rel=1e-9)
    assert found.henrici == pytest.approx(
        math.sqrt(max(0, np.linalg.norm(W) ** 2 - (np.abs(values) ** 2).sum())), abs=1e-7
    )
    assert np.allclose(found.basis @ found.schur @ found.basis.conj().T, W, atol=1e-13)
    assert np.allclose(found.basis.conj().T @ found.basis, np.eye(n), atol=1e-13)
    above = np.triu(found.schur, 1)
    assert np.count_nonzero(above) <= n // 2
    assert not np.triu(found.schur, 2).any()
    assert found.share == pytest.approx(found.henrici**2 / np.linalg.norm(W) ** 2, rel=1e-12)
    assert found.angle_counts.sum() == n


@pytest.mark.parametrize("n", [3, 20, 65])
def test_normal_matrices_have_no_departure_and_no_transient(n):
    Q = rotation(n)
    symmetric = Q @ np.diag(np.linspace(-0.9, 0.9, n)) @ Q.T
    for W in (Q, 0.8 * Q, (symmetric + symmetric.T) / 2, np.diag(np.linspace(-1, 1, n))):
        found = spectrum(W)
        assert found.henrici < 1e-13 * n
        assert found.kreiss == 1
        assert found.amplification == 1
        assert found.stability == ("marginal" if found.radius > 0.95 else "stable")


def test_a_small_departure_keeps_its_digits():
    """sqrt(||W||^2 - sum |lambda|^2) as written would cancel: 1e-9 against 1."""
    for epsilon in (1e-3, 1e-6, 1e-9):
        W = np.array([[0.3, epsilon], [0.0, 0.7]])
        Q = rotation(2)
        assert spectrum(Q @ W @ Q.T).henrici == pytest.approx(epsilon, rel=1e-5 if epsilon < 1e-8 else 1e-8)


def test_eigenvalues_that_float64_cannot_hold_are_found_in_extended_precision():
    """Against mpmath on the same floats; LAPACK has no digit of these right."""
    n = 24
    Q = rotation(n, 1)
    W = Q @ triangle(n, 0.2, 1.05, 0.0) @ Q.T
    with mpmath.workdps(60):
        values = mpmath.eig(mpmath.matrix(W.tolist()), left=False, right=False)
        total = mpmath.fsum(mpmath.mpf(x) ** 2 for x in W.ravel().tolist())
        henrici = mpmath.sqrt(total - mpmath.fsum(abs(v) ** 2 for v in values))
    found = spectrum(W)
    assert found.henrici == pytest.approx(float(henrici), rel=1e-12)
    assert np.abs(found.eigenvalues[0]) == pytest.approx(float(max(abs(v) for v in values)), rel=1e-10)
    naive = np.linalg.norm(W) ** 2 - (np.abs(np.linalg.eigvals(W)) ** 2).sum()
    assert abs(naive**0.5 / float(henrici) - 1) > 1e-6


def test_triangular_matrices_are_read_as_they_are():
    W = triangle(50, 0.2, 1.05, 0.01)
    found = spectrum(W, tolerance=0.1)
    assert np.allclose(found.eigenvalues, 0.2, atol=0)
    assert np.allclose(found.subdiagonals, [0.2, 1.05, *[0.01] * 48], rtol=1e-14)
    assert found.henrici == pytest.approx(math.sqrt(49 * 1.05**2 + 49 * 48 / 2 * 0.01**2), rel=1e-13)
    assert np.array_equal(found.schur, W)
    turned = spectrum(W[::-1, ::-1], tolerance=0.1)
    assert np.array_equal(turned.schur, W)


def test_blocks_of_rotations_belong_to_the_eigenvalues_and_not_to_the_first_subdiagonal():
    turn = scipy.linalg.block_diag(
        *[[[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]] for t in (0.3, 1.2, 2.5)]
    )
    found = spectrum(0.9 * turn)
    assert found.subdiagonals == pytest.approx([0.9, 0, 0, 0, 0, 0], abs=1e-14)
    assert found.angle_counts.sum() == 6
    assert found.angle_edges[0] == -180
    found = spectrum(np.diag([0.5, -0.5]), angles=4)
    assert found.angle_counts.tolist() == [0, 0, 1, 1]


# Kreiss constant and powers -------------------------------------------------------------------------------------------


def kreiss_by_force(W):
    """Return the largest value on a grid, climbed from its best points."""

    def value(point):
        z = (1 + math.exp(point[0])) * np.exp(1j * point[1])
        return -math.exp(point[0]) / np.linalg.svd(z * np.eye(len(W)) - W, compute_uv=False)[-1]

    grid = [(value((y, t)), y, t) for y in np.linspace(-7, 5, 30) for t in np.linspace(0, 2 * np.pi, 24)]
    options = {"xatol": 1e-9, "fatol": 1e-13}
    best = [minimize(value, point[1:], method="Nelder-Mead", options=options).fun for point in sorted(grid)[:3]]
    return max(1.0, -min(best))


@pytest.mark.parametrize(
    ("n", "radius", "seed"), [(2, 0.95, 0), (4, 0.9, 1), (6, 0.99, 2), (10, 0.95, 3), (15, 0.97, 4)]
)
def test_kreiss_constant_agrees_with_brute_force(n, radius, seed):
    W = gaussian(n, radius, seed)
    found = spectrum(W)
    assert found.kreiss == pytest.approx(kreiss_by_force(W), rel=1e-9)
    assert found.kreiss <= found.kreiss_bound <= found.kreiss * (1 + 2e-6)


def test_kreiss_constant_of_a_complex_matrix():
    random = np.random.default_rng(5)
    W = random.normal(size=(5, 5)) + 1j * random.normal(size=(5, 5))
    W *= 0.96 / np.abs(np.linalg.eigvals(W)).max()
    assert spectrum(W).kreiss == pytest.approx(kreiss_by_force(W), rel=1e-9)


@pytest.mark.parametrize("x", [1.2, 2.0, 7.5, 40.0])
@pytest.mark.parametrize("d", [0.0, 0.5])
def test_kreiss_constant_of_two_by_two_triangles_has_a_closed_form(d, x):
    """(z - W)^-1 = [[1, 0], [x / (z - d), 1]] / (z - d); d = 0 and 0.5 are checked by one real variable."""
    with mpmath.workdps(40):

        def value(r):
            w = x / (r - d)
            return (r - 1) / (r - d) * mpmath.sqrt(1 + w**2 / 2 + w * mpmath.sqrt(1 + w**2 / 4))

        top = max(((value(1 + mpmath.mpf(10) ** k)), 1 + mpmath.mpf(10) ** k) for k in np.linspace(-4, 4, 400))
        at = mpmath.findroot(lambda r: mpmath.diff(value, r), top[1]) if top[0] > 1 + 1e-9 else None
        wanted = float(value(at)) if at is not None else 1.0
    found = spectrum([[d, 0.0], [x, d]])
    assert found.kreiss == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(("diagonal", "below", "rest"), [(0.2, 1.05, 0.0), (0.2, 0.95, 0.005), (0.0, 1.05, 0.01)])
def test_kreiss_constant_of_long_triangles_in_high_precision(diagonal, below, rest):
    """The resolvent at the point that was found, in 60 digits: no digit is lost to a condition of 1e8 and more."""
    W = triangle(40, diagonal, below, rest)
    found = spectrum(W)
    with mpmath.workdps(60):
        inverse = (mpmath.mpc(found.kreiss_point) * mpmath.eye(40) - mpmath.matrix(W.tolist())) ** -1
        gram = inverse.H * inverse
        vector = mpmath.matrix([1] * 40)
        for _ in range(60):
            vector = gram * vector
            vector /= mpmath.norm(vector)
        size = mpmath.sqrt(mpmath.norm(gram * vector))
        wanted = (abs(mpmath.mpc(found.kreiss_point)) - 1) * size
    assert found.kreiss == pytest.approx(float(wanted), rel=1e-9)
    assert found.kreiss <= found.amplification <= math.e * 40 * found.kreiss


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8), st.floats(0.3, 0.99))
def test_kreiss_matrix_theorem_and_the_numerical_radius(seed, n, radius):
    W = gaussian(n, radius, seed)
    W = W + np.tril(np.random.default_rng(seed + 1).normal(size=(n, n)), -1) * 0.3
    if np.abs(np.linalg.eigvals(W)).max() >= 0.995:
        W *= 0.9 / np.abs(np.linalg.eigvals(W)).max()
    found = spectrum(W, tolerance=1e-3)
    assert 1 <= found.kreiss <= found.amplification * (1 + 1e-12)
    assert found.amplification <= math.e * n * found.kreiss
    assert (found.kreiss == 1) == (found.numerical_radius <= 1 + 1e-12)
    assert found.radius <= found.numerical_radius * (1 + 1e-12) <= np.linalg.norm(W, 2) * (1 + 1e-10)
    assert found.numerical_abscissa <= found.numerical_radius * (1 + 1e-12)


@pytest.mark.parametrize("size", [1.0, 0.3])
def test_numerical_radius_of_a_normal_matrix_is_its_spectral_radius(size, monkeypatch):
    """Between two bounds that meet there is nothing to search."""
    monkeypatch.setattr(kreiss, "highest", None)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 30)))[0]
    assert kreiss.numerical_radius(size * Q) == pytest.approx(size, rel=1e-12)
    assert kreiss.numerical_radius(np.zeros((3, 3))) == 0


def test_numerical_radius_of_a_shift_is_a_cosine():
    """Of the N x N nilpotent shift: cos(pi / (N + 1)); its numerical range is a disc."""
    for n in (2, 5, 17, 50):
        assert spectrum(np.diag(np.ones(n - 1), -1)).numerical_radius == pytest.approx(
            math.cos(math.pi / (n + 1)), rel=1e-10
        )


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.floats(0.2, 0.99))
def test_amplification_is_the_largest_of_all_powers(seed, n, radius):
    W = gaussian(n, radius, seed) + np.diag(np.full(n - 1, 0.5), -1) * 0.2
    W *= radius / np.abs(np.linalg.eigvals(W)).max()
    found = spectrum(W, tolerance=0.1)
    powers, power = [], np.eye(n)
    for _ in range(1500):
        powers.append(np.linalg.norm(power, 2))
        power = power @ W
    assert found.amplification == pytest.approx(max(powers), rel=1e-10)
    assert powers[found.amplification_power] == pytest.approx(max(powers), rel=1e-10)
    assert found.amplification_exact
    assert found.transient == pytest.approx(powers[:101], rel=1e-9, abs=1e-300)


def test_a_late_maximum_behind_a_slow_tail_is_found():
    """A slow rotation with a stretch: the largest power is the 1571st or so."""
    t = math.pi / 3142
    W = 0.9999 * np.array([[math.cos(t), -30 * math.sin(t)], [math.sin(t) / 30, math.cos(t)]])
    norms, power = [], np.eye(2)
    for _ in range(20_000):
        norms.append(np.linalg.norm(power, 2))
        power = power @ W
    found = spectrum(W, tolerance=0.1)
    assert found.amplification == pytest.approx(max(norms), rel=1e-9)
    assert found.amplification_power == int(np.argmax(norms)) > 1000


@pytest.mark.parametrize(
    "W",
    [
        [[1.01, 0], [0, 0.5]],
        [[1, 1], [0, 1]],
        [[0, -1, 1, 0], [1, 0, 0, 1], [0, 0, 0, -1], [0, 0, 1, 0]],
    ],
    ids=["outside the circle", "defective on the circle", "defective pair on the circle"],
)
def test_powers_that_grow_have_infinite_constants(W):
    found = spectrum(W)
    assert found.stability == "unstable"
    assert math.isinf(found.kreiss)
    assert math.isinf(found.amplification)
    assert "inf" in str(found)


def test_eigenvalues_on_the_circle_with_all_their_vectors_keep_powers_bounded():
    found = spectrum([[1.0, 1.0], [0.0, 0.5]])  # W^k -> [[1, 2], [0, 0]]
    assert found.stability == "marginal"
    assert found.kreiss == pytest.approx(math.sqrt(5), rel=1e-12)
    assert found.amplification == pytest.approx(math.sqrt(5), rel=1e-12)
    assert found.status == "bound"
    pair = spectrum([[0, -4], [0.25, 0]])
    assert pair.amplification == pytest.approx(4)
    assert pair.kreiss == pytest.approx((4 + 0.25) / 2)


def test_float32_weights_are_judged_at_their_own_precision():
    Q = rotation(30).astype(np.float32)
    assert np.abs(np.linalg.eigvals(Q.astype(float))).max() > 1
    found = spectrum(torch.from_numpy(Q))
    assert found.stability == "marginal"
    assert found.amplification == found.kreiss == 1
    assert spectrum(np.diag([1 + 1e-9, 0.5])).stability == "unstable"


# Networks and lists ---------------------------------------------------------------------------------------------------


def make(name, n=6, **options):
    generator = torch.Generator().manual_seed(0)
    return ms.nn.create(name, input_size=2, hidden_size=n, generator=generator, dtype=torch.float64, **options)


@pytest.mark.parametrize("name", ["rnn", "nnrnn", "exprnn", "urnn", "linear-rnn"])
def test_a_first_order_network_is_its_matrix(name):
    layer = make(name)
    V = layer.weight_hh_l0.detach()
    before = [p.clone() for p in layer.parameters()]
    found = spectrum(layer)
    assert found.matrix == "weight_hh_l0"
    assert sorted(np.abs(found.eigenvalues)) == pytest.approx(sorted(torch.linalg.eigvals(V).abs().tolist()), abs=1e-10)
    assert found.henrici == pytest.approx(spectrum(V).henrici, abs=1e-13)
    assert all(torch.equal(a, b) for a, b in zip(before, layer.parameters(), strict=True))


def test_the_schur_form_of_nnrnn_is_its_own():
    """What Kerg's Fig. 3.3 shows is the learned Theta, in its own order of eigenvalues."""
    layer = make("nnrnn", 7)
    schur = layer.transition()
    parameters = list(layer.parametrizations.weight_hh_l0.parameters(recurse=False))
    with torch.no_grad():
        rows, columns = schur._lower
        schur.named(parameters)["lower"].copy_(0.1 * (rows - columns))
        schur.named(parameters)["gamma"].fill_(0.9)
    found = spectrum(layer)
    assert np.allclose(found.schur, schur.form(*parameters).detach())
    assert np.allclose(found.basis @ found.schur @ found.basis.T, layer.weight_hh_l0.detach(), atol=1e-12)
    assert np.allclose(found.subdiagonals, [0.9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    computed = spectrum(layer.weight_hh_l0)
    assert found.henrici == pytest.approx(computed.henrici, rel=1e-10)


def test_layers_of_a_linear_network_are_one_matrix():
    layer = make("linear-rnn", num_layers=3)

    def step(flat):
        return layer.flatten_state(layer.step(torch.zeros(1, 2, dtype=torch.float64), layer.unflatten_state(flat))[1])

    wanted = torch.autograd.functional.jacobian(step, torch.zeros(1, 18, dtype=torch.float64))[0, :, 0].numpy()
    found = spectrum(layer)
    assert found.matrix == "the linear part of 3 layers"
    assert found.henrici == pytest.approx(spectrum(wanted).henrici, rel=1e-12)
    assert found.amplification == pytest.approx(spectrum(wanted).amplification, rel=1e-12)
    deep = spectrum(make("urnn", num_layers=2))
    assert len(deep.eigenvalues) == 24


@pytest.mark.parametrize("settle", [0, 7])
def test_any_other_network_is_its_jacobian_at_rest(settle):
    layer = torch.nn.LSTM(2, 5).double()
    with torch.no_grad():
        for p in layer.parameters():
            p.mul_(3)

    def step(flat):
        h, c = flat.chunk(2)
        _, (h, c) = layer(torch.zeros(1, 2, dtype=torch.float64), (h[None], c[None]))
        return torch.cat([h[0], c[0]])

    flat = torch.zeros(10, dtype=torch.float64)
    for _ in range(settle):
        flat = step(flat).detach()
    wanted = torch.autograd.functional.jacobian(step, flat).numpy()
    found = spectrum(layer, settle=settle)
    assert found.matrix.startswith("the state Jacobian")
    assert sorted(np.abs(found.eigenvalues)) == pytest.approx(sorted(np.abs(np.linalg.eigvals(wanted))), abs=1e-9)
    assert found.transient[1] == pytest.approx(np.linalg.norm(wanted, 2), rel=1e-10)


def test_torch_modules_stand_for_their_matrix():
    layer, cell = torch.nn.RNN(2, 5), torch.nn.RNNCell(2, 5)
    assert spectrum(layer).henrici == pytest.approx(spectrum(layer.weight_hh_l0).henrici, rel=1e-12)
    assert spectrum(cell).henrici == pytest.approx(spectrum(cell.weight_hh).henrici, rel=1e-12)


def test_spectra_along_matrices_networks_and_saved_weights():
    matrices = np.stack([gaussian(5, 0.9, seed) for seed in range(4)])
    found = spectra(matrices, positions=[0, 100, 200, 300])
    single = [spectrum(W) for W in matrices]
    for name in ("henrici", "kreiss", "amplification", "radius", "share", "numerical_radius", "numerical_abscissa"):
        assert getattr(found, name) == pytest.approx([getattr(each, name) for each in single], rel=1e-13)
    assert found.eigenvalues.shape == (4, 5)
    assert found.subdiagonals.shape == (4, 5)
    layers = [torch.nn.RNN(2, 5, num_layers=2) for _ in range(3)]
    by_network = spectra(layers)
    by_weights = spectra([layer.state_dict() for layer in layers])
    assert by_network.henrici == pytest.approx(by_weights.henrici, rel=1e-12)
    nnrnn = make("nnrnn")
    saved = [{key: value.clone() for key, value in nnrnn.state_dict().items()}]
    with torch.no_grad():
        nnrnn.parametrizations.weight_hh_l0.original2.add_(0.3)
    saved.append(nnrnn.state_dict())
    trained = spectra(saved, network=make("nnrnn"))
    assert trained.henrici[0] < 1e-12 < 0.5 < trained.henrici[1]
    assert json.loads(json.dumps(found.to_dict()))["positions"] == [0, 100, 200, 300]
    assert "4 matrices" in str(found)
    assert found.plot().to_dict()["concat"]


def test_the_result_prints_draws_and_exports():
    found = spectrum(gaussian(12, 0.9, 0))
    assert str(found).startswith("spectral radius 0.9, Henrici departure")
    assert len(found.plot().to_dict()["concat"]) == 4
    exported = json.loads(json.dumps(found.to_dict()))
    assert exported["kreiss"] == found.kreiss
    assert len(exported["eigenvalues"][0]) == 2
    assert "Henrici" in found._repr_html_()


# Pseudospectra --------------------------------------------------------------------------------------------------------


def test_the_grid_holds_smallest_singular_values():
    W = gaussian(6, 0.9, 3)
    found = pseudospectrum(W, points=9, reach=1.5)
    for i, y in enumerate(found.imaginary):
        for j, x in enumerate(found.real):
            wanted = np.linalg.svd((x + 1j * y) * np.eye(6) - W, compute_uv=False)[-1]
            assert found.distance[i, j] == pytest.approx(wanted, rel=1e-9)
    assert found.plot().to_dict()["layer"]
    assert "pseudospectra reach" in str(found)


def test_pseudospectra_of_a_normal_matrix_are_discs():
    found = pseudospectrum(np.diag([0.5, -0.5]), points=31)
    z = found.real[None, :] + 1j * found.imaginary[:, None]
    assert np.allclose(found.distance, np.minimum(abs(z - 0.5), abs(z + 0.5)), rtol=1e-12)
    assert pseudospectrum(make("lstm", 3), points=5).matrix == "the state Jacobian at rest"
    assert pseudospectrum(1j * np.eye(2), points=5, reach=2).distance[4, 2] == pytest.approx(1)


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spectrum(np.ones((2, 3))), r"W must be a square matrix, got an array of shape \(2, 3\)"),
        (lambda: spectrum(np.ones((2, 3)) * 1j), r"W must be a square matrix, got an array of shape \(2, 3\)"),
        (lambda: spectrum([[np.nan, 0], [0, 1]]), "W must be finite, got 1 NaN or infinite of 4 entries"),
        (lambda: spectrum(np.array([[1j, np.inf], [0, 1]])), "W must be finite, got 1 NaN or infinite of 4 entries"),
        (lambda: spectrum("a"), "W must be an array of real numbers, got"),
        (lambda: spectrum([[1, 2], [3]]), "W must be an array of numbers"),
        (lambda: spectrum([np.eye(2), np.eye(2)]), "a list of them goes to mnemoscope.measures.spectra"),
        (lambda: spectrum(np.eye(2), tolerance=0), "tolerance must be a positive number, got 0"),
        (lambda: spectrum(np.eye(2), horizon=0), "horizon must be a positive integer, got 0"),
        (lambda: spectrum(np.eye(2), settle=-1), "settle must be an integer of at least 0, got -1"),
        (lambda: spectrum(torch.nn.LSTM(2, 3, bidirectional=True)), "causal"),
        (lambda: spectra([]), "sources must be a list of matrices, networks or state_dicts, got nothing"),
        (lambda: spectra(torch.nn.RNN(2, 3)), "sources must be a list"),
        (lambda: spectra([np.eye(2), np.eye(3)]), r"sources must be matrices of one size, got \[2, 3\]"),
        (lambda: spectra([np.eye(2)], positions=[1, 2]), "positions must be one number for each of the 1 sources"),
        (lambda: spectra([torch.nn.LSTM(2, 3).state_dict()]), "must be one with square weight_hh_l0"),
        (lambda: spectra([{"a": torch.ones(1)}], network=torch.nn.RNN(2, 3)), "must be one of RNN"),
        (lambda: pseudospectrum(np.eye(2), points=2), "points must be an integer of at least 3, got 2"),
        (lambda: pseudospectrum(np.eye(2), levels=()), "levels must be several positive numbers"),
        (lambda: pseudospectrum(np.eye(2), levels=(0.1, -1)), "each of levels must be a positive number, got -1"),
    ],
)
def test_bad_input_is_one_line(call, message):
    with pytest.raises(UserError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_broken_weights_are_named():
    layer = torch.nn.RNN(2, 3)
    with torch.no_grad():
        layer.weight_hh_l0[0, 0] = torch.nan
    with pytest.raises(UserError, match="NaN or inf in weight_hh_l0"):
        spectrum(layer)


@pytest.mark.parametrize(("size", "radius", "skew"), [(60, 0.9, 0.0), (90, 0.95, 0.3), (70, 0.5, 1.0)])
def test_what_is_said_of_large_matrices_is_a_bound(size, radius, skew):
    """Against the certified way: no bound exceeds the truth, and those of norms are within a tenth of it."""
    rng = np.random.default_rng(size)
    W = rng.normal(size=(size, size)) / size**0.5 + skew * np.triu(rng.normal(size=(size, size)), 1)
    W *= radius / np.abs(np.linalg.eigvals(W)).max()
    truth, found = spectrum(W, horizon=40), spectrum(W, horizon=40, certified=10)
    assert found.status == "bound"
    assert 1 <= found.kreiss <= truth.kreiss * (1 + 1e-9)
    assert 0.9 * truth.amplification <= found.amplification <= truth.amplification * (1 + 1e-9)
    assert (found.transient <= truth.transient * (1 + 1e-9)).all()
    assert found.numerical_radius <= truth.numerical_radius * (1 + 1e-6)
    assert found.numerical_abscissa == pytest.approx(truth.numerical_abscissa, rel=1e-4)
    assert found.henrici == pytest.approx(truth.henrici, rel=1e-8)
    assert found.stability == truth.stability
    np.testing.assert_allclose(np.abs(found.eigenvalues), np.abs(truth.eigenvalues), atol=1e-7)


def test_large_pseudospectra_reach_at_most_as_far(monkeypatch):
    W = np.diag(np.full(39, 0.9), -1) + 0.1 * np.eye(40)
    truth = pseudospectrum(W, points=15, levels=(0.1, 0.01))
    monkeypatch.setattr("mnemoscope.measures.spectral.large.DENSE", 10)
    found = pseudospectrum(W, points=15, levels=(0.1, 0.01))
    assert (found.distance >= truth.distance * (1 - 1e-9)).all()
    assert found.status == "bound"
    assert all(mine <= theirs for mine, theirs in zip(found.reach, truth.reach, strict=True))


def test_beyond_all_eigenvalues_the_leading_ones_are_found(monkeypatch):
    rng = np.random.default_rng(3)
    W = rng.normal(size=(200, 200)) / 200**0.5
    wanted = np.sort(np.abs(np.linalg.eigvals(W)))[::-1]
    monkeypatch.setattr("mnemoscope.measures.spectral.large.ALL", 100)
    found = spectrum(W, horizon=5, certified=100)
    assert len(found.eigenvalues) < 200
    np.testing.assert_allclose(np.abs(found.eigenvalues[:10]), wanted[:10], rtol=1e-6)
    assert any("leading" in each for each in found.assumptions)
    assert found.henrici >= spectrum(W, horizon=5, certified=100).henrici - 1e-9


def test_a_slope_at_rest_that_is_a_convention_is_not_taken():
    """A relu's derivative at zero is 0 by convention: the matrix is taken along a driven trajectory, and says so."""

    class Rectified(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = torch.nn.Linear(5, 4, bias=False)

        def forward(self, x, h=None):
            h = x.new_zeros(x.shape[1], 4) if h is None else h[0]
            outputs = []
            for one in x:
                h = torch.relu(self.cell(torch.cat([one, h], 1)))
                outputs.append(h)
            return torch.stack(outputs), h[None]

    torch.manual_seed(0)
    found = spectrum(Rectified())
    assert found.matrix.startswith("the state Jacobian after 99 normal inputs")
    assert found.radius > 0
    assert spectrum(torch.nn.GRU(1, 4)).matrix == "the state Jacobian at rest"


def test_pseudospectra_reach_as_far_as_they_do():
    """Discs around the eigenvalues of a normal matrix; of a Jordan block a disc, whose radius solves an equation."""
    assert pseudospectrum(np.diag([0.6, 0.1]), levels=(0.01, 0.1), points=5).reach == pytest.approx(
        (0.61, 0.7), abs=1e-9
    )
    turned = np.diag(0.9 * np.exp(1j * np.array([0.3, 2.0])))
    assert pseudospectrum(turned, levels=(0.05,), points=5).reach[0] == pytest.approx(0.95, abs=1e-9)
    shift = np.diag(np.ones(4), -1)
    (found,) = pseudospectrum(shift, levels=(0.01,), points=5).reach
    least = [np.linalg.svd(r * np.eye(5) - shift, compute_uv=False)[-1] for r in (found - 1e-6, found + 1e-6)]
    assert least[0] < 0.01 < least[1]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_a_circle_just_within_the_reach_meets_the_pseudospectrum_and_one_beyond_it_does_not(seed):
    W = np.random.default_rng(seed).normal(size=(4, 4)) / 2
    turns = np.exp(1j * np.linspace(0, 2 * np.pi, 2000))
    found = pseudospectrum(W, points=5, levels=(0.05, 0.2))
    for level, reach in zip(found.levels, found.reach, strict=True):
        for radius, meets in ((reach - 1e-4, True), (reach + 1e-6, False)):
            least = np.linalg.svd(radius * turns[:, None, None] * np.eye(4) - W, compute_uv=False)[:, -1]
            assert bool((least < level).any()) is meets


def delay_line(n, radius, gain=2.0):
    """Return a line that amplifies by gain^(n-1) on its way and feeds back so little that its radius is as given."""
    W = np.diag(np.full(n - 1, gain), -1)
    W[0, -1] = radius**n / gain ** (n - 1)
    return W


@pytest.mark.parametrize("n", [50, 100, 150])
def test_a_line_with_feedback_has_its_radius_and_its_departure(n):
    """Eigenvalues are the n-th roots of the product of its weights: all of one modulus. LAPACK's are up to 1.34."""
    found = spectrum(delay_line(n, 0.927))
    assert found.stability == "stable"
    assert found.radius == pytest.approx(0.927, rel=1e-12)
    assert np.abs(found.eigenvalues) == pytest.approx(np.full(n, 0.927), rel=1e-12)
    assert found.henrici == pytest.approx(math.sqrt(4.0 * (n - 1) - n * 0.927**2), rel=1e-12)
    assert found.amplification == pytest.approx(2.0 ** (n - 1), rel=1e-12)


def test_kreiss_constant_beyond_what_float64_can_invert():
    """Against inverses in 80 digits near the point that was found: as large there, and no larger beside it."""
    W = delay_line(60, 0.9)
    found = kreiss_constant(W)
    exact = mpmath.matrix(W.tolist())

    def value(z):
        with mpmath.workdps(80):
            inverse = (mpmath.mpc(z) * mpmath.eye(60) - exact) ** -1
            scale = mpmath.norm(inverse, mpmath.inf)
            floats = np.array([[complex(inverse[i, j] / scale) for j in range(60)] for i in range(60)])
        return (abs(z) - 1) * float(scale) * np.linalg.norm(floats, 2)

    assert value(found.point) == pytest.approx(found.value, rel=1e-9)
    assert found.digits >= 9
    for beside in (1.02, 0.98):
        assert value(found.point * beside) < found.value


@pytest.mark.parametrize("above", [1e10, 1e14, 1e18, 1e100, 1e200])
@pytest.mark.parametrize("a", [0.5, 0.9])
def test_kreiss_constant_of_a_strong_triangle(a, above):
    """(r - 1) b / (r - a)^2 is largest at r = 2 - a: b / (4 (1 - a)), but for terms of order 1."""
    found = spectrum([[a, above], [0.0, a]])
    assert found.kreiss == pytest.approx(above / (4 * (1 - a)), rel=1e-8)
    assert found.radius == a


def test_exact_eigenvalues_of_drawn_matrices_agree_with_high_precision():
    random = np.random.default_rng(3)
    W = np.tril(random.normal(size=(30, 30)), -1) + 1e-9 * random.normal(size=(30, 30))
    with mpmath.workdps(60):
        values = mpmath.eig(mpmath.matrix(W.tolist()), left=False, right=False)
    found = eigenvalues(W)
    assert found.enclosed is not None
    assert found.radius == pytest.approx(float(max(abs(v) for v in values)), rel=1e-13)
    both = eigenvalues(W + 1j * W)  # of a complex matrix by another way
    assert both.radius == pytest.approx(math.sqrt(2) * found.radius, rel=1e-13)
