"""JSON in one form: exact both ways, refused where it would lose something."""

import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.runs import spec_hash
from mnemoscope.runs.documents import canonical, decode, normal, returned

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


def same(one, other):
    """Compare as Python does, except that NaN is NaN, -0.0 is not 0.0, and 1, 1.0 and True are three things."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return math.copysign(1, one) == math.copysign(1, other) and (one == other or (one != one and other != other))
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


def signless(value):
    """NaN has a sign in memory, and none in text."""
    if isinstance(value, float) and value != value:
        return math.nan
    if isinstance(value, list):
        return [signless(entry) for entry in value]
    return {key: signless(entry) for key, entry in value.items()} if isinstance(value, dict) else value


@given(VALUES)
def test_what_is_written_comes_back(value):
    value = signless(value)
    if "$float" in repr(value):
        return
    text = canonical(value)
    assert same(decode(text), value)
    assert same(decode(text.encode()), value)
    assert same(returned(value), value)
    assert canonical(decode(text)) == text


@given(VALUES)
def test_the_text_is_strict_json(value):
    def refuse(word):
        raise AssertionError(word)

    json.loads(canonical(value), parse_constant=refuse)


def test_a_hash_is_that_of_sorted_compact_json():
    spec = {"task": "copy", "network": {"name": "nnrnn", "hidden": 64}, "lr": 1e-3, "seeds": (1, 2)}
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    assert spec_hash(spec) == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert spec_hash(dict(reversed(spec.items()))) == spec_hash(spec)
    assert spec_hash(spec | {"lr": math.nextafter(1e-3, 1)}) != spec_hash(spec)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": {"b": [1, object()]}}, "spec.a.b[1] must be JSON (text, numbers, lists, mappings), got a object"),
        ({"a": np.ones(2)}, "spec.a must be JSON (text, numbers, lists, mappings), got a ndarray"),
        ({"a": {1: 2}}, "the keys of spec.a must be text, got 1"),
        ({"a": "\ud800"}, "spec.a must be text in Unicode, got a lone surrogate"),
        ({"a": {1, 2}}, "spec.a must be JSON (text, numbers, lists, mappings), got a set"),
    ],
)
def test_what_json_cannot_hold_is_refused(value, words):
    with pytest.raises(UserError) as caught:
        normal(value, "spec")
    assert str(caught.value) == words


def test_depth_is_limited():
    value = []
    for _ in range(200):
        value = [value]
    with pytest.raises(UserError, match="100 levels"):
        canonical(value)


@pytest.mark.parametrize("text", ["NaN", '{"a": Infinity}', "[" * 100_000, "", "{'a': 1}"])
def test_what_is_not_json_is_not_read(text):
    with pytest.raises(ValueError):  # noqa: PT011 - json's own words
        decode(text)


def test_a_strange_mark_stays_what_it_is():
    assert decode('{"$float": "evil"}') == {"$float": "evil"}
    assert decode('{"$float": "nan", "more": 1}') == {"$float": "nan", "more": 1}
    assert decode('{"$float": ["nan"]}') == {"$float": ["nan"]}
