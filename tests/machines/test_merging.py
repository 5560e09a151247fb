"""Merging: the same run is one run, the further one stays, what differs or is missing is listed."""

import io
import zipfile

import pytest
from tests.machines.small import do_shard, small_study

from mnemoscope import runs
from mnemoscope.core.errors import UserError
from mnemoscope.machines.merging import merge
from mnemoscope.runs.packing import ENDING, pack, unpack

SPEC = {"task": "copy", "network": "rnn", "seed": 1}


def recorded(root, spec=SPEC, steps=3, summary=None, name=None):
    """Record a run of some steps; finished when it has a summary."""
    folder = None if name is None else root / name
    with runs.open(spec, root=root, folder=folder) as run:
        for step in range(steps):
            run.append({"step": step, "loss": 1.0 / (step + 1)})
        run.checkpoint(steps, {})
        if summary is not None:
            run.finish(summary)
    return run.folder


def test_two_ordinary_folders(tmp_path, contents):
    for seed, side in enumerate("ab"):
        recorded(tmp_path / side, SPEC | {"seed": seed}, summary={"score": seed})
    before = contents(tmp_path / "a")
    merged = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
    assert len(merged.added) == 2
    assert {row["score"] for row in runs.index(tmp_path / "both")} == {0.0, 1.0}
    assert contents(tmp_path / "a") == before
    again = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
    assert (len(again.kept), again.added, again.replaced) == (2, [], [])
    assert not [path for path in (tmp_path / "both").iterdir() if path.name.endswith(".tmp")]


@pytest.mark.parametrize(
    ("here", "there", "which"),
    [
        ((3, None), (5, None), "replaced"),
        ((5, None), (3, None), "kept"),
        ((3, None), (3, {"score": 1.0}), "replaced"),
        ((3, {"score": 1.0}), (9, None), "kept"),
        ((3, {"score": 1.0, "seconds": 3}), (3, {"score": 1.0, "seconds": 4}), "kept"),
        ((3, {"score": float("nan")}), (3, {"score": float("nan")}), "kept"),
        ((3, {"score": 1.0}), (3, {"score": 1.0 + 2**-52}), "differing"),
    ],
)
def test_which_of_two_stays(tmp_path, here, there, which):
    mine, other = (recorded(tmp_path / s, steps=n, summary=e) for s, (n, e) in zip("ab", (here, there), strict=True))
    merged = merge([tmp_path / "b"], tmp_path / "a")
    assert getattr(merged, which) == [mine.name]
    kept = runs.load(mine)
    wanted = runs.load(other) if which == "replaced" else None
    assert len(kept.metrics) == (here[0] if wanted is None else there[0])
    assert kept.status == (wanted.status if wanted else "interrupted" if here[1] is None else "finished")
    assert not kept.problems


def test_two_runs_of_one_name(tmp_path):
    recorded(tmp_path / "a", name="mine", summary={})
    recorded(tmp_path / "b", SPEC | {"seed": 7}, name="mine", summary={})
    assert merge([tmp_path / "b"], tmp_path / "a").differing == ["mine"]
    assert runs.load(tmp_path / "a" / "mine").spec["seed"] == 1


def test_a_run_that_is_being_written_stays_where_it_is(tmp_path):
    with runs.open(SPEC, root=tmp_path / "a") as run:
        assert merge([tmp_path / "a"], tmp_path / "both").busy == [run.folder.name]
    name = recorded(tmp_path / "b", steps=9, summary={}).name
    with runs.open(SPEC, root=tmp_path / "a"):
        assert merge([tmp_path / "b"], tmp_path / "a").busy == [name]
    assert merge([tmp_path / "b"], tmp_path / "a").replaced == [name]


