"""Resources: counts against formulas, growth against modules whose growth is known, and what it refuses."""

import dataclasses
import json
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.cost.network import Resources, resources
from mnemoscope.measures.cost.operations import count
from mnemoscope.measures.cost.step import saved_bytes
from mnemoscope.measures.growth import growth_exponent, slope
from mnemoscope.nn.recurrent import Recurrent

SHORT = {"lengths": (8, 16, 32, 64), "repeats": 1}


class Quadratic(nn.Module):
    """Sums the past through a dense T x T matrix of its own for every example and feature."""

    def __init__(self, width=3):
        super().__init__()
        self.input_size = width
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):  # (batch, time, features)
        steps = x.shape[1]
        weights = torch.ones(steps, steps).tril()[None, :, :, None] * self.scale.exp()
        return (weights.tanh() * x[:, None]).mean(2)


class Linear(nn.Module):
    """One product per step, nothing between steps."""

    def __init__(self):
        super().__init__()
        self.input_size = 3
        self.inner = nn.Linear(3, 5)

    def forward(self, x):
        return self.inner(x).tanh()


class Growing(Recurrent):
    """Keeps every input, and averages them."""

    def __init__(self):
        super().__init__()
        self.input_size = self.output_size = 2
        self.batch_axis = 0
        self.scale = nn.Parameter(torch.ones(2))

    def init_state(self, batch, *, device=None, dtype=None):
        return torch.zeros(batch, 0, 2, device=device, dtype=dtype)

    def step(self, x, state):
        state = torch.cat([state, (x * self.scale)[:, None]], dim=1)
        return state.mean(1), state

    def run(self, x, state, lengths):
        outputs = []
        for x_t in x:
            y, state = self.step(x_t, state)
            outputs.append(y)
        return torch.stack(outputs), state


# Numbers of one step --------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "n", "layers"), [(1, 8, 1), (5, 7, 1), (3, 6, 2)])
@pytest.mark.parametrize(
    ("name", "gates", "elementwise", "leaves"), [("rnn", 1, 0, 1), ("gru", 3, 3, 1), ("lstm", 4, 3, 2)]
)
def test_step_and_state_of_classical_networks(name, gates, elementwise, leaves, d, n, layers):
    found = resources(ms.nn.create(name, input_size=d, hidden_size=n, num_layers=layers), **SHORT)
    products = gates * n * (n + d) + (layers - 1) * gates * 2 * n * n
    assert found.multiply_adds == products + layers * elementwise * n
    assert found.elementwise == layers * elementwise * n
    assert found.state_size == layers * leaves * n
    assert found.state_bytes == 4 * found.state_size
    assert found.map_multiply_adds == 0
    assert found.work_exponent == 0.0


@pytest.mark.parametrize("name", ms.nn.names("recurrent"))
def test_every_network(name):
    forms = len(ms.nn.get(name).modes) > 1
    several = {"mode": "recurrent"} if forms else {}  # chunks are not linear at such lengths
    several |= {"capacity": 64} if ms.nn.get(name).grows else {}
    sizes = {"input_size": 2, "hidden_size": 6}
    sizes = sizes if isinstance(ms.nn.get(name).small_sizes["hidden_size"], int) else ms.nn.get(name).small_sizes
    layer = ms.nn.create(name, **sizes, **several)
    before = {key: value.clone() for key, value in layer.state_dict().items()}
    found = resources(layer, **SHORT)
    assert found.parameters == sum(p.numel() for p in layer.parameters())
    assert found.state_size == layer.state_size
    # torch's LSTM works in blocks of 4 kB, which are not few at so small a size
    if layer.grows and not forms:  # a memory of all states, and one of their scores at every step
        assert 1.0 < found.exponent < 2.0
    else:
        near = {"lstm": 0.15, "matrix-queue": 1e-2}.get(name, 1e-2 if forms else 1e-6)
        assert found.exponent == pytest.approx(1.0, abs=near)
    assert found.uncounted == ()
    assert (found.step_p50 > 0).all()
    assert (found.step_p99 >= found.step_p50).all()
    assert (found.work == found.work[0]).all()
    own = layer.transition("weight_hh_l0") is not None
    assert (found.map_multiply_adds > 0) == own
    assert layer.training
    for key, value in layer.state_dict().items():
        assert torch.equal(value, before[key])
    assert all(p.grad is None for p in layer.parameters())


