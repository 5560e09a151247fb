"""Deep linear networks inside wide ones: states agree step by step, and only such layers are recognised."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.theory import (
    LatentEmbedding,
    copy_weights,
    deep_form,
    is_deep,
    latent_embedding,
    unrolled_matrix,
    unrolled_states,
)


def network(seed: int, d: int, n: int, depth: int) -> ms.nn.LinearRNN:
    draw = torch.Generator().manual_seed(seed)
    return ms.nn.LinearRNN(d, n, depth, generator=draw, dtype=torch.float64)


def weights(layer: ms.nn.LinearRNN) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    state = {name: value.numpy() for name, value in layer.state_dict().items()}
    u, v, b = ([state[f"{kind}_l{k}"] for k in range(layer.num_layers)] for kind in ("weight_ih", "weight_hh", "bias"))
    return u, v, b


sizes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))


@settings(max_examples=25, deadline=None)
@given(sizes, st.integers(0, 1000))
def test_the_wide_network_has_the_states_of_all_layers(size: tuple[int, int, int], seed: int) -> None:
    d, n, depth = size
    deep = network(seed, d, n, depth)
    wide = ms.nn.LinearRNN(d, n * depth, dtype=torch.float64)
    found = latent_embedding(*weights(deep))
    wide.load_state_dict({f"{name}_l0": torch.as_tensor(value) for name, value in found._asdict().items()})
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(6, d, generator=draw, dtype=torch.float64)
    h = torch.randn(depth, 1, n, generator=draw, dtype=torch.float64)
    states = []
    with torch.no_grad():
        hx = h
        for entry in x:
            hx = deep(entry[None, None], hx)[1]
            states.append(hx.reshape(-1).numpy())
        output, _ = wide(x[:, None], h.reshape(1, 1, -1))
    np.testing.assert_allclose(output[:, 0].numpy(), states, atol=1e-12)
    u, v, b = weights(deep)
    np.testing.assert_allclose(unrolled_states(u, v, x.numpy(), b, h.numpy().ravel()), states, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(sizes, st.integers(0, 1000))
def test_what_was_embedded_is_recognised_and_recovered(size: tuple[int, int, int], seed: int) -> None:
    d, n, depth = size
    u, v, b = weights(network(seed, d, n, depth))
    wide = latent_embedding(u, v, b)
    for by in ("weights", "function"):
        assert is_deep(wide.weight_ih, wide.weight_hh, n, by=by)
    found = deep_form(wide.weight_ih, wide.weight_hh, n, wide.bias)
    assert found is not None
    again = latent_embedding(*zip(*found, strict=True))
    for one, other in zip(wide, again, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_random_wide_layers_are_not_deep(seed: int) -> None:
    draw = np.random.default_rng(seed)
    u, v = draw.normal(size=(6, 2)), draw.normal(size=(6, 6)) / 3
    for by in ("weights", "function"):
        assert not is_deep(u, v, 3, by=by)
        assert not is_deep(u, v, 2, by=by)
    assert is_deep(u, v, 6)  # of depth one everything is


def test_theorem_6s_own_example_and_a_near_miss() -> None:
    draw = np.random.default_rng(0)
    first, second = np.outer(draw.normal(size=2), draw.normal(size=3)), draw.normal(size=(2, 3))
    assert not is_deep(np.vstack([first, second]), np.zeros((4, 4)), 2)
    assert is_deep(np.vstack([second, first @ np.linalg.pinv(second) @ second]), np.zeros((4, 4)), 2)
    wide = latent_embedding(*weights(network(3, 2, 3, 2)))
    spoilt = wide.weight_hh.copy()
    spoilt[0, 4] = 1e-4  # a connection from the second layer down to the first
    assert not is_deep(wide.weight_ih, spoilt, 3)
    assert is_deep(wide.weight_ih, spoilt, 3, tolerance=1e-2)


def test_equal_states_without_equal_weights() -> None:
    """A connection from a unit that no input reaches changes the weights and not the states."""
    wide = LatentEmbedding(np.array([[1.0], [0], [2.0], [0]]), np.zeros((4, 4)), np.zeros(4))
    v = wide.weight_hh.copy()
    v[0, 3] = 1.0
    assert not is_deep(wide.weight_ih, v, 2)
    assert is_deep(wide.weight_ih, v, 2, by="function")


def test_copying_networks_embed_exactly() -> None:
    found = copy_weights(5, 4, 2).weights
    wide = latent_embedding(*([found[f"{kind}_l{k}"] for k in range(2)] for kind in ("weight_ih", "weight_hh")))
    assert set(np.unique(wide.weight_hh)) == {0.0, 1.0}
    assert np.linalg.matrix_rank(unrolled_matrix(wide.weight_ih, wide.weight_hh, 6)) == 6  # lags 0 to 5 are all kept


def test_unrolled_matrix_is_the_state() -> None:
    u, v, _ = weights(network(5, 2, 3, 2))
    wide = latent_embedding(u, v)
    x = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(
        unrolled_matrix(wide.weight_ih, wide.weight_hh, 5) @ x.ravel(), unrolled_states(u, v, x)[-1], atol=1e-12
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: is_deep(np.ones((6, 1)), np.eye(6), 4), "n must be a divisor of the 6 units"),
        (lambda: is_deep(np.ones((5, 1)), np.eye(6), 3), "U must be of 6 rows, as V"),
        (lambda: is_deep(np.ones((6, 1)), np.eye(6), 3, by="name"), "by must be 'weights' or 'function'"),
        (lambda: is_deep(np.ones((2, 1)), np.full((2, 2), np.nan), 1), "V must be finite"),
        (
            lambda: unrolled_states([np.ones((2, 1))], [np.eye(2)], np.ones((3, 2))),
            r"inputs must be of shape \(time, 1\)",
        ),
        (lambda: unrolled_matrix(np.ones((2, 1)), np.eye(2), 0), "steps must be a positive integer, got 0"),
    ],
)
def test_bad_input_is_told(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UserError, match=message):
        call()
