"""The table in docs/check_network.md is that of the docstrings."""

from pathlib import Path

from mnemoscope.testing import CHECKS

PAGE = Path(__file__).parents[2] / "docs" / "check_network.md"


def table():
    rows = [f"| `{check.__name__}` | {check.__doc__} |" for check in CHECKS]
    return "\n".join(["| check | what holds |", "|---|---|", *rows]) + "\n"


def test_the_table_of_checks_is_true():
    assert table() in PAGE.read_text(), f"put this table into {PAGE}:\n{table()}"
