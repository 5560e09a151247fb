"""The command ``capacity``."""

import importlib
import json

import pytest

import mnemoscope as ms

MODULE = importlib.import_module("mnemoscope.training.capacities.search")
TINY = (
    *("--hidden", 3, "--seeds", 2, "--iterations", 2),
    *("--train", "batch_size=4", "--train", "test_size=5", "--train", "validation_size=5"),
)
LAYER = """
from torch import nn


class Mine(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.inner = nn.RNN(input_size, hidden_size)

    def forward(self, input, state=None):
        print("noise")
        return self.inner(input, state)
"""


@pytest.fixture(autouse=True)
def runs_apart(monkeypatch, tmp_path):
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "runs"))


def test_a_search_is_recorded_unless_said_otherwise_and_goes_on(call, tmp_path):
    asked = ("capacity", "rnn", "copy", *TINY, "--grid", "1,3")
    first, again = call(*asked), call(*asked)
    (folder,) = (each for each in (tmp_path / "runs").iterdir() if "capacity-copy-rnn" in each.name)
    assert first.stdout == again.stdout
    assert f"recorded in {folder}" in first.stdout
    assert (folder / "level-3").is_dir()
    assert ms.runs.load(folder).status == "finished"


def test_a_search_as_json(call_json, tmp_path):
    asked = ("rnn", "copy", *TINY, "--start", 2, "--largest", 8, "--criterion", 1e-9)
    found = call_json("capacity", *asked)
    (one,) = found["capacities"]
    assert found["comparisons"] == []
    assert (one["axis"], one["seeds"], one["complete"]) == ("delay", [0, 1], True)
    # The scores are those of the test: the limit follows from them by its definition.
    limit = 0
    for level, row in zip(one["levels"], one["scores"], strict=True):
        if not any(score >= 1e-9 for score in row):
            break
        limit = level
    assert one["limit"] == limit
    assert one["parameters"] == (3 * 10 + 3 * 3 + 3) + (9 * 3 + 9)  # the layer, the readout


def test_a_grid_and_a_picture(call, tmp_path):
    done = call("capacity", "rnn", "copy", *TINY, "--grid", "1,3", "--plot", tmp_path / "c.svg")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("rnn (n = 3) on copy: delay below 1, none of 2 levels mastered")
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["rnn (n = 3), delay 1", "rnn (n = 3), delay 3"]
    assert (tmp_path / "c.svg").read_text().startswith("<svg")


def test_depths_at_one_number_of_parameters(call_json, tmp_path):
    asked = (
        "--parameters",
        200,
        "--count",
        "all",
        "--layers",
        "1,2",
        "--grid",
        "1",
        *TINY[2:],
        "--folder",
        tmp_path / "f",
    )
    found = call_json("capacity", "rnn", "copy", *asked)
    sizes = [one["parameters"] for one in found["capacities"]]
    assert all(150 < size <= 200 for size in sizes)
    (pair,) = found["comparisons"]
    assert pair["pairs"] == 2
    assert pair["effect"] == "nan"  # of two pairs there is none; JSON has no such number
    assert sorted(path.name for path in (tmp_path / "f").iterdir() if path.is_dir()) == ["depth-1", "depth-2"]


def test_the_same_command_reads_what_is_finished(call_json, mistake, tmp_path):
    asked = ("rnn", "copy", *TINY, "--grid", "1,2", "--folder", tmp_path / "f")
    first = call_json("capacity", *asked)
    assert call_json("capacity", *asked) == first
    assert "has another configuration: hidden_size" in mistake("capacity", *asked, "--hidden", 4)


def test_a_difficulty_that_begins_at_0_is_searched_upwards(call_json):
    (one,) = call_json("capacity", "rnn", "sinus", *TINY, "--criterion", 1e-9)["capacities"]
    assert one["levels"][-1] >= 1


