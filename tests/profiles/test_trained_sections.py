"""Sections that train: asked for, within their share of the minutes, what they keep and draw; small trainings."""

import numpy as np
import pytest

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.profiles import Context
from mnemoscope.profiles.row import NetworkFacts, Row, RowSettings
from mnemoscope.profiles.runner import Runner, Settings
from mnemoscope.profiles.section import all_sections
from mnemoscope.profiles.trained_section import TrainedSection

NAMES = ("ladder", "memories", "recall")


def section(name):
    (found,) = [each for each in all_sections() if each.name == name]
    return found


def context(minutes=8.0, **more):
    facts = NetworkFacts(name="rnn", hidden_size=4, num_layers=1, kind="recurrent", input_size=1)

    def make(seed, width):
        return ms.nn.NetworkSpec("rnn", input_size=width or 1, hidden_size=4, seed=seed).build()

    return Context(facts=facts, make=make, train_minutes=minutes, **more)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr("mnemoscope.profiles.trained_section._LEAST", 2)
    monkeypatch.setattr("mnemoscope.profiles.trained_section._MOST", 2)
    monkeypatch.setattr("mnemoscope.profiles.trained_section._SEEDS", 2)
    small = {"batch_size": 4, "progress": False, "layout": "sequential", "test_size": 4, "validation_size": 4}
    for name in NAMES:
        monkeypatch.setattr(f"mnemoscope.profiles.sections.{name}.TRAINING", small)
    monkeypatch.setattr("mnemoscope.profiles.sections.ladder._RUNGS", ("Z2", "dyck"))
    monkeypatch.delenv("MNEMOSCOPE_DATA", raising=False)


def test_all_training_together_takes_the_minutes_that_were_given():
    """It took 1.75 times as long when the sections of this file had their minutes besides."""
    parts = [section(name).seconds(ms.nn.RNN(1, 4), context(10.0)) for name in ("trained", *NAMES)]
    assert sum(parts) == pytest.approx(600)
    assert parts[0] > max(parts[1:])


@pytest.mark.parametrize("name", NAMES)
def test_it_has_to_be_asked_for_and_takes_a_seventh_of_the_minutes(name):
    network = ms.nn.RNN(1, 4)
    assert section(name).reason_against(network, context(None)) == "not asked for: --train"
    given = Context(train_minutes=1.0)
    assert section(name).reason_against(network, given).startswith("the weights are somebody's own")
    assert section(name).seconds(network, context(7.0)) == pytest.approx(60)
    assert section(name).seconds(network, context(7.0, rivals=2)) == pytest.approx(30)
    assert section(name).kept_as(context(8.0)) != section(name).kept_as(context(9.0))
    assert isinstance(section(name), TrainedSection)


def test_the_ladder_keeps_what_training_found(tmp_path):
    own = context(folder=tmp_path)
    found = section("ladder").run(None, own)
    again = section("ladder").run(None, own)  # from the record
    assert found == again
    assert set(found.scalars) == {each.lower() for each in found.data["rungs"]}
    for each in found.scalars.values():
        assert 0 <= each.value <= 128


def test_memories_and_recall_keep_curves(tmp_path):
    found = section("memories").run(None, context(folder=tmp_path))
    assert set(found.data) == {"copying"}
    assert any(note.startswith("No text") for note in found.notes)
    data = found.data["copying"]
    assert len(data["lengths"]) == len(data["carried"]) == len(data["reset"]) == 4
    assert len(data["forgetting"]) == len(data["forgetting_lengths"])
    assert found.scalars["ratio"].value is None or np.isfinite(found.scalars["ratio"].value)
    recalled = section("recall").run(None, context(folder=tmp_path))
    assert recalled.notes == ("Its state has 128 bits.",)
    assert set(recalled.data) == {"mqar", "mqar-forgetting", "mqar-compositional"}


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_drawn_with_the_command_that_makes_them_again(name, tmp_path):
    kept = section(name).run(None, context(folder=tmp_path))
    row = Row(
        label="rnn",
        command="rnn --hidden 4",
        settings=RowSettings(train_minutes=8.0),
        sections={name: ms.profiles.row.SectionRow(data=kept.data)},
    )
    drawn = section(name).draw([row], ["rnn"])
    assert drawn.figures
    assert all(each.command == "mnemoscope profile rnn --hidden 4 --train --minutes 8" for each in drawn.figures)


def test_no_time_is_said():
    for name in NAMES:
        with pytest.raises(UserError, match="the time was over before"):
            section(name).run(None, context(1e-9))


def test_a_profile_without_training_says_so():
    (row,) = Runner([ms.nn.NetworkSpec("rnn", hidden_size=3)], Settings(quick=True, seeds=1, budget=1e-9)).run()
    assert {row.section(name).reason for name in NAMES} == {"not asked for: --train"}
