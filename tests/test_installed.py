"""The package as others get it: wheel and source, built, installed into an empty environment, and its API reference."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CELL = """
import torch

class Cell(torch.nn.GRUCell):
    pass
"""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
QUIET = {"env": ENVIRONMENT, "capture_output": True, "text": True}


def run(*words, folder=None):
    """Run a program and return what it printed, or fail with what it said."""
    done = subprocess.run([str(word) for word in words], cwd=folder, check=False, **QUIET)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def environment(folder, *wanted):
    """Make an environment with nothing but these packages; skip where they cannot be fetched."""
    run(sys.executable, "-m", "venv", folder)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
    done = subprocess.run([*map(str, pip), *map(str, wanted)], check=False, **QUIET)
    if done.returncode and any(word in done.stderr for word in ("NewConnectionError", "No matching distribution")):
        pytest.skip(f"packages cannot be fetched here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "bin"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel, which is made of the source package, and the source package."""
    folder = tmp_path_factory.mktemp("built")
    tools = environment(folder / "tools", "build")
    run(tools / "python", "-m", "build", "--outdir", folder, ROOT)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


@pytest.mark.heavy
@pytest.mark.timeout(3600)
def test_wheel_and_source_work_in_an_empty_environment(built, tmp_path):
    wheel, source = built
    programs = environment(tmp_path / "empty", wheel)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "my_cell.py").write_text(CELL)
    for package in (wheel, source):
        run(programs / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", package)
        found = run(programs / "python", "-c", "import mnemoscope; print(mnemoscope.__file__)", folder=elsewhere)
        assert Path(found.strip()).is_relative_to(tmp_path / "empty")
        command = programs / "mnemoscope"
        small = ("--quick", "--seeds", "2", "--json")
        profile = json.loads(run(command, "profile", "rnn", "--hidden", "6", *small, folder=elsewhere))
        assert profile["verdict"] is not None  # beside the atlas, which is a file of the package
        few = ("--parameters", "60", "--quick", "--seeds", "2")
        run(command, "compare", "my_cell.py:Cell", "lstm", *few, folder=elsewhere)
        assert any("<svg" in page.read_text() or "<script" in page.read_text() for page in elsewhere.glob("*.html"))
        for page in elsewhere.glob("*.html"):
            page.unlink()
    study = run(programs / "mnemoscope", "study", "run", "ziv-theorem-1", "--scale", "smoke", folder=elsewhere)
    assert "smoke scale: reproduced" in study
    pages = run(programs / "mnemoscope", "check", "my_cell.py:Cell", "--level", "module", folder=elsewhere)
    assert "16 checks passed" in pages


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_the_reference_is_written_without_a_warning(tmp_path):
    pytest.importorskip("pdoc", reason='the API reference needs the extra docs: pip install "mnemoscope[docs]"')
    said = run(sys.executable, ROOT / "scripts" / "reference", tmp_path / "reference")
    assert said.endswith(f"pages in {tmp_path / 'reference'}\n")
    page = (tmp_path / "reference" / "mnemoscope" / "measures.html").read_text()
    assert "separation_rank" in page
    assert "Start-End separation rank of a network" in page
