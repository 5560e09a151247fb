"""Numbers for readers: the one rule of their digits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.core.numbers import interval, number, raised

BACK = {mark: plain for plain, mark in zip("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", strict=True)}

NUMBERS = [
    (16640, "16,640"),
    (0.123456, "0.1235"),
    (1234567.0, "1,234,567"),
    (1234567.5, "1.235\u00d710⁶"),
    (999999.9, "1\u00d710⁶"),
    (-0.0000123, "\u22121.23\u00d710⁻⁵"),
    (0.001, "0.001"),
    (2.10, "2.1"),
    (100.0, "100"),
    (0.0, "0"),
    (-3, "\u22123"),
    (None, "\u2013"),
    ("as it is", "as it is"),
    (True, "yes"),
    (math.inf, "∞"),
    (-math.inf, "\u2212∞"),
    (math.nan, "not a number"),
    (16641.0, "16,641"),
    (2**5000, "1.412\u00d710¹⁵⁰⁵"),
    (1 - 10**400, "\u22121\u00d710⁴⁰⁰"),
    (12345678901, "1.235\u00d710¹⁰"),
]


@pytest.mark.parametrize(("value", "text"), NUMBERS)
def test_numbers(value, text):
    assert number(value) == text


def read(text: str) -> float:
    """Return the number that a reader reads."""
    mantissa, _, power = text.replace("\u2212", "-").replace(",", "").partition("\u00d710")
    return float(f"{mantissa}e{''.join(BACK[letter] for letter in power) or 0}")


@given(st.floats(-1e300, 1e300))
def test_a_number_keeps_four_digits(value):
    assert read(number(value)) == pytest.approx(value, rel=5.1e-4, abs=0)


def test_raised():
    assert raised(-120) == "⁻¹²⁰"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.91324, 0.03, "1.91"),
        (1.91324, 0.012, "1.913"),
        (0.5, 0.001, "0.5000"),
        (1234.5, 30.0, "1,230"),
        (16640, 100.0, "16,640"),
        (3.21e-9, 4e-10, "3.2\u00d710⁻⁹"),
        (2.0, 0.3, "2.0"),
        (2.104, 1.96, "2.1"),
        (0.003, 0.5, "0.003"),
        (0.25, 0.0, "0.25"),
        (0.25, math.nan, "0.25"),
        (1 / 3, 1e-300, "0.33333333"),
    ],
)
def test_an_uncertainty_gives_the_digits(value, error, text):
    assert number(value, error=error) == text


@given(st.floats(1e-200, 1e200), st.floats(1e-7, 1.0))
def test_what_is_left_out_is_below_the_uncertainty(value, relative):
    assert abs(read(number(value, error=relative * value)) - value) <= relative * value


def test_intervals():
    assert interval(1.911, 1.88, 1.94) == "1.91 (1.88 to 1.94)"
    assert interval(3.0, 3.0, 3.0) == interval(3, None, None) == "3"
    assert interval(None, None, None) == "\u2013"


@pytest.mark.parametrize(
    ("value", "lower", "upper", "text"),
    [
        (-8.5e-4, -1.05e-3, -6.5e-4, "\u22120.00085 (\u22120.00105 to \u22120.00065)"),
        (0.002, 3e-7, 0.004, "0.0020 (0 to 0.0040)"),
        (5e5, 3e5, 1.2e6, "5\u00d710⁵ (3\u00d710⁵ to 1.2\u00d710⁶)"),
        (1234567, 1.1e6, 1.3e6, "1,234,567 (1,100,000 to 1,300,000)"),
        (3.2e-4, 2.8e-4, 3.9e-4, "3.2\u00d710⁻⁴ (2.8\u00d710⁻⁴ to 3.9\u00d710⁻⁴)"),
        (1.9, 1.8, math.inf, "1.9 (1.8 to ∞)"),
        (0.94, 0.4, 0.98, "0.94 (0.40 to 0.98)"),
        (1.03, 1.0, 600.0, "1 (1 to 600)"),
    ],
)
def test_an_interval_is_written_in_one_form(value, lower, upper, text):
    assert interval(value, lower, upper) == text


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_no_interval_mixes_forms(value, error):
    written = interval(value, value - error, value + error).replace("(", "").replace(")", "").split()
    forms = {"\u00d7" in text for text in written if text not in ("0", "to")}
    assert len(forms) <= 1
