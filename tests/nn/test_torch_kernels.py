"""torch's recurrent kernels written out, against torch's own."""

import pytest
import torch
from torch import nn
from torch.func import vmap
from torch.nn.utils.rnn import pack_sequence

from mnemoscope.nn.adapt.torch_kernels import PlainKernels

T, B, D, N = 5, 3, 4, 6
CELLS = [(nn.RNNCell, {}), (nn.RNNCell, {"nonlinearity": "relu"}), (nn.GRUCell, {}), (nn.LSTMCell, {})]
LAYERS = [
    (nn.RNN, {}),
    (nn.RNN, {"nonlinearity": "relu", "num_layers": 2}),
    (nn.GRU, {"num_layers": 2, "bidirectional": True}),
    (nn.LSTM, {"batch_first": True}),
    (nn.LSTM, {"num_layers": 2, "bidirectional": True, "proj_size": 2}),
    (nn.GRU, {"num_layers": 2, "dropout": 1.0}),
]


def assert_same(a, b):
    for x, y in zip(torch.utils._pytree.tree_leaves(a), torch.utils._pytree.tree_leaves(b), strict=True):
        torch.testing.assert_close(x, y)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("make", "options"), CELLS)
def test_cells(make, options, bias):
    cell = make(D, N, bias=bias, **options)
    x = torch.randn(B, D)
    state = torch.utils._pytree.tree_map(torch.randn_like, cell(x))
    with PlainKernels():
        found = cell(x, state)
    assert_same(found, cell(x, state))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("make", "options"), LAYERS)
def test_layers(make, options, bias):
    layer = make(D, N, bias=bias, **options)
    x = torch.randn(T, B, D)
    state = torch.utils._pytree.tree_map(lambda leaf: torch.randn(leaf.shape), layer(x)[1])
    with PlainKernels():
        found = layer(x, state)
        alone = layer(x[0])
    assert_same(found, layer(x, state))
    assert_same(alone, layer(x[0]))


def test_packed_sequences_stay_with_torch():
    layer = nn.GRU(D, N)
    packed = pack_sequence([torch.randn(3, D), torch.randn(2, D)])
    with PlainKernels():
        found = layer(packed)
    assert_same(found[1], layer(packed)[1])


def test_torch_still_has_no_batching_rule():
    """When this fails, torch has learnt it, and the module can go."""
    layer = nn.LSTM(D, N)
    with pytest.raises(RuntimeError, match="Batching rule not implemented"):
        vmap(lambda x: layer(x)[0])(torch.randn(2, T, D))
