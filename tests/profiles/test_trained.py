"""The trained part: asked for or not, within its minutes, drawn as it was found."""

import dataclasses
import sys

import numpy as np
import pytest

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles import Context, Row
from mnemoscope.profiles.runner import Settings
from mnemoscope.profiles.sections.trained import TASKS, Trained, _scalar, _seconds_of_a_step
from mnemoscope.profiles.subject import facts_of
from mnemoscope.training.capacities.result import Capacity, rates


def found(levels, mastered, complete=True):
    """A result of `capacity`, of three seeds."""
    mastered = np.array(mastered, dtype=bool)
    rate, lower, upper = rates(mastered)
    own = [max((lv for lv, good in zip(levels, column, strict=True) if good), default=0) for column in mastered.T]
    return Capacity(
        status="estimate",
        digits=None,
        assumptions=(),
        cost="",
        network="rnn",
        task="any",
        axis="delay",
        limit=max(own),
        below=None,
        unfinished=None,
        levels=np.array(levels),
        curve=rate,
        lower=lower,
        upper=upper,
        scores=mastered.astype(float),
        steps=np.full(mastered.shape, 7),
        seeds=(0, 1, 2),
        seed_limits=tuple(own),
        criterion=0.99,
        quorum=0.5,
        warm_start=False,
        complete=complete,
        reason="" if complete else "of the 2 minutes too few are left",
        seconds=1.0,
        parameters=99,
    )


class Fake:
    """A search that answers at once."""

    def __init__(self, builder, task, **settings):
        self.builder, self.task, self.settings, self.seconds = builder, task, settings, 6.0
        self.over = False


@pytest.fixture
def asked(monkeypatch):
    """What was asked of the searches: rounds of searches with their minutes, one for each task."""
    rounds = []

    def take_turns(searches, *, minutes, equal, on_level, on_error):
        assert equal
        rounds.append((searches, minutes))
        for each in searches:
            if each.builder.label == "gru" and each.task.name == "parity":
                on_error(each, ValueError("it cannot add"))
        return [
            found([5, 10, 20], [[1, 1, 1], [1, 1, 0], [0, 1, 0]], complete=each.task.name != "adding")
            for each in searches
        ]

    training = sys.modules["mnemoscope.training"]
    monkeypatch.setattr(training, "Search", Fake)
    monkeypatch.setattr(training, "take_turns", take_turns)
    return rounds


def context(minutes=10.0, name="rnn", **more):
    target = NetworkSpec(name, hidden_size=6)
    facts = facts_of(target, target.build())

    def make(seed, input_size):
        return target.replace(seed=seed, input_size=input_size).build()

    return Context(seed=4, facts=facts, make=make, train_minutes=minutes, **more)


def test_it_has_to_be_asked_for():
    network = ms.nn.RNN(1, 6)
    assert "--train" in Trained().reason_against(network, Context())
    assert Trained().reason_against(network, context()) is None
    own = Context(train_minutes=1.0)
    assert "give the class" in Trained().reason_against(network, own)
    assert "kind" in Trained().reason_against(ms.nn.TT(2, 3, 4, 5), context())


def test_it_divides_its_minutes_and_seeds(asked, tmp_path):
    Trained().run(None, context(minutes=17.5, folder=tmp_path))  # 10 of them are for this section
    assert [searches[0].task.name for searches, _ in asked] == [task.name for task in TASKS]
    # Every search took 0.1 minutes: what one leaves, the others get.
    assert [minutes for _, minutes in asked] == pytest.approx([10 / 5, 9.9 / 4, 9.8 / 3, 9.7 / 2, 9.6])
    settings = [searches[0].settings for searches, _ in asked]
    assert all(each["seeds"] == [4, 5, 6] for each in settings)
    assert {each["folder"] for each in settings} == {tmp_path / f"{task.name}-5000" for task in TASKS}


@pytest.mark.parametrize(("minutes", "steps"), [(0.1, 500), (5.25, 1500), (17.5, 5000), (60.0, 5000)])
def test_more_minutes_are_longer_trainings(asked, minutes, steps):
    result = Trained().run(None, context(minutes=minutes))
    assert all(searches[0].settings["iterations"] == steps for searches, _ in asked)
    assert f"at most {steps:,} iterations" in result.notes[0]


