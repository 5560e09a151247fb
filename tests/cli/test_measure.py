"""The command measure: what it takes, what it prints, and how it answers mistakes; on small measures of our own."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.cli.options import named_values, options_of
from mnemoscope.core.errors import UserError
from mnemoscope.core.result import Result, result
from mnemoscope.core.seeds import stream
from mnemoscope.measures import MEASURES, Measure
from mnemoscope.report import chart

for name in MEASURES:
    _ = MEASURES[name]  # loaded before tests replace the table


@result
class Size(Result):
    measure = "norm"
    references = ("elman1990",)

    total: float
    curve: np.ndarray

    def __str__(self):
        return f"the norm is {self.total:.6g}"

    def plot(self):
        return chart.lines({"norm": (np.arange(len(self.curve)), self.curve)}, x="row", y="norm")


def sized(array, **more):
    rows = np.linalg.norm(np.atleast_2d(array), axis=1)
    total = float(np.linalg.norm(rows))
    return Size(
        status="exact", digits=15, assumptions=("it is finite",), cost="O(n^2)", total=total, curve=rows, **more
    )


def norm(
    W: np.ndarray,
    v: np.ndarray | None = None,
    power: float = 1.0,
    weights: tuple[float, ...] = (0.3, 0.1),
    rows: int | None = None,
    squared: bool = False,
    form: str = "exact",
) -> Size:
    """Return the norm of [W, v] with `weights`.

    Parameters
    ----------
    W
        The matrix, n x n.
    v
        A vector [of n].
    power
        Of every entry.
    weights
        Two of them.
    rows
        How many; None: all.
    squared
        Whether the norm is squared.
    form
        ``"exact"`` or ``"published"``.
    """
    if form != "exact":
        raise UserError(f"form must be 'exact' here, got {form!r}")
    array = np.asarray(W)[:rows] ** power * sum(weights)
    return sized(array**2 if squared else array if v is None else np.column_stack([array, v]))


def network_norm(network: nn.Module, scale: float = 1.0, seed: int = 0) -> Size:
    """Return the norm of a network's weights.

    Parameters
    ----------
    network
        Any network.
    scale
        A factor.
    seed
        Is added.
    """
    found = torch.cat([p.detach().flatten().double() for p in network.parameters()]).numpy()
    return sized(scale * found[None] + seed)


def pair(
    network: object,
    *,
    lags: tuple[int, ...] = (1, 2),
    start: int | np.ndarray | None = None,
    loss: Callable | None = None,
) -> Size:
    """Return the norm of a network or a pair of matrices.

    Parameters
    ----------
    network
        A network or a pair.
    lags
        Whole numbers.
    start
        A number or an array.
    loss
        Not an option.
    """
    if isinstance(network, tuple):
        return sized(np.column_stack(network))
    return sized(np.full((1, sum(lags)), 1.0 if start is None else np.sum(start)))


def broken(network: nn.Module) -> Size:
    """Fail."""
    raise RuntimeError("deep\nwithin")


def refusing(network: nn.Module) -> Size:
    """Refuse."""
    raise UserError("it needs a causal network, and this one is not")


def demanding(network: nn.Module, horizon: int) -> Size:
    """Need a horizon.

    Parameters
    ----------
    horizon
        Steps.
    """
    return sized(np.ones((1, horizon)))


def numbers(count: int = 3, folder: str | os.PathLike[str] | None = None, seed: int = 0) -> Size:
    """Take numbers only.

    Parameters
    ----------
    count
        How many.
    folder
        Where.
    seed
        Is added.
    """
    return sized(np.full((1, count), 1.0 + seed))


def length(v: np.ndarray) -> Size:
    """Return the length of a vector.

    Parameters
    ----------
    v
        It.
    """
    return sized(v)


def network_length(network: nn.Module, factor: float = 1.0) -> Size:
    """Return the length of a state.

    Parameters
    ----------
    factor
        Of it.
    """
    return sized(np.full((1, network.state_size), factor))


@pytest.fixture(autouse=True)
def measures(monkeypatch):
    """A table of measures that are known here."""
    entries = [
        Measure("norm", norm, kinds=(), matrices={"W": "matrix", "v": "input"}, of_network=network_norm),
        Measure("network-norm", network_norm, kinds=("recurrent", "sequence"), quick={"scale": 2.0}),
        Measure("pair", pair, matrices={"A": "matrix", "b": "input"}),
        Measure("plain", norm, kinds=(), matrices={"W": "matrix"}),
        Measure("demanding", demanding),
        Measure("polynomial", partial(network_norm), needs=("polynomial",)),
        Measure("numbers", numbers, kinds=()),
        Measure("length", length, kinds=(), matrices={"v": "input"}),
        Measure("network-length", network_length, kinds=("recurrent",)),
        Measure("classes", partial(network_norm), kinds=("classifier",)),
    ]
    monkeypatch.setattr(MEASURES, "_entries", {entry.name: entry for entry in entries})
    monkeypatch.setattr(MEASURES, "_table", {})
    monkeypatch.setattr(MEASURES, "_plugins_loaded", True)


@pytest.fixture
def failing(monkeypatch):
    entries = {**MEASURES._entries, "broken": Measure("broken", broken), "refusing": Measure("refusing", refusing)}
    monkeypatch.setattr(MEASURES, "_entries", entries)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files to measure, in the current folder."""
    monkeypatch.chdir(tmp_path)
    np.save("W.npy", np.array([[3.0, 0.0], [0.0, 4.0]]))
    np.save("v.npy", np.array([0.0, 12.0]))
    np.savez("W.npz", W=np.diag([3.0, 4.0]))
    (tmp_path / "W.csv").write_text("a,b\n3,0\n0,4\n")
    np.save("rect.npy", np.zeros((2, 3)))
    np.save("pickled.npy", np.array([{}]), allow_pickle=True)
    np.save("nan.npy", np.full((2, 2), np.nan))
    (tmp_path / "words.npy").write_text("not an array")
    (tmp_path / "words.csv").write_text("1,2\n3,x\n")
    ms.nn.save(ms.nn.RNN(1, 2), "saved.safetensors")
    (tmp_path / "cells.py").write_text(
        "import torch, mnemoscope as ms\n"
        "print('chatter of a file')\n"
        "class Mine(ms.nn.RNN):\n    '''Mine.'''\n"
        "def build():\n    return torch.nn.GRUCell(3, 4)\n"
        "def sized(inputs, units, slope=0.5):\n    return torch.nn.LSTM(inputs, units)\n"
        "class Block(torch.nn.Module):\n"
        "    def __init__(self, hidden_size=5):\n"
        "        super().__init__(); self.input_size = 3; self.inner = torch.nn.Linear(3, hidden_size)\n"
        "    def forward(self, x): return self.inner(x).cumsum(1)\n"
        "def failing(input_size): raise RuntimeError('no room')\n"
        "number = 3\n"
    )
    return tmp_path


