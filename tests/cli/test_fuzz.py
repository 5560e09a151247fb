"""The command line under every input: drawn from a grammar with a seed, no case ends in a traceback.

A case is a command line that works, of which one or two things are changed: a value, a flag, a file. It runs in a
process forked from this one with 2 GB more than this one has and a few seconds of time. It must end with 0, 1 or 2, and
an end with 1 or 2 must be one line.
"""

import contextlib
import json
import os
import random
import resource
import signal
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
import typer
from safetensors.numpy import save_file
from tests.faults.scenarios import forked
from typer.testing import CliRunner

import mnemoscope as ms
from mnemoscope.cli.main import app

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows does not have")

SECONDS = 20
ROOM = 2 * 2**30

TRAIN = "--iterations 2 --train batch_size=2 --train test_size=4 --task-set length=4 --task-set lag=1"
COMMANDS = [
    line.split()
    for line in (
        "networks",
        "show rnn",
        "cite nnrnn",
        "tasks",
        "task show copy",
        "data",
        "theory",
        "atlas show",
        "study list",
        "study show ziv-theorem-1 --runs runs",
        "profile rnn --dry-run --hidden 3 --seed 1 --minutes 1",
        "compare rnn lstm --hidden 3 --dry-run",
        "profile net.safetensors --dry-run",
        "measure fisher --matrix w.npy --input v.npy --horizon 4 --noise 0.5",
        "measure fisher --matrix w.csv --input v.csv",
        "measure fisher --matrix w.npz --input v.npy",
        "measure spectrum --matrix w.npy",
        "measure spectrum net.safetensors",
        "measure memory-capacity rnn --hidden 3 --seed 1",
        "measure gradients mine.py:Mine --hidden 3",
        "measure resources rnn --hidden 3 --input-size 2",
        "measure separation-rank rac --hidden 3 --horizon 4",
        "measure pseudospectrum --matrix w.npy",
        f"train rnn lag-copy --hidden 3 --set nonlinearity=relu {TRAIN} --seed 1 --device cpu",
        f"train mine.py:Mine lag-copy --hidden 3 {TRAIN} --train lr=0.01 --train optimizer=adam",
        "train fit.toml",
        "train population.toml",
        f"capacity rnn lag-copy --hidden 3 --grid 1,2 --seeds 1 --criterion 0.5 --minutes 1 {TRAIN}",
        "resume runs/first",
        "resume runs/second --device cpu",
        "runs list --task lag-copy --since 7d --where score<2 --runs runs",
        "runs show first --runs runs",
        "runs compare first second --metric loss --runs runs",
        "runs export --format csv --metrics --runs runs",
        "runs sql select*from(runs) --runs runs",
        "runs disk --runs runs",
        "runs gc --older --before 1d --dry-run --runs runs",
    )
]

VALUES = [
    *("-1", "0", "1", "7", "1e309", "-1e308", "1e308", "1e-400", "nan", "inf", "-inf", "NaN", "0x10", "1_0", "٣", "½"),
    *("99999999999999999999999999", "-99999999999999999999999999", "9223372036854775808", "1" * 5000, "2147483648"),
    *("", " ", "-", "--", "---x", "=", "=1+1", "a=b=c", "none", "None", "true", "[1,2]", "{}", "1,2,,3", ",", "1e5"),
    *("cuda", "meta", "cpu:9", "mps", "../../etc/passwd", "/dev/null", ".", "x" * 5000, "ünï", "\x1b[31mred"),
    *("\udc80", "'; DROP TABLE runs; --", "first", "rnn", "copy", "lr=1e999", "hidden_size=-3", "dropout=2", "*"),
]
FLAGS = ("--json", "--frobnicate", "-x", "--seed", "--help", "--layers", "--set")
LONG = ("--iterations", "--seeds", "--minutes", "--hidden", "--layers", "--grid", "--horizon", "--input-size")
"""Flags whose large values ask for much work, which is not a mistake: they are given small ones."""
SMALL = [value for value in VALUES if len(value) < 10 and value not in ("1e5",)]


