"""Hankel singular values: against control's Gramians, dense operators and closed forms."""

import control
import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures import balanced_truncation, hankel_singular_values


def system(n, d=2, o=3, radius=0.9, seed=0):
    random = np.random.default_rng(seed)
    W = random.standard_normal((n, n))
    W *= radius / np.abs(np.linalg.eigvals(W)).max()
    return W, random.standard_normal((n, d)), random.standard_normal((o, n))


def dense(W, U, C, past, future):
    """The block of the operator itself, entry by entry."""
    power = [np.linalg.matrix_power(W, k) for k in range(past + future)]
    return np.block([[C @ power[m + j + 1] @ U for j in range(past)] for m in range(future)])


@pytest.mark.parametrize("n", [1, 4, 9])
def test_values_of_the_dense_operator(n):
    W, U, C = system(n, radius=0.7, seed=n)
    found = hankel_singular_values(W, U, C)
    assert found.values == pytest.approx(np.linalg.svd(dense(W, U, C, 120, 120))[1][:n], rel=1e-9, abs=1e-12)
    assert found.digits >= 10


def test_values_from_zero_on_are_those_of_control():
    W, U, C = system(6)
    found = hankel_singular_values(W, U, C)
    P = control.dlyap(W, U @ U.T)
    Q = control.dlyap(W.T, C.T @ C)
    assert found.gramian_values == pytest.approx(np.sort(np.sqrt(np.linalg.eigvals(P @ Q).real))[::-1], rel=1e-8)


def test_closed_form_of_one_unit():
    for w in (0.3, -0.99, 0.999999):
        assert hankel_singular_values([[w]], [[2.0]], [[3.0]]).values[0] == pytest.approx(
            6 * abs(w) / (1 - w * w), rel=1e-9
        )


def test_a_delay_line_keeps_every_lag():
    W = np.diag(np.ones(4), -1)
    found = hankel_singular_values(W, np.eye(5)[:, :1], np.eye(5)[-1:])
    assert found.values == pytest.approx([1, 1, 1, 1, 0], abs=1e-12), "a lag of 4 has a Hankel matrix of rank 4"
    assert found.order(0.99) == 4


def test_small_values_keep_their_digits():
    """Gramians square the values: formed, they would lose what lies below 1e-8 of the largest."""
    W, U, C = np.diag([0.9, 0.5]), np.array([[1.0], [1e-6]]), np.array([[1.0, 1e-6]])
    assert hankel_singular_values(W, U, C).values[1] == pytest.approx(
        np.linalg.svd(dense(W, U, C, 400, 400))[1][1], rel=1e-3
    )


