"""State-space layers: HiPPO-LegS, the convolution against the recurrence, and published parameter counts."""

import math

import pytest
import torch

import mnemoscope as ms
from mnemoscope.nn.maps.hippo import legs, legs_matrix


@pytest.mark.parametrize("order", [2, 8, 64])
def test_hippo_legs_is_diagonal_plus_low_rank(order):
    """The kept halves and their conjugates give back the spectrum and the response of the matrix itself."""
    a, b, _ = legs_matrix(order)
    rates, p, inputs = (torch.cat([part, part.conj()]) for part in legs(order))
    dense = torch.diag(rates) - torch.outer(p, p.conj())
    for s in (0.3, 2.0 + 5.0j):  # the transfer function to the state's energy is free of coordinates
        eye = torch.eye(order, dtype=torch.complex128)
        wanted = torch.linalg.solve(s * eye - a, b.to(torch.complex128))
        found = torch.linalg.solve(s * eye - dense, inputs)
        torch.testing.assert_close(found.abs().square().sum(), wanted.abs().square().sum())
    torch.testing.assert_close(torch.trace(dense).real, torch.trace(a))
    assert (dense.diag().real < 0).all()


def test_legs_remembers_by_legendre_polynomials():
    """dx/dt = A x / t + B u / t holds the coefficients of u on [0, t]: x(t) of u = 1 is the first unit vector."""
    a, b, _ = legs_matrix(6)
    unit = torch.zeros(6, dtype=torch.float64)
    unit[0] = 1
    torch.testing.assert_close(a @ unit + b, torch.zeros(6, dtype=torch.float64))


@pytest.mark.parametrize("name", ["s4", "s4d"])
def test_convolution_is_the_recurrence_at_4096_steps(name):
    generator = torch.Generator().manual_seed(0)
    layer = ms.nn.create(name, input_size=2, hidden_size=2, generator=generator)
    x = torch.randn(4096, 1, 2, generator=generator)
    start = (torch.randn(1, 2, 32, generator=generator, dtype=torch.complex64),)
    with torch.no_grad():
        (outputs, (last,)), layer.mode = layer(x, start), "recurrent"
        wanted, (wanted_last,) = layer(x, start)
    for found, exact in ((outputs, wanted), (last, wanted_last)):
        assert (found - exact).abs().max() < 1e-5 * exact.abs().max()


BUDGETS = {
    "listops": (4, False, 808e3, (446, 364, 256, 221)),
    "image": (64, False, 3.6e6, (922, 745, 512, 440)),
    "pathfinder": (64, True, 1.3e6, (484, 385, 256, 220)),
}


@pytest.mark.parametrize("depth", [2, 3, 6, 8])
@pytest.mark.parametrize("task", BUDGETS)
def test_backbones_have_the_published_number_of_parameters(task, depth):
    """Depth, Table 2: two groups, one where the width is odd, share A, B and P; in Pathfinder all have their own."""
    order, own, budget, widths = BUDGETS[task]
    width = widths[(2, 3, 6, 8).index(depth)]
    options = {"order": order, "groups": width if own else None, "block": True, "bidirectional": True}
    layer = ms.nn.create("s4", input_size=width, hidden_size=width, num_layers=depth, device="meta", **options)
    assert sum(p.numel() for p in layer.parameters()) == pytest.approx(budget, rel=0.04)


@pytest.mark.parametrize(
    ("init", "wanted"),
    [
        ("lin", [-0.5, -0.5 + 1j * math.pi]),
        ("inv", [-0.5 + 12j / math.pi, -0.5 + 4j / math.pi * (4 / 3 - 1)]),
        ("real", [-1, -2]),
        ("legs", legs(4)[0].tolist()),
    ],
)
def test_initialisations_of_s4d(init, wanted):
    w = ms.nn.create("s4d", input_size=3, hidden_size=3, order=4, init=init, dtype=torch.float64).weights()[0]
    found = torch.complex(-torch.exp(w["log_decay"]), w["frequency"])
    torch.testing.assert_close(found, torch.tensor(wanted, dtype=torch.complex128).expand(3, 2))


def test_both_directions_share_the_matrices_of_s4():
    layer = ms.nn.create("s4", input_size=2, hidden_size=2, order=4, bidirectional=True)
    forward, backward = layer.weights()
    assert forward["low_rank"] is backward["low_rank"]
    assert forward["weight_readout"] is not backward["weight_readout"]


def test_the_ring_of_the_lru():
    layer = ms.nn.create("lru", input_size=1, hidden_size=500, radii=(0.5, 0.8), phase=1.0)
    found = layer.eigenvalues(layer.weights()[0]).detach()
    assert 0.5 <= found.abs().min() < 0.51
    assert 0.79 < found.abs().max() <= 0.8
    assert found.angle().min() >= 0
    assert 0.95 < found.angle().max() <= 1
    torch.testing.assert_close(torch.exp(layer.gamma_l0.detach()) ** 2, 1 - found.abs() ** 2)
