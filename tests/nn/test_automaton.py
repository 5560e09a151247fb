"""Weighted automata: what they weigh, and that a bilinear network of one layer is one, word for word."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import one_hot

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.ring import Symbolic


def words(letters, longest):
    for length in range(longest + 1):
        yield from itertools.product(range(letters), repeat=length)


def run(layer, word):
    x = one_hot(torch.tensor(word), layer.input_size).to(layer.weight_bilinear_l0.dtype)
    return layer(x)[0][-1].detach().numpy()


def paths(automaton, word):
    """Sum the products of weights over all paths."""
    n, total = automaton.states, 0
    for path in itertools.product(range(n), repeat=len(word) + 1):
        weight = automaton.initial[path[0]]
        for (i, j), letter in zip(itertools.pairwise(path), word, strict=True):
            weight = weight * automaton.transitions[letter, i, j]
        total = total + weight * automaton.final[path[-1]]
    return total


def random_automaton(seed, states=3, letters=2, outputs=2):
    rng = np.random.default_rng(seed)
    return ms.nn.WeightedAutomaton(
        rng.integers(-3, 4, states),
        rng.integers(-3, 4, (letters, states, states)),
        rng.integers(-3, 4, (states, outputs)),
    )


def test_the_weight_of_a_word_is_the_sum_over_paths():
    automaton = random_automaton(0)
    for word in words(2, 4):
        assert np.array_equal(automaton.weight(word), paths(automaton, word))


def test_fractions_stay_exact():
    third = np.array([[[Fraction(1, 3)]]], dtype=object)
    automaton = ms.nn.WeightedAutomaton(
        np.array([Fraction(1)], dtype=object), third, np.array([Fraction(2)], dtype=object)
    )
    assert automaton.weight((0,) * 5)[0] == Fraction(2, 3**5)


def test_counting_a_letter():
    counter = ms.nn.WeightedAutomaton([1, 0], [[[1, 0], [0, 1]], [[1, 1], [0, 1]]], [0, 1])
    for word in words(2, 5):
        assert counter.weight(word) == [word.count(1)]


@given(seed=st.integers(0, 1000), states=st.integers(1, 4), letters=st.integers(1, 3), outputs=st.integers(1, 2))
@settings(max_examples=20, deadline=None)
def test_an_automaton_becomes_a_network_with_the_same_weights_of_words(seed, states, letters, outputs):
    automaton = random_automaton(seed, states, letters, outputs)
    layer = ms.nn.BIRNN.from_automaton(automaton)
    for word in words(letters, 4):
        if word:  # small integers are exact in floats: equal, not close
            assert np.array_equal(run(layer, word), automaton.weight(word))
    back = layer.to_automaton()
    for name in ("initial", "transitions", "final"):
        assert np.array_equal(getattr(back, name), getattr(automaton, name))


@pytest.mark.parametrize("options", [{}, {"output_size": 2}, {"learn_initial": True}])
def test_a_network_becomes_an_automaton(options):
    layer = ms.nn.BIRNN(3, 4, dtype=torch.float64, **options)
    automaton = layer.to_automaton()
    assert (automaton.letters, automaton.states) == (3, 4)
    for word in words(3, 3):
        if word:
            np.testing.assert_allclose(run(layer, word), automaton.weight(word), rtol=1e-13, atol=1e-15)
    start = layer.init_state(1)[0, 0].detach().numpy()
    final = layer.weight_out.detach().numpy() if options.get("output_size") else np.eye(4)
    np.testing.assert_allclose(automaton.weight(()), final @ start)


def test_the_conversion_is_exact_in_exact_arithmetic():
    layer, exact = ms.nn.BIRNN(2, 3), Symbolic()
    automaton = layer.to_automaton()
    rational = ms.nn.WeightedAutomaton(
        *(exact.array(getattr(automaton, name)) for name in ("initial", "transitions", "final"))
    )
    word = (0, 1, 1, 0, 1)
    x = exact.array(np.eye(2, dtype=np.int64)[list(word)][:, None])
    y, _ = layer.evaluate(exact, layer.exact_weights(exact), x)
    assert y[-1, 0].tolist() == rational.weight(word).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ms.nn.BIRNN(2, 3, num_layers=2).to_automaton(), "only a network of one layer and direction"),
        (lambda: ms.nn.BIRNN(2, 3, bidirectional=True).to_automaton(), "only a network of one layer and direction"),
        (lambda: ms.nn.WeightedAutomaton([[1]], [[[1]]], [1]), "initial must be a vector"),
        (lambda: ms.nn.WeightedAutomaton([1, 2], [[[1]]], [1]), "transitions must be of shape (letters, 2, 2)"),
        (lambda: ms.nn.WeightedAutomaton([1], [[[1]]], [1, 2]), "final must be of shape (1,) or (1, outputs)"),
        (lambda: ms.nn.WeightedAutomaton([1.0], [[[float("nan")]]], [1]), "transitions must be finite"),
        (lambda: ms.nn.WeightedAutomaton(["a"], [[[1]]], [1]), "initial must be an array of numbers"),
        (lambda: random_automaton(0).weight((0, 2)), "a letter must be a whole number from 0 to 1, got 2"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(UserError) as caught:
        call()
    assert str(caught.value).startswith(message)
