"""Commands for many machines, as typed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Runs live in a folder of the test's own."""
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    return tmp_path


SMALL = ("study", "run", "tt-theorem-1", "--scale", "smoke")


def test_shards_merged_are_the_study(call, call_json, home):
    for number in (2, 1):
        done = call(*SMALL, "--shard", f"{number}/2", "--folder", home / "shards")
        assert done.exit_code == 0, done.stderr
        assert done.stdout.startswith(f"tt-theorem-1 at smoke scale, shard {number}/2: ")
    again = call_json(*SMALL, "--shard", "1/2", "--folder", home / "shards")
    assert (again["run_now"], again["missing"]) == (0, 0)
    runs = 2 * again["runs"]
    assert f"{runs} runs added, 0 replaced" in call("runs", "merge", home / "shards").stdout
    merged = call_json("runs", "merge", home / "shards")
    assert (len(merged["kept"]), merged["added"], merged["differing"]) == (runs, [], [])
    found = call_json("study", "report", "tt-theorem-1", "--scale", "smoke")
    whole = call_json(*SMALL, "--runs", home / "whole")
    assert (found["parts"], found["missing"]) == (whole["parts"], 0)


def test_what_differs_is_listed_and_the_exit_code_says_so(call, home):
    from mnemoscope import runs

    for side, score in (("a", 1.0), ("b", 2.0)):
        with runs.open({"task": "copy"}, root=home / side) as run:
            run.finish({"score": score})
    done = call("runs", "merge", home / "b", "--runs", home / "a")
    assert done.exit_code == 1
    assert f"left where it is: {run.folder.name}" in done.stdout


def test_the_script_for_slurm_names_every_shard(call, home):
    done = call(*SMALL, "--shard", "1/64", "--folder", home / "shards", "--slurm", "--layout", "sequential")
    assert done.exit_code == 0
    assert "#SBATCH --array=1-64\n" in done.stdout
    command = f"mnemoscope study run tt-theorem-1 --scale smoke --layout sequential --folder {home}/shards --shard"
    assert f'{command} "$SLURM_ARRAY_TASK_ID/64" &\n' in done.stdout
    assert not (home / "shards").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*SMALL, "--shard", "3/2", "--folder", "x"), "a shard must be K/N with K from 1 to N, as in 3/64, got '3/2'"),
        ((*SMALL, "--shard", "1/2"), "--shard needs --folder DIR, which all shards have in common"),
        ((*SMALL, "--folder", "x"), "--folder and --slurm go with --shard K/N"),
        ((*SMALL, "--slurm"), "--folder and --slurm go with --shard K/N"),
        ((*SMALL, "--shard", "1/2", "--folder", "x", "--save", "y"), "a shard says nothing of the whole"),
        ((*SMALL, "--shard", "1/2", "--folder", "nosuch://x"), "must be a folder or the URL of a store"),
        ((*SMALL, "--layout", "sequentially"), "layout must be"),
        (("runs", "merge", "nowhere"), "there is no folder"),
    ],
)
def test_mistakes(mistake, arguments, words):
    assert words in mistake(*arguments)


def test_merging_too_early_lists_what_is_missing(call, mistake, home):
    call(*SMALL, "--shard", "1/3", "--folder", home / "shards")
    words = mistake("runs", "merge", home / "shards")
    assert words.startswith("shards are missing: tt-theorem-1 at smoke scale lacks 2/3 (")
    assert words.endswith("; to merge what is there, give --partial")
    done = call("runs", "merge", home / "shards", "--partial", "--json")
    assert json.loads(done.stdout)["missing"]


@pytest.mark.slow
def test_a_training_that_is_asked_to_stop_keeps_a_checkpoint(process, home):
    from mnemoscope import runs

    def stop():
        while not (found := list((home / "runs").glob("*-fit-copy-rnn"))):
            time.sleep(0.02)
        time.sleep(0.3)
        os.kill(int((found[0] / "lock").read_text().split()[0]), signal.SIGTERM)

    stopper = threading.Thread(target=stop)
    stopper.start()
    done = process("train", "rnn", "copy", "--hidden", "4", "--iterations", "1000000", "--train", "batch_size=2")
    stopper.join()
    (folder,) = (home / "runs").glob("*-fit-copy-rnn")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"interrupted; the same command again, or `mnemoscope resume {folder.name}`, goes on")
    record = runs.load(folder)
    assert (record.status, record.reason) == ("budget", "it was asked to stop")
    assert record.latest().step > 0


