"""A wrong setting is one clear line."""

import pytest

import mnemoscope as ms
from mnemoscope.core.errors import UserError

CASES = [
    ("copying", {"delay": -1}, "delay must be a whole number of at least 0, got -1"),
    ("copying", {"delay": True}, "delay must be a whole number of at least 0, got True"),
    ("copying", {"alphabet": 1}, "alphabet must be a whole number of at least 2, got 1"),
    ("copying", {"symbols": 0}, "symbols must be a positive integer, got 0"),
    ("denoise", {"delay": "x"}, "delay must be a positive integer, got 'x'"),
    ("transfer-copy", {"tests": ()}, "tests must be one delay or more, got ()"),
    ("transfer-copy", {"tests": (5, 0)}, "a delay of tests must be a positive integer, got 0"),
    ("selective-copy", {"symbols": 9, "length": 8}, "symbols must be at most 8 (the length), got 9"),
    ("adding", {"length": 1}, "length must be a whole number of at least 2, got 1"),
    ("start-end-similarity", {"symbols": 31}, "symbols must be even, since half of them match in one class, got 31"),
    ("start-end-similarity", {"symbols": 32, "length": 63}, "symbols must be at most 31 (half of the length), got 32"),
    ("lag-copy", {"lag": 16}, "lag must be at most 15 (the length less one step to answer at), got 16"),
    ("sinus", {"frequency": 0}, "frequency must be a positive number, got 0"),
    ("parity", {"dimensions": 0}, "dimensions must be a positive integer, got 0"),
    ("matrix-copy", {"shortest": 21}, "shortest must be at most 20 (longest), got 21"),
    ("matrix-copy", {"start": 1}, "start must be true or false, got 1"),
    ("matrix-recall", {"items": 1}, "items must be a whole number of at least 2, got 1"),
    ("matrix-recall", {"fewest": 11}, "fewest must be at most 10 (items), got 11"),
    ("mqar", {"vocabulary": 5}, "vocabulary must be even: one half keys, one half values, got 5"),
    (
        "mqar",
        {"pairs": 33, "length": 999},
        "pairs must be at most 32 (half of the vocabulary, since keys are distinct), got 33",
    ),
    ("mqar", {"pairs": 22}, "pairs must be at most 21 (a third of the length: key, value, query), got 22"),
    ("mqar", {"vocabulary": 1}, "vocabulary must be a whole number of at least 4, got 1"),
    (
        "mqar-compositional",
        {"pairs": 17, "length": 99},
        "pairs must be at most 16 (a quarter of the vocabulary: two keys each, all distinct), got 17",
    ),
    (
        "mqar-forgetting",
        {"pairs": 17},
        "pairs must be at most 16 (what fits into the length: key, value, half of them once more, query), got 17",
    ),
    ("group-composition", {"group": "S4"}, "group must be Z2, Z3, .., Z1000, S3, A5 or S5, got 'S4'"),
    ("group-composition", {"group": 3}, "group must be Z2, Z3, .., Z1000, S3, A5 or S5, got 3"),
    ("group-composition", {"group": "Z1"}, "group must be Z2, Z3, .., Z1000, S3, A5 or S5, got 'Z1'"),
    ("dyck", {"kinds": 0}, "kinds must be a positive integer, got 0"),
    ("smnist", {"side": 29}, "side must be at most 28 (the pixels of a side), got 29"),
    ("pmnist", {"recipe": "zif"}, "recipe must be 'ziv' or 'kerg' or 'all', got 'zif'; did you mean 'ziv'?"),
    ("mnist", {"grid": 3}, "grid must be 1, 2, 4, 7, 14 or 28, got 3"),
    ("mnist", {"data": 3}, "data must be the path of a folder, got 3"),
    ("ptb", {"verify": 1}, "verify must be true or false, got 1"),
    ("shakespeare", {"length": 0}, "length must be a positive integer, got 0"),
]


@pytest.mark.parametrize(("name", "settings", "line"), CASES, ids=[f"{name} {settings}" for name, settings, _ in CASES])
def test_one_line(name, settings, line):
    with pytest.raises(UserError) as caught:
        ms.tasks.create(name, **settings)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)
