"""The gate of state tracking: crafted transitions, published ladders, brute force, and strangers' modules."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import mnemoscope as ms
from mnemoscope import tasks, theory
from mnemoscope.core.errors import UserError
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.tracking.parts import find_parts
from mnemoscope.tasks.group_composition import multiplication_table

GROUPS = ("Z2", "Z3", "Z60", "S3", "A5", "S5")
EVERY = (*GROUPS, "Dyck-(2,m)")


def gate(network, **more):
    return ms.measures.tracking_gate(network, **more)


class Linear(nn.Module):
    """h' = A(x) h + B x with A(x) = sum of x_i A_i + A_0: a cell of a stranger's."""

    def __init__(self, *matrices: np.ndarray) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.as_tensor(np.stack(matrices), dtype=torch.float64))
        self.drive = nn.Parameter(torch.ones(self.matrices.shape[1], 2, dtype=torch.float64))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        weights = torch.cat([torch.ones_like(x[:, :1]), torch.sigmoid(x)], dim=1)[:, : len(self.matrices)]
        return torch.einsum("bk,kij,bj->bi", weights, self.matrices, h) + x @ self.drive.T


def cell(*matrices: np.ndarray) -> nn.Module:
    return ms.adapt(Linear(*matrices), kind="cell", input_size=2)


def rotation(angle: float) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def reflection(k: np.ndarray) -> np.ndarray:
    return np.eye(len(k)) - 2 * np.outer(k, k) / (k @ k)


TURN = rotation(2 * np.pi / 3)
CRAFTED = {
    "fixed rotation": ((TURN,), (False, True, False, False, "diagonal in one basis"), GROUPS),
    "fixed reflection": ((np.diag([1.0, -1.0]),), (True, False, False, False, "diagonal"), GROUPS),
    "positive diagonal": (
        (np.diag([0.5, 0.2]), np.diag([0.1, 0.3])),
        (False, False, False, True, "diagonal"),
        GROUPS,
    ),
    "signed diagonal": (
        (np.diag([0.5, 0.2]), np.diag([-0.9, 0.3])),
        (True, False, False, True, "diagonal"),
        ("Z3", "Z60", "S3", "A5", "S5"),
    ),
    "rotations by the input": (
        (0.4 * np.eye(2), 0.5 * rotation(1.0)),
        (False, True, False, True, "diagonal in one basis"),
        ("S3", "A5", "S5"),
    ),
    "symmetric": (
        (np.diag([0.4, -0.6]), 0.3 * reflection(np.array([1.0, 2.0]))),
        (True, False, False, True, "not diagonal in one basis"),
        ("Z3", "Z60", "S3", "A5", "S5"),
    ),
    "permutations": (
        (0.5 * np.eye(3)[[1, 2, 0]], 0.4 * np.eye(3)[[1, 0, 2]]),
        (False, True, False, True, "not diagonal in one basis"),
        (),
    ),
    "growing": (
        (1.1 * np.eye(2), 0.2 * np.eye(2)),
        (False, False, True, True, "diagonal"),
        GROUPS,
    ),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_transitions(name):
    matrices, facts, excluded = CRAFTED[name]
    found = gate(cell(*matrices))
    assert found.linear
    assert (found.negative, found.complex_pairs, found.above_one, found.input_dependent, found.structure) == facts
    assert tuple(each.group for each in found.excluded) == excluded
    assert found.allowed == tuple(each for each in EVERY if each not in excluded)
    assert {each.holds for each in found.excluded} <= {"for these weights"}


def test_eigenvalues_are_those_of_the_matrix_whatever_the_units():
    W = np.random.default_rng(0).normal(size=(6, 6)) / 3
    layer = ms.nn.LinearRNN(1, 6, dtype=torch.float64)
    layer.weight_hh_l0 = torch.from_numpy(W)
    scale = np.diag(10.0 ** np.arange(-2, 4))[[3, 1, 0, 2, 5, 4]]
    other = ms.nn.LinearRNN(1, 6, dtype=torch.float64)
    other.weight_hh_l0 = torch.from_numpy(scale @ W @ np.linalg.inv(scale))
    for network in (layer, other):
        found = gate(network)
        np.testing.assert_allclose(
            np.sort_complex(found.eigenvalues[0]), np.sort_complex(np.linalg.eigvals(W)), atol=1e-9
        )
        assert found.radius == pytest.approx(np.abs(np.linalg.eigvals(W)).max())
        assert not found.input_dependent


PUBLISHED = [
    # network, options, layers -> what is not ruled out (Grazzi et al. 2025, Merrill et al. 2024)
    ("mamba", {}, 1, ("Dyck-(2,m)",)),
    ("mamba", {}, 2, ("Dyck-(2,m)",)),
    ("mamba", {"negative_eigenvalues": True}, 2, ("Z2", "Dyck-(2,m)")),
    ("gla", {}, 2, ("Dyck-(2,m)",)),
    ("mlstm", {}, 1, ("Dyck-(2,m)",)),
    ("deltanet", {}, 2, ("Dyck-(2,m)",)),
    ("deltanet", {"negative_eigenvalues": True, "heads": 2}, 1, ("Z2", "Dyck-(2,m)")),
    ("deltanet", {"negative_eigenvalues": True, "heads": 2}, 2, EVERY),
    ("s4d", {"order": 4}, 2, ("Dyck-(2,m)",)),
    ("rnn", {}, 1, EVERY),
    ("lstm", {}, 2, EVERY),
    ("slstm", {}, 1, EVERY),
    ("exprnn", {}, 1, EVERY),
    ("birnn", {}, 2, EVERY),
]


@pytest.mark.parametrize(("name", "options", "layers", "allowed"), PUBLISHED)
def test_published_ladders(name, options, layers, allowed):
    network = ms.nn.create(name, input_size=2, hidden_size=4, num_layers=layers, **options)
    found = gate(network)
    assert found.allowed == allowed
    declared = network.transitions
    if declared:
        assert found.declared == declared
        assert {each.holds for each in found.excluded} <= {"for all weights"}
        assert not (declared in ("non-negative", "projections") and (found.negative or found.complex_pairs))
        assert not (declared in ("real diagonal", "reflections") and found.complex_pairs)
        assert found.layers >= layers


@pytest.mark.parametrize("name", ["retnet", "gla", "deltanet", "lru", "mamba"])
def test_declared_blocks_and_jacobians_show_the_same(name):
    network = ms.nn.create(name, input_size=2, hidden_size=4, dtype=torch.float64)
    dynamics = Dynamics.of(network)
    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    state = dynamics.probe_states(4, torch.Generator().manual_seed(1))
    blocks = find_parts(dynamics, x, state)
    type(dynamics.network).transition_blocks, kept = None, type(dynamics.network).transition_blocks
    try:
        found = find_parts(dynamics, x, state)
    finally:
        type(dynamics.network).transition_blocks = kept
    assert (found.linear, found.layers, found.fixed) == (True, 1, blocks.fixed)
    dense = dynamics.jacobians(x, state).state.numpy()
    for t in range(4):
        want = np.sort_complex(np.linalg.eigvals(dense[t]).round(9))
        got = np.sort_complex(found.eigenvalues()[0 if found.fixed else t].round(9))
        np.testing.assert_allclose(got, want, atol=1e-6)
        shown = blocks.eigenvalues()[0 if blocks.fixed else t]
        assert all(np.abs(want - value).min() < 1e-6 for value in shown)


def test_a_network_whose_nonlinearity_sleeps_is_nonlinear():
    """modReLU with a bias of zero is the identity, and training wakes it."""
    layer = ms.nn.create("scornn", input_size=1, hidden_size=6)
    torch.nn.init.zeros_(layer.bias_l0)
    found = gate(layer)
    assert not found.linear
    assert found.excluded == ()
    assert str(found).startswith("nonlinear in its state: eigenvalues rule out nothing")
    linear = ms.nn.create("scornn", input_size=1, hidden_size=6, nonlinearity="identity")
    assert [each.theorem for each in gate(linear).excluded] == ["tracking-fixed-transitions"] * 6


def test_strangers_modules():
    torch.manual_seed(0)
    found = gate(ms.adapt(nn.GRU(2, 5)))
    assert (found.linear, found.allowed) == (False, EVERY)

    class Gated(nn.Module):
        """Two layers of h' = a(x) h + b(x), each with gates of its own input: minGRU as people write it."""

        def __init__(self) -> None:
            super().__init__()
            self.gates = nn.ModuleList([nn.Linear(2, 8), nn.Linear(4, 8)])

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            after = []
            for own, layer in zip(h.chunk(2, -1), self.gates, strict=True):
                z, new = layer(x).chunk(2, -1)
                x = (1 - z.sigmoid()) * own + z.sigmoid() * new
                after.append(x)
                x = torch.tanh(x)
            return torch.cat(after, -1)

    network = ms.adapt(Gated(), kind="cell", input_size=2, init_state=lambda batch: torch.zeros(batch, 8))
    found = gate(network)
    assert (found.linear, found.layers, found.structure, found.negative) == (True, 2, "diagonal", False)
    assert found.allowed == ("Dyck-(2,m)",)
    assert [each.theorem for each in found.excluded] == ["tracking-positive-eigenvalues"] * 6


