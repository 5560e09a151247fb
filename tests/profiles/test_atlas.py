"""The atlas: its file, how it is built and taken up again, and that the shipped one is what its command makes."""

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles.fake_sections import make, number, only

from mnemoscope.core.errors import UserError
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.parameters import count_parameters
from mnemoscope.profiles import Quantity, all_sections, atlas
from mnemoscope.profiles.atlas.builder import jobs
from mnemoscope.profiles.atlas.file import SCHEMA, SHIPPED, VARIABLE, read, thinned, write
from mnemoscope.profiles.atlas.interpolation import at_parameters
from mnemoscope.profiles.page import keyed
from mnemoscope.profiles.row import SCHEMA as ROW_SCHEMA
from mnemoscope.profiles.row import NetworkFacts, Row

ENVIRONMENT = {"mnemoscope": "0", "torch": "2", "date": "2026-01-01"}


def row(name="rnn", budget=1024, quick=False, value=1.23456789):
    number = {"value": value, "lower": 1.0, "upper": 2.0, "seeds": [1.23456789, 1.5], "unit": "", "note": "n" * 500}
    empty = {"value": None, "lower": None, "upper": None, "seeds": [None], "unit": "", "note": ""}
    fisher = {
        "status": "done",
        "reason": None,
        "seconds": 3.0,
        "seeds": [0, 1],
        "data": {"lags": list(range(40)), "curve": [k / 3 for k in range(40)], "curve_lower": [None] * 40, "units": 7},
        "scalars": {"total": number, "reach": empty},
        "notes": ["long"],
        "command": "mnemoscope measure",
    }
    against = {"status": "not applicable", "reason": "training has to be asked for", "data": {}, "scalars": {}}
    failed = {"status": "failed", "reason": "it blew up", "seconds": 0.0, "data": {}, "scalars": {}}
    theory = {"status": "done", "reason": None, "data": {"statements": []}, "scalars": {}}
    document = {
        "schema": ROW_SCHEMA,
        "label": name,
        "network": {"name": name, "source": name, "options": {}, "hidden_size": 3, "parameters": budget},
        "settings": {"quick": quick, "seeds": [0, 1], "digests": ["0123456789abcdef"]},
        "environment": ENVIRONMENT,
        "budget": budget,
        "parts": {"fisher": fisher, "trained": against, "spectrum": failed, "theory": theory},
    }
    return Row.from_dict(document)


# The file --------------------------------------------------------------------------------------------------------


def test_thinning_keeps_what_charts_need():
    whole = Row.from_dict(thinned(row())).to_dict()
    fisher = whole["parts"]["fisher"]
    assert set(whole["parts"]) == {"fisher", "spectrum"}
    assert fisher["scalars"]["total"]["value"] == 1.23457
    assert fisher["scalars"]["total"]["seeds"] == [1.235, 1.5]
    assert len(fisher["scalars"]["total"]["note"]) == 120
    assert fisher["scalars"]["reach"] == {
        "value": None, "lower": None, "upper": None, "seeds": [None], "unit": "", "note": "", "at_least": "",
        "blur": 0.0,
    }  # fmt: skip
    lags, curve = fisher["data"]["lags"], fisher["data"]["curve"]
    assert len(lags) == len(curve) == 16
    assert (lags[0], lags[-1]) == (0, 39)
    assert curve == [pytest.approx(k / 3, rel=1e-3) for k in lags]
    assert (fisher["status"], fisher["notes"], fisher["command"]) == ("done", [], "")
    assert whole["parts"]["spectrum"]["reason"] == "it blew up"


