"""The documents' theorems, conjectures and errata, each with a live check; one file per subject."""

from mnemoscope.studies.claims.base import CLAIMS, Claim, Verdict, claim

__all__ = ["CLAIMS", "Claim", "Verdict", "claim"]
