"""Verdict on a network: what it is strong and weak at, by fixed rules, in plain words."""

from mnemoscope.profiles.verdict.contest import Contest
from mnemoscope.profiles.verdict.judgement import Judgement, judge
from mnemoscope.profiles.verdict.scorecard import scorecard
from mnemoscope.profiles.verdict.statements import Verdict, verdict

__all__ = ["Contest", "Judgement", "Verdict", "judge", "scorecard", "verdict"]
