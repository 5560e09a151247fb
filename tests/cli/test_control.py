"""Environments on the command line."""

import json

import pytest


@pytest.fixture(autouse=True)
def _own_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "runs"))


BRIEF = (
    "--hidden",
    4,
    "--iterations",
    2,
    "--task-set",
    "corridor=2",
    *("--train", "worlds=2"),
    *("--train", "frames=8"),
)


def test_train_and_resume(call, tmp_path):
    done = call("train", "gru", "t-maze", *BRIEF, "--train", "test_size=4", "--plot", tmp_path / "t.svg")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("GRU on t-maze: score ")
    assert "side of the cue" in (tmp_path / "t.svg").read_text()
    (folder,) = (tmp_path / "runs").glob("*-fit-t-maze-gru")
    again = call("resume", folder, "--json")
    found = json.loads(again.stdout)
    assert (found["task"], found["step"], found["tests"].keys()) == ("t-maze", 2, {"corridor=2"})


def test_an_experiment_in_a_file(call, tmp_path):
    settings = "iterations = 1\nworlds = 2\nframes = 8\ntest_size = 2\n"
    text = settings + 'network = "gru"\n[task]\nname = "repeat-previous"\nlag = 2\n'
    (tmp_path / "e.toml").write_text(text)
    done = call("train", tmp_path / "e.toml", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["metric"] == "share of right answers"
    (tmp_path / "e.toml").write_text(text.replace("worlds = 2", "seeds = [0, 1]"))
    done = call("train", tmp_path / "e.toml")
    assert done.exit_code == 2
    assert "seeds has no meaning in an environment (repeat-previous)" in done.stderr


def test_capacity(call, tmp_path):
    done = call("capacity", "gru", "t-maze", *BRIEF[:4], *BRIEF[6:], "--grid", "1,2", "--seeds", 1, "--json")
    assert done.exit_code == 0, done.stderr
    (found,) = json.loads(done.stdout)["capacities"]
    assert (found["axis"], found["levels"]) == ("corridor", [1, 2])


def test_environments_are_listed_and_shown(call):
    listed = json.loads(call("tasks", "--json").stdout)["environments"]
    assert {one["name"] for one in listed} >= {"t-maze", "repeat-previous", "minigrid"}
    assert "mnemoscope train lstm t-maze" in " ".join(call("tasks").stdout.split())
    shown = call("task", "show", "t-maze", "--set", "corridor=30").stdout
    assert "93 steps at most, 4 inputs, 3 actions" in shown
    assert json.loads(call("task", "show", "repeat-previous", "--json").stdout)["memoryless"] == 0.25


def test_what_an_environment_rests_on_is_cited(call):
    found = json.loads(call("cite", "t-maze", "minigrid", "--json").stdout)["references"]
    keys = {entry["key"] for entry in found}
    assert keys == {"bakker2001", "chevalier2023", "kerg2020", "schulman2016", "schulman2017"}


def test_a_name_of_nothing_is_told_with_the_nearest_of_all_that_can_be_cited(mistake):
    sorts = "there is no network, measure, task, environment or claim named"
    assert mistake("cite", "memory-capacit") == f"{sorts} 'memory-capacit'; did you mean 'memory-capacity'?"
    assert mistake("cite", "zzzz").startswith(f"{sorts} 'zzzz'")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "corelnet", "t-maze"), "control needs a network with a step, and corelnet answers once"),
        (("train", "cp", "t-maze"), "control needs a network with a step, and cp answers once"),
        (("capacity", "tt", "t-maze"), "control needs a network with a step, and tt answers once"),
        (("train", "lstm", "t-mase"), "there is no task or environment named 't-mase'; did you mean 't-maze'?"),
        (
            ("train", "lstm", "t-maze", "--task-set", "corridor=0"),
            "corridor must be a whole number of at least 1, got 0",
        ),
        (
            ("train", "lstm", "t-maze", "--train", "epochz=1"),
            "an experiment has no setting 'epochz'; did you mean 'epochs'?",
        ),
        (("train", "lstm", "t-maze", "--train", "data=fixed"), "training in an environment has no setting 'data'"),
        (
            ("train", "lstm", "t-maze", "--data", "here"),
            "the environment t-maze has no setting 'data'; it has corridor",
        ),
        (("train", "lstm", "t-maze", "--set", "bidirectional=true"), "control needs a causal network"),
        (
            ("capacity", "lstm", "t-maze", "--train", "layout=batched"),
            "training has no setting 'layout' within a search",
        ),
        (("task", "show", "t-maze", "--plot", "x.svg"), "what t-maze shows depends on what is done in it"),
        (("task", "show", "t-maze", "--data", "here"), "the environment t-maze reads no data, got --data here"),
    ],
)
def test_bad_input_is_one_line(call, words, message):
    done = call(*words)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {message}")
    assert len(done.stderr.splitlines()) == 1