def test_thinning_twice_is_thinning_once():
    once = thinned(row())
    again = thinned(Row.from_dict(once))
    assert again["parts"] == once["parts"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_keeps_six_digits(value):
    kept = Row.from_dict(thinned(row(value=value))).section("fisher").scalars["total"].value
    assert math.isclose(kept, value, rel_tol=5.1e-6, abs_tol=1e-310)


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "atlas.json"
    rows = [row("rnn", 4096), row("gru", 1024), row("rnn", 1024, quick=True)]
    write(path, rows, ["a note"])
    found = read(path)
    assert [(each.label, each.budget) for each in found.rows] == [("gru", 1024), ("rnn", 4096), ("rnn", 1024)]
    assert found.notes == ("a note",)
    assert all(each.environment == ENVIRONMENT for each in found.rows)
    assert found.budgets(False) == [1024, 4096]
    assert [each.label for each in found.at(1024, True)] == ["rnn"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expecting value"),
        ('{"schema": "mnemoscope.atlas/1", "rows": [', "Expecting value"),
        ("[1, 2]", "its schema must be 'mnemoscope.atlas/1', got 'list'"),
        ('{"schema": "mnemoscope.atlas/7"}', "its schema must be 'mnemoscope.atlas/1', got 'mnemoscope.atlas/7'"),
        ('{"schema": "mnemoscope.atlas/1"}', "KeyError: 'environments'"),
        ('{"schema": "mnemoscope.atlas/1", "environments": [], "notes": [], "rows": [3]}', "TypeError"),
        (
            '{"schema": "mnemoscope.atlas/1", "environments": [], "notes": [], "rows": [{"schema": "x"}]}',
            "its rows must be of schema 'mnemoscope.profile/1', got 'x'",
        ),
    ],
)
def test_a_broken_file_is_one_line(tmp_path, text, words):
    path = tmp_path / "atlas.json"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read(path)
    message = str(caught.value)
    assert words in message
    assert message.endswith("build it again: mnemoscope atlas build")
    assert "\n" not in message


def test_every_cut_of_a_file_is_one_line(tmp_path):
    path = tmp_path / "atlas.json"
    write(path, [row()], [])
    whole = path.read_text()
    for length in range(0, len(whole) - 1, 97):
        path.write_text(whole[:length])
        with pytest.raises(UserError):
            read(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="there is no atlas at .* build it: mnemoscope atlas build --out"):
        read(tmp_path / "none.json")
    with pytest.raises(UserError, match="cannot be written: No such file or directory"):
        write(tmp_path / "no" / "atlas.json", [], [])


def test_another_file_by_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "mine.json"
    write(path, [row("gru", 500)], [])
    monkeypatch.setenv(VARIABLE, str(path))
    facts = NetworkFacts(kind="recurrent", input_size=1, parameters=500)
    assert [each.label for each in atlas.rows_like(facts)] == ["gru"]
    write(path, [row("lstm", 500)], [])  # a changed file is read again
    assert [each.label for each in atlas.rows_like(facts)] == ["lstm"]
    assert atlas.rows_like(facts, quick=True) == []


# Choosing --------------------------------------------------------------------------------------------------------


@given(st.integers(1, 10**6))
def test_references_have_as_many_parameters_or_are_none(parameters):
    found = atlas.rows_like(NetworkFacts(kind="recurrent", input_size=1, parameters=parameters))
    assert all(abs(each.network.parameters - parameters) <= 0.1 * parameters for each in found)
    if 1100 <= parameters <= 16000:
        assert len(found) == len(atlas.REFERENCES)
    if parameters < 900 or parameters > 19000:
        assert not found


def test_references_have_its_inputs_and_no_time_of_another_machine():
    facts = NetworkFacts(kind="recurrent", input_size=1, parameters=4096)
    for each in atlas.rows_like(facts):
        assert "step_microseconds" not in each.section("card").scalars
    assert atlas.rows_like(dataclasses.replace(facts, input_size=2)) == []
    assert atlas.rows_like(dataclasses.replace(facts, kind="relational")) == []


def test_interpolation_meets_what_was_measured_between():
    """Rows at 4,096 are met, within the errors that it states, by what those at 1,024 and 16,384 give."""
    quantities = [each for one in all_sections() for each in one.quantities if each.axis and not each.axis.counted]
    rows = [each for each in read(SHIPPED).rows if not each.settings.quick]
    outer = [each for each in rows if each.budget != 4096]
    true = {each.label: each for each in rows if each.budget == 4096}
    inside = []
    for guessed in at_parameters(outer, 4096, quantities):
        assert guessed.network.parameters == 4096
        for each in quantities:
            found, known = guessed.number(each), true[guessed.label].number(each)
            if found is None or known is None or found.at_least or known.at_least:
                continue
            wide = abs(each.score(known.upper) - each.score(known.lower)) / 2 if known.lower is not None else 0.0
            # Of spans twice as long as those of the whole atlas; their error is four times as large.
            far = abs(each.score(found.value) - each.score(known.value))
            inside.append(far <= 2 * 4 * found.blur + 2 * wide + 0.05)
    assert len(inside) > 40
    assert np.mean(inside) > 0.85