def arrays(folder: Path) -> None:
    """Write matrices, and files that lie about them."""
    matrix = np.array([[0.5, 0.1, 0.0], [0.0, 0.4, 0.2], [0.1, 0.0, 0.3]])
    np.save(folder / "w.npy", matrix)
    np.save(folder / "v.npy", np.array([1.0, 0.0, 0.0]))
    np.savez(folder / "w.npz", matrix)
    np.savetxt(folder / "w.csv", matrix, delimiter=",")
    np.savetxt(folder / "v.csv", matrix[:1], delimiter=",")
    np.save(folder / "large.npy", matrix * 1e308)
    np.save(folder / "nan.npy", matrix * np.nan)
    np.save(folder / "words.npy", np.array([["a"]]))
    np.save(folder / "empty.npy", np.zeros((0, 3)))
    whole = (folder / "w.npy").read_bytes()
    (folder / "huge.npy").write_bytes(whole.replace(b"(3, 3)", b"(9" + b"9" * 10 + b", 3)")[:128])
    (folder / "short.npy").write_bytes(whole[:-9])
    (folder / "third.npy").write_bytes(whole[:6] + b"\x03\x00" + whole[8:])
    (folder / "pickle.npy").write_bytes(whole.replace(b"'<f8'", b"'|O' "))
    with zipfile.ZipFile(folder / "two.npz", "w") as archive:
        archive.writestr("a.npy", whole)
        archive.writestr("b.npy", whole)
    with zipfile.ZipFile(folder / "lies.npz", "w") as archive:
        archive.writestr("a.npy", whole[:40])
    (folder / "bad.csv").write_text("1,2\n3\n")
    (folder / "large.csv").write_text("1e400,2\n3,4\n")
    with (folder / "sparse.npy").open("wb") as stream:
        stream.write(b"\x93NUMPY")
        stream.truncate(3 * 2**30)
    os.mkfifo(folder / "pipe.npy")
    (folder / "loop.npy").symlink_to("loop.npy")
    (folder / "folder.npy").mkdir()


