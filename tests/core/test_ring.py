"""Rings against Python's own integers and fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.core.errors import UserError
from mnemoscope.core.ring import PRIMES, Prime, Real, Symbolic

FIELDS = [Prime(p) for p in (*PRIMES, 2, 3, 101, (1 << 31) - 1)]


def residue(value: Fraction, p: int) -> int:
    return value.numerator * pow(value.denominator, -1, p) % p


def as_object(array: np.ndarray) -> np.ndarray:
    return np.array(array.tolist(), dtype=object)


@pytest.mark.parametrize("p", PRIMES)
def test_primes_are_the_largest_below_2_61(p: int) -> None:
    above = 1 << 61 if p == PRIMES[0] else PRIMES[PRIMES.index(p) - 1]
    assert sympy.prevprime(above) == p


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(FIELDS),
    st.lists(st.tuples(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1)), min_size=1, max_size=40),
)
def test_sums_and_products_are_those_of_integers(field: Prime, pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array(part, dtype=np.uint64) for part in zip(*pairs, strict=True))
    x, y = field.array(a), field.array(b)
    assert field.add(x, y).tolist() == [(i + j) % field.p for i, j in pairs]
    assert field.sub(x, y).tolist() == [(i - j) % field.p for i, j in pairs]
    assert field.mul(x, y).tolist() == [i * j % field.p for i, j in pairs]


@pytest.mark.parametrize("field", FIELDS, ids=repr)
def test_products_at_the_edges(field: Prime) -> None:
    edges = np.array(sorted({e % field.p for e in (0, 1, 2, field.p // 2, field.p - 2, field.p - 1)}), dtype=np.uint64)
    expected = [[int(a) * int(b) % field.p for b in edges] for a in edges]
    assert field.mul(edges[:, None], edges[None]).tolist() == expected
    assert field.matmul(edges[:, None], edges[None]).tolist() == expected


@pytest.mark.parametrize("field", FIELDS, ids=repr)
@pytest.mark.parametrize("inner", [1, 4, 511, 512, 513, 1100])
def test_matrix_products_are_those_of_integers(field: Prime, inner: int) -> None:
    draw = np.random.default_rng(inner)
    a, b = (draw.integers(0, field.p, size=shape, dtype=np.uint64) for shape in ((5, inner), (inner, 3)))
    assert field.matmul(a, b).tolist() == ((as_object(a) @ as_object(b)) % field.p).tolist()


def test_the_largest_residues_do_not_overflow_a_matrix_product() -> None:
    field = Prime(PRIMES[0])
    a = np.full((2, 2000), field.p - 1, dtype=np.uint64)
    assert field.matmul(a, a.T).tolist() == [[2000, 2000], [2000, 2000]]


def test_products_with_wide_matrices_are_those_of_whole_numbers() -> None:
    field, draw = Prime(PRIMES[0]), np.random.default_rng(1)
    a, b = (draw.integers(0, field.p, size=shape, dtype=np.uint64) for shape in ((130, 8), (8, 1040)))
    assert field.matmul(a, b).tolist() == ((as_object(a) @ as_object(b)) % field.p).tolist()


def test_stacks_vectors_and_long_batches() -> None:
    field, draw = Prime(PRIMES[1]), np.random.default_rng(0)
    stack = draw.integers(0, field.p, size=(3, 7, 4), dtype=np.uint64)
    other = draw.integers(0, field.p, size=(3, 4, 2), dtype=np.uint64)
    long = draw.integers(0, field.p, size=(5000, 4), dtype=np.uint64)
    exact = (as_object(stack) @ as_object(other)) % field.p
    assert field.matmul(stack, other).tolist() == exact.tolist()
    assert field.matmul(stack, other[0]).tolist() == ((as_object(stack) @ as_object(other[0])) % field.p).tolist()
    assert field.matmul(long, other[0]).tolist() == ((as_object(long) @ as_object(other[0])) % field.p).tolist()
    assert field.matmul(stack, other[0, :, 0]).shape == (3, 7)
    assert field.matmul(stack[0, 0], other[0]).tolist() == field.matmul(stack[0], other[0])[0].tolist()
    with pytest.raises(UserError, match="inner sizes"):
        field.matmul(stack[0], other[0, :3])


def test_products_broadcast_and_keep_empty_arrays() -> None:
    field = Prime(101)
    a = field.array(np.arange(6).reshape(2, 1, 3))
    b = field.array(np.arange(4).reshape(4, 1))
    assert field.mul(a, b).tolist() == (np.arange(6).reshape(2, 1, 3) * np.arange(4).reshape(4, 1) % 101).tolist()
    assert field.mul(field.zeros((0, 3)), field.ones((1, 3))).shape == (0, 3)
    assert field.matmul(field.zeros((2, 0)), field.zeros((0, 3))).tolist() == [[0, 0, 0], [0, 0, 0]]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_floats_are_the_rational_numbers_that_they_are(values: list[float]) -> None:
    field = Prime(PRIMES[2])
    assert field.array(values).tolist() == [residue(Fraction(value), field.p) for value in values]


def test_what_comes_in() -> None:
    field = Prime(PRIMES[0])
    assert field.array([-1, 5]).tolist() == [field.p - 1, 5]
    assert field.array([Fraction(-2, 7), 10**40]).tolist() == [residue(Fraction(-2, 7), field.p), 10**40 % field.p]
    assert field.array(torch.tensor([0.1])).tolist() == [residue(Fraction(float(torch.tensor(0.1))), field.p)]
    assert field.array(torch.tensor([0.5], dtype=torch.bfloat16)).tolist() == [residue(Fraction(1, 2), field.p)]
    assert field.array(True).tolist() == 1
    assert int(field.power(field.array(3), -1)) == pow(3, -1, field.p)


@pytest.mark.parametrize("ring", [Real(), Prime(PRIMES[0]), Symbolic()], ids=repr)
def test_nan_and_complex_numbers_are_refused(ring: Real | Prime | Symbolic) -> None:
    with pytest.raises(UserError, match="must be finite, got 1 NaN"):
        ring.array([1.0, float("nan")])
    with pytest.raises(UserError, match="real numbers"):
        ring.array([1j])


@pytest.mark.parametrize("p", [0, -7, 1, 9, 561, (1 << 61) + 15, 3215031751, 2.5])
def test_only_primes_below_2_61(p: int) -> None:
    with pytest.raises(UserError, match="p must be"):
        Prime(p)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 8), st.integers(0, 1 << 30))
def test_rank_of_a_product_of_thin_matrices(rows: int, columns: int, rank: int, seed: int) -> None:
    field, draw = Prime(PRIMES[1]), np.random.default_rng(seed)
    left, right = (draw.integers(0, field.p, size=s, dtype=np.uint64) for s in ((rows, rank), (rank, columns)))
    assert field.rank(field.matmul(left, right)) == min(rows, columns, rank)


def test_ranks_agree_with_sympy_and_real() -> None:
    draw = np.random.default_rng(3)
    for _ in range(10):
        matrix = draw.integers(-2, 3, size=(5, 6))
        assert Prime(PRIMES[0]).rank(Prime(PRIMES[0]).array(matrix)) == sympy.Matrix(matrix.tolist()).rank()
        assert Real().rank(Real().array(matrix)) == np.linalg.matrix_rank(matrix)


def test_inverse_undoes() -> None:
    field = Prime(PRIMES[3])
    matrix = np.random.default_rng(0).integers(0, field.p, size=(4, 4), dtype=np.uint64)
    assert field.matmul(matrix, field.inverse(matrix)).tolist() == np.eye(4, dtype=int).tolist()
    with pytest.raises(UserError, match="invertible"):
        field.inverse(field.ones((2, 2)))


def test_symbols() -> None:
    ring, x = Symbolic(), sympy.Symbol("x")
    a = ring.array([[x, 0.5], [1, Fraction(1, 3)]])
    product = ring.matmul(a, ring.add(ring.ones((2, 1)), ring.zeros((2, 1))))
    assert product.tolist() == [[x + sympy.Rational(1, 2)], [sympy.Rational(4, 3)]]
    assert ring.mul(a, a)[0, 0] == x**2
    assert isinstance(ring.array([0.1])[0], sympy.Rational)
