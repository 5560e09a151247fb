"""Attention of networks to their past: crafted weights and small networks, against paths written down one by one."""

import itertools
import json
import math

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import mnemoscope as ms
from mnemoscope.cli.main import app
from mnemoscope.core.errors import UserError
from mnemoscope.nn.attention import Attention

NAMES = ["relrnn", "rellstm", "memrnn", "memlstm", "sab"]


def network(name="relrnn", **options):
    options = {"input_size": 2, "hidden_size": 6, **options}
    return ms.nn.create(name, generator=torch.Generator().manual_seed(1), **options)


def written_down(matrices, threshold):
    """Return events, depths and kappas of each trajectory by loops over states, steps and all paths."""
    length = matrices.shape[1]
    events, depths, kappas = [], [], []
    for alpha in matrices:
        events.append([any(alpha[t, i] > threshold for t in range(i + 1, length)) for i in range(length)])
        kappas.append(max(sum(alpha[t, i] > 0 for i in range(length)) for t in range(length)))
        way = alpha + np.eye(length)
        depths.append([])
        for i in range(length):
            for s in range(length):
                products = []
                for stops in itertools.combinations(range(i, length - 1), s):
                    ends, begins = [*stops, length - 1], [i, *(a + 1 for a in stops)]
                    products.append(math.prod(way[t, h] for t, h in zip(ends, begins, strict=True)))
                if any(product > threshold for product in products):
                    depths[-1].append(s)
                    break
    return np.array(events, dtype=float), np.array(depths, dtype=float), np.array(kappas)


def compare(found, matrices, threshold):
    events, depths, kappas = written_down(matrices, threshold)
    np.testing.assert_allclose(found.weights, matrices.mean(0), atol=1e-12)
    np.testing.assert_allclose(found.events, events.mean(0))
    np.testing.assert_allclose(found.depths, depths.mean(0))
    assert found.relevant == pytest.approx(events.sum(1).mean())
    assert found.depth == pytest.approx(depths.max(1).mean())
    assert found.kappa == pytest.approx(kappas.mean())


def crafted(seed, length=8, batch=3):
    random = np.random.default_rng(seed)
    weights = np.tril(random.random((batch, length, length)) ** 4 * (random.random((batch, length, length)) < 0.6))
    return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-12)


@pytest.mark.parametrize("threshold", [0.03, 0.1, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_crafted_weights_agree_with_paths_written_down(seed, threshold, monkeypatch):
    matrices = crafted(seed)
    batch, length, _ = matrices.shape
    steps = torch.arange(length).expand(length, batch, length)
    given = Attention(torch.tensor(matrices).transpose(0, 1).unsqueeze(2), steps)
    layer = network()
    monkeypatch.setattr(type(layer), "attention", lambda self, x, hx=None, *, layer=0: given)
    compare(ms.measures.attention(layer, horizon=length, trajectories=batch, threshold=threshold), matrices, threshold)


def test_one_chain_by_hand(monkeypatch):
    """Step 2 attends to state 0, step 5 to state 3: from state 0 the last step is one intermediate state away."""
    weights = np.zeros((6, 6))
    weights[2, 0], weights[5, 3] = 1, 1
    given = Attention(torch.tensor(weights)[:, None, None], torch.arange(6).expand(6, 1, 6))
    layer = network()
    monkeypatch.setattr(type(layer), "attention", lambda self, x, hx=None, *, layer=0: given)
    found = ms.measures.attention(layer, horizon=6, trajectories=1)
    assert found.events.tolist() == [1, 0, 0, 1, 0, 0]
    assert found.depths.tolist() == [1, 2, 1, 0, 1, 0]
    assert (found.relevant, found.depth, found.kappa) == (2, 2, 1)


@pytest.mark.parametrize("options", [{"buffer": 3, "relevant": 2}, {"heads": 2, "num_layers": 2, "batch_first": True}])
def test_a_small_relrnn_agrees_with_paths_written_down(options):
    layer = network(dtype=torch.float64, **options)
    x = 3 * torch.randn(9, 4, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    which = layer.num_layers - 1
    read = x.transpose(0, 1) if layer.batch_first else x
    wanted = layer.attention(read, layer=which).matrix().detach().numpy()
    found = ms.measures.attention(layer, inputs=x, layer=which, threshold=0.2, directions=None)
    compare(found, wanted, 0.2)
    assert found.status == "exact"
    if "buffer" in options:
        assert found.kappa == 5
    assert layer.training


@pytest.mark.parametrize("name", NAMES)
def test_every_network_that_attends_is_measured_and_drawn(name):
    layer = network(name)
    found = ms.measures.attention(layer, horizon=70, trajectories=3, skips=8, seed=4)
    again = ms.measures.attention(layer, horizon=70, trajectories=3, skips=8, seed=4)
    other = ms.measures.attention(layer, horizon=70, trajectories=3, skips=8, seed=5)
    assert np.array_equal(found.weights, again.weights)
    assert not np.array_equal(found.weights, other.weights)
    assert not np.triu(found.weights, 1).any()
    sums = found.weights.sum(1)
    assert sums[-1] == pytest.approx(1, abs=1e-5)
    assert 0 <= found.depths[-1] <= found.depth <= 69
    if name.startswith("mem"):
        assert found.kappa == 70
    assert json.loads(json.dumps(found.to_dict()))["measure"] == "attention"
    assert found.plot().to_dict()


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("gru", {}, "network must be one that attends to its past states, such as relrnn, memrnn or sab, got GRU"),
        ("relrnn", {"horizon": 0}, "horizon must be a positive integer, got 0"),
        ("relrnn", {"trajectories": -1}, "trajectories must be a positive integer, got -1"),
        ("relrnn", {"threshold": 1.0}, "threshold must be below 1, got 1.0"),
        ("relrnn", {"skips": -1}, "skips must be an integer of at least 0, got -1"),
        ("relrnn", {"directions": 0}, "directions must be a positive integer, got 0"),
        ("relrnn", {"layer": 1}, "layer must be an integer from 0 to 0, got 1"),
        ("relrnn", {"inputs": np.zeros((3, 2))}, r"inputs must be of shape \(time, trajectories, 2\), got \(3, 2\)"),
        ("relrnn", {"inputs": np.full((3, 1, 2), np.nan)}, "inputs must be finite, got NaN or infinity"),
        ("memrnn-5", {"horizon": 6}, "a sequence of 6 steps does not fit: give MemRNN capacity=6"),
    ],
)
def test_mistakes_are_one_line(name, arguments, message):
    name, _, capacity = name.partition("-")
    layer = network(name, **({"capacity": int(capacity)} if capacity else {}))
    with pytest.raises(UserError, match=message):
        ms.measures.attention(layer, **arguments)


def test_the_command(tmp_path):
    picture = tmp_path / "map.svg"
    typed = ["measure", "attention", "memrnn", "--hidden", "6", "--horizon", "12", "--plot", str(picture)]
    found = CliRunner().invoke(app, typed)
    assert found.exit_code == 0, found.output
    assert "kappa 12" in found.output
    assert "<svg" in picture.read_text()
    refused = CliRunner().invoke(app, ["measure", "attention", "gru"])
    assert refused.exit_code == 2