def test_the_map_is_counted_once_and_not_in_the_step():
    found = resources(ms.nn.create("ornn", input_size=1, hidden_size=8), **SHORT)
    assert found.multiply_adds == 8 * (8 + 1) + 8  # V h, U x, and modReLU's sign times its size
    assert found.map_multiply_adds > 8**3 / 2


def test_a_complex_product_is_four():
    n, d = 6, 2
    found = resources(ms.nn.URNN(d, n), **SHORT)
    # V h of complex numbers, U x of real ones into both parts, and a real size times a complex phase
    assert found.multiply_adds == 4 * n * n + 2 * n * d + 2 * n
    assert found.state_size == 2 * n
    assert found.state_bytes == 8 * n


def test_the_memory_of_an_lstm_is_linear_in_time():
    found = resources(ms.nn.LSTM(1, 64), lengths=(64, 128, 256, 512), repeats=1)
    assert found.exponent == pytest.approx(1.0, abs=0.01)


def test_torch_layers_are_counted_as_their_written_out_twins():
    for theirs, ours in ((nn.LSTM(3, 5), ms.nn.LSTM(3, 5)), (nn.GRU(3, 5), ms.nn.GRU(3, 5))):
        a, b = resources(theirs, **SHORT), resources(ours, **SHORT)
        assert (a.parameters, a.state_size) == (b.parameters, b.state_size)
        gates = {"LSTM": 4, "GRU": 3}[a.network]
        assert a.multiply_adds - a.elementwise == b.multiply_adds - b.elementwise == gates * 5 * 8


def test_a_parametrised_cell_of_a_stranger_has_its_map_apart():
    cell = nn.RNNCell(3, 6)
    plain = resources(cell, **SHORT)
    assert plain.map_multiply_adds == 0
    mapped = resources(parametrizations.orthogonal(cell, "weight_hh", orthogonal_map="cayley"), **SHORT)
    assert mapped.multiply_adds == plain.multiply_adds == 6 * (6 + 3)
    assert mapped.map_multiply_adds > 6**3 / 3
    assert mapped.map_seconds > 0


def test_attention_is_counted_as_its_products():
    steps, width = 10, 8
    attention = nn.MultiheadAttention(width, 2, batch_first=True)
    x = torch.randn(1, steps, width)
    found = count(lambda: attention(x, x, x, need_weights=False))
    assert found.products == 4 * steps * width**2 + 2 * steps**2 * width
    assert found.uncounted == set()


@pytest.mark.parametrize(
    ("work", "products", "elementwise"),
    [
        (lambda: torch.ones(3, 4) @ torch.ones(4, 5), 60, 0),
        (lambda: torch.ones(3, 4) @ torch.ones(4), 12, 0),
        (lambda: torch.ones(3, 4, dtype=torch.complex64) @ torch.ones(4, dtype=torch.complex64), 48, 0),
        (lambda: torch.einsum("bi,oij,bj->bo", torch.ones(1, 2), torch.ones(3, 2, 4), torch.ones(1, 4)), None, 0),
        (lambda: torch.ones(7) * torch.ones(7), 0, 7),
        (lambda: torch.ones(7, 1) * torch.ones(7), 0, 49),
        (lambda: torch.ones(7).mul_(2), 0, 7),
        (lambda: torch.ones(7, dtype=torch.complex64) * torch.ones(7), 0, 14),
        (lambda: torch.ones(7, dtype=torch.complex64) * torch.ones(7, dtype=torch.complex64), 0, 28),
        (lambda: torch.ones(7) ** 2, 0, 7),
        (lambda: torch.ones(7).tanh() + 1, 0, 0),
        (lambda: torch.linalg.inv(torch.eye(6)), 216, 0),
        (lambda: torch.linalg.solve(torch.eye(6), torch.ones(6, 2)), 72 + 72, 0),
        (lambda: torch.linalg.solve_triangular(torch.eye(6), torch.ones(6, 2), upper=True), 36, 0),
        (lambda: torch.fft.fft(torch.ones(8, dtype=torch.complex64)), 2 * 8 * 3, 0),
        (lambda: torch.nn.functional.conv1d(torch.ones(1, 2, 10), torch.ones(4, 2, 3)), 8 * 4 * 2 * 3, 0),
    ],
)
def test_counts(work, products, elementwise):
    found = count(work)
    if products is not None:
        assert found.products == products
    else:
        assert found.total >= 3 * 2 * 4
    assert found.elementwise == elementwise
    assert found.uncounted == set()


