"""The runner: its order, budget, interruptions, and what it makes of results; with parts that take no time."""

import dataclasses
import json
import math
import time
from fractions import Fraction

import pytest
import torch
from tests.profiles.fake_sections import TRUE, fail, make, number, only, refuse

from mnemoscope.core.errors import UserError
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles import Measurement, Scalar, crew
from mnemoscope.profiles.drawing import spoken
from mnemoscope.profiles.plan import Plan
from mnemoscope.profiles.profiling import Profiling
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.results import Store
from mnemoscope.profiles.row import Estimate
from mnemoscope.profiles.runner import Runner, Settings

RNN = NetworkSpec("rnn", hidden_size=3)


def run(*classes, targets=(RNN,), store=None, watch=None, **settings):
    with only(*classes):
        runner = Runner(list(targets), Settings(**settings), store)
        return runner, [row.to_dict() for row in runner.run(watch)]


def test_every_part_comes_once_before_further_seeds():
    seen = []
    first, second = make("a", 1, number()), make("b", 2, number(), once=True)
    run(first, second, seeds=3, watch=lambda piece, done, total: seen.append((piece, done, total)))
    assert [(piece.section.name, piece.seed) for piece, _, _ in seen[:-1]] == [("a", 0), ("b", 0), ("a", 1), ("a", 2)]
    assert [done for _, done, _ in seen] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert {total for _, _, total in seen} == {4.0}


def test_scalars_are_means_over_seeds_with_students_interval():
    _, (row,) = run(make("a", 1, number(), averaged=("curve",)), seeds=3, seed=4)
    found = row["parts"]["a"]["scalars"]["total"]
    assert found["seeds"] == [4.1, 5.1, 6.1]
    assert found["value"] == pytest.approx(float(Fraction(51, 10)))
    assert found["upper"] - found["value"] == pytest.approx(4.302652730 / 3**0.5)
    assert found["unit"] == "steps"
    curve = row["parts"]["a"]["data"]
    assert curve["curve"] == pytest.approx([5.1, 10.2])
    # A curve above zero has its band on the logarithmic scale.
    wide = math.exp(2 * 4.302652730 / 3**0.5 / 10.2)
    assert curve["curve_upper"][1] == pytest.approx(10.2 * wide)
    assert curve["curve_lower"][1] == pytest.approx(10.2 / wide)
    assert row["settings"]["seeds"] == [4, 5, 6]


def test_one_censored_seed_censors_the_mean():
    def run_one(context):
        cut = "window 512" if context.seed == 1 else ""
        return Measurement(scalars={"total": Scalar(value=200.0 + context.seed, at_least=cut)})

    _, (row,) = run(make("a", 1, run_one), seeds=3)
    found = row["parts"]["a"]["scalars"]["total"]
    assert (found["value"], found["lower"], found["upper"], found["at_least"]) == (201.0, None, None, "window 512")
    assert spoken(Estimate.from_dict(found)) == ">= 201 (window 512)"
    assert Estimate.from_dict({"value": 1.0}).at_least == ""


def test_a_network_with_weights_of_its_own_is_measured_once():
    _, (row,) = run(make("a", 1, number()), targets=[NetworkSpec(torch.nn.GRU(1, 3))], seeds=5)
    assert row["parts"]["a"]["scalars"]["total"]["seeds"] == [0.1]
    assert row["parts"]["a"]["scalars"]["total"]["lower"] is None
    assert row["network"]["weights"] == "given"


def test_what_refuses_and_what_fails_do_not_take_the_others_down():
    _, (row,) = run(make("a", 1, refuse), make("b", 2, fail), make("c", 3, number()), make("d", 4, number(), kinds=()))
    found = {name: (part["status"], part["reason"]) for name, part in row["parts"].items()}
    assert found["a"] == ("not applicable", "it needs a matrix")
    assert found["b"] == ("failed", "ZeroDivisionError: division by zero")
    assert found["c"] == ("done", None)
    assert found["d"][0] == "not applicable"


def test_one_seed_that_fails_is_named():
    def sometimes(context):
        return fail(context) if context.seed == 1 else number()(context)

    _, (row,) = run(make("a", 1, sometimes), seeds=3)
    assert row["parts"]["a"]["scalars"]["total"]["seeds"] == [0.1, 2.1]
    assert row["parts"]["a"]["notes"] == ["seed 1: ZeroDivisionError: division by zero"]


