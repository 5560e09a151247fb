"""Graph of the tensor network of a deep RAC: tensors, the bonds between them, and its drawing."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemoscope.core.memory import require
from mnemoscope.theory.formulas.rac_graph import network_leaves, network_tensors

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["KINDS", "Node", "RACGraph", "build_graph", "draw"]

KINDS = ("input", "initial", "W_I", "W_H", "delta", "W_O")
"""The kinds of tensors; ``initial`` is a learned state before the first input."""

_BYTES = 8000  # of a tensor with its bonds, in the graph and in the flow network of its cut


class Node(NamedTuple):
    """A tensor of the network.

    Attributes
    ----------
    kind
        One of `KINDS`.
    layer
        From 1; 0 for inputs, L for W_O.
    step
        From 1: of the input x_t, or of the state h_t that the tensor helps to compute.
    bonds
        The indices of the tensor, in the order of its axes.
    x, y
        Where it is drawn: leaves from left to right, layers from the bottom up.
    """

    kind: str
    layer: int
    step: int
    bonds: tuple[int, ...]
    x: float
    y: float


@dataclass(frozen=True)
class RACGraph:
    """The tensor network of a RAC.

    Attributes
    ----------
    M, R, L, T
        Input channels, hidden channels, layers, steps.
    nodes
        The tensors.
    sizes
        Of the bonds, M or R; every bond belongs to exactly two tensors.
    """

    M: int
    R: int
    L: int
    T: int
    nodes: tuple[Node, ...]
    sizes: tuple[int, ...]

    def count(self, kind: str) -> int:
        """Return how many tensors are of a kind."""
        return sum(node.kind == kind for node in self.nodes)

    def copies(self) -> tuple[int, ...]:
        """Return how many leaves each input has, for x_1, .., x_T."""
        found = Counter(node.step for node in self.nodes if node.kind == "input")
        return tuple(found[t] for t in range(1, self.T + 1))

    def units(self, start: tuple[int, ...]) -> tuple[int, ...]:
        """Return the tensors W_H of layer 1 that join start to end: their numbers in `nodes`."""
        return tuple(
            k
            for k, node in enumerate(self.nodes)
            if node.kind == "W_H" and node.layer == 1 and (node.step - 1 in start) != (node.step - 2 in start)
        )

    def hyperedges(self) -> tuple[int, ...]:
        """Return the hyperedge of each bond: the three legs of a delta node are one."""
        found = list(range(len(self.sizes)))

        def root(bond: int) -> int:
            while found[bond] != bond:
                found[bond] = found[found[bond]]
                bond = found[bond]
            return bond

        for node in self.nodes:
            if node.kind == "delta":
                for bond in node.bonds:
                    found[root(bond)] = root(node.bonds[-1])
        return tuple(root(bond) for bond in range(len(found)))


def build_graph(M: int, R: int, T: int, L: int, *, initial: bool = False) -> RACGraph:
    """Return the tensor network of a RAC after T steps; `initial`: with a vector for the state before the first."""
    leaves = network_leaves(T, L)
    require(
        f"a tensor network of {leaves} leaves (T={T}, L={L})",
        _BYTES * sum(network_tensors(T, L).values()),
        "mnemoscope.theory counts its parts and cuts it at any size without building it",
    )
    builder = _Builder(M, R, initial)
    top = builder.state(L, T)
    builder.add("W_O", L, T, (top,), builder.leaves, L + 0.5)
    return RACGraph(M, R, L, T, tuple(builder.nodes), tuple(builder.sizes))


class _Builder:
    """Adds tensors; a state is drawn above the last leaf of what computes it."""

    def __init__(self, M: int, R: int, initial: bool) -> None:
        self.M, self.R, self.initial = M, R, initial
        self.nodes: list[Node] = []
        self.sizes: list[int] = []
        self.leaves = 0

    def bond(self, size: int) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def add(self, kind: str, layer: int, step: int, bonds: tuple[int, ...], x: float, y: float) -> None:
        self.nodes.append(Node(kind, layer, step, bonds, x, y))

    def state(self, layer: int, step: int) -> int:
        """Add everything that computes h of a layer after a step, and return the bond on which it leaves."""
        if layer == 0:
            return self.input(step)
        h, at = None, 0.0
        for t in range(1, step + 1):
            below = self.state(layer - 1, t)
            entering = self.bond(self.R)
            self.add("W_I", layer, t, (entering, below), self.leaves, layer - 0.5)
            carried = self.carried(layer, t, h, (at + self.leaves) / 2)
            h = entering if carried is None else self.product(layer, t, carried, entering)
            at = self.leaves
        assert h is not None
        return h

    def input(self, step: int) -> int:
        self.leaves += 1
        bond = self.bond(self.M)
        self.add("input", 0, step, (bond,), self.leaves, 0)
        return bond

    def carried(self, layer: int, step: int, h: int | None, middle: float) -> int | None:
        """Add what brings the past to the product, and return its bond; at the first step there may be none."""
        if h is None and not self.initial:
            return None
        bond = self.bond(self.R)
        if h is None:
            self.add("initial", layer, step, (bond,), self.leaves - 0.5, layer)
        else:
            self.add("W_H", layer, step, (bond, h), middle, layer)
        return bond

    def product(self, layer: int, step: int, carried: int, entering: int) -> int:
        out = self.bond(self.R)
        self.add("delta", layer, step, (carried, entering, out), self.leaves, layer)
        return out


_START, _END, _UNIT, _CUT = "#E69F00", "#56B4E9", "#D55E00", "#000000"
_LAYERS = ("#0072B2", "#009E73", "#CC79A7", "#999933", "#882255", "#44AA99")
_SHAPES = {"input": "square", "initial": "diamond", "W_I": "circle", "W_H": "circle", "delta": "triangle-up"}
_NAMES = {"input": "input x_t", "initial": "initial state", "W_I": "matrix", "W_H": "matrix", "delta": "delta"}
_STEP, _LAYER = 22, 76  # pixels between leaves, and between layers


def draw(graph: RACGraph, start: tuple[int, ...], cut: tuple[int, ...], title: str) -> chart.Chart:
    """Draw the network: colours for start, end and layers, thick bonds for Start-End units, rings for the cut."""
    import altair as alt

    from mnemoscope.report import chart

    make: Any = alt
    x = make.X("x:Q", axis=None, scale=make.Scale(domain=[0.3, graph.count("input") + 0.7], nice=False))
    y = make.Y("y:Q", title="layer", axis=_axis(graph.L), scale=make.Scale(domain=[-0.4, graph.L + 0.8], nice=False))
    units = graph.units(start)
    bonds = [row for bond, pair in _pairs(graph).items() for row in _route(bond, *(graph.nodes[k] for k in pair))]
    red = {bond for k in units for bond in graph.nodes[k].bonds}
    layers = [
        _rules(make, [row for row in bonds if row["bond"] not in red], x, y, "#8a8a8a", 1.2),
        _rules(make, [row for row in bonds if row["bond"] in red], x, y, _UNIT, 7),
        _tensors(make, graph, start, x, y),
        _labels(make, graph, x, y),
        make.Chart(chart.table(_rings(graph, cut, bonds)))
        .mark_point(shape="circle", size=190, filled=False, stroke=_CUT, strokeWidth=2, opacity=1)
        .encode(x=x, y=y),
    ]
    note = f"thick: {_number(len(units), 'Start-End unit')}; black rings: {_number(len(cut), 'bond')} of a least cut"
    width = max(340, _STEP * graph.count("input") + 20)
    drawn = chart.styled(make.layer(*layers), width=width, height=int(_LAYER * (graph.L + 1.2)))
    return drawn.properties(title=make.TitleParams(title, subtitle=note, subtitleFontSize=11))


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _axis(layers: int) -> Any:
    import altair as alt

    return alt.Axis(values=list(range(1, layers + 1)), grid=False, format="d", ticks=False, domain=False)


def _pairs(graph: RACGraph) -> dict[int, list[int]]:
    """Return the two tensors of every bond."""
    found: dict[int, list[int]] = defaultdict(list)
    for k, node in enumerate(graph.nodes):
        for bond in node.bonds:
            found[bond].append(k)
    return found


def _route(bond: int, first: Node, last: Node) -> list[dict[str, float]]:
    """Return a bond as lines along the axes: up from the lower tensor, then across."""
    low, high = sorted((first, last), key=lambda node: node.y)
    places = [(low.x, low.y), (low.x, high.y), (high.x, high.y)]
    return [{"bond": bond, "x": a[0], "y": a[1], "x2": b[0], "y2": b[1]} for a, b in pairwise(places) if a != b]


def _rings(graph: RACGraph, cut: tuple[int, ...], bonds: list[dict[str, float]]) -> list[dict[str, float]]:
    """Return where a cut is marked: on the bond that is cut, or on the delta node that is."""
    edges = graph.hyperedges()
    deltas = {edges[node.bonds[0]]: node for node in graph.nodes if node.kind == "delta"}
    middle = {row["bond"]: ((row["x"] + row["x2"]) / 2, (row["y"] + row["y2"]) / 2) for row in reversed(bonds)}
    places = [(deltas[edge].x, deltas[edge].y) if edge in deltas else middle[edge] for edge in cut]
    return [{"x": x, "y": y} for x, y in places]


def _rules(make: Any, rows: list[dict[str, float]], x: Any, y: Any, colour: str, width: float) -> Any:
    from mnemoscope.report import chart

    return (
        make.Chart(chart.table(rows))
        .mark_rule(color=colour, strokeWidth=width, strokeCap="round")
        .encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
    )


def _tensors(make: Any, graph: RACGraph, start: tuple[int, ...], x: Any, y: Any) -> Any:
    from mnemoscope.report import chart

    rows = [
        {
            "x": node.x,
            "y": node.y,
            "part": _part(node, start),
            "kind": _NAMES.get(node.kind, "matrix"),
            "tensor": f"{node.kind}, layer {node.layer}, step {node.step}",
            "size": {"input": 260, "delta": 110}.get(node.kind, 40),
        }
        for node in graph.nodes
    ]
    parts = ["start input", "end input", *(f"layer {layer}" for layer in range(1, graph.L + 1))]
    colours = [_START, _END, *(_LAYERS[k % len(_LAYERS)] for k in range(graph.L))]
    kinds = list(dict.fromkeys(_NAMES[kind] for kind in _NAMES if kind != "initial" or graph.count(kind)))
    shapes = {_NAMES[kind]: shape for kind, shape in _SHAPES.items()}
    return (
        make.Chart(chart.table(rows))
        .mark_point(filled=True, opacity=1, stroke="white", strokeWidth=0.8)
        .encode(
            x=x,
            y=y,
            size=make.Size("size:Q", scale=None),
            color=make.Color(
                "part:N", sort=parts, scale=make.Scale(domain=parts, range=colours), legend=_legend(make, 110)
            ),
            shape=make.Shape(
                "kind:N", sort=kinds, scale=make.Scale(domain=kinds, range=[shapes[k] for k in kinds]),
                legend=_legend(make, 90),
            ),
            tooltip=[make.Tooltip("tensor:N")],
        )
    )  # fmt: skip


def _legend(make: Any, size: int) -> Any:
    return make.Legend(title=None, symbolSize=size, symbolStrokeWidth=0)


def _part(node: Node, start: tuple[int, ...]) -> str:
    if node.kind != "input":
        return f"layer {node.layer}"
    return "start input" if node.step - 1 in start else "end input"


def _labels(make: Any, graph: RACGraph, x: Any, y: Any) -> Any:
    from mnemoscope.report import chart

    rows = [
        {"x": node.x, "y": node.y, "text": str(node.step)}
        if node.kind == "input"
        else {"x": node.x, "y": node.y + 0.2, "text": "y"}
        for node in graph.nodes
        if node.kind in ("input", "W_O")
    ]
    return make.Chart(chart.table(rows)).mark_text(fontSize=12, color="#111").encode(x=x, y=y, text="text:N")
