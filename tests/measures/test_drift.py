"""Drift: closed forms of rotations and shears, networks with a gamma of their own, strangers' modules."""

import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures import drift


def rotation(angle, size=1.0):
    return size * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def test_rotations_that_grow():
    sizes = np.array([1.0, 1.1, 0.5])
    found = drift([rotation(0.3, size) for size in sizes], positions=[0, 10, 40])
    assert found.orthogonality == pytest.approx(np.sqrt(2) * np.abs(sizes**2 - 1), abs=1e-14)
    assert found.gamma == pytest.approx(np.stack([sizes, sizes], 1))
    assert found.henrici == pytest.approx(0, abs=1e-14)
    assert np.angle(found.eigenvalues) == pytest.approx(np.tile([0.3, -0.3], (3, 1)))
    assert found.stretch == pytest.approx(np.stack([sizes, sizes], 1))
    assert found.positions.tolist() == [0, 10, 40]


def test_a_shear_departs_from_normal_by_its_shear():
    found = drift([[[1.0, 0.0], [x, 1.0]] for x in (0.0, 1e-9, 3.0)])
    assert found.henrici == pytest.approx([0, 1e-9, 3], rel=1e-6), "differences of squares would lose 1e-9"
    assert found.share[-1] == pytest.approx(3 / np.sqrt(11))


def test_an_nnrnn_has_its_own_gamma_and_its_matrix_the_same_moduli():
    generator = torch.Generator().manual_seed(0)
    layer = ms.nn.NNRNN(1, 6, generator=generator, dtype=torch.float64)
    moved = ms.nn.NNRNN(1, 6, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        for name, each in moved.named_parameters():
            if "original" in name:
                each.add_(0.1 * torch.randn(each.shape, generator=generator, dtype=torch.float64))
    found = drift([layer, moved])
    assert found.gamma.shape == (2, 3), "one for each pair"
    assert found.gamma[0] == pytest.approx(1)
    assert np.repeat(found.gamma[1], 2) == pytest.approx(np.sort(np.abs(found.eigenvalues[1]))[::-1])
    assert found.orthogonality[0] < 1e-12 < 1e-2 < found.orthogonality[1]
    assert "the network's own" in found.assumptions[1]


def test_layers_and_networks_of_other_kinds():
    deep = ms.nn.create("orth-rnn", input_size=1, hidden_size=4, num_layers=2, dtype=torch.float64)
    assert drift([deep, deep]).orthogonality == pytest.approx(0, abs=1e-10), "each layer is orthogonal"
    assert drift([deep]).eigenvalues.shape == (1, 8)
    stranger = nn.GRUCell(2, 3)
    assert drift([ms.adapt(stranger)]).of.startswith("the state Jacobian")
    assert drift([nn.RNN(1, 3).state_dict()]).of == "weight_hh_l0"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "networks must be a list of matrices, networks or state_dicts, got nothing"),
        (np.eye(2), "networks must be several matrices, one for each moment, got one matrix"),
        ([np.eye(2), np.eye(3)], r"networks must be of one size, got \[2, 3\]"),
    ],
)
def test_one_line_for_what_cannot_be_followed(given, said):
    with pytest.raises(UserError, match=said):
        drift(given)
    with pytest.raises(UserError, match="positions must be one number for each of the 1 networks"):
        drift([np.eye(2)], positions=[0, 1])


def test_the_film_strip():
    spec = drift([rotation(0.1 * k) for k in range(20)], frames=3).plot().to_dict()
    text = str(spec)
    assert "step 0" in text
    assert "step 19" in text
    assert "step 5'" not in text
