"""The separation rank against plain fractions, full passes over every sequence, and other people's linear algebra."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.ring import PRIMES, Prime
from mnemoscope.measures.separation.grid import RingWalk, evaluate_grid, exact_rank
from mnemoscope.measures.separation.inputs import random_templates
from mnemoscope.measures.separation.rank import separation_rank
from mnemoscope.measures.separation.saturation import separation_saturation
from mnemoscope.measures.separation.singular_values import scaled, singular_values_of
from mnemoscope.theory import depth_two_rank, separation_lower, separation_upper


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rac(M: int, R: int, L: int, seed: int = 0, **options) -> ms.nn.RAC:
    return ms.nn.RAC(M, R, num_layers=L, generator=seeded(seed), **{"output_size": 2, **options})


def exact_output(network: ms.nn.RAC, sequence, unit: int) -> Fraction:
    """Evaluate a RAC in fractions, from its definition."""
    weights = {
        name: [[Fraction(float(w)) for w in row] for row in value.tolist()]
        for name, value in network.named_parameters()
    }

    def times(matrix, vector):
        return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]

    left = [[Fraction(1)] * network.hidden_size for _ in range(network.num_layers)]
    for x in sequence:
        for k in range(network.num_layers):
            x = [a * b for a, b in zip(left[k], times(weights[f"weight_ih_l{k}"], x), strict=True)]
            left[k] = times(weights[f"weight_hh_l{k}"], x)
    return times(weights["weight_out"], x)[unit] if "weight_out" in weights else x[unit]


def naive_grid(output, templates, T: int, start) -> list[list]:
    outside = [t for t in range(T) if t not in start]
    grid = []
    for first in itertools.product(templates, repeat=len(start)):
        row = []
        for last in itertools.product(templates, repeat=len(outside)):
            at = dict(zip([*start, *outside], first + last, strict=True))
            row.append(output([at[t] for t in range(T)]))
        grid.append(row)
    return grid


def exact_rank_by_sympy(network: ms.nn.RAC, templates, T: int, start, unit: int = 0) -> int:
    rows = [[Fraction(float(x)) for x in row] for row in templates]
    grid = naive_grid(lambda s: exact_output(network, s, unit), rows, T, start)
    domain = sympy.polys.matrices.DomainMatrix.from_Matrix(
        sympy.Matrix([[sympy.Rational(v.numerator, v.denominator) for v in row] for row in grid])
    )
    return domain.to_field().rank()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(2, 4),
    st.integers(0, 1),
    st.booleans(),
    st.data(),
)
def test_ranks_are_those_of_fractions(M, R, L, T, unit, one_hot, data) -> None:
    start = tuple(sorted(data.draw(st.sets(st.integers(0, T - 1), min_size=1, max_size=T - 1))))
    network = rac(M, R, L, seed=data.draw(st.integers(0, 99)))
    templates = None if one_hot else np.random.default_rng(T).normal(size=(2, M))
    found = separation_rank(network, T, templates, start, unit)
    rows = np.eye(M) if templates is None else templates
    assert found.rank == exact_rank_by_sympy(network, rows, T, start, unit)
    assert found.exact
    assert found.shape == (len(rows) ** len(start), len(rows) ** (T - len(start)))
    assert found.rank <= found.upper <= min(found.shape)


@pytest.mark.parametrize("change", ["zero", "equal rows", "rank one", "identity"])
def test_special_weights_have_their_own_ranks(change: str) -> None:
    network = rac(2, 3, 2, dtype=torch.float64)
    with torch.no_grad():
        w = network.weight_ih_l1
        w.copy_(
            {"zero": w * 0, "equal rows": w[:1].expand(3, 3), "rank one": w[:1] * w[:, :1], "identity": torch.eye(3)}[
                change
            ]
        )
    found = separation_rank(network, 4)
    assert found.rank == exact_rank_by_sympy(network, np.eye(2), 4, (0, 1))
    assert (found.rank == 0) == (change == "zero")


@pytest.mark.parametrize("L", [1, 2, 3])
@pytest.mark.parametrize("M", [2, 3, 4])
@pytest.mark.parametrize("R", [2, 3, 4])
@pytest.mark.parametrize("T", [2, 4, 6])
def test_random_racs_have_the_ranks_of_the_errata(M, R, T, L) -> None:
    found = separation_rank(rac(M, R, L, seed=M + 10 * R + 100 * T), T)
    assert found.lower == separation_lower(M, R, T, L)
    assert found.upper == min(separation_upper(M, R, T, L), M ** (T // 2))
    assert found.lower <= found.rank <= found.upper
    if L == 1:
        assert found.rank == min(R, M ** (T // 2))
    if L == 2:
        assert found.rank == depth_two_rank(M, R, T)


def test_more_templates_than_channels() -> None:
    network = rac(2, 2, 2)
    assert [separation_rank(network, 4, count, seed=7).rank for count in (2, 3, 4, 6)] == [4, 6, 6, 6]
    study = separation_saturation(network, 4, (2, 3, 4))
    assert study.ranks.tolist() == [4, 6, 6]
    assert study.saturated
    assert not separation_saturation(network, 4, (1, 2)).saturated
    assert "still growing" in str(separation_saturation(network, 4, (1, 2)))


def test_a_rank_that_more_templates_raise_is_a_bound() -> None:
    deep, shallow = rac(2, 3, 2), rac(2, 3, 1)
    few = separation_rank(deep, 6)
    assert (few.rank, few.status, few.exact) == (8, "bound", True)
    assert "a lower bound of the function's" in str(few)
    enough = separation_saturation(deep, 6)
    assert enough.ranks.tolist() == [8, 18, 24]
    assert (enough.status, enough.saturated, enough.upper) == ("exact", True, 24)
    assert separation_rank(deep, 6, 4, seed=3).status == "exact"  # the function has no more
    assert separation_rank(shallow, 6).status == "exact"
    assert (
        separation_rank(shallow, 6, np.array([[1.0, 2.0]])).status == "bound"
    )  # one template spans one channel of two
    assert separation_rank(ms.nn.create("birnn", 2, 2), 4).status == "bound"


def test_templates_are_taken_while_they_are_affordable() -> None:
    found = separation_saturation(rac(2, 3, 3), 10)
    assert found.templates.tolist() == [2, 3, 4]  # 5^5 rows are too many
    assert not found.saturated
    assert found.status == "bound"


def test_float_ranks_are_wrong_and_say_so_where_exact_ones_are_right() -> None:
    wrong = {2: 0, 3: 0}
    believed = 0
    for L, M, R, T in itertools.product((2, 3), (2, 3, 4), (2, 3, 4), (4, 6)):
        network = rac(M, R, L, seed=5, dtype=torch.float64)
        exact, floats = separation_rank(network, T), separation_rank(network, T, exact=False)
        assert exact.float_rank == floats.rank
        wrong[L] += floats.rank != exact.rank
        believed += floats.rank != exact.rank and floats.reliable
        assert ("unreliable" in str(floats)) == (not floats.reliable)
    assert wrong[2] >= 1
    assert wrong[3] >= 4
    assert believed == 0


def test_a_float_network_is_taken_at_its_exact_value() -> None:
    single = rac(2, 2, 2, dtype=torch.float32)
    assert separation_rank(single, 4).rank == separation_rank(single.double(), 4).rank == 4
    with torch.no_grad():
        single.weight_hh_l0.mul_(1e-60)
        single.weight_ih_l0.mul_(1e-60)
    found = separation_rank(single, 4)
    assert found.rank == 4
    assert np.isnan(found.spectrum).all()
    assert np.isnan(found.distance)


def test_output_without_a_readout() -> None:
    for R, T in itertools.product((2, 3), (2, 4)):
        found = separation_rank(rac(3, R, 1, output_size=None), T, unit=1)
        assert found.rank == exact_rank_by_sympy(rac(3, R, 1, output_size=None), np.eye(3), T, tuple(range(T // 2)), 1)
        assert found.lower == found.rank == min(R, 3 ** (T // 2 - 1))


def test_templates_that_span_less_bound_less() -> None:
    found = separation_rank(rac(3, 3, 2), 4, templates=[[1, 0, 0], [0, 1, 0], [1, 1, 0]])
    assert found.lower == separation_lower(2, 3, 4, 2)
    assert found.lower <= found.rank <= found.upper


@pytest.mark.parametrize("name", ["2rnn", "birnn", "cprnn", "cpbirnn", "mirnn"])
def test_other_polynomial_networks_are_exact(name: str) -> None:
    options = {} if name in ("birnn", "cpbirnn") else {"nonlinearity": "identity"}
    options |= {"rank": 2} if name.startswith("cp") else {}
    network = ms.nn.create(name, input_size=2, hidden_size=3, generator=seeded(), dtype=torch.float64, **options)
    found = separation_rank(network, 4)
    grid = np.array(naive_grid(lambda s: network(torch.tensor(np.array(s)))[0][-1, 0].item(), np.eye(2), 4, (0, 1)))
    assert found.exact
    assert found.lower is found.upper is None
    assert found.rank == np.linalg.matrix_rank(grid, tol=1e-9 * np.linalg.norm(grid))
    np.testing.assert_allclose(
        found.spectrum, np.linalg.svd(grid, compute_uv=False), rtol=1e-9, atol=1e-12 * np.abs(grid).max()
    )


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn", "nnrnn", "urnn", "mirnn"])
@pytest.mark.parametrize(("T", "start"), [(4, (0, 1)), (5, (0, 3)), (4, (1, 2, 3))])
def test_float_spectra_are_those_of_full_passes(name, T, start) -> None:
    network = ms.nn.create(name, input_size=2, hidden_size=4, num_layers=2, generator=seeded(3), dtype=torch.float64)
    templates = random_templates(3, 2, seed=1)
    with torch.no_grad():
        grid = np.array(
            naive_grid(lambda s: network(torch.tensor(np.array(s))[:, None])[0][-1, 0, 2].item(), templates, T, start)
        )
    found = separation_rank(network, T, 3, start, unit=2, seed=1)
    values = np.linalg.svd(grid, compute_uv=False)
    np.testing.assert_allclose(found.spectrum, values, rtol=1e-9, atol=1e-12 * values[0])
    shares = values**2 / (values**2).sum()
    assert found.distance == pytest.approx(np.sqrt(1 - shares[0]), rel=1e-8)
    assert found.entropy == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-8)
    assert not found.exact
    assert found.status == "estimate"
    assert found.rank == (values > found.tolerance * values[0]).sum()


def test_somebody_elses_module() -> None:
    module = torch.nn.GRU(2, 3, batch_first=True)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    found = separation_rank(module, 4)
    assert found.shape == (4, 4)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_linear_networks_are_sums_of_start_and_end() -> None:
    """y = g(start) + g'(end) has rank two, whatever the templates."""
    network = ms.nn.create("linear-rnn", input_size=2, hidden_size=5, generator=seeded(), dtype=torch.float64)
    found = separation_rank(network, 6, templates=3)
    assert found.rank == 2
    assert found.reliable
    assert found.spectrum[2] < 1e-12 * found.spectrum[0]


