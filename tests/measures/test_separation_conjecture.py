"""Bounds put to the test: true ones hold, false ones are refuted by files that a program of their own confirms."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.separation.bounds import VERIFIER
from mnemoscope.measures.separation.conjecture import separation_conjecture
from mnemoscope.measures.separation.rank import separation_rank
from mnemoscope.theory import conjecture_bound, depth_two_rank, separation_upper


@pytest.fixture(scope="module")
def found():
    return separation_conjecture(channels=(2, 3), widths=(2, 3, 4), horizons=(2, 4), depths=(1, 2, 3), draws=2, seed=11)


def column(found, name: str) -> int:
    return found.bounds.index(name)


def verify(path: str) -> subprocess.CompletedProcess[str]:
    program = Path(path).with_name("verify.py")
    return subprocess.run([sys.executable, "-I", str(program), path], capture_output=True, text=True, check=False)


def test_bounds_of_the_errata_hold_in_every_draw(found) -> None:
    assert len(found.cases) == 2 * 3 * 2 * 3
    for name in ("theorem 1, depth 1", "theorem 1, depth 2", "depth-2 formula", "conjecture 1", "upper bound"):
        b = column(found, name)
        said = found.values[:, b] >= 0
        assert said.any()
        assert (found.held[said, b] == 2).all()
    assert not found.failed.any()
    assert not found.undecided.any()
    assert found.counterexamples == found.files == ()


def test_values_are_the_formulas_and_attained_is_equality(found) -> None:
    for row, (M, R, T, L) in enumerate(found.cases.tolist()):
        assert found.values[row, column(found, "conjecture 1")] == conjecture_bound(M, R, T, L)
        expected = depth_two_rank(M, R, T) if L == 2 else -1
        assert found.values[row, column(found, "depth-2 formula")] == expected
        for b in range(len(found.bounds)):
            if found.values[row, b] >= 0:
                assert found.attained[row, b] == (found.ranks[row] == found.values[row, b]).sum()


def test_conjecture_at_depth_one_is_not_the_theorem_when_wider_than_the_input(found) -> None:
    wide = (found.cases[:, 3] == 1) & (found.cases[:, 1] > found.cases[:, 0]) & (found.cases[:, 2] > 2)
    assert (found.attained[wide, column(found, "conjecture 1")] == 0).all()
    assert (found.attained[wide, column(found, "theorem 1, depth 1")] == 2).all()


def test_the_same_seed_draws_the_same_and_another_one_others(tmp_path) -> None:
    def first_weights(seed: int, folder: str) -> dict:
        found = separation_conjecture(
            (2,), (2,), (2,), (1,), 1, seed, folder=tmp_path / folder, conjectures={"x": lambda *_: 9}
        )
        return json.loads(Path(found.files[0]).read_text())["weights"]

    assert first_weights(3, "a") == first_weights(3, "b") != first_weights(4, "c")


def test_a_false_conjecture_is_refuted_and_its_file_confirmed(tmp_path) -> None:
    found = separation_conjecture(
        (2,), (2, 3), (4,), (1, 2), 1, folder=str(tmp_path / "found"), conjectures={"R^T": lambda M, R, T, L: R**T}
    )
    b = column(found, "R^T")
    assert (found.failed[:, b] == 1).all()
    assert len(found.counterexamples) == len(found.files) == 4
    assert "4 counterexamples" in str(found)
    for line, path in zip(found.counterexamples, found.files, strict=True):
        saved = json.loads(Path(path).read_text())
        assert f"rank {saved['rank']}, bound {saved['value']}" in line
        assert saved["seed"] == 0
        found = verify(path)
        assert found.returncode == 0, found.stderr
        assert "counterexample confirmed" in found.stdout
        assert f"[{saved['rank']}, {saved['rank']}]" in found.stdout
        network = ms.nn.RAC(saved["M"], saved["R"], num_layers=saved["L"], output_size=1, dtype=torch.float64)
        with torch.no_grad():
            for name, value in network.named_parameters():
                value.copy_(torch.tensor(saved["weights"][name], dtype=torch.float64))
        assert separation_rank(network, saved["T"], np.array(saved["templates"])).rank == saved["rank"]


def test_the_program_refuses_what_is_none(tmp_path) -> None:
    found = separation_conjecture(
        (2,), (2,), (4,), (2,), 1, folder=tmp_path, conjectures={"R^T": lambda M, R, T, L: R**T}
    )
    path = Path(found.files[0])
    path.write_text(json.dumps(json.loads(path.read_text()) | {"value": 3}))
    found = verify(str(path))
    assert found.returncode == 1
    assert "no counterexample" in found.stdout


def test_the_program_is_short_and_needs_nothing_of_ours() -> None:
    assert len(VERIFIER.splitlines()) < 50
    assert "mnemoscope" not in VERIFIER
    assert "numpy" not in VERIFIER


def test_one_hot_templates_that_cannot_certify_get_company() -> None:
    """M=4, R=3, T=4, L=5: the conjecture says 16, one-hot templates reach at most 3 x 4."""
    found = separation_conjecture((4,), (3,), (4,), (5,), 1)
    b = column(found, "conjecture 1")
    assert found.ranks[0, 0] == 12 < found.values[0, b] == 16
    assert (found.held[0, b], found.attained[0, b], found.failed[0, b]) == (1, 0, 0)


def test_what_grids_cannot_decide_is_called_undecided_below_the_upper_bound() -> None:
    sizes = {"channels": (2,), "widths": (2,), "horizons": (8,), "depths": (4,), "draws": 1}
    upper = separation_upper(2, 2, 8, 4)
    assert upper == 21 * 11 * 5 * 2
    found = separation_conjecture(**sizes, conjectures={"within": lambda *_: upper, "beyond": lambda *_: upper + 1})
    assert found.undecided[0].tolist() == [0] * 5 + [1, 0]
    assert found.failed[0].tolist() == [0] * 5 + [0, 1]
    assert "1 undecided" in str(found)
    assert len(found.counterexamples) == 1


def test_budget_ends_the_draws() -> None:
    found = separation_conjecture((2,), (2,), (4,), (1, 2), draws=1000, budget=0.3)
    assert 0 < (found.ranks >= 0).sum() < 2000
    assert (found.held.sum(axis=1) > 0).all()


def test_table_and_pictures(found) -> None:
    table = found.table().splitlines()
    assert len(table) == 2 + len(found.cases)
    assert "| 2 | 2 | 4 | 2 | 4 |" in found.table()
    held, attained = map(json.loads, found.plot().to_dict()["datasets"].values())
    assert all(cell["value"] == 1 for cell in held)
    cell = next(c for c in attained if c["row"] == "theorem 1, depth 2" and c["column"] == "2, 4")
    assert cell["value"] == 0
    assert found.to_dict()["seed"] == 11


def test_nothing_is_drawn_from_the_global_generator() -> None:
    before = torch.get_rng_state()
    separation_conjecture((2,), (2,), (2,), (1,), 1)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"horizons": (3,)}, "horizons must be even, so that each has two halves, got 3"),
        ({"channels": ()}, "channels must be at least one positive integer"),
        ({"channels": 2}, "channels must be a list of positive integers, got 2"),
        ({"widths": (0,)}, "widths must be a positive integer, got 0"),
        ({"draws": 0}, "draws must be a positive integer, got 0"),
        ({"budget": -1}, "budget must be a positive number, got -1"),
        ({"conjectures": {"mine": 3}}, "conjectures must be new names with functions"),
        ({"conjectures": {"conjecture 1": lambda *_: 3}}, "conjectures must be new names with functions"),
        ({"channels": (9,), "horizons": (30,)}, "would fit"),
    ],
)
def test_bad_input_is_one_line(options, said) -> None:
    with pytest.raises(UserError, match=said) as error:
        separation_conjecture(**options)
    assert "\n" not in str(error.value)


def test_a_folder_that_cannot_be_written(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="must be a folder"):
        separation_conjecture((2,), (2,), (2,), (1,), 1, folder=tmp_path / "file", conjectures={"x": lambda *_: 9})