def test_missing_and_overlapping_shards_are_listed(tmp_path):
    study = small_study(6, iterations=2)
    for text, side in (("1/4", "a"), ("2/4", "a"), ("1/4", "b"), ("1/2", "b")):
        do_shard(study, text, tmp_path / side)
    with pytest.raises(UserError) as error:
        merge([tmp_path / "a"], tmp_path / "both")
    wanted = "small at smoke scale lacks 3/4 (1 of 1 runs, not begun), 4/4 (1 of 1 runs, not begun)"
    assert str(error.value) == f"shards are missing: {wanted}; to merge what is there, give --partial"
    assert not (tmp_path / "both").exists()
    assert merge([tmp_path / "a"], tmp_path / "both", partial=True).missing == [wanted]
    found = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "both", partial=True)
    assert found.missing == ["small at smoke scale lacks 4/4 (1 of 1 runs, not begun)"]
    assert len(found.overlapping) == 3  # 1/4 twice, and 1/2 with each of them
    assert sum(line.startswith("small 1/4 and small 1/4 in ") for line in found.overlapping) == 1
    assert all(line.endswith(" have 2 runs in common") for line in found.overlapping)
    do_shard(study, "2/2", tmp_path / "b")
    assert merge([tmp_path / "a", tmp_path / "b"], tmp_path / "both").missing == []


def test_a_shard_that_was_killed_lacks_runs(tmp_path):
    study = small_study(4, iterations=2)
    do_shard(study, "1/1", tmp_path / "a")
    name = f"study-{study.plan('smoke')[2].key}"
    (tmp_path / "a" / f"{name}{ENDING}").unlink()
    with pytest.raises(UserError, match=r"lacks 1/1 \(1 of 4 runs\)"):
        merge([tmp_path / "a"], tmp_path / "both")


@pytest.mark.parametrize(
    ("sources", "words"),
    [(["nowhere"], "there is no folder"), (["empty"], "holds neither runs nor shards"), (["runs"], "runs itself")],
)
def test_what_cannot_be_merged(tmp_path, sources, words):
    for name in ("empty", "runs"):
        (tmp_path / name).mkdir()
    with pytest.raises(UserError, match=words):
        merge([tmp_path / one for one in sources], tmp_path / "runs")


def test_packed_and_unpacked_a_run_is_the_same(tmp_path, contents):
    folder = recorded(tmp_path / "a", summary={"score": 1.0})
    data = pack(folder)
    assert data == pack(folder)
    unpack(data, tmp_path / "copy", "x")
    assert contents(tmp_path / "copy") == contents(folder)


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "C:\\evil", ".hidden", "a//b", "a/" * 20 + "b"])
def test_a_packed_run_with_names_that_lead_elsewhere_is_refused(tmp_path, name):
    out = io.BytesIO(pack(recorded(tmp_path / "a", summary={})))
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr(zipfile.ZipInfo(name), b"x")
    with pytest.raises(runs.Damaged, match="it holds a file named"):
        unpack(out.getvalue(), tmp_path / "new", "x")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("how", ["cut", "altered", "text", "empty", "without"])
def test_a_damaged_packed_run_is_one_line(tmp_path, how):
    folder = recorded(tmp_path / "a", summary={"score": 0.123456})
    data = pack(folder)
    if how == "without":
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("status.json", b"{}")
        data = out.getvalue()
    data = {
        "cut": data[: len(data) // 2],
        "altered": data.replace(b"0.123456", b"0.123457"),
        "text": b"nothing",
        "empty": b"",
    }.get(how, data)
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / f"study-x{ENDING}").write_bytes(data)
    with pytest.raises(runs.Damaged, match="run its shard again") as error:
        merge([tmp_path / "shards"], tmp_path / "both")
    assert "\n" not in str(error.value)
    assert not list((tmp_path / "both").iterdir())


def test_a_full_disk_leaves_nothing_half_done(tmp_path, monkeypatch):
    import errno
    import os

    recorded(tmp_path / "a", summary={})
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / f"study-x{ENDING}").write_bytes(pack(next((tmp_path / "a").glob("*-fit-*"))))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(UserError, match="the disk is full"):
            merge([tmp_path / "shards"], tmp_path / "both")
    assert not list((tmp_path / "both").iterdir())
    assert len(merge([tmp_path / "shards"], tmp_path / "both").added) == 1
