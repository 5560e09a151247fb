"""Cells and recurrent modules of other people as networks: numbers against a loop by hand and against torch."""

import copy

import pytest
import torch
from foreign_modules import (
    CELLS,
    WHOLE,
    BatchFirst,
    D,
    MatrixState,
    N,
    OutputAndState,
    Pair,
    TwoLayers,
    WithExtra,
    adapted,
)
from torch import nn
from torch.func import functional_call, jacrev, vmap
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence
from torch.utils._pytree import tree_leaves, tree_map

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.nn.adapt.adapted import AdaptedCell, AdaptedRecurrent, AdaptedSequence
from mnemoscope.testing import check_network

T, B = 6, 4


def assert_same(a, b):
    for x, y in zip(tree_leaves(a), tree_leaves(b), strict=True):
        torch.testing.assert_close(x, y)


@pytest.mark.parametrize(("cell", "whole"), [(nn.RNNCell, nn.RNN), (nn.LSTMCell, nn.LSTM), (nn.GRUCell, nn.GRU)])
def test_torch_cells_are_torch_layers(cell, whole):
    layer = whole(D, N)
    network = ms.adapt(cell(D, N))
    network.module.load_state_dict({name.removesuffix("_l0"): p for name, p in layer.state_dict().items()})
    x = torch.randn(T, B, D)
    hx = tree_map(torch.randn_like, network.init_state(B))
    assert_same(network(x), layer(x))
    assert_same(network(x, hx), layer(x, hx))
    one = tree_map(lambda leaf: leaf[:, 0], hx)
    assert_same(network(x[:, 0]), layer(x[:, 0]))
    assert_same(network(x[:, 0], one), layer(x[:, 0], one))
    sequences = [torch.randn(length, D) for length in (2, 6, 6, 1)]
    packed = pack_sequence(sequences, enforce_sorted=False)
    (output, state), (expected, expected_state) = network(packed, hx), layer(packed, hx)
    assert_same((output.data, state), (expected.data, expected_state))


@pytest.mark.parametrize("cell", [nn.RNNCell, nn.GRUCell])
def test_a_loop_by_hand(cell):
    module = cell(D, N)
    network = ms.adapt(module)
    x, h, outputs = torch.randn(T, B, D), torch.zeros(B, N), []
    for x_t in x:
        h = module(x_t, h)
        outputs.append(h)
    output, state = network(x)
    assert torch.equal(output, torch.stack(outputs))
    assert torch.equal(state, h.unsqueeze(0))


def test_a_loop_by_hand_with_an_output():
    module = OutputAndState()
    network = ms.adapt(module)
    x, h = torch.randn(T, B, D), torch.zeros(B, N)
    output, state = network(x)
    for x_t, y_t in zip(x, output, strict=True):
        y, h = module(x_t, h)
        torch.testing.assert_close(y_t, y)
    torch.testing.assert_close(state, h.unsqueeze(0))


@pytest.mark.parametrize("name", [*CELLS, *WHOLE])
def test_every_calling_form(name):
    network = adapted(name)
    assert isinstance(network, ms.nn.Recurrent)
    assert isinstance(network, AdaptedCell if name in CELLS else AdaptedRecurrent)
    assert (network.kind, network.input_size, network.causal, network.batch_first) == ("recurrent", D, True, False)
    x = torch.randn(T, B, D)
    output, last = network(x)
    assert output.shape == (T, B, network.output_size)
    assert network.flatten_state(last).shape == (B, network.state_size)

    state, steps = network.init_state(B), []
    for x_t in x:
        y, state = network.step(x_t, state)
        steps.append(y)
    assert_same((torch.stack(steps), state), (output, last))

    first, middle = network(x[:2])
    second, end = network(x[2:], middle)
    assert_same((torch.cat([first, second]), end), (output, last))

    alone, state = network(x[:, 1])
    assert_same(alone, output[:, 1])
    assert_same(network(x[:, 1], network_start(network))[0], output[:, 1])
    assert_same(
        network.flatten_state(tree_map(lambda leaf: leaf.unsqueeze(network.batch_axis), state))[0],
        network.flatten_state(last)[1],
    )

    network.batch_first = True
    assert_same(network(x.transpose(0, 1)), (output.transpose(0, 1), last))


