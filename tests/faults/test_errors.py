"""An error of the system at any call is one line, and nothing is lost by it."""

import errno
import os
import random

import pytest
from tests.faults.calls import Calls, error
from tests.faults.scenarios import SCENARIOS, check_equal, command, go_on, prepared
from tests.faults.test_kill import wanted

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows does not have")

ERRORS = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EINTR)
SAMPLE = {"fit": 12, "population": 8, "capacity": 6, "study": 4, "profile": 2, "atlas": 1}


def trial(name, folder, at, number, *, by_resume):
    scenario = SCENARIOS[name]
    place = prepared(folder / f"{name}-{at}-{number}-{by_resume}")
    first = command(place, (*scenario.arguments, "--json"), Calls(place, at, error(number)))
    assert first.code in (0, 1, 2), first.err
    assert "Traceback" not in first.err
    said = [line for line in first.err.splitlines() if not line.startswith("warning: ")]
    assert len(said) <= 1, first.err
    assert (first.code == 0) or said[0].startswith("error: "), first.err
    check_equal(scenario, place, go_on(scenario, place, by_resume=by_resume), wanted(name))


@pytest.mark.parametrize("name", SAMPLE)
def test_an_error_at_a_sample_of_all_calls(name, tmp_path):
    chance = random.Random(name)
    for at in chance.sample(range(1, wanted(name).calls + 1), SAMPLE[name]):
        trial(name, tmp_path, at, chance.choice(ERRORS), by_resume=chance.random() < 0.5)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", SAMPLE)
def test_every_error_at_every_call(name, tmp_path):
    for at in range(1, wanted(name).calls + 1):
        for number in ERRORS:
            trial(name, tmp_path, at, number, by_resume=at % 2 == 0)