# Help -----------------------------------------------------------------------------------------------


def test_help_lists_all_measures(call):
    done = call("measure", "--help")
    assert done.exit_code == 0
    words = " ".join(done.stdout.replace("│", " ").split())
    assert "all Run every measure that applies to a network" in words
    assert "norm Return the norm of [W, v] with weights." in words
    assert "demanding Need a horizon." in words
    assert "--json" in words
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert call("measure").stdout.split() == done.stdout.split()


def test_the_list_in_json(call_json):
    found = {one["name"]: one for one in call_json("measure")["measures"]}
    assert list(found) == sorted(MEASURES.names())
    assert found["norm"]["matrices"] == ["matrix", "input"]
    assert found["norm"]["options"] == ["--scale", "--power", "--weights", "--rows", "--squared", "--form"]
    assert found["network-norm"] == {
        "name": "network-norm",
        "summary": "Return the norm of a network's weights.",
        "kinds": ["recurrent", "sequence"],
        "needs": [],
        "matrices": [],
        "options": ["--scale"],
        "quick": True,
    }


def test_help_of_a_measure(call):
    done = call("measure", "norm", "--help")
    words = " ".join(done.stdout.replace("│", " ").split())
    assert "Return the norm of [W, v] with weights." in words
    assert "--power <float> Of every entry. Default: 1.0." in words
    assert "--weights X,X,.. Two of them. Default: 0.3,0.1." in words
    assert "--rows <int> How many; None: all." in words
    assert "--squared --no-squared Whether the norm is squared. Default: False." in words
    assert "--input FILE A vector [of n]. A file .npy" in words
    assert "FILE.py:CLASS (this runs the file's code)" in words
    assert "--json" in words
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_help_shows_only_what_applies(call):
    plain = call("measure", "plain", "--help").stdout
    assert "--hidden" not in plain
    assert "--seed" not in plain
    assert "NETWORK" not in plain
    assert "--loss" not in call("measure", "pair", "--help").stdout
    assert "--quick" in call("measure", "network-norm", "--help").stdout
    assert "--quick" not in call("measure", "pair", "--help").stdout


