"""Numbers of trainable parameters: those that ERRATA and DETAILS state, and the general formulas behind them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import mnemoscope as ms


def count(*modules):
    return sum(p.numel() for module in modules for p in module.parameters() if p.requires_grad)


def make(name, d, n, layers=1, **options):
    generator = torch.Generator().manual_seed(0)
    return ms.nn.create(name, input_size=d, hidden_size=n, num_layers=layers, generator=generator, **options)


def hidden(layer, name="weight_hh_l0"):
    """Parameters of V alone."""
    return sum(p.numel() for p in layer.parametrizations[name].parameters(recurse=False))


def with_readout(layer, outputs):
    return count(layer, nn.Linear(layer.output_size, outputs))


# The published counts ------------------------------------------------------------------------------------------------

COPY, PSMNIST, PTB = (10, 9), (1, 10), (200, 50)


def total(name, task, n, **options):
    d, outputs = task
    embedding = nn.Embedding(50, 200) if task == PTB else nn.Identity()
    return with_readout(make(name, d, n, **options), outputs) + count(embedding)


@pytest.mark.parametrize("block", ["published", "balanced"])
@pytest.mark.parametrize(
    ("task", "n", "expected"), [(COPY, 128, 18_953), (PSMNIST, 512, 268_298), (PTB, 1024, 1_315_650)]
)
def test_nnrnn(task, n, expected, block):
    assert total("nnrnn", task, n, block=block) == expected


@pytest.mark.parametrize(
    ("task", "n", "expected"), [(COPY, 128, 18_953), (PSMNIST, 512, 268_298), (PTB, 1024, 1_315_650)]
)
def test_nnrnn_with_plain_rotations_has_half_a_number_per_unit_less(task, n, expected):
    assert total("nnrnn", task, n) == expected - n // 2
    assert total("nnrnn", task, n, block="rotation") == expected - n // 2


@pytest.mark.parametrize(
    ("task", "n", "expected"), [(COPY, 176, 18_929), (PSMNIST, 722, 268_955), (PTB, 1386, 1_317_741)]
)
def test_exprnn(task, n, expected):
    assert total("exprnn", task, n) == expected


def test_lstm_with_two_biases():
    assert total("lstm", PTB, 475) == 1_320_100


@pytest.mark.parametrize(("layers", "n", "expected"), [(2, 128, 34_314), (3, 256, 232_586)])
def test_deep_scornn_of_table_c1(layers, n, expected):
    """ERRATA: the true counts of Ziv's deep rows (the table has 26K and 167K)."""
    assert with_readout(make("scornn", 1, n, layers), 10) == expected


@pytest.mark.parametrize("budget", [2**13, 2**16])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_widths_of_zivs_copying_study(layers, budget):
    """DETAILS: the largest width within the budget, one-hot 34 in and 34 logits out."""
    width = {2**13: (76, 48, 39), 2**16: (299, 164, 127)}[budget][layers - 1]
    assert with_readout(make("scornn", 34, width, layers), 34) <= budget
    assert with_readout(make("scornn", 34, width + 1, layers), 34) > budget


# General formulas ----------------------------------------------------------------------------------------------------

sizes = {"n": st.integers(1, 12), "d": st.integers(1, 5), "layers": st.integers(1, 3)}
quick = settings(max_examples=20, deadline=None)


def zivs_formula(L, R, d, C):
    return L * R * (R - 1) // 2 + R * d + (L - 1) * R**2 + L * R + C * R + C


@quick
@given(**sizes)
def test_deep_orthogonal_networks(n, d, layers):
    """P = L R(R-1)/2 + R d + (L-1) R^2 + L R + C R + C."""
    for name in ("scornn", "exprnn", "full-urnn"):
        assert with_readout(make(name, d, n, layers), 4) == zivs_formula(layers, n, d, 4)
    assert with_readout(make("exprnn", d, n, layers, rebase=10), 4) == zivs_formula(layers, n, d, 4)


@quick
@given(**sizes)
def test_free_networks(n, d, layers):
    """(2L-1) n^2 + (L+d) n with one bias per layer, plus o (n+1) for a readout of size o."""
    for name in ("linear-rnn", "rnn", "irnn", "orth-rnn", "henaff"):
        assert count(make(name, d, n, layers)) == (2 * layers - 1) * n**2 + (layers + d) * n
        assert with_readout(make(name, d, n, layers), 3) == (2 * layers - 1) * n**2 + (layers + d) * n + 3 * (n + 1)
    assert count(make("soft-orth", d, n, layers, mode="penalty")) == (2 * layers - 1) * n**2 + (layers + d) * n


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu", "modrelu", "identity"])
@pytest.mark.parametrize("activation", ["recurrent", "depth"])
def test_where_and_which_nonlinearity_does_not_change_the_count(nonlinearity, activation):
    assert count(make("rnn", 3, 8, 2, nonlinearity=nonlinearity, activation=activation)) == 3 * 64 + 5 * 8


