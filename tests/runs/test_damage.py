"""Files that were cut, altered, lost or exchanged: noticed or harmless, never a wrong number."""

import json
import os
import shutil
import warnings

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemoscope import runs
from mnemoscope.core.errors import UserError

SPEC = {"task": "copy", "network": "nnrnn", "seed": 3}
CHECKPOINTS = {step: torch.full((4,), step / 7, dtype=torch.float64) for step in (10, 20, 30)}
SUMMARY = {"score": 0.75}


def build(folder, *, finish):
    with runs.open(SPEC, folder=folder) as run:
        for step in range(1, 36):
            run.append({"step": step, "loss": 1 / step})
            if step in CHECKPOINTS:
                run.checkpoint(step, {"w": CHECKPOINTS[step]}, {"at": step}, best=step == 10)
        if finish:
            run.finish(SUMMARY)
    return folder


TRUTH = [{"step": step, "loss": 1 / step} for step in range(1, 36)]


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    """A finished and an interrupted run, to be copied and damaged."""
    base = tmp_path_factory.mktemp("templates")
    return {finish: build(base / f"finished-{finish}" / "run", finish=finish) for finish in (True, False)}


@pytest.fixture
def copied(templates, tmp_path):
    """Copy the interrupted run."""
    shutil.copytree(templates[False], tmp_path / "run")
    return tmp_path / "run"


def check_line(error):
    assert "\n" not in str(error)


def check_checkpoint(found):
    assert torch.equal(found.tensors["w"], CHECKPOINTS[found.step])
    assert found.state == {"at": found.step}


def check_reading(folder):
    """Read a damaged run: what comes is a beginning of the truth, and whatever is missing was told."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            record = runs.load(folder)
        except UserError as error:
            check_line(error)
            return
        assert record.spec == SPEC
        assert record.metrics == TRUTH[: len(record.metrics)]
        problems = bool(record.problems)
        assert problems == bool(told)
        if record.status == "finished":
            assert record.summary == SUMMARY
            assert len(record.metrics) == len(TRUTH) or problems
        try:
            found = record.latest()
        except UserError:
            return
        check_checkpoint(found)
        assert found.step == 30 or len(told) > problems


def check_going_on(folder):
    """Go on with a damaged run: its metrics are those up to its checkpoint, or it is refused in one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with runs.open(SPEC, folder=folder) as run:
                found = run.latest()
                check_checkpoint(found)
                if run.finished:
                    assert run.summary == SUMMARY
                    return
                for step in range(found.step + 1, 36):
                    run.append({"step": step, "loss": 1 / step})
                run.finish(SUMMARY)
        except UserError as error:
            check_line(error)
            return
        record = runs.load(folder)
        assert record.metrics == TRUTH


def check_index(base):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (row,) = runs.index(base)
    assert row["id"] == "run"
    if row["status"] in ("finished", "interrupted", "failed"):
        assert row["seed"] == 3
        assert row["network"] == "nnrnn"
        if row["status"] == "finished":
            assert row["score"] == 0.75
        if row["problems"] is None:
            assert row["lines"] >= 30
            assert row["loss"] == TRUTH[row["lines"] - 1]["loss"]


def damage(path, operation, place, bit):
    data = bytearray(path.read_bytes())
    place = place % max(len(data), 1)
    if operation == "cut":
        del data[place:]
    elif operation == "flip" and data:
        data[place] ^= 1 << bit
    elif operation == "zeros":
        data[place:] = bytes(len(data) - place)
    elif operation == "drop":
        del data[place : place + 1 + bit]
    elif operation == "double":
        data[place:place] = data[place : place + 40]
    path.write_bytes(bytes(data))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    finish=st.booleans(),
    which=st.integers(0, 20),
    operation=st.sampled_from(["cut", "flip", "flip", "zeros", "drop", "double"]),
    place=st.integers(0, 10**6),
    bit=st.integers(0, 7),
)
def test_damage_anywhere_is_noticed_or_harmless(templates, tmp_path_factory, finish, which, operation, place, bit):
    base = tmp_path_factory.mktemp("damaged", numbered=True)
    folder = base / "run"
    shutil.copytree(templates[finish], folder)
    runs.index(base)
    files = sorted(path for path in base.rglob("*") if path.is_file() and "lock" not in path.name)
    damage(files[which % len(files)], operation, place, bit)
    check_index(base)
    check_reading(folder)
    check_going_on(folder)
    check_index(base)
    shutil.rmtree(base)


