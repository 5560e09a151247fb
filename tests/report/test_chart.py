"""Charts: labelled axes, colours and dashes that can be told apart, ticks on every axis, files whole or not at all."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.report import chart

CURVES = {"a": ([1, 2, 3], [1.0, 4.0, 9.0]), "b": ([1, 2, 3], [2.0, np.nan, -1.0])}


def encoding(drawn):
    return drawn.to_dict()["encoding"]


def rows(drawn):
    return json.loads(drawn.to_dict()["data"]["values"])


def test_importing_costs_no_altair():
    code = "import mnemoscope.report.chart, mnemoscope.core.result, sys; print('altair' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


def test_lines_have_titles_colours_and_dashes():
    found = encoding(chart.lines(CURVES, x="lag (steps)", y="share (%)", title="Memory", legend="network"))
    assert found["x"]["title"] == "lag (steps)"
    assert found["y"]["title"] == "share (%)"
    assert found["color"]["scale"] == {"domain": ["a", "b"], "range": list(chart.PALETTE[:2])}
    assert found["color"]["legend"]["title"] == "network"
    dashes = found["strokeDash"]["scale"]["range"]
    assert dashes[0] != dashes[1]
    assert chart.lines(CURVES, x="x", y="y", title="Memory").to_dict()["title"] == "Memory"


def test_one_curve_needs_no_legend():
    assert encoding(chart.lines({"a": CURVES["a"]}, x="x", y="y"))["color"]["legend"] is None


def test_what_cannot_be_drawn_is_left_out():
    assert len(rows(chart.lines(CURVES, x="x", y="y"))) == 5
    assert len(rows(chart.lines(CURVES, x="x", y="y", log_y=True))) == 4
    assert len(rows(chart.lines({"a": ([0, 1], [1, 1])}, x="x", y="y", log_x=True))) == 1
    assert len(rows(chart.points({"a": ([0, np.inf], [1, 1])}, x="x", y="y"))) == 1
    assert len(rows(chart.heat_map([[1, np.nan], [0, 2]], x="x", y="y", value="v"))) == 3
    assert len(rows(chart.heat_map([[1, np.nan], [0, 2]], x="x", y="y", value="v", log=True))) == 2


def test_more_curves_than_colours():
    many = {f"curve {i}": ([0, 1], [i, i]) for i in range(20)}
    found = encoding(chart.lines(many, x="x", y="y"))
    assert len(found["color"]["scale"]["range"]) == 20


@given(
    low=st.floats(1e-250, 1e250),
    ratio=st.one_of(st.floats(1.0, 10.0), st.floats(10.0, 1e50)),
)
def test_a_logarithmic_axis_always_has_labels(low, ratio):
    high = low * ratio
    ticks = chart._log_ticks(low, high)
    assert 1 <= len(ticks) <= 8
    assert len(ticks) >= 3 or ratio < 1.0000001
    assert all(low * (1 - 1e-12) <= tick <= high * (1 + 1e-12) for tick in ticks)
    assert ticks == sorted(ticks)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (1e-12, 1.0, [1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0]),
        (128, 1024, [200, 500, 1000]),
        (3, 3000, [10, 100, 1000]),
        (0.5, 4.1, [0.5, 1, 2]),
        (0.54, 4.1, [0.6, 0.8, 1, 1.5, 2, 3, 4]),
        (5, 5, [5]),
    ],
)
def test_ticks_are_round(low, high, ticks):
    assert chart._log_ticks(low, high) == pytest.approx(ticks, rel=1e-12)


def test_the_complex_plane_is_square():
    drawn = chart.points({"z": ([0.5, -2.0], [0.1, 0.0])}, x="Re", y="Im", square=True)
    found = encoding(drawn)
    assert found["x"]["scale"]["domain"] == found["y"]["scale"]["domain"] == pytest.approx([-2.16, 2.16])
    assert drawn.to_dict()["width"] == drawn.to_dict()["height"]


def test_heat_maps():
    found = encoding(chart.heat_map([[1.0, -3.0]], x="lag", y="unit", value="size", x_ticks=["p", "q"], diverging=True))
    assert found["x"]["sort"] == ["p", "q"]
    assert found["color"]["scale"]["domain"] == [-3.0, 3.0]
    assert found["color"]["title"] == "size"
    large = encoding(chart.heat_map(np.ones((50, 50)), x="x", y="y", value="v"))
    assert len(large["x"]["axis"]["values"]) <= 10


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("matrix", [np.full((2, 2), np.nan), np.zeros((2, 2)), np.zeros((0, 0))])
def test_heat_maps_of_nothing(matrix, tmp_path):
    chart.save(chart.heat_map(matrix, x="x", y="y", value="v", diverging=True), tmp_path / "a.svg")


def test_bands_are_shaded_in_the_colours_of_their_curves():
    bands = {"a": ([0.0, 0.5], [1.0, 1.5])}
    drawn = chart.lines({"a": ([1, 2], [0.5, 1.0]), "b": ([1, 2], [3.0, 2.0])}, bands=bands, x="x", y="y").to_dict()
    area, line = drawn["layer"]
    assert area["mark"]["type"] == "area"
    rows = json.loads(area["data"]["values"])
    assert rows == [
        {"x": 1.0, "low": 0.0, "high": 1.0, "name": "a"},
        {"x": 2.0, "low": 0.5, "high": 1.5, "name": "a"},
    ]
    assert area["encoding"]["color"]["scale"] == line["encoding"]["color"]["scale"]
    assert area["encoding"]["x"] == line["encoding"]["x"]
    assert line["encoding"]["color"]["legend"]["symbolOpacity"] == 1  # else as pale as the area


def test_charts_beside_each_other_keep_their_own_colours():
    both = chart.beside(chart.lines(CURVES, x="x", y="y"), chart.points(CURVES, x="x", y="y")).to_dict()
    assert len(both["concat"]) == 2
    assert both["resolve"]["scale"]["color"] == "independent"


@pytest.mark.parametrize(
    ("ending", "begins"),
    [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>"), ("JSON", b"{")],
)
def test_files(tmp_path, ending, begins):
    path = tmp_path / f"chart.{ending}"
    chart.save(chart.lines(CURVES, x="x axis", y="y axis", marks=True), path)
    assert path.read_bytes().startswith(begins)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    if ending == "svg":
        assert ">x axis<" in path.read_text()
    if ending == "html":
        assert "https://cdn" not in path.read_text()[:2000]
    if ending == "JSON":
        assert json.loads(path.read_text())["encoding"]["x"]["title"] == "x axis"


def test_the_data_of_a_file_are_lists(tmp_path):
    one, grid = chart.lines(CURVES, x="x", y="y"), chart.heat_map(np.ones((100, 100)), x="x", y="y", value="v")
    chart.save(one, tmp_path / "one.json")
    chart.save(chart.beside(one, grid), tmp_path / "two.json")
    chart.save(one + one, tmp_path / "layers.json")
    assert len(json.loads((tmp_path / "one.json").read_text())["data"]["values"]) == 5
    two = json.loads((tmp_path / "two.json").read_text())["concat"]
    assert [len(part["data"]["values"]) for part in two] == [5, 10_000]
    assert '"values": "' not in (tmp_path / "layers.json").read_text()


def test_altair_does_not_check_every_number():
    # It takes Altair seconds for twenty thousand rows, and a grid has more.
    drawn = chart.lines({"a": (np.arange(100), np.arange(100))}, x="x", y="y")
    assert isinstance(drawn.to_dict()["data"]["values"], str)


def test_charts_as_notebooks_show_them_look_as_in_files(tmp_path):
    # There the data stay a text, which the browser reads.
    drawn = chart.beside(chart.lines(CURVES, x="x", y="y"), chart.points(CURVES, x="x", y="y"))
    chart.save(drawn, tmp_path / "a.svg")
    shown = vl_convert.vegalite_to_svg(chart._themed(drawn).to_dict())
    assert re.sub(r"clip\d+", "clip", shown) == re.sub(r"clip\d+", "clip", (tmp_path / "a.svg").read_text())


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("chart.gif", "a picture's name must end in .svg, .png, .pdf, .html, .json, got '"),
        ("chart", "a picture's name must end in .svg"),
        ("none/chart.svg", "cannot be written: there is no folder '"),
        ("folder.svg", "cannot be written: it is a folder"),
    ],
)
def test_paths_that_cannot_be_written(tmp_path, path, said):
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(UserError, match=said):
        chart.check_path(tmp_path / path)
    with pytest.raises(UserError, match=said):
        chart.save(chart.lines(CURVES, x="x", y="y"), tmp_path / path)
