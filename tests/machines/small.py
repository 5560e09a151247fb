"""A small study that trains, and processes that work on it, are killed, and are asked to stop."""

import os
import signal
import sys
import time

from mnemoscope import runs
from mnemoscope.machines import Shard, stop_asked, stops_on_signals
from mnemoscope.studies.machinery import Share, Study, collected, grid
from mnemoscope.studies.machinery.execution import run_name

COMMON = {
    "network": "rnn",
    "task": "copy",
    "task_settings": {"delay": 3},
    "seeds": [0],
    "batch_size": 4,
    "test_size": 8,
    "lr": 0.01,
    "log_every": 5,
    "checkpoint_every": 5,
    "layout": "sequential",
}


def small_study(count=12, iterations=15, **settings):
    """A study of trainings of different widths."""
    common = COMMON | {"iterations": iterations} | settings
    return Study(
        name="small",
        title="",
        source="",
        claim="",
        references=(),
        runs=lambda scale: grid("fit", common, hidden_size=range(2, 2 + count)),
        rules=(),
        displays=(),
        entries={},
        methods="",
    )


def do_shard(study, text, place):
    """Do a shard's share, as the command does; return whether all of it is done."""
    share = Share(study.name, "smoke", study.plan("smoke"), Shard.parse(text), str(place))
    with stops_on_signals():
        list(share.run())
        return not stop_asked() and not share.missing()


def in_child(do, *arguments):
    """Run a function in a process of its own, which ends with 0 when it returns True, else with 1; return its id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        code = 0 if do(*arguments) else 1
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        os._exit(code)


def ended(child):
    """Wait for a process; return its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(seconds, do, *arguments, number=signal.SIGKILL):
    """Start a process, send it a signal after some seconds, and return how it ended."""
    child = in_child(do, *arguments)
    time.sleep(seconds)
    os.kill(child, number)
    return ended(child)


def numbers(study, root):
    """Return everything that a study's runs came to: results, lines of metrics, and the last weights, bit for bit."""
    found = {}
    for outcome in collected(study.plan("smoke"), root):
        folder = root / run_name(outcome.spec)
        inside = {}
        for one in runs.folders.scan(folder):
            record = runs.load(one.folder)
            last = record.latest()
            weights = {name: tensor.numpy().tobytes() for name, tensor in last.tensors.items()}
            inside[one.id] = (record.status, list(record.metrics), last.step, weights)
        found[outcome.spec.key] = (dict(outcome.summary), inside)
    return found
