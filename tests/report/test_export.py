"""Figures and tables as files for a paper."""

from __future__ import annotations

import dataclasses
import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from tests.report.sample import HOSTILE, crowded, page

from mnemoscope.core.errors import UserError
from mnemoscope.report import (
    Bars,
    Curves,
    Entry,
    Figure,
    HeatMap,
    Mark,
    Page,
    Plane,
    Ranked,
    Section,
    Series,
    Value,
    export,
)
from mnemoscope.report.palette import looks
from mnemoscope.report.tables import table_csv, table_latex
from mnemoscope.report.vega import paper

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper") / "made" / "here"
    return {file.name: file for file in export(page(), folder)}


def test_every_part_is_there(exported):
    figures = [one.name for section in page().sections for one in section.figures]
    wanted = {f"{name}.{ending}" for name in figures for ending in ("svg", "pdf", "csv")}
    wanted |= {"fisher-numbers.csv", "fisher-numbers.tex", "methods.txt", "references.bib"}
    assert set(exported) == wanted
    assert {file.name for file in exported["methods.txt"].parent.iterdir()} == wanted


def test_figures_are_one_column_wide(exported):
    for name, file in exported.items():
        if name.endswith(".svg"):
            root = ElementTree.fromstring(file.read_bytes())
            assert root.get("width") == "3.35in"
            _, _, width, height = map(float, root.get("viewBox").split())
            assert float(root.get("height").removesuffix("in")) == pytest.approx(3.35 * height / width, rel=1e-3)
            sizes = [float(node.get("font-size").removesuffix("px")) for node in root.iter(f"{SVG}text")]
            assert min(sizes) >= 0.7 * 6.5  # points: readable in print, also a power's
        if name.endswith(".pdf"):
            content = file.read_bytes()
            assert content.startswith(b"%PDF")
            box = re.search(rb"/MediaBox ?\[([^\]]*)\]", content)[1].split()
            assert float(box[2]) == pytest.approx(3.35 * 72)


def test_texts(exported):
    methods = exported["methods.txt"].read_text()
    assert page().methods in methods
    assert "torch: 2.13.0" in methods
    assert "mnemoscope measure spectrum --network nnrnn --hidden 64" in methods
    bib = exported["references.bib"].read_text()
    assert re.findall(r"@\w+\{(\w+),", bib) == ["mnemoscope", "ganguli2008", "kerg2019"]
    table = page().sections[0].tables[0]
    assert exported["fisher-numbers.tex"].read_text() == table_latex(table)
    assert exported["fisher-numbers.csv"].read_text() == table_csv(table)


def test_hostile_names_are_text(tmp_path):
    evil = f"{HOSTILE}\x00\x1b]]>&amp;"
    for file in export(page(evil), tmp_path):
        if file.suffix == ".svg":
            root = ElementTree.fromstring(file.read_bytes())
            assert {node.tag for node in root.iter()} <= {
                f"{SVG}{tag}" for tag in ("svg", "defs", "clipPath", "g", "rect", "line", "path", "text")
            }
            assert "</sc" in "".join(root.itertext())


def entries(count: int = 2) -> list[Entry]:
    return [Entry(key=f"n{k}", label=f"network {k}", role="reference" if k else "subject") for k in range(count)]


def drawn(drawing, count: int = 2) -> ElementTree.Element:
    return ElementTree.fromstring(paper(Figure(title="t", drawing=drawing), entries(count))[0])


def colour(number: int) -> str:
    return looks(entries(number + 1))[number].light


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


def height(node: ElementTree.Element) -> float:
    return float(re.search(r",(-?[\d.]+)", node.get("transform"))[1])


def line_of(root: ElementTree.Element, number: int) -> list[str]:
    """Paths of a network's line, one for each piece between gaps."""
    return [p.get("d") for p in root.iter(f"{SVG}path") if p.get("stroke") == colour(number) and not p.get("fill")]


def test_a_line_has_a_gap_where_a_value_is_missing():
    y = [1.0, 2.0, math.nan, 4.0, 5.0, None, 7.0]
    series = [Series(entry="n0", x=range(7), y=y), Series(entry="n1", x=range(7), y=[1.0] * 7)]
    root = drawn(Curves(series=series, x_title="x", y_title="y"))
    (whole,) = line_of(root, 1)
    assert whole.count("L") == 6
    assert sorted(path.count("L") for path in line_of(root, 0)) == [0, 1, 1]


