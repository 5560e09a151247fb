"""The least cut of a tensor network between start and end inputs, by maximum flow."""

from __future__ import annotations

from collections import defaultdict
from math import log
from typing import Any

from mnemoscope.measures.rac_graph.graph import RACGraph

__all__ = ["min_cut"]

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