def test_a_class_of_a_file_may_print(call, tmp_path):
    (tmp_path / "mine.py").write_text(LAYER)
    done = call("capacity", f"{tmp_path / 'mine.py'}:Mine", "copy", *TINY, "--grid", "1", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["capacities"][0]["levels"] == [1]
    assert "noise" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rnm", "copy"), "there is no network named 'rnm'; did you mean 'rnn'?"),
        (("rnn", "copi"), "there is no task named 'copi'; did you mean 'copy'?"),
        (("rnn", "copy", "--hidden", "0"), "hidden_size must be a positive integer, got 0"),
        (("rnn", "copy", "--layers", "1,0"), "--layers must be a positive integer, got 0"),
        (("rnn", "copy", "--layers", "1,1"), "--layers must be different depths, got '1,1'"),
        (("rnn", "copy", "--layers", "1,2", "--minutes", "-1"), "--minutes must be a number above 0, got -1.0"),
        (("rnn", "copy", "--parameters", "1" + "0" * 20), "parameters must be at most 100,000,000"),
        (("rnn", "copy", "--layers", "1,2", "--parameters", "13"), "parameters must be at least"),
        (("rnn", "copy", "--count", "wrong"), "count must be 'recurrent' or 'all' or 'published', got 'wrong'"),
        (("rnn", "copy", "--set", "x"), "--set must be NAME=VALUE"),
        (("rnn", "copy", "--set", "hidden_size=1"), "hidden_size has an argument of its own (--hidden)"),
        (("rnn", "copy", "--set", "input_size=1"), "input_size is the task's"),
        (("rnn", "copy", "--set", "count=1", "--parameters", "99"), "count has an argument of its own"),
        (("rnn", "copy", "--task-set", "x"), "--task-set must be NAME=VALUE"),
        (("rnn", "copy", "--task-set", "data=x", "--data", "y"), "the task copy has no setting 'data'"),
        (("rnn", "copy", "--train", "target=1"), "training has no setting 'target' within a search"),
        (("rnn", "copy", "--train", "hidden_size=1"), "training has no setting 'hidden_size' within a search"),
        (("rnn", "copy", "--train", "callbacks=1"), "training has no setting 'callbacks' within a search"),
        (("rnn", "copy", "--train", "batchsize=1"), "did you mean 'batch_size'?"),
        (("rnn", "copy", "--grid", "2,1"), "grid must be ascending levels"),
        (("rnn", "copy", "--grid", "1,2", "--start", "1"), "a grid says itself where the levels begin"),
        (("rnn", "mnist"), "mnist has another input size at each grid"),
        (("rnn", "copy", "--plot", "x.gif"), "must end in"),
    ],
)
def test_mistakes_before_any_training(mistake, monkeypatch, arguments, words):
    monkeypatch.setattr(MODULE, "fit_population", None)
    assert words in mistake("capacity", *arguments)


def test_ctrl_c_says_how_to_go_on(call, monkeypatch, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(MODULE, "fit_population", stop)
    done = call("capacity", "rnn", "copy", *TINY, "--folder", tmp_path / "f", "--json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "interrupted; the same command goes on\n"


def test_resume_goes_on_with_a_search(call, call_json, tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path))
    typed = ("capacity", "rnn", "copying", "--hidden", 4, "--seeds", 1, "--grid", "1,2", "--iterations", 10)
    typed += (
        "--task-set",
        "symbols=1",
        "--train",
        "batch_size=4",
        "--train",
        "test_size=20",
        "--train",
        "layout=sequential",
    )
    whole = call_json(*typed)["capacities"][0]
    call(*typed, "--folder", tmp_path / "search", "--budget", 1)  # ends after the first level
    again = call_json("resume", tmp_path / "search")["capacities"][0]
    assert again["scores"] == whole["scores"]
    assert again["complete"]
    assert "on copying: delay below 1" in call("resume", tmp_path / "search").stdout


def test_a_search_of_another_version_of_the_file_is_not_taken_up(call, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LAYER.replace('print("noise")', "pass"))
    asked = ("capacity", f"{file}:Mine", "copy", *TINY, "--grid", "1", "--folder", tmp_path / "kept")
    first, again = call(*asked), call(*asked)
    assert (first.exit_code, again.exit_code) == (0, 0), first.stderr
    assert first.stdout == again.stdout
    file.write_text(file.read_text() + "# another version\n")
    changed = call(*asked)
    assert changed.exit_code == 2
    assert "digest" in changed.stderr
    assert len(changed.stderr.splitlines()) == 1


def test_several_networks_at_equal_parameters(call_json, mistake, tmp_path):
    (tmp_path / "mine.py").write_text(LAYER.replace('print("noise")', "pass"))
    asked = (*TINY[2:], "--grid", "1", "--parameters", 400, "--folder", tmp_path / "f")
    found = call_json("capacity", f"{tmp_path / 'mine.py'}:Mine", "lstm", "gru:hidden=3", "copy", *asked)
    labels = [one["network"] for one in found["capacities"]]
    assert [label.split()[0] for label in labels] == ["Mine", "lstm", "gru"]
    assert labels[2] == "gru (n = 3)"
    recurrent = [
        one["parameters"] - (9 * n + 9) for one, n in zip(found["capacities"], map(_size, labels), strict=True)
    ]
    assert all(abs(count - 400) < 60 for count in recurrent[:2])
    assert [(pair["first"], pair["second"]) for pair in found["comparisons"]] == [
        (labels[0], labels[1]),
        (labels[0], labels[2]),
        (labels[1], labels[2]),
    ]
    assert len([path for path in (tmp_path / "f").iterdir() if path.is_dir()]) == 3
    same = mistake("capacity", "rnn", "rnn", "copy", *TINY)
    assert "networks must differ in name or size to be told apart, got rnn (n = 3) twice" in same
    (tmp_path / "yours.py").write_text((tmp_path / "mine.py").read_text())
    twins = [f"{tmp_path / name}:Mine" for name in ("mine.py", "yours.py")]
    found = call_json("capacity", *twins, "copy", *TINY, "--grid", "1")
    assert [one["network"].split(" of ")[1] for one in found["capacities"]] == ["mine.py", "yours.py"]
    assert "weights of its own" in mistake("capacity", "some.safetensors", "copy", "--seeds", 2)


def _size(label):
    return int(label.partition("n = ")[2].rstrip(")"))
