"""Fisher memory by the blocks of a state: against the matrices of the whole state, and the matrix theory."""

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.measures.blocks import blocks_of
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.fisher import network as dense
from mnemoscope.measures.fisher.network import network_fisher_memory
from mnemoscope.measures.fisher.structured import Driven, block_memory

OPTIONS = {"s4": {"order": 4}, "s4d": {"order": 4}, "mamba": {"order": 3}, "mamba2": {"order": 3}}
OPTIONS |= {name: {} for name in ("lru", "mingru", "minlstm", "rglru", "retnet", "gla", "hgrn2")}
OPTIONS |= {"deltanet": {"negative_eigenvalues": True}, "gated-deltanet": {}}
FIXED = ("lru", "s4", "s4d")


def build(name, hidden_size=6, **options):
    torch.manual_seed(1)
    return ms.nn.create(name, input_size=2, hidden_size=hidden_size, **OPTIONS[name] | options)


@pytest.mark.parametrize("name", OPTIONS)
def test_blocks_are_the_jacobians_of_the_whole_state(name):
    flow = Dynamics.of(build(name))
    blocks = blocks_of(flow)
    x, state = torch.randn(3, 2, dtype=torch.float64), flow.probe_states(3, torch.Generator().manual_seed(0))
    wanted = flow.jacobians(x, state)
    same_for_all = torch.eye(blocks.columns, dtype=torch.float64)
    found = [
        torch.block_diag(*(torch.kron(A.contiguous(), same_for_all) for A in one))
        for one in blocks.transitions(x, state)
    ]
    torch.testing.assert_close(torch.stack(found), wanted.state, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(blocks.entries(x, state).reshape(wanted.input.shape), wanted.input)
    assert (blocks.constant is not None) == (name in FIXED)


@pytest.mark.parametrize("horizon", [None, 20])
@pytest.mark.parametrize("name", OPTIONS)
def test_memory_by_blocks_is_that_of_the_whole_state(name, horizon, monkeypatch):
    layer, arguments = build(name), {"horizon": horizon, "longest": 60, "trajectories": 3, "washout": 5, "noise": 0.5}
    found = network_fisher_memory(layer, **arguments)
    monkeypatch.setattr(dense, "blocks_of", lambda flow: None)
    wanted = network_fisher_memory(layer, **arguments)
    np.testing.assert_allclose(found.direction, wanted.direction, atol=1e-9)
    assert found.total == pytest.approx(wanted.total, rel=1e-9)
    lags = min(found.horizon, wanted.horizon)
    np.testing.assert_allclose(found.curve[:lags], wanted.curve[:lags], rtol=1e-8, atol=1e-10 * wanted.total)
    assert (found.linear, found.size, found.status) == (wanted.linear, wanted.size, wanted.status)
    assert found.stderr == pytest.approx(wanted.stderr, rel=1e-6)


@pytest.mark.parametrize("name", ["s4d", "mamba", "gla", "deltanet"])
def test_relative_noise_on_blocks_is_that_on_the_whole_state(name, monkeypatch):
    layer, arguments = build(name), {"longest": 40, "trajectories": 2, "washout": 5, "noise": "relative"}
    wanted = network_fisher_memory(layer, **arguments)
    monkeypatch.setattr(dense, "DENSE", 1)
    found = network_fisher_memory(layer, **arguments)
    assert found.missing == 0
    assert found.total == pytest.approx(wanted.total, rel=1e-8)
    lags = min(found.horizon, wanted.horizon)
    np.testing.assert_allclose(found.curve[:lags], wanted.curve[:lags], rtol=1e-6, atol=1e-9 * wanted.total)
    assert (found.linear, found.size, found.noise) == (wanted.linear, wanted.size, "relative")


def test_retention_is_the_matrix_theory():
    # One head: S_t = gamma R S_{t-1} + W s_t + Z_t, so U^T = gamma R and V = I.
    flow = Dynamics.of(build("retnet", hidden_size=4, heads=1))
    blocks = blocks_of(flow)
    A = blocks.transitions(torch.ones(1, 2, dtype=torch.float64), flow.start(1))[0, 0]
    W = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 4)))
    noise = block_memory(blocks, 30, Driven(1, 1.0, 0, 0), until_settled=False).noise
    curve = [noise.whiten(torch.linalg.matrix_power(A, k)[None] @ W).square().sum().item() for k in range(30)]
    wanted = ms.measures.matrix_fisher_memory(A.mT.numpy(), np.eye(4), W.numpy(), horizon=30)
    np.testing.assert_allclose(curve, wanted.curve, rtol=1e-10)


def test_in_silence_linear_attention_writes_nothing_to_first_order():
    found = network_fisher_memory(build("retnet"), (1.0, -1.0), horizon=9, scale=0.0, trajectories=1, washout=0)
    assert found.total == 0


@pytest.mark.parametrize("options", [{"num_layers": 2}, {"block": True}])
def test_what_couples_the_parts_is_not_taken_apart(options):
    assert build("gla", **options).transition_blocks is None
    assert ms.nn.create("lstm", input_size=2, hidden_size=4).transition_blocks is None


def test_an_expanding_state_space_has_no_stationary_memory():
    layer = build("lru")
    with torch.no_grad():
        layer.nu_l0.fill_(-40.0)  # a modulus of one
    assert not network_fisher_memory(layer, longest=50).settled


@pytest.mark.parametrize(("name", "size", "options"), [("mingru", 16384, {}), ("gla", 256, {"heads": 4})])
def test_a_state_of_16384_numbers(name, size, options):
    found = network_fisher_memory(build(name, size, **options), longest=16, trajectories=1, washout=4)
    assert found.size == 16384
    assert 0 < found.total < np.inf