def test_numbers_that_json_cannot_hold_become_none_with_a_note():
    def infinite(context):
        return Measurement(scalars={"k": Scalar(value=float("inf"))}, data={"curve": [float("nan"), 1.0]})

    _, (row,) = run(make("a", 1, infinite, averaged=("curve",), numbers=("k",)), seeds=2)
    assert row["parts"]["a"]["scalars"]["k"]["value"] is None
    assert row["parts"]["a"]["scalars"]["k"]["note"] == "it is inf"
    assert row["parts"]["a"]["data"]["curve"] == [None, 1.0]
    json.dumps(row, allow_nan=False)


def test_a_number_that_is_not_declared_is_a_fault_of_the_section():
    _, (row,) = run(make("a", 1, number("other")), seeds=1)
    assert row["parts"]["a"]["status"] == "failed"
    assert "the section 'a' declares no quantity 'other'; it has total" in row["parts"]["a"]["reason"]


def test_the_budget_stops_what_would_not_fit():
    parts = (
        make("a", 1, number(), seconds=0.5),
        make("b", 2, number(), seconds=3.0),
        make("c", 3, number(), seconds=0.5),
    )
    _, (row,) = run(*parts, seeds=1, budget=2.0)
    assert [row["parts"][name]["status"] for name in "abc"] == ["done", "stopped", "done"]
    assert row["parts"]["b"]["reason"] == "it needs about 3.0 s, and the budget of 2 s is used up"


def test_a_part_with_fewer_seeds_than_planned_says_so():
    def slow(context):
        time.sleep(0.03)
        return number()(context)

    _, (row,) = run(make("a", 1, slow, seconds=0.01), seeds=100, budget=0.2)
    found = row["parts"]["a"]
    assert 1 <= len(found["scalars"]["total"]["seeds"]) < 10
    assert found["notes"][-1].endswith("of 100 seeds: there was no time for the others; --minutes gives them more")


def test_an_interrupted_run_leaves_rows_and_goes_on_bit_for_bit(tmp_path):
    calls = []

    def counted(context):
        calls.append(context.seed)
        if len(calls) == 3:
            raise KeyboardInterrupt
        generator = torch.Generator().manual_seed(context.seed)
        value = float(torch.rand((), generator=generator, dtype=torch.float64))
        return Measurement(scalars={"total": Scalar(value=value)}, data={"curve": [value / 3]})

    parts = make("a", 1, counted, averaged=("curve",)), make("b", 2, number())
    runner, (row,) = run(*parts, seeds=4, store=Store(tmp_path / "x.json"))
    assert runner.interrupted
    assert len(row["parts"]["a"]["scalars"]["total"]["seeds"]) == 2
    again, (resumed,) = run(*parts, seeds=4, store=Store(tmp_path / "x.json"))
    assert not again.interrupted
    assert calls == [0, 1, 2, 2, 3]
    _, (whole,) = run(*parts, seeds=4)
    for name in "ab":
        assert {**resumed["parts"][name], "seconds": 0} == {**whole["parts"][name], "seconds": 0}


def test_interrupted_before_a_part_began():
    def stop(context):
        raise KeyboardInterrupt

    runner, (row,) = run(make("a", 1, stop), make("b", 2, number()))
    assert runner.interrupted
    assert [row["parts"][name]["status"] for name in "ab"] == ["stopped", "stopped"]


def test_other_settings_and_other_networks_are_measured_anew(tmp_path):
    path = tmp_path / "x.json"
    parts = (make("a", 1, number()),)
    run(*parts, seeds=2, store=Store(path))
    for more, targets, kept in (
        ({"seeds": 3}, [RNN], 2),
        ({"seeds": 2, "seed": 1}, [RNN], 0),
        ({"seeds": 2, "quick": True}, [RNN], 0),
        ({"seeds": 2}, [NetworkSpec("rnn", hidden_size=4)], 0),
        ({"seeds": 2}, [NetworkSpec("rnn", hidden_size=3, nonlinearity="relu")], 0),
    ):
        before = path.read_text()
        store = Store(path)
        run(*parts, targets=targets, store=store, **more)
        assert store.taken_up == kept
        path.write_text(before)


def test_what_failed_is_tried_again(tmp_path):
    run(make("a", 1, fail), seeds=1, store=Store(tmp_path / "x.json"))
    store = Store(tmp_path / "x.json")
    _, (row,) = run(make("a", 1, number()), seeds=1, store=store)
    assert (row["parts"]["a"]["status"], store.taken_up) == ("done", 0)


def test_a_file_that_is_not_ours_is_left_alone(tmp_path):
    path = tmp_path / "x.profile.json"
    for text in ("{", '{"mine": 1}'):
        path.write_text(text)
        with pytest.raises(UserError, match="is in the way of the results"):
            Store(path)
        assert path.read_text() == text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"seeds": 0}, "seeds must be a positive integer, got 0"),
        ({"budget": 0}, "the budget must be a time above zero, got 0"),
        ({"budget": float("nan")}, "the budget must be a time above zero, got nan"),
    ],
)
def test_settings_that_cannot_be(wrong, said):
    with pytest.raises(UserError, match=said):
        Settings(**wrong)