def test_tolerance_moves_the_cut() -> None:
    network = ms.nn.create("lstm", input_size=2, hidden_size=4, generator=seeded())
    found = separation_rank(network, 6, tolerance=1e-3)
    assert found.tolerance == 1e-3
    assert found.rank == (found.spectrum > 1e-3 * found.spectrum[0]).sum() < separation_rank(network, 6).rank


def test_scaling_keeps_rank_and_exposes_drowned_rows() -> None:
    matrix = np.diag([1.0, 1e-5, 1e-25]) @ np.random.default_rng(0).normal(size=(3, 4))
    assert (singular_values_of(matrix).rank, singular_values_of(matrix).open) == (2, True)
    assert singular_values_of(scaled(matrix)).rank == 3
    assert singular_values_of(np.zeros((2, 3))).rank == 0
    assert singular_values_of(np.zeros((2, 3))).distance == 0
    assert singular_values_of(np.full((2, 3), np.inf)).gap == 0
    tiny, huge = singular_values_of(np.eye(2) * 1e-300), singular_values_of(np.eye(2) * 1e300)
    assert tiny.distance == huge.distance == pytest.approx(np.sqrt(0.5))
    assert tiny.entropy == huge.entropy == pytest.approx(np.log(2))


@pytest.mark.parametrize(("shape", "rank"), [((1100, 1100), 40), ((1100, 1400), 300), ((1400, 1030), 1030)])
def test_large_grids_have_the_singular_values_of_lapack(shape, rank) -> None:
    draw = np.random.default_rng(rank)
    decay = np.logspace(0, -11, rank)
    matrix = 1e200 * (draw.normal(size=(shape[0], rank)) * decay) @ draw.normal(size=(rank, shape[1]))
    found, values = singular_values_of(matrix.copy()), np.linalg.svd(matrix, compute_uv=False)
    assert found.values.shape == values.shape
    np.testing.assert_allclose(found.values, values, rtol=1e-9, atol=1e-14 * values[0])
    assert found.rank == (values > found.tolerance * values[0]).sum()


