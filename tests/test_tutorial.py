"""The tutorial: every command as it stands there, at small sizes, and what it says about files and numbers."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tasks.fake_data import write_data
from typer.testing import CliRunner

import mnemoscope as ms
from mnemoscope.cli.main import app
from mnemoscope.profiles.section import all_sections
from mnemoscope.profiles.sections import trained

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "tutorial.md").read_text()

SMALL = {
    "compare": "--quick --seeds 2",
    "capacity": "--iterations 2 --seeds 2 --grid 2 --train batch_size=2",
    "train": "--iterations 4 --train batch_size=2 --train validate_every=2 --task-set verify=false",
    "profile": "--seeds 2",
}
"""Options that come after those of the tutorial, by command: the last of two counts."""


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the tutorial's file in it, where nothing else is."""
    folder = tmp_path_factory.mktemp("day")
    (folder / "my_cell.py").write_text(blocks("python")[0])
    write_data(folder / "data")
    return folder


@pytest.fixture
def here(place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setenv("MNEMOSCOPE_DATA", str(place / "data"))
    monkeypatch.delenv("MNEMOSCOPE_RUNS", raising=False)
    few = [each for each in all_sections() if each.name in ("card", "capacity", "gradients", "trained")]
    monkeypatch.setattr("mnemoscope.profiles.runner.all_sections", lambda: few)
    monkeypatch.setattr(trained, "_LEAST", 2)
    monkeypatch.setattr(trained, "_TRIED", (1, 2))
    monkeypatch.setattr(trained, "_PER_MINUTE", 0)
    monkeypatch.setattr(trained, "TASKS", trained.TASKS[:1])
    monkeypatch.setattr(trained, "_TRAINING", {"lr": 0.01, "batch_size": 2, "test_size": 2, "validation_size": 2})
    return place


def small(line):
    """Return a command's words, with fewer parameters and minutes and the small options."""
    few = "1000" if " shakespeare " in line else "60"  # the embedding alone is a hundred numbers wide
    words = shlex.split(line.replace("4000", few).replace("--minutes 10", "--minutes 1"))
    return [*words[1:], *SMALL.get(words[1], "").split()]


def test_commands(here):
    """One test, since each goes on with what those before it have left."""
    for line in COMMANDS:
        if line.startswith("mnemoscope "):
            done = CliRunner().invoke(app, small(line), prog_name="mnemoscope")
            assert done.exit_code == 0, f"{line}\n{done.output}"
    table = (here / "paper" / "comparison.tex").read_text()
    assert "measure & OrthGate & lstm & gru & nnrnn" in table
    assert (here / "delays.svg").exists()


def test_the_test_plugin(here):
    (line,) = [line for line in COMMANDS if line.startswith("pytest ")]
    few = ("-q", "-p", "no:cacheprovider", "-k", "check_reading or check_step")
    done = subprocess.run([sys.executable, "-m", *shlex.split(line), *few], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_python(here, capsys):
    source = blocks("python")[1].replace("4000", "60").replace("parameters=", "quick=True, seeds=2, parameters=")
    exec(source, {})
    assert "clearly better and worse than OrthGate" in capsys.readouterr().out
    for name in ("comparison.tex", "comparison.csv", "methods.txt", "references.bib"):
        assert f"`{name}`" in TEXT
        assert (here / "paper" / name).exists()


def test_what_it_says_of_claims_is_so():
    claim = {claim.name: claim for claim in ms.theory.claims()}["kerg-delay-line-total"]
    assert (claim.status, claim.severity) == ("false", "wrong constant")


def test_it_is_linked_first_and_read_in_ten_minutes():
    first = re.search(r"\]\((docs/\w+\.md)", (ROOT / "README.md").read_text())
    assert first[1] == "docs/tutorial.md"
    assert len(TEXT.split()) < 2000  # at 200 words a minute
    for target in re.findall(r"\]\((?!http)([^)#]+)", TEXT):
        assert (ROOT / "docs" / target).exists(), target