def networks(folder: Path) -> None:
    """Write saved networks, and files whose headers lie; and code that misbehaves."""
    rnn = ms.nn.RNN(2, 3, generator=torch.Generator().manual_seed(0))
    ms.nn.save(rnn, folder / "net.safetensors")
    weights = {name: tensor.numpy() for name, tensor in rnn.state_dict().items()}
    header = {"mnemoscope_format": "1", "network": "rnn", "dtype": "float32"}
    for name, options in {
        "wide": {"input_size": 2, "hidden_size": 30_000},
        "deep": {"input_size": 2, "hidden_size": 3, "num_layers": 10**7},
        "long": {"input_size": 10**26, "hidden_size": 3},
        "strange": {"input_size": 2, "hidden_size": 3, "frobnicate": True},
        "text": {"input_size": "two", "hidden_size": 3},
    }.items():
        save_file(weights, folder / f"{name}.safetensors", metadata=header | {"options": json.dumps(options)})
    save_file(weights, folder / "list.safetensors", metadata=header | {"options": "[" * 10_000})
    save_file(weights, folder / "type.safetensors", metadata=header | {"options": "{}", "dtype": "nn"})
    (folder / "length.safetensors").write_bytes((2**62).to_bytes(8, "little") + b"{}")
    (folder / "cut.safetensors").write_bytes((folder / "net.safetensors").read_bytes()[:50])
    os.mkfifo(folder / "pipe.safetensors")
    body = "import torch\nclass Mine(torch.nn.RNN):\n    def __init__(self, input_size=2, hidden_size=3):\n"
    (folder / "mine.py").write_text(f"{body}        super().__init__(input_size, hidden_size)\n")
    (folder / "raises.py").write_text(f"{body}        raise BaseException('no')\n")
    (folder / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    (folder / "stops.py").write_text("raise KeyboardInterrupt\n")
    (folder / "broken.py").write_text("def (:\n")


def experiments(folder: Path) -> None:
    """Write experiments, and files that are none."""
    common = "iterations = 2\nbatch_size = 2\ntest_size = 4\n"
    tables = (
        '[network]\nname = "rnn"\nhidden_size = 3\n[task]\nname = "lag-copy"\nlength = 4\nlag = 1\ndimensions = 2\n'
    )
    (folder / "fit.toml").write_text(common + tables)
    (folder / "population.toml").write_text(f'{common}seeds = [0, 1]\nlayout = "batched"\n{tables}')
    (folder / "nested.toml").write_text("a = " + "[" * 100_000)
    (folder / "digits.toml").write_text(f"iterations = {'9' * 5000}\n{tables}")
    (folder / "wide.toml").write_text(
        common + tables.replace("hidden_size = 3", "hidden_size = 99999999999999999999999999")
    )
    (folder / "float.toml").write_text(f"lr = 1e999\n{common}{tables}")
    (folder / "array.toml").write_text(f"{common}network = [1]\ntask = 3\n")
    (folder / "seeds.toml").write_text(f"{common}seeds = [1, -1, 1.5]\n{tables}")
    (folder / "latin.toml").write_bytes(b"a = '\xff'\n")
    (folder / "large.toml").write_text("# " + "x" * 2**21)
    os.mkfifo(folder / "pipe.toml")


FILES = {  # by ending, which others there are
    ".npy": "large nan words empty huge short third pickle sparse pipe loop folder none",
    ".npz": "two lies none",
    ".csv": "bad large none",
    ".safetensors": "wide deep long strange text list type length cut pipe none",
    ".toml": "nested digits wide float array seeds latin large pipe none",
    ".py:Mine": "raises leaves stops broken none",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with everything that the commands read."""
    folder = tmp_path_factory.mktemp("world")
    for write in (arrays, networks, experiments):
        write(folder)
    task = ms.tasks.create("lag-copy", length=4, lag=1, dimensions=2)
    for name in ("first", "second"):
        ms.training.fit(ms.nn.RNN(2, 3), task, iterations=2, batch_size=2, test_size=4, folder=folder / "runs" / name)
    # Once within this process: what the commands import, the processes forked from it then have.
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_RUNS", str(folder / "warm"))
        for line in COMMANDS:
            done = CliRunner().invoke(app, line, prog_name="mnemoscope")
            assert done.exit_code == 0, (line, done.stderr)
    return folder


def mutated(line: list[str], chance: random.Random) -> list[str]:
    """Return a command line with one or two things changed: mostly a value, sometimes the words themselves."""
    words = list(line)
    for _ in range(chance.choice((1, 1, 1, 2))):
        values = [
            k for k in range(1, len(words)) if words[k - 1].startswith("--") or "=" in words[k] or "." in words[k]
        ]
        if values and chance.random() < 0.8:
            place = chance.choice(values)
            words[place] = changed(words[place], words[place - 1], chance)
            continue
        place, kind = chance.randrange(len(words)), chance.random()
        if kind < 0.3:
            words[place] = chance.choice(VALUES)
        elif kind < 0.5:
            words[place : place + 1] = [] if len(words) > 1 else ["--help"]
        elif kind < 0.8:
            words.insert(
                place, chance.choice(["--json", "--frobnicate", "-x", "--seed", "--help", "--layers", "--set"])
            )
        else:
            words.insert(place, words[chance.randrange(len(words))])
    return words


def changed(word: str, flag: str, chance: random.Random) -> str:
    """Return another value of an argument: another file of its kind, or one of the values that are often mistaken."""
    ending = next((end for end in FILES if word.endswith(end)), None)
    if ending is not None and chance.random() < 0.8:
        return chance.choice(FILES[ending].split()) + ending
    pool = SMALL if flag in LONG or "iterations" in word else VALUES
    name, equals, _ = word.partition("=")
    return name + equals + chance.choice(pool) if equals else chance.choice(pool)


@cache
def main():
    return typer.main.get_command(app)


def ends_well(words: list[str], world: Path, home: Path) -> str | None:
    """Run a command line, and return what is wrong with its end; None when nothing is."""

    def work():
        os.chdir(world)
        signal.alarm(SECONDS)
        limit = psutil.Process().memory_info().vms + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        main().main(words, prog_name="mnemoscope")

    ended = forked(home, work)
    if ended.code not in (0, 1, 2) or "Traceback" in ended.err:
        return f"code {ended.code}: {ended.err[-1500:]}"
    said = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    if ended.code and len(said) != 1 and not ended.err.startswith(("failed: ", "Usage", "interrupted; ")):
        return f"code {ended.code}, and not one line: {ended.err[-500:]!r}"
    return None


def run_cases(count: int, seed: int, world: Path, tmp_path: Path) -> None:
    chance = random.Random(seed)
    problems = []
    for number in range(count):
        words = mutated(chance.choice(COMMANDS), chance)
        problem = ends_well(words, world, tmp_path / f"case-{number}")
        if problem is not None:
            problems.append(f"{words}\n{problem}")
    assert not problems, "\n\n".join([f"{len(problems)} of {count}", *problems[:10]])


def test_changed_command_lines_end_in_one_line(world, tmp_path):
    run_cases(200, 0, world, tmp_path)  # one test, so that one worker alone makes the world


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_changed_command_lines_end_in_one_line(seed, world, tmp_path):
    run_cases(1000, seed, world, tmp_path)
