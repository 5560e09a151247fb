"""The latent embedding of a network, against running both."""

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError


def wide_layer(found):
    """Return the embedding as a layer that torch runs."""
    layer = ms.nn.LinearRNN(found.input_size, len(found.bias), dtype=torch.float64)
    layer.weight_ih_l0, layer.weight_hh_l0 = torch.as_tensor(found.weight_ih), torch.as_tensor(found.weight_hh)
    layer.bias_l0 = torch.as_tensor(found.bias)
    return layer


@pytest.mark.parametrize(("inputs", "width", "depth"), [(1, 2, 2), (3, 4, 3), (2, 1, 5), (4, 3, 1)])
def test_the_wide_layer_has_the_states_of_all_layers(inputs, width, depth):
    network = ms.nn.LinearRNN(inputs, width, depth, dtype=torch.float64)
    found = ms.measures.latent_embedding(network)
    x = torch.randn(30, 2, inputs, dtype=torch.float64)
    _, deep = network(x)
    _, wide = wide_layer(found)(x)
    torch.testing.assert_close(deep.transpose(0, 1).flatten(1), wide[0], rtol=1e-10, atol=1e-12)
    assert found.num_layers == depth
    assert found.error < 1e-12
    assert found.wide_parameters == (depth * width) * (depth * width + inputs)


@pytest.mark.parametrize("depth", [2, 3, 6])
def test_a_wide_layer_that_is_deep_is_recognised(depth):
    found = ms.measures.latent_embedding(ms.nn.LinearRNN(2, 12 // depth, depth, dtype=torch.float64))
    again = ms.measures.latent_embedding(wide_layer(found), tolerance=1e-8)
    assert again.num_layers == 1
    assert again.depth == depth
    assert f"a network of {depth} x {12 // depth}" in str(again)


def test_a_random_wide_layer_is_not_deep():
    found = ms.measures.latent_embedding(ms.nn.LinearRNN(2, 12))
    assert found.depth == 1
    assert "no deep network" in str(found)


def test_result_draws_and_exports():
    found = ms.measures.latent_embedding(ms.nn.LinearRNN(2, 3, 2))
    document = found.to_dict()
    assert np.array(document["weight_hh"]).shape == (6, 6)
    assert document["measure"] == "latent-embedding"
    assert found.plot().to_dict()["layer"][0]["mark"]["type"] == "rect"


def test_a_network_that_is_not_linear_is_refused_in_one_line():
    with pytest.raises(UserError, match="needs nonlinearity='identity'"):
        ms.measures.latent_embedding(ms.nn.RNN(2, 3))
