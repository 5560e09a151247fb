"""Capacity: the limit that the trainings say, within the budget, the same again from its record."""

import itertools
import json
import sys
import time
from functools import partial

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.intervals import wilson
from mnemoscope.nn import NetworkSpec
from mnemoscope.training import Search, capacity, compare_capacities, take_turns
from mnemoscope.training.capacities.inputs import Builder
from mnemoscope.training.capacities.result import Capacity, draw_capacities

QUICK = {"iterations": 40, "batch_size": 8, "test_size": 40, "validation_size": 40, "lr": 0.01, "layout": "batched"}


@pytest.fixture
def task():
    return ms.tasks.create("copying", delay=16, symbols=1, alphabet=2)


@pytest.fixture
def pretended(monkeypatch):
    """Trainings whose scores are a function of seed and delay, without training."""
    levels: list[int] = []

    def use(score):
        def fit_population(layers, task, *, seeds, **rest):
            levels.append(task.delay)
            real = ms.training.fit_population
            made = real(layers, task, seeds=seeds, iterations=1, batch_size=2, test_size=2, layout="batched")
            for run, seed in zip(made, seeds, strict=True):
                object.__setattr__(run.ending, "score", score(seed, task.delay))
            return made

        # Its module has the name of the function, which hides it.
        monkeypatch.setattr(sys.modules["mnemoscope.training.capacities.search"], "fit_population", fit_population)
        return levels

    return use


def test_limit_is_where_most_seeds_end(task, pretended) -> None:
    ends = [30, 9, 21]
    levels = pretended(lambda seed, delay: 1.0 if delay <= ends[seed] else 0.5)
    found = capacity("rnn", task, hidden_size=4, seeds=3, start=4, resolution=0.01)
    assert found.limit == 21
    assert found.seed_limits == (24, 8, 21)  # the hardest that each mastered of 4, 8, 16, 20, 21, 22, 24, 32
    assert levels[:4] == [4, 8, 16, 32]
    assert found.levels.tolist() == sorted(levels)
    for level, rate, lower, upper in zip(found.levels, found.curve, found.lower, found.upper, strict=True):
        wanted = wilson(sum(int(level) <= end for end in ends), 3)
        assert (rate, lower, upper) == (wanted.value, wanted.lower, wanted.upper)


def test_what_is_known_of_a_limit(task, pretended) -> None:
    pretended(lambda seed, delay: 1.0 if delay <= 21 else 0.5)
    search = {"hidden_size": 4, "seeds": 2, "start": 4, "resolution": 0.01}
    assert capacity("rnn", task, **search).known == "21"
    # Each training counts its one iteration here: two levels of two seeds, then four (4, 8, 16 and 32).
    assert capacity("rnn", task, **search, budget=4).known == "at least 8"
    assert capacity("rnn", task, **search, budget=8).known == "at least 16, below 32"
    nothing = capacity("rnn", task, **search | {"start": 40}, budget=2)
    assert nothing.known == "below 40"
    assert "delay below 40, none of 1 level mastered; the budget of 2 iterations is used up" in str(nothing)


def test_quorum(task, pretended) -> None:
    ends = [30, 9, 21]
    pretended(lambda seed, delay: 1.0 if delay <= ends[seed] else 0.5)
    assert capacity("rnn", task, hidden_size=4, start=4, resolution=0.01, quorum=1.0).limit == 9
    assert capacity("rnn", task, hidden_size=4, start=4, resolution=0.01, quorum=0.3).limit == 30


def test_grid_stops_after_two_failures(task, pretended) -> None:
    levels = pretended(lambda seed, delay: 1.0 if delay in (2, 4, 8) else 0.0)
    found = capacity("rnn", task, hidden_size=4, seeds=2, grid=[2, 4, 6, 8, 10, 12, 14])
    assert levels == [2, 4, 6, 8, 10, 12]
    assert found.limit == 4  # 8 lies above a failure: luck


def test_divergence_is_a_failure(task, pretended) -> None:
    pretended(lambda seed, delay: None if delay > 5 else 1.0)
    found = capacity("rnn", task, hidden_size=4, seeds=2, start=4, resolution=0.01)
    assert found.limit == 5
    assert np.isnan(found.scores[-1]).all()
    assert "NaN" not in str(found)
    assert found.to_dict()["scores"][-1] == ["nan", "nan"]


