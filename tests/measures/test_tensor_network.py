"""The tensor network of a RAC: counts, cuts and contraction, each against something that does not share its code."""

import itertools
import json
import math
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.measures.rac_graph.contraction import contract_rac, to_quimb
from mnemoscope.measures.rac_graph.cut import FIGURES, tensor_network, tensor_network_figure
from mnemoscope.measures.rac_graph.graph import build_graph
from mnemoscope.measures.separation.rank import separation_rank
from mnemoscope.nn import RAC
from mnemoscope.report.chart import save
from mnemoscope.theory import (
    input_copies,
    network_leaves,
    network_min_cut,
    network_tensors,
    start_end_units,
)

SIZES = [(1, 1), (5, 1), (1, 4), (4, 2), (3, 3), (6, 3), (5, 4)]


def rac(M, R, L, seed=0, **options):
    return RAC(M, R, num_layers=L, dtype=torch.float64, generator=torch.Generator().manual_seed(seed), **options)


def own_number(weights, x, unit):
    """The recurrence itself, in whatever numbers the weights are."""
    layers = sum(name.startswith("weight_ih") for name in weights)
    state = [1] * layers
    for value in x:
        for k in range(layers):
            value = state[k] * (weights[f"weight_ih_l{k}"] @ value)
            state[k] = weights[f"weight_hh_l{k}"] @ value
    return (weights["weight_out"] @ value if "weight_out" in weights else value)[unit]


def integer_weights(M, R, L, rng, dtype):
    draw = lambda *shape: rng.integers(-9, 10, shape).astype(dtype)  # noqa: E731
    weights = {f"weight_ih_l{k}": draw(R, R if k else M) for k in range(L)}
    return weights | {f"weight_hh_l{k}": draw(R, R) for k in range(L)} | {"weight_out": draw(2, R)}


def mismatched():
    weights = integer_weights(2, 3, 2, np.random.default_rng(0), np.int64)
    return weights | {"weight_ih_l1": np.ones((3, 2))}


def leaf_steps(layer, step):
    """Which inputs a state reads, copies counted, from the recurrence."""
    if layer == 0:
        return Counter([step])
    past = leaf_steps(layer, step - 1) if step > 1 else Counter()
    return past + leaf_steps(layer - 1, step)


@pytest.mark.parametrize(("T", "L"), SIZES)
def test_counts_on_the_network_are_those_of_theory(T, L):
    graph = build_graph(2, 3, T, L)
    assert graph.copies() == input_copies(T, L) == tuple(leaf_steps(L, T)[t] for t in range(1, T + 1))
    assert graph.count("input") == network_leaves(T, L) == math.comb(T + L - 1, L)
    counted = Counter(node.kind for node in graph.nodes)
    assert {kind: counted[kind] for kind in network_tensors(T, L)} == network_tensors(T, L)
    ends = Counter(bond for node in graph.nodes for bond in node.bonds)
    assert set(ends.values()) == {2}
    assert len(ends) == len(graph.sizes)
    assert len(graph.nodes) == len(graph.sizes) + 1  # a tree


