"""The claims on tensor trains and on polynomial degrees are confirmed at seeds that they were not written with."""

from __future__ import annotations

import pytest

from mnemoscope.studies.claims import degree, tensor_train
from mnemoscope.studies.claims.base import CLAIMS

OURS = [name for name in CLAIMS.names() if CLAIMS[name].check.__module__ in (degree.__name__, tensor_train.__name__)]


def test_there_are_claims():
    assert len(OURS) == 13


@pytest.mark.parametrize("name", OURS)
def test_every_claim_is_confirmed(name):
    verdict = CLAIMS[name].check(7)
    assert verdict.confirmed, verdict.evidence
    assert verdict.cases > 0
    assert "\n" not in verdict.evidence


def test_false_claims_come_with_what_is_right():
    for name in OURS:
        assert bool(CLAIMS[name].correction) == (CLAIMS[name].status == "false")
