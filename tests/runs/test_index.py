"""The index says what the folders say, whatever happens to its file, and whoever else uses it."""

import shutil
import sqlite3
import subprocess
import sys
import warnings

import pytest
import torch

from mnemoscope import runs
from mnemoscope.core.errors import UserError
from mnemoscope.runs import files, indexing
from mnemoscope.runs.query import Filters, select, since, sql

MANY = """
import sys
from mnemoscope import runs
for seed in range(int(sys.argv[2]), int(sys.argv[2]) + 8):
    with runs.open({"task": "copy", "seed": seed}, root=sys.argv[1]) as run:
        run.append({"step": 1, "loss": seed / 7})
        run.finish({"score": seed / 3})
        runs.index(sys.argv[1])
"""


def rows(root):
    """The rows without what only the index itself needs."""
    return [{name: value for name, value in row.items() if name != "signature"} for row in runs.index(root)]


@pytest.fixture
def five(root):
    """Five runs: finished, failed, interrupted, one within another, and a damaged one."""
    with runs.open({"task": "copy", "network": "nnrnn", "seed": 1, "lr": 0.1}) as run:
        for step in range(3):
            run.append({"step": step, "loss": 1.0 / (step + 1), "note": "x"})
        run.checkpoint(3, {"w": torch.ones(3)})
        run.finish({"score": 0.5, "loss": 0.25})
    with runs.open({"task": {"name": "parity", "length": 5}, "network": "rnn", "seed": 2, "lr": 0.2}) as run:
        run.append({"step": 1, "loss": float("nan")})
        run.fail("NaN at step 1")
    with runs.open({"task": "copy", "network": "lstm", "seed": "two"}, kind="capacity") as run:
        run.append({"step": 9, "score": 0.125})
        with runs.open({"task": "copy"}, folder=run.folder / "members" / "level-8") as member:
            member.finish()
    with runs.open({"task": "lost"}, folder=root / "lost") as run:
        pass
    (root / "lost" / "config.json").write_text("{")
    return root


def test_rows(five):
    by_task = {(row["task"], row["parent"]): row for row in runs.index(five)}
    first = by_task["copy", None]
    assert len(by_task) == 4  # two of copy without a parent
    found = {row["id"].partition("/")[0][17:]: row for row in runs.index(five) if "/" not in row["id"]}
    first = found["fit-copy-nnrnn"]
    assert (first["status"], first["seed"], first["step"], first["lines"]) == ("finished", 1, 2, 3)
    assert (first["score"], first["loss"]) == (0.5, 0.25), "the summary's, where it has one"
    second = found["fit-parity-rnn"]
    assert (second["status"], second["reason"], second["loss"]) == ("failed", "NaN at step 1", None)
    third = found["capacity-copy-lstm"]
    assert (third["status"], third["seed"], third["score"]) == ("interrupted", None, 0.125)
    inner = by_task["copy", third["id"]]
    assert inner["id"] == f"{third['id']}/members/level-8"
    (lost,) = (row for row in runs.index(five) if row["id"] == "lost")
    assert (lost["status"], "config.json' is damaged" in lost["reason"]) == ("damaged", True)


def test_the_index_kept_equals_the_index_rebuilt(five):
    kept = rows(five)
    assert runs.rebuild(five) == len(kept) == 5
    assert rows(five) == kept
    for ending in ("", "-wal", "-shm"):
        (five / f"index.sqlite{ending}").unlink(missing_ok=True)
    assert rows(five) == kept


def test_it_follows_the_folders(five):
    before = rows(five)
    gone = five / before[0]["id"]
    shutil.move(gone, five.parent / "aside")
    assert rows(five) == before[1:]
    shutil.move(five.parent / "aside", gone)
    assert rows(five) == before
    with runs.open({"task": "new"}) as run:
        run.append({"step": 4})
        run._log.flush()
        (new,) = (row for row in rows(five) if row["task"] == "new")
        assert (new["status"], new["step"]) == ("running", 4)
    (new,) = (row for row in rows(five) if row["task"] == "new")
    assert new["status"] == "interrupted"


@pytest.mark.parametrize("junk", [b"", b"not a database", b"SQLite format 3\0" + bytes(4000)])
def test_a_damaged_index_is_made_again(five, junk):
    kept = rows(five)
    (five / "index.sqlite").write_bytes(junk)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert rows(five) == kept
    wanted = [True] if junk else []  # an empty file is an empty database
    assert [str(one.message).endswith("is made again from the folders") for one in told] == wanted
    assert rows(five) == kept


def test_a_wrong_number_in_the_index_is_noticed(five):
    kept = rows(five)
    with sqlite3.connect(five / "index.sqlite") as connection:
        connection.execute("UPDATE runs SET score = 0.99 WHERE score = 0.5")
    connection.close()
    with pytest.warns(runs.RecordWarning, match="made again"):
        assert rows(five) == kept


def test_an_index_of_another_version_is_made_again(five):
    kept = rows(five)
    with sqlite3.connect(five / "index.sqlite") as connection:
        connection.execute("PRAGMA user_version = 77")
    connection.close()
    with pytest.warns(runs.RecordWarning, match="another version"):
        assert rows(five) == kept


