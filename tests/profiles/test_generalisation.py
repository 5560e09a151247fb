"""Accuracy on symbols that training never showed: a part of the profile of relational networks, on request."""

import pytest

import mnemoscope as ms
from mnemoscope.nn import NetworkSpec
from mnemoscope.report import render
from mnemoscope.training import fit


def test_accuracy_by_held_out_symbols_is_that_of_a_training_by_hand():
    sizes = {"panels": 2, "answers": 2}
    done = ms.profile("corelnet", options=sizes, quick=True, train_minutes=0.1)
    found = done.rows[0].section("generalisation")
    assert found.done, found.reason
    assert found.data["task"] == "same-different"
    assert found.data["held_out"][-1] == 98
    task = ms.tasks.create("same-different", held_out=98, split=1)
    by_hand = fit(
        NetworkSpec("corelnet", seed=1, options=sizes).build(),
        task,
        seed=1,
        iterations=20,
        optimizer="adam",
        lr=5e-4,
        batch_size=96,
        validate_every=0,
        test_size=1000,
        progress=False,
    )
    assert found.data["scores"][-1][1] == by_hand.tests["held_out=98"]["score"]
    assert found.scalars["hardest"].value == pytest.approx(sum(found.data["scores"][-1]) / 3)
    assert "Accuracy on symbols that training never showed" in render(done.page)