def test_by_default_measuring_has_a_ceiling_and_ends_after_three_seeds():
    parts = make("a", 1, number(), seconds=1.0), make("b", 2, number(), seconds=80.0)
    runner, (row,) = run(*parts, bounded=True)
    assert runner.budget == 60.0
    assert row["settings"]["budget"] == 60.0
    assert row["parts"]["a"]["scalars"]["total"]["seeds"] == [0.1, 1.1, 2.1]
    assert row["parts"]["b"]["reason"] == "it needs about 80.0 s, and the budget of 60 s is used up"
    _, (row,) = run(*parts, bounded=True, budget=100.0)
    assert [len(row["parts"][name]["scalars"]["total"]["seeds"]) for name in "ab"] == [5, 5]


@pytest.mark.parametrize(("seconds", "count"), [(1.0, 5), (2.0, 0)])
def test_references_that_are_measured_take_a_quarter_of_the_time_or_are_left_out(seconds, count, tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path))
    axis = Axis(name="x", says="{value}", column="x", place=1)
    judged = Quantity(name="total", title="total", better="higher", floor=0.1, axis=axis, section="a")
    with only(make("a", 1, number(), seconds=seconds, quantities=(judged,)), make("b", 2, number(), seconds=44.0)):
        work = Profiling([NetworkSpec("rnn", hidden_size=16, input_size=2)], Settings(bounded=True))
        assert work.runner.budget == 60.0
        assert (0 if work.references is None else len(work.references.subjects)) == count  # three seeds each
        assert work.runner.reserved == 3 * seconds * count
        assert len(work.run("made by a test").references) == count


def test_what_is_reserved_is_no_time_for_measuring():
    with only(make("a", 1, number(), seconds=44.0)):
        runner = Runner([RNN], Settings(bounded=True))
        runner.reserved = 30.0
        assert runner.expected_seconds() == 30.0
        (row,) = runner.run()
    said = "it needs about 44.0 s, and the budget of 60 s is used up, 30 s of it by references"
    assert row.section("a").reason == said


def test_training_is_no_part_of_the_ceiling():
    runner, (row,) = run(make("a", 1, number(), seconds=500.0, trains=True, once=True), bounded=True)
    assert row["parts"]["a"]["status"] == "done"
    assert not runner.stopped


def test_a_part_whose_interval_changes_no_judgement_has_no_third_seed():
    axis = Axis(name="x", says="{value}", column="x", place=1)
    judged = Quantity(name="total", title="total", better="higher", floor=0.1, axis=axis, section="a")

    def sure(context):
        return Measurement(scalars={"total": Scalar(value=100.0 + 0.01 * context.seed)})

    clear, plain = make("a", 1, sure, quantities=(judged,)), make("b", 2, number())
    with only(clear, plain):
        found = []
        for scale in (1e-3, 1.0):  # references far below, and references all around
            others = Runner([RNN] * 4, Settings(seeds=3)).run()
            for place, row in enumerate(others):
                total = row.sections["a"].scalars["total"]
                values = tuple(scale * (100.0 + 10 * (place - 1.5) + 9.0 * k) for k in range(3))
                row.sections["a"].scalars["total"] = dataclasses.replace(total, value=sum(values) / 3, seeds=values)
            runner = Runner([RNN], Settings(bounded=True))
            runner.references = others
            found.append(runner.run()[0])
    assert [len(row.section("a").seeds) for row in found] == [2, 3]
    assert [len(row.section("b").seeds) for row in found] == [3, 3]
    assert found[0].section("a").notes == ("measured at 2 of 3 seeds: another seed would change no judgement",)


def test_a_part_that_takes_far_longer_than_estimated_is_ended_and_the_others_are_there(monkeypatch):
    from mnemoscope.profiles.sections.capacity import Capacity

    def endless(self, network, context):
        begin = time.monotonic()
        while time.monotonic() < begin + 30:
            pass

    monkeypatch.setattr(Capacity, "run", endless)
    monkeypatch.setattr(Capacity, "seconds", lambda self, network, context: 0.0)
    monkeypatch.setattr("mnemoscope.profiles.runner.Runner.budget", 0.5)
    runner = Runner([NetworkSpec("rnn", hidden_size=2)], Settings(quick=True, seeds=1))
    runner.sections = tuple(each for each in runner.sections if each.name in ("capacity", "card"))
    (row,) = runner.run()
    assert runner.stopped
    assert row.section("capacity").status == "stopped"
    assert "all that was left of the budget" in row.section("capacity").reason
    assert row.section("card").done


