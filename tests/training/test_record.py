"""Runs on disk: killed at any moment, resumed, and the end is the same bit for bit."""

import os
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest
import torch

import mnemoscope as ms
from mnemoscope import runs
from mnemoscope.machines.processes import process_command
from mnemoscope.training import fit, fit_population, resume

TASK = ms.tasks.create("lag-copy", length=6, lag=2, dimensions=2)
SETTINGS = {
    "iterations": 80,
    "batch_size": 8,
    "lr": 0.01,
    "data": "fresh",
    "schedule": "ziv",
    "validate_every": 20,
    "validation_size": 40,
    "test_size": 40,
    "checkpoint_every": 10,
}


def layer(seed=0):
    return ms.nn.SCORNN(2, 5, 2, dropout=0.2, generator=torch.Generator().manual_seed(seed))


def single(folder):
    return [fit(layer(), TASK, folder=folder, **SETTINGS)]


def population(folder):
    layers = [ms.nn.RNN(2, 5, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    settings = SETTINGS | {"lr": [0.01, 0.02, 0.003]}
    return fit_population(layers, TASK, folder=folder, layout="batched", **settings)


def killed(train, folder, seconds):
    """Start a training in a process of its own, and kill it after a while; say whether it was still at work."""
    child = os.fork()
    if child == 0:
        try:
            train(folder)
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def compare(found, wanted):
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.metrics == theirs.metrics
        assert ours.ending == theirs.ending
        for a, b in zip(ours.model.state_dict().values(), theirs.model.state_dict().values(), strict=True):
            assert torch.equal(a, b)


def kill_and_compare(train, folder, points, seed):
    train(folder / "warm")  # the first call of anything takes longer
    start = time.perf_counter()
    whole = train(folder / "whole")
    duration = time.perf_counter() - start
    chance = random.Random(seed)
    hits = 0
    for k in range(points):
        place = folder / f"killed-{k}"
        for _ in range(chance.randint(1, 2)):  # some are killed twice
            hits += killed(train, place, duration * chance.random())
        compare(train(place), whole)
        assert runs.load(place).metrics == runs.load(folder / "whole").metrics
    assert hits > 0


@pytest.mark.parametrize("train", [single, population])
def test_a_killed_run_ends_as_one_that_was_not(train, tmp_path):
    kill_and_compare(train, tmp_path, 3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("train", [single, population])
def test_twenty_kills(train, tmp_path):
    kill_and_compare(train, tmp_path, 20, seed=2)


PROGRAM = """
import sys, torch
import mnemoscope as ms
from mnemoscope.training import fit_population
layers = [ms.nn.RNN(2, 5, generator=torch.Generator().manual_seed(seed)) for seed in range(4)]
task = ms.tasks.create("lag-copy", length=6, lag=2, dimensions=2)
fit_population(layers, task, folder=sys.argv[1], layout=sys.argv[2], workers=2, iterations=2000, batch_size=8,
               data="fresh", checkpoint_every=100, test_size=40)
"""


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["processes", "batched-processes"])
def test_processes_end_with_their_starter_and_the_population_is_resumed(layout, tmp_path):
    """Killed with -9 while its processes are at work."""
    command = [sys.executable, "-c", PROGRAM]
    subprocess.run([*command, str(tmp_path / "whole"), layout], check=True)
    folder = tmp_path / "killed"
    starter = subprocess.Popen([*command, str(folder), layout])
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not list(folder.glob("group-*/checkpoints/step-[1-9]*.json")):
        time.sleep(0.01)
    workers = psutil.Process(starter.pid).children()
    assert len(workers) == 2
    starter.kill()
    starter.wait()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive
    found, whole = resume(folder), resume(tmp_path / "whole")
    assert found[0].layout == whole[0].layout
    compare(found, whole)


def interrupted(folder, step, **more):
    """Train until a callback gives up, as a person with Ctrl-C would."""

    def stop(moment):
        if moment.step >= step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(layer(), TASK, folder=folder, callbacks=[stop], **SETTINGS | more)


def test_resume_builds_the_network_again_from_the_record(tmp_path):
    interrupted(tmp_path / "run", 47)
    assert runs.load(tmp_path / "run").status == "interrupted"
    found = resume(tmp_path / "run")
    compare([found], single(tmp_path / "whole"))
    assert runs.load(tmp_path / "run").status == "finished"
    compare([resume(tmp_path / "run")], [found])  # one that has ended is read


def test_a_population_is_resumed_from_its_record(tmp_path):
    whole = population(tmp_path / "whole")
    layers = [ms.nn.RNN(2, 5, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]

    def stop(moment):
        if moment.step >= 47:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_population(
            layers,
            TASK,
            folder=tmp_path / "run",
            layout="batched",
            callbacks=[stop],
            **SETTINGS | {"lr": [0.01, 0.02, 0.003]},
        )
    compare(resume(tmp_path / "run"), whole)


def test_streams_are_resumed_with_their_state(tmp_path):
    from mnemoscope.tasks.datasets import DATASETS

    dataset = DATASETS["tinyshakespeare"]
    (tmp_path / dataset.folders[0]).mkdir()
    (tmp_path / dataset.folders[0] / dataset.files[0].name).write_text(
        "to be or not to be, that is the question. " * 60
    )
    task = ms.tasks.create("shakespeare", length=20, data=str(tmp_path), verify=False)
    settings = {"iterations": 50, "batch_size": 3, "checkpoint_every": 4, "log_every": 1}

    def run(folder, callbacks=()):
        made = ms.nn.LSTM(4, 5, generator=torch.Generator().manual_seed(0))
        return fit(made, task, folder=folder, callbacks=callbacks, **settings)

    def stop(moment):
        if moment.step >= 22:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", [stop])
    compare([resume(tmp_path / "run", data=tmp_path)], [run(tmp_path / "whole")])


def test_a_folder_of_another_run_is_refused(tmp_path):
    single(tmp_path / "run")
    with pytest.raises(ms.core.errors.UserError, match="has another configuration: .*lr is 0.01 there and 0.5 here"):
        fit(layer(), TASK, folder=tmp_path / "run", **SETTINGS | {"lr": 0.5})


def test_a_network_that_was_given_as_an_object_says_how_to_go_on(tmp_path):
    fit(torch.nn.GRU(2, 4), TASK, folder=tmp_path / "run", iterations=2, batch_size=4)
    with pytest.raises(ms.core.errors.UserError, match="the network GRU was given as an object.*call fit"):
        resume(tmp_path / "run")


def test_a_root_finds_the_run_of_the_same_content(tmp_path):
    first = fit(layer(), TASK, root=tmp_path, **SETTINGS)
    again = fit(layer(), TASK, root=tmp_path, **SETTINGS)
    other = fit(layer(1), TASK, root=tmp_path, **SETTINGS)
    assert first.folder == again.folder != other.folder
    compare([again], [first])


def test_a_process_of_a_population_runs_no_code_of_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "selectors.py").write_text("open('sprung', 'w')")
    (tmp_path / "sitecustomize.py").write_text("open('sprung', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    *start, code = process_command()
    imported = code.replace("from mnemoscope.machines.processes import serve; serve()", "import selectors, mnemoscope")
    assert imported != code
    subprocess.run([*start, imported], check=True, timeout=60)
    assert not (tmp_path / "sprung").exists()
