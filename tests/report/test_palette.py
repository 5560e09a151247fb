"""Colours: strong enough on both grounds, and never the only difference."""

from __future__ import annotations

import pytest

from mnemoscope.report import Entry
from mnemoscope.report.palette import DARK, LIGHT, colours, contrast, looks


def entries(subjects: int, references: int) -> list[Entry]:
    roles = ["subject"] * subjects + ["reference"] * references
    return [Entry(key=str(k), label=str(k), role=role) for k, role in enumerate(roles)]


def test_contrast_of_known_pairs():
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)  # WebAIM's checker
    assert contrast("#ff0000", "#ffffff") == pytest.approx(3.998, abs=1e-3)
    assert contrast("#123456", "#123456") == 1


def test_every_look_can_be_read_on_both_grounds():
    for look in looks(entries(6, 10)):
        assert contrast(look.light, LIGHT["ground"]) >= 4.5
        assert contrast(look.light, "#ffffff") >= 4.5
        assert contrast(look.dark, DARK["ground"]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_colours(theme):
    for ink in ("ink", "soft", "good", "bad"):
        assert contrast(theme[ink], theme["ground"]) >= 4.5
    for ground in ("raised", "tint", "tip"):
        assert contrast(theme["ink"], theme[ground]) >= 4.5
    assert contrast(theme["focus"], theme["ground"]) >= 3


def test_no_two_of_thirty_networks_look_the_same():
    found = looks(entries(6, 30))
    assert len(set(found)) == 36
    assert len({(look.dash, look.marker) for look in found}) >= 20
    # Without colour, the first ten references differ by dash or marker.
    assert len({(look.dash, look.marker) for look in looks(entries(1, 10))}) == 11


def test_subjects_have_no_dash_and_references_have_one():
    found = looks(entries(2, 10))
    assert [bool(look.dash) for look in found] == [False] * 2 + [True] * 10


def test_a_look_does_not_depend_on_the_others():
    assert looks(entries(1, 3))[:2] == looks(entries(1, 9))[:2]


def test_the_rules_hold_both_themes_and_paper():
    rules = colours(looks(entries(1, 1)))
    assert rules.count("--c1:") == 4
    assert "@media print" in rules
    assert "prefers-color-scheme:dark" in rules
    assert "--accent" in colours([])
