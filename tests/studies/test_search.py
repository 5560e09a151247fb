"""Search over rates and sizes: which points, that validation alone chooses, and that shards find the same."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.machines import Shard
from mnemoscope.machines.merging import merge
from mnemoscope.studies.machinery import (
    Axis,
    Outcome,
    RunSpec,
    Share,
    best_point,
    collected,
    edges,
    execute,
    grid_points,
    random_points,
    search_plan,
)

COMMON = {"network": "rnn", "task": "copy", "task_settings": {"delay": 3}, "iterations": 10, "seeds": [0, 1]}
COMMON |= {"batch_size": 4, "test_size": 8, "validation_size": 8, "hidden_size": 4, "layout": "sequential"}
RATES, SIZES = Axis("lr", (0.1, 0.01)), Axis("hidden_size", (2, 3, 4))


def test_a_grid_has_every_combination():
    points = grid_points([RATES, SIZES])
    assert points == [{"lr": rate, "hidden_size": size} for rate in (0.1, 0.01) for size in (2, 3, 4)]
    with pytest.raises(UserError, match="lr has a range, of which a grid has no points"):
        grid_points([Axis("lr", (0.1, 1.0), is_range=True)])


@given(st.integers(1, 40), st.integers(0, 5))
def test_random_points_are_in_their_ranges_and_a_larger_search_has_the_smaller(count, seed):
    axes = [
        Axis("lr", (1e-4, 0.1), is_range=True),
        Axis("hidden_size", (2, 9), is_range=True),
        Axis("bias", (True, False)),
    ]
    points = random_points(axes, count, seed)
    assert len(points) == count
    assert all(1e-4 <= point["lr"] <= 0.1 and 2 <= point["hidden_size"] <= 9 for point in points)
    assert all(isinstance(point["hidden_size"], int) and isinstance(point["lr"], float) for point in points)
    assert random_points(axes, count + 5, seed)[:count] == points


def test_a_range_is_drawn_evenly_in_the_logarithm():
    points = random_points([Axis("lr", (1e-4, 1.0), is_range=True)], 2000)
    logs = sorted(math.log10(point["lr"]) for point in points)
    # Kolmogorov and Smirnov's distance to the uniform law on [-4, 0]; 1.95 / sqrt(n) has a level of 0.001
    distance = max(abs((k + 0.5) / len(logs) - (one + 4) / 4) for k, one in enumerate(logs))
    assert distance < 1.95 / math.sqrt(len(logs))
    sizes = [point["n"] for point in random_points([Axis("n", (1, 3), is_range=True)], 3)]
    assert sorted(sizes) == [1, 2, 3]


def outcome(spec, losses, tests):
    return Outcome(spec, {"curve_loss": losses, "test_loss": tests, "test_score": tests}, 1.0)


def test_validation_alone_chooses():
    points = [{"lr": 1}, {"lr": 2}, {"lr": 3}, {"lr": 4}]
    plan = [RunSpec("fit", point) for point in points]
    done = [
        outcome(plan[0], [[3.0, 1.0, 2.0], [1.4, None, 9.0]], [9.0, 9.0]),  # the lowest of each seed: 1.0 and 1.4
        outcome(plan[1], [[1.3, 1.3], [1.3]], [0.0, 0.0]),  # the best test, and a worse validation
        outcome(plan[2], [[0.1], [0.1]], [0.0, None]),  # one seed diverged
    ]
    found = best_point(points, done[::-1], plan)
    assert [one.point["lr"] for one in found] == [1, 2, 3]
    assert found[0].loss == pytest.approx(1.2)
    assert found[0].deviation == pytest.approx(math.sqrt(0.08))
    assert (found[2].loss, found[2].deviation) == (math.inf, None)


def test_the_edge_of_an_axis_is_told():
    assert edges([RATES, SIZES], {"lr": 0.1, "hidden_size": 3}) == ["lr"]
    assert edges([Axis("nonlinearity", ("tanh", "relu"))], {"nonlinearity": "tanh"}) == []


def test_axes_are_settings_sizes_or_options_and_are_checked_before_the_first_training(tmp_path):
    axes = [RATES, Axis("nonlinearity", ("tanh", "relu")), Axis("num_layers", (1, 2))]
    plan = search_plan(COMMON, grid_points(axes), tmp_path)
    last = plan[-1].settings
    assert (last["lr"], last["options"], last["num_layers"]) == (0.01, {"nonlinearity": "relu"}, 2)
    assert last["validate_every"] == 1
    for axis, words in (
        (Axis("nonsense", (1,)), "RNN has no option 'nonsense'"),
        (Axis("hidden_size", (4, -4)), "hidden_size must be a positive integer, got -4"),
        (Axis("lr", (0.1, -1.0)), "lr must be"),
    ):
        with pytest.raises(UserError, match=words):
            search_plan(COMMON, grid_points([axis]), tmp_path)


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (0.1, math.inf), ("a", "b"), (True, 2), (math.nan, 1.0)])
def test_what_is_no_range(low, high):
    with pytest.raises(UserError, match=r"the range of lr must be LOW\.\.HIGH"):
        Axis("lr", (low, high), is_range=True)


def test_shards_of_a_search_choose_as_the_whole_does(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    points = grid_points([RATES, Axis("hidden_size", (2, 3))])
    plan = search_plan(COMMON, points, tmp_path)
    whole = best_point(points, list(execute(plan, tmp_path / "whole")), plan)
    for number in (3, 1, 2):
        list(Share("search", "own", plan, Shard(3, number), str(tmp_path / "shards")).run())
    merge([tmp_path / "shards"], tmp_path / "merged")
    found = best_point(points, collected(plan, tmp_path / "merged"), plan)
    assert [(one.point, one.losses) for one in found] == [(one.point, one.losses) for one in whole]
    assert len(whole) == 4
