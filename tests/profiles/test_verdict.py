"""The verdict against the numbers: by hand on small tables, and on random ones by rules written down anew here."""

import math
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.core.intervals import mean_interval
from mnemoscope.profiles import Estimate, Quantity, all_sections
from mnemoscope.profiles import verdict as verdicts
from mnemoscope.profiles.row import SCHEMA, Row
from mnemoscope.profiles.section import judged_quantities
from mnemoscope.profiles.verdict.judgement import compared, judge, spoken

AXES = judged_quantities(all_sections())
SCALARS = [(axis.section, axis.name) for axis in AXES]


def verdict(row, references):
    read = [Row.from_dict({"schema": SCHEMA, **each}) for each in (row, *references)]
    return verdicts.verdict(read[0], read[1:], AXES)


def scalar(seeds, unit=""):
    values = [each for each in seeds if each is not None]
    if not values:
        return {"value": None, "lower": None, "upper": None, "seeds": list(seeds), "unit": unit, "note": "it blew up"}
    value, lower, upper = mean_interval(values)
    return {"value": value, "lower": lower, "upper": upper, "seeds": list(seeds), "unit": unit, "note": ""}


def row(label, numbers, *, weights="initialised", parameters=1000, parts=None):
    """Build a row from ``{("capacity", "linear"): [values by seed]}``."""
    found = {}
    for (part, name), seeds in numbers.items():
        entry = found.setdefault(part, {"status": "done", "reason": None, "scalars": {}, "data": {}})
        entry["scalars"][name] = scalar(seeds)
    network = {"name": label, "options": {}, "num_layers": 1, "hidden_size": 9, "state_size": 64}
    network |= {"weights": weights, "parameters": parameters}
    settings = {"quick": False, "seeds": [0, 1, 2]}
    return {"label": label, "network": network, "settings": settings, "parts": {**found, **(parts or {})}}


LINEAR = ("capacity", "linear")
RATE = ("gradients", "rate")
COST = ("card", "multiply_adds")


def statement(row, references, words):
    found = [each for each in verdict(row, references)[1:] if words in each.text]
    assert len(found) == 1, [each.text for each in verdict(row, references)]
    return found[0]


def crowd(key, *centres):
    return [row(f"net{i}", {key: [c - 0.1, c, c + 0.1]}) for i, c in enumerate(centres)]


def test_the_best_is_called_the_best():
    found = statement(row("mine", {LINEAR: [30.0, 30.5, 31.0]}), crowd(LINEAR, 10, 12, 14), "is good at")
    assert found.tone == "good"
    assert "recovers 30.5 (29.3 to 31.7) past inputs in all, of at most 64" in found.text
    assert "rank 1 of 4, clearly the best, ahead of all 3 references" in found.text
    assert found.confidence.startswith("Sure: 3 of 3 comparisons are settled at the 95% level, from 3 sets")
    assert found.evidence == ("capacity",)


def test_the_last_is_called_the_last_and_told_what_to_try():
    references = crowd(LINEAR, 10, 12, 14)
    mine = row("mine", {LINEAR: [1.0, 1.1, 1.2], COST: [50.0]})
    references[2]["parts"]["card"] = {"status": "done", "scalars": {"multiply_adds": scalar([500.0])}}
    found = statement(mine, references, "is bad at")
    assert found.tone == "bad"
    assert "rank 4 of 4, clearly the last, behind all 3 references" in found.text
    advice = statement(mine, references, "Instead of mine for plain memory")
    assert "try net2 with 9 units (1,000 parameters): 14.00 (13.75 to 14.25) instead of 1.10" in advice.text
    assert "It is clearly behind in cost per step (500 against 50)" in advice.text
    assert advice.confidence == "The difference is clear; 2 other references clearly exceed it too."


def test_scatter_makes_it_unsure():
    found = statement(row("mine", {LINEAR: [1.0, 30.0, 60.0]}), crowd(LINEAR, 10, 12, 14), "plain memory")
    assert found.tone == "neutral"
    assert "clearly ahead of 0 and clearly behind 0 of 3 references" in found.text
    assert found.confidence.startswith("Not sure: 0 of 3 comparisons")


def test_rates_are_best_near_zero():
    references = [row("fades", {RATE: [-0.5, -0.52, -0.48]}), row("explodes", {RATE: [0.3, 0.31, 0.29]})]
    references.append(row("slow", {RATE: [-0.1, -0.11, -0.09]}))
    found = statement(row("mine", {RATE: [0.001, -0.001, 0.002]}), references, "gradients through")
    assert "clearly the best" in found.text
    worst = statement(row("mine", {RATE: [2.0, 2.1, 1.9]}), references, "mine is bad at letting gradients through")
    assert "clearly the last" in worst.text
    advice = statement(row("mine", {RATE: [2.0, 2.1, 1.9]}), references, "Instead of")
    assert "try slow" in advice.text