def test_the_commands_help_imports_no_measure():
    code = "from mnemoscope.cli.main import app; app()"
    report = "import atexit, sys; atexit.register(lambda: print([m for m in sys.modules if 'measures' in m]))"
    done = subprocess.run(
        [sys.executable, "-c", f"{report}; {code}", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


# Matrices -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["W.npy", "W.npz", "W.csv"])
def test_matrices_from_files(call_json, folder, file):
    document = call_json("measure", "norm", "--matrix", file, "--weights", "1,1")
    assert document["total"] == 10.0
    assert document["schema"] == "mnemoscope.result/1"
    assert document["status"] == "exact"
    assert document["references"] == ["elman1990"]


def test_several_matrices_and_options(call_json, folder):
    document = call_json("measure", "norm", "--matrix", "W.npy", "--input", "v.npy", "--weights", "0.5,0.25,0.25")
    assert document["total"] == pytest.approx(13)
    assert call_json("measure", "norm", "--matrix", "W.npy", "--weights", "1", "--rows", "1")["total"] == 3.0
    squared = call_json("measure", "norm", "--matrix", "W.npy", "--weights", "1", "--squared", "--power", "0.5")
    assert squared["total"] == 5.0


def test_a_pair_of_matrices_in_the_place_of_a_network(call_json, folder):
    assert call_json("measure", "pair", "--matrix", "W.npy", "--input", "v.npy")["total"] == pytest.approx(13)
    assert call_json("measure", "pair", "rnn", "--lags", "3,6")["total"] == 3.0
    assert call_json("measure", "pair", "rnn", "--start", "2")["total"] == pytest.approx(2 * math.sqrt(3))
    assert call_json("measure", "pair", "rnn", "--start", "1,1.5")["total"] == pytest.approx(2.5 * math.sqrt(3))
    assert call_json("measure", "pair", "rnn", "--start", "v.npy")["total"] == pytest.approx(12 * math.sqrt(3))


def test_what_is_printed(call, folder):
    done = call("measure", "norm", "--matrix", "W.npy", "--weights", "1", columns=80)
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0] == "the norm is 5"
    assert "total  5" in lines
    assert "status     exact" in lines
    assert "digits     15" in lines
    assert "assumes    it is finite" in lines
    assert "cost       O(n^2)" in lines
    assert "reference  Elman 1990" in lines
    assert done.stderr == ""


# Networks -------------------------------------------------------------------------------------------


def weights_norm(network):
    return float(torch.cat([p.detach().flatten().double() for p in network.parameters()]).norm())


def test_a_network_by_name(call_json):
    expected = weights_norm(ms.nn.LSTM(1, 64, generator=stream(0, "layer")))
    assert call_json("measure", "network-norm", "lstm")["total"] == pytest.approx(expected)
    layer = ms.nn.RNN(2, 5, 3, nonlinearity="relu", bias=False, generator=stream(3, "layer"))
    options = ["--hidden", 5, "--input-size", 2, "--layers", 3, "--option", "nonlinearity=relu", "--option", "bias=no"]
    document = call_json("measure", "network-norm", "rnn", *options[:-1], "bias=false", "--seed", 3)
    added = torch.cat([p.detach().flatten().double() for p in layer.parameters()]) + 3
    assert document["total"] == pytest.approx(float(added.norm()))


def test_building_a_network_leaves_the_random_numbers_alone(call_json):
    torch.manual_seed(7)
    expected = torch.rand(2)
    torch.manual_seed(7)
    call_json("measure", "network-norm", "rnn")
    assert torch.equal(torch.rand(2), expected)


def test_a_measure_of_matrices_takes_a_network_where_it_has_a_function_for_it(call_json):
    assert call_json("measure", "norm", "rnn", "--scale", 2)["total"] == pytest.approx(
        2 * call_json("measure", "network-norm", "rnn")["total"]
    )


def test_the_measure_of_networks_that_is_called_alike(call_json, folder):
    assert call_json("measure", "length", "--input", "v.npy")["total"] == 12.0
    assert call_json("measure", "length", "rnn", "--hidden", 9, "--factor", 2)["total"] == 6.0


def test_a_measure_of_numbers(call_json, call):
    assert call_json("measure", "numbers", "--count", 9, "--seed", 1)["total"] == 6.0
    shown = call("measure", "numbers", "--help").stdout
    assert "--matrix" not in shown
    assert "--folder" in shown
    assert "FILE" not in shown


def test_a_linear_network_of_matrices(call_json, folder):
    document = call_json("measure", "network-norm", "--matrix", "W.npy", "--input", "v.npy")
    assert document["total"] == 13.0
    assert len(document["curve"]) == 1


def test_a_saved_network(call_json, folder):
    expected = weights_norm(ms.nn.load("saved.safetensors"))
    assert call_json("measure", "network-norm", "saved.safetensors")["total"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Mine", []),
        ("Mine", ["--hidden", 3, "--layers", 2, "--option", "nonlinearity=relu"]),
        ("build", []),
        ("sized", []),
        ("sized", ["--hidden", 3, "--input-size", 2, "--option", "slope=0.1"]),
        ("Block", []),
        ("Block", ["--hidden", 4]),
    ],
)
def test_networks_of_a_file(call, folder, name, options):
    done = call("measure", "network-norm", f"cells.py:{name}", *options, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["total"] > 0
    assert set(done.stderr.splitlines()) <= {"chatter of a file"}


def test_quick(call_json):
    once = call_json("measure", "network-norm", "rnn")["total"]
    assert call_json("measure", "network-norm", "rnn", "--quick")["total"] == pytest.approx(2 * once)
    assert call_json("measure", "network-norm", "rnn", "--quick", "--scale", 3)["total"] == pytest.approx(3 * once)


def test_what_a_measure_prints_stays_off_the_output(call, monkeypatch):
    def chatty(network: nn.Module) -> Size:
        """Talk."""
        print("chatter of a measure")
        return sized(np.eye(2))

    monkeypatch.setattr(MEASURES, "_entries", {"chatty": Measure("chatty", chatty)})
    monkeypatch.setattr(MEASURES, "_table", {})
    for arguments in (["chatty", "rnn"], ["all", "rnn"]):
        done = call("measure", *arguments, "--json")
        json.loads(done.stdout)
        assert done.stderr == "chatter of a measure\n"


# Pictures -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["svg", "png", "pdf", "html", "json"])
def test_pictures(call, folder, ending):
    done = call("measure", "plain", "--matrix", "W.npy", "--plot", f"norm.{ending}")
    assert done.exit_code == 0, done.stderr
    assert f"picture    norm.{ending}" in done.stdout
    content = (folder / f"norm.{ending}").read_bytes()
    begins = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "html": b"<!DOCTYPE html>", "json": b"{"}
    assert content.startswith(begins[ending])