def test_every_section_is_drawn_beside_interpolated_rows():
    """They have numbers and curves, and no eigenvalues."""
    known = [each for each in read(SHIPPED).rows if not each.settings.quick]
    quantities = [each for one in all_sections() for each in one.quantities]
    first, *rows = keyed([known[0], *at_parameters(known, 2000, quantities)])
    assert all(row.network.source.startswith("interpolated") for row in rows)
    drawn = [one.draw([first, *rows], [first.key]) for one in all_sections() if first.section(one.name).done]
    assert sum(each is not None for each in drawn) >= 5


def test_interpolation_of_a_power_law_is_exact_and_keeps_scatter():
    small, large = row("rnn", 1000, value=10.0), row("rnn", 4000, value=40.0)
    (found,) = at_parameters([small, large], 2000, [Quantity(name="total", title="t", section="fisher", least=0.0)])
    total = found.section("fisher").scalars["total"]
    assert total.value == pytest.approx(20.0)
    assert total.known == pytest.approx([1.23456789, 1.5])
    assert found.network.hidden_size is None
    assert "interpolated between n = 3" in found.network.source
    assert found.section("fisher").data["curve"] == pytest.approx([k / 3 for k in range(40)])


def test_jobs_are_checked():
    assert len(jobs()) == 2 * len(atlas.BUDGETS) * len(atlas.REFERENCES)
    assert [job.name for job in jobs(["rnn", "rnn"], [7], quick=True)] == ["rnn"]
    with pytest.raises(UserError, match="did you mean 'lstm'"):
        jobs(["lstn"])
    with pytest.raises(UserError, match="a network of the atlas must be recurrent, got 'tt'"):
        jobs(["tt"])
    with pytest.raises(UserError, match="a budget must be a positive integer, got 0"):
        jobs(["rnn"], [0])


# Building --------------------------------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch):
    """Replace measuring by a counter, which can be told to stop."""
    done = []

    def measure(job):
        if len(done) == measure.stop:
            raise KeyboardInterrupt
        done.append((job.name, job.budget, job.quick))
        return row(job.name, job.budget, job.quick)

    measure.stop = None
    monkeypatch.setattr("mnemoscope.profiles.atlas.builder._measured", measure)
    monkeypatch.setattr("mnemoscope.profiles.atlas.builder.all_sections", list)  # which these rows do not have
    return done, measure


def test_an_interrupted_build_goes_on_where_it_was(tmp_path, measured):
    done, measure = measured
    path = tmp_path / "atlas.json"
    measure.stop = 3
    with pytest.raises(KeyboardInterrupt):
        atlas.build(path, ["rnn", "gru"], [1024, 4096])
    assert len(read(path).rows) == 3
    measure.stop = None
    assert atlas.build(path, ["rnn", "gru"], [1024, 4096]) == 5
    assert len(done) == len(set(done)) == len(read(path).rows) == 8
    assert atlas.build(path, ["rnn", "gru"], [1024, 4096]) == 0
    assert atlas.build(path, ["rnn"], [1024], quick=True, again=True) == 1


def test_building_says_what_it_does(tmp_path, measured):
    said = []
    path = tmp_path / "atlas.json"
    atlas.build(path, ["rnn"], [1024], quick=False)
    atlas.build(path, ["rnn"], [1024], watch=lambda job, what: said.append((job.label, what)))
    assert sorted(said) == [("rnn at 1,024 parameters", "kept"), ("rnn at 1,024 parameters, quick", "measured")]


def test_a_row_that_lacks_a_section_is_completed_and_keeps_the_rest(tmp_path):
    path = tmp_path / "atlas.json"
    one, two = make("one", 1, number()), make("two", 2, number(factor=3.0))
    with only(one):
        assert atlas.build(path, ["rnn"], [1024], quick=True) == 1
        (before,) = read(path).rows
    with only(one, two):
        assert atlas.build(path, ["rnn"], [1024], quick=True) == 1
        (after,) = read(path).rows
        assert atlas.build(path, ["rnn"], [1024], quick=True) == 0
    assert (set(before.sections), set(after.sections)) == ({"one"}, {"one", "two"})
    assert after.sections["one"] == before.sections["one"]
    assert after.sections["two"].scalars["total"].value == pytest.approx(3 * 1.1)
    with only(make("one", 1, number(factor=7.0), version=2), two):
        assert atlas.build(path, ["rnn"], [1024], quick=True) == 1
        (newer,) = read(path).rows
    assert newer.sections["one"].scalars["total"].value == pytest.approx(7 * 1.1)
    assert newer.sections["two"] == after.sections["two"]