def test_rates_of_both_signs_do_not_pass_for_zero():
    # The mean of -1 and 1 is near zero, and no gradient survives: the seeds decide, and they say no.
    wild = row("wild", {RATE: [-1.0, 1.0, -1.0, 1.01]})
    references = [row(f"net{i}", {RATE: [-0.2, -0.21, -0.19]}) for i in range(3)]
    found = statement(wild, references, "gradients through")
    assert "clearly" in found.text
    assert found.tone != "good"


def test_ties_share_their_rank():
    references = [row(name, {COST: [value]}) for name, value in (("a", 100.0), ("b", 100.0), ("c", 300.0))]
    found = statement(row("mine", {COST: [100.0]}), references, "cost per step")
    assert "rank 1 of 4 (level with a, b), clearly ahead of 1 and clearly behind 0 of 3 references" in found.text
    assert "10% counts as level" in found.confidence


def test_a_few_percent_of_cost_are_nothing():
    references = [row(f"net{i}", {COST: [100.0 - i]}) for i in range(4)]
    found = statement(row("mine", {COST: [103.0]}), references, "cost per step")
    assert found.tone == "neutral"
    assert "rank 5 of 5, clearly ahead of 0 and clearly behind 0 of 4" in found.text


def test_too_few_references_make_no_adjective():
    found = statement(row("mine", {LINEAR: [30.0, 30.5, 31.0]}), crowd(LINEAR, 10, 12), "plain memory")
    assert found.tone == "neutral"
    assert "2 references are too few to call it good or bad" in found.confidence


def test_no_references():
    said = verdict(row("mine", {LINEAR: [30.0, 30.5, 31.0]}), [])
    assert "with no reference to compare it with" in said[0].text
    assert not re.search(r"rank \d", " ".join(each.text for each in said))
    assert all(each.tone == "neutral" for each in said)


def test_its_own_kind_is_no_reference():
    references = [*crowd(LINEAR, 10, 12, 14), row("mine", {LINEAR: [90.0, 91.0, 92.0]})]
    found = statement(row("mine", {LINEAR: [30.0, 30.5, 31.0]}), references, "plain memory")
    assert "clearly the best, ahead of all 3" in found.text


def test_missing_parts_are_said_with_their_reason():
    broken = {"fisher": {"status": "failed", "reason": "RuntimeError: no gradient", "scalars": {}, "data": {}}}
    mine = row("mine", {LINEAR: [1.0, 1.1, 1.2], RATE: [None, None, None]}, parts=broken)
    found = statement(mine, crowd(LINEAR, 10, 12, 14), "Not judged of mine")
    assert "remembering under noise (failed: RuntimeError: no gradient)" in found.text
    assert "letting gradients through (it blew up)" in found.text
    assert "cost per step (stopped: it was not run)" in found.text


def test_nothing_at_all():
    # There is no summary of nothing.
    said = verdict(row("mine", {}), crowd(LINEAR, 1, 2, 3))
    assert len(said) == 1
    assert said[0].text.startswith("Not judged of mine: ")


def test_trained_weights_are_told_apart():
    mine = row("mine", {LINEAR: [30.0]}, weights="trained")
    found = statement(mine, crowd(LINEAR, 10, 12, 14), "mine is good at plain memory")
    assert "from one set of weights; the references have initial weights" in found.confidence
    assert "trained weights that were given" in verdict(mine, crowd(LINEAR, 10, 12, 14))[0].confidence
    fresh = row("mine", {LINEAR: [30.0, 30.5, 31.0]})
    assert "training changes" in statement(fresh, crowd(LINEAR, 10, 12, 14), "good at plain").confidence


def test_one_set_of_weights_against_several_uses_the_prediction_interval():
    axis = next(each for each in AXES if each.name == "linear")
    several = Estimate(value=10.0, lower=7.5, upper=12.5, seeds=(9.0, 10.0, 11.0))
    # 95% of single values lie within t(0.975, 2) s sqrt(1 + 1/3) = 4.303 * 1.1547 = 4.968 of the mean.
    for value, outcome in ((14.9, "open"), (15.0, "better"), (5.1, "open"), (5.0, "worse")):
        assert compared(Estimate(value=value, seeds=(value,)), several, axis) == outcome
        turned = {"better": "worse", "worse": "better", "open": "open"}[outcome]
        assert compared(several, Estimate(value=value, seeds=(value,)), axis) == turned
    single, known = Estimate(value=3.0, seeds=(3.0,)), Estimate(value=3.0, lower=2.9, upper=3.1, seeds=(3.0,))
    assert compared(single, Estimate(value=9.0, seeds=(9.0,)), axis) == "open"
    assert compared(known, Estimate(value=9.0, lower=8.0, upper=10.0, seeds=(9.0,)), axis) == "worse"


