"""Numbers as a reader wants them: one rule for terminal, page and paper.

A whole number below a milliard stands in full. Any other has four digits, or as many as its uncertainty leaves it; far
from one it has a power of ten. Files for machines (CSV, JSON) hold all digits, and LaTeX the same text as the page.
"""

from __future__ import annotations

import math

__all__ = ["DASH", "RAISED", "defused", "interval", "number", "raised"]

DASH = "\u2013"
"""Text of a number that is not there."""

RAISED = dict(zip("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", strict=True))
"""Digits as they stand in a power."""

_WHOLE = 10**9
_MOST = 8
"""Digits at the most, however small an uncertainty is."""


def number(value: float | str | None, digits: int = 4, *, error: float | None = None, plain: bool | None = None) -> str:
    """Return a number as text; other text as it is, and a dash for None.

    Parameters
    ----------
    value
        The number.
    digits
        Significant digits where no uncertainty is known; zeros at the end are left out.
    error
        Its uncertainty: the last digit written is the first one of this, or the second where the first is 1 or 2.
    plain
        Whether it is written without a power of ten; by default where its size allows it.

    Examples
    --------
    >>> number(16641), number(0.123456), number(3.2e-7), number(10**40), number(None), number(float("inf"))
    ('16,641', '0.1235', '3.2×10⁻⁷', '1×10⁴⁰', '–', '∞')
    >>> number(1.91324, error=0.021), number(1234.5, error=30.0), number(3.21e-9, error=4e-10)
    ('1.913', '1,230', '3.2×10⁻⁹')
    """
    if value is None or isinstance(value, str):
        return DASH if value is None else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not _is_huge(value) and not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0 else "\u2212∞"
    text = _finite(value, digits, error, plain)
    return "\u2212" + text[1:] if text.startswith("-") else text


def interval(value: float | None, lower: float | None, upper: float | None) -> str:
    """Return a number with the interval it lies in, all to the digits that half the interval's width allows.

    Where one end is much nearer than the other, it says which digits count. All three are written in one form,
    with a power of ten or without, as the largest of them is.

    Examples
    --------
    >>> interval(1.9132, 1.8811, 1.9405), interval(3, 3, 3), interval(0.25, None, None)
    ('1.91 (1.88 to 1.94)', '3', '0.25')
    >>> interval(1.03, 1.004, 5.6), interval(1.03, 1.0, 600.0)
    ('1.03 (1.00 to 5.60)', '1 (1 to 600)')
    >>> interval(8.5e-4, 6.5e-4, 1.05e-3), interval(4e-4, 3e-4, 5e-4)
    ('0.00085 (0.00065 to 0.00105)', '4.0×10⁻⁴ (3.0×10⁻⁴ to 5.0×10⁻⁴)')
    """
    if value is None or lower is None or upper is None or lower == upper:
        return number(value)
    half = (upper - lower) / 2
    near = min(value - lower, upper - value)
    error = half if near > half / 4 else max(near, half / 100)
    finite = [each for each in (value, lower, upper) if math.isfinite(each)]
    counts = any(isinstance(each, int) and 0 < abs(each) < _WHOLE for each in finite)  # which stand in full
    plain = counts or _is_plain(max(finite, key=abs, default=0.0), error)
    middle, low, high = (number(each, error=error, plain=plain) for each in (value, lower, upper))
    # What is narrower than the digits that are written has nothing to show: "1.0000000 (1.0000000 to 1.0000000)".
    return number(value) if low == middle == high else f"{middle} ({low} to {high})"


def raised(power: int) -> str:
    """Return a whole number as it stands in a power: ``⁻³``."""
    return "".join(RAISED[letter] for letter in str(power))


def _is_huge(value: float) -> bool:
    """Say whether a value is an integer beyond the range of floats, as counts of paths are."""
    return isinstance(value, int) and value.bit_length() > 1000


def _finite(value: float, digits: int, error: float | None, plain: bool | None) -> str:
    if _is_huge(value):
        return _power(int(value), digits)
    if value == int(value) and abs(value) < _WHOLE and (isinstance(value, int) or not error):
        return f"{int(value):,}"
    known = _is_known(error)
    if known and error is not None:
        digits = _digits(value, error)
        if plain and abs(value) < error / 100:  # no digit that is written would be its own
            return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    if rounded == 0 or (_is_plain(rounded) if plain is None else plain):
        size = math.floor(math.log10(abs(rounded))) if rounded else 0
        text = f"{rounded:,.{max(0, digits - 1 - size)}f}"
        return text if known else _trimmed(text)
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    return f"{mantissa if known else _trimmed(mantissa)}\u00d710{raised(int(exponent))}"


def _is_known(error: float | None) -> bool:
    return error is not None and math.isfinite(error) and error > 0


def _is_plain(value: float, error: float | None = None) -> bool:
    """Say whether a number, as it will be rounded, is written without a power of ten."""
    if error is not None and _is_known(error):
        value = float(f"{value:.{_digits(value, error) - 1}e}")
    return 1e-3 <= abs(value) < 1e6


def _digits(value: float, error: float) -> int:
    """Return how many digits of a value its uncertainty leaves."""
    lead, _, exponent = f"{error:.0e}".partition("e")
    last = int(exponent) - (lead in "12")
    first = math.floor(math.log10(abs(value))) if value else last
    return min(max(first - last + 1, 1), _MOST)


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _power(value: int, digits: int) -> str:
    """Return an integer of any size as mantissa and power of ten."""
    exponent = math.floor(math.log10(abs(value)))
    lead = f"{abs(value) // 10 ** (exponent - 17) / 10**17:.{digits - 1}e}"  # the logarithm may be off by one
    mantissa, _, more = lead.partition("e")
    return f"{'-' if value < 0 else ''}{_trimmed(mantissa)}\u00d710{raised(exponent + int(more))}"


def defused(text: str) -> str:
    """Return text for a cell of a CSV file, which no spreadsheet takes for a formula: those begin with = + - or @.

    Examples
    --------
    >>> defused("=1+1"), defused("-0.5"), defused("rnn")
    ("'=1+1", '-0.5', 'rnn')
    """
    if not text.startswith(("=", "+", "-", "@")):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
