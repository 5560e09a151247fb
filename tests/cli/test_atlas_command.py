"""The commands ``atlas show`` and ``atlas build``, in this process."""

import dataclasses
import json

import pytest
import typer
from typer.testing import CliRunner

from mnemoscope.cli.atlas import app
from mnemoscope.cli.terminal import Commands
from mnemoscope.profiles import atlas
from mnemoscope.profiles.atlas.file import SHIPPED


@pytest.fixture
def call():
    """Call ``mnemoscope atlas ..``; the result has exit_code, stdout, stderr."""
    whole = typer.Typer(cls=Commands, add_completion=False, pretty_exceptions_enable=False)
    whole.add_typer(app, name="atlas")

    @whole.callback()
    def main() -> None:
        """Stand for the program."""

    def run(*arguments, columns=None):
        env = {"COLUMNS": None if columns is None else str(columns)}
        return CliRunner().invoke(whole, ["atlas", *map(str, arguments)], env=env, prog_name="mnemoscope")

    return run


def mistake(done):
    assert done.exit_code == 2, done.stdout
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("error: ").removesuffix("\n")


def test_show_has_a_line_for_every_row(call):
    done = call("show", "--budget", 1024)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert all(title in lines[0] for title in ("linear", "Fisher total", "half-life", "gradient rate", "multiply-adds"))
    assert sum(line.lstrip().startswith("1,024") for line in lines) == len(atlas.REFERENCES)
    assert "embedding" in done.stdout
    assert "Again: mnemoscope atlas build" in lines[-1]


def test_show_has_intervals_where_there_is_room(call):
    assert " to " in call("show", "gru", "--budget", 1024).stdout.splitlines()[1]
    narrow = call("show", "gru", "--budget", 1024, columns=100).stdout.partition("Networks have")[0]
    assert " to " not in narrow
    assert "…" not in narrow


def test_show_as_json_is_the_rows(call):
    done = call("show", "lstm", "gru", "--quick", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["file"] == str(SHIPPED)
    assert {row["label"] for row in document["rows"]} == {"lstm", "gru"}
    assert {row["budget"] for row in document["rows"]} == set(atlas.BUDGETS)
    assert all(row["settings"]["quick"] for row in document["rows"])


def test_build_measures_and_keeps(call, tmp_path, monkeypatch):
    (example,) = [row for row in atlas.load(SHIPPED).at(1024, True) if row.label == "gru"]
    monkeypatch.setattr(
        "mnemoscope.profiles.atlas.builder._measured", lambda job: dataclasses.replace(example, budget=job.budget)
    )
    monkeypatch.setattr("mnemoscope.profiles.atlas.builder._lacking", lambda row: ())
    path = tmp_path / "mine.json"
    done = call("build", "gru", "--budget", 1024, "--which", "quick", "--out", path)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == f"{path}: 1 rows, 1 of them measured now\n"
    assert done.stderr == "gru at 1,024 parameters, quick: measuring\n"
    again = call("build", "gru", "--budget", 1024, "--which", "quick", "--out", path, "--json")
    assert json.loads(again.stdout) == {"file": str(path), "measured": 0, "rows": 1}
    assert again.stderr == ""
    shown = call("show", "--file", path, "--quick")
    assert "gru" in shown.stdout


def test_a_build_that_goes_on_leaves_the_file_of_one_in_one_go(call, tmp_path, monkeypatch):
    (example,) = [row for row in atlas.load(SHIPPED).at(1024, True) if row.label == "gru"]
    monkeypatch.setattr(
        "mnemoscope.profiles.atlas.builder._measured", lambda job: dataclasses.replace(example, budget=job.budget)
    )
    monkeypatch.setattr("mnemoscope.profiles.atlas.builder._lacking", lambda row: ())
    path = tmp_path / "mine.json"
    arguments = ("build", "gru", "--budget", 1024, "--which", "quick", "--out", path, "--json")
    assert json.loads(call(*arguments).stdout) == {"file": str(path), "measured": 1, "rows": 1}
    whole = path.read_bytes()
    assert json.loads(call(*arguments).stdout) == {"file": str(path), "measured": 0, "rows": 1}
    assert path.read_bytes() == whole


def test_mistakes_are_one_line(call, tmp_path):
    assert mistake(call("show", "lstn")) == "the atlas has no 'lstn'; did you mean 'lstm'?"
    assert mistake(call("show", "--budget", 7)) == "--budget must be one of 1024, 4096, 16384, got 7"
    assert "there is no atlas at" in mistake(call("show", "--file", tmp_path / "none.json"))
    (tmp_path / "bad.json").write_text("{")
    assert "cannot be used: Expecting property name" in mistake(call("show", "--file", tmp_path / "bad.json"))
    assert "--which must be 'full' or 'quick' or 'both'" in mistake(call("build", "--which", "quik"))
    assert "there is no folder" in mistake(call("build", "gru", "--out", tmp_path / "no" / "atlas.json"))
    assert "a budget must be a positive integer, got 0" in mistake(call("build", "gru", "--budget", 0))
    assert "did you mean 'gru'" in mistake(call("build", "gro"))
