"""Every claim of Depth on copying, embedding and state tracking is confirmed, whatever the seed."""

from __future__ import annotations

import pytest

from mnemoscope.studies.claims import depth
from mnemoscope.studies.claims.base import CLAIMS

NAMES = [name for name in CLAIMS.names() if CLAIMS[name].check.__module__ == depth.__name__]


@pytest.mark.parametrize("seed", [0, 3, 11])
@pytest.mark.parametrize("name", NAMES)
def test_the_check_agrees_with_the_status(name: str, seed: int) -> None:
    verdict = CLAIMS[name].check(seed)
    assert verdict.confirmed, verdict.evidence
    assert verdict.cases > 0


def test_false_claims_say_what_is_right() -> None:
    assert len(NAMES) == 11
    for name in NAMES:
        assert (CLAIMS[name].status == "false") == bool(CLAIMS[name].correction)
