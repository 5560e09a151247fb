"""The command profile: what it prints, keeps and writes, and how it answers mistakes."""

import contextlib
import html
import json
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from tests.cli.conftest import PROGRAM
from tests.profiles.fake_sections import fail, make, number, only
from tests.profiles.references import tiny_references

import mnemoscope as ms
from mnemoscope.profiles.atlas import references as atlas

CELLS = """
import torch
from torch import nn

class Fine(nn.GRUCell):
    pass

class LowRank(nn.Module):
    def __init__(self, input_size, hidden_size, rank):
        super().__init__()
        self.hidden_size = hidden_size
        self.inner, self.outer = nn.Linear(hidden_size, rank), nn.Linear(rank, hidden_size)
        self.enter = nn.Linear(input_size, hidden_size)

    def forward(self, x, h):
        return torch.tanh(self.outer(self.inner(h)) + self.enter(x))

class Words(Fine):
    def forward(self, x):
        return "hello"

class Nan(Fine):
    def forward(self, x, h):
        return super().forward(x, h) * torch.nan

class Noisy(Fine):
    def forward(self, x, h):
        return super().forward(x, h) + torch.rand(())

class Explodes(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size, self.enter = hidden_size, nn.Linear(input_size, hidden_size)

    def forward(self, x, h):
        return 100 * h**3 + self.enter(x) + 1

class _NoWayBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("no way back")

class Crash(Fine):
    def forward(self, x, h):
        return _NoWayBack.apply(super().forward(x, h))

class Future(nn.GRU):
    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size, bidirectional=True)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(atlas, "rows_like", tiny_references)
    (tmp_path / "cells.py").write_text(textwrap.dedent(CELLS))
    (tmp_path / "broken.py").write_text("def (:\n")
    return tmp_path


@pytest.fixture
def fake():
    with only(make("fisher", 1, number("total")), make("theory", 2, number("n"), once=True, numbers=("n",))):
        yield


def test_the_summary_and_where_the_page_is(call, folder, fake):
    done = call("profile", "lstm", "--hidden", 3)
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    assert "72 parameters, n = 3, initial weights, 3 seeds" in done.stdout
    assert "read as LSTM, recurrent, 1 input a step, a state of 6 numbers; forms agree to " in done.stdout
    assert "The fisher: 1.1 steps, fisher total" in done.stdout
    assert "page: lstm.html" in done.stdout
    assert (folder / "lstm.html").is_file()
    assert (folder / "lstm.profile.json").is_file()


def test_json_is_one_document_and_no_page(call_json, folder, fake):
    found = call_json("profile", "lstm", "--hidden", 3, "--seeds", 2, "--seed", 4)
    assert found["schema"] == "mnemoscope.profile/1"
    assert found["parts"]["fisher"]["scalars"]["total"]["seeds"] == [4.1, 5.1]
    assert not list(folder.glob("*.html"))


def test_a_dry_run_measures_nothing(call, call_json, folder, fake):
    done = call("profile", "lstm", "--hidden", 3, "--dry-run")
    assert "about 4 s in all; nothing was measured" in done.stdout
    assert not list(folder.glob("*.html")) + list(folder.glob("*.json"))
    found = call_json("profile", "lstm", "--hidden", 3, "--dry-run")
    assert found["seconds"] == 4.0
    assert {"network": "lstm", "part": "fisher", "seeds": 3, "seconds": 3.0} in found["plan"]


def test_files_for_a_paper(call, folder):
    done = call("profile", "rnn", "--hidden", 3, "--quick", "--seeds", 2, "--html", "x.html", "--export", "paper")
    assert done.exit_code == 0, done.stderr
    names = {path.name for path in (folder / "paper").iterdir()}
    assert {"methods.txt", "references.bib", "fisher-curve.svg", "fisher-curve.pdf", "card.csv", "card.tex"} <= names


def test_the_commands_beside_the_charts_give_the_same_numbers(call_json):
    found = call_json("profile", "rnn", "--hidden", 3, "--quick", "--seeds", 2, "--seed", 1)
    fisher, spectrum, separation = (found["parts"][name] for name in ("fisher", "spectrum", "separation"))
    for name, line in zip(("relative_total", "mixture_total", "total"), fisher["command"].splitlines(), strict=True):
        again = call_json(*shlex.split(line)[1:])
        assert again["total"] == fisher["scalars"][name]["seeds"][0]
    again = call_json(*shlex.split(spectrum["command"])[1:])
    assert again["radius"] == spectrum["scalars"]["radius"]["seeds"][0]
    for steps, line in zip((4, 6, 8), separation["command"].splitlines(), strict=True):
        again = call_json(*shlex.split(line)[1:])
        assert 2.718281828459045 ** again["mean_entropy"] == pytest.approx(
            separation["scalars"][f"soft_{steps}"]["seeds"][0]
        )
    for name in ("gradients", "capacity"):
        for commands in found["parts"][name]["commands"].values():
            for command in commands.splitlines():
                call_json(*shlex.split(command)[1:])


def test_the_page_command_makes_the_page_again(call, folder, fake):
    call("profile", "cprnn", "--hidden", 3, "--input-size", 2, "--set", "rank=2", "--quick", "--html", "a b.html")
    first = json.loads((folder / "a b.profile.json").read_text())
    (folder / "a b.profile.json").unlink()
    page = html.unescape(re.sub(r"<[^>]*>", "", (folder / "a b.html").read_text()))
    command = "mnemoscope profile cprnn --hidden 3 --input-size 2 --set rank=2 --quick --html 'a b.html'"
    assert command in page
    assert call(*shlex.split(command)[1:]).exit_code == 0
    assert list(json.loads((folder / "a b.profile.json").read_text())["networks"]) == list(first["networks"])


def test_a_saved_network_is_measured_with_its_own_weights(call, folder, fake):
    ms.nn.save(ms.nn.GRU(2, 3), "x.safetensors")
    done = call("profile", "x.safetensors")
    assert "given weights" in done.stdout
    assert "trained" not in done.stdout
    assert call("profile", "x.safetensors", "--hidden", 3).stderr.startswith("error: hidden_size (--hidden) cannot be")


def test_a_users_class_and_its_arguments(call, fake):
    done = call("profile", "cells.py:LowRank", "--hidden", 4, "--set", "rank=2")
    assert done.exit_code == 0, done.stderr
    assert "read as a cell, batch first, state h (4), inputs d = 1" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "cells.py:LowRank",
            "cells.py:LowRank also needs rank; this works: mnemoscope profile cells.py:LowRank --set rank=8",
        ),
        ("cells.py:LowRank --set rnak=8", "cells.py:LowRank takes no 'rnak'; did you mean 'rank'?"),
        ("cells.py:LowRank --set 8", "--set must be NAME=VALUE, as in nonlinearity=relu, got '8'"),
        ("cells.py:Words", "Words must return one output per step, a tensor of shape "),
        ("cells.py:Nan", "Nan must return finite numbers for a standard normal input, got NaN or infinity"),
        ("cells.py:Explodes", "Explodes gives outputs that are "),
        ("cells.py:Noisy", "Noisy must give one output for one input in eval mode, got two that differ"),
        (
            "cells.py:Nothing",
            "cells.py has no 'Nothing'; it defines Crash, Explodes, Fine, Future, LowRank, Nan, Noisy, Words",
        ),
        ("cells.py", "name the class too, as in cells.py:Crash; it defines "),
        ("gone.py:X", "there is no file 'gone.py'"),
        ("broken.py:X", "broken.py cannot be run: SyntaxError: invalid syntax (line 1)"),
        ("gone.safetensors", "there is no file 'gone.safetensors'"),
        ("weights.pt", "'weights.pt' is a pickle, which could run code"),
        ("lstn", "there is no network named 'lstn'; did you mean 'lstm'?"),
        ("lstm --hidden 0", "--hidden must be a positive integer, got 0"),
        ("lstm --input-size -1", "--input-size must be a positive integer, got -1"),
        ("lstm --layers 0", "--layers must be a positive integer, got 0"),
        ("lstm --minutes 0", "--minutes must be a number above 0 (--full: as long as it takes), got 0.0"),
        ("lstm --budget -3", "--minutes must be a number above 0 (--full: as long as it takes), got -3.0"),
        ("lstm --minutes inf", "--minutes must be a number above 0 (--full: as long as it takes), got inf"),
        ("lstm --seeds 0", "--seeds must be a positive integer, got 0"),
        ("lstm --seed -1", "--seed must be a whole number of at least 0, got -1"),
        ("lstm --html gone/x.html", "'gone/x.html' cannot be written: there is no folder 'gone'"),
        ("lstm --html x.pdf", "--html must be a file that ends in .html (a PDF: print the page from a browser), got "),
        ("lstm --html .", "'.' cannot be written: it is a folder"),
        ("lstm --export cells.py", "--export needs a folder, and 'cells.py' is a file"),
    ],
)
def test_a_mistake_is_one_line_before_any_work(mistake, folder, fake, arguments, said):
    assert mistake("profile", *shlex.split(arguments)).startswith(said)
    assert not list(folder.glob("*.html"))


def test_a_page_that_cannot_be_written_is_found_before_the_work(mistake, folder):
    def never(context):
        raise AssertionError("it was measured")

    (folder / "shut").mkdir(mode=0o500)
    (folder / "x.html").write_text("old")
    (folder / "x.profile.json").write_text("{")
    with only(make("a", 1, never)):
        assert "'x.html' is there and was not written by Mnemoscope" in mistake("profile", "rnn", "--html", "x.html")
    with only(make("a", 1, never)):
        assert "x.profile.json' is in the way of the results" in mistake(
            "profile", "rnn", "--html", "x.html", "--force"
        )
    assert (folder / "x.html").read_text() == "old"


def test_a_backward_pass_that_fails_fails_parts_and_says_why(call, folder):
    done = call("profile", "cells.py:Crash", "--hidden", 3, "--quick", "--seeds", 2, "--html", "x.html")
    assert done.exit_code == 1
    assert "note: Crash fails on the backward pass: RuntimeError: no way back" in done.stdout
    assert "failed: RuntimeError: no way back" in " ".join(done.stdout.split())
    assert "plain memory" in done.stdout
    assert "no way back" in (folder / "x.html").read_text()


def test_a_network_that_reads_the_future_says_what_does_not_apply(call, folder):
    done = call("profile", "cells.py:Future", "--hidden", 3, "--quick", "--seeds", 1, "--html", "x.html")
    assert done.exit_code == 0, done.stderr
    assert "note: Future is not causal" in done.stdout
    assert "it needs a causal network, and this one reads the future" in " ".join(done.stdout.split())


def test_a_classifier_gets_what_applies(call):
    sizes = ["--set", "features=2", "--set", "rank=2", "--set", "length=4", "--set", "classes=2"]
    done = call("profile", "tt", *sizes, "--quick")
    assert done.exit_code == 0, done.stderr
    assert "it takes networks of kind recurrent, and this one is of kind classifier" in " ".join(done.stdout.split())


def test_the_budget_stops_and_says_how_to_go_on(call, folder):
    with only(make("a", 1, number(), seconds=0.1), make("b", 2, number(), seconds=1000.0)):
        done = call("profile", "rnn", "--hidden", 3, "--minutes", 1, "--html", "x.html")
    assert done.exit_code == 0
    assert "stopped: it needs about 1000.0 s, and the budget of 60 s is used up" in " ".join(done.stdout.split())
    assert done.stderr.endswith(
        "the time was used up before the end; what is left of one seed takes about 1000 s (--minutes). "
        "Go on with: mnemoscope profile rnn --hidden 3 --html x.html\n"
    )


def test_ctrl_c_leaves_a_page_and_says_how_to_go_on(call, folder):
    def stop(context):
        raise KeyboardInterrupt

    with only(make("a", 1, number()), make("b", 2, stop)):
        done = call("profile", "rnn", "--hidden", 3, "--html", "x.html")
    assert done.exit_code == 1
    assert done.stderr.endswith(
        "interrupted; what is there was kept. Go on with: mnemoscope profile rnn --hidden 3 --html x.html\n"
    )
    assert "stopped" in done.stdout
    assert (folder / "x.html").is_file()
    with only(make("a", 1, fail), make("b", 2, number())):
        done = call("profile", "rnn", "--hidden", 3, "--html", "x.html")
    assert "1 results taken up" in done.stdout


def test_ctrl_c_without_a_page_promises_nothing(call, folder):
    def stop(context):
        raise KeyboardInterrupt

    with only(make("a", 1, number()), make("b", 2, stop)):
        done = call("profile", "rnn", "--hidden", 3, "--json")
    assert done.exit_code == 1
    json.loads(done.stdout)
    words = "interrupted; nothing was kept, as there is no --html. Begin again with: mnemoscope profile rnn --hidden 3"
    assert done.stderr == words + "\n"
    assert not list(folder.glob("*.json"))


def test_a_real_interrupt_of_a_real_process(folder):
    """The process is stopped once a first result is on disk; it still writes its page, and can go on."""
    arguments = ["profile", "rnn", "--hidden", "24", "--seeds", "50", "--html", "x.html"]
    # A shell starts what runs in its background deaf to Ctrl-C, and these tests with it.
    hear = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    running = subprocess.Popen(
        [sys.executable, "-c", hear + PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    kept = folder / "x.profile.json"
    for _ in range(1200):
        if kept.exists() or running.poll() is not None:
            break
        time.sleep(0.1)
    for _ in range(3):  # Python loses one that arrives while it frees an object or is in a callback
        running.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            out, err = running.communicate(timeout=60)
            break
    assert running.returncode == 1, (out, err)
    assert "Go on with: mnemoscope profile rnn --hidden 24 --seeds 50 --html x.html" in err
    assert "<html" in (folder / "x.html").read_text()
    assert json.loads(kept.read_text())["schema"] == "mnemoscope.progress/1"


def test_nothing_is_shown_in_pipes_while_it_works(call, fake):
    assert call("profile", "rnn", "--hidden", 3, "--html", "x.html").stderr == ""


def test_a_plan_is_written_and_repeated(call, call_json, folder, fake):
    """The second time there is time for all, and the plan says what is measured."""
    assert (
        call("profile", "rnn", "--hidden", 3, "--plan", "plan.json", "--minutes", 0.04, "--html", "x.html").exit_code
        == 0
    )
    found = call_json("profile", "rnn", "--hidden", 3, "--plan", "plan.json")
    assert json.loads((folder / "plan.json").read_text())["pieces"][0] == {
        "network": 0,
        "part": "fisher",
        "seed": 0,
        "reason": None,
        "status": "done",
    }
    assert (
        found["parts"]["fisher"]["scalars"]["total"]["seeds"]
        == [0.1, 1.1, 2.1, 3.1, 4.1][: len(found["parts"]["fisher"]["seeds"])]
    )


def test_a_plan_that_is_none_is_a_mistake(mistake, folder, fake):
    (folder / "plan.json").write_text("[]")
    assert (
        mistake("profile", "rnn", "--plan", "plan.json") == "the schema of a plan must be 'mnemoscope.plan/1', got None"
    )


def test_a_dry_run_says_what_the_budget_makes_of_it(call, call_json, folder):
    with only(make("fisher", 1, number("total"), seconds=100.0)):
        assert (
            "one seed of every part 100 s; the budget is 60 s (--minutes 1.7"
            in call("profile", "rnn", "--dry-run").stdout
        )
        found = call_json("profile", "rnn", "--dry-run")
    assert (found["seconds"], found["budget"], found["one_seed"]) == (300.0, 60.0, 100.0)
