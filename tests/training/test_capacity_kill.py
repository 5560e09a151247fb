"""A capacity search that is killed at any moment and called again ends in the same numbers, bit for bit."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import json, sys, torch
torch.set_num_threads(1)
import mnemoscope as ms
task = ms.tasks.create("copying", symbols=1, alphabet=2)
found = ms.training.capacity(
    "rnn", task, hidden_size=8, seeds=2, grid=[1, 2, 3], iterations=150, batch_size=8, test_size=50,
    validation_size=50, validate_every=30, checkpoint_every=10, lr=0.003, criterion=0.8, warm_start=True,
    layout="batched", folder=sys.argv[1],
)
print(json.dumps([found.scores.tolist(), found.steps.tolist(), found.limit, list(found.seed_limits)]))
"""


def start(folder: Path) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, text=True)


def finished(folder: Path) -> tuple[list, float]:
    begin = time.monotonic()
    running = start(folder)
    out, _ = running.communicate(timeout=200)
    assert running.returncode == 0
    return json.loads(out), time.monotonic() - begin


def killed(folder: Path, seconds: float) -> None:
    running = start(folder)
    time.sleep(seconds)
    running.send_signal(signal.SIGKILL)
    running.communicate()


def endings(kills: int, tmp_path: Path) -> None:
    whole, took = finished(tmp_path / "whole")
    draw = random.Random(7)
    for k in range(kills):
        folder = tmp_path / f"killed-{k}"
        killed(folder, draw.uniform(0.35, 1.0) * took)
        again, _ = finished(folder)
        assert again == whole


def test_a_kill(tmp_path) -> None:
    endings(1, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_twenty_kills(tmp_path) -> None:
    endings(20, tmp_path)