def network_start(network):
    return tree_map(lambda leaf: leaf.squeeze(network.batch_axis), network.init_state(1))


@pytest.mark.parametrize("lengths", [[6, 6, 3, 1], [6, 6, 6, 6], [4, 3, 2, 1]])
@pytest.mark.parametrize("name", [*CELLS, *WHOLE])
def test_packed_is_one_by_one(name, lengths):
    network = adapted(name)
    x = torch.randn(max(lengths), B, D)
    packed, last = network(pack_padded_sequence(x, torch.tensor(lengths)))
    output, _ = pad_packed_sequence(packed)
    for i, length in enumerate(lengths):
        alone, state = network(x[:length, i : i + 1])
        torch.testing.assert_close(output[:length, i : i + 1], alone)
        torch.testing.assert_close(network.flatten_state(last)[i], network.flatten_state(state)[0])


@pytest.mark.parametrize(
    ("name", "shapes", "axis", "size"),
    [
        ("RNNCell", [(1, B, N)], 1, N),
        ("LSTMCell", [(1, B, N), (1, B, N)], 1, 2 * N),
        ("matrix", [(B, 2, 2)], 0, 4),
        ("list", [(1, B, N), (1, B, 2)], 1, N + 2),
        ("complex", [(B, N), (B,)], 0, 2 * N),
        ("named", [(1, B, N), (1, B, N)], 1, 2 * N),
        ("LSTM", [(2, B, 2), (2, B, N)], 1, 2 * (N + 2)),
        ("extra", [(2, B, N), (2, B, N)], 1, 4 * N),
        ("dict", [(1, B, N)], 1, N),
        ("memory", [(B, N), (B, 4, 2), (B, 2)], 0, N + 8 + 2),
        ("batch first state", [(B, 2, N)], 0, 2 * N),
        ("three returns", [(1, B, N), (1, B, N)], 1, 2 * N),
    ],
)
def test_layout_of_the_state(name, shapes, axis, size):
    network = adapted(name)
    state = network.init_state(B, dtype=torch.float64)
    assert [tuple(leaf.shape) for leaf in tree_leaves(state)] == shapes
    assert (network.batch_axis, network.state_size) == (axis, size)
    assert not isinstance(state, list)
    flat = network.flatten_state(state)
    assert flat.dtype == torch.float64
    assert_same(network.unflatten_state(flat), state)


def test_names_and_values_of_the_start():
    assert isinstance(adapted("named").init_state(2), Pair)
    assert torch.equal(adapted("named").init_state(2).c, torch.ones(1, 2, N))
    network = adapted("learned start")
    assert torch.equal(network.init_state(2)[0, 1], network.module.h0)
    network(torch.randn(T, B, D))[0].sum().backward()
    assert network.module.h0.grad.abs().sum() > 0
    assert torch.equal(adapted("own start").init_state(2), torch.full((1, 2, N), 0.3))
    assert (adapted("GRUCell").hidden_size, adapted("keyword").hidden_size) == (N, N)


def test_what_was_guessed_is_said():
    network = ms.adapt(OutputAndState())
    assert network.guesses == (
        "it is a cell that reads one step",
        f"it reads {D} numbers per step, as its weights allow",
        "its state goes in as h",
        "of what it returns, part 0 is the output and part 1 the state",
        f"its state (1, batch, {N}) starts as zeros",
    )
    assert all(f"guessed: {guess}" in repr(network) for guess in network.guesses)
    advice = ms.adapt(
        OutputAndState(),
        "cell",
        input_size=D,
        init_state=lambda batch: torch.zeros(batch, N),
        state_name="h",
        output=0,
        state=1,
    )
    assert advice.guesses == ()
    assert "(batch, time, features)" in " ".join(ms.adapt(BatchFirst()).guesses)
    assert "(time, batch, features)" in " ".join(ms.adapt(WithExtra()).guesses)