def test_a_line_is_straight_on_a_logarithmic_axis_and_is_cut_at_its_floor():
    series = [Series(entry=f"n{i}", x=range(40), y=[10.0 ** (-(2 - i) * k) for k in range(40)]) for i in (0, 1)]
    root = drawn(Curves(series=series, x_title="x", y_title="y", log_y=True, decades=12))
    places = [
        [tuple(map(float, part.split(","))) for part in line_of(root, i)[0].replace("M", "L").split("L")[1:]]
        for i in (0, 1)
    ]
    fast, slow = ((p[4][1] - p[0][1]) / (p[4][0] - p[0][0]) for p in places)
    assert fast == pytest.approx(2 * slow, rel=0.01)
    assert max(y for _, y in places[0]) > 500  # far below the plot, whose clip it leaves there
    clipped = [node for node in root.iter(f"{SVG}g") if node.get("clip-path")]
    assert any(path.get("stroke") == colour(0) for node in clipped for path in node.iter(f"{SVG}path"))


def test_a_ranking_is_in_order_and_says_what_is_missing():
    values = [
        Value(entry="n0", value=1.0),
        Value(entry="n1", value=None),
        Value(entry="n2", value=3.04, lower=2.0, upper=4.0),
    ]
    for better, order in (("higher", [2, 0, 1]), ("lower", [0, 2, 1]), (None, [2, 0, 1])):
        root = drawn(Ranked(values=values, title="t", better=better), 3)
        words = texts(root)
        heights = dict(zip(words, map(height, root.iter(f"{SVG}text")), strict=True))
        names = {text: heights[text] for text in words if text.startswith("net")}
        assert sorted(names, key=names.__getitem__) == [f"network {k}" for k in order]
        assert "\u2013" in words
        assert "3.0" in words  # the digits that its interval allows


def test_a_value_far_below_a_logarithmic_axis_is_an_arrow():
    values = [Value(entry="n0", value=1.0), Value(entry="n1", value=1e-144, lower=1e-145, upper=1e-143)]
    root = drawn(Ranked(values=values, title="t", log=True))
    assert len([node for node in root.iter(f"{SVG}path") if node.get("fill") == colour(1)]) == 2  # its name's, an arrow
    words = texts(root)
    assert "\u2212144" in words
    assert "1\u00d710" in words


def test_only_the_subject_has_a_band_and_only_it_widens_the_axis():
    wild = {"lower": [-9e9, -9e9], "upper": [9e9, 9e9]}
    series = [
        Series(entry="n0", x=[1, 2], y=[1, 2], lower=[0.5, 1], upper=[2, 3]),
        Series(entry="n1", x=[1, 2], y=[1, 2], **wild),
    ]
    root = drawn(Curves(series=series, x_title="x", y_title="y"))
    bands = [node.get("fill") for node in root.iter(f"{SVG}path") if node.get("fill-opacity") == "0.16"]
    assert bands == [colour(0)]
    assert "3" in texts(root)


def test_the_plane_keeps_its_shape():
    points = {"n0": [1, 1j, -1, complex(math.nan, 0)], "n1": []}
    drawing = Plane(points=points, title="t", marks=(Mark(kind="circle", value=1.0, label="unit circle"),))
    root = drawn(drawing)
    places = [
        tuple(map(float, re.findall(r"-?[\d.]+", node.get("transform"))))
        for node in root.iter(f"{SVG}path")
        if node.get("fill") == colour(0) and node.get("aria-roledescription") == "circle"
    ]
    assert len(places) == 3
    right, top, left = places
    middle = ((right[0] + left[0]) / 2, right[1])
    assert math.dist(middle, top) == pytest.approx(math.dist(middle, right), abs=0.02)
    assert texts(root).count("unit circle") == 2  # once, with its rim


