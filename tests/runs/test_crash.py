"""A process that is killed at any moment loses nothing that was checkpointed, and what goes on ends the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("worker.py")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows does not have")


def worker(*arguments):
    done = subprocess.run(
        [sys.executable, str(WORKER), *map(str, arguments)], capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_crash_at_any_write_changes_nothing(tmp_path):
    assert worker("crash", tmp_path, 3, "half")["points"] > 15


@pytest.mark.slow
def test_a_crash_before_in_or_after_any_write_changes_nothing(tmp_path):
    assert worker("crash", tmp_path, 1, "before", "half", "after")["points"] > 120


def test_killed_at_random_moments(tmp_path):
    assert worker("kill", tmp_path, 3, 0)["kills"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_killed_at_twenty_random_moments(tmp_path, seed):
    assert worker("kill", tmp_path, 20, seed)["kills"] == 20
