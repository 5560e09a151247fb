"""Processes of this machine: the same numbers, also when they are killed; mistakes and failures in one line."""

import os
import random
import signal
import threading
import time

import psutil
import pytest
from tests.machines.small import COMMON, ended, in_child, numbers, small_study

from mnemoscope import runs
from mnemoscope.core.errors import MnemoscopeError, UserError
from mnemoscope.machines.processes import Processes
from mnemoscope.studies.machinery import RunSpec, execute
from mnemoscope.studies.machinery.execution import run_name


def kill_children(draw, pause, ended, kills):
    """Kill a child of this process now and then."""
    while not ended.wait(draw.uniform(*pause)):
        children = psutil.Process().children()
        if children:
            with_luck = draw.choice(children)
            with_luck.kill()
            kills.append(with_luck.pid)


def killed_meanwhile(work, seed, pause):
    ended, kills = threading.Event(), []
    killer = threading.Thread(target=kill_children, args=(random.Random(seed), pause, ended, kills))
    killer.start()
    try:
        return work(), kills
    finally:
        ended.set()
        killer.join()


def test_a_study_in_processes_one_killed_is_the_same(tmp_path):
    study = small_study(4, iterations=40)
    list(execute(study.plan("smoke"), tmp_path / "whole"))
    kills = []

    def kill_one():
        while not (found := list(tmp_path.glob("many/study-*/population/group-000"))):
            time.sleep(0.01)
        pid = int((found[0] / "lock").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        kills.append(pid)

    killer = threading.Thread(target=kill_one)
    killer.start()
    done = list(execute(study.plan("smoke"), tmp_path / "many", workers=Processes(2)))
    killer.join()
    assert len(done) == 4
    assert kills
    assert numbers(study, tmp_path / "many") == numbers(study, tmp_path / "whole")
    assert not psutil.Process().children()


@pytest.mark.slow
def test_a_mistake_and_a_failure_are_one_line(tmp_path):
    wrong = RunSpec("fit", {**COMMON, "hidden_size": 4, "iterations": 5, "network": "nonsense"})
    with pytest.raises(UserError, match="^there is no network named 'nonsense'"):
        list(execute([wrong], tmp_path, workers=Processes(1)))
    job = [{"home": str(tmp_path), "group": 0}]
    with pytest.raises(MnemoscopeError, match="^a worker failed: ModuleNotFoundError: No module named 'nowhere'; what"):
        list(Processes(1).run("nowhere:nothing", job))


@pytest.mark.slow
def test_results_come_through_a_store_where_the_runs_are_not_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "own"))
    study, store = small_study(3, iterations=4), f"local://{tmp_path}/store"
    list(execute(study.plan("smoke"), tmp_path / "whole"))
    assert len(list(execute(study.plan("smoke"), tmp_path / "many", workers=Processes(1), store=store))) == 3
    assert numbers(study, tmp_path / "many") == numbers(study, tmp_path / "whole")
    assert not list((tmp_path / "own" / "work").iterdir())
    done = execute(study.plan("smoke"), tmp_path / "again", workers=Processes(1, retries=0), store=store)
    assert len(list(done)) == 3  # from the store
    assert numbers(study, tmp_path / "again") == numbers(study, tmp_path / "whole")


DYING = """
import os, pathlib
def work(job, tell):
    file = pathlib.Path(job["file"])
    file.write_text(file.read_text() + "x" if file.exists() else "x")
    if len(file.read_text()) <= job["deaths"]:
        os._exit(7)
    tell("news")
    print("not for the starter")
    return {"times": len(file.read_text())}
"""


def test_a_process_that_dies_is_replaced_and_after_some_times_given_up(tmp_path, monkeypatch):
    (tmp_path / "dying_work.py").write_text(DYING)
    monkeypatch.syspath_prepend(tmp_path)
    jobs = [{"file": str(tmp_path / "a"), "deaths": 1}, {"file": str(tmp_path / "b"), "deaths": 0}]
    heard = []
    found = list(Processes(1, retries=1).run("dying_work:work", jobs, lambda *told: heard.append(told)))
    assert found == [(0, {"times": 2}), (1, {"times": 1})]
    assert heard == [(0, "news"), (1, "news")]
    with pytest.raises(MnemoscopeError, match="^a process died once at the same work: it ended with code 7; what was"):
        list(Processes(1, retries=0).run("dying_work:work", [{"file": str(tmp_path / "c"), "deaths": 9}]))


def drive(study, root, workers):
    """Run a study as one of several drivers; return whether all of it was done."""
    return len(list(execute(study.plan("smoke"), root, workers=workers))) == len(study.plan("smoke"))


@pytest.mark.slow
def test_two_drivers_on_one_folder_share_the_work(tmp_path):
    study = small_study(6, iterations=40)
    list(execute(study.plan("smoke"), tmp_path / "whole"))
    drivers = [in_child(drive, study, tmp_path / "many", Processes(1)) for _ in range(2)]
    assert [ended(one) for one in drivers] == [0, 0]
    assert numbers(study, tmp_path / "many") == numbers(study, tmp_path / "whole")


def test_a_run_that_another_command_has_is_one_line(tmp_path):
    study = small_study(1, iterations=4)
    (spec,) = study.plan("smoke")
    with (
        runs.open(spec.content, folder=tmp_path / run_name(spec), kind="study"),
        pytest.raises(UserError, match=r"study-\w+.*process \d+") as caught,
    ):
        list(execute([spec], tmp_path))
    assert "\n" not in str(caught.value)
    assert drive(study, tmp_path, None)


@pytest.mark.heavy
@pytest.mark.timeout(3000)
def test_seventy_kills(tmp_path):
    study = small_study(40, iterations=200)
    list(execute(study.plan("smoke"), tmp_path / "whole"))
    kills = 0
    while kills < 70:
        home = tmp_path / f"many-{kills}"
        work = Processes(2, retries=1000)
        done, found = killed_meanwhile(
            lambda home=home, work=work: list(execute(study.plan("smoke"), home, workers=work)), kills, (0.5, 4.0)
        )
        kills += len(found)
        assert found
        assert len(done) == 40
        assert numbers(study, home) == numbers(study, tmp_path / "whole")
