"""A command that loses its power at any call, with whatever was not yet durable, goes on and ends the same."""

import os
import random

import pytest
from tests.faults.calls import KILLED, Calls
from tests.faults.power import Disk, power_loss
from tests.faults.scenarios import SCENARIOS, check_equal, command, go_on, prepared
from tests.faults.test_kill import wanted

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows does not have")

SAMPLE = {"fit": 10, "population": 8, "capacity": 6}


def trial(name, folder, at, seed, *, by_resume):
    scenario = SCENARIOS[name]
    place = prepared(folder / f"{name}-{at}-{seed}-{by_resume}")
    left = place.with_name(f"{place.name}-left")
    disk = Disk(place)
    first = command(place, (*scenario.arguments, "--json"), Calls(place, at, power_loss(disk, left, seed), disk.watch))
    assert first.code == KILLED, first.err
    check_equal(scenario, left, go_on(scenario, left, by_resume=by_resume), wanted(name))


@pytest.mark.parametrize("name", SAMPLE)
def test_power_is_lost_at_a_sample_of_all_calls(name, tmp_path):
    chance = random.Random(name)
    for at in chance.sample(range(1, wanted(name).calls + 1), SAMPLE[name]):
        trial(name, tmp_path, at, chance.choice((None, at)), by_resume=chance.random() < 0.5)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", SAMPLE)
def test_power_is_lost_at_every_call(name, tmp_path):
    for at in range(1, wanted(name).calls + 1):
        for seed in (None, 2 * at, 2 * at + 1):
            trial(name, tmp_path, at, seed, by_resume=at % 2 == 0)
