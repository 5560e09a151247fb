"""Intervals and comparisons against SciPy and against their definitions."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mnemoscope.core.errors import UserError
from mnemoscope.core.intervals import wilson
from mnemoscope.training.statistics import compare_paired, holm

numbers = st.floats(-100, 100).map(lambda x: round(x, 3))


@given(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=9))
def test_paired_interval_is_scipys(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    if np.std(a - b) < 1e-6:
        return
    found = compare_paired(a, b)
    wanted = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert found.difference.lower == pytest.approx(wanted.low, abs=1e-9)
    assert found.difference.upper == pytest.approx(wanted.high, abs=1e-9)
    assert found.pairs == len(pairs)


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=8))
def test_p_counts_sign_patterns(differences: list[int]) -> None:
    signs = list(product((-1, 1), repeat=len(differences)))
    observed = abs(sum(differences))
    extreme = sum(abs(sum(s * d for s, d in zip(sign, differences, strict=True))) >= observed for sign in signs)
    assert compare_paired(differences, [0] * len(differences)).p == pytest.approx(extreme / len(signs))


def test_many_pairs_agree_with_scipys_permutation_test() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.25, 1, 20), rng.normal(0, 1, 20)
    wanted = stats.permutation_test(
        (a, b), lambda x, y, axis: (x - y).mean(axis), permutation_type="samples", vectorized=True, n_resamples=20_000
    )
    assert compare_paired(a, b).p == pytest.approx(wanted.pvalue, abs=0.02)


def test_effect_is_hedges_corrected_ratio() -> None:
    a, b = [3.0, 5.0, 10.0, 4.0], [1.0, 2.0, 3.0, 4.0]
    d = np.subtract(a, b)
    assert compare_paired(a, b).effect == pytest.approx(d.mean() / d.std(ddof=1) * (1 - 3 / 11))
    assert compare_paired([2, 3, 4], [1, 2, 3]).effect == math.inf
    assert compare_paired([1, 2, 3], [1, 2, 3]).effect == 0
    assert math.isnan(compare_paired([1, 2], [2, 4]).effect)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values: list[float]) -> None:
    level = 0.05
    rejected = set()
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if p_values[i] * (len(p_values) - rank) > level:
            break
        rejected.add(i)
    assert {i for i, p in enumerate(holm(p_values)) if p <= level} == rejected


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wilson(4, 3), "successes must be an integer from 0 to 3, got 4"),
        (lambda: wilson(0, 0), "trials must be a positive integer, got 0"),
        (lambda: wilson(1, 3, 1.0), "level must be a number between 0 and 1, got 1.0"),
        (lambda: compare_paired([1.0], [2.0]), "a and b must be two lists"),
        (lambda: compare_paired([1.0, 2.0], [2.0]), "a and b must be two lists"),
        (lambda: compare_paired([1.0, math.nan], [2.0, 1.0]), "must be finite"),
        (lambda: holm([0.5, 1.5]), "p_values must be probabilities"),
    ],
)
def test_bad_input(call, words: str) -> None:
    with pytest.raises(UserError, match=words):
        call()