def test_budget_of_iterations(task, pretended) -> None:
    levels = pretended(lambda seed, delay: 1.0)
    found = capacity("rnn", task, hidden_size=4, seeds=2, start=1, budget=6)
    assert len(levels) == 3  # a pretended training takes one step for each of two seeds
    assert not found.complete
    assert "budget of 6 iterations" in found.reason


def test_minutes_bound_the_first_level_too(task, tmp_path) -> None:
    slow = {**QUICK, "iterations": 10**6, "hidden_size": 6, "seeds": 2, "start": 3, "lr": 0}
    begin = time.monotonic()
    found = capacity("rnn", task, folder=tmp_path / "c", minutes=0.02, **slow)
    assert time.monotonic() - begin < 30  # a million steps take minutes
    assert (found.limit, found.below, found.unfinished, found.complete) == (None, None, 3, False)
    assert found.known == "unknown; 3 not finished"
    assert str(found).endswith("delay unknown; 3 not finished; the 0.02 minutes are used up")
    assert ms.runs.load(tmp_path / "c").status == "budget"
    level = tmp_path / "c" / "level-3"
    reached = ms.runs.load(level / "group-000").latest().step
    assert ms.runs.load(level).status == "budget"
    assert reached > 0
    again = capacity("rnn", task, folder=tmp_path / "c", minutes=0.02, **slow)
    assert again.unfinished == 3
    assert ms.runs.load(level / "group-000").latest().step > reached  # it went on, not anew


@pytest.mark.slow  # twelve seconds, in which both processes must have begun
def test_processes_keep_what_they_came_to_when_time_is_up(task, tmp_path) -> None:
    layers = [ms.nn.RNN(4, 6), ms.nn.RNN(4, 6)]
    settings = {**QUICK, "iterations": 10**6, "layout": "processes", "workers": 2}
    with pytest.raises(ms.runs.OutOfBudget):
        ms.training.fit_population(layers, task, folder=tmp_path / "p", minutes=0.2, **settings)
    assert ms.runs.load(tmp_path / "p").status == "budget"
    assert all(ms.runs.load(tmp_path / "p" / f"group-00{k}").latest().step > 0 for k in range(2))


def test_a_level_that_is_not_mastered_is_no_limit(task, pretended) -> None:
    pretended(lambda seed, delay: 1.0 if (seed, delay) == (1, 2) else 0.0)
    found = capacity("rnn", task, hidden_size=4, seeds=3, grid=[2, 4])
    assert (found.limit, found.below, found.seed_limits) == (None, 2, (None, 2, None))
    assert json.loads(json.dumps(found.to_dict()))["limit"] is None


def test_really_trained(task) -> None:
    found = capacity("rnn", task, hidden_size=8, seeds=2, start=1, largest=2, **QUICK)
    assert isinstance(found, Capacity)
    assert found.scores.shape == (len(found.levels), 2)
    assert ((found.scores >= 0) & (found.scores <= 1)).all()
    assert found.parameters == 8 * (4 + 8 + 1) + 4 * 9


def test_networks_are_drawn_on_one_chart(task, pretended) -> None:
    pretended(lambda seed, delay: 1.0 if delay <= 5 + seed else 0.0)
    settings = {"seeds": 3, "grid": [4, 6, 8, 10], "start": None}
    found = [capacity("rnn", task, hidden_size=n, **settings) for n in (4, 5)]
    drawn = draw_capacities(found).to_dict()
    lines = [json.loads(one["data"]["values"]) for one in drawn["layer"] if one["mark"]["type"] == "line"]
    assert {row["name"] for rows in lines for row in rows} == {"rnn (n = 4): 6", "rnn (n = 5): 6"}
    assert [row["y"] for row in lines[0]] == pytest.approx(found[0].curve.tolist())
    single = found[0].plot().to_dict()
    assert single["title"]["text"] == "rnn (n = 4) on copying: 6"
    (band,) = [json.loads(one["data"]["values"]) for one in single["layer"] if one["mark"]["type"] == "area"]
    assert band[0]["lower"] == pytest.approx(wilson(3, 3).lower)


