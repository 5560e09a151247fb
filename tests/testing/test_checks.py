"""Each check finds the networks that break what it checks, and says so in one sentence."""

import pytest
import torch
from broken_networks import BROKEN
from third_party_networks import Spiral

from mnemoscope.testing import CHECKS, CheckFailed

BY_NAME = {check.__name__: check for check in CHECKS}


@pytest.mark.parametrize(("name", "factory", "words"), BROKEN, ids=[f"{c}-{f.__name__}" for c, f, _ in BROKEN])
def test_a_broken_network_is_caught_with_its_sentence(name, factory, words):
    with pytest.raises(CheckFailed) as caught:
        BY_NAME[name](factory)
    message = str(caught.value)
    assert message.startswith(f"{factory.__name__} fails {name}: ")
    assert words in message
    assert "\n" not in message


def test_every_check_has_a_network_that_it_catches():
    assert {name for name, _, _ in BROKEN} == set(BY_NAME)


def test_checks_leave_the_global_generator_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    for name in ("check_batched", "check_generator", "check_reset_parameters"):
        BY_NAME[name](Spiral)
    assert torch.equal(before, torch.get_rng_state())
