"""The command ``train``."""

import json
import re
from pathlib import Path

import pytest

TEXT = """
iterations = 6
batch_size = 4
lr = 0.01
test_size = 10

[network]
name = "rnn"
hidden_size = 6

[task]
name = "copy"
delay = 3
"""


@pytest.fixture(autouse=True)
def _own_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "runs"))


@pytest.fixture
def experiment(tmp_path):
    def write(text=TEXT):
        path = tmp_path / "e.toml"
        path.write_text(text)
        return path

    return write


def test_it_trains_records_and_says_what_came_out(call, experiment, tmp_path):
    done = call("train", experiment())
    assert done.exit_code == 0, done.stderr
    assert re.match(r"RNN on copy: score [\d.]+ \(accuracy on the recalled symbols\), loss ", done.stdout)
    assert re.search(rf"^folder +{re.escape(str(tmp_path / 'runs'))}/\S+-fit-copy-rnn *$", done.stdout, re.MULTILINE)
    assert done.stderr == ""


def test_json_is_one_document(call_json, experiment):
    found = call_json("train", experiment())
    assert found["status"] == "finished"
    assert found["step"] == 6
    assert len(found["metrics"]) == 6
    assert call_json("train", experiment()) == found  # the same command finds the run that has ended


def test_seed_and_iterations_on_the_command_line(call_json, experiment, tmp_path):
    found = call_json("train", experiment(), "--seed", 4, "--iterations", 2, "--folder", tmp_path / "here")
    assert (found["seed"], found["step"]) == (4, 2)
    assert found["folder"] == str(tmp_path / "here")


def test_a_population(call, call_json, experiment):
    text = TEXT.replace("lr = 0.01", 'seeds = [0, 1]\nlr = [0.01, 0.1]\nlayout = "batched"')
    found = call_json("train", experiment(text))
    assert [run["seed"] for run in found["runs"]] == [0, 1]
    done = call("train", experiment(text))
    assert done.stdout.count("RNN on copy") == 2


def test_a_picture(call, experiment, tmp_path):
    done = call("train", experiment(), "--plot", tmp_path / "loss.svg")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "loss.svg").read_text().startswith("<svg")


def test_one_that_diverges_ends_with_1_and_the_advice(call, experiment):
    text = TEXT.replace('"rnn"', '"linear-rnn"').replace("lr = 0.01", "lr = 1e300\nprecision = 'float64'")
    done = call("train", experiment(text), "--json")
    assert done.exit_code == 1
    assert done.stderr.startswith("failed: the ")
    assert "not finite at step" in done.stderr
    assert "lower the learning rate (lr=1e+300 now)" in done.stderr
    assert "checkpoint in" in done.stderr
    assert done.stderr.count("\n") == 1
    assert json.loads(done.stdout)["status"] == "failed"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("iterations", "iteration", "an experiment has no setting 'iteration'; did you mean 'iterations'?"),
        ('"copy"', '"copi"', "there is no task named 'copi'; did you mean 'copy'?"),
        ("lr = 0.01", "lr = -1", "lr must be a finite number that is not negative, got -1"),
        ("lr = 0.01", "folder = 3", "folder must be a path, got 3"),
        ("lr = 0.01", "folder = ''", "folder must be a path, got ''"),
        ("hidden_size = 6", "hidden_size = 0", "hidden_size must be a positive integer, got 0"),
    ],
)
def test_mistakes(mistake, experiment, old, new, line):
    assert mistake("train", experiment(TEXT.replace(old, new))) == line


def test_no_such_file(mistake, tmp_path):
    assert mistake("train", tmp_path / "no.toml") == f"there is no file '{tmp_path / 'no.toml'}'"


def test_a_picture_that_cannot_be_written_is_refused_before_training(mistake, experiment, tmp_path):
    assert "must end in" in mistake("train", experiment(), "--plot", tmp_path / "loss.gif")


def test_a_damaged_record_is_told_in_single_lines(call, experiment, tmp_path):
    call("train", experiment(), "--folder", tmp_path / "f")
    (tmp_path / "f" / "environment.json").write_text("")
    done = call("train", experiment(), "--folder", tmp_path / "f", "--json")
    assert done.exit_code == 0, done.stderr
    assert {line.partition(":")[0] for line in done.stderr.splitlines()} == {"warning"}


