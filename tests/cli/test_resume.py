"""The command ``resume``: after an interruption, and after kill -9, the same end."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

import mnemoscope as ms
from mnemoscope import runs
from mnemoscope.training import fit, read_experiment

TEXT = """
iterations = 400
batch_size = 4
log_every = 20
checkpoint_every = 20
test_size = 10

[network]
name = "rnn"
hidden_size = 6

[task]
name = "copy"
delay = 3
"""
PROGRAM = "import sys; sys.argv[0] = 'mnemoscope'; from mnemoscope.cli.main import app; app()"


@pytest.fixture(autouse=True)
def _own_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "runs"))


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(TEXT)
    return path


def test_a_run_is_resumed_by_the_beginning_of_its_id(call_json, tmp_path):
    def stop(moment):
        if moment.step >= 3:
            raise KeyboardInterrupt

    task = ms.tasks.create("copy", delay=3)
    layer = ms.nn.RNN(10, 6, generator=torch.Generator().manual_seed(0))
    with pytest.raises(KeyboardInterrupt):
        fit(layer, task, iterations=6, batch_size=4, test_size=5, root=tmp_path / "runs", callbacks=[stop])
    (folder,) = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    found = call_json("resume", folder.name[:8])
    assert (found["status"], found["step"]) == ("finished", 6)
    whole = ms.nn.RNN(10, 6, generator=torch.Generator().manual_seed(0))
    wanted = fit(whole, task, iterations=6, batch_size=4, test_size=5)
    assert found["metrics"] == list(wanted.metrics)
    assert found["score"] == wanted.score
    assert call_json("resume", folder) == found


def test_a_run_that_is_not_there(mistake):
    assert mistake("resume", "nothing").startswith("no run in ")


@pytest.mark.slow
def test_kill_9_and_resume_as_processes(experiment, tmp_path, process):
    whole = read_experiment(experiment).run(folder=tmp_path / "whole")
    folder = tmp_path / "killed"
    command = [sys.executable, "-c", PROGRAM, "train", str(experiment), "--folder", str(folder)]
    child = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not len(list(folder.glob("checkpoints/*.json"))) > 1:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert runs.load(folder).status == "interrupted"
    done = process("resume", str(folder), "--json", env={"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"] == list(whole.metrics)
    final = runs.load(folder).latest().tensors
    for name, tensor in runs.load(tmp_path / "whole").latest().tensors.items():
        if name.startswith("member/"):
            assert torch.equal(final[name], tensor)
