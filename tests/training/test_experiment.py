"""Experiments as TOML files."""

import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.training import fit, read_experiment, resume, stream

TEXT = """
iterations = 6
batch_size = 4
seed = 3
lr = 0.01
test_size = 10

[network]
name = "scornn"
hidden_size = 6
num_layers = 2

[task]
name = "copy"
delay = 3

[schedule]
checks = 2
"""


def write(folder, text, name="e.toml"):
    (folder / name).write_text(text)
    return folder / name


def weights(run):
    return list(run.model.parameters())


def test_an_experiment_is_a_fit(tmp_path):
    run = read_experiment(write(tmp_path, TEXT)).run(root=tmp_path / "runs")
    layer = ms.nn.SCORNN(10, 6, 2, generator=stream(3, "layer"))
    task = ms.tasks.create("copy", delay=3)
    same = fit(layer, task, iterations=6, batch_size=4, seed=3, lr=0.01, test_size=10, schedule={"checks": 2})
    for a, b in zip(weights(run), weights(same), strict=True):
        assert torch.equal(a, b)
    assert run.folder.parent == tmp_path / "runs"
    again = resume(run.folder.name, root=tmp_path / "runs")
    assert again.metrics == run.metrics


def test_seeds_make_a_population_whose_members_are_the_single_runs(tmp_path):
    text = TEXT.replace("seed = 3", 'seeds = [3, 5]\nlayout = "sequential"')
    found = read_experiment(write(tmp_path, text)).run(root=tmp_path / "runs")
    one = read_experiment(write(tmp_path, TEXT), {"seed": 5}).run()
    for a, b in zip(weights(found[1]), weights(one), strict=True):
        assert torch.equal(a, b)
    again = resume(found[0].folder)
    assert [run.metrics for run in again] == [run.metrics for run in found]


def test_a_network_from_a_file(tmp_path):
    code = "import torch\nclass Mine(torch.nn.GRU):\n    pass\n"
    (tmp_path / "mine.py").write_text(code)
    text = TEXT.replace('"scornn"', f'"{tmp_path}/mine.py:Mine"')
    run = read_experiment(write(tmp_path, text)).run(folder=tmp_path / "run")
    assert type(run.model.layer.module).__name__ == "Mine"
    with pytest.raises(UserError, match=r"uses the code of .*mine.py:Mine; look at it, and allow it"):
        resume(tmp_path / "run")
    assert resume(tmp_path / "run", trust=True).metrics == run.metrics
    (tmp_path / "mine.py").write_text(code + "# another network\n")
    with pytest.raises(UserError, match=r"mine.py changed since it was recorded"):
        resume(tmp_path / "run", trust=True)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("iterations = 6", "iteratons = 6", "an experiment has no setting 'iteratons'; did you mean 'iterations'?"),
        ("iterations = 6", "", "an experiment must say how many iterations"),
        ("iterations = 6", "iterations = 0", "iterations must be a positive integer, got 0"),
        ("delay = 3", "dealy = 3", "the task copy has no setting 'dealy'; did you mean 'delay'?"),
        ('"copy"', '"copi"', "there is no task named 'copi'; did you mean 'copy'?"),
        ('"scornn"', '"scorn"', "there is no network named 'scorn'; did you mean 'scornn'?"),
        ("hidden_size = 6", "hiden_size = 6", "did you mean 'hidden_size'?"),
        ("[task]", "[tsk]", "with a table [task]"),
        ("seed = 3", "seed = 3\nseeds = [1]", "an experiment must have a seed or seeds, got both"),
        ("seed = 3", "workers = 2", "workers has a meaning only with seeds"),
        ("seed = 3", "seeds = 4", "seeds must be a list of whole numbers, got 4"),
        ("lr = 0.01", "lr = ", "is not TOML"),
        ("checks = 2", "chekcs = 2", "did you mean 'checks'?"),
    ],
)
def test_mistakes_are_one_line(old, new, line, tmp_path):
    with pytest.raises(UserError) as caught:
        read_experiment(write(tmp_path, TEXT.replace(old, new))).run()
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="there is no file"):
        read_experiment(tmp_path / "no.toml")
