"""The command check."""

import json
import re
from pathlib import Path

import pytest

from mnemoscope.testing import CHECKS

CHECK_NAMES = {check.__name__ for check in CHECKS}


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "cells.py"
    path.write_text('''
import mnemoscope as ms
import torch


class Good(ms.nn.RNN):
    """Elman's network again."""


class Forgetful(ms.nn.RNN):
    """Ignores the state that it is given."""

    def forward(self, input, hx=None):
        print("forward")
        return super().forward(input, None)


def build():
    return Good(3, 4)


number = 3
''')
    return path


def test_a_network_that_keeps_the_contract(call, cells):
    done = call("check", f"{cells}:Good")
    assert done.exit_code == 0, done.stderr
    results = dict(re.findall(r"^(check_\w+) +(passed|skipped: .+?) *$", done.stdout, re.MULTILINE))
    assert set(results) == CHECK_NAMES
    passed = sum(result == "passed" for result in results.values())
    last = done.stdout.splitlines()[-1]
    assert last == f"Good: {passed} checks passed, {len(results) - passed} skipped"
    assert passed > 20


def test_json(call, cells):
    done = call("check", f"{cells}:build", "--json")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["network"] == f"{cells}:build"
    assert document["ok"] is True
    assert document["failure"] is None
    assert set(document["passed"]) | set(document["skipped"]) == CHECK_NAMES
    assert any("takes no arguments" in reason for reason in document["skipped"].values())


