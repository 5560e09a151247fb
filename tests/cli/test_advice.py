"""Advice on a stranger's module, as it is typed."""

import json
import shlex
from pathlib import Path

import pytest
import torch

from mnemoscope.nn import NetworkSpec

CODE = '''
import torch
from torch import nn


class Two(nn.Module):
    """Two states as arguments."""

    def __init__(self, n_inp, n_hid, dt):
        super().__init__()
        self.dt, self.mix = dt, nn.Linear(n_inp + 2 * n_hid, n_hid)

    def forward(self, x, hy, hz):
        hz = hz + self.dt * torch.tanh(self.mix(torch.cat([x, hz, hy], 1)))
        return hy + self.dt * hz, hz


class Last(nn.Module):
    """Many to one."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.rnn = nn.LSTM(input_size, hidden_size, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0][:, -1]


class Timed(nn.Module):
    """Needs the time between two inputs."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.read, self.carry = nn.Linear(input_size, hidden_size), nn.Linear(hidden_size, hidden_size)

    def forward(self, x, hx, ts):
        return hx + ts * torch.tanh(self.read(x) + self.carry(hx))
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(CODE)
    return path


def test_the_command_of_an_error_works(call, file):
    failed = call("adapt", f"{file}:Last", "--hidden", "4")
    assert failed.exit_code == 2
    words = shlex.split(failed.stderr.partition("this works: mnemoscope ")[2])
    assert words == ["adapt", f"{file}:Last", "--hidden", "4", "--part", "rnn"]
    done = call(*words)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("read as a recurrent module, batch first, state (4) and (4), inputs d = 1")


def test_both_states_are_read(call, file):
    done = call("adapt", f"{file}:Two", "--hidden", "4", "--json")
    reading = json.loads(done.stdout)["reading"]
    assert reading.startswith("read as a cell, batch first, state hy (4) and hz (4), inputs d = 1")
    network = NetworkSpec(f"{file}:Two", hidden_size=4).build()
    x = torch.randn(6, 2, 1)
    hy, hz = torch.zeros(2, 4), torch.zeros(2, 4)
    with torch.no_grad():
        y, _ = network(x)
        for now, out in zip(x, y, strict=True):
            hy, hz = network.module(now, hy, hz)
            assert torch.equal(out, hy)


def test_a_further_argument_is_filled_and_said(file):
    network = NetworkSpec(f"{file}:Timed", hidden_size=4).build()
    assert "its forward gets ts=1.0 at every call" in network.guesses
    advised = NetworkSpec(f"{file}:Timed", hidden_size=4, advice={"keywords": {"ts": 0.5}})
    assert NetworkSpec.from_dict(json.loads(json.dumps(advised.to_dict()))).advice == {"keywords": {"ts": 0.5}}
    x = torch.randn(1, 3, 1)
    with torch.no_grad():
        torch.testing.assert_close(2 * advised.build()(x)[0], network(x)[0])


def test_a_written_file_is_a_network(call, file, tmp_path):
    done = call("adapt", f"{file}:Last", "--part", "rnn", "--hidden", "4", "--write", str(tmp_path / "mine.py"))
    assert done.exit_code == 0, done.stderr
    assert NetworkSpec(f"{tmp_path / 'mine.py'}:build", hidden_size=5, input_size=2).build().state_size == 10


def test_weights_of_a_file(file, tmp_path):
    trained = NetworkSpec(f"{file}:Two", hidden_size=4, seed=7).build().module
    torch.save({"state_dict": {f"model.{name}": p for name, p in trained.state_dict().items()}}, tmp_path / "a.pt")
    spec = NetworkSpec(f"{file}:Two", hidden_size=4, weights=tmp_path / "a.pt")
    assert spec.trained
    assert torch.equal(spec.build().module.mix.weight, trained.mix.weight)
    with pytest.raises(ValueError, match=r"must have 'mix.weight' of shape \(5, 11\), got \(4, 9\)"):
        spec.replace(hidden_size=5).build()


class Runs:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("ran"),)


def test_weights_of_a_stranger_run_no_code(call, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"weights": Runs()}, "code.pt")
    torch.save(torch.nn.GRU(1, 4), "module.pt")
    Path("text.pt").write_text("no weights at all")
    torch.save({}, "whole.pt")
    Path("cut.pt").write_bytes(Path("whole.pt").read_bytes()[:-40])
    for name, words in [("code.pt", "without running code"), ("module.pt", "torch.save(module.state_dict(), ..)")] + [
        (name, name) for name in ("text.pt", "cut.pt", "none.pt")
    ]:
        failed = call("adapt", f"{file}:Two", "--hidden", "4", "--weights", name)
        assert failed.exit_code == 2
        assert words in failed.stderr
        assert "weights_only" not in failed.stderr
        assert len(failed.stderr.splitlines()) == 1
    assert not Path("ran").exists()


@pytest.mark.parametrize(("flags", "words"), [(["--layout", "xyz"], "layout must be"), (["--method", "go"], "method")])
def test_wrong_advice_is_one_line(call, file, flags, words):
    failed = call("adapt", f"{file}:Two", *flags)
    assert failed.exit_code == 2
    assert words in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
