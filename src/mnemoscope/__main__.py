"""Run the command line as ``python -m mnemoscope``."""

from mnemoscope.cli.main import app

app()
