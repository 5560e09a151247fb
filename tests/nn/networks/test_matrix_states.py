"""Matrix states: a bilinear map is a Kronecker product of an affine one, and torch has the vector networks."""

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures import queue_fisher_memory


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def build(name, **options):
    network = ms.nn.create(name, dtype=torch.float64, **options)
    with torch.no_grad():
        for seed, parameter in enumerate(network.parameters()):
            parameter.copy_(0.5 * draw(*parameter.shape, seed=seed))
    return network


def kron(u, v):
    """Return the matrix of X -> U^T X V on rows of X, one after another."""
    return torch.kron(u.T, v.T)


@torch.no_grad()
def test_matrixrnn_is_a_vector_network_of_kronecker_products():
    network = build("matrixrnn", input_size=(2, 3), hidden_size=[(3, 2), (4, 5)])
    x, start = draw(6, 4, 2, 3), tuple(draw(4, *size, seed=9) for size in ((3, 2), (4, 5)))
    y, last = network(x, start)
    flat = x.flatten(2)
    for k, size in enumerate(((3, 2), (4, 5))):
        vector = nn.RNN(flat.shape[2], size[0] * size[1], dtype=torch.float64)
        for name in ("ih", "hh"):
            u, v = (getattr(network, f"weight_{name}_{side}_l{k}") for side in ("rows", "columns"))
            getattr(vector, f"weight_{name}_l0").copy_(kron(u, v))
        vector.bias_ih_l0.copy_(getattr(network, f"bias_l{k}").flatten())
        vector.bias_hh_l0.zero_()
        flat, end = vector(flat, start[k].flatten(1).unsqueeze(0))
        torch.testing.assert_close(last[k].flatten(1), end[0])
    torch.testing.assert_close(y.flatten(2), flat)


@torch.no_grad()
def test_matrixlstm_is_a_vector_lstm_of_kronecker_products():
    network = build("matrixlstm", input_size=(2, 3), hidden_size=(3, 2))
    vector = nn.LSTM(6, 6, dtype=torch.float64)
    for name in ("ih", "hh"):
        u, v = (getattr(network, f"weight_{name}_{side}_l0") for side in ("rows", "columns"))
        getattr(vector, f"weight_{name}_l0").copy_(torch.cat([kron(a, b) for a, b in zip(u, v, strict=True)]))
    vector.bias_ih_l0.copy_(network.bias_l0.flatten())
    vector.bias_hh_l0.zero_()
    x = draw(5, 4, 2, 3)
    y, (state,) = network(x)
    wanted, (h, c) = vector(x.flatten(2))
    torch.testing.assert_close(y.flatten(2), wanted)
    torch.testing.assert_close((state.h.flatten(1), state.c.flatten(1)), (h[0], c[0]))


@torch.no_grad()
def test_matrix_queue():
    """Against the equation, and its impulse response against the Fisher memory of the same matrices."""
    network = build("matrix-queue", input_size=1, hidden_size=(2, 2), queue=(0.3, -0.2), bias=False)
    u, v, w = network.weight_hh_rows_l0, network.weight_hh_columns_l0, network.weight_ih_l0[0].clone()
    s, past = draw(7), [torch.zeros(2, 2, dtype=torch.float64)] * 3
    wanted = []
    for value in s:
        past = [u.T @ past[0] @ v + w * value + 0.3 * past[1] - 0.2 * past[2], *past[:2]]
        wanted.append(past[0].flatten())
    y, (state,) = network(s[:, None, None])
    torch.testing.assert_close(y[:, 0], torch.stack(wanted))
    torch.testing.assert_close(state.states[0], torch.stack(past))
    pulse = torch.zeros(6, 1, 1, dtype=torch.float64)
    pulse[0] = 1
    response = network(pulse)[0][:, 0]
    noise = torch.zeros(4, 4, dtype=torch.float64)
    for i in range(4):
        one = torch.zeros(2, 2, dtype=torch.float64)
        one.view(-1)[i] = 1
        network.weight_ih_l0[0] = one
        made = network(pulse)[0][:, 0]
        noise += made.T @ made
    curve = [float(m @ torch.linalg.solve(noise, m)) for m in response]
    found = queue_fisher_memory(u, v, w, weights=(0.3, -0.2), horizon=6)
    assert found.curve.tolist() == pytest.approx(curve, rel=1e-9)


def count(name, **options):
    return sum(p.numel() for p in ms.nn.create(name, **options).parameters())


def test_counts_of_table_1():
    assert count("matrixrnn", input_size=(5, 5), hidden_size=[(15, 15), (15, 15), (5, 5)]) == 2175
    assert count("matrixrnn", input_size=(5, 5), hidden_size=[*3 * [(20, 20)], (5, 5)]) == 5675
    assert count("matntm", input_size=(5, 5), hidden_size=(15, 15), num_layers=3, memory=(120, 6, 6)) == 4121
    assert count("matntm", input_size=(5, 5), hidden_size=4 * [(20, 20)], memory=(120, 6, 6)) == 7946


def test_matrix_linear():
    layer = ms.nn.MatrixLinear((2, 3), (4, 5), nonlinearity="sigmoid", dtype=torch.float64)
    with torch.no_grad():
        layer.bias.copy_(draw(4, 5))
    x = draw(7, 2, 3)
    wanted = torch.sigmoid(torch.einsum("ap,nab,bq->npq", layer.rows, x, layer.columns) + layer.bias)
    torch.testing.assert_close(layer(x), wanted)
    with pytest.raises(UserError, match=r"the last axes of input must be \(2, 3\), got \(3, 2\)"):
        layer(x.mT)


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("matrixrnn", {"input_size": 5, "hidden_size": (2, 2)}, "input_size must be a pair of positive integers"),
        ("matrixrnn", {"input_size": (5, 5), "hidden_size": 4}, "hidden_size must be a pair of .*, got 4"),
        ("matrixlstm", {"input_size": (5, 5), "hidden_size": [(2, 2), 3]}, "hidden_size must be a pair of .*, got 3"),
        ("matrixrnn", {"input_size": (5, 5), "hidden_size": (2, 0)}, "hidden_size must be a positive integer, got 0"),
        (
            "matrixrnn",
            {"input_size": (5, 5), "hidden_size": [(2, 2)], "num_layers": 3},
            "num_layers must be 1, as many",
        ),
        ("matntm", {"input_size": (5, 5), "hidden_size": 3}, "hidden_size must be a pair of positive integers"),
        ("matrix-queue", {"input_size": 1, "hidden_size": 3}, "hidden_size must be a pair of positive integers"),
        ("matrix-queue", {"input_size": 1, "hidden_size": (2, 2), "queue": ()}, "queue must be one or more finite"),
    ],
)
def test_bad_sizes(name, sizes, message):
    with pytest.raises(UserError, match=message):
        ms.nn.create(name, **sizes)
