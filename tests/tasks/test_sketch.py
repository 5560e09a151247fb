"""A sequence as rows of signs and as a picture."""

import json

import numpy as np
import pytest
import torch
from tests.tasks.every_task import FEW, small

import mnemoscope as ms
from mnemoscope.report import chart
from mnemoscope.tasks.drawing import draw_example
from mnemoscope.tasks.sketch import Row, example_rows, fold, image_lines, shades


def rows_of(name, seed=0, **settings):
    task = ms.tasks.create(name, **settings)
    batch = task.sample(1, torch.Generator().manual_seed(seed))
    return {row.name: row.cells for row in example_rows(task, batch)}, batch


def test_copy_reads_as_one_would_write_it():
    rows, batch = rows_of("copy", delay=4)
    letters = [" abcdefgh"[token] for token in batch.targets[-10:, 0]]
    assert rows["input"] == [*letters, "·", "·", "·", "▸", *["·"] * 10]
    assert rows["target"] == ["·"] * 14 + letters
    assert rows["loss"] == ["•"] * 24
    assert rows["score"] == [" "] * 14 + ["•"] * 10


def test_masked_targets_are_not_written():
    rows, batch = rows_of("lag-copy", lag=2, length=4, dimensions=1)
    assert rows["target"][:2] == [" ", " "]
    assert rows["target"][2] == f"{float(batch.inputs[0, 0, 0]):+.1f}"
    rows, _ = rows_of("mqar", pairs=2, length=9, vocabulary=8)
    asked = [step for step, sign in enumerate(rows["loss"]) if sign == "•"]
    assert [step for step, sign in enumerate(rows["target"]) if sign != " "] == asked
    book = dict(zip(rows["input"][:4:2], rows["input"][1:4:2], strict=True))
    assert all(rows["target"][step] == book[rows["input"][step]] for step in asked)


def test_matrices_stand_row_by_row():
    task = ms.tasks.create("matrix-copy", longest=2, shortest=2)
    batch = task.sample(1, torch.Generator().manual_seed(0))
    rows = example_rows(task, batch)
    assert [row.name for row in rows] == ["input", "", "", "", "", "target", "", "", "", "", "loss", "score"]
    first = batch.inputs[0, 0].reshape(5, 5)
    for line in range(5):
        assert rows[line].cells[0] == "".join("█" if bit else "·" for bit in first[line])
    assert rows[4].cells[2] == "█████"
    assert [cell.strip() for cell in rows[5].cells] == ["", "", "", rows[0].cells[0], rows[0].cells[1]]


def test_numbers_and_signs():
    rows, batch = rows_of("adding", length=6)
    assert rows["number"][0] == f"{float(batch.inputs[0, 0, 0]):.2f}".removeprefix("0")
    assert sorted(rows["marker"]) == ["1", "1", "·", "·", "·", "·"]
    assert rows["target"][-1] == f"{float(batch.targets[0]):.3g}"
    rows, batch = rows_of("parity", length=5, dimensions=2)
    assert rows["input 2"] == ["+" if value > 0 else "-" for value in batch.inputs[:, 0, 1]]


def test_folding_keeps_columns_under_each_other():
    rows = [Row("a", [str(i % 10) for i in range(30)]), Row("bb", ["x" if i % 3 else "y" for i in range(30)])]
    lines = list(fold(rows, 30))
    blocks = "\n".join(lines).split("\n\n")
    assert len(blocks) == 3
    read = {"a": [], "bb": []}
    for block in blocks:
        head, *body = block.splitlines()
        assert head.startswith("step")
        assert all(len(line) <= 30 for line in [head, *body])
        for line in body:
            name, *cells = line.split()
            read[name] += cells
    assert read == {row.name: row.cells for row in rows}
    assert "10" in lines[0].split()


def test_long_runs_are_left_out_and_counted():
    rows = [Row("a", ["x"] * 3 + ["."] * 50 + ["y"])]
    head, body = fold(rows, 80)
    assert body.split() == ["a", "x", "x", "x", ".", ".", "⋯", ".", ".", "y"]
    assert head.split() == ["step", "1", "(46)"] or head.split() == ["step", "1", "(46)", "52"]
    assert body.index("⋯") == head.index("(46)")


def test_rows_without_a_sign_are_skipped_in_a_block():
    rows = [Row("a", [str(i % 10) for i in range(20)]), Row("b", [" "] * 19 + ["!"])]
    lines = list(fold(rows, 20))
    assert sum(line.startswith("b") for line in lines) == 1
    assert lines[-1].endswith("!")


def test_a_narrow_terminal_gets_one_step_a_line():
    assert sum(line.startswith("a") for line in fold([Row("a", list("abc"))], 1)) == 3


def test_shades_run_from_white_to_black():
    assert image_lines(np.array([[0.0, 0.25, 0.5, 0.75, 1.0]])) == ["  ░░▒▒▓▓██"]
    lines = shades({"one": np.zeros((2, 3)), "two": np.ones((2, 2))})
    assert lines == ["one      two", "         ████", "         ████"]


@pytest.mark.parametrize("name", FEW)
def test_every_task_is_written_and_drawn(name, data, tmp_path):
    task = small(name, data)
    batch = task.sample(1, torch.Generator().manual_seed(0))
    assert all(len(row.cells) == int(batch.ends[0]) for row in example_rows(task, batch))
    assert list(fold(example_rows(task, batch), 90))
    chart.save(draw_example(task, batch), tmp_path / "picture.json")
    spec = json.loads((tmp_path / "picture.json").read_text())
    titles = [panel["title"] for panel in spec["concat"]]
    if task.pictures(batch):
        assert titles == list(task.pictures(batch))
        return
    assert titles[0].startswith(f"{name}: input")
    assert titles[-1] == "steps that count"
    assert ("target" in titles) != batch.per_sequence
    cells = spec["concat"][0]["data"]["values"]
    assert len(cells) == int((batch.inputs != 0).sum()) or task.embedding
    counted = [row for row in spec["concat"][-1]["data"]["values"] if row["what"] == "loss"]
    assert [row["step"] - 1 for row in counted] == batch.mask[:, 0].nonzero().flatten().tolist()