@pytest.mark.parametrize(("K", "T"), [(2, 6), (3, 4), (4, 8)])
def test_every_prefix_is_evaluated_once(K: int, T: int) -> None:
    network, field = rac(2, 2, 2), Prime(PRIMES[0])
    rows = []

    class Counting(RingWalk):
        def extend(self, state, batch, last=False):
            rows.append(batch * self.count)
            return super().extend(state, batch, last)

    templates = field.array(random_templates(K, 2, seed=0))
    grid = evaluate_grid(Counting(network, field, network.exact_weights(field), templates, 0), T)
    assert sum(rows) == sum(K**t for t in range(1, T + 1))
    pick = np.random.default_rng(0).integers(0, K**T, size=20)
    digits = np.array(np.unravel_index(pick, (K,) * T))
    direct, _ = network.evaluate(field, network.exact_weights(field), templates[digits])
    assert grid[pick].tolist() == direct[-1, :, 0].tolist()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_random_templates_are_nested_integers_no_two_parallel(size: int) -> None:
    many = random_templates(150, size, seed=3)
    assert len({tuple(row) for row in many.tolist()}) == 150
    assert (many == np.round(many)).all()
    assert (many != 0).all()
    assert (random_templates(3, size, seed=3) == many[:3]).all()
    if size > 1:
        cosines = many @ many.T / np.outer(*[np.linalg.norm(many, axis=1)] * 2)
        assert (np.abs(cosines - np.diag(np.diag(cosines))) < 1 - 1e-9).all()