@pytest.mark.parametrize(("T", "L"), [(2, 1), (4, 2), (6, 3), (8, 2), (6, 4)])
def test_start_end_units_are_multisets(T, L):
    chains = sum(1 for _ in itertools.combinations_with_replacement(range(T // 2), L - 1))
    assert tensor_network((2, 2, L), T).units == start_end_units(T, L) == chains


def test_no_two_tensors_are_drawn_at_one_place():
    graph = build_graph(2, 2, 6, 3, initial=True)
    assert len({(node.x, node.y) for node in graph.nodes}) == len(graph.nodes)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_flow_and_recursion_find_the_same_cut(data):
    M, R, L, T = (data.draw(st.integers(low, high)) for low, high in ((1, 5), (1, 5), (1, 3), (2, 5)))
    start = tuple(sorted(data.draw(st.sets(st.integers(0, T - 1), min_size=1, max_size=T - 1))))
    found = tensor_network((M, R, L), T, start)
    hidden, inputs = network_min_cut(M, R, T, L, start)
    assert found.rank_bound == R**hidden * M**inputs
    assert found.cut == pytest.approx(math.log(found.rank_bound), abs=1e-12)
    assert found.units == start_end_units(T, L, start)
    assert found.start_leaves + found.end_leaves == found.leaves


@pytest.mark.parametrize(("M", "R", "L"), [(2, 3, 1), (3, 2, 2), (2, 2, 2)])
def test_least_cut_is_least_of_all_assignments(M, R, L):
    """Every way to put the matrices on two sides, tried."""
    T, start = 3 if L == 2 else 4, (0,)
    graph = build_graph(M, R, T, L)
    edge_of = graph.hyperedges()
    tensors = [node for node in graph.nodes if node.kind != "delta"]
    free = [k for k, node in enumerate(tensors) if node.kind != "input"]
    edges = [[k for k, node in enumerate(tensors) if e in {edge_of[b] for b in node.bonds}] for e in set(edge_of)]
    sizes = [graph.sizes[e] for e in set(edge_of)]
    sides = np.zeros((2 ** len(free), len(tensors)), dtype=bool)
    sides[:, [k for k, n in enumerate(tensors) if n.kind == "input" and n.step - 1 in start]] = True
    sides[:, free] = (np.arange(2 ** len(free))[:, None] >> np.arange(len(free))) & 1
    split = [sides[:, e].any(1) & ~sides[:, e].all(1) for e in edges]
    costs = sum(np.log(size) * cut for size, cut in zip(sizes, split, strict=True))
    assert tensor_network((M, R, L), T, start).cut == pytest.approx(costs.min(), abs=1e-12)


@pytest.mark.parametrize(("M", "R", "T", "L"), [(2, 3, 4, 1), (3, 9, 4, 1), (2, 2, 4, 2), (3, 2, 4, 2), (2, 2, 4, 3)])
def test_the_rank_never_exceeds_the_cut(M, R, T, L):
    network = rac(M, R, L, output_size=1)
    bound = tensor_network(network, T).rank_bound
    rank = separation_rank(network, T, templates=6).rank
    assert rank <= bound
    if L == 1:
        assert rank == bound == min(R, M ** (T // 2))


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name, tmp_path):
    found = tensor_network_figure(name, 3, 2)
    horizon, layers, start = FIGURES[name]
    assert (found.horizon, found.num_layers, found.start) == (horizon, layers, start)
    assert found.leaves == math.comb(horizon + layers - 1, layers)
    for ending in ("svg", "png"):
        save(found.plot(), tmp_path / f"network.{ending}")
    svg = (tmp_path / "network.svg").read_text()
    assert f"thick: {found.units} Start-End unit" in svg
    assert (tmp_path / "network.png").read_bytes()[:4] == b"\x89PNG"
    spec = found.plot().to_dict()
    marks = [json.loads(layer["data"]["values"]) for layer in spec["layer"]]
    assert [len(marks[k]) for k in (2, 3, 4)] == [found.tensors, found.leaves + 1, len(found.cut_bonds)]


def test_many_leaves_are_drawn_as_a_curve():
    found = tensor_network((2, 1, 4), 8)
    assert found.leaves > 130
    assert "line" in {layer["mark"]["type"] for layer in found.plot().to_dict()["layer"]}


def test_it_prints_and_exports():
    found = tensor_network(rac(2, 3, 2), 4)
    assert str(found) == (
        "tensor network of 10 leaves and 2 Start-End units, least cut 2.079 nats: separation rank at most 2^3"
    )
    assert json.loads(json.dumps(found.to_dict()))["graph"]["T"] == 4


@pytest.mark.parametrize(("T", "L"), SIZES)
@pytest.mark.parametrize("options", [{}, {"output_size": 2}, {"output_size": 2, "learn_initial": True}])
def test_contraction_is_the_networks_own_number(T, L, options):
    pytest.importorskip("quimb")
    network = rac(3, 2, L, **options)
    rng = torch.Generator().manual_seed(1)
    for parameter in network.parameters():  # of size 1, so that 126 factors do not underflow
        parameter.data = torch.randn(parameter.shape, generator=rng, dtype=torch.float64).sign() + 0.3
    x = torch.randn(T, 3, generator=rng, dtype=torch.float64)
    own = network(x[:, None])[0][-1, 0]
    for unit in (0, 1):
        assert float(contract_rac(network, x, unit)) == pytest.approx(own[unit].item(), rel=1e-9)


@pytest.mark.parametrize(("T", "L"), [(4, 1), (4, 2), (3, 3), (6, 3)])
def test_contraction_of_whole_numbers_is_exact(T, L):
    pytest.importorskip("quimb")
    rng = np.random.default_rng(T + L)
    weights = integer_weights(2, 3, L, rng, object)
    x = rng.integers(-9, 10, (T, 2)).astype(object)
    found = contract_rac(weights, x, 1)
    assert int(found) == own_number(weights, x, 1) != 0
    if L == 3:
        assert abs(int(found)) > 2**63


def test_contraction_of_fractions_and_int64_is_exact():
    pytest.importorskip("quimb")
    rng = np.random.default_rng(3)
    weights = integer_weights(2, 2, 2, rng, np.int64)
    x = rng.integers(1, 4, (3, 2))
    assert int(contract_rac(weights, x)) == own_number(weights, x, 0)
    thirds = np.array([[Fraction(int(v), 3) for v in row] for row in x], dtype=object)
    assert contract_rac(weights, thirds) == own_number(weights, thirds, 0) == Fraction(own_number(weights, x, 0), 3**6)


def test_contraction_by_hand():
    pytest.importorskip("quimb")
    weights = {"weight_ih_l0": [[1, 2], [3, 4]], "weight_hh_l0": [[0, 1], [1, 1]]}
    # h_1 = (3, 7), W_H h_1 = (7, 10), W_I x_2 = (2, 6)
    assert [contract_rac(weights, [[1, 1], [2, 0]], unit) for unit in (0, 1)] == [14, 60]


def test_quimb_network_has_every_tensor():
    pytest.importorskip("quimb")
    weights = {name: value.detach().numpy() for name, value in rac(2, 3, 2).named_parameters()}
    graph = build_graph(2, 3, 4, 2)
    found = to_quimb(graph, weights, np.ones((4, 2)))
    assert found.num_tensors == len(graph.nodes)
    assert len(found.select("delta").tensors) == graph.count("delta")


def test_without_quimb_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "quimb.tensor", None)
    with pytest.raises(UserError, match=r"needs quimb: pip install 'mnemoscope\[tensor-networks\]'"):
        contract_rac(rac(2, 2, 1), np.ones((2, 2)))
    assert tensor_network((2, 2, 2), 4).units == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tensor_network((2, 2, 2), 5), "horizon must be even.*got 5"),
        (lambda: tensor_network((2, 2, 2), 0), "horizon must be a positive integer, got 0"),
        (lambda: tensor_network((2, 0, 2), 4), "R must be a positive integer, got 0"),
        (lambda: tensor_network((2, 2), 4), r"network must be a RAC, or its sizes \(M, R, L\)"),
        (lambda: tensor_network(torch.nn.LSTM(2, 2), 4), "network must be a RAC"),
        (lambda: tensor_network((2, 2, 2), 4, (0, 7)), "partition must be"),
        (lambda: tensor_network((2, 2, 9), 40), "leaves .* needs .* of memory"),
        (lambda: tensor_network(RAC(2, 2, bidirectional=True), 4), "tensor_network"),
        (lambda: tensor_network_figure("ziv-A.3b"), "did you mean 'ziv-A.3"),
        (lambda: contract_rac(rac(2, 2, 1), np.ones((3, 4))), r"inputs must be of shape \(T, 2\)"),
        (lambda: contract_rac(rac(2, 2, 1), [[1.0, math.nan]]), "inputs must be finite"),
        (lambda: contract_rac({"weight": 1}, np.ones((3, 2))), "network must be a RAC, or its weights"),
        (
            lambda: contract_rac({"weight_ih_l0": np.ones((2, 2))}, np.ones((3, 2))),
            r"weight_hh_l0 .* \(2, 2\), got none",
        ),
        (
            lambda: contract_rac(mismatched(), np.ones((3, 2))),
            r"weight_ih_l1 must be of shape \(3, 3\), got shape \(3, 2\)",
        ),
        (lambda: start_end_units(5, 2), "T must be even"),
        (lambda: network_leaves(0, 2), "T must be a positive integer"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(UserError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_bad_unit_and_nan_weights():
    pytest.importorskip("quimb")
    with pytest.raises(UserError, match="unit must be an output from 0 to 1, got 2"):
        contract_rac(rac(2, 2, 1), np.ones((2, 2)), unit=2)
    network = rac(2, 2, 1)
    network.weight_hh_l0.data[0, 0] = math.nan
    with pytest.raises(UserError, match="weight_hh_l0 must be finite"):
        contract_rac(network, np.ones((2, 2)))
