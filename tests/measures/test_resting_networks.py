"""Matrix Fisher memory and queue memory of networks, against their matrices given by hand and the vector measure."""

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import mnemoscope as ms
from mnemoscope.cli.main import app
from mnemoscope.core.errors import UserError

HORIZON = 12


def network(name, **options):
    options = {"input_size": (2, 3), "hidden_size": (3, 2), **options}
    return ms.nn.create(name, generator=torch.Generator().manual_seed(2), **options)


def numbers(weight):
    return weight.detach().double().numpy()


def source(layer, channel):
    """Return U1^T E V1 for the matrix E with a one at the channel: what a unit of that input brings."""
    row, column = divmod(channel, layer.input_shape[1])
    return np.outer(numbers(layer.weight_ih_rows_l0)[row], numbers(layer.weight_ih_columns_l0)[column])


def same(found, wanted):
    np.testing.assert_allclose(found.curve, wanted.curve, rtol=1e-9, atol=1e-14)
    assert found.total == pytest.approx(wanted.total, rel=1e-9)
    assert found.relative == pytest.approx(wanted.relative, rel=1e-9)


@pytest.mark.parametrize(("phi", "words"), [("identity", "the network is linear"), ("tanh", "linearised at rest")])
@pytest.mark.parametrize("channel", [0, 4])
def test_a_matrix_network_is_measured_by_its_factors(phi, words, channel):
    layer = network("matrixrnn", nonlinearity=phi)
    U, V = numbers(layer.weight_hh_rows_l0), numbers(layer.weight_hh_columns_l0)
    options = {"noise": (0.5, 2.0), "horizon": HORIZON}
    found = ms.measures.matrix_fisher_memory(layer, channel=channel, **options)
    wanted = ms.measures.matrix_fisher_memory(U, V, source(layer, channel), **options)
    same(found, wanted)
    assert found.published_total == pytest.approx(wanted.published_total)
    assert found.assumptions[0].startswith(words)
    queue = ms.measures.queue_fisher_memory(layer, weights=(0.2, 0.1), channel=channel, **options)
    same(queue, ms.measures.queue_fisher_memory(U, V, source(layer, channel), weights=(0.2, 0.1), **options))


