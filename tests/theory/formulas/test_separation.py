"""Bounds on the separation rank, against ranks of RACs that plain Python evaluates and eliminates."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.core.ring import PRIMES, Prime
from mnemoscope.theory import attaining_weights, conjecture_weights
from mnemoscope.theory.formulas import separation as theory

P = PRIMES[0]
SIZES = list(itertools.product((1, 2, 3), (1, 2, 3), (2, 4)))


def rank(rows: list[list[int]]) -> int:
    """Eliminate modulo P, row by row."""
    pivots: list[tuple[int, list[int]]] = []
    for row in rows:
        for column, pivot in pivots:
            factor = row[column]
            row = [(a - factor * b) % P for a, b in zip(row, pivot, strict=True)]
        column = next((j for j, a in enumerate(row) if a), -1)
        if column >= 0:
            inverse = pow(row[column], -1, P)
            pivots.append((column, [a * inverse % P for a in row]))
    return len(pivots)


def times(matrix: list[list[int]], vector: Sequence[int]) -> list[int]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) % P for row in matrix]


def rac(weights: dict[str, list[list[int]]], sequence: Sequence[Sequence[int]]) -> int:
    """Return the first output of a RAC after a sequence."""
    layers = sum(name.startswith("weight_ih") for name in weights)
    left = [[1] * len(weights["weight_hh_l0"]) for _ in range(layers)]
    for x in sequence:
        for k in range(layers):
            x = [a * b % P for a, b in zip(left[k], times(weights[f"weight_ih_l{k}"], x), strict=True)]
            left[k] = times(weights[f"weight_hh_l{k}"], x)
    return times(weights["weight_out"], x)[0]


def grid_rank(
    weights: dict[str, list[list[int]]],
    templates: Sequence[Sequence[int]],
    T: int,
    start: Sequence[int] | None = None,
) -> int:
    inside = list(range(T // 2)) if start is None else list(start)
    outside = [t for t in range(T) if t not in inside]
    rows = []
    for first in itertools.product(templates, repeat=len(inside)):
        row = []
        for last in itertools.product(templates, repeat=len(outside)):
            at = dict(zip(inside + outside, first + last, strict=True))
            row.append(rac(weights, [at[t] for t in range(T)]))
        rows.append(row)
    return rank(rows)


def generic(M: int, R: int, L: int, seed: int = 0) -> dict[str, list[list[int]]]:
    draw = random.Random(f"{M} {R} {L} {seed}")
    weights = {}
    for k in range(L):
        weights[f"weight_ih_l{k}"] = [[draw.randrange(P) for _ in range(R if k else M)] for _ in range(R)]
        weights[f"weight_hh_l{k}"] = [[draw.randrange(P) for _ in range(R)] for _ in range(R)]
    return {**weights, "weight_out": [[draw.randrange(P) for _ in range(R)]]}


def one_hot(M: int) -> list[list[int]]:
    return np.eye(M, dtype=int).tolist()


def plain(weights: dict[str, np.ndarray]) -> dict[str, list[list[int]]]:
    return {name: value.tolist() for name, value in weights.items()}


@given(st.integers(0, 5), st.integers(0, 5))
def test_mc_counts_multisets(n: int, k: int) -> None:
    assert theory.mc(n, k) == len(list(itertools.combinations_with_replacement(range(n), k)))


@pytest.mark.parametrize(("M", "R", "T"), SIZES)
def test_depth_one_is_the_theorem(M: int, R: int, T: int) -> None:
    assert grid_rank(generic(M, R, 1), one_hot(M), T) == theory.separation_theorem(M, R, T, 1) == min(R, M ** (T // 2))


@pytest.mark.parametrize(("M", "R", "T"), SIZES)
def test_depth_two_is_the_sharper_formula_and_exceeds_the_theorem(M: int, R: int, T: int) -> None:
    found = grid_rank(generic(M, R, 2), one_hot(M), T)
    assert found == theory.depth_two_rank(M, R, T)
    proved = theory.separation_theorem(M, R, T, 2)
    assert (found == proved) == (T == 2 or min(M, R) == 1)
    assert found >= proved == theory.shallow_width(M, R, T)


@pytest.mark.parametrize(("M", "R", "T"), SIZES)
def test_depth_three_lies_between_conjecture_and_upper_bound(M: int, R: int, T: int) -> None:
    found = grid_rank(generic(M, R, 3), one_hot(M), T)
    assert theory.conjecture_bound(M, R, T, 3) <= found <= theory.separation_upper(M, R, T, 3)


@pytest.mark.parametrize(("M", "R", "T"), SIZES)
@pytest.mark.parametrize("L", [1, 2, 3])
def test_upper_bound_for_one_hot_templates_is_the_rank(M: int, R: int, T: int, L: int) -> None:
    assert grid_rank(generic(M, R, L), one_hot(M), T) == theory.separation_upper(M, R, T, L, templates=M)


@pytest.mark.parametrize(("M", "R", "T", "L"), [(2, 2, 4, 2), (2, 3, 4, 2), (3, 2, 2, 3), (2, 2, 2, 4), (2, 2, 4, 1)])
def test_upper_bound_is_met_with_enough_templates(M: int, R: int, T: int, L: int) -> None:
    draw = random.Random(1)
    templates = [[draw.randrange(-50, 50) for _ in range(M)] for _ in range(6)]
    assert grid_rank(generic(M, R, L), templates, T) == theory.separation_upper(M, R, T, L)


def test_more_templates_than_channels_exceed_the_grid_of_channels() -> None:
    weights, templates = generic(2, 2, 2), [[1, 0], [0, 1], [3, 5], [-2, 7]]
    assert [grid_rank(weights, templates[:k], 4) for k in (2, 3, 4)] == [4, 6, 6]


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(2, 4), st.data())
def test_upper_bound_holds_for_any_partition(M: int, R: int, L: int, T: int, data: st.DataObject) -> None:
    start = data.draw(st.sets(st.integers(0, T - 1), min_size=1, max_size=T - 1))
    templates = [[1, 2][:M], [3, -1][:M], [-4, 5][:M]]
    for count in (1, 2, 3):
        found = grid_rank(generic(M, R, L), templates[:count], T, sorted(start))
        assert found <= theory.separation_upper(M, R, T, L, start, templates=count)
        assert found <= theory.separation_upper(M, R, T, L, start)


@pytest.mark.parametrize(("M", "R", "T"), [(2, 2, 4), (2, 3, 4), (3, 2, 4), (3, 3, 4), (2, 2, 6), (2, 2, 8), (4, 3, 4)])
@pytest.mark.parametrize("templates", ["one-hot", "dense"])
def test_attaining_weights_attain_the_theorem_exactly(M: int, R: int, T: int, templates: str) -> None:
    rows = one_hot(M) if templates == "one-hot" else (np.eye(M, dtype=int) * 2 + np.arange(1, M + 1)).tolist()
    weights = plain(attaining_weights(Prime(P), M, R, T, templates=rows))
    assert grid_rank(weights, rows, T) == theory.separation_theorem(M, R, T, 2)


@pytest.mark.parametrize(
    ("M", "R", "T", "L"),
    [(2, 2, 4, 3), (2, 3, 4, 3), (3, 2, 4, 3), (3, 3, 4, 3), (2, 2, 6, 3), (2, 2, 4, 4), (3, 3, 4, 2), (4, 2, 4, 3)],
)
def test_conjecture_weights_meet_the_conjecture(M: int, R: int, T: int, L: int) -> None:
    weights = plain(conjecture_weights(Prime(P), M, R, T, L, seed=5))
    assert grid_rank(weights, one_hot(M), T) >= theory.conjecture_bound(M, R, T, L)


@pytest.mark.parametrize(("M", "R", "T"), [(2, 2, 4), (3, 3, 4), (2, 2, 6)])
def test_identity_in_the_first_layer_cannot_support_the_conjecture(M: int, R: int, T: int) -> None:
    weights = plain(conjecture_weights(Prime(P), M, R, T, 3)) | {"weight_hh_l0": np.eye(R, dtype=int).tolist()}
    assert grid_rank(weights, one_hot(M), T) <= theory.mc(M, T // 2) < theory.conjecture_bound(M, R, T, 3)


def test_numbers_that_can_be_checked_by_hand() -> None:
    assert theory.conjecture_bound(3, 5, 6, 1) == 3  # as printed, though the rank is 5
    assert theory.conjecture_bound(3, 3, 6, 3) == min(28, 27)
    assert theory.separation_upper(3, 2, 6, 2) == min(4 * 2, 2 * 3 * 4)
    assert theory.separation_upper(2, 3, 6, 1, start=(0, 2, 4)) == 8
    assert theory.shallow_width(64, 128, 100) == theory.mc(64, 50)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: theory.conjecture_bound(2, 2, 5, 2), "T must be even, so that it has two halves, got 5"),
        (lambda: theory.conjecture_bound(0, 2, 4, 2), "M must be a positive integer, got 0"),
        (lambda: theory.separation_theorem(2, 2, 4, 3), "L must be 1 or 2"),
        (lambda: theory.shallow_width(2, 2.5, 4), "R must be a positive integer"),
        (lambda: attaining_weights(Prime(P), 2, 2, 3), "T must be even"),
        (lambda: attaining_weights(Prime(P), 2, 2, 4, templates=[[1, 2]]), r"templates must be of shape \(2, 2\)"),
        (lambda: attaining_weights(Prime(P), 2, 2, 4, templates=[[1, 2], [2, 4]]), "invertible"),
        (lambda: conjecture_weights(Prime(P), 2, 2, 4, 1), "L must be at least 2, got 1"),
        (lambda: theory.mc(-1, 2), "at least 0"),
    ],
)
def test_bad_input_is_one_line(call, said) -> None:
    with pytest.raises(UserError, match=said) as error:
        call()
    assert "\n" not in str(error.value)
