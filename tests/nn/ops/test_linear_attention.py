"""Chunked linear attention and delta rules against their naive twins, and against what they must reduce to."""

import pytest
import torch
from tests.nn.ops.twins import assert_safe_in_float32, assert_twins, assert_vmap_is_a_loop, ragged

from mnemoscope.nn.ops.delta_rule import delta_rule, naive_delta_rule, naive_rank_one_update, rank_one_update
from mnemoscope.nn.ops.linear_attention import linear_attention, naive_linear_attention

OPERATIONS = {
    "decay per head": (linear_attention, naive_linear_attention),
    "decay per key": (linear_attention, naive_linear_attention),
    "constant decay": (linear_attention, naive_linear_attention),
    "delta rule": (delta_rule, naive_delta_rule),
    "rank one": (rank_one_update, naive_rank_one_update),
}


def problem(form, steps, batch=2, heads=2, keys=3, values=4, *, strongest=1.0, seed=0, dtype=torch.float64):
    """Return q, k, v, g, what the form has besides, and S_0; decays are at least exp(-strongest)."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    q, k, v = draw(steps, batch, heads, keys), draw(steps, batch, heads, keys), draw(steps, batch, heads, values)
    k = k / k.norm(dim=-1, keepdim=True)
    shape = {"constant decay": (heads, 1), "decay per key": q.shape, "rank one": q.shape}.get(form, (*q.shape[:-1], 1))
    log_decay, start = -strongest * draw(*shape).sigmoid(), draw(batch, heads, keys, values)
    rates = 2 * draw(steps, batch, heads, 1).sigmoid()
    more = {"delta rule": (rates,), "rank one": (-k, k * rates * log_decay.exp())}.get(form, ())
    return q, k, v, log_decay, *more, start


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("steps", [1, 7, 33, 100])
@pytest.mark.parametrize("form", OPERATIONS)
def test_twins(form, steps, unequal):
    assert_twins(*OPERATIONS[form], problem(form, steps), ragged(2, steps) if unequal else None)


@pytest.mark.parametrize("form", OPERATIONS)
def test_gates_that_close_do_not_overflow(form):
    """Decays down to exp(-60) at every step: over a chunk exp(-1900), whose inverse no type of numbers has."""
    fast, slow = OPERATIONS[form]
    assert_twins(fast, slow, problem(form, 70, strongest=60.0))
    single = problem(form, 70, strongest=60.0, dtype=torch.float32)
    assert_twins(fast, slow, single, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", OPERATIONS)
def test_float32_at_4096_steps(form):
    tensors = problem(form, 4096, batch=1, strongest=0.05, dtype=torch.float32)
    assert_safe_in_float32(OPERATIONS[form][0], tensors, 1e-4)


@pytest.mark.parametrize("form", OPERATIONS)
def test_second_derivatives_and_vmap(form, monkeypatch):
    monkeypatch.setattr("mnemoscope.nn.ops.linear_attention._CHUNKS", (4, 4))
    monkeypatch.setattr("mnemoscope.nn.ops.linear_attention._BLOCK", 2)
    fast, _ = OPERATIONS[form]
    sizes = {"batch": 1, "heads": 1, "keys": 2, "values": 1}
    tensors = [tensor.requires_grad_() for tensor in problem(form, 6, **sizes)]
    assert torch.autograd.gradgradcheck(fast, tensors)
    assert_vmap_is_a_loop(fast, [problem(form, 6, seed=seed) for seed in range(2)])


def test_keys_that_heads_share():
    q, k, v, g, start = problem("decay per head", 40)
    shared = linear_attention(q[:, :, :1], k[:, :, :1], v, g, start)
    written_out = linear_attention(q[:, :, :1].expand_as(q), k[:, :, :1].expand_as(k), v, g, start)
    for found, wanted in zip(shared, written_out, strict=True):
        torch.testing.assert_close(found, wanted)


def test_without_decay_it_is_causal_attention_without_softmax():
    q, k, v, g, _ = problem("decay per head", 50)
    outputs, last = linear_attention(q, k, v, torch.zeros_like(g))
    scores = torch.einsum("tbhk,sbhk->bhts", q, k).tril()
    torch.testing.assert_close(outputs, torch.einsum("bhts,sbhv->tbhv", scores, v))
    torch.testing.assert_close(last, torch.einsum("tbhk,tbhv->bhkv", k, v))


def test_the_delta_rule_recalls_the_last_value_of_each_key():
    """With orthonormal keys and rate one, S^T k is the value that was last written under k."""
    generator = torch.Generator().manual_seed(0)
    which = torch.randint(6, (90,), generator=generator)
    values = torch.randn(90, 1, 1, 4, generator=generator, dtype=torch.float64)
    keys = torch.eye(6, dtype=torch.float64)[which][:, None, None]
    ones = torch.ones(90, 1, 1, 1, dtype=torch.float64)
    _, last = delta_rule(keys, keys, values, 0 * ones, ones)
    for key in range(6):
        wanted = values[(which == key).nonzero()[-1, 0], 0, 0]
        torch.testing.assert_close(last[0, 0, key], wanted)