def test_a_matrix_network_with_a_bias_is_linearised_where_it_rests():
    """Near H* the network is dH -> (1 - H*^2) (U^T dH V), with the Kronecker product written out."""
    layer = network("matrixrnn", dtype=torch.float64)
    with torch.no_grad():
        layer.bias_l0.copy_(torch.randn(3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
        layer.weight_hh_rows_l0.mul_(0.5)
    rest = layer(torch.zeros(400, 1, 2, 3, dtype=torch.float64))[0][-1, 0].detach().numpy()
    U, V = numbers(layer.weight_hh_rows_l0), numbers(layer.weight_hh_columns_l0)
    slope = (1 - rest**2).reshape(-1)
    step = slope[:, None] * np.kron(U.T, V.T)  # of row by row vectors
    wanted = ms.measures.fisher_memory(step, slope * source(layer, 1).reshape(-1), horizon=HORIZON)
    found = ms.measures.matrix_fisher_memory(layer, channel=1, horizon=HORIZON)
    np.testing.assert_allclose(found.curve, wanted.curve, rtol=1e-8, atol=1e-12)
    assert found.assumptions[0] == "linearised at rest, noise in each of the 6 numbers of its state"


def test_a_queue_brings_its_own_weights():
    layer = ms.nn.create(
        "matrix-queue", input_size=3, hidden_size=(3, 2), queue=(0.2, 0.1), generator=torch.Generator().manual_seed(1)
    )
    U, V, W = numbers(layer.weight_hh_rows_l0), numbers(layer.weight_hh_columns_l0), numbers(layer.weight_ih_l0)[2]
    found = ms.measures.queue_fisher_memory(layer, channel=2, horizon=HORIZON)
    wanted = ms.measures.queue_fisher_memory(U, V, W, weights=(0.2, 0.1), horizon=HORIZON)
    same(found, wanted)
    assert found.joint_total == pytest.approx(wanted.joint_total)
    assert found.weights == (0.2, 0.1)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("matrixlstm", {}),
        ("matrixrnn", {"num_layers": 2}),
        ("ntm", {"input_size": 2, "hidden_size": 3, "memory": (4, 2)}),
    ],
)
def test_other_networks_are_their_jacobian_at_rest(name, options):
    layer = network(name, dtype=torch.float64, **options)
    state, silence = layer.init_state(1), torch.zeros(1, *layer.input_shape, dtype=torch.float64)
    with torch.no_grad():
        for _ in range(600):
            state = layer.step(silence, state)[1]
    flat = layer.flatten_state(state).detach()

    def step(flat, x):
        return layer.flatten_state(layer.step(x, layer.unflatten_state(flat, state))[1])

    by_state, by_input = torch.autograd.functional.jacobian(step, (flat, silence))
    wanted = ms.measures.fisher_memory(by_state[0, :, 0].numpy(), by_input.flatten(2)[0, :, 1].numpy(), horizon=HORIZON)
    found = ms.measures.matrix_fisher_memory(layer, channel=1, horizon=HORIZON)
    np.testing.assert_allclose(found.curve, wanted.curve, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ms.measures.matrix_fisher_memory(ms.nn.RNN(2, 3)),
            "network must be a network of matrices",
        ),
        (lambda: ms.measures.matrix_fisher_memory(network("matrixrnn"), channel=6), "channel must be an input from 0"),
        (lambda: ms.measures.matrix_fisher_memory(np.eye(2)), "of a matrix U also needs V and W"),
        (
            lambda: ms.measures.matrix_fisher_memory(network("matrixrnn"), np.eye(2)),
            "or U, V and W; not both",
        ),
        (
            lambda: ms.measures.matrix_fisher_memory(network("matrix-queue", input_size=2)),
            "queue_fisher_memory measures matrix-queue",
        ),
        (
            lambda: ms.measures.queue_fisher_memory(network("matrix-queue", input_size=2), weights=(0.1,)),
            "weights cannot be given",
        ),
        (
            lambda: ms.measures.matrix_fisher_memory(network("matntm", memory=(120, 6, 6))),
            "a state of at most 1500 numbers",
        ),
    ],
)
def test_mistakes_are_one_line(make, message):
    with pytest.raises(UserError, match=message) as raised:
        make()
    assert "\n" not in str(raised.value)


def test_the_command():
    typed = [
        "measure",
        "matrix-fisher",
        "matrixrnn",
        "--hidden",
        "3,2",
        "--input-size",
        "2,3",
        "--horizon",
        "9",
        "--json",
    ]
    found = CliRunner().invoke(app, typed)
    assert found.exit_code == 0, found.output
    layer = ms.nn.NetworkSpec("matrixrnn", input_size=(2, 3), hidden_size=(3, 2), seed=0).build()
    wanted = ms.measures.matrix_fisher_memory(layer, horizon=9)
    assert json.loads(found.stdout)["total"] == pytest.approx(wanted.total)


def test_separation_of_a_network_of_matrices_is_that_of_its_flat_inputs():
    """Of all sequences of two templates the last output by a plain call, as a matrix of halves."""
    layer = network("matrixrnn", dtype=torch.float64)
    rows = torch.eye(6, dtype=torch.float64)[:2]
    found = ms.measures.separation_rank(layer, horizon=4, templates=rows.numpy(), unit=3)
    chosen = torch.cartesian_prod(*[torch.arange(2)] * 4)
    output = layer(rows[chosen].transpose(0, 1).reshape(4, -1, 2, 3))[0][-1].flatten(1)[:, 3]
    values = torch.linalg.svdvals(output.detach().reshape(4, 4))
    np.testing.assert_allclose(
        found.spectrum / found.spectrum[0], (values / values[0])[: len(found.spectrum)], atol=1e-10
    )
