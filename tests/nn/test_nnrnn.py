"""The non-normal network: V = P (Lambda + T) P^T, its three kinds of blocks, its spectrum, inverse and penalties.

Sources: Kerg 3.5 and A.1, ERRATA (nnRNN), DETAILS (Networks).
"""

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemoscope as ms
from mnemoscope.core.errors import UserError

BLOCKS = ["rotation", "balanced", "published"]
quick = settings(max_examples=30, deadline=None)


def make(n, seed=0, dtype=torch.float64, **options):
    generator = torch.Generator().manual_seed(seed)
    return ms.nn.create("nnrnn", input_size=2, hidden_size=n, dtype=dtype, generator=generator, **options)


def parameters(layer, name="weight_hh_l0"):
    return list(layer.parametrizations[name].parameters(recurse=False))


def named(layer, name="weight_hh_l0"):
    """The parameters by their names, without the constants that stand in for those that a form does not have."""
    own = parameters(layer, name)
    return {key: p for key, p in layer.transition(name).named(own).items() if any(p is q for q in own)}


def assign(layer, **values):
    """Set parameters by their names: skew, theta, lower, gamma, log_ratio."""
    with torch.no_grad():
        for key, value in values.items():
            named(layer)[key].copy_(torch.as_tensor(value, dtype=torch.float64))


def scatter(layer, seed, scale=0.5):
    """Random P, theta, T ~ N(0, scale^2), gamma around 1 with some negative ones, r around 1."""
    rng = np.random.default_rng(seed)
    for key, value in named(layer).items():
        draw = rng.normal(size=tuple(value.shape)) * scale
        if key == "gamma":
            draw = (1 + 0.3 * draw) * rng.choice([1, 1, -1], size=tuple(value.shape))
        if key == "skew":
            draw = draw * 2
        assign(layer, **{key: draw})


def V_of(layer):
    return layer.weight_hh_l0.detach().numpy().copy()


def in_block(i, j):
    return i // 2 == j // 2


