"""Packing: as many networks in one program as the memory of a worker holds, on this machine and elsewhere."""

import os
import resource
import subprocess
import sys

import pytest
import torch
from tests.training.test_population import compare, group_of, networks

import mnemoscope as ms
from mnemoscope import runs
from mnemoscope.machines.processes import Processes
from mnemoscope.training import fit, fit_population, groups
from mnemoscope.training.groups import choose_layout, member_bytes, named_layout

TASK = ms.tasks.create("copy", delay=4)


@pytest.fixture
def batched_is_fastest(monkeypatch):
    """One program is always the fastest, by the number of times that it is run."""
    monkeypatch.setattr(
        groups, "_seconds", lambda group, layout, *_: len(layout.groups) / max(1, layout.processes) * 1e3
    )


class Elsewhere:
    """Workers that are never given anything."""

    count, threads = 2, 1

    def __init__(self, memory):
        self.memory = memory


def sizes(layout):
    return [len(numbers) for numbers in layout.groups]


@pytest.mark.usefixtures("batched_is_fastest")
@pytest.mark.parametrize(
    ("holds", "wanted"), [(99, [7]), (7, [7]), (6.9, [6, 1]), (3, [3, 3, 1]), (1.5, [1] * 7), (0.01, [1] * 7)]
)
def test_this_machine_holds_so_many(monkeypatch, holds, wanted):
    group = group_of(networks("rnn", TASK, 7), TASK)
    monkeypatch.setenv("MNEMOSCOPE_MEMORY", repr(holds * (member_bytes(group) + 1) / 2**30))
    layout = choose_layout(group, 1, movable=True)
    assert sizes(layout) == wanted
    assert layout.name == ("sequential" if max(wanted) == 1 else "batched")
    assert sorted(number for one in layout.groups for number in one) == list(range(7))


@pytest.mark.usefixtures("batched_is_fastest")
@pytest.mark.parametrize(("holds", "wanted"), [(99, [3, 4]), (3, [3, 3, 1]), (2, [2, 1, 2, 2]), (0.5, [1] * 7)])
@pytest.mark.parametrize("asked", [None, "batched-processes"])
def test_workers_elsewhere_hold_so_many(holds, wanted, asked):
    group = group_of(networks("rnn", TASK, 7), TASK)
    workers = Elsewhere(holds * member_bytes(group))
    layout = choose_layout(group, 2, movable=True, elsewhere=workers) if asked is None else named_layout(asked, 7, 2, 1)
    layout = groups.sent(layout, group, workers)
    assert sizes(layout) == wanted
    assert (layout.processes, layout.threads) == (2, 1)


@pytest.mark.slow
def test_workers_that_hold_two_train_the_same(tmp_path):
    common = {"iterations": 10, "batch_size": 5, "test_size": 20}
    alone = [fit(one, TASK, seed=k, **common) for k, one in enumerate(networks("rnn", TASK, 5))]
    workers = Processes(2)
    workers.memory = 2.5 * member_bytes(group_of(networks("rnn", TASK, 5), TASK, batch_size=5))
    home = tmp_path / "population"
    found = fit_population(
        networks("rnn", TASK, 5), TASK, layout="batched-processes", workers=workers, folder=home, **common
    )
    compare(found, alone, 1e-5)
    members = [runs.load(one).spec["members"] for one in sorted(home.glob("group-*"))]
    assert members == [[0, 1], [2, 3], [4]]


@pytest.mark.slow
def test_a_share_of_the_memory_is_what_each_process_may_plan_with(tmp_path, monkeypatch):
    (tmp_path / "asking.py").write_text(
        "from mnemoscope.core.memory import allowance\n\n\ndef work(job, tell):\n    return allowance()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MNEMOSCOPE_MEMORY", "3")
    workers = Processes(2)
    found = dict(workers.run("asking:work", [{}, {}]))
    assert workers.memory == 1.5 * 2**30
    assert found == {0: 1.5 * 2**30, 1: 1.5 * 2**30}


TAKEN = """
import sys
from tests.training.test_packing import taken
print(*taken(sys.argv[1], int(sys.argv[2])))
"""


def taken(name, members):
    """Return what a step of so many networks has taken at its most, and what was foretold, in bytes."""
    torch.set_num_threads(1)
    task = ms.tasks.create("copy", delay=150)
    group = group_of([ms.nn.create(name, task.input_size, 64) for _ in range(members)], task, batch_size=64)
    step = groups._step(group, group.numbers, None)
    batches = [groups._batch(group, 64)] * members
    first = group_of([ms.nn.create(name, 10, 4)], TASK)
    groups._step(first, [0], None)([groups._batch(first, 4)])  # whatever is loaded at the first step
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step(batches)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * (after - before), members * member_bytes(group)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "members"), [("lstm", 1), ("lstm", 6), ("s4", 3), ("transformer", 3), ("memlstm", 1)])
def test_what_is_foretold_is_what_a_step_takes(name, members):
    places = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", TAKEN, name, str(members)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": places},
    )
    measured, foretold = map(float, done.stdout.split())
    assert 0.6 < foretold / measured < 1.6, done.stdout
