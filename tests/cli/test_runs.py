"""The command runs: what it lists, shows, compares, exports and removes, and how it answers mistakes."""

import csv
import io
import json
import subprocess
import sys
import textwrap

import pytest
import torch
from typer.testing import CliRunner

from mnemoscope import runs
from mnemoscope.cli.main import app
from mnemoscope.cli.runs import cleaning as gc_command
from mnemoscope.cli.runs.show import _aligned
from mnemoscope.core.errors import UserError
from mnemoscope.runs.cleaning import Choices, execute, plan


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Four runs: two finished, one failed, one interrupted with a member within."""
    folder = tmp_path / "runs"
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(folder))
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    for seed in (1, 2):
        with runs.open({"task": {"name": "copy", "delay": 9}, "network": "nnrnn", "seed": seed, "lr": 0.1}) as run:
            for step in range(1, 31):
                run.append({"step": step, "loss": seed / step})
            for step in (10, 20, 30):
                run.checkpoint(step, {"w": torch.ones(50)}, best=step == 10)
            run.finish({"score": seed / 4})
    with runs.open({"task": "evil\n\x1b[31m../..", "network": "rnn"}, folder=folder / "failed-one") as run:
        run.append({"step": 1, "loss": float("nan")})
        run.fail("NaN loss\nat step 1")
    with runs.open({"task": "parity", "network": "lstm"}, kind="capacity", folder=folder / "search") as run:
        with runs.open({"task": "parity", "network": "lstm"}, folder=folder / "search" / "level-8") as member:
            member.finish({"score": 0.5})
        run.append({"step": 8, "score": 0.5})
    return folder


@pytest.fixture
def ids(root):
    """The ids of the two finished runs."""
    return [row["id"] for row in runs.index(root) if row["network"] == "nnrnn"]


def test_list(call, root, ids):
    done = call("runs")
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[1].split() == [
        ids[0][:8],
        "fit",
        "copy",
        "nnrnn",
        "1",
        "finished",
        "30",
        "0.25",
        "0.03333",
        *lines[1].split()[-2:],
    ]
    assert f"4 runs and 1 within others (--nested) in {root}." in lines
    assert "failed-o failed: NaN loss at step 1" in lines
    assert "\x1b" not in done.stdout
    assert "evil\\n\\x1b[31m../.." in done.stdout
    assert call("runs", "list").stdout == done.stdout
    assert "search/level-8" in call("runs", "list", "--nested").stdout


def test_list_as_json(call_json, root, ids):
    found = call_json("runs")
    assert found["root"] == str(root)
    assert [row["id"] for row in found["runs"]] == [*ids, "failed-one", "search"]
    first = found["runs"][0]
    assert first["spec"] == {"task": {"name": "copy", "delay": 9}, "network": "nnrnn", "seed": 1, "lr": 0.1}
    assert (first["score"], first["last"], first["summary"]) == (0.25, {"step": 30, "loss": 1 / 30}, {"score": 0.25})
    assert call_json("runs", "list") == found


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (("--task", "copy"), 2),
        (("--network", "rnn"), 1),
        (("--status", "failed"), 1),
        (("--kind", "capacity"), 1),
        (("--since", "1h"), 4),
        (("--since", "2100-01-01"), 0),
        (("--where", "score > 0.3"), 2),
        (("--where", "json_extract(spec, '$.task.delay') = 9 AND seed = 2"), 1),
        (("--nested",), 5),
        (("--nested", "--status", "finished"), 3),
    ],
)
def test_filters(call_json, root, filters, count):
    assert len(call_json("runs", *filters)["runs"]) == count
    assert len(call_json("runs", "list", *filters)["runs"]) == count


def test_nothing_there(call, call_json, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MNEMOSCOPE_RUNS", raising=False)
    assert call("runs").stdout == f"No runs in {tmp_path / 'runs'}.\n"
    assert call_json("runs") == {"root": str(tmp_path / "runs"), "runs": [], "total": 0}
    assert call_json("runs", "disk")["total"] == 0
    assert call("runs", "gc").stdout == "There is nothing to remove.\n"
    assert not (tmp_path / "runs").exists()


def test_another_root(call_json, root, tmp_path, monkeypatch):
    monkeypatch.delenv("MNEMOSCOPE_RUNS")
    for arguments in (("runs", "list", "--runs", root), ("runs", "--runs", root), ("runs", "--runs", root, "list")):
        assert len(call_json(*arguments)["runs"]) == 4


def test_show(call, call_json, root, ids):
    shown = call("runs", "show", ids[0][:6]).stdout
    for words in (ids[0], "task.delay  9", "versions.torch", "Metrics, 30 lines", "step 30", "whole", "best", "0.25"):
        assert words in shown
    found = call_json("runs", "show", ids[0])
    assert [one["step"] for one in found["checkpoints"]] == [10, 20, 30]
    assert all(one["problem"] is None for one in found["checkpoints"])
    assert found["metrics"] == [{"step": step, "loss": 1 / step} for step in range(1, 31)]
    assert found["environment"]["versions"]["torch"]
    assert call_json("runs", "show", "failed-one")["metrics"] == [{"step": 1, "loss": "nan"}]
    assert call_json("runs", "show", "sea/lev")["id"] == "search/level-8"
    assert call_json("runs", "show", str(root / "search"))["status"] == "interrupted"


def test_show_says_what_is_damaged(call, root, ids):
    path = root / ids[0] / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    weights = root / ids[0] / "checkpoints" / "step-30.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    done = call("runs", "show", ids[0])
    assert done.exit_code == 0
    assert done.stderr == f"warning: {str(path)!r} is damaged: only 29 of 30 lines are whole\n"
    assert "only 29 of 30 lines are whole" in done.stdout
    assert "step-30.safetensors' is damaged" in done.stdout


def test_a_metric_is_compared_at_steps_that_runs_share():
    often, seldom = {10: 1.0, 20: 2.0, 30: 3.0, 40: 4.0}, {20: 5.0, 40: 6.0, 50: 7.0}
    steps = {step: [often.get(step), seldom.get(step)] for step in sorted({*often, *seldom})}
    assert _aligned(steps) == {20: [2.0, 5.0], 40: [4.0, 6.0], 50: [None, 7.0]}


def test_runs_that_share_no_step_have_their_last_value_with_its_step():
    steps = {10: [1.0, None], 15: [None, 5.0], 20: [2.0, None]}
    assert _aligned(steps) == {10: [1.0, None], 15: ["1 (10)", 5.0], 20: [2.0, None]}
    assert _aligned({}) == {}


def test_compare(call, call_json, root, ids):
    found = call_json("runs", "compare", *ids, "--metric", "loss")
    assert found["configuration"] == {"seed": [1, 2]}
    assert found["summary"] == {"score": [0.25, 0.5]}
    assert found["metrics"] == {"step": [30, 30], "loss": [1 / 30, 2 / 30]}
    assert found["steps"]["2"] == [0.5, 1.0]
    assert len(found["steps"]) == 30
    found = call_json("runs", "compare", ids[0], "failed-one", "search")
    assert found["configuration"]["task.name"] == ["copy", None, None]
    assert found["metrics"]["loss"] == [1 / 30, "nan", None]
    shown = call("runs", "compare", *ids, "--metric", "loss").stdout
    assert "seed" in shown
    assert "loss by step, 20 of 30" in shown


def test_export(call, call_json, root, ids, tmp_path):
    table = list(csv.DictReader(io.StringIO(call("runs", "export").stdout)))
    assert [row["id"] for row in table] == [*ids, "failed-one", "search", "search/level-8"]
    assert (table[0]["spec.task.delay"], table[0]["summary.score"], table[1]["spec.seed"]) == ("9", "0.25", "2")
    assert table[2]["spec.task"] == "evil\n\x1b[31m../.."
    lines = list(csv.DictReader(io.StringIO(call("runs", "export", "--metrics", "--task", "copy").stdout)))
    assert len(lines) == 60
    assert [float(line["loss"]) for line in lines[:30]] == [1 / step for step in range(1, 31)]
    target = tmp_path / "out.json"
    done = call("runs", "export", ids[1][:6], "--metrics", "--format", "json", "-o", target)
    assert (done.exit_code, done.stdout) == (0, "")
    assert json.loads(target.read_text())[0] == {"run": ids[1], "step": 1, "loss": 2.0}
    assert json.loads(call("runs", "export", "--json").stdout)[0]["spec.lr"] == 0.1


def test_disk(call, call_json, root, ids):
    found = call_json("runs", "disk")
    by_id = {one["id"]: one for one in found["runs"]}
    folder = root / ids[0]
    assert by_id[ids[0]]["total"] == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert by_id[ids[0]]["metrics"] == (folder / "metrics.jsonl").stat().st_size
    assert found["total"] == sum(one["total"] for one in found["runs"])
    assert found["free"] > 0
    assert "To clean up: mnemoscope runs gc" in call("runs", "disk").stdout


def test_gc_asks_first(call, mistake, root, monkeypatch):
    before = sorted(root.rglob("*"))
    done = call("runs", "gc", "--failed")
    assert done.exit_code == 2
    assert "failed-one (failed): the whole run" in done.stdout
    assert done.stderr == "error: nothing was removed: give --yes to remove it without a question, or --dry-run\n"
    assert call("runs", "gc", "--failed", "--older", "--weights", "--interrupted", "--dry-run").exit_code == 0
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("answer", ["n\n", "\n", "y\n"])
def test_gc_takes_the_answer(root, monkeypatch, answer):
    monkeypatch.setattr(gc_command, "_is_answerable", lambda: True)
    done = CliRunner().invoke(app, ["runs", "gc", "--failed"], input=answer)
    assert done.exit_code == 0
    assert "Remove this? [y/N]" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("freed." if answer == "y\n" else "Nothing was removed.")
    assert (root / "failed-one").exists() == (answer != "y\n")


def test_gc(call_json, root, ids):
    newest, best = (root / ids[0] / "checkpoints" / f"step-{step}.json" for step in (30, 10))
    (root / ids[0] / "checkpoints" / ".step-9.json.abcd1234.tmp").write_text("half")
    (root / "failed-one" / "notes.txt").write_text("mine")
    found = call_json("runs", "gc", "--older", "--failed", "--yes")
    assert [(one["run"], one["what"]) for one in found["planned"]] == [
        (ids[0], "leftovers"),
        (ids[0], "older checkpoints"),
        (ids[1], "older checkpoints"),
        ("failed-one", "the whole run"),
    ]
    assert found["freed"] == sum(one["bytes"] for one in found["planned"])
    assert newest.exists()
    assert best.exists()
    assert sorted(path.name for path in (root / ids[0] / "checkpoints").glob("*.json")) == [
        "step-10.json",
        "step-30.json",
    ]
    assert [path.name for path in (root / "failed-one").iterdir()] == ["notes.txt"], "what is not ours stays"
    assert len(call_json("runs", "list", "--nested")["runs"]) == 4
    assert runs.load(ids[0]).latest().step == 30
    call_json("runs", "gc", ids[0], "--weights", "--yes")
    assert not (root / ids[0] / "checkpoints").exists()
    assert runs.load(ids[0]).latest() is None
    assert len(runs.load(ids[0]).metrics) == 30
    assert runs.load(ids[1]).latest().step == 30


def test_gc_of_a_run_keeps_those_within(call_json, root):
    call_json("runs", "gc", "search", "--interrupted", "--yes")
    assert not (root / "search" / "config.json").exists()
    assert runs.load(root / "search" / "level-8").status == "finished"
    assert [row["id"] for row in call_json("runs")["runs"]][-1] == "search/level-8"


def test_gc_keeps_the_older_where_the_newest_is_damaged(call_json, root, ids):
    path = root / ids[0] / "checkpoints" / "step-30.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    planned = call_json("runs", "gc", "--older", "--yes")["planned"]
    assert [one["run"] for one in planned] == [ids[1]]


def test_gc_never_touches_a_running_one(call_json, root):
    with runs.open({"task": "evil\n\x1b[31m../..", "network": "rnn"}, folder=root / "failed-one"):
        assert call_json("runs", "gc", "--failed", "--interrupted", "--yes", "failed-one")["planned"] == []
    (removal,) = plan(root, [row for row in runs.index(root) if row["id"] == "failed-one"], Choices(failed=True))
    with runs.open({"task": "evil\n\x1b[31m../..", "network": "rnn"}, folder=root / "failed-one") as run:
        with pytest.raises(UserError, match="is in use by process"):
            execute(removal)
        run.finish()
    with pytest.raises(UserError, match="has changed meanwhile"):
        execute(removal)
    assert runs.load(root / "failed-one").status == "finished"


def test_gc_does_not_follow_links(call_json, root, tmp_path, ids):
    outside = tmp_path / "outside"
    (root / ids[0] / "checkpoints").rename(outside)
    (root / ids[0] / "checkpoints").symlink_to(outside)
    before = sorted(path.name for path in outside.iterdir())
    call_json("runs", "gc", "--weights", "--older", "--yes")
    assert sorted(path.name for path in outside.iterdir()) == before


def test_sql(call, call_json, root, ids):
    found = call_json("runs", "sql", "SELECT id, score FROM runs WHERE network = 'nnrnn' ORDER BY score")
    assert found == {"columns": ["id", "score"], "rows": [[ids[0], 0.25], [ids[1], 0.5]]}
    found = call_json("runs", "sql", "SELECT avg(value) FROM metrics WHERE name = 'step' AND run = '" + ids[0] + "'")
    assert found["rows"] == [[15.5]]
    assert call("runs", "sql", "SELECT 'a' || char(10) || char(27) AS x").stdout.split() == ["x", "a\\n\\x1b"]


def test_rebuild(call, call_json, root):
    before = call_json("runs", "list", "--nested")
    (root / "index.sqlite").write_text("junk")
    done = call("runs")
    assert done.exit_code == 0
    words = "was damaged or of another version, and is made again from the folders"
    assert done.stderr == f"warning: {str(root / 'index.sqlite')!r} {words}\n"
    assert call_json("runs", "rebuild") == {"root": str(root), "runs": 5}
    assert call("runs", "rebuild").stdout == f"The index of 5 runs was made again in {root}.\n"
    assert call_json("runs", "list", "--nested") == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "nothing"), "begins with 'nothing'; `mnemoscope runs` lists those there"),
        (("show", ""), "a run must be named by its id"),
        (("compare", "search"), "compare takes two runs or more, got 1"),
        (
            ("compare", "search", "failed-one", "--metric", "lost"),
            "a metric must be one of step, score, loss, got 'lost'",
        ),
        (("sql", " "), "the query must be a SELECT, got ' '"),
        (("sql", "DELETE FROM runs"), "only SELECT is allowed"),
        (("sql", "SELECT * FROM absent"), "no such table: absent"),
        (("list", "--status", "done"), "status must be 'running' or"),
        (("list", "--since", "soon"), "a time must be like 90m, 12h, 7d, 2w or 2026-01-31, got 'soon'"),
        (("list", "--where", "lost = 1"), "no such column: lost"),
        (("list", "--runs", "/nowhere"), "--runs must be a folder that exists, got '/nowhere'"),
        (("--task", "copy", "show", "search"), "options must come after the command: mnemoscope runs show"),
        (("export", "--format", "parquet"), "format must be 'csv' or 'json', got 'parquet'"),
        (("export", "search", "--task", "copy"), "does not pass the filters"),
        (("export", "-o", "/"), "--output must be a file, got the folder '/'"),
        (("gc", "--older", "--json"), "nothing was removed: give --yes"),
        (("frobnicate",), "No such command 'frobnicate'"),
    ],
)
def test_mistakes(mistake, root, arguments, words):
    assert words in mistake("runs", *arguments)


def test_a_file_is_not_replaced_unasked(call, mistake, root, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("mine")
    assert "--output must be a new file, or --force given" in mistake("runs", "export", "-o", target)
    assert target.read_text() == "mine"
    assert call("runs", "export", "-o", target, "--force").exit_code == 0
    assert target.read_text().startswith("id,")


def test_a_newer_run_is_listed_and_refused(call, mistake, root, ids):
    path = root / ids[0] / "config.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    assert "newer" in call("runs").stdout
    assert "its format is 2, this version reads up to 1; upgrade to open it" in mistake("runs", "show", ids[0])


def test_listing_needs_no_torch(root):
    program = """
    import sys
    from mnemoscope.cli.main import app
    try:
        app(["runs", "--json"])
    except SystemExit as end:
        assert end.code == 0
    assert "torch" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=True)


def test_a_cell_of_a_table_is_no_formula(call, tmp_path):
    with runs.open({"task": "=cmd|'/C calc'!A0", "network": "-2+3", "seed": 1, "x": -0.5}, root=tmp_path) as run:
        run.append({"step": 1, "@note": "+1", "loss": -1.5})
    table = call("runs", "export", "--runs", tmp_path).stdout
    assert "'=cmd" in table
    assert ",'-2+3," in table
    assert ",-0.5" in table
    assert "'@note" in call("runs", "export", "--metrics", "--runs", tmp_path).stdout


def test_gc_removes_a_run_that_never_came_into_being(call_json, tmp_path):
    runs.open({"task": "copy"}, folder=tmp_path / "whole").close()
    left = tmp_path / ".killed.0123abcd.tmp"
    (left / "checkpoints").mkdir(parents=True)
    for name in ("lock", "environment.json", "checkpoints/step-0.safetensors"):
        (left / name).write_text("half")
    planned = call_json("runs", "gc", "--yes", "--runs", tmp_path)["planned"]
    assert [one["what"] for one in planned] == ["a run that never came into being"]
    assert not left.exists()
    assert runs.is_run(tmp_path / "whole")
