"""The page on swapping a layer into existing code, line by line; export and compilation of what it says."""

import doctest
from pathlib import Path

import pytest
import torch
from torch.nn.utils import parametrize

import mnemoscope as ms

PAGE = Path(__file__).parents[2] / "docs" / "swapping.md"
EXPORTED = ["rnn", "exprnn", "nnrnn", "lstm", "gru", "goru", "rac", "lru", "mingru", "gla", "deltanet"]


def test_every_line_of_the_page_runs():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert tried > 15
    assert failed == 0


@pytest.mark.parametrize("name", EXPORTED)
def test_a_layer_is_exported_once_its_maps_are_removed(name):
    layer, x = ms.nn.create(name, 3, 4).eval(), torch.randn(4, 2, 3)
    y = layer(x)[0]
    for weight in list(getattr(layer, "parametrizations", {})):
        parametrize.remove_parametrizations(layer, weight)
    torch.testing.assert_close(torch.export.export(layer, (x,)).module()(x)[0], y)


@pytest.mark.parametrize("name", ["rnn", "exprnn", "lru", "mingru", "gla", "urnn"])
def test_a_layer_compiles_in_one_graph(name):
    layer, x = ms.nn.create(name, 3, 4), torch.randn(3, 2, 3)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(layer, fullgraph=True, backend="aot_eager")(x)[0], layer(x)[0])


def test_scripting_is_refused_in_one_line():
    with pytest.raises(ValueError, match=r"^RNN cannot be scripted by torch\.jit\.script: use torch\.export\.export$"):
        torch.jit.script(ms.nn.RNN(3, 4))
