"""Each check finds the networks that break what it checks, and says so in one sentence."""

import logging

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


class Looks(torch.nn.Module):
    """Decides on a value, which no graph can."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.input_size, self.u = input_size, torch.nn.Linear(input_size, hidden_size)

    def forward(self, input, hx=None):
        if self.u(input).sum().item() > 1e9:
            raise OverflowError
        return self.u(input), input[:1]


def test_what_torch_prints_of_a_graph_that_it_cannot_make_is_not_shown(capfd, caplog):
    with pytest.raises(CheckFailed, match=r"^Looks fails check_export: [^\n]*GuardOnDataDependentSymNode[^\n]*$"):
        BY_NAME["check_export"](Looks)
    BY_NAME["check_compile"](Looks)
    assert capfd.readouterr() == ("", "")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
