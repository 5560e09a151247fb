"""Ranks of tensor trains against the full tensor, in fractions and in float64."""

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
from mnemoscope.measures.tensor_train.cores import checked_cores, exact_tt_ranks, rank_ceiling, tt_ranks
from mnemoscope.measures.tensor_train.cp import cp_als, cp_rank
from mnemoscope.measures.tensor_train.odd_even import best_partition, odd_even_rank
from mnemoscope.theory import attaining_cores, generic_odd_even_rank


def full(cores):
    """The whole tensor in Python's own numbers."""
    found = np.array(checked_cores(cores)[0], dtype=object)[0]
    for core in checked_cores(cores)[1:]:
        found = np.tensordot(found, core.astype(object), axes=1)
    return found[..., 0]


def fraction_rank(tensor, rows):
    columns = [k for k in range(tensor.ndim) if k not in rows]
    matrix = tensor.transpose([*rows, *columns]).reshape(int(np.prod([tensor.shape[k] for k in rows])), -1)
    return sympy.Matrix([[sympy.Rational(Fraction(v)) for v in line] for line in matrix.tolist()]).rank()


def integer_cores(modes, bonds, seed, low=-2, high=3):
    rng = np.random.default_rng(seed)
    sizes = [1, *bonds, 1]
    cores = [rng.integers(low, high, (sizes[k], n, sizes[k + 1])) for k, n in enumerate(modes)]
    return [cores[0][0], *cores[1:-1], cores[-1][:, :, 0]]


def normal_cores(n, r, d, equal=False, seed=0):
    rng = np.random.default_rng(seed)
    inner = [rng.standard_normal((r, n, r)) for _ in range(1 if equal else d - 2)]
    return [rng.standard_normal((n, r)), *(inner * (d - 2) if equal else inner), rng.standard_normal((r, n))]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_cores_and_any_partition_agree_with_the_full_tensor_in_fractions(data):
    d = data.draw(st.integers(2, 5))
    modes = data.draw(st.lists(st.integers(1, 3), min_size=d, max_size=d))
    bonds = data.draw(st.lists(st.integers(1, 3), min_size=d - 1, max_size=d - 1))
    cores = integer_cores(modes, bonds, data.draw(st.integers(0, 999)), low=-1, high=2)  # many zeros: low ranks
    rows = sorted(data.draw(st.sets(st.integers(0, d - 1), min_size=1, max_size=d - 1)))
    tensor = full(cores)
    found = odd_even_rank(cores, partition=tuple(rows))
    assert found.rank == fraction_rank(tensor, rows) <= found.upper
    assert odd_even_rank(cores).rank == fraction_rank(tensor, list(range(0, d, 2)))
    assert found.tt_ranks.tolist() == [fraction_rank(tensor, list(range(k))) for k in range(1, d)]


@pytest.mark.parametrize(("n", "r", "d"), [(2, 2, 8), (3, 2, 6), (5, 2, 6), (3, 4, 6), (1, 3, 4), (4, 1, 6)])
@pytest.mark.parametrize("equal", [False, True])
def test_floats_have_the_generic_rank(n, r, d, equal):
    found = odd_even_rank(normal_cores(n, r, d, equal))
    assert found.rank == found.generic == generic_odd_even_rank(n, r, d)
    assert found.rank == found.upper == found.shallow_width
    assert len(found.primes) == 1


def test_floats_are_the_rational_numbers_that_they_are():
    """0.1 + 0.2 - 0.3 is not zero in float64, and the rank knows it."""
    first = np.eye(2)
    last = np.array([[1.0, 0.0], [0.0, 0.1 + 0.2 - 0.3]])
    assert odd_even_rank([first, last]).rank == 2
    assert (
        odd_even_rank([first, np.array([[1, 0], [0, Fraction(1, 10) + Fraction(2, 10) - Fraction(3, 10)]])]).rank == 1
    )


def test_tiny_entries_count_where_float64_sees_nothing():
    cores = [np.eye(2), np.diag([1.0, 1e-200])]
    assert odd_even_rank(cores).rank == 2
    assert tt_ranks(cores) == (1,)