def test_what_has_no_formula_is_said():
    found = count(lambda: torch.linalg.svd(torch.eye(4)))
    assert found.uncounted == {"_linalg_svd"}


# Growth ---------------------------------------------------------------------------------------------


def test_quadratic_and_linear_memory():
    quadratic = resources(Quadratic(), lengths=(32, 64, 128, 256))
    assert quadratic.exponent == pytest.approx(2.0, abs=0.02)
    assert quadratic.work_exponent == pytest.approx(1.0, abs=0.02)
    assert quadratic.state_size is None
    assert quadratic.time_exponent > 0.3  # a streaming step reads everything again
    linear = resources(Linear(), lengths=(32, 64, 128, 256))
    assert linear.exponent == pytest.approx(1.0, abs=1e-6)
    assert linear.work_exponent == 0.0
    assert linear.multiply_adds == 15
    assert linear.memory.tolist() == [4 * 5 * T for T in (32, 64, 128, 256)]  # the tanh, and nothing else


def test_a_growing_state():
    found = resources(Growing(), lengths=(16, 32, 64, 128), repeats=1)
    assert found.state_size is None
    assert found.state_bytes is None
    assert "no state of fixed size" in str(found)
    assert found.exponent < 1.2  # the mean of the past saves sizes alone, the products their inputs


def test_memory_of_an_elman_network_is_its_states():
    # The fused recurrence keeps h_1 .. h_T and the initial state, float32.
    n, batch = 10, 3
    found = resources(ms.nn.RNN(4, n), lengths=(20, 40, 80), batch=batch, repeats=1)
    np.testing.assert_array_equal(np.diff(found.memory), [4 * n * batch * 20, 4 * n * batch * 40])


def test_memory_grows_with_the_batch_and_the_type():
    one = resources(ms.nn.RNN(2, 4), **SHORT).memory
    many = resources(ms.nn.RNN(2, 4), **SHORT, batch=8).memory
    double = resources(ms.nn.GRU(2, 4).double(), **SHORT).memory
    single = resources(ms.nn.GRU(2, 4), **SHORT).memory
    np.testing.assert_array_equal(many, 8 * one)
    np.testing.assert_allclose(double / single, 2, rtol=0.1)


def test_checkpointing_saves_memory():
    options = {"lengths": (64, 128, 256), "repeats": 1}
    plain = resources(ms.nn.RNN(2, 8), **options)
    checked = resources(ms.nn.RNN(2, 8, checkpoint_every=16), **options)
    assert checked.memory[-1] < plain.memory[-1] / 8


def test_shared_storages_are_counted_once():
    x = torch.randn(100, requires_grad=True)

    def work():
        y = x.exp()  # saved by exp, and through views by both products
        return y[:50] * y[50:] * y[:50]

    assert saved_bytes(work) == 4 * (100 + 50)
    assert saved_bytes(lambda: x * x, [x]) == 0


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("constant", [0.0, 1e4])
def test_growth_exponent_of_powers(p, constant):
    lengths = np.array([100, 200, 350, 800.0])
    assert growth_exponent(lengths, constant + 7 * lengths**p) == pytest.approx(p, abs=1e-5)


def test_growth_of_nothing_and_slopes():
    lengths = np.array([1.0, 2.0, 4.0])
    assert growth_exponent(lengths, np.full(3, 5.0)) == 0.0
    assert growth_exponent(lengths, np.zeros(3)) == 0.0
    assert slope(lengths, 3 * lengths**2) == pytest.approx(2)
    assert np.isnan(slope(lengths, np.array([1.0, np.nan, 1.0])))


# The result -----------------------------------------------------------------------------------------


def test_the_result_prints_and_exports():
    found = resources(ms.nn.LSTM(1, 4), **SHORT)
    assert isinstance(found, Resources)
    assert str(found).startswith("LSTM: 112 parameters, a state of 8 numbers, 92 multiply-adds per step in ")
    assert re.search(r"step in \d+ µs, memory of training ~ T\^\d\.\d\d$", str(found))
    assert "\n" not in str(found)
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["measure"] == "resources"
    assert document["lengths"] == [8, 16, 32, 64]
    assert set(document) >= {field.name for field in dataclasses.fields(found)}
    axes = json.dumps(found.plot().to_dict(), ensure_ascii=False)
    assert "sequence length T (steps)" in axes
    assert "time of one step (µs)" in axes