def test_a_parallel_template_does_not_feign_saturation() -> None:
    """With every new template this network's rank grows, whatever the seed, up to four."""
    for seed in range(8):
        ranks = separation_saturation(rac(2, 2, 3), 4, (2, 3, 4, 5), seed=seed).ranks.tolist()
        assert ranks == [4, 6, 8, 8]


def test_primes_that_do_not_agree_are_outvoted() -> None:
    """A minor that vanishes modulo the first prime must not lower the rank."""
    network = rac(1, 1, 1)
    weights = {name: np.ones(tuple(value.shape), dtype=np.int64) for name, value in network.named_parameters()}
    weights["weight_out"] = np.full((2, 1), PRIMES[0], dtype=np.int64)
    found, primes = exact_rank(network, np.ones((1, 1)), 2, (0,), 0, ceiling=5, weights=weights)
    assert found == 1
    assert primes == PRIMES[:3]


def test_nothing_is_drawn_from_the_global_generator() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    separation_rank(rac(2, 2, 1), 4)
    assert torch.equal(torch.get_rng_state(), before)


def test_result_prints_draws_and_exports() -> None:
    found = separation_rank(rac(3, 2, 2), 6)
    assert str(found).startswith("separation rank 8 (exact, 27 x 27 grid, bounds 4 to 8)")
    assert found.shallow_width == 8
    assert found.facts()["shape"] == "27 x 27"
    assert found.plot().to_dict()
    assert found.to_dict()["rank"] == 8
    assert separation_saturation(rac(2, 2, 2), 4, (2, 3)).plot().to_dict()


