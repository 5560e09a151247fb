"""Least Start-End cut of the tensor network of a deep RAC, by maximum flow."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Int64

from mnemoscope.core.errors import choice, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.rac_graph.graph import RACGraph, build_graph, draw
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.separation.inputs import start_set
from mnemoscope.nn.networks.rac import RAC

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["FIGURES", "TensorNetwork", "tensor_network", "tensor_network_figure"]

_UNIT = 2**40  # capacities are whole numbers, so that the flow is exact and the search ends


def min_cut(graph: RACGraph, start: tuple[int, ...]) -> tuple[int, ...]:
    """Return the hyperedges of a least cut, each named by one of its bonds (see `RACGraph.hyperedges`).

    A hyperedge costs the logarithm of its size, and is cut once however many of its tensors leave it: it is split into
    two points with an edge of that capacity between them, and its tensors enter and leave without limit.
    """
    import networkx as nx

    flow = nx.DiGraph()
    edge_of = graph.hyperedges()
    members: dict[int, set[Any]] = defaultdict(set)
    for k, node in enumerate(graph.nodes):
        if node.kind != "delta":  # which is the hyperedge itself
            tensor = k if node.kind != "input" else "start" if node.step - 1 in start else "end"
            for bond in node.bonds:
                members[edge_of[bond]].add(tensor)
    for edge, tensors in members.items():
        flow.add_edge(("in", edge), ("out", edge), capacity=round(_UNIT * log(graph.sizes[edge])))
        for tensor in tensors:
            flow.add_edge(tensor, ("in", edge))
            flow.add_edge(("out", edge), tensor)
    _, (near, _) = nx.minimum_cut(flow, "start", "end")
    return tuple(sorted(edge for edge in members if ("in", edge) in near and ("out", edge) not in near))


FIGURES: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "ziv-2.1": (6, 3, (0, 1, 2)),
    "ziv-A.2": (6, 1, (0, 1, 2)),
    "ziv-A.3a": (4, 2, (0, 1)),
    "ziv-A.3c": (3, 3, (0,)),
    "mps": (6, 1, (0, 1, 2)),
}
"""Ziv's figures: steps, layers, and the steps of the start set; `mps`, the matrix product state, is Figure A.2."""

_DRAWN = 130  # leaves, up to which a drawing can be read


@result
class TensorNetwork(Result):
    """The tensor network of a RAC, counted on the network itself.

    Attributes
    ----------
    leaves
        Inputs of the network, copies counted: C(T+L-1, L).
    copies
        How often each input appears, x_1 first: mc(T-t+1, L-1).
    units
        Start-End units: bonds of layer 1 that join start to end; mc(T/2, L-1) for halves.
    tensors
        Tensors in all: inputs, matrices, delta nodes.
    deltas
        Delta nodes among them, one for every product.
    cut
        The least cut between start and end inputs, in nats: a delta node is one hyperedge and costs log R, the leg of
        an input log M.
    cut_hidden, cut_inputs
        How many hyperedges of size R, and legs of size M, that cut crosses.
    start_leaves, end_leaves
        Copies of inputs on either side.
    start
        The steps, from 0, of the start set.
    input_size, hidden_size, num_layers, horizon
        M, R, L, T.
    graph
        The tensors and their bonds.
    cut_bonds
        The hyperedges of the cut, each by one of its bonds.
    """

    measure: ClassVar[str] = "tensor-network"
    references: ClassVar[tuple[str, ...]] = ("levine2017", "ziv2020")

    leaves: int
    copies: Int64[np.ndarray, " steps"]
    units: int
    tensors: int
    deltas: int
    cut: float
    cut_hidden: int
    cut_inputs: int
    start_leaves: int
    end_leaves: int
    start: tuple[int, ...]
    input_size: int
    hidden_size: int
    num_layers: int
    horizon: int
    graph: RACGraph
    cut_bonds: tuple[int, ...]

    @property
    def rank_bound(self) -> int:
        """R^cut_hidden M^cut_inputs, which the Start-End separation rank never exceeds: exp(cut)."""
        return int(self.hidden_size**self.cut_hidden * self.input_size**self.cut_inputs)

    def __str__(self) -> str:
        parts = f"{self.hidden_size}^{self.cut_hidden}" * bool(self.cut_hidden)
        parts += " x " * bool(self.cut_hidden and self.cut_inputs)
        parts += f"{self.input_size}^{self.cut_inputs}" * bool(self.cut_inputs)
        return (
            f"tensor network of {self.leaves} leaves and {self.units} Start-End unit{'s' * (self.units != 1)}, "
            f"least cut {self.cut:.4g} nats: separation rank at most {parts or 1}"
        )

    def plot(self) -> chart.Chart:
        """Draw the network; beyond 130 leaves, how often each input appears."""
        from mnemoscope.report import chart

        sizes = f"T = {self.horizon}, L = {self.num_layers}, M = {self.input_size}, R = {self.hidden_size}"
        if self.leaves <= _DRAWN:
            return draw(self.graph, self.start, self.cut_bonds, f"Tensor network of a RAC, {sizes}")
        return chart.lines(
            {"copies": (np.arange(1, self.horizon + 1), self.copies)},
            x="input x_t, t (steps)",
            y="copies in the network",
            title=f"{self.leaves} leaves, {sizes}",
            log_y=True,
        )


