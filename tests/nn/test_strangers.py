"""Strangers' modules, in the shapes that people write, read by the plain command."""

import copy
import runpy
from pathlib import Path

import pytest
import torch

import mnemoscope as ms

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "strangers"), run_name="strangers")
STRANGERS = SCRIPT["catalogue"]()


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda each: each.where)
def test_it_is_read_as_what_it_is(stranger):
    found = SCRIPT["outcome"](str(SCRIPT["HERE"] / stranger.where), stranger.typed, (stranger.kind, stranger.state))
    assert found["outcome"] in ("right", "by command"), found["said"]


def test_the_table_of_the_documentation_is_theirs():
    page = (SCRIPT["ROOT"] / "docs" / "adapt.md").read_text()
    table = page.partition(SCRIPT["BEGIN"])[2].partition(SCRIPT["END"])[0]
    assert [line.split(" | ")[0].removeprefix("| ") for line in table.strip().splitlines()[2:]] == [
        each.looks for each in STRANGERS
    ]


@pytest.mark.heavy
def test_classes_of_packages():
    pytest.importorskip("torchrecurrent")
    rows = SCRIPT["packages"]()
    assert sum(row["outcome"] != "refused" for row in rows) >= 0.9 * len(rows)


@pytest.mark.parametrize("name", ["ScriptCell", "Reservoir"])
def test_what_has_no_parameters_or_is_a_script_can_be_copied_and_measured(name):
    """TorchScript copies parameters by an operation; plain tensors follow no `double()`."""
    network = SCRIPT["read"](str(SCRIPT["HERE"] / f"wild.py:{name}"), [])
    twin = copy.deepcopy(network)
    pairs = zip(network.parameters(), twin.parameters(), strict=True)
    assert all(new.is_leaf and new.requires_grad == old.requires_grad for old, new in pairs)
    flow = ms.measures.Dynamics.of(network)
    assert flow.factory["dtype"] == torch.float64
    assert ms.measures.separation_rank(flow, horizon=4, templates=2).shape == (4, 4)


def test_what_runs_in_single_precision_only_is_measured_in_it():
    flow = ms.measures.Dynamics.of(SCRIPT["read"](str(SCRIPT["HERE"] / "cells.py:Single"), []))
    assert flow.factory["dtype"] == torch.float32
    assert ms.measures.separation_rank(flow, horizon=4, templates=2).shape == (4, 4)
