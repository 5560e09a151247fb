"""Costs of studies: the arithmetic of what is timed, interpolation, cores; and that every training can be timed."""

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.studies import STUDIES
from mnemoscope.studies.machinery import Estimates, RunSpec, costs, time_on
from mnemoscope.studies.machinery.costs import trainings_of


@given(st.lists(st.floats(0.0, 100.0), max_size=30), st.integers(1, 9))
def test_time_on_cores_is_within_its_bounds(seconds, cores):
    found = time_on(seconds, cores)
    least = max([sum(seconds) / cores, *seconds])
    assert least - 1e-9 <= found <= (4 / 3 - 1 / (3 * cores)) * max(least, _best(seconds, cores)) + 1e-9


def _best(seconds, cores):
    """A lower bound of the best order: two of the cores + 1 longest share a core."""
    longest = sorted(seconds, reverse=True)
    return longest[cores - 1] + longest[cores] if len(longest) > cores else 0.0


class Timed:
    """In place of timing: a step takes its width in seconds, an answer a tenth; an epoch has 7 steps."""

    def __init__(self):
        self.calls = []

    def __call__(self, settings):
        self.calls.append(settings["hidden_size"])
        return [float(settings["hidden_size"]), 0.1, 7, 2.0, 30]


@pytest.fixture
def timed(monkeypatch):
    found = Timed()
    monkeypatch.setattr(costs, "_timed", found)
    return found


class Planned:
    """A study of given runs."""

    name, minutes = "planned", {"paper": 6.0}

    def __init__(self, *specs):
        self.specs = specs

    def plan(self, scale):
        return list(self.specs)


def fit(width, **more):
    return RunSpec("fit", {"network": "rnn", "task": "copy", "hidden_size": width, "seeds": [0, 1], **more})


def test_members_iterations_validations_and_test(timed, tmp_path):
    cost = Estimates(tmp_path / "times").cost(Planned(fit(4, rates=[1, 2, 3], iterations=10)), "paper")
    # 2 seeds x 3 rates, 10 steps of 4 s with validations of 2 sequences a step, 30 of the test, 0.1 s each
    assert list(cost.seconds.values()) == [pytest.approx(6 * (10 * (4 + 2 * 0.1) + 30 * 0.1))]
    assert (cost.source, cost.reason) == ("measured", "")
    (epochs,) = Estimates(tmp_path / "times").cost(Planned(fit(4, epochs=3)), "paper").seconds.values()
    assert epochs == pytest.approx(2 * (21 * 4.2 + 3))


def test_first_middle_and_last_are_timed_once_and_kept(timed, tmp_path):
    widths = [1, 2, 4, 8, 16]
    study = Planned(*(fit(width, iterations=1) for width in widths))
    cost = Estimates(tmp_path / "times").cost(study, "paper")
    assert timed.calls == [1, 4, 16]
    assert [one / 2 - 3.2 for one in cost.seconds.values()] == pytest.approx(widths)  # geometric between them
    again = Estimates(tmp_path / "times").cost(study, "paper")
    assert (again, len(timed.calls)) == (cost, 3)
    (tmp_path / "times").write_text("damaged")
    assert Estimates(tmp_path / "times").cost(study, "paper") == cost


def test_a_search_costs_all_its_levels(timed, tmp_path):
    settings = {**fit(2, iterations=1).settings, "axis": "delay", "grid": [1, 2], "criterion": 0.9}
    spec = RunSpec("capacity", settings)
    assert [one["task_settings"] for one in trainings_of(spec)] == [{"delay": 1}, {"delay": 2}]
    (seconds,) = Estimates(tmp_path / "times").cost(Planned(spec), "paper").seconds.values()
    assert seconds == pytest.approx(2 * 2 * (2.2 + 3))