NAN = rac(2, 2, 1)
with torch.no_grad():
    NAN.weight_hh_l0[0, 0] = float("nan")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: separation_rank(rac(2, 2, 1), 5), "horizon must be even, so that it has two halves"),
        (lambda: separation_rank(rac(2, 2, 1), 0), "horizon must be a positive integer"),
        (
            lambda: separation_rank(rac(2, 2, 1), 4, partition=(0, 0)),
            "partition must be a set of steps between 0 and 3",
        ),
        (lambda: separation_rank(rac(2, 2, 1), 4, partition=(0, 4)), "partition must be"),
        (lambda: separation_rank(rac(2, 2, 1), 4, partition=(-1,)), "partition must be"),
        (lambda: separation_rank(rac(2, 2, 1), 4, partition=()), "partition must be"),
        (lambda: separation_rank(rac(2, 2, 1), 4, partition=(0, 1, 2, 3)), "partition must be"),
        (lambda: separation_rank(rac(2, 2, 1), 4, partition=(0.5, 1)), "partition must be"),
        (lambda: separation_rank(rac(2, 2, 1), 4, partition="01"), "partition must be"),
        (lambda: separation_rank(rac(2, 2, 1), 4, partition=3), "partition must be"),
        (lambda: separation_rank(rac(2, 2, 1), 4, partition=((0, 1), (1, 2, 3))), "two sets that have each of the 4"),
        (lambda: separation_rank(rac(2, 2, 1), 4, partition=((0, 1), (2,))), "two sets"),
        (lambda: separation_rank(NAN, 4), "finite"),
        (lambda: separation_rank(rac(2, 2, 1), 4, templates=0), "templates must be a positive integer"),
        (lambda: separation_rank(rac(2, 2, 1), 4, templates=np.ones((2, 3))), "rows of length 2"),
        (lambda: separation_rank(rac(2, 2, 1), 4, templates=[[float("nan"), 0]]), "templates must be finite"),
        (lambda: separation_rank(rac(2, 2, 1), 4, unit=2), "unit must be an output between 0 and 1"),
        (lambda: separation_rank(torch.nn.LSTM(2, 2), 4, exact=True), "needs a polynomial network, got LSTM"),
        (lambda: separation_rank(ms.nn.create("2rnn", input_size=2, hidden_size=2), 4, exact=True), "SecondOrderRNN"),
        (lambda: separation_rank("rac", 4), "network must be a torch.nn.Module"),
        (lambda: separation_saturation(rac(2, 2, 1), 4, (3, 2)), "templates must be increasing"),
    ],
)
def test_bad_input_is_one_line(call, said) -> None:
    with pytest.raises(UserError, match=said) as error:
        call()
    assert "\n" not in str(error.value)


def test_a_pair_of_sets_is_a_partition_too() -> None:
    network = rac(2, 2, 2)
    assert separation_rank(network, 4, partition=((3, 0), (1, 2))).start == (0, 3)


def test_grids_beyond_the_memory_say_what_would_fit(monkeypatch) -> None:
    monkeypatch.setenv("MNEMOSCOPE_MEMORY", "0.01")
    with pytest.raises(
        UserError, match=r"grid of 4\^12 sequences needs 1.2 GB of memory, 10.2 MB are .*; horizon=8 would"
    ):
        separation_rank(rac(4, 4, 1), 12)
    with pytest.raises(UserError, match="fewer templates would fit"):
        separation_rank(rac(4, 4, 1), 2, templates=1000)


@pytest.mark.slow
def test_a_grid_of_4096_by_4096() -> None:
    found = separation_rank(rac(4, 4, 2), 12)
    assert found.rank == depth_two_rank(4, 4, 12) == 336


@pytest.mark.parametrize("name", ["gru", "rac"])
def test_the_mean_entropy_is_that_of_all_outputs(name):
    network = ms.nn.NetworkSpec(name, input_size=3, hidden_size=4, seed=0).build()
    each = [separation_rank(network, horizon=4, unit=unit).entropy for unit in range(network.output_size)]
    found = separation_rank(network, horizon=4, every=True)
    assert found.mean_entropy == pytest.approx(sum(each) / len(each), rel=1e-9)
    assert separation_rank(network, horizon=4).mean_entropy is None


def test_a_cell_that_casts_to_its_own_precision():
    class Single(torch.nn.RNNCell):
        def forward(self, x, h):
            return super().forward(x.float(), h.float())

    found = separation_rank(ms.adapt(Single(2, 3)), 4)
    assert found.rank > 1
    assert "one template" not in str(found)
    assert "one template, which tells nothing" in str(separation_rank(rac(1, 3, 1), 4))
