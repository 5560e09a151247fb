"""The commands ``ladder``, ``remember`` and ``recall``."""

import pytest

TINY = (
    *("--hidden", 3, "--seeds", 2, "--iterations", 2),
    *("--train", "batch_size=4", "--train", "test_size=4", "--train", "validation_size=4"),
    *("--train", "layout=sequential"),
)


def test_a_ladder_as_json_goes_on_by_resume(call, call_json, tmp_path):
    asked = ("rnn", *TINY, "--rungs", "Z2,S3", "--steps", 4, "--factor", 2, "--folder", tmp_path / "l")
    found = call_json("ladder", *asked)
    assert (found["rungs"], found["longest"], found["seeds"]) == (["Z2", "S3"], 8, [0, 1])
    again = call_json("resume", tmp_path / "l")
    assert again["scores"] == found["scores"]
    done = call("ladder", *asked, "--plot", tmp_path / "l.svg")
    assert done.stdout.startswith("rnn (n = 3) trained at length 4 solves, of 8: Z2 ")
    assert (tmp_path / "l.svg").read_text().startswith("<svg")


def test_remember_a_network_and_a_run(call, call_json, tmp_path):
    asked = ("rnn", "copying", *TINY, "--task-set", "delay=3", "--task-set", "symbols=1", "--examples", 8)
    found = call_json("remember", *asked, "--folder", tmp_path / "r")
    assert found["multiples"] == [1, 2, 4, 8]
    assert len(found["carried"]) == 2
    assert call_json("resume", tmp_path / "r")["carried"] == found["carried"]
    trained = call_json("train", "rnn", "copying", *TINY[:2], "--iterations", 2, "--folder", tmp_path / "t")
    assert trained["status"] == "finished"
    done = call("remember", tmp_path / "t", "--examples", 4)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("rnn on copying, trained at ")
    refused = call("remember", tmp_path / "t", "copying")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "a run has its network and its task" in refused.stderr


def test_recall_in_bits(call_json, tmp_path):
    asked = ("rnn", *TINY, "--variants", "mqar,mqar-forgetting", "--vocabulary", 8, "--steps", 12)
    found = call_json("recall", *asked, "--folder", tmp_path / "r")
    assert (found["variants"], found["values"], found["state_bits"]) == (["mqar", "mqar-forgetting"], 4, 96)
    assert found["bits"] == [2.0 * pairs for pairs in found["pairs"]]
    again = call_json("recall", *asked, "--folder", tmp_path / "r")
    assert again["capacities"] == found["capacities"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("ladder", "rnn", "--rungs", "S7"), "a rung must be one of Z2, Z3, Z60, S3, A5, S5, dyck, got 'S7'"),
        (("ladder", "rnn", "--steps", 1), "length and factor must be at least 2, got length=1 and factor=8"),
        (("ladder", "nothing"), "there is no network named 'nothing'"),
        (("recall", "rnn", "--vocabulary", 1), "vocabulary must be a whole number of at least 4, got 1"),
        (("recall", "rnn", "--variants", "mqr"), "a variant must be"),
        (("remember", "rnn", "adding"), "answers that are classes, and those of adding are numbers"),
        (("remember", "rnn", "copyng"), "did you mean 'copying'"),
    ],
)
def test_mistakes_are_one_line(call, words, line):
    done = call(*words)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert line in done.stderr
