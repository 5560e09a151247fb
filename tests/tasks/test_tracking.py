"""Group composition and Dyck languages, against loops and against exact counts."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sympy.combinatorics import Permutation
from sympy.combinatorics.named_groups import AlternatingGroup, SymmetricGroup
from tests.tasks.every_task import entropy

import mnemoscope as ms
from mnemoscope.tasks.dyck import closed_probability
from mnemoscope.tasks.group_composition import multiplication_table

seeds = st.integers(0, 2**32)


def drawn(name, size, seed, **settings):
    task = ms.tasks.create(name, **settings)
    batch = task.sample(size, torch.Generator().manual_seed(seed))
    assert torch.equal(batch.inputs.sum(-1), torch.ones(task.steps, size))
    return task, batch, batch.inputs.argmax(-1)


@pytest.mark.parametrize(
    ("name", "group"), [("S3", SymmetricGroup(3)), ("A5", AlternatingGroup(5)), ("S5", SymmetricGroup(5))]
)
def test_tables_of_permutations_are_those_of_sympy(name, group):
    elements = sorted(tuple(p.array_form) for p in group.elements)
    table = multiplication_table(name)
    assert table.shape == (len(elements), len(elements))
    assert elements[0] == tuple(range(len(elements[0])))
    rng = np.random.default_rng(0)
    for a, b in rng.integers(0, len(elements), (300, 2)):
        # sympy multiplies from the left: p * q is first p, then q.
        product = Permutation(list(elements[b])) * Permutation(list(elements[a]))
        assert elements[table[a, b]] == tuple(product.array_form)


@pytest.mark.parametrize("name", ["Z2", "Z7", "Z60", "S3", "A5", "S5"])
def test_tables_are_groups(name):
    table = multiplication_table(name)
    n = len(table)
    assert (table[0] == np.arange(n)).all()
    assert (table[:, 0] == np.arange(n)).all()
    assert all(sorted(row) == list(range(n)) for row in table)
    some = np.random.default_rng(1).integers(0, n, (500, 3))
    assert all(table[table[a, b], c] == table[a, table[b, c]] for a, b, c in some)
    assert (table == table.T).all() == name.startswith("Z")


@given(st.sampled_from(["Z2", "Z5", "S3", "A5"]), st.integers(1, 15), seeds)
def test_group_composition(group, length, seed):
    task, batch, tokens = drawn("group-composition", 4, seed, group=group, length=length)
    table = multiplication_table(group)
    for number in range(4):
        product = 0
        for t, element in enumerate(tokens[:, number].tolist()):
            product = table[element, product]
            assert int(batch.targets[t, number]) == product
    assert batch.mask.all()
    assert task.baseline == pytest.approx(math.log(len(table)))
    assert [one.task.length for one in task.evaluations()] == [length, 2 * length, 4 * length]
    assert {one.task.group for one in task.evaluations()} == {group}


def test_group_elements_are_uniform():
    _, batch, tokens = drawn("group-composition", 20_000, 0, group="S3", length=2)
    assert stats.chisquare(torch.bincount(tokens[0] * 6 + tokens[1], minlength=36)).pvalue > 1e-4
    assert stats.chisquare(torch.bincount(batch.targets[1])).pvalue > 1e-4


@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 20), seeds)
def test_dyck(depth, kinds, length, seed):
    task, batch, tokens = drawn("dyck", 5, seed, depth=depth, kinds=kinds, length=length)
    for number in range(5):
        stack = []
        for t, token in enumerate(tokens[:, number].tolist()):
            if token < kinds:
                stack.append(token)
            else:
                assert stack.pop() == token - kinds
            assert len(stack) <= depth
            assert int(batch.targets[t, number]) == (stack[-1] if stack else kinds)
    assert (task.input_size, task.output_size) == (2 * kinds, kinds + 1)


def words(depth, kinds, length):
    """Give every prefix with its chance, and the answers: all valid symbols are equally likely at each step."""

    def grow(word, stack, chance, answers):
        if len(word) == length:
            yield word, chance, answers
            return
        valid = list(range(kinds)) if len(stack) < depth else []
        valid += [stack[-1] + kinds] if stack else []
        for symbol in valid:
            after = [*stack, symbol] if symbol < kinds else stack[:-1]
            answer = after[-1] if after else kinds
            yield from grow((*word, symbol), after, chance / len(valid), [*answers, answer])

    return grow((), [], 1.0, [])


def test_dyck_words_have_the_chances_of_uniform_valid_symbols():
    chances = {word: chance for word, chance, _ in words(2, 2, 5)}
    assert sum(chances.values()) == pytest.approx(1)
    _, _, tokens = drawn("dyck", 40_000, 0, depth=2, kinds=2, length=5)
    counts = Counter(map(tuple, tokens.T.tolist()))
    assert set(counts) <= set(chances)
    observed = [counts[word] for word in chances]
    assert stats.chisquare(observed, [40_000 * chance for chance in chances.values()]).pvalue > 1e-4


@pytest.mark.parametrize(("depth", "kinds", "length"), list(itertools.product([1, 2, 3], [1, 2], [1, 4, 6])))
def test_dyck_baseline_is_the_entropy_of_all_answers(depth, kinds, length):
    shares = [0.0] * (kinds + 1)
    for _, chance, answers in words(depth, kinds, length):
        for answer in answers:
            shares[answer] += chance / length
    task = ms.tasks.create("dyck", depth=depth, kinds=kinds, length=length)
    assert closed_probability(depth, kinds, length) == pytest.approx(shares[kinds])
    assert task.baseline == pytest.approx(entropy(shares))


def test_deep_dyck_is_sorted_as_shallow():
    """Beyond 127 levels the sort takes a wider type."""
    _, batch, tokens = drawn("dyck", 2, 0, depth=200, kinds=9, length=600)
    for number in range(2):
        stack = []
        for t, token in enumerate(tokens[:, number].tolist()):
            if token < 9:
                stack.append(token)
            else:
                assert stack.pop() == token - 9
            assert int(batch.targets[t, number]) == (stack[-1] if stack else 9)
        assert len(stack) > 127


@pytest.mark.parametrize(("kinds", "depth", "length"), [(2, 4, 64), (3, 2, 10), (1, 1, 5)])
def test_the_present_bracket_alone_predicts_as_well_as_is_said(kinds, depth, length):
    """The entropy of the answer given the symbol, of the shares in 20,000 sequences."""
    task, batch, symbols = drawn("dyck", 20_000, 0, kinds=kinds, depth=depth, length=length)
    table = torch.zeros(2 * kinds, kinds + 1, dtype=torch.float64)
    table.index_put_((symbols.flatten(), batch.targets.flatten()), torch.ones(()).double(), accumulate=True)
    found = sum(float(row.sum() / table.sum()) * entropy((row / row.sum()).tolist()) for row in table)
    assert task.memoryless == pytest.approx(found, abs=0.01)
    assert task.memoryless < task.baseline + 1e-12