def test_a_picture_and_json(call_json, folder):
    assert call_json("measure", "plain", "--matrix", "W.npy", "--plot", "norm.svg")["total"] > 0
    assert (folder / "norm.svg").exists()


# Mistakes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("nrom", "there is no measure named 'nrom'; did you mean 'norm'?"),
        ("norm", "norm needs a network or --matrix FILE --input FILE; mnemoscope measure norm --help says more"),
        (
            "network-norm",
            "network-norm needs a network or --matrix FILE --input FILE; mnemoscope measure network-norm ",
        ),
        ("plain", "plain needs --matrix FILE; mnemoscope measure plain --help says more"),
        ("plain lstm", "plain takes matrices, not a network: --matrix FILE"),
        ("norm rnn --matrix W.npy", "give a network or files, not both: got 'rnn' and --matrix"),
        ("norm rnm", "there is no network named 'rnm'; did you mean 'rnn'?"),
        ("norm rnn lstm", "Got unexpected extra argument(s) (lstm)"),
        ("norm --input v.npy", "norm of matrices also needs --matrix"),
        ("pair --matrix W.npy", "pair of matrices also needs --input"),
        ("norm --matrix W.npy --hidden 3", "--hidden cannot be given: the sizes are those of the files"),
        ("norm --matrix W.npy --scale 2", "--scale belongs to norm of a network; here there are --power, --weights, "),
        ("norm rnn --power 2", "--power belongs to norm of matrices; here there are --scale"),
        ("norm --matrix W.npy --powr 2", "No such option: --powr (Possible options: "),
        ("norm --matrix W.npy --power two", "--power must be a number, got 'two'"),
        ("norm --matrix W.npy --power nan", "--power must be a number, got 'nan'"),
        ("norm --matrix W.npy --rows 1.5", "--rows must be none or a whole number, got '1.5'"),
        ("norm --matrix W.npy --weights 1,b", "--weights must be numbers separated by commas, got '1,b'"),
        ("pair rnn --lags 1,2.5", "--lags must be whole numbers separated by commas, got '1,2.5'"),
        ("pair rnn --start none.npy", "the file 'none.npy' does not exist"),
        ("norm --matrix W.npy --form printed", "form must be 'exact' here, got 'printed'"),
        ("plain --matrix none.npy", "the file 'none.npy' does not exist"),
        ("plain --matrix .", "an array's file must be named .npy, .npz, .csv, .tsv, .txt, got '.'"),
        ("plain --matrix cells.py", "an array's file must be named .npy, .npz, .csv, .tsv, .txt, got 'cells.py'"),
        ("plain --matrix words.npy", "'words.npy' is not an array: it does not begin as a file of NumPy does"),
        ("plain --matrix words.csv", "'words.csv' is not an array: row 2: could not convert string to float: 'x'"),
        ("plain --matrix pickled.npy", "'pickled.npy' is not an array: it holds pickled objects, which could run code"),
        ("network-norm --matrix W.npy", "a linear network needs --matrix W and --input v, got no --input"),
        (
            "network-norm --matrix rect.npy --input v.npy",
            "the matrix of --matrix must be a square matrix, got an array",
        ),
        ("network-norm --matrix nan.npy --input v.npy", "the matrix of --matrix must be finite, got 4 NaN or infinite"),
        ("network-norm --matrix W.npy --input rect.npy --hidden 3", "--hidden cannot be given: the sizes of a linear"),
        ("network-norm W.npy", "'W.npy' is a file of an array, not a network; give it with --matrix"),
        ("network-norm net.pt", "'net.pt' is a pickle, which could run code; write the network with"),
        ("network-norm none.safetensors", "there is no file 'none.safetensors'"),
        ("network-norm saved.safetensors --hidden 3", "--hidden cannot be given: a saved network has its own"),
        ("network-norm rnn --hidden 0", "--hidden must be a positive integer, got 0"),
        ("network-norm rnn --hidden x", "--hidden must be a positive integer, or several as 5,5, got 'x'"),
        ("network-norm rnn --option relu", "--option must be NAME=VALUE, as in nonlinearity=relu, got 'relu'"),
        ("network-norm rnn --option nonlinearty=relu", "RNN has no option 'nonlinearty'; did you mean 'nonlinearity'?"),
        ("network-norm rnn --option init=5", "init must be "),
        ("network-norm nowhere.py:Net", "there is no file 'nowhere.py'"),
        ("network-norm cells.py:number", "cells.py:number must be a class or a function that builds a network, got 3"),
        ("network-norm cells.py:build --hidden 3", "cells.py:build cannot be built with hidden_size: it is called as "),
        ("network-norm cells.py:failing", "cells.py:failing cannot be built: RuntimeError: no room"),
        (
            "classes rnn",
            "classes cannot measure rnn: it takes networks of kind classifier, and this one is of kind rec",
        ),
        ("polynomial lstm", "polynomial cannot measure this network: it needs a network that is a polynomial"),
        ("demanding rnn", "demanding cannot measure this network: it needs --horizon"),
        ("plain --matrix W.npy --plot norm.gif", "a picture's name must end in .svg, .png, .pdf, .html, .json, got"),
        ("plain --matrix W.npy --plot none/norm.svg", "'none/norm.svg' cannot be written: there is no folder 'none'"),
        ("numbers rnn", "numbers takes nothing but its options"),
        ("numbers --count x", "--count must be a whole number, got 'x'"),
        ("length --input v.npy --factor 2", "--factor belongs to length of a network; here there are no options"),
        ("all", "measure all needs a network: its name or file, or --matrix and --input; one of the two"),
        ("all rnn --matrix W.npy", "measure all needs a network: its name or file, or --matrix and --input"),
    ],
)
def test_a_mistake_is_one_line(call, folder, arguments, said):
    for more in ([], ["--json"]):
        done = call("measure", *arguments.split(), *more)
        assert (done.exit_code, done.stdout) == (2, "")
        (line,) = [line for line in done.stderr.splitlines() if not line.startswith("chatter")]
        assert line.startswith(f"error: {said}")


