"""The closed forms of tensor trains against the full tensor in exact arithmetic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy

from mnemoscope.core.errors import UserError
from mnemoscope.theory import attaining_cores, generic_odd_even_rank, odd_even_bound


def entry(cores, index):
    """One entry of the tensor, by its definition."""
    product = np.asarray(cores[0])[index[0]]
    for core, i in zip(cores[1:-1], index[1:-1], strict=True):
        product = product @ np.asarray(core)[:, i, :]
    return product @ np.asarray(cores[-1])[:, index[-1]]


def matricise(cores, modes, rows):
    columns = [k for k in range(len(cores)) if k not in rows]
    matrix = []
    for first in itertools.product(*(range(modes[k]) for k in rows)):
        line = []
        for second in itertools.product(*(range(modes[k]) for k in columns)):
            at = dict(zip([*rows, *columns], first + second, strict=True))
            line.append(int(entry(cores, [at[k] for k in range(len(cores))])))
        matrix.append(line)
    return sympy.Matrix(matrix)


def integer_cores(n, r, d, equal, seed=0):
    rng = np.random.default_rng(seed)
    inner = [rng.integers(-9, 10, (r, n, r)) for _ in range(1 if equal else d - 2)]
    inner = inner * (d - 2) if equal else inner
    return [rng.integers(-9, 10, (n, r)), *inner, rng.integers(-9, 10, (r, n))]


@pytest.mark.parametrize(("n", "r", "d"), [(2, 2, 4), (3, 2, 4), (5, 2, 4), (2, 3, 4), (2, 2, 6)])
@pytest.mark.parametrize("equal", [False, True])
def test_the_generic_rank_is_that_of_random_cores_in_rational_arithmetic(n, r, d, equal):
    matrix = matricise(integer_cores(n, r, d, equal), [n] * d, range(0, d, 2))
    assert matrix.rank() == generic_odd_even_rank(n, r, d) >= odd_even_bound(n, r, d)


@pytest.mark.parametrize(("n", "r", "d"), [(2, 2, 4), (3, 2, 4), (2, 3, 4), (3, 3, 4), (2, 4, 4), (2, 3, 6), (3, 2, 6)])
def test_the_construction_has_rank_min_n_r_to_the_half(n, r, d):
    matrix = matricise(attaining_cores(n, r, d), [n] * d, range(0, d, 2))
    assert matrix.rank() == min(n, r) ** (d // 2)


def test_the_construction_holds_the_identity_on_the_first_q_letters():
    cores = attaining_cores(features=3, rank=3, length=4)
    for index in itertools.product(range(2), repeat=4):
        assert entry(cores, index) == (index[0] == index[1] and index[2] == index[3])


def test_the_bound_is_exceeded_exactly_where_r_is_small():
    for n, r, d in itertools.product(range(1, 6), range(2, 7), (2, 4, 6)):
        assert (generic_odd_even_rank(n, r, d) > odd_even_bound(n, r, d)) == (r <= n)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: odd_even_bound(0, 2, 4), "features must be a positive integer"),
        (lambda: generic_odd_even_rank(2, -1, 4), "rank must be a positive integer"),
        (lambda: generic_odd_even_rank(2, 2, 5), "length must be even"),
        (lambda: attaining_cores(2, 1, 4), "rank must be at least 2"),
    ],
)
def test_bad_sizes_are_named(call, message):
    with pytest.raises(UserError, match=message):
        call()
