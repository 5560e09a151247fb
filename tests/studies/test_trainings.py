"""Trainings as runs of studies: what they return, which rate is taken, where a search for a limit ends."""

from pathlib import Path

import pytest
import torch

from mnemoscope import tasks
from mnemoscope.studies.machinery.stand_ins import stand_in
from mnemoscope.studies.machinery.trainings import find_limit, train, watch_drift

COMMON = {"network": "rnn", "hidden_size": 6, "num_layers": 1, "batch_size": 16, "optimizer": "adam", "seeds": [0, 1]}


def test_validation_chooses_the_rate_of_every_seed(tmp_path: Path) -> None:
    settings = COMMON | {"task": "lag-copy", "task_settings": {"lag": 1, "length": 4}, "iterations": 60}
    settings |= {"rates": [1e-7, 1e-2], "validate_every": 20}
    found = train(settings, tmp_path)
    assert found["chosen_rate"] == [1e-2, 1e-2]
    alone = train({**settings, "rates": [1e-2]}, tmp_path / "alone")
    assert found["test_loss"] == pytest.approx(alone["test_loss"], rel=1e-4)
    assert found["curve_steps"] == [20, 40, 60]
    assert [len(curve) for curve in found["curve_loss"]] == [3, 3]
    assert found["parameters"] == 6 * 5 + 6 * 6 + 6 + 5 * 6 + 5


def test_a_look_at_every_seed_keeps_the_numbers_of_each(tmp_path: Path) -> None:
    settings = COMMON | {"network": "nnrnn", "task": "lag-copy", "task_settings": {"lag": 1, "length": 4}}
    settings |= {"iterations": 1, "lr": 1e-3, "looks": {"theta": {"every": True}}}
    found = train(settings, tmp_path)["theta"]
    assert found["every"]["narrow"][0] == found["narrow"] != found["every"]["narrow"][1]
    assert len(found["every"]["gamma"]) == 2
    assert "map" not in found["every"]


def test_a_budget_of_parameters_is_the_document_s(tmp_path: Path) -> None:
    settings = COMMON | {"network": "scornn", "num_layers": 2, "task": "copying", "iterations": 1, "seeds": [0]}
    settings |= {"task_settings": {"delay": 0, "symbols": 30, "alphabet": 32}, "parameters": 2**13, "count": "all"}
    del settings["hidden_size"]
    assert train(settings, tmp_path)["width"] == 48


def test_the_limit_is_the_hardest_level_that_most_seeds_master(tmp_path: Path) -> None:
    settings = COMMON | {
        "task": "lag-copy",
        "task_settings": {"lag": 1, "length": 16, "dimensions": 1},
        "iterations": 400,
    }
    settings |= {"lr": 1e-2, "axis": "lag", "grid": [1, 2, 5, 6], "criterion": 0.9, "hidden_size": 3}
    settings |= {"network": "linear-rnn", "validate_every": 50, "target": 0.95, "failures": 1}
    found = find_limit(settings, tmp_path / "study")
    # Width 3 copies one number with a lag of at most 2 exactly.
    assert found["limit"] == 2
    assert list(found["levels"]) == ["1", "2", "5"]
    assert len(list(tmp_path.iterdir())) == 3  # every level is a run that others find
    assert find_limit({**settings, "grid": [5, 6]}, tmp_path / "study")["limit"] is None
    assert len(list(tmp_path.iterdir())) == 3


def test_the_threshold_of_a_schedule_is_a_share_of_the_scored_steps(tmp_path: Path) -> None:
    settings = COMMON | {"task": "copying", "task_settings": {"delay": 6, "symbols": 2, "alphabet": 2}, "seeds": [0]}
    schedule = {"checks": 1, "threshold": "scored", "drops": 0}
    settings |= {"iterations": 6, "validate_every": 1, "schedule": schedule, "lr": 1e-9}
    assert train(settings, tmp_path)["steps"] == [2]


def test_drift_is_the_distance_from_an_orthogonal_matrix(tmp_path: Path) -> None:
    settings = COMMON | {"task": "copy", "task_settings": {"delay": 2}, "iterations": 4, "log_every": 2, "seeds": [0]}
    kept = watch_drift(settings | {"network": "scornn", "lr": 1e-2}, tmp_path)
    assert kept["drift_steps"] == [0, 2, 4]
    assert max(kept["drift"][0]) < 1e-5
    free = watch_drift(settings | {"network": "orth-rnn", "lr": 1e-2}, tmp_path)
    assert free["drift"][0][0] < 1e-5
    assert free["drift"][0][2] > 1e-2


@pytest.mark.parametrize("name", ["mnist", "pmnist", "shakespeare", "ptb"])
def test_stand_ins_are_read_as_the_files_are(name: str, tmp_path: Path) -> None:
    task = tasks.create(name, **stand_in(name, tmp_path))
    batch = task.sample(4, torch.Generator().manual_seed(0))
    assert batch.inputs.shape[1] == 4


def test_stand_ins_can_be_learned(tmp_path: Path) -> None:
    settings = {"network": "tt", "options": {"features": 8, "rank": 8, "length": 16, "classes": 10}, "task": "mnist"}
    settings["options"]["feature_map"] = {"name": "affine-relu", "input_size": 49, "features": 8}
    settings |= {"task_settings": {"recipe": "all"}, "stand_in": True, "batch_size": 16, "epochs": 10, "lr": 3e-3}
    found = train(settings | {"optimizer": "adam", "seeds": [0], "train_score": True}, tmp_path)
    assert found["train_score"][0] > 0.9
    assert found["test_score"][0] > 0.9
    assert found["steps"] == [10 * 38]
