"""torch's own inputs for torch.nn.RNN, LSTM and GRU, given to every recurrent network."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.utils._pytree import tree_leaves, tree_map

import mnemoscope as ms

pytestmark = pytest.mark.heavy
common = pytest.importorskip("torch.testing._internal.common_modules", reason="torch's own tests are not installed")

TORCH = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
OTHER_GRADIENTS = {"h-detach-lstm", "sab"}  # theirs are not the derivative, as their papers want it


def samples(module):
    (info,) = (info for info in common.module_db if info.module_cls is module)
    return info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=False, training=False)


@pytest.mark.parametrize("name", TORCH)
def test_torchs_layers_give_torchs_numbers(name):
    given = samples(TORCH[name])
    assert len(given) >= 16
    for sample in given:
        build, call = sample.constructor_input, sample.forward_input
        theirs = TORCH[name](*build.args, **build.kwargs, dtype=torch.float64).eval()
        ours = ms.nn.get(name).from_torch(theirs)
        torch.testing.assert_close(ours(*call.args, **call.kwargs), theirs(*call.args, **call.kwargs))


def built(name, options):
    cls = ms.nn.get(name)
    own = {key: value for key, value in options.items() if key not in ("input_size", "hidden_size", "nonlinearity")}
    sizes = {"input_size": 2, "hidden_size": 3} if len(cls.small_sizes) == 2 and cls.input_axes == 1 else {}
    if not isinstance(cls.small_sizes["hidden_size"], int):
        sizes = cls.small_sizes
    room = {"capacity": 6} if cls.grows else {}
    return ms.nn.create(name, **(sizes or cls.small_sizes), **own, **room, dtype=torch.float64).eval()


@pytest.mark.parametrize("name", ms.nn.names("recurrent"))
def test_every_network_takes_torchs_arguments_and_inputs(name):
    torch.manual_seed(0)
    for sample in samples(nn.GRU):
        options = sample.constructor_input.kwargs
        layer = built(name, options)
        x, axis = torch.randn(3, *layer.input_shape, dtype=torch.float64), 0 if layer.batch_first else 1
        given, batched = (x,), (x.unsqueeze(axis),)
        if len(sample.forward_input.args) > 1:
            state = layer(x)[1]
            given += (state,)
            batched += (tree_map(partial(torch.unsqueeze, dim=layer.batch_axis), state),)
        output, after = layer(*given)  # without a batch
        y, end = layer(*batched)
        torch.testing.assert_close(y.squeeze(axis), output)
        torch.testing.assert_close(
            [leaf.squeeze(layer.batch_axis) for leaf in tree_leaves(end)], list(tree_leaves(after)), equal_nan=True
        )


@pytest.mark.parametrize("name", sorted(set(ms.nn.names("recurrent")) - OTHER_GRADIENTS))
def test_gradients_of_every_network_are_those_of_differences(name):
    torch.manual_seed(1)  # no kink of a ReLU near these inputs
    layer = built(name, {"num_layers": 1})
    x = torch.randn(3, 2, *layer.input_shape, dtype=torch.float64, requires_grad=True)
    names = [key for key, p in layer.named_parameters() if p.numel()]
    values = [layer.get_parameter(key).detach().clone().requires_grad_() for key in names]

    def outputs(x, *values):
        return functional_call(layer, dict(zip(names, values, strict=True)), (x,))[0]

    assert gradcheck(outputs, (x, *values), eps=1e-6, atol=1e-5, rtol=1e-3, fast_mode=True)
