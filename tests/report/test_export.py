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
from mnemoscope.report import Curves, Entry, Figure, Mark, Page, Plane, Ranked, Section, Series, Value, export
from mnemoscope.report.draw_curves import draw_curves
from mnemoscope.report.draw_plane import draw_plane
from mnemoscope.report.draw_ranked import draw_ranked
from mnemoscope.report.names import named
from mnemoscope.report.tables import table_csv, table_latex

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
            sizes = [float(node.get("font-size")) for node in root.iter(f"{SVG}text")]
            assert min(sizes) >= 6.5  # points: readable in print
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
    assert re.findall(r"@\w+\{(\w+),", bib) == ["ganguli2008", "kerg2019"]
    table = page().sections[0].tables[0]
    assert exported["fisher-numbers.tex"].read_text() == table_latex(table)
    assert exported["fisher-numbers.csv"].read_text() == table_csv(table)


def test_hostile_names_are_text(tmp_path):
    evil = f"{HOSTILE}\x00\x1b]]>&amp;"
    for file in export(page(evil), tmp_path):
        if file.suffix == ".svg":
            root = ElementTree.fromstring(file.read_bytes())
            assert {node.tag for node in root.iter()} <= {
                f"{SVG}{tag}" for tag in ("svg", "rect", "path", "circle", "text", "tspan")
            }
            assert "</sc" in "".join(root.itertext())


def entries(count: int = 2) -> list[Entry]:
    return [Entry(key=f"n{k}", label=f"network {k}", role="reference" if k else "subject") for k in range(count)]


def paths(drawing: Curves) -> list[str]:
    """Paths of the two networks, the subject's last."""
    canvas, height = draw_curves(drawing, named(entries()))
    root = ElementTree.fromstring(canvas.svg(height))
    colours = [named(entries())[key].look.light for key in ("n1", "n0")]
    drawn = [
        [p.get("d") for p in root.iter(f"{SVG}path") if p.get("stroke") == c and p.get("fill") == "none"]
        for c in colours
    ]
    return [found[0] for found in drawn if found]


def test_a_line_has_a_gap_where_a_value_is_missing():
    y = [1.0, 2.0, math.nan, 4.0, 5.0, None, 7.0]
    series = [Series(entry="n0", x=range(7), y=y), Series(entry="n1", x=range(7), y=[1.0] * 7)]
    whole, broken = paths(Curves(series=series, x_title="x", y_title="y"))
    assert (whole.count("M"), whole.count("L")) == (1, 6)
    assert (broken.count("M"), broken.count("L")) == (3, 2)


def test_a_line_ends_at_the_floor_of_a_logarithmic_axis():
    series = [Series(entry=f"n{i}", x=range(40), y=[10.0 ** (-(2 - i) * k) for k in range(40)]) for i in (0, 1)]
    slow, fast = paths(Curves(series=series, x_title="x", y_title="y", log_y=True, decades=12))
    places = [list(map(float, part.split())) for part in fast.replace("M", "L").split("L")[1:]]
    assert max(place[1] for place in places) == pytest.approx(172 - 26, abs=0.02)
    assert len(places) == 8  # 1 to 1e-12, and the floor
    # Straight on a logarithmic axis: twice as steep as the other.
    other = [list(map(float, part.split())) for part in slow.replace("M", "L").split("L")[1:]]
    rise = lambda p: (p[4][1] - p[0][1]) / (p[4][0] - p[0][0])  # noqa: E731
    assert rise(places) == pytest.approx(2 * rise(other), rel=0.01)


def test_a_ranking_is_in_order_and_says_what_is_missing():
    values = [
        Value(entry="n0", value=1.0),
        Value(entry="n1", value=None),
        Value(entry="n2", value=3.0, lower=2.0, upper=4.0),
    ]
    for better, order in (("higher", [2, 0, 1]), ("lower", [0, 2, 1]), (None, [2, 0, 1])):
        canvas, height = draw_ranked(Ranked(values=values, title="t", better=better), named(entries(3)))
        texts = ["".join(node.itertext()) for node in ElementTree.fromstring(canvas.svg(height)).iter(f"{SVG}text")]
        assert [text for text in texts if text.startswith("network")] == [f"network {k}" for k in order]
        assert "\u2013" in texts


def test_a_value_far_below_a_logarithmic_axis_is_an_arrow():
    values = [Value(entry="n0", value=1.0), Value(entry="n1", value=1e-144, lower=1e-145, upper=1e-143)]
    canvas, height = draw_ranked(Ranked(values=values, title="t", log=True), named(entries()))
    root = ElementTree.fromstring(canvas.svg(height))
    arrows = [node for node in root.iter(f"{SVG}path") if node.get("d").endswith("l4-2.5v5Z")]
    assert [node.get("fill") for node in arrows] == [named(entries())["n1"].look.light]
    assert "1\u00d710\u2212144" in ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


def test_only_the_subject_has_a_band_and_only_it_widens_the_axis():
    wild = {"lower": [-9e9, -9e9], "upper": [9e9, 9e9]}
    series = [
        Series(entry="n0", x=[1, 2], y=[1, 2], lower=[0.5, 1], upper=[2, 3]),
        Series(entry="n1", x=[1, 2], y=[1, 2], **wild),
    ]
    canvas, height = draw_curves(Curves(series=series, x_title="x", y_title="y"), named(entries()))
    root = ElementTree.fromstring(canvas.svg(height))
    bands = [node.get("fill") for node in root.iter(f"{SVG}path") if node.get("fill-opacity")]
    assert bands == [named(entries())["n0"].look.light]
    assert "3" in ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


def test_the_plane_keeps_its_shape():
    points = {"n0": [1, 1j, -1, complex(math.nan, 0)], "n1": []}
    drawing = Plane(points=points, title="t", marks=(Mark(kind="circle", value=1.0, label="unit circle"),))
    canvas, height = draw_plane(drawing, named(entries()))
    circles = list(ElementTree.fromstring(canvas.svg(height)).iter(f"{SVG}circle"))
    ring, *dots = (tuple(float(node.get(name)) for name in ("cx", "cy", "r")) for node in circles)
    assert len(dots) == 4  # three points, and the ring of the other network
    for x, y, _ in dots[:3]:
        assert math.hypot(x - ring[0], y - ring[1]) == pytest.approx(ring[2], abs=0.02)


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
    heights = sorted(float(node.get("y")) for node in names)
    assert len(heights) == 4
    assert min(b - a for a, b in pairwise(heights)) >= 6.5


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"the folder '.*file.deeper' cannot be made: Not a directory"):
        export(page(), tmp_path / "file" / "deeper")
    with pytest.raises(UserError, match=r"the folder '.*file' cannot be made: File exists"):
        export(page(), tmp_path / "file")