def test_facts_of_groups_are_those_of_their_tables():
    for name in GROUPS:
        table = multiplication_table(name)
        facts = theory.group_facts(name)
        powers, orders = np.arange(len(table)), np.zeros(len(table), dtype=int)
        for order in itertools.count(1):
            orders[(powers == 0) & (orders == 0)] = order
            if orders.all():
                break
            powers = table[np.arange(len(table)), powers]
        assert facts.orders == tuple(sorted(set(orders.tolist())))
        assert (facts.size, facts.abelian) == (len(table), bool((table == table.T).all()))
        assert facts.solvable == (name not in ("A5", "S5"))
    with pytest.raises(UserError, match="group must be Z1 to Z999"):
        theory.group_facts("M11")


def test_what_is_allowed_can_be_tracked():
    """Brute force on the words themselves: one unit with signs tracks Z2, two units that turn track Z3."""
    generator = torch.Generator().manual_seed(0)
    parity = tasks.create("group-composition", group="Z2", length=64).sample(32, generator)
    flips = 1 - 2 * parity.inputs[..., 1]
    assert torch.equal((flips.cumprod(0) < 0).long(), parity.targets)
    three = tasks.create("group-composition", group="Z3", length=64).sample(32, generator)
    angle = 2 * np.pi / 3 * (three.inputs @ torch.arange(3.0)).cumsum(0)
    assert torch.equal((angle / (2 * np.pi / 3)).round().long() % 3, three.targets)


def test_bad_inputs():
    with pytest.raises(UserError, match="count must be at least 2 moments, to be compared, got 1"):
        gate(ms.nn.RNN(1, 3), count=1)
    with pytest.raises(UserError, match="needs a state of fixed size, got Transformer, whose state grows"):
        gate(ms.nn.create("transformer", input_size=2, hidden_size=4))
    with pytest.raises(UserError, match="tolerance must be"):
        gate(ms.nn.RNN(1, 3), tolerance=-1)
    with pytest.raises(UserError, match=r"inputs must be of shape \(time, batch, input\), 2 steps or more"):
        gate(ms.nn.RNN(1, 3), inputs=torch.zeros(1, 1, 1))


def test_result_is_repeated_and_drawn():
    layer = ms.nn.create("birnn", input_size=2, hidden_size=4)
    one, two = gate(layer, seed=3), gate(layer, seed=3)
    np.testing.assert_array_equal(one.eigenvalues, two.eigenvalues)
    assert "unit circle" in str(one.plot().to_dict())
    document = one.to_dict()
    assert document["allowed"] == list(EVERY)
    assert gate(ms.nn.create("mingru", input_size=1, hidden_size=3)).to_dict()["excluded"][0]["group"] == "Z2"
