"""A drawing of the tensor network of a RAC: leaves from left to right, layers from the bottom up, no lines crossing."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

from mnemoscope.measures.rac_graph.graph import Node, RACGraph
from mnemoscope.report import chart

__all__ = ["draw"]

_START, _END, _UNIT, _CUT = "#E69F00", "#56B4E9", "#D55E00", "#000000"
_LAYERS = ("#0072B2", "#009E73", "#CC79A7", "#999933", "#882255", "#44AA99")
_SHAPES = {"input": "square", "initial": "diamond", "W_I": "circle", "W_H": "circle", "delta": "triangle-up"}
_NAMES = {"input": "input x_t", "initial": "initial state", "W_I": "matrix", "W_H": "matrix", "delta": "delta"}
_STEP, _LAYER = 22, 76  # pixels between leaves, and between layers


def draw(graph: RACGraph, start: tuple[int, ...], cut: tuple[int, ...], title: str) -> chart.Chart:
    """Draw the network: colours for start, end and layers, thick bonds for Start-End units, rings for the cut."""
    import altair as alt

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
    return (
        make.Chart(chart.table(rows))
        .mark_rule(color=colour, strokeWidth=width, strokeCap="round")
        .encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
    )


def _tensors(make: Any, graph: RACGraph, start: tuple[int, ...], x: Any, y: Any) -> Any:
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
    rows = [
        {"x": node.x, "y": node.y, "text": str(node.step)}
        if node.kind == "input"
        else {"x": node.x, "y": node.y + 0.2, "text": "y"}
        for node in graph.nodes
        if node.kind in ("input", "W_O")
    ]
    return make.Chart(chart.table(rows)).mark_text(fontSize=12, color="#111").encode(x=x, y=y, text="text:N")
