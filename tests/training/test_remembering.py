"""What trained networks remember: crafted networks whose answers are known, text read twice, resuming, bad tasks."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import mnemoscope as ms
from mnemoscope import training
from mnemoscope.core.errors import UserError
from mnemoscope.training import memories as room
from mnemoscope.training.model import Model

TINY = {
    "hidden_size": 4,
    "iterations": 3,
    "seeds": 2,
    "examples": 16,
    "batch_size": 4,
    "validation_size": 4,
    "test_size": 4,
    "layout": "sequential",
    "progress": False,
}


class Delay(nn.Module):
    """Says the letter of a number of steps ago, exactly: a delay line of one-hot vectors."""

    def __init__(self, width: int, steps: int) -> None:
        super().__init__()
        self.width, self.steps = width, steps
        self.scale = nn.Parameter(torch.tensor(50.0))

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        line = torch.cat([x, h[:, : -self.width]], -1)
        return self.scale * h[:, -self.width :], line


def delay_model(task: ms.tasks.Task, steps: int) -> Model:
    width = task.input_size
    cell = ms.adapt(
        Delay(width, steps),
        kind="cell",
        input_size=width,
        init_state=lambda batch: torch.zeros(batch, steps * width),
    )
    return Model(None, cell, None)


@pytest.fixture
def copying():
    return ms.tasks.create("copying", delay=4, symbols=2, alphabet=4)


def test_a_delay_line_copies_at_its_delay_and_nowhere_else(copying):
    model = delay_model(copying, 6)  # what is to be said now came delay + symbols steps ago
    curve = room.forgetting_curve(model, copying, 64, 0)
    assert curve["lengths"] == [2, 4, 8, 16, 32]
    assert curve["copied"][1] == 1.0
    assert max(curve["copied"][2:]) == 0.0  # it says blank
    assert curve["statistics"] == pytest.approx([0.25] * 5, abs=0.03)
    scores = room.length_scores(model, copying, 32, 0)
    assert scores["carried"][0] == 1.0
    assert scores["carried"][1:] == [0.0, 0.0, 0.0]


def test_predictions_of_a_delay_line_look_as_far_back_as_it_is(copying):
    found = room.trained_remembrance(delay_model(copying, 6), copying, 64, 0)
    assert found.curve[found.lengths == 6][0] > 0.3
    assert found.curve[-1] > 0.3 if found.lengths[-1] <= 6 else found.curve[found.lengths > 6][0] == pytest.approx(0)
    assert found.horizon == copying.steps
    assert "trained readout" in found.prediction


def test_a_state_set_back_forgets():
    """Parity over 8 times the length, by a network that tracks it exactly; set back, it starts anew every 8 steps."""
    task = ms.tasks.create("group-composition", group="Z2", length=8)

    class Parity(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Parameter(torch.ones(()))

        def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
            new = self.one * h * (1 - 2 * x[:, 1:])
            return torch.cat([new, -new], -1), new

    cell = ms.adapt(Parity(), kind="cell", input_size=2, init_state=lambda batch: torch.ones(batch, 1))
    scores = room.length_scores(Model(None, cell, None), task, 256, 0)
    assert scores["carried"] == [1.0, 1.0, 1.0, 1.0]
    assert scores["reset"][0] == 1.0
    # After the first eighth the answers are those of a coin: (1 + 7 / 2) / 8.
    assert scores["reset"][3] == pytest.approx(4.5 / 8, abs=0.05)


def test_text_that_is_read_twice(tmp_path, monkeypatch):
    """A network that repeats what it read a number of characters ago copies a text of that length, and no other."""
    letters = "".join(np.random.default_rng(0).choice(list("abcdefgh"), 4000))
    folder = tmp_path / "tinyshakespeare"
    folder.mkdir()
    (folder / "input.txt").write_text(letters)
    task = ms.tasks.create("shakespeare", length=8, data=str(tmp_path), verify=False)
    size = task.embedding

    class Words(nn.Module):
        def forward(self, tokens: Tensor) -> Tensor:
            return torch.nn.functional.one_hot(tokens, size).float()

    cell = ms.adapt(
        Delay(size, 8),
        kind="cell",
        input_size=size,
        init_state=lambda batch: torch.zeros(batch, 8 * size),
    )
    model = Model(Words(), cell, None)
    curve = room.forgetting_curve(model, task, 64, 0)
    assert curve["lengths"] == [2, 4, 8, 16, 32, 64]
    there = curve["lengths"].index(8)
    assert curve["copied"][there] == 1.0
    assert curve["statistics"][there] < 0.5
    others = [c - s for k, (c, s) in enumerate(zip(curve["copied"], curve["statistics"], strict=True)) if k != there]
    assert max(map(abs, others)) < 0.5


def test_a_population_with_intervals_and_its_record(copying, tmp_path):
    whole = training.remembering("rnn", copying, **TINY)
    assert whole.carried.shape == whole.reset.shape == (2, 4)
    assert whole.forgetting.shape == (2, len(whole.forgetting_lengths))
    kept = training.remembering("rnn", copying, folder=tmp_path / "r", **TINY)
    again = training.resume(tmp_path / "r", progress=False)
    for found in (kept, again):
        np.testing.assert_array_equal(found.carried, whole.carried)
        np.testing.assert_array_equal(found.remembrance, whole.remembrance)
        np.testing.assert_array_equal(found.copied, whole.copied)
    assert str(whole).startswith("rnn (n = 4) on copying, trained at 8 steps")
    assert whole.plot().to_dict()
    assert whole.to_dict()["multiples"] == [1, 2, 4, 8]


def test_of_a_run_that_was_trained(copying):
    run = training.fit(ms.nn.RNN(6, 4), copying, iterations=2, batch_size=4, test_size=4, progress=False)
    found = training.remembering_of(run, examples=8)
    assert (found.seeds, found.network, found.task) == ((0,), "rnn", "copying")
    np.testing.assert_array_equal(found.carried[0], room.length_scores(run.model, copying, 8, 0)["carried"])


def test_ratios_are_above_statistics_and_leave_out_who_learned_nothing():
    scores = np.array([[1.0, 1, 1, 0.625], [0.5, 0.5, 0.5, 0.5], [0.25, 0.25, 0.25, 0.25], [np.nan] * 4])
    floor = np.array([0.25, 0.25, 0.25, np.nan])
    assert room._ratio(scores, floor).value == pytest.approx((0.5 + 1) / 2)
    assert np.isnan(room._ratio(scores[2:], floor[2:]).value)


def test_bad_tasks():
    with pytest.raises(UserError, match="answers that are classes, and those of adding are numbers"):
        training.remembering("rnn", "adding", **TINY)
    with pytest.raises(UserError, match="a task with a length or a delay, and mnist has none"):
        training.remembering("rnn", "mnist", **TINY)
    with pytest.raises(UserError, match="found must be a run or several"):
        training.remembering_of([])
