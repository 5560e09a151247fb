"""The trained part: asked for or not, within its minutes, drawn as it was found."""

import sys

import numpy as np
import pytest

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles import Context, Row
from mnemoscope.profiles.runner import Settings
from mnemoscope.profiles.sections.trained import TASKS, Trained
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


@pytest.fixture
def asked(monkeypatch):
    """What `capacity` was asked for; it answers at once."""
    calls = []

    def capacity(network, task, **settings):
        calls.append((network, task, settings))
        return found([5, 10, 20], [[1, 1, 1], [1, 1, 0], [0, 1, 0]], complete=task.name != "adding")

    monkeypatch.setattr(sys.modules["mnemoscope.training"], "capacity", capacity)
    return calls


def context(minutes=10.0, **more):
    target = NetworkSpec("rnn", hidden_size=6)
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
    Trained().run(None, context(minutes=10.0, folder=tmp_path))
    assert [task.name for _, task, _ in asked] == [task.name for task in TASKS]
    minutes = [settings["minutes"] for _, _, settings in asked]
    assert minutes == pytest.approx([2.0, 2.5, 10 / 3, 5.0, 10.0], rel=1e-2)  # what one leaves, the others get
    assert all(settings["seeds"] == [4, 5, 6] for _, _, settings in asked)
    assert {settings["folder"] for _, _, settings in asked} == {tmp_path / task.name for task in TASKS}


@pytest.mark.parametrize(("minutes", "steps"), [(0.1, 500), (3.0, 1500), (10.0, 5000), (60.0, 5000)])
def test_more_minutes_are_longer_trainings(asked, minutes, steps):
    result = Trained().run(None, context(minutes=minutes))
    assert all(settings["iterations"] == steps for _, _, settings in asked)
    assert f"at most {steps:,} steps" in result.notes[0]


def test_networks_are_built_for_each_task_with_weights_of_each_seed(asked):
    Trained().run(None, context())
    for builder, task, _ in asked:
        one, two = builder.build(4), builder.build(5)
        assert one.input_size == task.input_size
        assert not (one.weight_hh_l0 == two.weight_hh_l0).all()
        assert (one.weight_hh_l0 == builder.build(4).weight_hh_l0).all()


def test_numbers_are_those_of_the_search(asked):
    result = Trained().run(None, context())
    assert result.scalars["copying"].value == 10  # of 10, 20 and 5 the middle one
    assert result.scalars["copying"].note == ""
    assert "not finished" in result.scalars["adding"].note
    assert result.data["copying"]["rates"] == pytest.approx([1, 2 / 3, 1 / 3])


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
    done = ms.profile("rnn", hidden_size=8, quick=True, train_minutes=0.5, html=tmp_path / "page.html")
    found = done.rows[0].section("trained")
    assert found.done
    assert set(found.scalars) == {task.name.replace("-", "_") for task in TASKS}
    assert "What it learns to remember" in (tmp_path / "page.html").read_text()