def test_other_weights_are_measured_whole(tmp_path):
    path = tmp_path / "atlas.json"
    one, two = make("one", 1, number()), make("two", 2, number(factor=3.0))
    with only(one):
        atlas.build(path, ["rnn"], [1024], quick=True)
        (row,) = read(path).rows
        write(path, [dataclasses.replace(row, settings=dataclasses.replace(row.settings, digests=("0" * 8,)))], [])
    with only(make("one", 1, number(factor=5.0)), two):
        atlas.build(path, ["rnn"], [1024], quick=True)
        (found,) = read(path).rows
    assert found.sections["one"].scalars["total"].value == pytest.approx(5 * 1.1)


def test_a_broken_or_unwritable_file_is_not_overwritten(tmp_path, measured):
    path = tmp_path / "atlas.json"
    path.write_text("{")
    with pytest.raises(UserError, match="cannot be used"):
        atlas.build(path, ["rnn"], [1024])
    assert path.read_text() == "{"
    with pytest.raises(UserError, match="there is no folder"):
        atlas.build(tmp_path / "no" / "atlas.json", ["rnn"], [1024])
    assert measured[0] == []


# The shipped atlas -----------------------------------------------------------------------------------------------


def test_the_shipped_atlas_is_whole():
    found = atlas.load(SHIPPED)
    assert json.loads(SHIPPED.read_text())["schema"] == SCHEMA
    assert SHIPPED.stat().st_size < 600_000
    there = {(each.label, each.budget, each.settings.quick) for each in found.rows}
    assert there == {(job.name, job.budget, job.quick) for job in jobs()}
    for each in found.rows:
        assert set(each.environment) >= {"mnemoscope", "python", "torch", "numpy", "threads", "machine", "date"}
        assert {part.status for part in each.sections.values()} <= {"done", "not applicable"}
        assert len(each.settings.seeds) >= 3


@pytest.mark.parametrize("budget", atlas.BUDGETS)
def test_shipped_rows_have_equal_parameters(budget):
    for each in atlas.load(SHIPPED).at(budget, False):
        network = each.network
        own = NetworkSpec(network.name, input_size=network.input_size, parameters=budget).resolved()
        assert network.hidden_size == own.hidden_size
        assert network.parameters == count_parameters(own.build())
        assert network.parameters == pytest.approx(budget, rel=0.06)


def test_references_cover_every_family():
    from mnemoscope.nn.registry import card, get

    families = {card(get(name)).family for name in atlas.REFERENCES}
    assert families == {"first order", "orthogonal", "unitary", "non-normal", "gated", "multiplicative"}


def test_shipped_numbers_keep_the_theorems():
    for each in atlas.load(SHIPPED).rows:
        scalars = each.section("capacity").scalars
        known = [scalars[name].value or 0.0 for name in ("linear", "nonlinear") if name in scalars]
        assert sum(known) <= each.network.state_size * 1.05, each.label
        if each.label == "linear-rnn":
            assert scalars["linear"].value == pytest.approx(each.network.state_size, rel=1e-4)
            assert scalars["nonlinear"].value == pytest.approx(0, abs=1e-6)
        if each.label in ("scornn", "scurnn"):
            assert each.section("spectrum").scalars["radius"].value == pytest.approx(1, abs=1e-4)


TIMED = {"step_microseconds"}
COUNTED = {"near_zero": 0.01}
"""Shares of numbers on one side of a threshold, which another processor's rounding lets one or two of them cross."""


def reproduced(tmp_path, name, quick):
    path = tmp_path / "atlas.json"
    assert atlas.build(path, [name], [atlas.BUDGETS[0]], quick=quick) == 1
    (made,) = read(path).rows
    (shipped,) = [each for each in atlas.load(SHIPPED).at(atlas.BUDGETS[0], quick) if each.label == name]
    assert (made.network, made.settings) == (shipped.network, shipped.settings)
    assert set(made.sections) == set(shipped.sections)
    for section, found in made.sections.items():
        kept = shipped.section(section)
        assert (found.status, set(found.data), set(found.scalars)) == (kept.status, set(kept.data), set(kept.scalars))
        for entry, scalar in found.scalars.items():
            if entry not in TIMED:
                value = kept.scalars[entry].value
                close = None if value is None else pytest.approx(value, rel=1e-3, abs=COUNTED.get(entry, 1e-6))
                assert scalar.value == close


def test_a_shipped_row_is_what_its_command_makes(tmp_path):
    reproduced(tmp_path, "gru", quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", atlas.REFERENCES)
def test_every_small_shipped_row_is_what_its_command_makes(tmp_path, name):
    reproduced(tmp_path, name, quick=False)
