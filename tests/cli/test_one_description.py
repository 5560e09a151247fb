"""One network, one way to be built: a plain cell from a file, at a number of parameters, in every command."""

import json

import pytest

CELL = """
import torch

class OrthGate(torch.nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.inp = torch.nn.Linear(input_size, hidden_size)
        rotation = torch.nn.Linear(hidden_size, hidden_size, bias=False)
        self.rot = torch.nn.utils.parametrizations.orthogonal(rotation)
        self.gate = torch.nn.Linear(input_size + hidden_size, hidden_size)

    def forward(self, x, h=None):
        h = x.new_zeros(len(x), self.rot.weight.shape[0]) if h is None else h
        g = torch.sigmoid(self.gate(torch.cat([x, h], -1)))
        return g * self.rot(h) + (1 - g) * torch.tanh(self.inp(x))
"""


@pytest.fixture
def cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_cell.py").write_text(CELL)
    return "my_cell.py:OrthGate"


def width(parameters, inputs):
    """The hidden size n whose 2n^2 + 2n(d + 1) numbers are nearest."""
    return min(range(1, 99), key=lambda n: abs(2 * n * n + 2 * n * (inputs + 1) - parameters))


def test_measure(call_json, mistake, cell):
    found = call_json("measure", "resources", cell, "--parameters", 400, "--lengths", "4,8,16", "--repeats", 1)
    n = width(400, 1)
    assert found["parameters"] == 2 * n * n + 4 * n
    assert "not both" in mistake("measure", "spectrum", cell, "--parameters", 400, "--hidden", 8)
    assert "beside --parameters" in mistake("measure", "spectrum", "gru", "--count", "all")


def test_profile_and_compare(call, cell):
    done = call("profile", cell, "--parameters", 400, "--dry-run")
    assert done.exit_code == 0, done.stderr
    done = call("compare", cell, "gru", "--parameters", 400, "--dry-run", "--json")
    assert {each["network"] for each in json.loads(done.stdout)["plan"]} == {"OrthGate", "gru"}


def test_train(call_json, cell):
    small = ("--task-set", "delay=2", "--iterations", 2, "--train", "batch_size=2", "--train", "test_size=2")
    found = call_json("train", cell, "copy", "--parameters", 400, *small)
    assert found["status"] == "finished"


def test_capacity(call_json, cell):
    small = ("--iterations", 2, "--seeds", 2, "--grid", "1", "--train", "batch_size=2", "--train", "test_size=2")
    (found,) = call_json("capacity", cell, "copy", "--parameters", 400, *small)["capacities"]
    n = width(400, 10)
    assert found["network"] == f"OrthGate (n = {n})"
    assert found["parameters"] == 2 * n * n + 22 * n + 9 * (n + 1)


def test_check(call, cell):
    done = call("check", cell, "--level", "module")
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    "typed",
    [
        ("compare", "CELL", "lstm", "--parameters", 3),
        ("capacity", "CELL", "copy", "--parameters", 3),
        ("train", "CELL", "copy", "--parameters", 3),
        ("measure", "spectrum", "CELL", "--parameters", 3),
    ],
)
def test_a_budget_that_it_cannot_reach(mistake, cell, typed):
    said = mistake(*(cell if word == "CELL" else word for word in typed))
    assert "parameters must be at least " in said
    assert "which OrthGate has at size 1, got 3" in said