LONG = ("study", "run", "matrix-fig-5", "--scale", "smoke", "--set", "iterations=150", "--layout", "sequential")
LONG_SEARCH = (
    "search",
    "rnn",
    "copy",
    "--hidden",
    "4",
    "--iterations",
    "1500",
    "--seeds",
    "1",
    "--over",
    "lr=0.01,0.02",
)
LONG_TRAINING = ("train", "rnn", "copy", "--task-set", "delay=3", "--hidden", "4", "--iterations", "1500")
POPULATION = ("--train", "batch_size=2", "--train", "seeds=[0,1]", "--train", "layout=processes")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("words", "begun"),
    [
        (LONG, "runs/study-*/population/group-*/metrics*"),
        ((*LONG, "--shard", "1/2", "--folder", "all shards"), "all shards/work/*/study-*/population/group-*/metrics*"),
        ((*LONG_SEARCH, "--train", "layout=sequential"), "runs/study-*/population/group-*/metrics*"),
        ((*LONG_TRAINING, *POPULATION), "runs/*/group-*/metrics*"),
    ],
    ids=["study", "shard", "search", "processes"],
)
def test_ctrl_c_at_a_terminal_leaves_all_that_goes_on(home, words, begun):
    """The signal goes to every process of the command, as a terminal sends it, and the same command ends the work."""
    run = f"import sys; sys.path[:0] = {sys.path!r}; from mnemoscope.cli.main import app; app()"

    def start():
        return subprocess.Popen(
            [sys.executable, "-c", run, *words], cwd=home, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    process = start()
    while not any(one.stat().st_size for one in home.glob(begun)):
        time.sleep(0.02)
        assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)
    out, said = process.communicate(timeout=200)
    assert process.returncode == 1, (out, said)
    assert "goes on" in said.rstrip().splitlines()[-1]
    assert "Traceback" not in said
    process = start()
    out, said = process.communicate(timeout=400)
    assert process.returncode == 0, said
    assert out


def test_plan_says_core_hours_and_the_time_on_cores(call, call_json):
    found = call_json("study", "plan", "tt-theorem-1", "--scale", "laptop", "--cores", "4")
    (study,) = found["studies"]
    assert study["source"] == "declared"
    assert found["core_hours"] == pytest.approx(4 * found["hours"])
    assert found["core_hours_by_timed_steps"] == 0
    said = call("study", "plan", "tt-theorem-1", "--scale", "laptop").stdout
    assert "In all at laptop scale: 24 runs" in said
    assert "By timed steps: < 0.01 core-hours. 1 of 1 studies count as their files declare" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "study plan takes the name of a study, or --all"),
        (("tt-theorem-1", "--all"), "study plan takes the name of a study, or --all"),
        (("tt-theorem-1", "--cores", "0"), "--cores must be a positive integer, got 0"),
        (("tt-theorem-1", "--minutes", "-1"), "--minutes must be a number of at least 0, got -1"),
        (("tt-theorem-1", "--scale", "huge"), "scale must be"),
    ],
)
def test_mistakes_of_plans(mistake, arguments, words):
    assert words in mistake("study", "plan", *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*SMALL, "--ray", "127.0.0.1:1"), "no Ray cluster answers at '127.0.0.1:1'"),
        (("--ray", "127.0.0.1:1"), "no Ray cluster answers at '127.0.0.1:1'"),
        (("atlas", "build", "rnn", "--ray", "127.0.0.1:1"), "no Ray cluster answers at '127.0.0.1:1'"),
        ((*SMALL, "--shard", "1/2", "--folder", "x", "--ray"), "--shard is for machines without a cluster"),
        (("train", "rnn", "copy", "--ray", "--iterations", "5"), "--ray is for populations: give seeds"),
    ],
)
def test_mistakes_of_clusters(mistake, arguments, words):
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    search = ("capacity", "rnn", "copying", "--hidden", "4")
    assert words in mistake(*(arguments if arguments[0] != "--ray" else (*search, *arguments)))


def test_a_cluster_without_the_extra(mistake, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'mnemoscope[ray]'" in mistake(*SMALL, "--ray")


SEARCH = ("search", "rnn", "copy", "--task-set", "delay=3", "--hidden", "4", "--iterations", "5", "--seeds", "2")


def test_search_says_what_validation_chose(call, call_json, home):
    settings = ("--over", "lr=0.01,0.1", "--train", "batch_size=4", "--train", "layout=sequential")
    done = call(*SEARCH, *settings)
    assert done.exit_code == 0, done.stderr
    assert "Chosen by validation: lr=0.0" in done.stdout or "Chosen by validation: lr=0.1" in done.stdout
    found = call_json(*SEARCH, *settings)
    assert found["points"][0]["point"] == found["chosen"]["point"]
    assert found["points"][0]["mean"] <= found["points"][1]["mean"]
    assert "test_score" not in found["points"][1]
    assert found["chosen"]["at_the_edge_of"] == ["lr"]
    shard = call_json(*SEARCH, *settings, "--shard", "1/2", "--folder", home / "shards")
    assert (shard["runs"], shard["missing"]) == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "a search needs something to search over: --over lr=0.01,0.001"),
        (("--over", "lr"), "--over must be NAME=VALUE,VALUE,.. or NAME=LOW..HIGH, got 'lr'"),
        (("--over", "lr=1e-3..1e-1"), "lr has a range, of which a grid has no points"),
        (("--over", "lr=1..0", "--random", "3"), "the range of lr must be LOW..HIGH"),
        (("--over", "lr=0.1", "--random", "0"), "the number of random points must be a positive integer, got 0"),
        (("--over", "lr=0.1", "--over", "lr=0.2"), "every axis must be given once"),
        (("--over", "nonsense=1,2"), "RNN has no option 'nonsense'"),
        (("--over", "lr=0.1", "--shard", "1/2"), "--shard needs --folder DIR"),
        (("--over", "lr=0.1", "--shard", "1/2", "--ray"), "--shard goes with --folder"),
    ],
)
def test_mistakes_of_searches(mistake, arguments, words):
    assert words in mistake(*SEARCH, *arguments)
