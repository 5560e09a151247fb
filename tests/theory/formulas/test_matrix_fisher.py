"""Closed forms, bounds, space-time matrices and KL of matrix Gaussians against sums, sampling and SciPy."""

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from mnemoscope.core.errors import UserError
from mnemoscope.theory import (
    dynamic_range_bounds,
    matrix_fisher_bound,
    matrix_gaussian_kl,
    normal_matrix_fisher_curve,
    normal_matrix_fisher_total,
    space_time_matrices,
)


def symmetric(random, n, radius):
    frame = scipy.linalg.qr(random.standard_normal((n, n)))[0]
    return frame @ np.diag(random.uniform(-radius, radius, n)) @ frame.T


def orthogonal(random, n, scale):
    return scale * scipy.linalg.qr(random.standard_normal((n, n)))[0]


def gaussian(random, n, radius):
    found = random.standard_normal((n, n))
    return found * (radius / np.abs(np.linalg.eigvals(found)).max())


def sums(U, V, lags=900):
    powers = [(np.linalg.matrix_power(U, k), np.linalg.matrix_power(V, k)) for k in range(lags)]
    exact = sum(np.kron(v.T @ v, u.T @ u) for u, v in powers)
    psi, sigma = sum(u.T @ u for u, _ in powers), sum(v.T @ v for _, v in powers)
    return powers, exact, psi, sigma


