"""A command that is killed at any call goes on, by ``resume`` and by itself, and ends the same bit for bit."""

import functools
import os
import random
import tempfile
from pathlib import Path

import pytest
from tests.faults.calls import KILLED, Calls, kill, kill_halfway
from tests.faults.scenarios import SCENARIOS, Reference, check_equal, command, go_on, prepared, reference

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows does not have")

SAMPLE = {"fit": 16, "population": 16, "capacity": 16, "study": 8, "profile": 2, "atlas": 2}
"""Points of the default tier, drawn with a seed."""


@functools.cache
def wanted(name: str) -> Reference:
    return reference(SCENARIOS[name], Path(tempfile.mkdtemp(prefix=f"reference-{name}-")))


def trial(name: str, folder: Path, at: int, fault, *, by_resume: bool) -> None:
    scenario, whole = SCENARIOS[name], wanted(name)
    place = prepared(folder / f"{name}-{at}-{fault.__name__}-{by_resume}")
    first = command(place, (*scenario.arguments, "--json"), Calls(place, at, fault))
    assert first.code in (0, KILLED), first.err
    check_equal(scenario, place, go_on(scenario, place, by_resume=by_resume), whole)


def points(name: str) -> list[tuple[int, object, bool]]:
    ways = (True, False) if SCENARIOS[name].resumes else (False,)
    return [
        (at, fault, way) for at in range(1, wanted(name).calls + 1) for fault in (kill, kill_halfway) for way in ways
    ]


@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_at_a_sample_of_all_calls(name, tmp_path):
    for at, fault, way in random.Random(name).sample(points(name), SAMPLE[name]):
        trial(name, tmp_path, at, fault, by_resume=way)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_at_every_call(name, tmp_path):
    for at, fault, way in points(name):
        trial(name, tmp_path, at, fault, by_resume=way)