def test_a_registered_network_in_json(call):
    done = call("check", "gru", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["ok"] is True


def test_a_network_that_does_not(call, cells):
    done = call("check", f"{cells}:Forgetful")
    assert (done.exit_code, done.stdout) == (1, "")
    *failures, last = [line for line in done.stderr.splitlines() if line != "forward" and line[0] != "("]
    assert len(failures) > 1
    assert last.startswith(f"Forgetful: {len(failures)} checks failed, ")
    assert last.endswith("passed")
    assert failures[0].startswith("failed: Forgetful fails check_")
    forms = [line.startswith("failed (form): Forgetful fails check_") for line in failures]
    assert forms == sorted(forms)  # wrong numbers come first


def test_a_network_that_does_not_in_json(call, cells):
    done = call("check", f"{cells}:Forgetful", "--json")
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert document["ok"] is False
    assert document["failure"].startswith("Forgetful fails check_")
    assert document["failures"][0] == document["failure"]
    assert len(document["failures"]) > 1
    assert document["passed"]


def test_what_is_no_network(call, cells):
    done = call("check", f"{cells}:number")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: factory must be a class or a function that builds the network")
    assert done.stderr.count("\n") == 1


def test_code_that_ends_the_program_does_not_pass(tmp_path, process):
    file = tmp_path / "leaving.py"
    file.write_text(
        "import sys\nfrom torch import nn\n"
        "class Exit(nn.Module):\n    def __init__(self, input_size, hidden_size): sys.exit(0)\n"
    )
    done = process("check", f"{file}:Exit")
    assert done.returncode == 1
    assert "SystemExit" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_and_a_closed_output_are_one_line(process):
    with Path("/dev/full").open("w") as full:
        done = process("networks", capture_output=False, stdout=full, stderr=-1)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the output cannot be written")
    assert done.stderr.count("\n") == 1


def test_a_width_of_zero_is_no_traceback(process):
    done = process("show", "lstm", env={"COLUMNS": "0"})
    assert done.returncode == 0
    assert "Equations" in done.stdout


def test_a_plain_cell_on_the_level_of_modules(call, tmp_path):
    path = tmp_path / "plain.py"
    path.write_text("import torch\n\nclass Cell(torch.nn.GRUCell):\n    pass\n")
    done = call("check", f"{path}:Cell", "--level", "module")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Cell: 16 checks passed, 0 skipped"
    wrong = call("check", f"{path}:Cell", "--level", "all")
    assert (wrong.exit_code, wrong.stderr) == (2, "error: level must be 'contract' or 'module', got 'all'\n")


PLAIN = """
import torch
from torch import nn


class BatchFirst(nn.Module):
    def __init__(self, input_size, hidden_size, scale):
        super().__init__()
        self.rnn, self.scale = nn.GRU(input_size, hidden_size, batch_first=True), scale

    def forward(self, x, h=None):
        y, h = self.rnn(x, h)
        return self.scale * y, h


class Mixing(BatchFirst):
    def forward(self, x, h=None):
        y, h = super().forward(x, h)
        return y + y.mean(0, keepdim=True), h


class Convolution(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.kernel = nn.Parameter(1e3 * torch.randn(d_model, 64))

    def forward(self, x):
        steps = x.shape[1]
        kernel = torch.fft.rfft(self.kernel[:, :steps], 2 * steps)
        return torch.fft.irfft(torch.fft.rfft(x.mT, 2 * steps) * kernel, 2 * steps)[..., :steps].mT


class Breaks(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.read = nn.Linear(input_size, hidden_size)

    def forward(self, x, h):
        if h.abs().max() > 0:
            raise ValueError("boom")
        return self.read(x) + h
"""


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text(PLAIN)
    return path


def test_a_batch_first_layer_gives_no_alarm_and_takes_the_same_options(call, plain):
    done = call("check", f"{plain}:BatchFirst", "--hidden", 6, "--set", "scale=2")
    assert done.exit_code == 0, done.stderr
    assert "BatchFirst: 16 checks passed, 0 skipped" in done.stdout
    document = json.loads(call("check", f"{plain}:BatchFirst", "--set", "scale=2", "--json").stdout)
    assert document["ok"] is True


def test_a_convolution_by_fft_is_causal_but_for_rounding(call, plain):
    done = call("check", f"{plain}:Convolution")
    assert done.exit_code == 0, done.stderr
    assert re.search(r"check_answers_causal +passed", done.stdout)


def test_examples_that_mix_and_code_that_raises_are_named(call, plain):
    done = call("check", f"{plain}:Mixing", "--set", "scale=1")
    assert done.exit_code == 1
    assert "must treat the examples of a batch one by one" in done.stderr
    done = call("check", f"{plain}:Breaks")
    assert done.exit_code == 1
    assert re.search(r"which raised ValueError: boom \(plain.py, line \d+\) when it came back", done.stderr)


CELLS = """
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.mix = nn.Linear(input_size + hidden_size, hidden_size)

    def forward(self, x, h):
        print("step")
        return torch.tanh(self.mix(torch.cat([x, h], -1)))


class Complex(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.read = nn.Parameter(torch.randn(hidden_size, input_size, dtype=torch.cfloat))

    def forward(self, x, h):
        h = 0.9j * h + x.to(self.read.dtype) @ self.read.mT
        return h.real, h
"""


def test_one_error_of_many_checks_is_told_once(call, tmp_path):
    (tmp_path / "c.py").write_text(CELLS)
    done = call("check", f"{tmp_path / 'c.py'}:Cell")
    assert done.exit_code == 0, done.stderr
    asked = done.stdout.partition("it would also have to")[2]
    assert asked.count("missing 1 required positional argument: 'h'") == 1
    assert re.search(r"be called as torch.nn.RNN is, forward\(input, hx=None\), which \d+ checks do", asked)


def test_a_cell_that_prints_does_not_bury_what_is_said(tmp_path, process):
    (tmp_path / "c.py").write_text(CELLS)
    done = process("adapt", f"{tmp_path / 'c.py'}:Cell")
    assert done.stdout.startswith("read as a cell")
    lines = done.stderr.splitlines()
    assert lines == ["step"] * 20 + ["(what the given code prints after this is left out)"]


def test_complex_weights_are_checked_in_double_precision(call, tmp_path):
    """`double()` leaves them in complex64, where finite differences show nothing."""
    (tmp_path / "c.py").write_text(CELLS)
    done = call("check", f"{tmp_path / 'c.py'}:Complex", "--level", "module")
    assert done.exit_code == 0, done.stderr