def test_a_training_goes_beyond_the_criterion_before_it_stops(task, monkeypatch) -> None:
    asked = []

    def fit_population(layers, task, *, target, **rest):
        asked.append(target)
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["mnemoscope.training.capacities.search"], "fit_population", fit_population)
    for criterion in (0.9, 1.0):
        with pytest.raises(KeyboardInterrupt):
            capacity("rnn", task, hidden_size=4, criterion=criterion)
    assert asked == [0.95, 1.0]


def test_the_same_again(task) -> None:
    state = torch.get_rng_state()
    first, second = (capacity("scornn", task, hidden_size=6, seeds=2, grid=[1, 2], **QUICK) for _ in range(2))
    assert np.array_equal(first.scores, second.scores)
    assert torch.equal(torch.get_rng_state(), state)


def test_each_seed_is_a_training_of_its_own(task) -> None:
    both = capacity("rnn", task, hidden_size=6, seeds=[3, 7], grid=[2], **QUICK)
    alone = capacity("rnn", task, hidden_size=6, seeds=[7], grid=[2], **{**QUICK, "layout": "sequential"})
    assert both.scores[0, 1] == alone.scores[0, 0]


def test_an_interrupted_search_goes_on(task, tmp_path) -> None:
    settings = {"hidden_size": 6, "seeds": 2, "grid": [1, 2, 3], **QUICK}
    whole = capacity("rnn", task, **settings)

    class Stop(Exception):
        pass

    def stop(level) -> None:
        if level["level"] == 2:
            raise Stop

    with pytest.raises(Stop):
        capacity("rnn", task, folder=tmp_path / "c", on_level=stop, **settings)
    again = capacity("rnn", task, folder=tmp_path / "c", **settings)
    assert np.array_equal(again.scores, whole.scores)
    assert again.limit == whole.limit
    record = ms.runs.load(tmp_path / "c")
    assert record.status == "finished"
    assert [line["level"] for line in record.metrics] == whole.levels.tolist()
    with pytest.raises(UserError, match="another configuration"):
        capacity("rnn", task, folder=tmp_path / "c", **{**settings, "hidden_size": 7})


def test_warm_start_is_recorded_and_differs(task, tmp_path) -> None:
    told = []
    settings = {"hidden_size": 8, "seeds": 2, "grid": [1, 2], "criterion": 0.3, **QUICK}
    warm = capacity("rnn", task, warm_start=True, on_level=told.append, folder=tmp_path / "w", **settings)
    assert [level["started_from"] for level in told] == [None, 1]
    assert warm.warm_start
    assert any("easier" in sentence for sentence in warm.assumptions)
    assert ms.runs.load(tmp_path / "w").spec["warm_start"] is True


def test_forms_of_a_network(task) -> None:
    quick = {"seeds": 1, "grid": [1], **QUICK, "layout": "sequential"}
    assert capacity(ms.nn.RNN(4, 6), task, **quick).network == "RNN"
    assert capacity(ms.nn.RNN, task, hidden_size=6, **quick).network == "rnn (n = 6)"
    assert capacity("rnn", "copying", parameters=500, count="all", num_layers=2, **quick).parameters <= 500


def test_comparison_is_paired_by_seed(task, pretended) -> None:
    pretended(lambda seed, delay: 1.0 if delay <= 20 + 3 * seed else 0.0)
    long = capacity("rnn", task, hidden_size=4, seeds=4, start=4, resolution=0.01)
    pretended(lambda seed, delay: 1.0 if delay <= 8 + 2 * seed else 0.0)
    short = capacity("rnn", task, hidden_size=3, seeds=4, start=4, resolution=0.01)
    (found,) = compare_capacities([long, short])
    assert found.comparison.pairs == 4
    assert found.comparison.difference.value == pytest.approx(
        np.mean(np.array(long.seed_limits) - np.array(short.seed_limits))
    )
    assert found.corrected == found.comparison.p == 2 / 16
    assert "corrected p" in str(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"criterion": 1.5}, "criterion must be a number above 0 and at most 1, got 1.5"),
        ({"quorum": 0}, "quorum must be"),
        ({"seeds": 0}, "seeds must be a positive integer, got 0"),
        ({"seeds": [1, 1]}, "seeds must be different whole numbers"),
        ({"grid": [3, 2]}, "grid must be ascending levels"),
        ({"grid": []}, "grid must be ascending levels"),
        ({"start": 50, "largest": 10}, "start must be from"),
        ({"resolution": 0}, "resolution must be"),
        ({"iterations": 0}, "iterations must be a positive integer, got 0"),
        ({"minutes": -1}, "minutes must be a number above 0, got -1"),
        ({"hidden_size": 8, "parameters": 100}, "give hidden_size or parameters, not both"),
        ({"lr": -1}, "lr must be"),
        ({"learning_rate": 1}, "training has no setting 'learning_rate'"),
    ],
)
def test_bad_input(task, change, words: str) -> None:
    with pytest.raises(UserError, match=words):
        capacity("rnn", task, **change)


