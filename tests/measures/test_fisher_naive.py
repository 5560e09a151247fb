"""Fisher memory by its definition: the twin of every form, where the covariance is well conditioned."""

import numpy as np
import pytest

import mnemoscope as ms
from mnemoscope.measures.fisher.naive import matrix_step, memory_curve, queue_step


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("horizon", [1, 2, 13])
@pytest.mark.parametrize("seed", range(3))
def test_all_forms_are_the_definition(seed, horizon):
    W, v = 0.3 * drawn(seed, 6, 6), drawn(seed + 10, 6)
    vector = ms.measures.fisher_memory(W, v, noise=0.5, horizon=horizon)
    np.testing.assert_allclose(vector.curve, memory_curve(W, v, horizon, 0.5), rtol=1e-9)

    U, V, source = 0.4 * drawn(seed, 3, 3), 0.5 * drawn(seed + 1, 2, 2), drawn(seed + 2, 3, 2)
    stacked = source.reshape(-1, order="F")
    matrix = ms.measures.matrix_fisher_memory(U, V, source, noise=(0.5, 2.0), horizon=horizon)
    np.testing.assert_allclose(matrix.curve, memory_curve(matrix_step(U, V), stacked, horizon), rtol=1e-9)

    weights = (0.3, -0.2)
    step, units = queue_step(U, V, weights), len(stacked)
    entering = np.concatenate([stacked, np.zeros(2 * units)])
    queue = ms.measures.queue_fisher_memory(U, V, source, weights=weights, horizon=horizon)
    one = memory_curve(step, entering, horizon, noisy=units, seen=units)
    np.testing.assert_allclose(queue.curve, one, rtol=1e-8)
    if horizon > 1:  # after one step the state before is zero, and says nothing
        two = memory_curve(step, entering, horizon, noisy=units, seen=2 * units)
        np.testing.assert_allclose(queue.joint_curve, two, rtol=1e-8)


@pytest.mark.parametrize("horizon", [4, 9, None])
def test_a_vector_network_is_a_matrix_network_with_one_column(horizon):
    """Two engines, one definition: X = U^T X V with V = [[1]] is h = W h, W = U^T."""
    W, v = 0.25 * drawn(5, 8, 8), drawn(6, 8)
    one = ms.measures.fisher_memory(W, v, horizon=horizon)
    other = ms.measures.matrix_fisher_memory(W.T, [[1.0]], v[:, None], horizon=horizon)
    assert other.total == pytest.approx(one.total, rel=1e-13)
    np.testing.assert_allclose(other.curve, one.curve, rtol=1e-9, atol=1e-13 * one.total)
    np.testing.assert_allclose(other.spatial, one.spatial, atol=1e-12)
