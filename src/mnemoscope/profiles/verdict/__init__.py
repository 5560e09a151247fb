"""Verdict on a network: what it is good and bad at remembering, in plain words."""

from mnemoscope.profiles.verdict.statements import verdict

__all__ = ["verdict"]
