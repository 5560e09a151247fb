"""The command itself: help, version, exit codes, pipes."""

import os
import subprocess
import sys
from itertools import pairwise

import pytest

import mnemoscope

COMMANDS = (
    *("profile", "compare", "networks", "show", "cite", "check", "measure", "theory"),
    *("tasks", "data", "train", "capacity", "resume"),
)
PROGRAM = "from mnemoscope.cli.main import app; app()"


def test_help_names_every_command(call):
    done = call("--help")
    assert done.exit_code == 0
    assert "See how much a recurrent network can remember and express." in done.stdout
    for command in COMMANDS:
        assert f"│ {command} " in done.stdout
    assert "…" not in done.stdout


def test_without_arguments_the_help_is_printed(call):
    assert call().exit_code == 0
    assert call().stdout.split() == call("--help").stdout.split()


def test_paragraphs_of_help_are_folded_by_the_terminal_alone(call):
    """A docstring's own line ends must not show in a terminal of another width."""
    for words in (["profile"], ["search"], ["theory"], ["runs", "gc"]):
        lines = [line.rstrip() for line in call(*words, "--help", columns=70).stdout.split("╭")[0].splitlines()]
        for line, following in pairwise(lines):
            if line.strip() and following.strip() and "Usage" not in line:
                assert len(line) + 1 + len(following.split()[0]) > 68, (line, following)


def test_short_help(call):
    assert call("-h").stdout == call("--help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(call, command):
    done = call(command, "--help")
    assert done.exit_code == 0
    assert "--json" in done.stdout
    assert "<bool>" not in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


@pytest.mark.parametrize("command", ["show", "cite", "check"])
def test_help_says_that_files_are_run(call, command):
    words = " ".join(call(command, "--help").stdout.replace("│", " ").split())
    assert "This runs the file's code." in words


def test_version(call):
    assert call("--version").stdout == f"mnemoscope {mnemoscope.__version__}\n"


def test_help_imports_no_torch():
    report = "import atexit, sys; atexit.register(lambda: print({'torch', 'numpy'} & set(sys.modules)))"
    code = f"{report}; {PROGRAM}"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["netwroks"], "No such command 'netwroks'. Did you mean 'networks'?"),
        (["networks", "--jsno"], "No such option: --jsno (Possible options: --json)"),
        (["show"], "Missing argument 'NETWORK'. Usage: mnemoscope show [OPTIONS] {NETWORK}"),
        (["show", "rnn", "lstm"], "Got unexpected extra argument(s) (lstm)"),
        (["show", "nnrn"], "there is no network named 'nnrn'; did you mean 'nnrnn'?"),
        (
            ["cite", "exp-rnn"],
            "there is no network, measure, task, environment or claim named 'exp-rnn'; did you mean 'exprnn'?",
        ),
        (["check", "LSTMM"], "there is no network named 'LSTMM'; did you mean 'lstm'?"),
        (
            ["networks", "--kind", "recurent"],
            "kind must be one of recurrent, sequence, classifier, relational, got 'recurent'",
        ),
        (["show", "nowhere.py:Net"], "there is no file 'nowhere.py'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(mistake, arguments, said):
    assert mistake(*arguments) == said
    assert mistake(*arguments, "--json") == said or "--jsno" in arguments


def test_a_mistake_as_a_process(process):
    done = process("show", "nnrn")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: there is no network named 'nnrn'; did you mean 'nnrnn'?\n"


def test_an_unforeseen_error_is_exit_code_1_with_its_traceback(process, tmp_path):
    (tmp_path / "broken.py").write_text(
        "import mnemoscope.cli.networks as facts\n"
        "def fail(*args): raise RuntimeError('unforeseen')\n"
        "facts.docs.summary = fail\n"
        "import torch\nclass Net(torch.nn.Module): pass\n"
    )
    done = process("show", f"{tmp_path / 'broken.py'}:Net")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("RuntimeError: unforeseen\n")


@pytest.mark.parametrize("arguments", [["networks"], ["show", "nnrnn", "--json"]])
def test_a_reader_that_leaves_early_is_no_traceback(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == ""


def test_no_colour_codes_and_no_cut_names_in_a_pipe(process):
    done = process("networks", env={"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}, encoding="utf-8")
    assert "\x1b" not in done.stdout
    assert "…" not in done.stdout


def test_ascii_terminals_are_served(process):
    done = process("show", "eurnn", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0, done.stderr
    assert "Marin Solja" in done.stdout


def test_a_size_beyond_memory_is_one_line(call):
    done = call("measure", "resources", "rnn", "--hidden", "10000000")
    assert done.exit_code == 1
    assert done.stderr == "error: not enough memory for this size: choose a smaller one\n"