def by_hand(layer, block):
    """V from the printed formula, entry by entry."""
    n = layer.hidden_size
    values = {key: value.detach().numpy() for key, value in named(layer).items()}
    S = np.zeros((n, n))
    S[np.triu_indices(n, 1)] = values["skew"]
    P = scipy.linalg.expm(S - S.T)
    gamma = values.get("gamma", np.ones((n + 1) // 2))
    form = np.zeros((n, n))
    for b in range(n // 2):
        c, s = np.cos(values["theta"][b]), np.sin(values["theta"][b])
        r = np.exp(values["log_ratio"][b]) if block == "balanced" else 1.0
        form[2 * b : 2 * b + 2, 2 * b : 2 * b + 2] = gamma[b] * np.array([[c, -r * s], [s / r, c]])
    if n % 2:
        form[-1, -1] = gamma[-1]
    lower = iter(values["lower"])
    for i in range(n):
        for j in range(i):
            if block == "published" or not in_block(i, j):
                form[i, j] += next(lower)
    assert next(lower, None) is None
    return P @ form @ P.T


def moduli(V):
    return np.sort(abs(np.linalg.eigvals(V)))


def expected_moduli(layer):
    n = layer.hidden_size
    gamma = abs(named(layer)["gamma"].detach().numpy())
    return np.sort(np.repeat(gamma, 2)[:n] if n % 2 == 0 else np.append(np.repeat(gamma[:-1], 2), gamma[-1]))


# The formula ---------------------------------------------------------------------------------------------------------


@quick
@given(n=st.integers(1, 9), seed=st.integers(0, 10_000), block=st.sampled_from(BLOCKS))
def test_matrix_is_the_printed_formula(n, seed, block):
    layer = make(n, block=block)
    scatter(layer, seed)
    np.testing.assert_allclose(V_of(layer), by_hand(layer, block), rtol=0, atol=1e-12)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_clamped_matrix_is_the_printed_formula_with_gamma_one(n, block):
    layer = make(n, block=block, gamma="clamped")
    assert "gamma" not in named(layer)
    scatter(layer, 3)
    np.testing.assert_allclose(V_of(layer), by_hand(layer, block), rtol=0, atol=1e-12)


@pytest.mark.parametrize("block", ["rotation", "balanced"])
def test_gamma_is_clamped_where_it_is_asked_for(block):
    layer = make(6, block=block, gamma="clamped", gamma_value=0.958)
    scatter(layer, 3)
    np.testing.assert_allclose(abs(np.linalg.eigvals(V_of(layer))), 0.958, rtol=1e-6)
    with pytest.raises(UserError, match="gamma_value must be 1 where gamma is not 'clamped', got 0.9"):
        make(6, block=block, gamma_value=0.9)


def test_rotation_is_the_default_block():
    assert "log_ratio" not in named(make(6))
    assert len(named(make(6))["lower"]) == 15 - 3


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_sizes_of_the_parameters(n):
    """Odd n: the last block is 1 x 1, the number gamma."""
    pairs, inside = n * (n - 1) // 2, n // 2
    for block in BLOCKS:
        shapes = {key: tuple(value.shape) for key, value in named(make(n, block=block)).items()}
        expected = {"skew": (pairs,), "theta": (n // 2,), "gamma": ((n + 1) // 2,)}
        expected["lower"] = (pairs if block == "published" else pairs - inside,)
        if block == "balanced":
            expected["log_ratio"] = (n // 2,)
        assert shapes == expected


def test_one_unit_is_the_number_gamma():
    layer = make(1)
    assign(layer, gamma=[-0.7])
    np.testing.assert_allclose(V_of(layer), [[-0.7]], rtol=0, atol=1e-15)


# The start -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["henaff", "cayley", "random", "identity"])
@pytest.mark.parametrize("gamma", ["regularised", "free", "clamped"])
@pytest.mark.parametrize("block", BLOCKS)
def test_start_is_orthogonal(block, gamma, init):
    """DETAILS: gamma = 1, T = 0 (and r = 1) at the start, so V is orthogonal."""
    for n in (1, 2, 7, 16):
        layer = make(n, block=block, gamma=gamma, init=init)
        V = V_of(layer)
        assert abs(V.T @ V - np.eye(n)).max() < 1e-13
        values = named(layer)
        assert not values["lower"].any()
        assert gamma == "clamped" or (values["gamma"] == 1).all()
        assert block != "balanced" or not values["log_ratio"].any()


@quick
@given(n=st.integers(1, 10), seed=st.integers(0, 10_000), block=st.sampled_from(BLOCKS))
def test_without_t_and_with_gamma_one_the_matrix_is_orthogonal(n, seed, block):
    layer = make(n, block=block)
    scatter(layer, seed, scale=2.0)
    assign(layer, lower=np.zeros(named(layer)["lower"].shape), gamma=np.ones((n + 1) // 2))
    if block == "balanced":
        assign(layer, log_ratio=np.zeros(n // 2))
    V = V_of(layer)
    assert abs(V.T @ V - np.eye(n)).max() < 1e-12


def test_theta_starts_uniform():
    """U(0, 2 pi): 500 angles, Kolmogorov-Smirnov, fixed seed."""
    theta = named(make(1000, dtype=torch.float32, init="identity"))["theta"].detach().numpy()
    assert theta.min() >= 0
    assert theta.max() <= 2 * np.pi
    assert scipy.stats.kstest(theta, "uniform", args=(0, 2 * np.pi)).pvalue > 1e-3


def test_p_starts_as_in_exprnn():
    """Henaff and Cayley start of the skew matrix of P: 2 x 2 blocks s, U(-pi, pi) or -tan(t/2)."""
    for init, low, high in [("henaff", -np.pi, np.pi), ("cayley", -1.0, 0.0)]:
        skew = np.zeros((400, 400))
        skew[np.triu_indices(400, 1)] = named(make(400, 1, init=init))["skew"].detach().numpy()
        s = np.diag(skew, 1)[::2]
        assert np.count_nonzero(skew) == 200
        assert (s >= low).all()
        assert (s <= high).all()
        flat = s if init == "henaff" else -2 * np.arctan(s)
        assert (
            scipy.stats.kstest(flat, "uniform", args=(low, high - low) if init == "henaff" else (0, np.pi / 2)).pvalue
            > 1e-3
        )


# The spectrum --------------------------------------------------------------------------------------------------------


@quick
@given(n=st.integers(1, 6), seed=st.integers(0, 10_000), block=st.sampled_from(["rotation", "balanced"]))
def test_eigenvalue_moduli_are_gamma(n, seed, block):
    layer = make(n, block=block)
    scatter(layer, seed)
    np.testing.assert_allclose(moduli(V_of(layer)), expected_moduli(layer), rtol=0, atol=1e-8)


@pytest.mark.parametrize("block", ["rotation", "balanced"])
def test_eigenvalues_are_gamma_times_phases(block):
    """gamma_i e^(+- i theta_i), whatever T and r are."""
    layer = make(4, block=block)
    scatter(layer, 1)
    assign(layer, theta=[0.4, 2.0], gamma=[1.1, 0.8])
    expected = np.array([1.1 * np.exp(0.4j), 1.1 * np.exp(-0.4j), 0.8 * np.exp(2j), 0.8 * np.exp(-2j)])
    actual = np.linalg.eigvals(V_of(layer))
    assert max(abs(actual - e).min() for e in expected) < 1e-10


@pytest.mark.parametrize("block", ["rotation", "balanced"])
def test_t_makes_the_matrix_non_normal_and_leaves_the_spectrum(block):
    layer = make(6, block=block)
    before = np.sort_complex(np.linalg.eigvals(V_of(layer)))
    assign(layer, lower=np.full(12, 0.5))
    V = V_of(layer)
    np.testing.assert_allclose(np.sort_complex(np.linalg.eigvals(V)), before, rtol=0, atol=1e-8)
    assert np.linalg.norm(V @ V.T - V.T @ V) > 1
    assert np.linalg.norm(V, 2) > 1.5


def two_units(t, theta=0.7, **options):
    layer = make(2, block="published", **options)
    assign(layer, skew=[0.3], theta=[theta], lower=[t], gamma=[1.0])
    return np.sort_complex(np.linalg.eigvals(V_of(layer)))


def test_published_block_has_other_moduli_than_gamma():
    """ERRATA: theta = .7, t = .5 gives 1.15; t = -1.5 gives real 1.51 and .02."""
    np.testing.assert_allclose(abs(two_units(0.5)), 1.15, rtol=0, atol=0.005)
    np.testing.assert_allclose(abs(two_units(0.5)), np.sqrt(1 + 0.5 * np.sin(0.7)), rtol=0, atol=1e-12)
    pair = two_units(-1.5)
    np.testing.assert_allclose(pair.imag, 0.0, atol=0)
    np.testing.assert_allclose(pair.real, [0.02, 1.51], rtol=0, atol=0.005)


def test_published_block_has_other_moduli_for_random_t():
    deviations = []
    for seed in range(20):
        layer = make(6, block="published")
        scatter(layer, seed)
        deviations.append(abs(moduli(V_of(layer)) - expected_moduli(layer)).max())
    assert min(deviations) > 1e-3
    assert max(deviations) > 0.1


# The inverse ---------------------------------------------------------------------------------------------------------


def with_conjugate_pairs(n, seed):
    """S diag(B_1, ..) S^-1: random non-normal, eigenvalues in conjugate pairs and, for odd n, one real one."""
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(n // 2):
        a, b, stretch = rng.normal(), rng.uniform(0.2, 1.5), np.exp(rng.normal())
        blocks.append([[a, -b * stretch], [b / stretch, a]])
    if n % 2:
        blocks.append([[rng.normal()]])
    S = np.linalg.qr(rng.normal(size=(n, n)))[0] @ np.diag(np.exp(0.5 * rng.normal(size=n)))
    S = S @ np.linalg.qr(rng.normal(size=(n, n)))[0]
    return S @ scipy.linalg.block_diag(*blocks) @ np.linalg.inv(S)


def assert_round_trip(layer, V, atol=1e-9):
    V = torch.from_numpy(np.array(V, dtype=float))
    assert layer.transition().contains(V) is True
    layer.weight_hh_l0 = V
    assert abs(V_of(layer) - V.numpy()).max() <= atol * max(1.0, float(V.abs().max()))
    solved = layer.transition().right_inverse(V)
    assert [p.shape for p in solved] == [p.shape for p in parameters(layer)]
    np.testing.assert_allclose(
        layer.transition().forward(*solved).detach(), V, rtol=0, atol=atol * float(1 + V.abs().max())
    )


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 9), seed=st.integers(0, 10_000))
def test_balanced_reaches_every_matrix_with_conjugate_pairs(n, seed):
    V = with_conjugate_pairs(n, seed)
    layer = make(n, block="balanced")
    assert_round_trip(layer, V)
    np.testing.assert_allclose(np.sort(moduli(V)), expected_moduli(layer), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_balanced_reaches_gaussian_matrices_with_conjugate_pairs(n):
    rng = np.random.default_rng(n)
    found = 0
    while found < 20:
        V = rng.normal(size=(n, n))
        if (np.linalg.eigvals(V).imag != 0).sum() == n - n % 2:
            assert_round_trip(make(n, block="balanced"), V)
            found += 1


def test_balanced_reaches_a_large_matrix():
    assert_round_trip(make(64, block="balanced"), with_conjugate_pairs(64, 0))
    assert_round_trip(make(65, block="balanced"), with_conjugate_pairs(65, 1))


@pytest.mark.parametrize("block", ["balanced", "published"])
@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_own_matrices_are_reached(n, block):
    for seed in range(5):
        layer, other = make(n, block=block), make(n, seed=1, block=block)
        scatter(layer, seed)
        assert_round_trip(other, V_of(layer))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_own_matrices_of_one_rotation_are_reached(n):
    for seed in range(10):
        layer, other = make(n), make(n, seed=1)
        scatter(layer, seed)
        assert_round_trip(other, V_of(layer))


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_own_matrices_of_several_rotations_are_reached(n):
    """Here the order of the blocks matters: with T, they are rotations in (generically) one order of the Schur form."""
    for seed in range(5):
        layer, other = make(n), make(n, seed=1)
        scatter(layer, seed)
        assert_round_trip(other, V_of(layer))


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_published_form_reaches_every_real_matrix(n):
    """A 2 x 2 matrix turned to equal diagonal entries is gamma R(theta) with one entry more: no condition is left."""
    rng = np.random.default_rng(n)
    for _ in range(10):
        assert_round_trip(make(n, block="published"), rng.normal(size=(n, n)))
    assert_round_trip(make(n, block="published"), np.diag(np.arange(1.0, n + 1)))


WITNESS = np.array([[0.0, -4.0], [0.25, 0.0]])


def test_witness_of_errata_is_balanced_and_not_a_rotation():
    """[[0, -4], [.25, 0]] has moduli 1 and singular values 4 and .25."""
    np.testing.assert_allclose(moduli(WITNESS), 1.0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.svd(WITNESS, compute_uv=False), [4, 0.25], atol=1e-12)
    balanced = make(2, block="balanced")
    assert_round_trip(balanced, WITNESS, 1e-12)
    assert abs(named(balanced)["gamma"]).item() == pytest.approx(1.0)
    assert abs(named(balanced)["log_ratio"]).item() == pytest.approx(np.log(4))
    rotation = make(2)
    before = V_of(rotation)
    assert rotation.transition().contains(torch.from_numpy(WITNESS)) is False
    with pytest.raises(ValueError, match="block") as error:
        rotation.weight_hh_l0 = torch.from_numpy(WITNESS)
    assert "\n" not in str(error.value)
    np.testing.assert_array_equal(V_of(rotation), before)


def test_published_form_also_reaches_the_witness_with_another_gamma():
    """gamma = 4 and t = -3.75 (or their mirror image): the moduli 1 are not gamma."""
    layer = make(2, block="published")
    assert_round_trip(layer, WITNESS, 1e-12)
    assert abs(float(abs(named(layer)["gamma"])) - 1) > 0.5


@pytest.mark.parametrize("block", ["rotation", "balanced"])
@pytest.mark.parametrize(
    "V", [np.diag([1.0, 2.0]), np.diag([1.0, -1.0]), np.diag([3.0, 1.0, 2.0]), np.diag([1.0, 2, 3, 4])]
)
def test_distinct_real_eigenvalues_are_refused(V, block):
    layer = make(len(V), block=block)
    assert layer.transition().contains(torch.from_numpy(V)) is False
    with pytest.raises(ValueError, match="must") as error:
        layer.weight_hh_l0 = torch.from_numpy(V)
    assert "\n" not in str(error.value)


def rotations_of(n):
    """Orthogonal matrices that Kerg 3.5 says are covered (gamma = 1, T = 0), easy and hard."""
    rng = np.random.default_rng(n)
    found = []
    for _ in range(5):
        Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
        found += [Q, np.eye(n)[rng.permutation(n)], Q @ np.diag(rng.choice([-1.0, 1.0], size=n)) @ Q.T]
    found += [
        np.eye(n),
        -np.eye(n),
        np.eye(n)[::-1],
        np.roll(np.eye(n), 1, axis=0),
        np.diag([(-1.0) ** i for i in range(n)]),
    ]
    return [Q for Q in found if np.linalg.det(Q) > 0]


@pytest.mark.parametrize("block", ["rotation", "balanced"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9])
def test_every_rotation_is_reached_without_t(n, block):
    """Also where real eigenvalues +1 and -1 must first be brought into pairs."""
    layer = make(n, block=block)
    for Q in rotations_of(n):
        assert_round_trip(layer, Q, 1e-10)
        values = named(layer)
        assert (values["lower"].abs() < 1e-9).all()
        np.testing.assert_allclose(values["gamma"].detach().abs(), 1.0, rtol=0, atol=1e-9)


def test_reflection_of_odd_size_is_reached_with_a_negative_last_gamma():
    Q = np.diag([1.0, 1, -1])[:, [1, 2, 0]][[1, 2, 0]]
    assert_round_trip(make(3), Q)
    assert_round_trip(make(3), -np.eye(3))


@pytest.mark.parametrize(
    ("block", "n"), [("rotation", 2), ("rotation", 3), ("balanced", 4), ("balanced", 5), ("published", 2)]
)
def test_clamped_gamma_reaches_its_own_matrices(block, n):
    for seed in range(5):
        layer, other = make(n, block=block, gamma="clamped"), make(n, seed=1, block=block, gamma="clamped")
        scatter(other, seed)
        assert_round_trip(layer, V_of(other))


@pytest.mark.parametrize("block", ["rotation", "balanced"])
def test_clamped_gamma_refuses_other_moduli(block):
    layer = make(4, block=block, gamma="clamped")
    V = 2 * layer.weight_hh_l0.detach()
    assert layer.transition().contains(V) is False
    with pytest.raises(ValueError, match="must") as error:
        layer.weight_hh_l0 = V
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "bad", [np.full((4, 4), np.nan), np.eye(3), np.eye(5), np.ones((4, 3)), np.full((4, 4), np.inf), np.ones(4)]
)
@pytest.mark.parametrize("block", BLOCKS)
def test_bad_assignment_is_refused_in_one_line(block, bad):
    layer = make(4, block=block)
    before = V_of(layer)
    with pytest.raises(ValueError, match="must") as error:
        layer.weight_hh_l0 = torch.from_numpy(bad)
    assert "\n" not in str(error.value)
    np.testing.assert_array_equal(V_of(layer), before)


# Penalties, gamma, rates ---------------------------------------------------------------------------------------------


def penalty(layer):
    return float(layer.penalty().detach())


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("gamma", "counts"), [("regularised", 1.0), ("free", 0.0), ("clamped", 0.0)])
def test_penalty(block, gamma, counts):
    """delta sum (1 - gamma_i)^2 + decay sum T_ij^2; the first only when gamma is regularised."""
    layer = make(5, block=block, gamma=gamma, delta=0.3, decay=0.07)
    assert penalty(layer) == 0.0
    scatter(layer, 0)
    values = {key: value.detach().numpy() for key, value in named(layer).items()}
    expected = 0.07 * (values["lower"] ** 2).sum()
    if gamma != "clamped":
        expected += counts * 0.3 * ((1 - values["gamma"]) ** 2).sum()
    assert penalty(layer) == pytest.approx(expected, rel=1e-12)


def test_penalty_of_numbers():
    layer = make(4, delta=2.0, decay=10.0)
    assign(layer, gamma=[1.5, 0.9], lower=[0.1, 0.0, 0.0, -0.2])
    assert penalty(layer) == pytest.approx(2 * (0.25 + 0.01) + 10 * (0.01 + 0.04))


def test_penalty_adds_up_over_layers_and_directions_and_has_a_gradient():
    layer = make(4, num_layers=2, bidirectional=True, delta=2.0, decay=10.0)
    with torch.no_grad():
        for k in range(2):
            for suffix in ("", "_reverse"):
                values = named(layer, f"weight_hh_l{k}{suffix}")
                values["gamma"].fill_(1.5)
                values["lower"].fill_(0.1)
    assert penalty(layer) == pytest.approx(4 * (2 * 2 * 0.25 + 10 * 4 * 0.01))
    layer.penalty().backward()
    torch.testing.assert_close(named(layer)["gamma"].grad, torch.full((2,), 2 * 2 * 0.5, dtype=torch.float64))
    torch.testing.assert_close(named(layer)["lower"].grad, torch.full((4,), 2 * 10 * 0.1, dtype=torch.float64))


def test_clamped_gamma_does_not_move_in_training():
    layer = make(6, gamma="clamped")
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(20):
        optimiser.zero_grad()
        (layer.weight_hh_l0 * torch.arange(36.0, dtype=torch.float64).reshape(6, 6)).sum().backward()
        optimiser.step()
    np.testing.assert_allclose(moduli(V_of(layer)), 1.0, rtol=0, atol=1e-8)


def test_free_gamma_moves_in_training():
    layer = make(6, gamma="free")
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(20):
        optimiser.zero_grad()
        layer.weight_hh_l0.square().sum().backward()
        optimiser.step()
    assert (named(layer)["gamma"] < 0.9).all()


def rates(layer, *arguments, **keywords):
    """id of every parameter -> learning rate."""
    found = {}
    for group in layer.parameter_groups(*arguments, **keywords):
        for p in group["params"]:
            assert id(p) not in found, "a parameter in two groups"
            found[id(p)] = group["lr"]
    assert found.keys() == {id(p) for p in layer.parameters()}
    return found


@pytest.mark.parametrize("block", BLOCKS)
def test_only_p_has_the_orthogonal_rate(block):
    layer = make(6, block=block, num_layers=2)
    found = rates(layer, 1e-3, 1e-5)
    for k in range(2):
        for key, value in named(layer, f"weight_hh_l{k}").items():
            assert found[id(value)] == (1e-5 if key == "skew" else 1e-3), key
    assert found[id(layer.weight_ih_l0)] == 1e-3
    assert found[id(layer.bias_l1)] == 1e-3


def test_orthogonal_rate_is_a_tenth_by_default():
    layer = make(6)
    assert rates(layer, 1e-3)[id(named(layer)["skew"])] == pytest.approx(1e-4)


@pytest.mark.parametrize("name", ["exprnn", "scornn", "full-urnn", "scurnn", "goru"])
def test_orthogonal_networks_have_the_orthogonal_rate_too(name):
    layer = ms.nn.create(name, input_size=2, hidden_size=5)
    found = rates(layer, 1.0, 0.25)
    for p in parameters(layer)[:1]:
        assert found[id(p)] == 0.25
    assert found[id(layer.weight_ih_l0)] == 1.0


@pytest.mark.parametrize("name", ["rnn", "orth-rnn", "lstm", "gru", "h-detach-lstm"])
def test_free_networks_have_one_rate(name):
    assert set(rates(ms.nn.create(name, input_size=2, hidden_size=5), 1.0, 0.25).values()) == {1.0}