@pytest.mark.parametrize("make", [symmetric, orthogonal])
def test_closed_forms_of_normal_networks_are_the_sums(make):
    random = np.random.default_rng(0)
    U, V, W = make(random, 3, 0.95), make(random, 4, 0.9), random.standard_normal((3, 4))
    powers, covariance, psi, sigma = sums(U, V)
    images = [u.T @ W @ v for u, v in powers]
    exact = [x.T.reshape(-1) @ np.linalg.solve(covariance, x.T.reshape(-1)) for x in images]
    published = [np.trace(np.linalg.solve(sigma, x.T) @ np.linalg.solve(psi, x)) for x in images]
    for form, expected in (("exact", exact), ("published", published)):
        curve = normal_matrix_fisher_curve(U, V, W, 20, noise=(2.0, 5.0), form=form)
        np.testing.assert_allclose(curve, np.array(expected[:20]) / 10, rtol=1e-10)
        total = normal_matrix_fisher_total(U, V, W, noise=(2.0, 5.0), form=form)
        assert total == pytest.approx(sum(expected) / 10, rel=1e-10)
    assert normal_matrix_fisher_total(U, V, W) == pytest.approx((W**2).sum(), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_space_time_traces_sum_to_n(seed):
    random = np.random.default_rng(seed)
    U, V, noise = gaussian(random, 3, 0.8), gaussian(random, 4, 0.7), (2.0, 0.3)
    found = [space_time_matrices(U, V, i, i, noise) for i in range(300)]
    assert noise[0] * sum(np.trace(one.J_U) for one in found) == pytest.approx(3, rel=1e-9)
    assert noise[1] * sum(np.trace(one.J_V) for one in found) == pytest.approx(4, rel=1e-9)


def test_space_time_matrices_make_the_published_memory_matrix():
    random = np.random.default_rng(6)
    U, V, W = gaussian(random, 3, 0.8), gaussian(random, 2, 0.7), random.standard_normal((3, 2))
    _, _, psi, sigma = sums(U, V)
    images = [np.linalg.matrix_power(U, k).T @ W @ np.linalg.matrix_power(V, k) for k in range(4)]
    for i in range(4):
        for j in range(4):
            found = space_time_matrices(U, V, i, j)
            direct = np.trace(np.linalg.solve(sigma, images[i].T) @ np.linalg.solve(psi, images[j]))
            assert np.trace(W @ found.J_V @ W.T @ found.J_U) == pytest.approx(direct, rel=1e-10)


def test_bound_is_n_squared_inputs():
    W = np.arange(6.0).reshape(2, 3)
    assert matrix_fisher_bound(W, (2.0, 0.5)) == 6 * 55


@pytest.mark.parametrize("seed", range(4))
def test_dynamic_range_bounds_hold_for_the_published_total_and_the_sharper_one_for_both(seed):
    random = np.random.default_rng(seed)
    U, V, W = gaussian(random, 3, 0.8), gaussian(random, 3, 0.7), random.standard_normal((3, 3))
    powers, covariance, psi, sigma = sums(U, V, 400)
    images = [u.T @ W @ v for u, v in powers]
    # The smallest R that the mean square of the state, signal and noise of variance 1, allows.
    activity = (sum((x**2).sum() for x in images) + np.trace(covariance)) / 9
    bounds = dynamic_range_bounds(U, V, activity)
    exact = sum(x.T.reshape(-1) @ np.linalg.solve(covariance, x.T.reshape(-1)) for x in images)
    published = sum(np.trace(np.linalg.solve(sigma, x.T) @ np.linalg.solve(psi, x)) for x in images)
    traces = np.trace(np.linalg.inv(psi)) * np.trace(np.linalg.inv(sigma))
    assert bounds.sharper == pytest.approx(9 * activity)
    assert bounds.published == pytest.approx(traces * 9 * activity, rel=1e-9)
    assert published <= bounds.published
    assert published <= exact <= bounds.sharper


def test_dynamic_range_bounds_scale_with_the_noise_and_need_decay():
    U = np.diag([0.5, 0.2])
    one, two = dynamic_range_bounds(U, U, 2.0), dynamic_range_bounds(U, U, 2.0, noise=(2.0, 4.0))
    assert one.sharper / two.sharper == one.published / two.published == 8
    assert dynamic_range_bounds(2 * np.eye(2), U, 1.0).published == np.inf


def spread(random, n):
    root = random.standard_normal((n, n))
    return root @ root.T + 0.3 * np.eye(n)


def test_kl_of_matrix_gaussians_is_that_of_the_stacked_vectors():
    random = np.random.default_rng(1)
    n, p = 3, 2
    M1, M2 = random.standard_normal((2, n, p))
    A1, A2, B1, B2 = spread(random, n), spread(random, n), spread(random, p), spread(random, p)
    C1, C2, d = np.kron(B1, A1), np.kron(B2, A2), (M2 - M1).T.reshape(-1)
    direct = np.linalg.slogdet(C2)[1] - np.linalg.slogdet(C1)[1] - n * p
    direct = (direct + np.trace(np.linalg.solve(C2, C1)) + d @ np.linalg.solve(C2, d)) / 2
    assert matrix_gaussian_kl(M1, A1, B1, M2, A2, B2) == pytest.approx(direct, rel=1e-12)
    assert matrix_gaussian_kl(M1, A1, B1, M1, A1, B1) == pytest.approx(0, abs=1e-12)


def test_kl_of_matrix_gaussians_by_sampling():
    random = np.random.default_rng(2)
    M1, M2 = random.standard_normal((2, 2, 2))
    A1, A2, B1, B2 = (spread(random, 2) for _ in range(4))
    first, second = scipy.stats.matrix_normal(M1, A1, B1), scipy.stats.matrix_normal(M2, A2, B2)
    drawn = first.rvs(40000, random_state=3)
    ratio = np.array([first.logpdf(x) - second.logpdf(x) for x in drawn[:4000]])
    error = ratio.std() / np.sqrt(len(ratio))
    assert abs(ratio.mean() - matrix_gaussian_kl(M1, A1, B1, M2, A2, B2)) < 4 * error
    assert abs(ratio.mean() - matrix_gaussian_kl(M1, A1, B1, M2, A2, B2, form="published")) > 8 * error


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: normal_matrix_fisher_total([[0, 1], [0, 0]], np.eye(2) / 2, np.eye(2)), "U must be normal, got"),
        (lambda: normal_matrix_fisher_total(np.eye(2), np.eye(2), np.eye(2)), r"rho\(U\) rho\(V\) must be below 1"),
        (lambda: normal_matrix_fisher_total(2 * np.eye(2), np.eye(2) / 4, np.eye(2), form="published"), "the larger"),
        (lambda: normal_matrix_fisher_curve([[0.5]], [[0.5]], np.eye(2), 3), r"W must be of shape \(1, 1\)"),
        (lambda: space_time_matrices([[1.0]], [[0.5]], 0, 0), "the spectral radius of U must be below 1"),
        (lambda: space_time_matrices([[0.1]], [[0.5]], -1, 0), "i and j must be lags of at least 0"),
        (lambda: dynamic_range_bounds([[0.1]], [[0.5]], 0.0), "activity must be a positive number"),
        (lambda: matrix_fisher_bound([[1.0]], noise=(1.0, 0.0)), r"noise\[1\] must be a positive number"),
        (lambda: matrix_gaussian_kl([[0.0]], [[0.0]], [[1.0]], [[0.0]], [[1.0]], [[1.0]]), "A1 must be a symmetric"),
        (lambda: matrix_gaussian_kl([[0.0]], [[1.0]], [[1.0]], np.eye(2), [[1.0]], [[1.0]]), "M2 must be of shape"),
        (
            lambda: matrix_gaussian_kl(
                np.ones((1, 2)), [[1.0]], np.eye(2), np.ones((1, 2)), [[1.0]], np.eye(2), form="published"
            ),
            "needs square matrices, got 1 x 2",
        ),
    ],
)
def test_bad_input_is_said(call, message):
    with pytest.raises(UserError, match=message):
        call()