def test_output_and_state_can_be_told():
    swapped = ms.adapt(OutputAndState(), state=1, output=0)
    assert swapped.output_size == 2
    both = nn.GRUCell(D, N)

    class Turned(nn.Module):
        def forward(self, x, h):
            return both(x, h), torch.ones_like(h)

    network = ms.adapt(Turned(), input_size=D, state=0, output=1, init_state=lambda batch: torch.zeros(batch, N))
    output, state = network(torch.randn(T, B, D))
    assert torch.equal(output, torch.ones(T, B, N))
    assert not torch.equal(state, torch.ones(1, B, N))


def test_probing_leaves_no_trace():
    module = nn.Sequential(nn.BatchNorm1d(D), nn.Dropout(0.5), nn.Linear(D, N))

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside, self.calls = module, []

        def forward(self, x, h=None):
            self.calls.append(x.shape)
            return torch.tanh(self.inside(x) + (0 if h is None else h))

    cell = Cell()
    cell.inside[1].eval()
    before = copy.deepcopy(cell.state_dict())
    random = torch.get_rng_state()
    network = ms.adapt(cell)
    assert torch.equal(random, torch.get_rng_state())
    assert [part.training for part in (network, cell, *cell.inside)] == [True, True, True, False, True]
    assert cell.calls == []
    assert all(torch.equal(value, before[name]) for name, value in cell.state_dict().items())
    assert all(p.grad is None for p in cell.parameters())
    assert network.module is cell


def test_own_networks_stay_as_they_are():
    layer = ms.nn.RNN(D, N)
    assert ms.adapt(layer) is layer
    assert ms.adapt(layer, "recurrent") is layer
    network = ms.adapt(nn.GRUCell(D, N))
    assert ms.adapt(network) is network
    with pytest.raises(UserError, match="RNN is already a network of kind 'recurrent', got kind='cell'"):
        ms.adapt(layer, "cell")


def test_bidirectional_is_not_causal():
    module = nn.GRU(D, N, bidirectional=True)
    network = ms.adapt(module)
    assert not network.causal
    x = torch.randn(T, B, D)
    assert_same(network(x), module(x))
    packed = pack_padded_sequence(x, torch.tensor([6, 3, 3, 1]))
    (output, state), (expected, expected_state) = network(packed), module(packed)
    assert_same((output.data, state), (expected.data, expected_state))
    with pytest.raises(UserError, match="^step needs a causal network, and this one is not: its output at step 0"):
        network.step(x[0], network.init_state(B))
    with pytest.raises(UserError, match="^a copy task needs a causal network"):
        network.require_causal("a copy task")


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell", "keyword", "matrix", "LSTM", "dict"])
def test_jacobian_of_a_step(name):
    network = adapted(name).double()
    x, size = torch.randn(1, D, dtype=torch.float64), network.state_size
    flat = torch.randn(1, size, dtype=torch.float64)

    def advance(flat):
        return network.flatten_state(network.step(x, network.unflatten_state(flat))[1])

    jacobian = jacrev(advance)(flat).reshape(size, size)
    shift = 1e-6 * torch.eye(size, dtype=torch.float64)
    numeric = torch.stack([(advance(flat + e) - advance(flat - e))[0] / 2e-6 for e in shift], dim=1)
    torch.testing.assert_close(jacobian, numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [*CELLS, *WHOLE])
def test_vmap_over_parameters_is_a_loop(name):
    network = adapted(name)
    x = torch.randn(T, B, D)
    members = [{key: p + 0.1 * torch.randn_like(p) for key, p in network.named_parameters()} for _ in range(3)]
    stacked = {key: torch.stack([member[key] for member in members]) for key in members[0]}
    outputs = vmap(lambda weights: functional_call(network, weights, (x,))[0])(stacked)
    for member, output in zip(members, outputs, strict=True):
        torch.testing.assert_close(functional_call(network, member, (x,))[0], output)