def test_nothing_is_unpickled(call, folder):
    (folder / "evil.py").write_text("import pathlib\npathlib.Path('ran').touch()\n")
    payload = type("Evil", (), {"__reduce__": lambda self: (exec, ("import pathlib; pathlib.Path('ran').touch()",))})
    np.save("evil.npy", np.array([payload()], dtype=object), allow_pickle=True)
    np.savez("evil.npz", np.array([payload()], dtype=object))
    for file in ("evil.npy", "evil.npz"):
        done = call("measure", "plain", "--matrix", file)
        assert done.exit_code == 2
        assert "pickled objects" in done.stderr
    assert not (folder / "ran").exists()


def test_a_folder_that_cannot_be_written_is_said_before_the_work(call, folder, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    done = call("measure", "plain", "--matrix", "none.npy", "--plot", "norm.svg")
    assert done.exit_code == 2
    assert done.stderr == "error: 'norm.svg' cannot be written: the folder '.' is read-only\n"


# All of them ----------------------------------------------------------------------------------------


def test_all(call, folder):
    done = call("measure", "all", "rnn", "--hidden", 3)
    assert done.exit_code == 0, done.stderr
    words = " ".join(done.stdout.split())
    headline = r" the norm is [\d.]+ "
    assert re.search(f"network-length{headline}network-norm{headline}pair{headline}Does not apply", words)
    assert "length for a network it is the same as network-length" in words
    assert "numbers it takes nothing but its options" in words
    assert "classes it takes networks of kind classifier" in words
    assert "demanding it needs --horizon" in words
    assert "norm for a network it is the same as network-norm" in words
    assert "plain it takes matrices: --matrix FILE" in words
    assert re.search(r"3 measures in \d+\.\d s; 7 do not apply, 0 failed$", words)


def test_all_quick_in_json(call):
    done = call("measure", "all", "rnn", "--quick", "--json")
    document = json.loads(done.stdout)
    assert list(document["results"]) == ["network-norm"]
    assert document["results"]["network-norm"]["measure"] == "norm"
    assert document["skipped"]["pair"] == "it is not part of the quick set"
    assert set(document["results"]) | set(document["skipped"]) == set(MEASURES.names())
    assert (document["network"], document["quick"], document["seed"]) == ("rnn", True, 0)
    assert document["seconds"]["network-norm"] > 0
    plain = json.loads(call("measure", "all", "rnn", "--json").stdout)["results"]["network-norm"]["total"]
    assert document["results"]["network-norm"]["total"] == pytest.approx(2 * plain)


def test_one_that_fails_does_not_lose_the_others(call, failing):
    done = call("measure", "all", "rnn", "--json")
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert document["failed"] == {"broken": "RuntimeError: deep within"}
    assert document["skipped"]["refusing"] == "it needs a causal network, and this one is not"
    assert set(document["results"]) == {"network-length", "network-norm", "pair"}
    printed = call("measure", "all", "rnn")
    assert printed.exit_code == 1
    assert "Failed broken RuntimeError: deep within" in " ".join(printed.stdout.split())
    assert "3 measures" in printed.stdout


def test_all_of_a_linear_network_and_of_a_strangers(call, folder):
    done = call("measure", "all", "--matrix", "W.npy", "--input", "v.npy", "--json")
    assert json.loads(done.stdout)["results"]["network-norm"]["total"] == 13.0
    block = json.loads(call("measure", "all", "cells.py:Block", "--json").stdout)
    assert "this one is of kind sequence" in block["skipped"]["pair"]
    assert "network-norm" in block["results"]


# Options --------------------------------------------------------------------------------------------


def test_annotations_become_readers():
    def function(
        a: int,
        b: "float | None" = None,
        c: tuple[int, int] = (1, 2),
        d: "Float[np.ndarray, 'n']" = None,  # noqa: F821
        e: bool | None = None,
        f: "Callable[[int], int] | None" = None,
        g: "float | tuple[float, float]" = 1.0,
        h: "torch.Generator | None" = None,
        i: "Literal['x', 'y']" = "x",  # noqa: F821
        *rest: int,
        **more: int,
    ):
        pass

    found = options_of(function)
    assert {name: option.reads for name, option in found.items()} == {
        "a": ("int",),
        "b": ("none", "float"),
        "c": ("ints",),
        "d": ("array",),
        "e": ("bool", "none"),
        "g": ("float", "floats"),
        "i": ("str",),
    }
    assert found["a"].required
    assert found["b"].value("none") is None
    assert found["b"].value("2") == 2.0
    assert found["g"].value("0.5") == 0.5
    assert found["g"].value("1,0.5") == (1.0, 0.5)
    assert found["i"].value("5") == "5"
    np.testing.assert_array_equal(found["d"].value("1,2.5"), [1, 2.5])


def test_options_of_networks_by_their_looks():
    texts = ["a=3", "b=0.5", "c=true", "d=None", "e=relu", "f=1e-3", "g="]
    assert named_values(texts) == {"a": 3, "b": 0.5, "c": True, "d": None, "e": "relu", "f": 0.001, "g": ""}
    for wrong in ("a", "=3", "a b=3"):
        with pytest.raises(UserError, match="--option must be NAME=VALUE"):
            named_values([wrong])
