"""How much memory is allowed, and what is said when it is not enough."""

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.core.memory import VARIABLE, allowance, human, require

UNITS = {"bytes": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


def test_half_of_what_is_free(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    free = psutil.virtual_memory().available
    assert 0.3 * free < allowance() < 0.7 * free


@pytest.mark.parametrize(("told", "allowed"), [("1", 2**30), ("0.5", 2**29), ("1e3", 1000 * 2**30), (" 2 ", 2**31)])
def test_what_was_told(monkeypatch, told, allowed):
    monkeypatch.setenv(VARIABLE, told)
    assert allowance() == allowed


@pytest.mark.parametrize("told", ["0", "-1", "nan", "inf", "-inf", "", "much", "1 GB"])
def test_what_is_no_number_of_gigabytes(monkeypatch, told):
    monkeypatch.setenv(VARIABLE, told)
    with pytest.raises(UserError) as error:
        allowance()
    assert str(error.value) == f"MNEMOSCOPE_MEMORY must be a positive number of gigabytes, got {told!r}"


def test_what_would_fit_is_said(monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    require("a horizon of 10", 2**30, "horizon=5 would fit")
    with pytest.raises(UserError) as error:
        require("a horizon of 10", 2**30 + 2**29, "horizon=5 would fit")
    assert str(error.value) == (
        "a horizon of 10 needs 1.5 GB of memory, 1.0 GB are allowed (MNEMOSCOPE_MEMORY sets this); horizon=5 would fit"
    )


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 kB"), (2**20 - 1, "1.0 MB"), (2**60, "1048576.0 TB")],
)
def test_sizes_in_words(size, words):
    assert human(size) == words


@given(size=st.integers(0, 2**50))
def test_words_are_right_to_the_digit_they_show(size):
    number, unit = human(size).split()
    assert abs(float(number) * UNITS[unit] - size) <= 0.051 * UNITS[unit]
    assert float(number) < 1024 or unit == "TB"
