"""Schedules against the rule written out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.training.schedule import SCHEDULES, Plateau, Watch, plateau

losses = st.lists(st.floats(0, 10), min_size=1, max_size=60)


def by_hand(values, rule):
    """Ziv's rule: after `checks` validations without an improvement the rates fall, and after the drops it stops."""
    anchor, since, drops, events = math.inf, 0, 0, []
    for value in values:
        if value < anchor - rule.threshold:
            anchor, since = value, 0
            events.append(None)
            continue
        since += 1
        if since == rule.checks and rule.drops is not None and drops == rule.drops:
            events.append("stop")
            break
        if since == rule.checks:
            drops, since = drops + 1, 0
            events.append("drop")
        else:
            events.append(None)
    return events, drops


@given(losses, st.integers(1, 5), st.sampled_from([0.0, 0.5]), st.sampled_from([0, 1, 3, None]))
def test_a_watch_follows_the_rule(values, checks, threshold, drops):
    rule = Plateau(checks=checks, threshold=threshold, factor=0.5, drops=drops)
    wanted, dropped = by_hand(values, rule)
    watch, events = Watch(), []
    for step, value in enumerate(values):
        better, event = watch.see(step, value, rule)
        assert better == (value < min(values[:step], default=math.inf))
        events.append(event)
        if event == "stop":
            break
    assert events == wanted
    assert watch.rate(rule) == 0.5**dropped


def test_ziv_and_early_stopping():
    assert SCHEDULES["ziv"] == Plateau(checks=11, threshold=1e-3, factor=0.1, drops=1)
    assert plateau(None, 400) == Plateau(checks=400, threshold=0.0, factor=0.1, drops=0)
    assert plateau({"checks": 3}, None) == Plateau(checks=3)
    assert plateau(None, None) is None


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"checks": 0}, "checks must be a positive integer, got 0"),
        ({"threshold": -1}, "threshold must be a number that is not negative, got -1"),
        ({"factor": 1.0}, "factor must be a number between 0 and 1, got 1.0"),
        ({"drops": -1}, "drops must be a whole number that is not negative, or None, got -1"),
        ({"chekcs": 1}, "did you mean 'checks'?"),
    ],
)
def test_mistakes_are_one_line(settings, line):
    with pytest.raises(UserError, match=line.replace("?", r"\?")):
        plateau(settings, None)
