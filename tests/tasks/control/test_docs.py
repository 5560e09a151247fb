"""The page on control: its code runs as written, its tables are complete."""

import re
import subprocess
import sys
from pathlib import Path

from mnemoscope.tasks import control
from mnemoscope.tasks.control.minigrid import PAIRS
from mnemoscope.training import PPO

PAGE = Path(__file__).parents[3] / "docs" / "control.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_code_runs_and_an_environment_of_ones_own_is_learned_in():
    first, own = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    brief = first.replace("iterations=60", "iterations=1, worlds=2, frames=8, test_size=2")
    assert brief != first
    check = """
coin = ms.tasks.control.create("last-coin", length=5)
run = ms.training.ppo(ms.nn.GRU(2, 4), coin, iterations=1, worlds=2, frames=8, test_size=4)
assert 0 <= run.score <= 1 and coin.harder(7).steps == 7
worlds, before, paid = coin.worlds(3, seed=0), torch.zeros(3, dtype=torch.int64), torch.zeros(3)
for _ in range(5):
    now = worlds.observation.argmax(-1)
    reward, ended = worlds.step(before)
    before, paid = now, paid + reward
assert torch.equal(paid, torch.ones(3)) and ended.all()
"""
    done = subprocess.run([sys.executable, "-c", brief + own + check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_tables_are_complete():
    rows = [row.split(" | ") for row in re.findall(r"^\| (.*) \|$", TEXT, re.MULTILINE)]
    assert set(control.names()) <= {row[0] for row in rows}
    assert PAIRS.items() <= {(row[0], row[1]) for row in rows}
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert set(PPO.names()) <= named
    assert (PAGE.parent / "control.svg").is_file()