def test_a_long_construction_is_split_at_bonds_of_one():
    found = odd_even_rank(attaining_cores(features=3, rank=5, length=100))
    assert found.rank == 3**50
    assert found.tt_ranks.tolist() == [3, 1] * 49 + [3]


def test_wide_modes_are_reduced_before_elimination():
    found = odd_even_rank(normal_cores(n=200, r=2, d=6))
    assert found.rank == 2 * 4 * 4
    assert found.shape == (200**3, 200**3)


def test_halves_give_the_tt_rank():
    cores = normal_cores(n=3, r=4, d=10)
    assert odd_even_rank(cores, partition=range(5)).rank == 4


def test_the_zero_tensor_has_rank_zero():
    cores = [np.zeros((2, 2)), np.ones((2, 2, 2)), np.ones((2, 2))]
    found = odd_even_rank(cores)
    assert (found.rank, found.tt_ranks.tolist()) == (0, [0, 0])
    assert tt_ranks(cores) == (0, 0)


@pytest.mark.parametrize("cores", ["different", "equal"])
def test_a_network_gives_the_rank_of_the_tensor_of_its_class(cores):
    network = ms.nn.TT(3, 2, 4, 5, cores=cores, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        network.last[:, :, 3] = 0
    assert odd_even_rank(network, label=1).rank == 2 * 3
    assert odd_even_rank(network.tensor_cores(1)).rank == 2 * 3
    assert odd_even_rank(network, label=3).rank == 0


def test_lists_tensors_and_parameters_are_taken_alike():
    cores = normal_cores(n=2, r=2, d=4)
    parameters = torch.nn.ParameterList([torch.from_numpy(core) for core in cores])
    ends_with_three_axes = [cores[0][None], *cores[1:-1], cores[-1][:, :, None]]
    for same in (
        [core.tolist() for core in cores],
        tuple(map(torch.from_numpy, cores)),
        parameters,
        ends_with_three_axes,
    ):
        assert odd_even_rank(same).rank == 4


def test_a_shallow_rac_has_the_odd_even_rank_of_its_tensor_train():
    """Weights are whole numbers: the products that rounding moves would have the generic rank 6 of any cores."""
    rac = ms.nn.RAC(3, 2, output_size=1, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for weight in rac.parameters():
            weight.copy_((100 * weight).round())
    separation = ms.measures.separation_rank(rac, 4, partition=(0, 2))
    assert odd_even_rank(rac.to_tt(4)).rank == separation.rank == 4


@pytest.mark.parametrize("seed", range(3))
def test_the_best_partition_is_the_best_of_all(seed):
    cores = integer_cores([2, 3, 1, 2, 2], [2, 3, 2, 2], seed, low=-1, high=2)
    ranks = [
        odd_even_rank(cores, partition=(0, *rest)).rank
        for size in range(4)
        for rest in itertools.combinations(range(1, 5), size)
    ]
    assert odd_even_rank(cores, best=True).rank == max(ranks)


def test_the_best_partition_can_beat_the_odd_even_one():
    """Pairs (1, 3) and (2, 4) are tied: odd by even has rank 1, first by last half 4."""
    n = 2
    identity = np.eye(n * n).reshape(n, n, n, n)  # X[i, j, k, l] = [i=k][j=l]
    cores = [np.eye(n), np.eye(n * n).reshape(n, n, n * n), identity.reshape(n * n, n, n), np.eye(n)]
    assert odd_even_rank(cores).rank == 1
    assert odd_even_rank(cores, best=True).rank == 4
    assert best_partition(checked_cores(cores)) in ((0, 1), (0, 3))


@pytest.mark.parametrize("seed", range(3))
def test_tt_svd_finds_the_exact_ranks_of_well_scaled_cores(seed):
    cores = normal_cores(n=3, r=4, d=6, seed=seed)
    assert tt_ranks(cores) == exact_tt_ranks(checked_cores(cores)) == (3, 4, 4, 4, 3)


def test_tt_svd_truncates_what_the_tolerance_allows():
    """Singular values 1, 1e-2, 1e-5: what is cut has the norm of the tail."""
    cores = [np.eye(3), np.diag([1.0, 1e-2, 1e-5])]
    assert [tt_ranks(cores, tolerance=eps) for eps in (1e-8, 1e-3, 0.1)] == [(3,), (2,), (1,)]


def test_ceilings_hold_for_every_partition():
    cores = checked_cores(normal_cores(n=2, r=2, d=6))
    for size in range(5):
        for rest in itertools.combinations(range(1, 6), size):
            assert odd_even_rank([cores[0][0], *cores[1:-1], cores[-1][..., 0]], partition=(0, *rest)).rank <= (
                rank_ceiling(cores, (0, *rest))
            )


def test_als_fits_a_sum_of_products():
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((n, 3)) for n in (3, 4, 5)]
    tensor = np.einsum("ia,ja,ka->ijk", *factors)
    found, error = cp_als(tensor, 3, 500, 1e-9, np.random.default_rng(1))
    assert error <= 1e-9
    assert np.allclose(np.einsum("ia,ja,ka->ijk", *found), tensor, atol=1e-7)


def test_the_cp_interval_of_the_construction_is_closed():
    found = cp_rank(attaining_cores(features=2, rank=3, length=4), seed=1)
    assert (found.lower, found.fitted) == (4, 4)
    assert found.lower <= found.fitted <= found.upper


def test_cores_wider_than_their_ranks_do_not_loosen_the_interval():
    """A product of vectors, written with bonds of width 3, has CP-rank 1."""
    first, one, other = np.random.default_rng(0).integers(1, 9, (3, 4)).astype(float)
    inner = [np.einsum("a,n,b->anb", [1, 0, 0], v, [1, 2, 3]) for v in (one, other)]
    found = cp_rank([np.outer(first, [1, 2, 3]), *inner, np.outer([1, 0, 0], [1.0, 2.0])])
    assert (found.lower, found.fitted, found.upper) == (1, 1, 1)


def test_the_cp_interval_of_a_known_tensor():
    """A diagonal tensor of order 3 and size 3 has CP-rank 3."""
    core = np.zeros((3, 3, 3))
    core[range(3), range(3), range(3)] = 1
    found = cp_rank([np.eye(3), core, np.eye(3)])
    assert (found.lower, found.fitted) == (3, 3)
    assert "CP-rank between 3" in str(found)


def test_results_speak_draw_and_export():
    found = odd_even_rank(normal_cores(2, 2, 4))
    assert str(found).startswith("odd-even rank 4 (exact, theorem: at least 1, generic 4")
    assert found.to_dict()["rank"] == 4
    assert found.plot().to_dict()
    assert cp_rank(normal_cores(2, 2, 3)).plot().to_dict()


@pytest.mark.parametrize(
    ("cores", "message"),
    [
        ([np.ones((2, 3)), np.ones((2, 2))], "cores must chain: core 1 ends in rank 3, core 2 has 2"),
        ([np.ones((2, 2))], "cores must be a list of at least two TT-cores, got a list of 1"),
        ([np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2))], r"core 2 must be of shape \(r, n, r\)"),
        ([np.full((2, 2), np.nan), np.ones((2, 2))], "core 1: values must be finite"),
        ([np.ones((0, 2)), np.ones((2, 2))], "core 1 must be of shape"),
        ([np.ones((2, 2)), np.ones((2, 2, 3))], r"core 2 must be of shape \(r, n\)"),
        (3, "cores must be a list of at least two TT-cores, got a int"),
        (torch.nn.Linear(2, 2), "cores must be a list of TT-cores or a TT network"),
    ],
)
def test_bad_cores_are_named(cores, message):
    with pytest.raises(UserError, match=message):
        odd_even_rank(cores)


@pytest.mark.parametrize("partition", [(), (0, 1), (0, 0), (2,), (-1,), (0.5,), "ab", 1])
def test_what_is_no_partition_is_refused(partition):
    with pytest.raises(UserError, match="partition must be positions from 0 to 1"):
        odd_even_rank([np.ones((2, 2)), np.ones((2, 2))], partition=partition)


def test_a_matrix_beyond_the_memory_is_refused(monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_MEMORY", "0.001")
    with pytest.raises(UserError, match="needs .* of memory"):
        odd_even_rank(normal_cores(4, 4, 8))


def test_too_many_positions_for_a_search_are_refused():
    with pytest.raises(UserError, match="cores must be at most 12"):
        odd_even_rank(attaining_cores(2, 2, 14), best=True)