def test_values_of_a_network_are_those_of_its_matrices():
    network = ms.nn.LinearSystem(2, 5, output_size=3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        network.weight_hh_l0.mul_(0.5)
    parts = [getattr(network, f"weight_{part}_l0").detach().numpy() for part in ("hh", "ih", "out")]
    assert hankel_singular_values(network).values == pytest.approx(hankel_singular_values(*parts).values, rel=1e-9)


@pytest.mark.parametrize("order", [1, 3, 5])
def test_truncation_stays_below_its_error_bound(order):
    W, U, C = system(6, radius=0.95, seed=3)
    wide = ms.nn.LinearSystem.of(W, U, C, np.zeros(6))
    small = balanced_truncation(wide, order)
    Wr, Ur, Cr = (getattr(small, f"weight_{part}_l0").detach().numpy() for part in ("hh", "ih", "out"))
    circle = np.exp(1j * np.linspace(0, np.pi, 400))
    gaps = [
        np.linalg.norm(C @ np.linalg.solve(np.eye(6) - W / z, U) - Cr @ np.linalg.solve(np.eye(order) - Wr / z, Ur), 2)
        for z in circle
    ]
    bound = hankel_singular_values(wide).error_bound(order)
    assert max(gaps) <= bound * (1 + 1e-9)
    assert max(gaps) > bound / 50, "the bound is no empty one"


def test_truncation_to_the_full_order_is_the_same_function():
    W, U, C = system(5, seed=4)
    wide = ms.nn.LinearSystem.of(W, U, C, np.arange(5) / 5)
    x = torch.randn(40, 3, 2, dtype=torch.float64)
    assert torch.allclose(wide(x)[0], balanced_truncation(wide, 5)(x)[0], atol=1e-8)


@pytest.mark.parametrize("name", ["linear-rnn", "lru", "s4d", "s4"])
def test_networks_with_ways_past_their_state_keep_them(name):
    """The reduced network of full order is the network itself; a smaller one stays below the bound."""
    wide = ms.nn.create(
        name, input_size=2, hidden_size=3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    x = torch.randn(30, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = hankel_singular_values(wide)
    order = int((found.gramian_values > 1e-9 * found.gramian_values[0]).sum())
    assert torch.allclose(wide(x)[0], balanced_truncation(wide, order)(x)[0], atol=1e-6)
    small = balanced_truncation(wide, order - 1)
    impulse = torch.zeros(400, 2, 2, dtype=torch.float64)
    impulse[0] = torch.eye(2)
    gap = (wide(impulse)[0] - small(impulse)[0]) - (wide(0 * impulse)[0] - small(0 * impulse)[0])
    response = torch.fft.rfft(gap, dim=0).permute(0, 2, 1)
    bound = found.error_bound(order - 1)
    assert torch.linalg.matrix_norm(response, 2).max().item() <= bound * (1 + 1e-3)


class Late(torch.nn.Module):
    """A stranger's cell that puts out its old state, of which the new one keeps a half."""

    def forward(self, x, h):
        return h, torch.cat([0.5 * h[:, :1] + x, torch.zeros_like(x)], 1) + torch.cat([0 * x, x], 1)


def test_an_output_of_the_old_state_through_the_adapter():
    late = ms.adapt(Late(), kind="cell", input_size=1, init_state=lambda batch, **kw: torch.zeros(batch, 2, **kw))
    same = balanced_truncation(late, 3)
    x = torch.randn(20, 1, 1, dtype=torch.float64)
    wanted, h = [], torch.zeros(1, 2, dtype=torch.float64)
    for each in x:
        y, h = Late()(each, h)
        wanted.append(y)
    assert torch.allclose(same(x)[0], torch.stack(wanted), atol=1e-10)


def test_closed_forms_of_crafted_systems():
    """Gramians of diagonal systems are Cauchy matrices; a rotation, a nilpotent and a complex one by the operator."""
    a, b, c = np.array([0.9, 0.5, -0.3, 0.1]), np.array([1, 2, 0.5, 1.0]), np.array([1, -1, 2, 0.3])
    cauchy = 1 / (1 - np.outer(a, a))
    P, Q = np.outer(b, b) * cauchy, np.outer(c * a, c * a) * cauchy
    found = hankel_singular_values(np.diag(a), b, c)  # vectors are one input, one output
    assert found.values == pytest.approx(np.sort(np.sqrt(np.linalg.eigvals(P @ Q).real))[::-1], rel=1e-9)
    assert found.radius == pytest.approx(0.9)
    random = np.random.default_rng(0)
    turn = 0.95 * np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    spin = np.diag([0.8 * np.exp(0.5j), 0.6j]) + np.array([[0, 1], [0, 0]])
    for W, d, o in ((turn, 1, 1), (3 * np.triu(random.standard_normal((6, 6)), 1), 2, 3), (spin, 1, 2)):
        U, C = random.standard_normal((len(W), d)), random.standard_normal((o, len(W)))
        U, C = (U + 1j * U[::-1], C + 2j) if np.iscomplexobj(W) else (U, C)
        wanted = np.linalg.svd(dense(W, U, C, 300, 300))[1][: len(W)]
        assert hankel_singular_values(W, U, C).values == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_a_delay_line_read_at_every_place():
    """The pulse is seen n - 1, n - 2, .. more times: values are roots of whole numbers."""
    found = hankel_singular_values(np.diag(np.ones(4), -1), np.eye(5)[:, :1], np.eye(5))
    assert found.values == pytest.approx(np.sqrt([4, 3, 2, 1, 0]), abs=1e-12)


def test_the_radius_of_a_matrix_that_is_far_from_normal():
    """Norms of powers would say 0.95 and 1.016."""
    block = np.diag(np.ones(5), 1)
    assert hankel_singular_values(0.9 * np.eye(6) + block).radius == pytest.approx(0.9, abs=2e-3)
    with pytest.raises(UserError, match=r"got one of about 1\.0[01]"):
        hankel_singular_values(1.01 * np.eye(6) + block)
    with pytest.raises(UserError, match=r"powers of W below 1e100, got larger ones \(its spectral radius is 0\.5\)"):
        hankel_singular_values([[0.5, 1e101], [0, 0.5]])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: hankel_singular_values(1.5 * np.eye(2)), "with a spectral radius below 1, got one of about 1.5"),
        (lambda: hankel_singular_values(np.eye(2)), "with a spectral radius below 1, got one of about 1"),
        (lambda: hankel_singular_values(np.eye(2) / 2, np.ones((3, 1))), "U must be a matrix of 2 rows, as W has"),
        (lambda: hankel_singular_values(ms.nn.RNN(1, 3)), "needs a network that is linear in its state and inputs"),
        (lambda: balanced_truncation(ms.nn.LinearSystem.of(*system(3), np.zeros(3)), 9), "order must be at most 3"),
        (lambda: balanced_truncation(ms.nn.RNN(1, 3), 2), "balanced_truncation needs a network that is linear"),
        (
            lambda: balanced_truncation(ms.nn.LinearSystem.of(1.2 * np.eye(1), [[1.0]], [[1.0]], [0.0]), 1),
            "balanced_truncation needs a network that forgets, with a spectral radius below 1, got one of about 1.2",
        ),
        (
            lambda: balanced_truncation(ms.nn.LinearSystem.of(*system(3)[:2], np.zeros((1, 3)), np.zeros(3)), 1),
            "needs outputs that depend on inputs",
        ),
        (lambda: ms.nn.LinearSystem.of([[0.5j]], [[1]], [[1]]), "W must be an array of real numbers"),
        (lambda: ms.nn.LinearSystem.of([[0.5]], [[1], [2]], [[1]]), "U must be a matrix of 1 rows, as W has"),
        (lambda: ms.nn.LinearSystem.of([[0.5]], [[1]], [[1, 2]]), "C must be a matrix of 1 columns, as W has"),
    ],
)
def test_one_line_for_what_cannot_be_measured(call, said):
    with pytest.raises(UserError, match=said):
        call()


def test_no_output_that_depends_on_the_past():
    found = hankel_singular_values(np.eye(2) / 2, np.ones((2, 1)), np.zeros((1, 2)))
    assert found.values == pytest.approx([0, 0])
    assert "all Hankel singular values are 0" in str(found)
