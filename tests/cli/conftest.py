"""How the command line is run in tests: in this process where only its words matter, as a process where more does."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mnemoscope.cli.main import app

PROGRAM = "import sys; sys.argv[0] = 'mnemoscope'; from mnemoscope.cli.main import app; app()"


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch):
    """Say nothing of work that takes long on a busy machine."""
    monkeypatch.setattr("mnemoscope.profiles.progress.PATIENCE", float("inf"))


@pytest.fixture
def call():
    """Call a command within this process; the result has exit_code, stdout, stderr."""

    def run(*arguments, columns=None):
        env = {"COLUMNS": None if columns is None else str(columns)}
        return CliRunner().invoke(app, [str(argument) for argument in arguments], env=env, prog_name="mnemoscope")

    return run


@pytest.fixture
def call_json(call):
    """Call a command with --json, and return the one document that it prints."""

    def run(*arguments):
        done = call(*arguments, "--json")
        assert done.exit_code == 0, done.stderr
        assert done.stderr == ""
        return json.loads(done.stdout)

    return run


@pytest.fixture
def mistake(call):
    """Call a command with a mistake, and return the one line that it prints."""

    def run(*arguments):
        done = call(*arguments)
        assert done.exit_code == 2, done.stdout
        assert done.stdout == ""
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        return done.stderr.removeprefix("error: ").removesuffix("\n")

    return run


@pytest.fixture
def process():
    """Start the command as a process of its own."""

    def run(*arguments, env=None, **options):
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | (env or {})
        command = [sys.executable, "-c", PROGRAM, *arguments]
        return subprocess.run(command, **{"capture_output": True} | options, env=environment, text=True, check=False)

    return run