def test_without_bias():
    assert count(make("rnn", 3, 8, 2, bias=False)) == 3 * 64 + 3 * 8
    assert count(make("exprnn", 3, 8, bias=False)) == 28 + 24


@pytest.mark.parametrize("n", [1, 2, 3, 8, 13])
def test_urnn_matrix_has_seven_numbers_per_unit(n):
    layer = make("urnn", 3, n)
    assert hidden(layer) == 7 * n
    assert count(layer) == 7 * n + 2 * n * 3 + n


def test_urnn_says_so_and_says_what_it_cannot_reach():
    """DETAILS: 7n parameters; cannot reach all unitary matrices for n > 7: say both in its card."""
    notes = " ".join(make("urnn", 1, 2).card.notes)
    assert "7n" in notes
    assert "n > 7" in notes


@pytest.mark.parametrize("n", [1, 2, 3, 8, 13])
def test_matrices_with_full_capacity(n):
    """dim SO(n) = n(n-1)/2, dim U(n) = n^2; scuRNN has n phases more; soft-orth two factors and n singular values."""
    pairs = n * (n - 1) // 2
    assert hidden(make("scornn", 1, n)) == pairs
    assert hidden(make("exprnn", 1, n)) == pairs
    assert hidden(make("full-urnn", 1, n)) == pairs
    assert hidden(make("goru", 1, n)) == pairs
    assert hidden(make("exprnn", 1, n, field="complex")) == n**2
    assert hidden(make("full-urnn", 1, n, field="complex")) == n**2
    assert hidden(make("scurnn", 1, n)) == n**2 + n
    assert hidden(make("soft-orth", 1, n)) == 2 * pairs + n


@quick
@given(n=st.integers(1, 15), data=st.data())
def test_ornn_has_one_number_less_for_each_reflection(n, data):
    m = data.draw(st.integers(1, n))
    assert hidden(make("ornn", 1, n, reflections=m)) == m * n - m * (m - 1) // 2
    assert hidden(make("ornn", 1, n)) == n * (n + 1) // 2


@quick
@given(n=st.integers(1, 15), data=st.data())
def test_eurnn_has_one_angle_per_pair(n, data):
    m = data.draw(st.integers(1, n))
    pairs = sum(len(range(layer % 2, n - 1, 2)) for layer in range(m))
    assert hidden(make("eurnn", 1, n, rotations=m)) == pairs
    assert hidden(make("eurnn", 1, n)) == n * (n - 1) // 2  # all of SO(n)


@quick
@given(n=st.integers(1, 12), d=st.integers(1, 5))
def test_nnrnn_matrix(n, d):
    """Kerg 3.5: n(n-1)/2 for P and as many for T, n/2 each of theta and gamma (a last gamma alone for odd n)."""
    pairs, blocks = n * (n - 1) // 2, n // 2
    assert hidden(make("nnrnn", d, n, block="published")) == 2 * pairs + blocks + (n + 1) // 2 == n**2
    assert hidden(make("nnrnn", d, n, block="balanced")) == n**2
    assert hidden(make("nnrnn", d, n)) == n**2 - blocks
    assert hidden(make("nnrnn", d, n, gamma="clamped")) == n**2 - blocks - (n + 1) // 2
    assert count(make("nnrnn", d, n, block="balanced")) == n**2 + n * d + n


@quick
@given(n=st.integers(1, 9), d=st.integers(1, 5))
def test_complex_networks_read_twice_as_many_rows(n, d):
    assert count(make("scurnn", d, n)) == n**2 + n + 2 * n * d + n
    assert count(make("exprnn", d, n, field="complex")) == n**2 + 2 * n * d + n
    two = make("exprnn", d, n, 2, field="complex")
    assert count(two) == 2 * n**2 + 2 * n * d + 2 * n * 2 * n + 2 * n
    assert with_readout(two, 3) - count(two) == 3 * (2 * n + 1)


@quick
@given(**sizes)
def test_gated_networks(n, d, layers):
    inputs = [d] + [n] * (layers - 1)
    assert count(make("lstm", d, n, layers)) == sum(4 * n * (i + n) + 8 * n for i in inputs)
    assert count(make("gru", d, n, layers)) == sum(3 * n * (i + n) + 6 * n for i in inputs)
    assert count(make("h-detach-lstm", d, n, layers)) == sum(4 * n * (i + n) + 4 * n for i in inputs)
    expected = sum(3 * n * i + 2 * n * n + 2 * n + n * (n - 1) // 2 + n for i in inputs)
    assert count(make("goru", d, n, layers)) == expected


@pytest.mark.parametrize(
    "name", sorted(set(ms.nn.names()) & {"rnn", "exprnn", "nnrnn", "scurnn", "lstm", "goru", "ornn"})
)
def test_second_direction_doubles_a_layer(name):
    assert count(make(name, 3, 6, bidirectional=True)) == 2 * count(make(name, 3, 6))