# Random tables ---------------------------------------------------------------------------------------------------

values = st.one_of(st.integers(-5, 5).map(float), st.floats(-1e3, 1e3, allow_subnormal=False), st.none())
seeds = st.lists(values, min_size=1, max_size=4)
tables = st.dictionaries(st.sampled_from(SCALARS), seeds)
weights = st.sampled_from(["initialised", "trained"])


@st.composite
def cases(draw):
    mine = row("mine", draw(tables), weights=draw(weights))
    others = [row(f"net{i}", draw(tables)) for i in range(draw(st.integers(0, 6)))]
    return mine, others


def known(one, part, name):
    """Return mean and seeds of a number, independent of how the verdict reads rows."""
    found = one["parts"].get(part, {}).get("scalars", {}).get(name)
    return None if found is None or found["value"] is None else found["value"]


def better(a, b, axis: Quantity):
    return {"higher": a > b, "lower": a < b, "zero": abs(a) < abs(b)}[axis.better]


@settings(max_examples=80)
@given(cases())
def test_the_verdict_never_contradicts_the_numbers(case):
    mine, others = case
    said = verdict(mine, others)
    assert said
    for axis in AXES:
        own = known(mine, axis.section, axis.name)
        found = [each for each in said if re.search(rf"mine( is [a-z ]+ at|,) {axis.axis.name}: ", each.text)]
        if own is None:
            assert not found
            assert any("Not judged" in each.text and axis.axis.name in each.text for each in said)
            continue
        (each,) = found
        rivals = [value for one in others if (value := known(one, axis.section, axis.name)) is not None]
        scalar = mine["parts"][axis.section]["scalars"][axis.name]
        assert spoken(Estimate(value=own, lower=scalar["lower"], upper=scalar["upper"]), axis) in each.text
        if not rivals:
            assert not re.search(r"rank \d", each.text)
            continue
        place = int(re.search(r"rank (\d+) of (\d+)", each.text)[1])
        assert place == 1 + sum(better(value, own, axis) for value in rivals)
        assert f"of {len(rivals) + 1}" in each.text
        if "clearly the best" in each.text:
            assert all(better(own, value, axis) for value in rivals)
        if "clearly the last" in each.text:
            assert all(better(value, own, axis) for value in rivals)
        if each.tone == "good":
            assert len(rivals) >= 3
            assert sum(better(own, value, axis) for value in rivals) >= 2 / 3 * len(rivals)
        if each.tone == "bad":
            assert sum(better(value, own, axis) for value in rivals) >= 2 / 3 * len(rivals)
        assert ("is good at" in each.text) == (each.tone == "good")
        assert ("is bad at" in each.text) == (each.tone == "bad")


@settings(max_examples=50)
@given(cases())
def test_advice_is_always_better_than_what_it_replaces(case):
    mine, others = case
    by_name = {one["label"]: one for one in others}
    bad = [each for each in verdict(mine, others) if " is bad at " in each.text]
    advice = [each for each in verdict(mine, others) if each.text.startswith("Instead of")]
    assert len(advice) == len(bad)
    for each in advice:
        axis = next(axis for axis in AXES if f"for {axis.axis.name}, try" in each.text)
        other = by_name[re.search(r"try (net\d+) with", each.text)[1]]
        assert better(known(other, axis.section, axis.name), known(mine, axis.section, axis.name), axis)


@settings(max_examples=50)
@given(cases())
def test_every_adjective_has_a_number(case):
    for each in verdict(*case):
        assert each.confidence
        assert each.tone in ("good", "bad", "neutral")
        if not each.text.startswith("Not judged"):
            assert re.search(r"\d", each.text)
        assert "nan" not in each.text.split()


@given(st.sampled_from(AXES), seeds, seeds)
def test_comparing_is_fair(axis, one, other):
    numbers = [Estimate.from_dict(s) for s in (scalar(one), scalar(other)) if s["value"] is not None]
    if len(numbers) < 2:
        return
    forth, back = compared(numbers[0], numbers[1], axis), compared(numbers[1], numbers[0], axis)
    assert {forth, back} in ({"open"}, {"better", "worse"})
    assert compared(numbers[0], numbers[0], axis) == "open"
    if forth == "better":
        assert axis.goodness(numbers[0].value) > axis.goodness(numbers[1].value)


def test_judging_takes_every_axis_that_has_a_number():
    mine = Row.from_dict({"schema": SCHEMA, **row("mine", {key: [1.0, 2.0] for key in SCALARS})})
    assert [each.quantity for each in judge(mine, [], AXES)] == AXES
    assert math.isclose(judge(mine, [], AXES)[0].number.value, 1.5)
