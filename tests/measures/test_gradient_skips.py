"""Gradients of networks that attend, by the states that they pass: against autograd, all paths, plain matrices."""

import itertools

import numpy as np
import pytest
import torch
from torch.autograd.functional import jacobian

import mnemoscope as ms
from mnemoscope.measures.gradient_skips import gradients_by_skips
from mnemoscope.theory.formulas.attention import uniform_attention

STEPS, BATCH, SIZE = 6, 2, 4


def network(name, **options):
    generator = torch.Generator().manual_seed(3)
    layer = ms.nn.create(name, input_size=2, hidden_size=SIZE, dtype=torch.float64, generator=generator, **options)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(1.5)  # so that attention is far from uniform
    return layer.eval()


def inputs(seed=0, steps=STEPS):
    return torch.randn(steps, BATCH, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def last_macro(layer, x, leaves):
    """Run the plain loop with a leaf added to each h_t as it is made, and return s_T."""
    weights, x, cells = layer.before_layer(x, None, 0)
    w, state = weights[0], cells[0]
    for a, leaf in zip(layer.drive(w, x), leaves, strict=True):
        h, carried = layer.produce(w, a, state)
        _, state, _ = layer.remember(w, h + leaf, carried, state)
    return state.macro


CASES = [
    ("relrnn", {"buffer": 2, "relevant": 1}),
    ("relrnn", {"buffer": 0, "relevant": 2, "heads": 2, "alignment": "dot"}),
    ("relrnn", {"core": "orth-rnn", "combine": "concat", "screening": "recency", "buffer": 2, "relevant": 2}),
    ("rellstm", {"buffer": 2, "relevant": 2, "combine": "mean"}),
    ("memrnn", {"nonlinearity": "identity"}),
    ("memlstm", {}),
    ("sab", {"every": 2, "best": 1}),
]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_parts_sum_to_the_gradient_of_a_leaf_at_every_state(name, options):
    layer, x = network(name, **options), inputs()
    g = torch.randn(3, BATCH, layer.macro_size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    parts = gradients_by_skips(layer, x, g, skips=STEPS - 1)
    leaves = torch.zeros(STEPS, BATCH, SIZE, dtype=torch.float64, requires_grad=True)
    for way, each in enumerate(g):
        (whole,) = torch.autograd.grad(last_macro(layer, x, leaves), leaves, each)
        torch.testing.assert_close(parts[:, :, way].sum(1), whole, rtol=1e-10, atol=1e-12)
    few = gradients_by_skips(layer, x, g, skips=2)
    torch.testing.assert_close(few[:, :2], parts[:, :2])
    torch.testing.assert_close(few[:, 2], parts[:, 2:].sum(1))


def sum_of_paths(direct, links, t, s):
    """Return all products from h_t to the last macro-state through s states."""
    found = np.zeros((SIZE, SIZE))
    for stops in itertools.combinations(range(t, STEPS - 1), s):
        ends = [*stops, STEPS - 1]
        product = direct[ends[0], t]
        for here, there in itertools.pairwise(ends):
            product = links[there, here] @ product
        found += product
    return found


def test_each_part_is_the_sum_of_its_paths():
    """ds/dh and dh/ds of every pair of steps by autograd, and all paths through s states written down."""
    layer, x = network("memrnn"), inputs(seed=2)[:, :1]
    weights, driven, cells = layer.before_layer(x, None, 0)
    w, state = weights[0], cells[0]
    hs, macros = [], [state.macro.detach()]
    for a in layer.drive(w, driven):
        h, _ = layer.produce(w, a, state)
        _, state, _ = layer.remember(w, h, (), state)
        hs.append(h.detach())
        macros.append(state.macro.detach())

    def made(t, before):
        return layer.produce(w, layer.drive(w, driven)[t], cells[0]._replace(macro=before))[0]

    def read(t, states, before):
        query, keys = before @ w["weight_query"].mT, states @ w["weight_key"].mT
        alpha = torch.softmax(torch.tanh(query + keys) @ w["weight_score"], 0)
        return states[t] + alpha @ states

    direct = np.zeros((STEPS, STEPS, SIZE, SIZE))  # [t, i]: ds_t/dh_i
    links = np.zeros((STEPS, STEPS, SIZE, SIZE))  # [k, j]: ds_k/ds_j by one state
    for t in range(STEPS):
        states = torch.cat(hs[: t + 1])
        of_states, of_query = jacobian(lambda states, before, t=t: read(t, states, before), (states, macros[t][0]))
        direct[t, : t + 1] = of_states.transpose(0, 1).numpy()
        if t:
            links[t, t - 1] = of_query.numpy()
    for j in range(STEPS - 1):
        core = jacobian(lambda before, j=j: made(j + 1, before), macros[j + 1])[0, :, 0].numpy()
        for k in range(j + 1, STEPS):
            links[k, j] += direct[k, j + 1] @ core
    found = gradients_by_skips(layer, x, torch.eye(SIZE, dtype=torch.float64).unsqueeze(1), skips=STEPS - 1)
    for t, s in itertools.product(range(STEPS), range(STEPS)):
        np.testing.assert_allclose(found[t, s, :, 0].numpy(), sum_of_paths(direct, links, t, s), atol=1e-12)


def test_weights_that_do_not_change_give_the_numbers_of_plain_matrices():
    """A linear memrnn whose scores are all alike attends uniformly: `attention_paths` of V and that matrix."""
    layer, length = network("memrnn", nonlinearity="identity", bias=False), 12
    with torch.no_grad():
        layer.weight_score_l0.zero_()
    found = ms.measures.attention(layer, inputs=inputs(steps=length).numpy(), directions=None)
    assert found.status == "exact"
    for t in range(length):
        plain = ms.measures.attention_paths(layer.weight_hh_l0.detach().numpy(), uniform_attention(length), start=t)
        lag = length - 1 - t
        np.testing.assert_allclose(found.parts[t, : lag + 1], plain.norms[-1], rtol=1e-9, atol=1e-12)
        assert found.gradients[t] == pytest.approx(plain.totals[-1])
    assert found.shares.sum() == pytest.approx(1)


def test_random_directions_estimate_the_norms():
    layer, x = network("relrnn", buffer=2, relevant=2), inputs().numpy()
    exact = ms.measures.attention(layer, inputs=x, directions=None)
    guessed = ms.measures.attention(layer, inputs=x, directions=600, seed=1)
    assert (guessed.status, exact.status) == ("estimate", "exact")
    np.testing.assert_allclose(guessed.gradients, exact.gradients, rtol=0.2)
    np.testing.assert_allclose(guessed.parts, exact.parts, rtol=0.2, atol=1e-2)