@pytest.mark.slow
@pytest.mark.parametrize("finish", [True, False])
def test_every_byte_of_every_file(templates, tmp_path, finish):
    names = sorted(path.relative_to(templates[finish]) for path in templates[finish].rglob("*") if path.is_file())
    for name in names:
        if name.name == "lock":
            continue
        folder = tmp_path / "run"
        shutil.copytree(templates[finish], folder)
        original = (folder / name).read_bytes()
        for place in range(0, len(original.rstrip()), 1 if len(original) < 1500 else 3):
            for operation in ("flip", "cut"):
                damage(folder / name, operation, place, place % 8)
                check_reading(folder)
                (folder / name).write_bytes(original)
        shutil.rmtree(folder)


def go_on(folder, start):
    with runs.open(SPEC, folder=folder) as run:
        found = run.latest()
        assert found.step == start
        check_checkpoint(found)
        for step in range(start + 1, 36):
            run.append({"step": step, "loss": 1 / step})
            if step == 30:
                run.checkpoint(30, {"w": CHECKPOINTS[30]}, {"at": 30})
        run.finish(SUMMARY)


@pytest.mark.parametrize("ending", ["json", "safetensors"])
@pytest.mark.parametrize("operation", ["cut", "flip", "missing"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(copied, ending, operation):
    path = copied / "checkpoints" / f"step-30.{ending}"
    path.unlink() if operation == "missing" else damage(path, operation, path.stat().st_size // 2, 1)
    with pytest.warns(runs.RecordWarning, match="step-30.*; the checkpoint of step 20 is taken") as told:
        go_on(copied, 20)
    assert len(told) == 1
    assert runs.load(copied).metrics == TRUTH
    check_checkpoint(runs.load(copied).latest())
    aside = list((copied / "checkpoints").glob("damaged-*"))
    assert len(aside) == (1 if operation == "missing" else 2), "what was damaged is kept aside"


def test_a_missing_checkpoint_falls_back_to_the_one_before(copied):
    for path in (copied / "checkpoints").glob("step-30.*"):
        path.unlink()
    with pytest.warns(runs.RecordWarning, match="the checkpoint of step 30 in .* is missing; .* step 20 is taken"):
        assert runs.load(copied).latest().step == 20


def test_when_all_are_damaged_nothing_is_deleted(copied, contents):
    for path in (copied / "checkpoints").glob("*.safetensors"):
        damage(path, "cut", 40, 0)
    before = contents(copied)
    with pytest.raises(runs.Damaged) as caught, runs.open(SPEC, folder=copied) as run:
        run.latest()
    words = str(caught.value)
    assert words.count("it has 40 of") == 3
    assert "nothing was deleted" in words
    assert "\n" not in words
    assert contents(copied) == before
    shutil.rmtree(copied / "checkpoints")
    with (
        pytest.raises(runs.Damaged, match="all are missing; nothing was deleted"),
        runs.open(SPEC, folder=copied) as run,
    ):
        run.latest()
    assert (copied / "metrics.jsonl").read_bytes() == before["metrics.jsonl"]


def test_damaged_metrics_go_back_to_a_checkpoint_before_the_damage(copied):
    path = copied / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[24] = lines[24].replace(b'"loss":0.04', b'"loss":0.05')
    path.write_bytes(b"".join(lines))
    altered = path.read_bytes()
    with pytest.warns(runs.RecordWarning) as told:
        go_on(copied, 20)
    assert str(told[0].message).endswith("; the checkpoint of step 20 is taken")
    assert "is altered at line 25" in str(told[1].message)
    assert (copied / "metrics.damaged-1.jsonl").read_bytes() == altered
    assert runs.load(copied).metrics == TRUTH


@pytest.mark.parametrize("order", ["lost", "swapped", "doubled", "end lost"])
def test_whole_lines_that_moved_are_noticed(templates, tmp_path, order):
    shutil.copytree(templates[True], tmp_path / "run")
    path = tmp_path / "run" / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    changed = {
        "lost": lines[:5] + lines[6:],
        "swapped": [*lines[:5], lines[6], lines[5], *lines[7:]],
        "doubled": [*lines[:5], lines[4], *lines[5:]],
        "end lost": lines[:-1],
    }[order]
    path.write_bytes(b"".join(changed))
    with pytest.warns(runs.RecordWarning, match="altered at line 6|only 34 of 35 lines"):
        record = runs.load(tmp_path / "run")
    assert record.metrics == TRUTH[: 34 if order == "end lost" else 5]


def test_files_of_another_run_are_noticed(templates, tmp_path):
    mine, other = tmp_path / "mine", tmp_path / "other"
    for folder in (mine, other):
        build(folder, finish=False)
    for name in ("step-30.json", "step-30.safetensors"):
        shutil.copy(other / "checkpoints" / name, mine / "checkpoints" / name)
    with pytest.warns(runs.RecordWarning, match="step-30.json' belongs to another run"):
        assert runs.load(mine).latest().step == 20
    for name in ("step-20.json", "step-20.safetensors"):
        (mine / "checkpoints" / name).replace(mine / "checkpoints" / name.replace("20", "30"))
    with pytest.warns(runs.RecordWarning, match="is that of another step, 20"):
        assert runs.load(mine).latest().step == 10
    shutil.copy(other / "metrics.jsonl", mine / "metrics.jsonl")
    with pytest.warns(runs.RecordWarning, match="altered at line 1"):
        assert runs.load(mine).metrics == []


def test_a_newer_version_is_refused_in_one_line(copied, contents):
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | {"format": 2, "new": "thing"}))
    before = contents(copied)
    words = "was written by a newer Mnemoscope: its format is 2, this version reads up to 1; upgrade to open it"
    for use in (lambda: runs.load(copied), lambda: runs.open(SPEC, folder=copied)):
        with pytest.raises(UserError) as caught:
            use()
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
    (row,) = runs.index(copied.parent)
    assert (row["status"], words in row["reason"]) == ("newer", True)
    assert contents(copied) == before


def test_a_newer_checkpoint_is_refused_in_one_line(copied, contents):
    path = copied / "checkpoints" / "step-30.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 9}))
    with pytest.raises(UserError, match="its format is 9"), runs.open(SPEC, folder=copied) as run:
        run.latest()


def test_a_lost_configuration_is_not_made_up(copied, contents):
    (copied / "config.json").unlink()
    before = contents(copied)
    with pytest.raises(runs.Damaged, match="is missing, while the rest of the run is there"):
        runs.open(SPEC, folder=copied)
    with pytest.raises(UserError, match="holds no run"):
        runs.load(copied)
    assert contents(copied) == before


def test_links_are_not_followed(copied, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("keep")
    metrics, checkpoints = copied / "metrics.jsonl", copied / "checkpoints"
    shutil.move(metrics, outside / "metrics")
    metrics.symlink_to(outside / "metrics")
    kept = (outside / "metrics").read_bytes()
    with pytest.raises(UserError, match="is a symbolic link, which is not followed"):
        runs.open(SPEC, folder=copied)
    assert (outside / "metrics").read_bytes() == kept
    metrics.unlink()
    shutil.copy(outside / "metrics", metrics)
    shutil.move(checkpoints, outside / "checkpoints")
    checkpoints.symlink_to(outside / "checkpoints")
    before = sorted(path.name for path in (outside / "checkpoints").iterdir())
    with pytest.raises(UserError, match="all are missing"), runs.open(SPEC, folder=copied) as run:
        run.latest()
    with pytest.raises(UserError, match="is a symbolic link"), runs.open(SPEC, folder=copied) as run:
        run.checkpoint(40, {})
    assert sorted(path.name for path in (outside / "checkpoints").iterdir()) == before


def test_a_run_that_is_a_link_is_neither_listed_nor_opened(root, tmp_path, templates):
    root.mkdir()
    shutil.copytree(templates[False], tmp_path / "elsewhere")
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    assert runs.index(root) == []
    name = runs.folders.folder_name(SPEC, "fit")
    (root / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="must be a folder, and is a symbolic link"):
        runs.open(SPEC)


def test_a_pipe_in_place_of_a_file_does_not_hang(copied):
    (copied / "status.json").unlink()
    os.mkfifo(copied / "status.json")
    with pytest.warns(runs.RecordWarning, match="it is not a regular file"):
        assert runs.load(copied).status == "interrupted"


def test_nothing_is_ever_unpickled(copied, monkeypatch):
    path = copied / "checkpoints" / "step-30.safetensors"
    torch.save({"w": torch.ones(1)}, path)
    monkeypatch.setattr("pickle.Unpickler", None)
    with pytest.warns(runs.RecordWarning, match="step-30.safetensors' is damaged"):
        assert runs.load(copied).latest().step == 20
