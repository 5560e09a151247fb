"""Gates of crafted transitions: cells of a stranger whose A(x) is written down, and what each rules out."""

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

import mnemoscope as ms

GROUPS = {"Z2", "Z3", "Z60", "S3", "A5", "S5"}


class Linear(nn.Module):
    """h = A(x) h + B x, with A made by a function of the cell and its input."""

    def __init__(self, transition, size):
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.transition = transition
        self.B, self.K = (nn.Parameter(torch.randn(size, 2, generator=generator)) for _ in range(2))
        self.w = nn.Parameter(torch.randn(2, generator=generator))

    def forward(self, x, h):
        h = (self.transition(self, x) @ h[..., None])[..., 0] + x @ self.B.T
        return h, h


def diagonal(values):
    return lambda cell, x: torch.diag_embed(values(x @ cell.K.T))


def turned(angle):
    def transition(cell, x):
        c, s = angle(x @ cell.w).cos(), angle(x @ cell.w).sin()
        return 0.9 * torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)

    return transition


def reflected(*strengths):
    """Return products of I - beta v v^T, as DeltaNet and DeltaProduct have them."""

    def transition(cell, x):
        found = torch.eye(3).to(x).expand(len(x), 3, 3)
        for k, beta in enumerate(strengths):
            v = normalize(x.roll(k, -1) @ cell.K.T + k, dim=-1)
            found = found @ (torch.eye(3).to(x) - beta * v[:, :, None] * v[:, None, :])
        return found

    return transition


@pytest.mark.parametrize(
    ("transition", "size", "excluded", "theorem", "facts"),
    [
        (diagonal(torch.sigmoid), 3, GROUPS, "positive-eigenvalues", {"input_dependent": True, "negative": False}),
        (diagonal(torch.tanh), 3, GROUPS - {"Z2"}, "real-eigenvalues", {"negative": True, "complex_pairs": False}),
        (diagonal(lambda z: 1.2 * torch.sigmoid(5 + z)), 3, GROUPS, "positive-eigenvalues", {"above_one": True}),
        (diagonal(lambda z: 0 * z - 0.9), 3, GROUPS, "fixed-transitions", {"input_dependent": False, "negative": True}),
        (turned(lambda z: 0 * z + 0.7), 2, GROUPS, "fixed-transitions", {"complex_pairs": True}),
        (turned(lambda z: z), 2, {"S3", "A5", "S5"}, "commuting-layer", {"complex_pairs": True, "above_one": False}),
        (reflected(1.0), 3, GROUPS, "positive-eigenvalues", {"structure": "not diagonal in one basis"}),
        (reflected(2.0), 3, GROUPS - {"Z2"}, "one-real-layer", {"negative": True, "complex_pairs": False}),
        (reflected(2.0, 2.0), 3, set(), None, {"complex_pairs": True}),
    ],
)
def test_what_a_transition_rules_out(transition, size, excluded, theorem, facts):
    def start(batch, **factory):
        return torch.zeros(batch, size, **factory)

    cell = ms.adapt(Linear(transition, size), kind="cell", input_size=2, init_state=start)
    found = ms.measures.tracking_gate(cell)
    assert found.linear
    assert {each.group for each in found.excluded} == excluded
    assert {each.theorem for each in found.excluded} == ({f"tracking-{theorem}"} if theorem else set())
    assert {name: getattr(found, name) for name in facts} == facts