def test_networks_that_are_compared_have_equal_iterations_and_share_the_minutes(asked):
    contexts = [context(name=name, rivals=3) for name in ("rnn", "lstm", "irnn")]
    results = Trained().run_together([None] * 3, contexts)
    assert {each.settings["iterations"] for searches, _ in asked for each in searches} == {952}
    assert all(len(searches) == 3 for searches, _ in asked)
    assert asked[0][1] == pytest.approx(4 / 7 * 10 / 5)
    assert len({result.notes for result in results}) == 1


def test_a_network_that_fails_leaves_the_others_their_turns(asked):
    one, two = Trained().run_together([None] * 2, [context(name="gru"), context()])
    assert isinstance(one, ValueError)
    assert two.scalars["adding"].value == 20
    assert [len(searches) for searches, _ in asked] == [2, 2, 2, 1, 1]  # none is asked again after it failed


def test_minutes_that_no_level_fits_in_are_refused_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("mnemoscope.profiles.sections.trained._TRIED", (1, 2))
    assert _seconds_of_a_step(context()) >= 0
    monkeypatch.setattr("mnemoscope.profiles.sections.trained._seconds_of_a_step", lambda context: 0.01)
    with pytest.raises(
        UserError, match=r"needs more minutes, got 0\.0001, 5.7e-05 of them for this: one level of copying .*5 tasks"
    ):
        ms.profile("rnn", hidden_size=4, quick=True, train_minutes=0.0001, html=tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_networks_are_built_for_each_task_with_weights_of_each_seed(asked):
    Trained().run(None, context())
    for builder, task in ((searches[0].builder, searches[0].task) for searches, _ in asked):
        one, two = builder.build(4), builder.build(5)
        assert one.input_size == task.input_size
        assert not (one.weight_hh_l0 == two.weight_hh_l0).all()
        assert (one.weight_hh_l0 == builder.build(4).weight_hh_l0).all()


def test_numbers_are_those_of_the_search(asked):
    result = Trained().run(None, context())
    assert result.scalars["copying"].value == 10  # of 10, 20 and 5 the middle one
    assert result.scalars["copying"].at_least == result.scalars["copying"].note == ""
    assert (result.scalars["adding"].value, result.scalars["adding"].at_least) == (20, "unfinished")
    assert result.data["copying"]["rates"] == pytest.approx([1, 2 / 3, 1 / 3])


@pytest.mark.parametrize(
    ("levels", "mastered", "complete", "said"),
    [
        ([5], [[0, 0, 0]], True, "below 5"),
        ([5], [[0, 0, 1]], True, "below 5"),
        ([5], [[0, 0, 0]], False, "below 5, unfinished"),
        ([], np.zeros((0, 3)), False, "unfinished"),
    ],
)
def test_a_limit_that_is_not_known_is_never_zero(levels, mastered, complete, said):
    quorum = found(levels, mastered, complete)
    missed = min((lv for lv, row in zip(levels, mastered, strict=True) if sum(row) < 2), default=None)
    scalar = _scalar(dataclasses.replace(quorum, limit=None, below=missed))
    assert (scalar.value, scalar.note) == (None, said)


def test_page(asked):
    from mnemoscope.profiles.results import merge, seed_result

    trained = Trained()
    found = merge(trained, {4: seed_result(trained, trained.run(None, context()), 1.0)}, 1)
    row = Row(label="rnn", command="rnn --hidden 6", sections={"trained": found})
    section = trained.draw([row, Row(label="lstm")], ["rnn"])
    assert section.headline.value == "10"
    assert len(section.figures) == 1 + len(TASKS)
    assert section.figures[1].command == "mnemoscope profile rnn --hidden 6 --train --minutes 10"
    assert trained.draw([Row(label="lstm")], ["lstm"]) is None


def test_minutes_must_be_above_zero():
    with pytest.raises(UserError, match="train_minutes must be a time above zero"):
        Settings(train_minutes=0)


def test_another_number_of_minutes_is_another_result():
    assert Trained().kept_as(context(1.0)) != Trained().kept_as(context(2.0))


@pytest.mark.slow
def test_really_trained(tmp_path):
    done = ms.compare("rnn", "irnn", hidden_size=8, quick=True, train_minutes=1, html=tmp_path / "page.html")
    for row in done.rows:
        found = row.section("trained")
        assert found.done
        assert set(found.scalars) == {task.name.replace("-", "_") for task in TASKS}
        assert found.data["iterations"] == 500
    assert "What it learns to remember" in (tmp_path / "page.html").read_text()
    assert "trained limit of copying (steps of delay)" in str(done)
