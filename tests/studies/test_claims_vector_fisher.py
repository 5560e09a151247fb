"""Every claim about the Fisher memory of vector networks is confirmed, from any seed."""

import pytest

from mnemoscope.studies.claims import delay_lines, vector_fisher
from mnemoscope.studies.claims.base import CLAIMS

NAMES = [
    name for name in CLAIMS.names() if CLAIMS[name].check.__module__ in (delay_lines.__name__, vector_fisher.__name__)
]


def test_there_are_fourteen():
    assert len(NAMES) == 14


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("name", NAMES)
def test_confirmed(name, seed):
    verdict = CLAIMS[name].check(seed)
    assert verdict.confirmed is True, verdict.evidence
    assert verdict.cases > 0
    assert "\n" not in verdict.evidence


def test_every_false_one_has_a_correction():
    assert all(CLAIMS[name].correction for name in NAMES if CLAIMS[name].status == "false")
