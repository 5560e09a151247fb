"""A process that works on runs and is killed, again and again; started by test_crash.py, prints what it found as JSON.

The work is a small computation whose every number follows from those before: steps of a state and a generator, a line
of metrics each, a checkpoint every third. However it is interrupted, its end must be that of an uninterrupted one.
"""

import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import torch

from mnemoscope import runs

SPEC = {"task": "crash", "seed": 1}
STEPS = 9
EVERY = 3


def work(folder, pause=0.0):
    """Do the work, or the rest of it."""
    with runs.open(SPEC, folder=folder) as run:
        if run.finished:
            return
        generator = torch.Generator().manual_seed(1)
        x, step = torch.zeros(50, dtype=torch.float64), 0
        found = run.latest()
        if found is not None:
            step, x = found.step, found.tensors["x"]
            generator.set_state(found.tensors["generator"])
            assert found.state == {"sum": float(x.sum())}
        while step < STEPS:
            x = torch.tanh(x + torch.randn(50, generator=generator, dtype=torch.float64))
            step += 1
            run.append({"step": step, "sum": float(x.sum())})
            time.sleep(pause)
            if step % EVERY == 0:
                state = {"sum": float(x.sum())}
                run.checkpoint(step, {"x": x, "generator": generator.get_state()}, state, best=step == EVERY)
        run.finish({"sum": float(x.sum())})


def outcome(folder):
    """Return everything that the end of the work is judged by."""
    record = runs.load(Path(folder))
    last = record.latest()
    tensors = {name: tensor.numpy().tobytes().hex() for name, tensor in last.tensors.items()}
    files = sorted(path.name for path in (Path(folder) / "checkpoints").iterdir() if not path.name.startswith("."))
    return [record.status, record.summary, list(record.metrics), last.step, tensors, files, list(record.problems)]


def check_between(folder, reference):
    """Check a run as it was left: its metrics are a beginning of the reference's, its checkpoints whole."""
    if not (Path(folder) / "config.json").exists():
        return
    record = runs.load(Path(folder))
    assert record.status in ("interrupted", "finished"), record.status
    assert not record.problems, record.problems
    assert record.metrics == reference[2][: len(record.metrics)], record.metrics
    found = record.latest()
    if found is not None:
        assert found.state["sum"] == reference[2][found.step - 1]["sum"]
        assert len(record.metrics) >= found.step


def in_child(do):
    """Run a function in a process of its own; return its id."""
    child = os.fork()
    if child == 0:
        try:
            do()
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(3)
        os._exit(0)
    return child


def killed(folder, reference, pause, wait):
    """Start the work and kill it after `wait` seconds; return whether it was still at it."""
    child = in_child(lambda: work(folder, pause))
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0, "the worker failed"
    check_between(folder, reference)
    return os.WIFSIGNALED(status)


def kill_loop(base, reference, count, seed):
    """Kill the work at random moments until `count` kills have hit it, going on and starting anew in between."""
    moments = random.Random(seed)
    hits = attempts = completed = 0
    folder = base / "kill-0"
    while hits < count:
        attempts += 1
        hits += killed(folder, reference, 0.002, moments.uniform(0.0, 0.12))
        if (folder / "config.json").exists() and runs.load(folder).status == "finished":
            assert outcome(folder) == reference
            completed += 1
            folder = base / f"kill-{completed}"
    work(folder)
    assert outcome(folder) == reference
    return {"kills": hits, "completed": completed + 1, "attempts": attempts}


class Crash:
    """Ends the process at the k-th call that changes a file: before it, after it, or half-way through a write."""

    def __init__(self, k, how):
        self.left, self.how = k, how
        for place, name in ((os, "write"), (os, "fsync"), (os, "ftruncate"), (os, "mkdir")):
            setattr(place, name, self.wrapped(getattr(place, name), name))
        for name in ("replace", "rename", "unlink"):
            setattr(Path, name, self.wrapped(getattr(Path, name), name))

    def wrapped(self, original, name):
        def call(*arguments, **options):
            self.left -= 1
            if self.left == 0:
                if self.how == "after":
                    original(*arguments, **options)
                elif self.how == "half" and name == "write":
                    original(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os._exit(9)
            return None if name == "fsync" else original(*arguments, **options)

        return call


def crash_everywhere(base, reference, stride, ways):
    """End the work at every (stride-th) call that changes a file; going on must give the same end."""
    points = 0
    for how in ways:
        for k in range(1, 1000, stride):
            folder = base / f"{how}-{k}"

            def doomed(folder=folder, k=k, how=how):
                Crash(k, how)
                work(folder)

            _, status = os.waitpid(in_child(doomed), 0)
            code = os.waitstatus_to_exitcode(status)
            assert code in (0, 9), code
            check_between(folder, reference)
            work(folder)
            assert outcome(folder) == reference, (how, k)
            if code == 0:
                break
            points += 1
    return {"points": points}


def main():
    """Do what the arguments say: ``kill FOLDER COUNT SEED`` or ``crash FOLDER STRIDE WAY...``."""
    torch.set_num_threads(1)
    warnings.simplefilter("error", runs.RecordWarning)  # a killed process damages nothing: there is nothing to warn of
    warnings.filterwarnings("ignore", "run .* was killed before it came into being")
    what, base = sys.argv[1], Path(sys.argv[2])
    if what == "crash":
        os.fsync = lambda descriptor: None
    work(base / "reference")
    reference = outcome(base / "reference")
    assert len(reference[2]) == STEPS
    if what == "kill":
        found = kill_loop(base, reference, int(sys.argv[3]), int(sys.argv[4]))
    else:
        found = crash_everywhere(base, reference, int(sys.argv[3]), sys.argv[4:])
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
