"""State spaces by chunks and by convolution against the recurrence that they stand for."""

import pytest
import torch
from tests.nn.ops.twins import assert_safe_in_float32, assert_twins, assert_vmap_is_a_loop, ragged

from mnemoscope.nn.ops.state_space import Dense, Diagonal, convolved_state_space, naive_state_space, state_space

SYSTEMS = {"diagonal": (Diagonal, 2), "dense": (Dense, 3)}
FORMS = {"chunked": state_space, "convolved": convolved_state_space}


def problem(system, steps, *, seed=0, dtype=torch.float64):
    """Return u, A, b, c and x_0 of two features and three sequences, with |A| < 1."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape, dtype=dtype):
        return torch.randn(*shape, generator=generator, dtype=dtype)

    if system == "diagonal":
        z, b, c = (draw(2, 2, dtype=dtype.to_complex()) for _ in range(3))
        return draw(steps, 3, 2), torch.complex(-0.1 - z.real.abs(), z.imag), b, c, draw(3, 2, 4)
    a = draw(2, 3, 3)
    a = 0.95 * a / torch.linalg.matrix_norm(a, 2)[:, None, None]
    return draw(steps, 3, 2), a, draw(2, 3), draw(2, 3), draw(3, 2, 3)


def on(form, system):
    make = SYSTEMS[system][0]
    return lambda u, a, b, c, start, lengths=None: form(u, make(a, b, c), start, lengths)


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 17, 64, 150])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_twins(system, form, steps, unequal):
    lengths = ragged(3, steps) if unequal else None
    assert_twins(on(FORMS[form], system), on(naive_state_space, system), problem(system, steps), lengths)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_naive_twin_is_the_recurrence(system):
    u, a, b, c, start = problem(system, 5)
    found, last = on(naive_state_space, system)(u, a, b, c, start)
    for feature in range(2):
        matrix = a[feature] if system == "dense" else torch.diag(torch.exp(a[feature]))
        parts = start[0, feature]
        x = parts if system == "dense" else torch.complex(*parts.chunk(2))
        for t in range(5):
            x = matrix @ x + b[feature] * u[t, 0, feature]
            y = (c[feature] * x).sum()
            torch.testing.assert_close(found[t, 0, feature], y.real if y.is_complex() else y)
        torch.testing.assert_close(last[0, feature], torch.cat([x.real, x.imag]) if x.is_complex() else x)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_derivatives_vmap_and_float32(system, form, monkeypatch):
    function = on(FORMS[form], system)
    assert_safe_in_float32(function, problem(system, 4096, dtype=torch.float32), 1e-4)
    monkeypatch.setattr("mnemoscope.nn.ops.state_space._CHUNK", 2)
    assert_vmap_is_a_loop(function, [problem(system, 5, seed=seed) for seed in range(2)])
    tensors = [tensor.requires_grad_() for tensor in problem(system, 3)]
    assert torch.autograd.gradgradcheck(function, tensors)