def test_no_piece_is_begun_that_would_overrun_the_budget_by_more_than_a_fifth():
    parts = make("a", 1, number(), seconds=11.9), make("b", 2, number(), seconds=12.1)
    _, (row,) = run(*parts, seeds=1, budget=10.0)
    assert [row["parts"][name]["status"] for name in "ab"] == ["done", "stopped"]


def test_a_further_seed_does_not_overrun_the_budget():
    def slow(context):
        time.sleep(0.2)
        return number()(context)

    _, (row,) = run(make("a", 1, slow, seconds=0.01), seeds=2, budget=0.36)  # twice 0.2 is within 1.2 times 0.36
    assert row["parts"]["a"]["scalars"]["total"]["seeds"] == [0.1]


def test_a_plan_repeats_what_the_clock_decided(tmp_path):
    """Half of the work is cut off by the budget; the plan does the other half, and the rows are the same."""
    calls = []

    def counted(context):
        calls.append(context.seed)
        return number()(context)

    parts = make("a", 1, counted, seconds=1.0), make("b", 2, number(), seconds=50.0)
    runner, (row,) = run(*parts, seeds=3, budget=10.0)
    runner.done().write(tmp_path / "plan.json")
    plan = Plan.read(tmp_path / "plan.json")
    calls.clear()
    with only(*parts):
        again = Runner([RNN], Settings(seeds=3), plan=plan)
        assert [(each.section.name, each.seed) for each in again.plan()] == [("a", 0), ("a", 1), ("a", 2)]
        (repeated,) = again.run()
    assert calls == [0, 1, 2]
    assert again.done() == plan
    for name in "ab":
        assert {**repeated.to_dict()["parts"][name], "seconds": 0} == {**row["parts"][name], "seconds": 0}


def test_a_plan_of_another_network_or_another_file_is_refused(tmp_path):
    part, path = make("a", 1, number()), tmp_path / "plan.json"
    runner, _ = run(part, seeds=1)
    runner.done().write(path)
    with only(part), pytest.raises(UserError, match="the networks of the plan must be gru, got 'rnn'"):
        Runner([NetworkSpec("gru", hidden_size=3)], Settings(), plan=Plan.read(path))
    with only(make("c", 1, number())), pytest.raises(UserError, match="the plan names the part 'a' of network 0"):
        Runner([RNN], Settings(), plan=Plan.read(path))
    path.write_text("{}")
    with pytest.raises(UserError, match=r"the schema of a plan must be 'mnemoscope.plan/1', got None"):
        Plan.read(path)
    with pytest.raises(UserError, match="--plan needs a file that an earlier profile wrote"):
        Plan.read(tmp_path / "none.json")


@pytest.mark.slow
def test_processes_side_by_side_find_the_same_bits(monkeypatch):
    """Two processes against one: every number of the real sections."""
    monkeypatch.setattr(crew, "_WORTH", 0.0)
    monkeypatch.setattr(crew, "_BUSY", 1e9)
    monkeypatch.setattr(crew, "cores", lambda: 2)
    spec = NetworkSpec("gru", hidden_size=6)
    rows = []
    for processes in (1, 2):
        runner = Runner([spec], Settings(quick=True, seeds=2, processes=processes))
        assert runner._abreast(runner.plan()) == processes
        rows.append(runner.run()[0].to_dict())
    for part, found in rows[0]["parts"].items():
        if part == "card":  # it takes times
            continue
        other = rows[1]["parts"][part]
        assert {**found, "seconds": 0} == {**other, "seconds": 0}
    assert rows[0]["settings"]["digests"] == rows[1]["settings"]["digests"]


@pytest.mark.slow
def test_large_states_side_by_side_find_the_same_bits(monkeypatch):
    """Two processes, and one with all cores beside it: beyond 512 numbers threads would sum in another order."""
    monkeypatch.setattr(crew, "_WORTH", 0.0)
    monkeypatch.setattr(crew, "_BUSY", 1e9)
    rows = []
    for available in (1, 2):
        monkeypatch.setattr(crew, "cores", lambda available=available: available)
        with only(*(TRUE[name] for name in ("fisher", "gradients", "spectrum"))):
            runner = Runner([NetworkSpec("rnn", hidden_size=600)], Settings(quick=True, seeds=1, processes=2))
            assert runner._abreast(runner.plan()) == available
            rows.append(runner.run()[0].to_dict()["parts"])
    for part, found in rows[0].items():
        assert found["status"] == "done"
        assert {**found, "seconds": 0} == {**rows[1][part], "seconds": 0}