def test_a_network_and_a_task_do_without_a_file(call_json, experiment):
    typed = call_json(
        "train", "rnn", "copy", "--hidden", 6, "--iterations", 6, "--task-set", "delay=3",
        "--train", "batch_size=4", "--train", "lr=0.01", "--train", "test_size=10",
    )  # fmt: skip
    assert typed["metrics"] == call_json("train", experiment())["metrics"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rnn",), "name a task too: mnemoscope train rnn copy"),
        (("e.toml", "--hidden", "3"), "--hidden belongs to NETWORK TASK"),
        (("rn", "copy"), "did you mean 'rnn'"),
        (("rnn", "copi"), "did you mean 'copy'"),
        (("rnn", "copy", "--set", "nonlinearty=relu"), "did you mean 'nonlinearity'"),
        (("rnn", "copy", "--hidden", "0"), "hidden_size must be a positive integer, got 0"),
        (("rnn", "copy", "--train", "lrr=1"), "no setting 'lrr'"),
    ],
)
def test_mistakes_in_what_is_typed(mistake, arguments, words):
    assert words in mistake("train", *arguments)


def test_a_picture_replaces_its_own_kind_and_nothing_else(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "runs"))
    words = ("train", "rnn", "lag-copy", "--hidden", "3", "--iterations", "2", "--train", "batch_size=2")
    words += ("--train", "test_size=4", "--task-set", "length=4", "--task-set", "lag=1")
    for name in ("loss.svg", "loss.png", "loss.pdf", "loss.json", "loss.html"):
        (tmp_path / name).write_text("precious")
        refused = call(*words, "--plot", name)
        assert refused.exit_code == 2
        line = f"error: '{name}' is there and was not written by Mnemoscope: give --force, or another name\n"
        assert refused.stderr == line
        assert (tmp_path / name).read_text() == "precious"
        assert call(*words, "--plot", name, "--force").exit_code == 0
        assert call(*words, "--plot", name).exit_code == 0, "what we wrote is replaced without a question"


def test_parameters_instead_of_a_size(call_json, mistake, tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path))
    typed = ("train", "lstm", "copying", "--iterations", 1, "--train", "batch_size=2", "--train", "test_size=2")
    run = call_json(*typed, "--parameters", 1000)
    options = json.loads(Path(run["folder"], "config.json").read_text())
    (size,) = re.findall(r'"hidden_size": ?(\d+)', json.dumps(options))
    counts = {n: 4 * n * (10 + n) + 8 * n for n in range(1, 30)}  # of torch's LSTM with ten inputs
    assert int(size) == min(counts, key=lambda n: abs(counts[n] - 1000))
    assert "parameters must be at least" in mistake(*typed, "--parameters", 3)
    assert "not both" in mistake(*typed, "--parameters", 1000, "--hidden", 4)


def test_ctrl_c_names_the_run_and_the_way_on(call, tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path))

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mnemoscope.training.loop.Loop._advance", stop)
    done = call("train", "rnn", "copying", "--hidden", 4, "--iterations", 5)
    (folder,) = (path.name for path in tmp_path.iterdir() if path.is_dir())
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == (
        f"interrupted; the same command again, or `mnemoscope resume {folder}`, goes on"
    )
    (tmp_path / "mine.py").write_text("import torch\n\nclass Cell(torch.nn.GRUCell):\n    pass\n")
    typed = ("train", f"{tmp_path / 'mine.py'}:Cell", "copying", "--hidden", 4, "--iterations", 5)
    elsewhere = tmp_path_factory.mktemp("some") / "where"
    said = call(*typed, "--folder", elsewhere).stderr.splitlines()[-1]
    assert said == f"interrupted; the same command again, or `mnemoscope resume {elsewhere} --trust`, goes on"
    monkeypatch.undo()
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path))
    assert call("resume", folder).exit_code == 0
    assert call("resume", elsewhere, "--trust").exit_code == 0
