"""Progress in scripts and logs: a line for each part with the time left, none for what takes seconds."""

import io

import pytest

import mnemoscope as ms
from mnemoscope.profiles import progress
from mnemoscope.profiles.progress import Joined, Lines
from mnemoscope.profiles.runner import Piece
from mnemoscope.profiles.section import all_sections

SECTION = all_sections()[0]


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def lines(pieces, clock, total):
    """What is printed of pieces that begin after so many seconds, when so many of the estimated ones are done."""
    out = io.StringIO()
    shown = Lines(lambda piece: "rnn", out)
    for passed, done in pieces:
        clock[0] = 100.0 + passed
        shown.watch(Piece(0, SECTION, 4, 1.0), done, total)
    shown.watch(None, total, total)
    return out.getvalue().splitlines()


def test_a_line_for_each_part_with_the_time_left(clock):
    assert lines([(0, 0), (30, 20), (60, 40)], clock, 320.0) == [
        f"rnn: {SECTION.title}, seed 4; about 5 min left",
        f"rnn: {SECTION.title}, seed 4; about 6 min left",
        f"rnn: {SECTION.title}, seed 4; about 6 min left",
    ]


def test_parts_of_less_than_a_second_have_none(clock):
    assert len(lines([(0, 0), (0.2, 1), (0.4, 2), (1.4, 3)], clock, 20.0)) == 2


def test_work_of_seconds_is_silent(clock):
    assert lines([(0, 0), (2, 1)], clock, 4.0) == []


def test_references_that_are_measured_after_it_are_part_of_the_time_left():
    seen = []
    joined = Joined(lambda *told: seen.append(told), later=30.0)
    joined("own", 5.0, 10.0)
    joined(None, 10.0, 10.0)
    joined.goes_on()
    joined("reference", 3.0, 25.0)
    joined(None, 25.0, 25.0)
    assert seen == [("own", 5.0, 40.0), ("reference", 13.0, 35.0), (None, 35.0, 35.0)]


def test_scripts_are_told(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_APART", 0.0)
    few = [each for each in all_sections() if each.name in ("card", "capacity")]
    monkeypatch.setattr("mnemoscope.profiles.runner.all_sections", lambda: few)
    ms.compare("rnn", "irnn", hidden_size=2, quick=True, seeds=1)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("rnn: ")
    assert any(line.startswith("irnn: Memory capacity, seed 0; about ") for line in said)
    ms.compare("rnn", "irnn", hidden_size=2, quick=True, seeds=1, progress=False)
    assert capsys.readouterr().err == ""
