"""The verdict against the numbers: the rule table by hand, and on random tables by rules written down anew here."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.core.intervals import mean_interval
from mnemoscope.profiles import all_sections
from mnemoscope.profiles.page import _seeds
from mnemoscope.profiles.row import SCHEMA, Row
from mnemoscope.profiles.section import judged_quantities
from mnemoscope.profiles.verdict import Contest, judge, scorecard, verdict
from mnemoscope.profiles.verdict.scorecard import _unit

AXES = judged_quantities(all_sections())
SCALARS = [(axis.section, axis.name) for axis in AXES]
BY_NAME = {(axis.section, axis.name): axis for axis in AXES}
LINEAR, RATE, COST, LIFE = (
    ("capacity", "linear"),
    ("gradients", "input_rate"),
    ("card", "multiply_adds"),
    ("fisher", "relative_half_life"),
)


def scalar(seeds, at_least=""):
    values = [each for each in seeds if each is not None]
    if not values:
        return {"value": None, "seeds": list(seeds), "note": "it blew up"}
    value, lower, upper = mean_interval(values)
    ends = {} if at_least else {"lower": lower, "upper": upper}
    return {"value": value, **ends, "seeds": list(seeds), "at_least": at_least}


def row(label, numbers, *, weights="initialised", parameters=1000, parts=None, at_least=""):
    """Build a row from ``{("capacity", "linear"): [values by seed]}``."""
    found = {}
    for (part, name), seeds in numbers.items():
        entry = found.setdefault(part, {"status": "done", "scalars": {}, "data": {}})
        entry["scalars"][name] = scalar(seeds, at_least)
    network = {"name": label, "hidden_size": 9, "state_size": 64, "weights": weights, "parameters": parameters}
    document = {
        "label": label,
        "network": network,
        "settings": {"seeds": [0, 1, 2]},
        "parts": {**found, **(parts or {})},
    }
    return Row.from_dict({"schema": SCHEMA, **document})


def crowd(key, *centres, spread=0.01):
    return [row(f"net{i}", {key: [c * (1 - spread), c, c * (1 + spread)]}) for i, c in enumerate(centres)]


def word(mine, references, key):
    (found,) = [each for each in judge(mine, references, AXES) if (each.quantity.section, each.quantity.name) == key]
    return found.word


# The table of rules, a row each ----------------------------------------------------------------------------------


def near(value, spread=0.01):
    return [value * (1 - spread), value, value * (1 + spread)]


@pytest.mark.parametrize(
    ("value", "said"),
    [(90, "strong"), (55, "strong"), (35, "average"), (25, "weak"), (5, "weak"), (0.5, "weak")],
)
def test_a_position_that_is_sure_has_its_word(value, said):
    references = crowd(LINEAR, 10, 20, 30, 40, 50, 60)
    assert word(row("mine", {LINEAR: near(value)}), references, LINEAR) == said


def test_a_position_that_is_not_sure_is_uncertain():
    references = crowd(LINEAR, 10, 20, 30, 40, 50, 60)
    assert word(row("mine", {LINEAR: [5.0, 30.0, 60.0]}), references, LINEAR) == "uncertain"


def test_rank_two_of_eleven_is_never_middling_by_doubt():
    # Second by value, hardly told apart from most: the old rule said "neither good nor bad".
    references = crowd(LINEAR, *range(20, 30), spread=0.15)
    found = judge(row("mine", {LINEAR: near(28.5, 0.15)}), references, [BY_NAME[LINEAR]])[0]
    assert found.word == "uncertain"
    low, high = found.rank
    assert low <= 2 <= high


def test_level_counts_half():
    references = [row(f"net{i}", {COST: [value]}) for i, value in enumerate((100.0, 103.0, 98.0, 300.0, 400.0, 500.0))]
    found = judge(row("mine", {COST: [101.0]}), references, [BY_NAME[COST]])[0]
    assert [len(found.against(each)) for each in ("better", "level", "worse", "open")] == [3, 3, 0, 0]
    assert found.position == (0.75, 0.75)
    assert found.word == "strong"
    assert found.rank == (1, 1)


def test_too_few_references_make_no_word():
    assert word(row("mine", {LINEAR: near(90)}), crowd(LINEAR, 10, 20), LINEAR) == "uncertain"
    said = verdict(row("mine", {LINEAR: near(90)}), crowd(LINEAR, 10, 20), AXES)
    assert "2 references are too few to judge by" in said.to_dict()["axes"][0]["text"]


def test_a_surely_small_difference_is_level_and_a_large_one_is_not():
    # All differ by 2%, with a scatter of a thousandth: certain, and of no account.
    references = crowd(LINEAR, 50.0, 50.5, 51.0, 49.5, spread=1e-4)
    found = judge(row("mine", {LINEAR: near(51.0, 1e-4)}), references, [BY_NAME[LINEAR]])[0]
    assert {each.standing for each in found.rivals} == {"level"}
    assert found.word == "average"


# Numbers known from below ----------------------------------------------------------------------------------------


def test_censored_numbers_tie_and_exceed_only_by_what_they_have():
    references = [*crowd(LIFE, 10, 20, 30), row("cut", {LIFE: near(400)}, at_least="window 1024")]
    references.append(row("far", {LIFE: near(900)}))
    mine = row("mine", {LIFE: near(209)}, at_least="window 512")
    found = judge(mine, references, [BY_NAME[LIFE]])[0]
    assert {each.row.label: each.standing for each in found.rivals} == {
        "net0": "better", "net1": "better", "net2": "better", "cut": "level", "far": "open"
    }  # fmt: skip
    (score,) = scorecard(mine, verdict(mine, references, [BY_NAME[LIFE]]))
    assert (score.value, score.between, score.lower, score.open_ended) == (">= 209", "window 512", None, True)
    # From the other side: nothing known is clearly above a number that may be any larger one.
    back = judge(references[-1], [mine, *references[:3]], [BY_NAME[LIFE]])[0]
    assert {each.row.label: each.standing for each in back.rivals}["mine"] == "open"
    assert judge(references[0], [mine], [BY_NAME[LIFE]])[0].rivals[0].standing == "worse"


# One network, one judgement --------------------------------------------------------------------------------------


def test_its_own_kind_is_a_reference_like_any_other():
    references = [*crowd(LINEAR, 10, 12, 14), row("lstm", {LINEAR: near(30)})]
    words = {name: word(row(name, {LINEAR: near(30)}), references, LINEAR) for name in ("lstm ", "MyFactory", "cell")}
    assert len(set(words.values())) == 1


def test_given_weights_are_not_called_trained():
    mine = row("mine", {LINEAR: [30.0]}, weights="given")
    said = str(verdict(mine, crowd(LINEAR, 10, 12, 14), AXES).to_dict())
    assert "trained" not in said


def test_one_set_of_weights_must_leave_what_seeds_draw():
    references = [row(f"net{i}", {LINEAR: [9.0, 10.0, 11.0]}) for i in range(4)]
    inside = judge(row("mine", {LINEAR: [10.9]}), references, [BY_NAME[LINEAR]])[0]
    outside = judge(row("mine", {LINEAR: [30.0]}), references, [BY_NAME[LINEAR]])[0]
    assert {each.standing for each in inside.rivals} == {"open"}
    assert {each.standing for each in outside.rivals} == {"better"}


def test_versions_are_not_compared():
    mine, other = row("mine", {LINEAR: near(30)}), row("old", {LINEAR: near(3)})
    old = Row.from_dict(
        {**other.to_dict(), "parts": {"capacity": {**other.section("capacity").to_dict(), "version": 7}}}
    )
    assert judge(mine, [old], [BY_NAME[LINEAR]])[0].rivals == ()


# Words -----------------------------------------------------------------------------------------------------------


def test_the_sentence_names_what_is_strong_and_weak():
    references = [row(f"net{i}", {LINEAR: near(10 + i), RATE: near(-0.1 - i), COST: [100.0]}) for i in range(5)]
    mine = row("mine", {LINEAR: near(90), RATE: near(-30.0), COST: [101.0]})
    said = verdict(mine, references, AXES)
    assert said.sentence == (
        "Among 5 networks of about 1,000 parameters, mine is strong at plain memory, weak at gradients; "
        "average at the rest."
    )
    (advice,) = said.instead
    assert advice.startswith("For gradients, try net0: ")
    assert " is clearly behind in plain memory." in advice


def test_rates_are_best_near_zero():
    references = [row("fades", {RATE: near(-0.5)}), row("explodes", {RATE: near(0.3)}), row("slow", {RATE: near(-0.1)})]
    assert word(row("mine", {RATE: [0.001, -0.001, 0.002]}), references, RATE) == "strong"
    assert word(row("mine", {RATE: near(2.0)}), references, RATE) == "weak"


def test_rates_of_both_signs_do_not_pass_for_zero():
    references = [row(f"net{i}", {RATE: [-0.2, -0.21, -0.19]}) for i in range(3)]
    assert word(row("wild", {RATE: [-1.0, 1.0, -1.0, 1.01]}), references, RATE) != "strong"


def test_missing_parts_are_said_with_their_reason():
    broken = {"fisher": {"status": "failed", "reason": "RuntimeError: no gradient"}}
    mine = row("mine", {LINEAR: near(1), RATE: [None, None]}, parts=broken)
    missing = dict(verdict(mine, crowd(LINEAR, 10, 12, 14), AXES).missing)
    assert missing["remembering under noise"] == "failed: RuntimeError: no gradient"
    assert missing["gradients"] == "it blew up"
    assert missing["cost per step"] == "stopped: it was not run"


def test_no_references_and_no_numbers():
    assert "no reference to compare it with" in verdict(row("mine", {LINEAR: near(1)}), [], AXES).sentence
    assert verdict(row("mine", {}), crowd(LINEAR, 1, 2, 3), AXES).sentence.startswith("Nothing that networks are")


# The statistics of a page ----------------------------------------------------------------------------------------


def test_equal_networks_are_seldom_told_apart():
    """Under the null, with variances that differ by a factor of ten, at most 5% of pages call any difference clear."""
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(200):
        scales = np.exp(rng.normal(-3, 0.5, 12))
        rows = [row(f"n{i}", {LINEAR: np.exp(3 + rng.normal(0, s, 5)).tolist()}) for i, s in enumerate(scales)]
        found = judge(rows[0], rows[1:], [BY_NAME[LINEAR]])[0]
        false += any(each.standing in ("better", "worse") for each in found.rivals)
    assert false <= 0.1 * 200


def test_pooled_variances_find_more_than_welch_would():
    rng = np.random.default_rng(1)
    rows = [row(f"n{i}", {LINEAR: np.exp(3 + rng.normal(0, 0.05, 3)).tolist()}) for i in range(11)]
    mine = row("mine", {LINEAR: np.exp(3.3 + rng.normal(0, 0.05, 3)).tolist()})
    assert len(judge(mine, rows, [BY_NAME[LINEAR]])[0].against("better")) == 11


# Random tables ---------------------------------------------------------------------------------------------------

values = st.one_of(st.integers(1, 9).map(float), st.floats(1e-3, 1e3, allow_subnormal=False), st.none())
tables = st.dictionaries(st.sampled_from(SCALARS), st.lists(values, min_size=1, max_size=4))


@st.composite
def cases(draw):
    mine = row("mine", draw(tables), weights=draw(st.sampled_from(["initialised", "given"])))
    return mine, [row(f"net{i}", draw(tables)) for i in range(draw(st.integers(0, 6)))]


@settings(max_examples=80)
@given(cases())
def test_the_verdict_never_contradicts_the_numbers(case):
    mine, others = case
    said = verdict(mine, others, AXES)
    assert said.sentence
    for each in said.judgements:
        better = {
            one.row.label: each.quantity.goodness(each.number.value) > each.quantity.goodness(one.number.value)
            for one in each.rivals
        }
        assert all(better[one.row.label] for one in each.against("better"))
        assert not any(better[one.row.label] for one in each.against("worse"))
        wins, losses = len(each.against("better")), len(each.against("worse"))
        level = len(each.against("level"))
        if each.word == "strong":
            assert wins + level / 2 >= 2 / 3 * len(each.rivals) > 0
        if each.word == "weak":
            assert losses + level / 2 >= 2 / 3 * len(each.rivals) > 0
    for score in scorecard(mine, said):
        assert 0 <= score.place <= 1
        assert all(0 <= dot.place <= 1 for dot in score.dots)
        assert re.search(r"\d", score.value)
        assert "nan" not in score.sentence


@settings(max_examples=60)
@given(cases())
def test_comparing_is_fair(case):
    mine, others = case
    for other in others:
        contest, turned = Contest([(mine, other)], AXES), Contest([(other, mine)], AXES)
        for axis in AXES:
            forth, back = contest.standing(mine, other, axis), turned.standing(other, mine, axis)
            assert {forth, back} in ({"open"}, {"level"}, {"better", "worse"}, {None})
            assert contest.standing(other, mine, axis) == back


def test_judging_takes_every_axis_that_has_a_number():
    mine = row("mine", {key: [1.0, 2.0] for key in SCALARS})
    assert [each.quantity for each in judge(mine, [], AXES)] == AXES
    # A page is of a network with a state, or of a block that is asked for its outputs.
    assert len([each for each in AXES if each.section != "outputs"]) <= 9
    assert len([each for each in AXES if each.section in ("outputs", "card", "separation")]) <= 9


def test_seeds_are_counted_where_something_is_judged():
    """A profile that was short of time says at how many seeds it was measured, not how many were planned."""
    fisher, card = (next(one for one in all_sections() if one.name == name) for name in ("fisher", "card"))

    def row(done):
        parts = {"fisher": SimpleNamespace(done=True, seeds=done), "card": SimpleNamespace(done=True, seeds=(0,))}
        return SimpleNamespace(settings=SimpleNamespace(seeds=(0, 1, 2)), section=parts.__getitem__)

    assert _seeds([fisher, card], [row((0, 1, 2))]) == "3 seeds"
    assert _seeds([fisher, card], [row((0,)), row((0, 1))]) == "1 to 2 seeds"
    assert _seeds([card], [row((0,))]) == "3 seeds"


@pytest.mark.parametrize(
    ("unit", "value", "shown"),
    [("lags", "1", "lag"), ("lags", "2", "lags"), ("soft", "1", ""), ("of 7", "1", "of 7")],
)
def test_units_follow_their_numbers(unit, value, shown):
    assert _unit(unit, value) == shown
