"""The commands tasks and task show."""

import json
import subprocess
import sys

import pytest
from tests.tasks.every_task import FEW
from tests.tasks.fake_data import write_data

import mnemoscope as ms

NAMES = ms.tasks.names()


def test_tasks_lists_all_with_one_row_each_in_a_pipe(call, monkeypatch):
    monkeypatch.delenv("MNEMOSCOPE_DATA", raising=False)
    lines = call("tasks").stdout.splitlines()
    assert lines[0].split() == ["name", "harder", "by", "baseline", "which", "is", "score", "data", "reference"]
    rows = {line.split()[0]: line for line in lines[1 : len(NAMES) + 1]}
    assert list(rows) == NAMES
    assert "delay" in rows["copy"]
    assert "0.09452" in rows["copy"]
    assert "10 ln 8 / (delay + 20)" in rows["copy"]
    assert "Kerg et al. 2019" in rows["copy"]
    assert f"{len(NAMES)} tasks" in call("tasks").stdout


@pytest.mark.parametrize("columns", [60, 80, 100, 150])
def test_nothing_is_cut_in_a_narrow_terminal(call, columns):
    text = call("tasks", columns=columns).stdout
    assert "…" not in text
    assert all(len(line.rstrip()) <= max(columns, 80) for line in text.splitlines()[:-3])
    assert all(name in text for name in NAMES)


def test_tasks_as_json(call_json, monkeypatch):
    monkeypatch.delenv("MNEMOSCOPE_DATA", raising=False)
    found = {one["name"]: one for one in call_json("tasks")["tasks"]}
    assert list(found) == NAMES
    copying = found["copying"]
    assert copying["difficulty"] == "delay"
    assert copying["axes"] == ["delay", "symbols", "alphabet"]
    assert copying["settings"] == {"delay": 200, "symbols": 10, "alphabet": 8}
    assert copying["baseline"] == pytest.approx(ms.tasks.create("copying").baseline)
    assert found["ptb"]["baseline"] is None
    assert found["ptb"]["dataset"] == "ptb"
    assert found["smnist"]["baseline"] == pytest.approx(2.302585)


def test_show_prints_the_example(call):
    text = call("task", "show", "copy", "--set", "delay=20", "--seed", "3").stdout
    lines = text.splitlines()
    assert lines[0] == "copy"
    assert "settings   delay = 20" in lines
    assert "size       40 steps, 10 inputs, 9 classes" in lines
    assert any(line.startswith("baseline   0.5199") for line in lines)
    inputs, targets = (
        next(line for line in lines if line.startswith(name)).split()[1:] for name in ("input", "target")
    )
    assert inputs[:10] == targets[-10:]
    assert "▸" in inputs
    assert "⋯" in inputs
    assert lines[-1] == "· blank, ▸ cue, • counts, ⋯ equal steps, how many in brackets"
    assert call("task", "show", "copy", "--set", "delay=20", "--seed", "3").stdout == text
    assert call("task", "show", "copy", "--set", "delay=20", "--seed", "4").stdout != text


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("columns", [40, 100])
def test_every_task_can_be_shown(call, tmp_path, name, columns):
    settings = ["--data", write_data(tmp_path / "data")] if ms.tasks.get(name).dataset else []
    settings += ["--set", "verify=false"] if settings and ms.tasks.get(name).kind != "relational" else []
    done = call("task", "show", name, *settings, columns=columns)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == name
    # After the facts of the task, whose lines are never folded.
    picture = lines[next(place for place, line in enumerate(lines) if line.startswith("reference")) + 2 : -1]
    if ms.tasks.get(name).dataset != "mnist":
        assert all(len(line) <= columns for line in picture)


def test_show_as_json(call_json):
    found = call_json("task", "show", "copying", "--set", "delay=2", "--set", "symbols=2", "--seed", "1")
    example = found["example"]
    assert example["inputs"][:2] == example["targets"][-2:]
    assert example["inputs"][2:] == [8, 8, 9, 8]
    assert example["mask"] == [True] * 6
    assert example["scored"] == [False] * 4 + [True] * 2
    assert example["length"] == 6
    assert (found["name"], found["seed"], found["steps"]) == ("copying", 1, 6)


def test_a_task_of_text_shows_its_characters(call, call_json, tmp_path):
    data = write_data(tmp_path / "data")
    options = ("task", "show", "ptb", "--set", "length=9", "--set", "verify=false", "--data", data)
    found = call_json(*options)
    assert len(found["example"]["inputs"]) == 9
    line = next(line for line in call(*options).stdout.splitlines() if line.startswith("input"))
    assert len(line.split()[1:]) == 9


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_show_draws(call, tmp_path, ending):
    path = tmp_path / f"picture.{ending}"
    done = call("task", "show", "dyck", "--set", "length=12", "--plot", path)
    assert f"picture    {path}" in done.stdout
    assert path.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("show", "copi"), "there is no task named 'copi'; did you mean 'copy'?"),
        (("show", "copy", "--set", "delay"), "--set must be NAME=VALUE, as in delay=20, got 'delay'"),
        (("show", "copy", "--set", "dely=3"), "the task copy has no setting 'dely'; did you mean 'delay'?"),
        (("show", "copy", "--set", "delay=x"), "delay must be a positive integer, got 'x'"),
        (("show", "copy", "--set", "delay=1,2"), "delay must be a positive integer, got (1, 2)"),
        (("show", "copy", "--seed", "-1"), "--seed must be a whole number from 0 to 2^63 - 1, got -1"),
        (
            ("show", "copy", "--data", "/"),
            "the task copy reads no data; --data is for mnist, pmnist, smnist, shakespeare and ptb",
        ),
        (("show", "smnist", "--data", "/nowhere"), "the data folder must be a folder that exists, got '/nowhere'"),
        (
            ("show", "copy", "--plot", "picture.gif"),
            "a picture's name must end in .svg, .png, .pdf, .html, .json, got 'picture.gif'",
        ),
    ],
)
def test_mistakes_are_one_line(mistake, arguments, line):
    assert mistake("task", *arguments) == line


def test_missing_files_are_one_line(mistake, tmp_path):
    line = mistake("task", "show", "pmnist", "--data", tmp_path)
    assert line.startswith(f"there is no train-images-idx3-ubyte in {str(tmp_path)!r}; get MNIST from https://")


def test_several_tests_are_given_with_commas(call_json):
    found = call_json("task", "show", "transfer-copy", "--set", "tests=5,7")
    assert found["settings"] == {"delay": 100, "tests": [5, 7]}


def test_help_imports_no_torch():
    program = """
import sys
from mnemoscope.cli.main import app
for words in (["task", "--help"], ["task", "show", "--help"], ["tasks", "--help"], ["data", "--help"]):
    sys.argv = ["mnemoscope", *words]
    try:
        app()
    except SystemExit as left:
        assert left.code == 0, words
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_task_alone_is_its_help(call):
    done = call("task")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "show" in done.stdout


def test_json_is_all_that_is_printed(call):
    assert json.loads(call("tasks", "--json").stdout)["tasks"]
