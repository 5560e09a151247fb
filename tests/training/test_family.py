"""Equal-parameter families against the published sizes and the formula."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.nn.parameters import count_parameters
from mnemoscope.training import family


def formula(n: int, depth: int, d: int, classes: int, published: bool = False) -> int:
    between = n * (n - 1) // 2 if published else n * n
    return depth * n * (n - 1) // 2 + n * d + (depth - 1) * between + depth * n + classes * n + classes


@pytest.mark.parametrize(("budget", "sizes"), [(2**13, [76, 48, 39]), (2**16, [299, 164, 127])])
def test_sizes_of_ziv(budget: int, sizes: list[int]) -> None:
    assert [m.hidden_size for m in family("scornn", budget, input_size=34, output_size=34)] == sizes


@settings(max_examples=15)
@given(st.integers(400, 6000), st.integers(1, 4), st.integers(1, 12), st.integers(1, 12), st.booleans())
def test_widest_within_the_budget(budget: int, depth: int, d: int, classes: int, published: bool) -> None:
    count = "published" if published else "all"
    (member,) = family("scornn", budget, (depth,), input_size=d, output_size=classes, count=count)
    n = member.hidden_size
    assert member.parameters == formula(n, depth, d, classes, published) <= budget
    assert formula(n + 1, depth, d, classes, published) > budget


def test_published_counts_of_table_c1() -> None:
    # 2 x 128 on permuted MNIST: 34,314 numbers, which the table gives as 26K.
    network = ms.nn.SCORNN(1, 128, num_layers=2)
    assert count_parameters(network, "all", readout_size=10) == 34_314
    assert round(count_parameters(network, "published", readout_size=10), -3) == 26_000


def test_counting_draws_nothing() -> None:
    import torch

    torch.manual_seed(0)
    before = torch.get_rng_state()
    family("rnn", 1000, (1, 2), input_size=3)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: family("scornn", 10, input_size=34), "parameters must be at least 35"),
        (lambda: family("scorn", 1000, input_size=3), "did you mean 'scornn'"),
        (lambda: family("rnn", 0, input_size=3), "parameters must be a positive integer, got 0"),
        (lambda: family("rnn", 1000, (0,), input_size=3), "depths must be a positive integer, got 0"),
        (lambda: family("rnn", 1000, input_size=3, count="some"), "count must be"),
    ],
)
def test_bad_input(call, words: str) -> None:
    with pytest.raises(UserError, match=words):
        call()
