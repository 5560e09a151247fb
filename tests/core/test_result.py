"""The base of results: frozen, printed, tabulated, exported."""

import dataclasses
import json
import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, floating_dtypes, integer_dtypes

from mnemoscope.core.errors import UserError
from mnemoscope.core.result import SCHEMA, Result, plain, result
from mnemoscope.report import chart


@result
class Found(Result):
    """A result as measures have them."""

    measure: ClassVar[str] = "found"
    references: ClassVar[tuple[str, ...]] = ("elman1990", "kerg2019")

    total: float
    curve: np.ndarray
    stable: bool
    size: int
    pole: complex = 1 + 2j
    note: str = "<b>"
    nothing: float | None = None

    def __str__(self):
        return f"total {self.total:g} < 5"

    def plot(self):
        return chart.lines({"curve": (np.arange(len(self.curve)), self.curve)}, x="lag", y="share")


COMMON = {"status": "exact", "digits": 12, "assumptions": ("it is linear", "it is stable"), "cost": "O(n^3)"}


def found(**changes):
    values = {**COMMON, "total": 1 / 3, "curve": np.array([0.5, np.inf, np.nan]), "stable": True, "size": 3, **changes}
    return Found(**values)


def test_it_is_frozen_and_compared_by_identity():
    one = found()
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.total = 2.0
    assert one == one
    assert one != found()
    assert len({one, found()}) == 2


def test_fields_are_given_by_name():
    with pytest.raises(TypeError):
        Found("exact", 12, (), "O(1)", 1.0, np.ones(1), True, 3)
    with pytest.raises(TypeError, match="total"):
        Found(**COMMON, curve=np.ones(1), stable=True, size=3)


def test_a_result_must_say_how_it_is_printed_and_drawn():
    @result
    class Silent(Result):
        measure: ClassVar[str] = "silent"

    with pytest.raises(TypeError, match="abstract"):
        Silent(**COMMON)


def test_text():
    assert str(found()) == "total 0.333333 < 5"
    assert repr(found()) == "<Found: total 0.333333 < 5>"


def test_the_table_shows_scalars():
    assert found().facts() == {
        "total": "0.33333333",
        "stable": "yes",
        "size": "3",
        "pole": "1+2j",
        "note": "<b>",
    }
    assert found(stable=np.bool_(False), total=np.float32(0.5)).facts()["stable"] == "no"


def test_provenance():
    assert found().provenance() == {
        "status": "exact",
        "digits": "12",
        "assumes": "it is linear; it is stable",
        "cost": "O(n^3)",
        "reference": "Elman 1990; Kerg et al. 2019",
    }
    assert set(found(digits=None, assumptions=()).provenance()) == {"status", "cost", "reference"}


def test_an_unknown_reference_is_said():
    @result
    class Citing(Found):
        references: ClassVar[tuple[str, ...]] = ("nobody1900",)

    values = {**COMMON, "total": 1.0, "curve": np.ones(1), "stable": True, "size": 1}
    with pytest.raises(UserError, match="nobody1900"):
        Citing(**values).provenance()


def test_export():
    document = found().to_dict()
    assert document["schema"] == SCHEMA == "mnemoscope.result/1"
    assert document["measure"] == "found"
    assert document["references"] == ["elman1990", "kerg2019"]
    assert document["curve"] == [0.5, "inf", "nan"]
    assert document["pole"] == [1.0, 2.0]
    assert document["assumptions"] == ["it is linear", "it is stable"]
    assert document["nothing"] is None
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_html_is_escaped():
    html = found()._repr_html_()
    assert "total 0.333333 &lt; 5" in html
    assert "&lt;b&gt;" in html
    assert "<b>total" in html
    assert "Elman 1990" in html


@given(array=arrays(st.one_of(floating_dtypes(endianness="="), integer_dtypes()), array_shapes(max_dims=3)))
def test_arrays_survive_json(array):
    back = json.loads(json.dumps(plain(array), allow_nan=False))
    restored = np.array(back, dtype=object).astype(np.float64 if array.dtype.kind == "f" else array.dtype)
    np.testing.assert_array_equal(restored, array)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.1), 0.1),
        (np.longdouble(0.5), 0.5),
        (np.clongdouble(1 - 1j), [1.0, -1.0]),
        (np.array([np.longdouble(0.25)]), [0.25]),
        (np.array([1j]), [[0.0, 1.0]]),
        (complex(math.inf, 1), ["inf", 1.0]),
        (np.bool_(True), True),
        (True, True),
        (np.int64(2**62), 2**62),
        ({1: np.zeros(1), "b": (1, [2.0])}, {"1": [0.0], "b": [1, [2.0]]}),
        (None, None),
        ("text", "text"),
        (-math.inf, "-inf"),
    ],
)
def test_plain(value, expected):
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)
    json.dumps(plain(value), allow_nan=False)


def test_results_within_results():
    inner = plain({"inner": found()})["inner"]
    assert inner["total"] == 1 / 3
    assert inner["curve"] == [0.5, "inf", "nan"]