def test_bad_networks(task) -> None:
    with pytest.raises(UserError, match="did you mean 'rnn'"):
        capacity("rn", task)
    with pytest.raises(UserError, match="a layer has its sizes"):
        capacity(ms.nn.RNN(4, 5), task, hidden_size=7)
    with pytest.raises(UserError, match="has no reset_parameters"):
        capacity(torch.nn.Sequential(), task)
    with pytest.raises(UserError, match="task must be the name of a task"):
        capacity("rnn", 3)


def test_searches_take_turns_level_by_level(task, pretended, monkeypatch) -> None:
    pretended(lambda seed, delay: 1.0 if delay <= 8 else 0.5)
    searches = [Search(name, task, seeds=2, start=4, resolution=1.0) for name in ("rnn", "irnn", "gru")]
    seen: list[tuple[str, int]] = []
    found = take_turns(searches, on_level=lambda search, level: seen.append((search.builder.label[:3], level["level"])))
    assert seen == [(name, level) for level in (4, 8, 16) for name in ("rnn", "irn", "gru")]
    assert [one.limit for one in found] == [8, 8, 8]


def test_the_time_of_a_level_that_was_not_finished_is_nobody_elses(task) -> None:
    slow = {**QUICK, "iterations": 10**6, "seeds": 2, "start": 3, "lr": 0}
    searches = [Search(NetworkSpec(name, hidden_size=4), task, **slow) for name in ("rnn", "irnn")]
    first, second = take_turns(searches, minutes=0.02)
    assert (first.unfinished, second.unfinished) == (3, None)
    assert second.reason == "the 0.02 minutes are used up"
    assert compare_capacities([first, second]) == []  # nothing is known of either


def test_a_network_that_raises_can_leave_the_others_their_turns(task, pretended) -> None:
    pretended(lambda seed, delay: 1.0 if delay <= 8 else 0.5)

    def build(seed):
        raise ZeroDivisionError

    broken = Search(Builder("broken", build, {"network": "broken"}), task, seeds=2, start=4)
    whole = Search("rnn", task, seeds=2, start=4, resolution=1.0)
    failed = []
    found = take_turns([broken, whole], on_error=lambda search, error: failed.append((search, type(error))))
    assert failed == [(broken, ZeroDivisionError)]
    assert found[1].limit == 8
    with pytest.raises(ZeroDivisionError):
        take_turns([Search(Builder("broken", build, {"network": "broken"}), task, seeds=2)])


def _turn_by(clock, turn, left, said):
    return turn(1.0 - next(clock), "the minute is used up")


def test_a_round_that_the_time_ended_counts_for_none(task, pretended, monkeypatch) -> None:
    pretended(lambda seed, delay: 1.0)
    names = ("rnn", "irnn", "gru")
    for equal, known in ((False, ["at least 8", "at least 4", "at least 4"]), (True, ["at least 4; 8 not finished"])):
        searches = [Search(name, task, seeds=2, start=4) for name in names]
        clock = itertools.chain([0.0] * 4, itertools.repeat(2.0))  # the time is over before the fifth turn
        for search in searches:
            monkeypatch.setattr(search, "turn", partial(_turn_by, clock, search.turn))
        found = [one.known for one in take_turns(searches, minutes=1, equal=equal)]
        assert found[: len(known)] == known
        assert found[1:] == ["at least 4", "at least 4"]