def test_what_is_not_timed_has_the_declared_cost(timed, tmp_path):
    exact = Planned(RunSpec("separation-rank", {"M": 2}), RunSpec("separation-rank", {"M": 3}))
    cost = Estimates(tmp_path / "times").cost(exact, "paper")
    assert (cost.source, cost.reason, list(cost.seconds.values())) == ("declared", "it trains nothing", [360.0, 360.0])
    late = Estimates(tmp_path / "times", until=time.monotonic() - 1).cost(Planned(fit(3, iterations=1)), "paper")
    assert (late.source, late.reason) == ("declared", "no time was left to measure its steps")
    mixed = Estimates(tmp_path / "times").cost(Planned(fit(3, iterations=1), *exact.specs), "paper")
    assert mixed.reason == "2 runs that train nothing are not counted"


@pytest.mark.parametrize(
    ("fixed", "each", "size", "most"),
    [(0.001, 0.001, 50, 50), (0.1, 0.1, 64, 16), (0.9, 0.001, 4000, 128), (0.0, 2.0, 32, 2), (3.0, 0.5, 1, 1)],
)
def test_long_steps_are_timed_with_fewer_sequences_and_continued_along_a_line(monkeypatch, fixed, each, size, most):
    clock, asked = [0.0], []

    def call(count):
        asked.append(count)
        clock[0] += fixed + each * count

    monkeypatch.setattr(costs.time, "process_time", lambda: clock[0])
    seconds, timed = costs._continued(call, size)
    assert (timed, max(asked)) == (most, most)
    assert seconds == pytest.approx(fixed + each * size)


def test_where_files_are_missing_drawn_ones_stand_in_with_the_published_counts(monkeypatch, tmp_path):
    monkeypatch.delenv("MNEMOSCOPE_DATA", raising=False)
    small = {"network": "s4", "hidden_size": 4, "num_layers": 1, "options": {"order": 4, "block": True}, "seeds": [0]}
    settings = {
        **small,
        "task": "scifar",
        "task_settings": {"side": 4},
        "readout": "mean",
        "epochs": 3,
        "batch_size": 50,
    }
    step, answer, epoch, validation, test = costs._timed(settings)
    assert (epoch, test) == (900, 10_000)
    assert validation == pytest.approx(5_000 / 900)  # once a pass
    assert min(step, answer) > 0
    cost = Estimates(tmp_path / "times").cost(Planned(RunSpec("fit", settings)), "paper")
    assert (cost.source, cost.reason) == ("measured", "drawn files for scifar")


@pytest.mark.parametrize(
    ("task", "own", "sizes"),
    [
        ("pathfinder", {"side": 12, "dashes": 2}, (160_000, 20_000, 20_000)),
        ("pathfinder", {"side": 12, "dashes": 2, "examples": 8000}, (8000, 1000, 1000)),
        ("listops", {"longest": 30, "shortest": 5}, (96_000, 2_000, 2_000)),
    ],
)
def test_sets_that_take_long_to_draw_are_counted_and_not_drawn(task, own, sizes):
    small = {"network": "s4", "hidden_size": 4, "num_layers": 1, "options": {"order": 4, "block": True}, "seeds": [0]}
    small |= {"input_size": 4} if task == "listops" else {}
    begin = time.process_time()
    found = costs._timed(
        {**small, "task": task, "task_settings": own, "readout": "mean", "epochs": 2, "batch_size": 32}
    )
    epoch = math.ceil(sizes[0] / 32)
    assert found[2:] == [epoch, pytest.approx(sizes[1] / epoch), sizes[2]]
    assert time.process_time() - begin < 8


@pytest.mark.parametrize(
    "name", ["depth-fig-6", "ziv-fig-3-1", "ziv-fig-1-2", "kerg-relational-comparison", "kerg-table-b-1"]
)
def test_steps_of_every_kind_are_timed(name, tmp_path):
    if name == "kerg-table-b-1":
        pytest.importorskip("minigrid", reason="needs the extra mnemoscope[control]")
    study = STUDIES[name]
    cost = Estimates(tmp_path / "times").cost(study, "smoke")
    assert cost.source == "measured", cost.reason
    assert all(0 < one < math.inf for one in cost.seconds.values())
    assert json.loads((tmp_path / "times").read_text())