def test_it_is_a_wal(five):
    runs.index(five)
    connection = sqlite3.connect(five / "index.sqlite")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_several_processes_at_once(root):
    children = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", MANY, str(root), str(8 * number)]) for number in range(3)
    ]
    assert [child.wait(timeout=120) for child in children] == [0, 0, 0]
    found = runs.index(root)
    assert sorted(row["seed"] for row in found) == list(range(24))
    assert all((row["loss"], row["score"]) == (row["seed"] / 7, row["seed"] / 3) for row in found)
    kept = rows(root)
    runs.rebuild(root)
    assert rows(root) == kept


def test_on_a_network_file_system_it_is_in_memory(five, monkeypatch):
    kept = rows(five)
    before = (five / "index.sqlite").stat().st_mtime_ns
    monkeypatch.setattr(files, "_kind", lambda folder: "nfs4")
    with pytest.warns(runs.RecordWarning, match="WAL does not work on a file system of nfs4"):
        assert rows(five) == kept
    with runs.open({"task": "more"}) as run:
        run.finish()
    assert (five / "index.sqlite").stat().st_mtime_ns == before


def test_the_kind_of_a_file_system(tmp_path, monkeypatch):
    class Mount:
        def __init__(self, mountpoint, fstype):
            self.mountpoint, self.fstype = mountpoint, fstype

    mounts = [Mount("/", "ext4"), Mount(str(tmp_path), "ext4"), Mount(str(tmp_path), "nfs"), Mount("/nowhere", "cifs")]
    monkeypatch.setattr("psutil.disk_partitions", lambda **_: mounts)
    assert files.network_file_system(tmp_path / "runs") == "nfs", "the mount that hides the other"
    mounts.append(Mount(str(tmp_path / "runs"), "xfs"))
    assert files.network_file_system(tmp_path / "runs") is None


def test_while_another_process_writes_it_the_index_is_in_memory(five, monkeypatch):
    kept = rows(five)

    def held(lock, patience=0):
        raise indexing.Held("process 77")

    monkeypatch.setattr(indexing.Lock, "acquire", held)
    with pytest.warns(runs.RecordWarning, match="is in memory, .*: the index is held by process 77"):
        assert rows(five) == kept


def test_a_missing_or_empty_root(tmp_path):
    assert runs.index(tmp_path / "nothing") == []
    assert runs.rebuild(tmp_path / "nothing") == 0
    assert not (tmp_path / "nothing").exists()
    assert runs.index(tmp_path) == []


def test_filters(five):
    def tasks(**filters):
        return sorted(row["id"][17:] for row in select(five, Filters(**filters)))

    assert tasks(task="parity") == ["fit-parity-rnn"]
    assert tasks(network="lstm") == ["capacity-copy-lstm"]
    assert tasks(status="failed") == ["fit-parity-rnn"]
    assert tasks(kind="capacity") == ["capacity-copy-lstm"]
    assert tasks(task="copy", nested=False) == ["capacity-copy-lstm", "fit-copy-nnrnn"]
    assert tasks(where="json_extract(spec, '$.lr') > 0.15") == ["fit-parity-rnn"]
    assert tasks(where="score IS NOT NULL -- a comment") == ["capacity-copy-lstm", "fit-copy-nnrnn"]
    assert len(tasks(after="1h")) == 4, "one has no time, since it is damaged"
    assert tasks(after="2100-01-01") == []
    assert tasks(before="1h") == []
    for mistake in ({"status": "done"}, {"kind": "x"}, {"after": "soon"}, {"where": "score >"}, {"where": "a = ?"}):
        with pytest.raises(UserError):
            select(five, Filters(**mistake))


def test_times():
    import datetime

    now = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
    assert since("90m", now) == "2026-03-01T10:30:00.000Z"
    assert since("1d", now) == "2026-02-28T12:00:00.000Z"
    assert since("2026-01-31T00:00:00+01:00") == "2026-01-30T23:00:00.000Z"


def test_sql_only_reads(five, tmp_path):
    names, found = sql(five, "SELECT status, count(*) AS n FROM runs GROUP BY status ORDER BY status")
    assert names == ["status", "n"]
    assert found == [("damaged", 1), ("failed", 1), ("finished", 2), ("interrupted", 1)]
    query = "SELECT name, count(*), min(value) FROM metrics WHERE run LIKE '%nnrnn' GROUP BY name ORDER BY name"
    assert sql(five, query)[1] == [("loss", 3, 1 / 3), ("note", 3, "x"), ("step", 3, 0)]
    kept = rows(five)
    for forbidden in (
        "DELETE FROM runs",
        "UPDATE runs SET score = 1",
        "DROP TABLE runs",
        f"ATTACH '{tmp_path}/new.sqlite' AS other",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA query_only = OFF",
        "VACUUM INTO '/tmp/never'",
        "CREATE TEMP TABLE x (a)",
        "INSERT INTO metrics SELECT * FROM metrics",
    ):
        with pytest.raises(UserError, match="only SELECT is allowed"):
            sql(five, forbidden)
    for wrong in ("SELECT", "SELECT 1; SELECT 2", "SELECT nothing FROM runs", "SELECT load_extension('x')", "\0", "x"):
        with pytest.raises(UserError, match="the query cannot be answered"):
            sql(five, wrong)
    assert sql(five, "") == ([], [])
    assert rows(five) == kept
    assert not (tmp_path / "new.sqlite").exists()
