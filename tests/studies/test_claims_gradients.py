"""The claims about gradients hold for other seeds than the command's, and their false one has a witness."""

import pytest

from mnemoscope.studies.claims import gradients  # noqa: F401  (files the claims)
from mnemoscope.studies.claims.base import CLAIMS

NAMES = ("kerg-polynomial-powers", "kerg-polynomial-gradients", "ziv-orthogonal-relu", "ziv-cayley-direction")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 17])
def test_claims_are_confirmed(name, seed):
    verdict = CLAIMS[name].check(seed)
    assert verdict.confirmed
    assert verdict.cases > 5
    assert "\n" not in verdict.evidence


def test_false_claim_says_what_is_right():
    claim = CLAIMS["ziv-cayley-direction"]
    assert claim.status == "false"
    assert claim.correction
    assert "G = diag(1,1,0) gives dL/ds = +1" in claim.check(3).evidence
