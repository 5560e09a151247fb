"""Powers of matrices against the recurrence that they stand for."""

import pytest
import torch
from tests.nn.ops.twins import assert_twins, ragged

from mnemoscope.nn.ops.convolution import convolution, last_exponentials
from mnemoscope.nn.ops.krylov import MatrixPowers, naive_matrix_powers


def problem(steps, size=3, features=2, batch=3):
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    a = draw(features, size, size)
    a = 0.95 * a / torch.linalg.matrix_norm(a, 2)[:, None, None]
    return a, draw(features, size), draw(features, size), draw(batch, features, size), draw(steps, batch, features)


def by_powers(matrix, inputs, readout, start, u, lengths):
    powers = MatrixPowers(matrix, inputs, readout, len(u))
    outputs = convolution(u, powers.kernel.mT) + powers.free(start)
    if lengths is not None:
        outputs = torch.where((torch.arange(len(u))[:, None] < lengths)[..., None], outputs, 0.0)
    return outputs, powers.last(u, start, lengths)


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3, 17, 64, 100])
def test_twins(steps, unequal):
    assert_twins(by_powers, naive_matrix_powers, problem(steps), ragged(3, steps) if unequal else None)


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("steps", [1, 5, 50])
def test_last_state_of_a_diagonal_system(steps, unequal):
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(steps, 3, 2, generator=generator, dtype=torch.float64)
    z, w = (torch.randn(2, 4, generator=generator, dtype=torch.complex128) for _ in range(2))
    start = torch.randn(3, 2, 4, generator=generator, dtype=torch.complex128)
    z = torch.complex(-z.real.abs(), z.imag)
    lengths = ragged(3, steps) if unequal else None
    ends = [steps] * 3 if lengths is None else lengths.tolist()
    found = last_exponentials(u, z, w, start, lengths)
    for example, end in enumerate(ends):
        x = start[example]
        for t in range(end):
            x = torch.exp(z) * x + w * u[t, example][:, None]
        torch.testing.assert_close(found[example], x)
