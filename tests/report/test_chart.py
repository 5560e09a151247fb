"""Charts: labelled axes, colours and dashes that can be told apart, ticks on every axis, files whole or not at all."""

import json
import subprocess
import sys

import numpy as np
import pytest

from mnemoscope.core.errors import UserError
from mnemoscope.report import chart
from mnemoscope.report.vega import unpacked

CURVES = {"a": ([1, 2, 3], [1.0, 4.0, 9.0]), "b": ([1, 2, 3], [2.0, np.nan, -1.0])}


def layers(drawn, kind):
    """Layers of one kind of mark, their data as rows."""
    spec = unpacked(drawn.to_dict())
    (single,) = spec.get("datasets", {"": None}).values()  # to which Altair moves the data of a single layer
    return [
        {**one, "rows": one["data"]["values"] if "data" in one else single}
        for one in spec["layer"]
        if one["mark"]["type"] == kind
    ]


def texts(drawn):
    return {row["text"] for layer in layers(drawn, "text") for row in layer["rows"]}


def test_importing_costs_no_altair():
    code = "import mnemoscope.report.chart, mnemoscope.core.result, sys; print('altair' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


def test_lines_have_titles_names_colours_and_dashes():
    drawn = chart.lines(CURVES, x="lag (steps)", y="share (%)", title="Memory")
    assert {"lag (steps)", "share (%)", "a", "b"} <= texts(drawn)
    first, second = (layer["mark"] for layer in layers(drawn, "line"))
    assert {first["stroke"], second["stroke"]} == set(chart.PALETTE[:2])
    assert ("strokeDash" in first) != ("strokeDash" in second)
    assert drawn.to_dict()["title"]["text"] == "Memory"


def test_one_curve_needs_no_name():
    assert "a" not in texts(chart.lines({"a": CURVES["a"]}, x="x", y="y"))


@pytest.mark.parametrize(("settings", "counts"), [({}, [2, 3]), ({"log_y": True}, [1, 3])])
def test_what_cannot_be_drawn_is_left_out(settings, counts):
    drawn = chart.lines(CURVES, x="x", y="y", **settings)
    assert sorted(len(layer["rows"]) for layer in layers(drawn, "line")) == counts


def test_more_curves_than_colours():
    many = {f"curve {i}": ([0, 1], [i, i]) for i in range(20)}
    looks = [json.dumps(layer["mark"], sort_keys=True) for layer in layers(chart.lines(many, x="x", y="y"), "line")]
    assert len(set(looks)) == 20


def test_heat_maps():
    drawn = chart.heat_map([[1.0, -3.0]], x="lag", y="unit", value="size", x_ticks=["p", "q"], diverging=True)
    (cells,) = layers(drawn, "rect")
    assert [row["column"] for row in cells["rows"]] == ["p", "q"]
    assert cells["encoding"]["color"]["scale"]["domain"] == [-3.0, 3.0]
    assert cells["encoding"]["color"]["legend"]["title"] == "size"
    (large,) = layers(chart.heat_map(np.ones((50, 50)), x="x", y="y", value="v"), "rect")
    assert len(large["encoding"]["x"]["axis"]["values"]) <= 10
    (few,) = layers(chart.heat_map([[1, np.nan], [0, 2]], x="x", y="y", value="v", log=True), "rect")
    assert len(few["rows"]) == 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("matrix", [np.full((2, 2), np.nan), np.zeros((2, 2)), np.zeros((0, 0))])
def test_heat_maps_of_nothing(matrix, tmp_path):
    chart.save(chart.heat_map(matrix, x="x", y="y", value="v", diverging=True), tmp_path / "a.svg")


def test_bands_are_shaded_in_the_colours_of_their_curves():
    bands = {"a": ([0.0, 0.5], [1.0, 1.5])}
    drawn = chart.lines({"a": ([1, 2], [0.5, 1.0]), "b": ([1, 2], [3.0, 2.0])}, bands=bands, x="x", y="y")
    (area,) = layers(drawn, "area")
    assert [(row["x"], row["lower"], row["upper"]) for row in area["rows"]] == [(1.0, 0.0, 1.0), (2.0, 0.5, 1.5)]
    assert area["mark"]["fill"] == chart.PALETTE[0]


def test_charts_beside_each_other_keep_their_own_colours():
    one = chart.heat_map([[1.0]], x="x", y="y", value="v")
    both = chart.beside(chart.lines(CURVES, x="x", y="y"), one).to_dict()
    assert len(both["concat"]) == 2
    assert both["resolve"]["scale"]["color"] == "independent"


@pytest.mark.parametrize(
    ("ending", "begins"),
    [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>"), ("JSON", b"{")],
)
def test_files(tmp_path, ending, begins):
    path = tmp_path / f"chart.{ending}"
    chart.save(chart.lines(CURVES, x="x axis", y="y axis", points=True), path)
    assert path.read_bytes().startswith(begins)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    if ending == "svg":
        assert ">x axis<" in path.read_text()
    if ending == "html":
        assert "https://cdn" not in path.read_text()[:2000]
    if ending == "JSON":
        assert "x axis" in path.read_text()


def test_the_data_of_a_file_are_lists(tmp_path):
    one, grid = chart.lines(CURVES, x="x", y="y"), chart.heat_map(np.ones((100, 100)), x="x", y="y", value="v")
    chart.save(chart.beside(one, grid), tmp_path / "two.json")
    assert '"values": "' not in (tmp_path / "two.json").read_text()
    (matrix,) = json.loads((tmp_path / "two.json").read_text())["datasets"].values()
    assert len(matrix) == 10_000


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


def test_a_picture_is_the_same_whatever_was_drawn_before(tmp_path):
    drawn = chart.lines({"one": ([0, 1, 2], [1.0, 2.0, 3.0])}, x="x", y="y", title="t")
    for name in ("first", "second"):
        chart.save(drawn, tmp_path / f"{name}.svg")
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()
