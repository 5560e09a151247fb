"""Where runs live and what they are called: nothing in a configuration leads out of the root."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope import runs
from mnemoscope.core.errors import UserError
from mnemoscope.runs.folders import folder_name

HOSTILE = [
    "../../etc/passwd",
    "/absolute",
    "..",
    ".",
    "a\nb",
    "a\x00b",
    "\x1b[31mred",
    "C:\\windows",
    "con",
    "~root",
    "$HOME",
    "-rf",
    "\u00e9\u202e\u01c6\u540d\u524d",
    "x" * 5000,
    "",
    " ",
    "%2e%2e/",
]


@given(st.text() | st.sampled_from(HOSTILE), st.text() | st.sampled_from(HOSTILE))
def test_a_folder_has_a_plain_name(task, network):
    if any("\ud800" <= letter <= "\udfff" for letter in task + network):
        return
    name = folder_name({"task": task, "network": {"name": network}}, "fit")
    assert re.fullmatch(r"[0-9a-f]{16}-fit(-[a-z0-9]+)*", name)
    assert len(name) < 100


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_within_the_root(root, name):
    before = set(root.parent.iterdir())
    with runs.open({"task": name, "network": name}) as run:
        run.append({"step": 1, name or "empty": 1})
        run.finish({name or "empty": name})
    assert run.folder.parent == root
    assert set(root.parent.iterdir()) - before == {root}
    record = runs.load(run.id)
    assert record.spec == {"task": name, "network": name}
    assert record.summary == {name or "empty": name}
    assert runs.index(root)[0]["task"] == name


def test_the_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MNEMOSCOPE_RUNS", raising=False)
    assert runs.root() == tmp_path / "runs"
    monkeypatch.setenv("MNEMOSCOPE_RUNS", "elsewhere")
    assert runs.root() == tmp_path / "elsewhere"
    assert runs.root(tmp_path / "given") == tmp_path / "given"


def test_a_run_is_found_by_a_beginning(root, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    folders = {}
    for name in ("alpha-one", "alpha-two", "beta"):
        with runs.open({"task": name}, folder=root / name) as run:
            folders[name] = run.folder
    with runs.open({"task": "inner"}, folder=root / "beta" / "level-8") as run:
        inner = run.folder
    assert runs.find("alpha-o") == folders["alpha-one"]
    assert runs.find("b") == folders["beta"]
    assert runs.find("b/lev") == inner
    assert runs.find("runs/beta") == folders["beta"]
    assert runs.find(str(inner)) == inner
    with pytest.raises(UserError, match="'alpha' is the beginning of 2 runs: alpha-one, alpha-two"):
        runs.find("alpha")
    with pytest.raises(UserError, match="no run in .* begins with 'gamma'; `mnemoscope runs` lists those there"):
        runs.find("gamma")
    for nothing in ("", "a\0b", "../..", "/"):
        with pytest.raises(UserError):
            runs.find(nothing)


def test_a_whole_name_wins_over_a_beginning(root):
    for name in ("one", "one-two"):
        runs.open({"task": name}, folder=root / name).close()
    assert runs.find("one") == root / "one"


@pytest.mark.parametrize("folder", ["a\0b"])
def test_a_folder_that_cannot_be(root, folder):
    with pytest.raises(UserError, match="NUL"):
        runs.open({"task": "copy"}, folder=folder)