_COST = Cost(
    time={"N^2": 1e-5},
    memory="N",
    sizes={"N": lambda given: math.comb(given["horizon"] + given.get("num_layers", 1) - 1, given.get("num_layers", 1))},
    letters={"N": "leaves of the network, C(T + L - 1, L)"},
)


@measure("tensor-network", needs=("polynomial",), cost=_COST)
def tensor_network(
    network: RAC | Sequence[int], horizon: int = 6, partition: tuple[int, ...] | None = None
) -> TensorNetwork:
    r"""Return the tensor network of a RAC after some steps: its parts counted, and its least Start-End cut.

    The state of layer l is :math:`h^l_t = \delta(W_H^l h^l_{t-1}, W_I^l h^{l-1}_t)`, where the delta node multiplies
    entry by entry. Each state is used twice, by the next step and by the next layer, and no tensor network copies a
    vector; so each use has its own copy of all that computes it. The cut bounds the separation rank from above: of the
    network whose copies vary independently, hence also where they are equal.

    Parameters
    ----------
    network
        A RAC, or its sizes (M, R, L): input channels, hidden channels, layers.
    horizon
        Steps T.
    partition
        The steps of the start set, from 0; by default the first half.

    Examples
    --------
    >>> found = tensor_network((2, 2, 3), horizon=6)
    >>> found.leaves, found.copies.tolist(), found.units
    (56, [21, 15, 10, 6, 3, 1], 6)
    """
    M, R, L, initial = _sizes(network)
    T = positive_int("horizon", horizon)
    start = start_set(partition, T)
    graph = build_graph(M, R, T, L, initial=initial)
    copies = np.array(graph.copies(), dtype=np.int64)
    cut = min_cut(graph, start)
    legs = {node.bonds[0] for node in graph.nodes if node.kind == "input"}
    inputs = sum(edge in legs for edge in cut)
    first = int(copies[list(start)].sum())
    return TensorNetwork(
        status="exact",
        digits=15,
        assumptions=("no matrix has a rank below its size; where one has, the rank is smaller still",),
        cost="O(C(T+L-1, L)) tensors, and a maximum flow through them",
        leaves=graph.count("input"),
        copies=copies,
        units=len(graph.units(start)),
        tensors=len(graph.nodes),
        deltas=graph.count("delta"),
        cut=(len(cut) - inputs) * log(R) + inputs * log(M),
        cut_hidden=len(cut) - inputs,
        cut_inputs=inputs,
        start_leaves=first,
        end_leaves=int(copies.sum()) - first,
        start=start,
        input_size=M,
        hidden_size=R,
        num_layers=L,
        horizon=T,
        graph=graph,
        cut_bonds=cut,
    )


def tensor_network_figure(name: str, input_size: int = 2, hidden_size: int = 2) -> TensorNetwork:
    """Return the tensor network of one of Ziv's figures: a key of `FIGURES`; sizes are not given there.

    Parameters
    ----------
    name
        ``"ziv-2.1"``, ``"ziv-A.2"`` or ``"mps"``, ``"ziv-A.3a"``, ``"ziv-A.3c"``.
    input_size, hidden_size
        M and R, which decide where the least cut is.

    Examples
    --------
    >>> tensor_network_figure("ziv-A.3a").leaves
    10
    """
    horizon, layers, start = FIGURES[choice("name", name, FIGURES)]
    return tensor_network((input_size, hidden_size, layers), horizon, start)


def _sizes(network: Any) -> tuple[int, int, int, bool]:
    if isinstance(network, RAC):
        network.require_causal("tensor_network")
        return network.input_size, network.hidden_size, network.num_layers, network.learn_initial
    if not isinstance(network, Sequence) or isinstance(network, str) or len(network) != 3:
        raise expected("network", "a RAC, or its sizes (M, R, L)", network)
    M, R, L = (positive_int(name, size) for name, size in zip("MRL", network, strict=True))
    return M, R, L, False
