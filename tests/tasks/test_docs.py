"""The page on tasks: its code runs as written, its table is complete, its pictures are there."""

import re
import subprocess
import sys
from pathlib import Path

import mnemoscope as ms

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_code_runs_and_the_task_of_ones_own_works():
    first, *_, own = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    check = """
made = ms.tasks.create("last-sign", length=9)
batch = made.sample(50, torch.Generator().manual_seed(0))
assert abs(made.loss(torch.zeros(9, 50, 2), batch).item() - made.baseline) < 1e-3
assert made.harder(4).steps == 4 and "last-sign" in ms.tasks.names()
"""
    done = subprocess.run([sys.executable, "-c", first + own + check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_task_has_its_row():
    rows = [name for row in re.findall(r"^\| ([\w, -]+) \|", TEXT, re.MULTILINE) for name in row.split(", ")]
    assert set(ms.tasks.names()) <= set(rows)


def test_pictures_are_there():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", TEXT)
    assert len(pictures) >= 9
    assert all((PAGE.parent / picture).is_file() for picture in pictures)
