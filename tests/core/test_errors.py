"""The one form of an error."""

import math

import numpy as np
import pytest
import torch

from mnemoscope.core.errors import Description, MnemoscopeError, UserError, choice, expected, nearest, positive_int


def message(function, *arguments):
    with pytest.raises(UserError) as caught:
        function(*arguments)
    return str(caught.value)


def test_a_users_error_is_a_value_error():
    assert issubclass(UserError, ValueError)
    assert issubclass(UserError, MnemoscopeError)


def test_expected_says_what_was_wrong_what_was_expected_and_what_came():
    assert str(expected("dropout", "a probability", 1.5)) == "dropout must be a probability, got 1.5"
    assert str(expected("x", "a tensor", Description("a list"))) == "x must be a tensor, got a list"


def test_expected_is_one_line_of_bearable_length():
    assert "\n" not in str(expected("x", "small", torch.ones(3, 3)))
    long = str(expected("x", "short", "y" * 1000))
    assert len(long) < 150
    assert long.endswith("...")


@pytest.mark.parametrize("value", [1, 7, np.int64(3), torch.tensor(5)])
def test_positive_int_takes_whole_numbers(value):
    found = positive_int("n", value)
    assert type(found) is int
    assert found == int(value)


@pytest.mark.parametrize("value", [0, -3, 2.0, math.nan, True, False, "3", None, [3], torch.tensor([1, 2]), 1j])
def test_positive_int_refuses_the_rest_in_one_line(value):
    said = message(positive_int, "hidden_size", value)
    assert said.startswith("hidden_size must be a positive integer, got ")
    assert "\n" not in said


def test_choice():
    assert choice("field", "real", ("real", "complex")) == "real"
    assert message(choice, "field", "compelx", ("real", "complex")) == (
        "field must be 'real' or 'complex', got 'compelx'; did you mean 'complex'?"
    )
    assert message(choice, "field", 3, iter(["real"])) == "field must be 'real', got 3"
    assert message(choice, "field", None, ("real",)) == "field must be 'real', got None"
    assert message(choice, "field", ["real"], ("real",)) == "field must be 'real', got ['real']"


@pytest.mark.parametrize(
    ("name", "found"),
    [("nnrn", "nnrnn"), ("LSTM", "lstm"), ("exp-rnn", "exprnn"), ("zzz", None), ("", None), (3, None), (None, None)],
)
def test_nearest(name, found):
    assert nearest(name, ["rnn", "nnrnn", "lstm", "exprnn"]) == found


def test_nearest_gives_the_name_as_it_is_written():
    assert nearest("myrnn", ["MyRNN", "Other"]) == "MyRNN"
    assert nearest("rnn", []) is None