def test_a_bidirectional_network_cannot_stream_but_is_measured():
    found = resources(ms.nn.GRU(3, 4, bidirectional=True), **SHORT)
    assert found.multiply_adds - found.elementwise == 2 * 3 * 4 * 7
    assert np.isnan(found.step_p50).all()
    assert found.exponent == pytest.approx(1.0, abs=1e-6)
    assert any("bidirectional" in words for words in found.assumptions)
    assert "time per step" not in found.facts()
    json.dumps(found.to_dict(), allow_nan=False)
    found.plot().to_dict()


def test_it_leaves_the_random_numbers_alone():
    layer = ms.nn.create("h-detach-lstm", input_size=2, hidden_size=3, num_layers=2, dropout=0.5)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    resources(layer, **SHORT)
    assert torch.equal(torch.rand(3), expected)


# What it refuses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lengths": (10, 20)}, "lengths must be at least three different numbers of steps, got (10, 20)"),
        ({"lengths": (10, 20, 0)}, "each of lengths must be a positive integer, got 0"),
        ({"lengths": (10, 20, 2.5)}, "each of lengths must be a positive integer, got 2.5"),
        ({"lengths": 10}, "lengths must be several numbers of steps, got 10"),
        ({"batch": 0}, "batch must be a positive integer, got 0"),
        ({"repeats": -1}, "repeats must be a positive integer, got -1"),
        ({"seed": "x"}, "seed must be a whole number of at least 0, got 'x'"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(UserError) as error:
        resources(ms.nn.RNN(2, 3), **options)
    assert str(error.value) == words


def test_what_is_no_network():
    with pytest.raises(UserError, match="module must be a torch.nn.Module, got a int"):
        resources(3)


def test_a_network_without_gradients():
    class Cut(nn.Module):
        input_size = 3

        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 5)

        def forward(self, x):
            return self.inner(x).detach().cumsum(1)

    with pytest.raises(UserError, match="needs a differentiable network"):
        resources(Cut(), **SHORT)


def test_a_network_that_does_not_take_the_length():
    class Positions(nn.Module):
        input_size = 3

        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.places = nn.Parameter(torch.zeros(100, 3))

        def forward(self, x):
            return (self.inner(x) + self.places[torch.arange(x.shape[1])]).cumsum(1)

    assert resources(Positions(), **SHORT).exponent == pytest.approx(1.0, abs=0.2)
    found = resources(Positions())
    assert found.lengths.tolist() == [8, 16, 32, 64]
    assert found.assumptions[0] == "it does not take 1024 steps, and was run on at most 64"
    only = resources(ms.adapt(Positions(), kind="sequence", length=24), **SHORT)
    assert only.lengths.tolist() == [24]
    assert np.isnan(only.exponent)


def test_more_memory_than_is_allowed(monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_MEMORY", "0.001")
    layer = ms.nn.LSTM(1, 32)
    with pytest.raises(UserError) as error:
        resources(layer, lengths=(128, 256, 65536))
    words = str(error.value)
    assert words.startswith("a training pass over 65536 steps needs 1")
    assert "1.0 MB are allowed" in words
    fits = int(words.split("lengths up to ")[1].split(maxsplit=1)[0])
    assert resources(layer, lengths=(fits // 4, fits // 2, fits), repeats=1).memory[-1] < 0.001 * 2**30


@pytest.mark.parametrize("name", ["retnet", "s4", "mlstm", "rwkv7", "relrnn", "ntm"])
def test_a_step_is_counted(name):
    """Operations as they come, a power whose exponents are many among them."""
    network = ms.nn.create(name, input_size=2, hidden_size=4)
    state = network.init_state(1)
    assert count(lambda: network.step(torch.ones(1, 2), state)).total > 0


def test_only_squares_are_counted_as_products():
    x = torch.ones(5)
    assert [count(lambda e=e: x**e).total for e in (2, 3)] == [5, 0]
    assert count(lambda: 2.0**x).total == count(lambda: x ** torch.full((5,), 2.0)).total == 0
