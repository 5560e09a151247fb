"""Studies that train Kerg's and Matrix's networks: smoke runs, and looks at what was learned against plain autograd."""

from pathlib import Path

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.report import render
from mnemoscope.studies import STUDIES
from mnemoscope.studies.machinery import NO_VERDICT, execute, facts_of, study_page
from mnemoscope.studies.machinery.looks import LOOKS, Probability, gradients_by_step
from mnemoscope.training.model import build_model

TRAINED = [
    name
    for name in STUDIES
    if name.startswith(("kerg", "matrix")) and not name.startswith("kerg-relational") and STUDIES[name].trained
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One record for all studies: they share runs."""
    return tmp_path_factory.mktemp("runs")


@pytest.mark.parametrize("name", TRAINED)
def test_smoke_scale_needs_no_data_and_gives_a_page(name: str, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MNEMOSCOPE_DATA", raising=False)
    if name == "kerg-table-b-1":
        pytest.importorskip("minigrid", reason="needs the extra mnemoscope[control]")
    study = STUDIES[name]
    outcomes = list(execute(study.plan("smoke"), runs))
    finding = study.analyse(outcomes, "smoke")
    assert {part.verdict for part in finding.parts} == {NO_VERDICT}
    assert {row["network"] for row in finding.rows if "network" in row} <= set(study.entries)
    assert study.title in render(study_page(study, finding, "smoke", facts_of(outcomes)))
    assert study.shortened("laptop")


def model_of(name: str, **options):
    task = ms.tasks.create("copying", delay=3, symbols=2, alphabet=3)
    layer = ms.nn.create(name, input_size=5, hidden_size=6, generator=torch.Generator().manual_seed(0), **options)
    return build_model(layer, task, "linear", torch.Generator().manual_seed(1)), task


@pytest.mark.parametrize("name", ["rnn", "lstm", "memrnn", "relrnn", "rellstm"])
def test_gradients_are_total_derivatives(name: str) -> None:
    """A nudge of the state where it is produced changes the loss as much: by all ways, through copies too."""
    model, task = model_of(name, **({"buffer": 2, "relevant": 2} if "rel" in name else {}))
    found = gradients_by_step(model, task, 1)
    assert found.shape == (task.steps, 1)
    assert next(model.parameters()).dtype == torch.float32
    model.double()
    batch = task.sample(1, torch.Generator().manual_seed(0))
    x, place, small = batch.inputs.double(), 2, 1e-6
    directions = torch.eye(6, dtype=torch.float64)
    slopes = [
        (nudged(model, task, batch, x, place, small * d) - nudged(model, task, batch, x, place, -small * d)) / 2 / small
        for d in directions
    ]
    assert np.linalg.norm(slopes) == pytest.approx(float(found[place, 0]), rel=1e-4)


def nudged(model, task, batch, x, place: int, by: torch.Tensor) -> float:
    """Return the loss when the state of one step is changed where it is produced."""
    layer = model.layer
    core = layer._cores[0] if hasattr(layer, "_cores") else layer
    plain, calls = core.advance, []

    def advance(w, a, state):
        y, after = plain(w, a, state)
        calls.append(1)
        if len(calls) == place + 1:
            after = after + by if isinstance(after, torch.Tensor) else (after[0] + by, *after[1:])
            y = y + by
        return y, after

    core.advance = advance
    if hasattr(layer, "capacity"):
        layer.capacity = len(x)
    try:
        with torch.no_grad():
            state, outputs = layer.init_state(1), []
            for step in x:
                y, state = layer.step(step, state)
                outputs.append(y)
            return float(task.loss(model.answers(torch.stack(outputs)), batch))
    finally:
        del core.advance


def test_schur_form_of_a_start_is_normal() -> None:
    model, task = model_of("nnrnn", block="published")
    found = LOOKS["theta"](model, task)
    assert found["gamma"] == pytest.approx(1)
    assert found["lower_norm"] == 0
    assert sum(found["angles"]) == pytest.approx(1)
    theta = np.array(found["map"])
    assert theta[0, 0] == pytest.approx(theta[1, 1])
    assert theta[0, 0] ** 2 + theta[1, 0] ** 2 == pytest.approx(1, abs=1e-3)


def test_probability_is_the_logit_of_its_half() -> None:
    h = torch.tensor([-0.9, 0.0, 0.5])
    torch.testing.assert_close(torch.sigmoid(Probability()(h)), (1 + h) / 2)


def test_longer_tests_harder_settings() -> None:
    model, task = model_of("rnn")
    found = LOOKS["longer"](model, task, axis="delay", levels=[3, 9], sequences=50)
    harder = ms.tasks.create("copying", delay=9, symbols=2, alphabet=3)
    batch = harder.sample(50, torch.Generator().manual_seed(0))
    assert found["losses"][1] == pytest.approx(harder.loss(model(batch.inputs)[0], batch).item(), rel=1e-5)


def test_heads_of_a_machine_that_goes_on_by_one_slot() -> None:
    """A head whose weights are known: the look finds where it wrote and that it read there again."""
    task = ms.tasks.create("matrix-copy", longest=3)

    class Shifting(torch.nn.Module):
        def trace(self, inputs):
            steps = len(inputs)
            write, read = torch.zeros(2, steps, 1, 1, 9)
            for t in range(steps):
                write[t, 0, 0, t] = 1.0
                read[t, 0, 0, (t - 4) % 9] = 1.0
            return type("Trace", (), {"write": write, "read": read})()

    found = LOOKS["heads"](type("Model", (), {"layer": Shifting()})(), task, length=3)
    assert (found["same"], found["distinct"], found["sharp"]) == (1.0, 3, 1.0)
    assert np.array(found["write"]).shape == (7, 9)


def test_attention_while_recalling() -> None:
    model, task = model_of("memrnn")
    found = LOOKS["attention"](model, task, sequences=2)
    assert np.array(found["map"]).shape == (task.steps, task.steps)
    assert found["cell"] == 1
    rows = np.array(found["map"])[-task.symbols :]
    np.testing.assert_allclose(found["recall"], rows.mean(0), atol=1e-4)
    np.testing.assert_allclose(rows.sum(1), 1, atol=2e-3)


def test_a_row_may_hold_a_whole_matrix() -> None:
    from mnemoscope.studies.machinery import HeatMapOf

    words = {"name": "n", "title": "t", "alt": "a", "how": "h", "x_title": "x", "y_title": "y", "value_title": "v"}
    drawn = HeatMapOf(x="cell", y="cell", value="m", **words).drawing([{"cell": 3, "m": [[1.0, 2.0], [3.0, 4.0]]}])
    assert (drawn.values, drawn.x_labels) == ([[1.0, 2.0], [3.0, 4.0]], ["0", "3"])
