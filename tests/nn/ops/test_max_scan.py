"""The running maximum under decays against its naive twin."""

import pytest
import torch
from tests.nn.ops.twins import assert_safe_in_float32, assert_twins, assert_vmap_is_a_loop, ragged

from mnemoscope.nn.ops.max_scan import max_scan, naive_max_scan


def problem(steps, *, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    i, g, m = (torch.randn(*shape, 3, generator=generator, dtype=dtype) for shape in ((steps, 2), (steps, 2), (2,)))
    return 4 * i, -g.sigmoid(), m


@pytest.mark.parametrize("steps", [1, 30, 64, 150])
def test_twins(steps):
    for lengths in (None, ragged(2, steps)):
        assert_twins(max_scan, naive_max_scan, problem(steps), lengths)


def test_vmap_and_float32_at_4096_steps():
    assert_vmap_is_a_loop(max_scan, [problem(70, seed=seed) for seed in range(2)])
    assert_safe_in_float32(max_scan, problem(4096, dtype=torch.float32), 1e-5)