@pytest.mark.parametrize("name", [*CELLS, *WHOLE])
def test_gradients_reach_every_parameter(name):
    network = adapted(name)
    x = torch.randn(T, B, D, requires_grad=True)
    output, state = network(x)
    (output.square().sum() + network.flatten_state(state).square().sum()).backward()
    unused = {"module.embeddings.weight"}
    assert all(p.grad.abs().sum() > 0 for key, p in network.named_parameters() if key not in unused)
    assert (x.grad.abs().sum(dim=(1, 2)) > 0).all()


@pytest.mark.parametrize("name", ["LSTMCell", "complex", "dict"])
def test_copies_and_state_dict(name):
    network = adapted(name)
    twin = copy.deepcopy(network)
    x = torch.randn(T, B, D)
    with torch.no_grad():
        next(twin.parameters()).add_(1)
    assert not torch.allclose(twin(x)[0], network(x)[0])
    twin.load_state_dict(network.state_dict())
    assert_same(twin(x), network(x))
    assert all(key.startswith("module.") for key in network.state_dict())


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_reset_parameters():
    network = ms.adapt(TwoLayers())
    before = [p.detach().clone() for p in network.parameters()]
    state = torch.get_rng_state()
    network.reset_parameters(torch.Generator().manual_seed(1))
    assert torch.equal(state, torch.get_rng_state())
    assert all((p != old).all() for p, old in zip(network.parameters(), before, strict=True))
    twin = copy.deepcopy(network)
    twin.reset_parameters(torch.Generator().manual_seed(1))
    assert_same(list(twin.parameters()), list(network.parameters()))
    torch.manual_seed(3)
    twin.reset_parameters()
    assert not torch.equal(next(twin.parameters()), next(network.parameters()))
    with pytest.raises(UserError, match=r"^MatrixState.reset_parameters\(\) must .* got 'turn' left as it was;.*$"):
        ms.adapt(MatrixState()).reset_parameters()
    for norm, left in ((nn.utils.parametrizations.weight_norm, "original0"), (nn.utils.weight_norm, "weight_g")):
        with pytest.raises(UserError, match=f"{left}' left as it was"):
            ms.adapt(norm(nn.Linear(D, N))).reset_parameters()


def test_options_and_bad_calls():
    network = ms.adapt(nn.GRUCell(D, N), batch_first=True)
    assert network(torch.zeros(B, T, D))[0].shape == (B, T, N)
    assert ms.adapt(nn.GRU(D, N, batch_first=True), batch_first=True)(torch.zeros(B, T, D))[0].shape == (B, T, N)
    assert ms.adapt(nn.GRU(D, N), batch_first=True)(torch.zeros(B, T, D))[1].shape == (1, B, N)
    for wrong in (torch.zeros(B, T, D + 1), torch.zeros(B, T, D, dtype=torch.int64), torch.zeros(D), "x"):
        with pytest.raises(UserError, match="^[^\n]*must be[^\n]*got[^\n]*$"):
            network(wrong)
    with pytest.raises(UserError, match="hx must be a tensor of shape"):
        network(torch.zeros(B, T, D), torch.zeros(1, B, N + 1))
    with pytest.raises(UserError, match="input_size = 3, got 4"):
        network.step(torch.zeros(B, D + 1), network.init_state(B))
    assert isinstance(ms.adapt(nn.GRU(D, N), "sequence"), AdaptedSequence)


_OTHERS = ("output and state", "memory", "RNN", "dict")


@pytest.mark.parametrize("name", ["LSTMCell", *(pytest.param(name, marks=pytest.mark.slow) for name in _OTHERS)])
def test_conformance(name):
    check_network(lambda: adapted(name))


def test_other_precisions():
    for dtype in (torch.float64, torch.bfloat16):
        network = ms.adapt(nn.LSTMCell(D, N).to(dtype))
        output, state = network(torch.randn(T, B, D, dtype=dtype))
        assert {output.dtype, *(leaf.dtype for leaf in state)} == {dtype}