def test_bars_stand_on_zero_and_matrices_keep_their_order():
    heights = Series(entry="n0", x=range(2), y=[2.0, -1.0], lower=[1.5, -1.5], upper=[2.5, -0.5])
    root = drawn(Bars(groups=["one", "two"], series=[heights], x_title="g", y_title="h"))
    boxes = [node.get("d") for node in root.iter(f"{SVG}path") if node.get("fill") == colour(0)]
    sizes = [abs(float(re.search(r"v(-?[\d.]+)", box)[1])) for box in boxes]
    assert sizes[0] == pytest.approx(2 * sizes[1], rel=1e-3)
    assert {"one", "two", "g", "h"} <= set(texts(root))
    matrix = HeatMap(values=[[1.0, 2.0], [3.0, None]], x_title="column", y_title="row", title="v", y_labels=["a", "b"])
    root = drawn(matrix)
    cells = [node for node in root.iter(f"{SVG}path") if node.get("aria-roledescription") == "rect mark"]
    assert len(cells) == 3
    assert {"a", "b", "0", "1"} <= set(texts(root))


def test_names_of_bars_find_room():
    def bars(groups, *heights):
        series = [Series(entry=f"n{i}", x=range(len(groups)), y=own) for i, own in enumerate(heights)]
        return Bars(groups=groups, series=series, x_title="x", y_title="y")

    alone = bars(["one", "two"], [1.0, None], [None, 2.0])
    assert (alone.abreast(), bars(["one"], [1.0], [2.0]).abreast()) == (1, 2)
    for names, angle in (["ab", *["a long name"] * 5], 32), ([f"a long name {i}" for i in range(6)], 60):
        written = drawn(bars(names, [1.0] * 6))
        assert set(names) <= set(texts(written))  # the first has the least room to its left
        assert sum(f"rotate({360 - angle}" in (node.get("transform") or "") for node in written.iter(f"{SVG}text")) >= 6


EMPTY = [
    Curves(series=[], x_title="x", y_title="y"),
    Curves(series=[Series(entry="n0", x=[0.0], y=[0.0])], x_title="x", y_title="y", log_x=True, log_y=True),
    Curves(series=[Series(entry="n0", x=[3], y=[3])], x_title="x", y_title="y"),
    Curves(series=[Series(entry="n0", x=[1, 2], y=[math.inf, math.nan])], x_title="x", y_title="y", points=True),
    Ranked(values=[], title="t"),
    Ranked(values=[Value(entry="n0", value=-1.0)], title="t", log=True),
    Ranked(values=[Value(entry="n0", value=math.inf), Value(entry="n1", value=0.0)], title="t"),
    Plane(points={}, title="t"),
    Plane(points={"n0": [0]}, title="t"),
    Bars(groups=[], series=[], x_title="x", y_title="y"),
    HeatMap(values=[], x_title="x", y_title="y", title="v"),
    HeatMap(values=[[math.nan, 0.0]], x_title="x", y_title="y", title="v", log=True),
    HeatMap(values=[[0.0]], x_title="x", y_title="y", title="v", diverging=True),
]


@pytest.mark.parametrize("drawing", EMPTY, ids=lambda drawing: type(drawing).__name__)
def test_charts_with_little_in_them_are_drawn(drawing, tmp_path):
    figure = Figure(name="one", title="t", drawing=drawing, alt="a", how="h", command="c")
    made = Page(title="t", subtitle="", entries=entries(), sections=[Section(name="s", title="s", figures=[figure])])
    text = next(file for file in export(made, tmp_path) if file.suffix == ".svg").read_text()
    assert "nan" not in text
    assert "inf" not in re.sub(r"[\d.]in|∞", "", text)


def test_all_networks_of_a_page_without_a_chart(tmp_path):
    made = dataclasses.replace(page(), sections=[])
    assert [file.name for file in export(made, tmp_path)] == ["methods.txt", "references.bib"]


def test_names_of_marks_that_are_close_do_not_cover_each_other(tmp_path):
    export(crowded(), tmp_path)
    root = ElementTree.fromstring((tmp_path / "crowded.svg").read_bytes())
    names = [node for node in root.iter(f"{SVG}text") if "".join(node.itertext()).startswith("limit")]
    heights = sorted({height(node) for node in names})
    assert len(heights) == 4
    assert min(b - a for a, b in pairwise(heights)) >= 6.5


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"the folder '.*file.deeper' cannot be made: Not a directory"):
        export(page(), tmp_path / "file" / "deeper")
    with pytest.raises(UserError, match=r"the folder '.*file' cannot be made: File exists"):
        export(page(), tmp_path / "file")
