"""What networks of today promise besides their equations: blocks, caches, decays that can be negative, errors."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves

import mnemoscope as ms

TODAY = [
    "deltanet",
    "gated-deltanet",
    "gla",
    "hgrn2",
    "lru",
    "mamba",
    "mamba2",
    "mingru",
    "minlstm",
    "mlstm",
    "retnet",
    "rglru",
    "rwkv7",
    "s4",
    "s4d",
    "slstm",
    "transformer",
]


def build(name, units=6, **options):
    generator = torch.Generator().manual_seed(0)
    extra = {"capacity": 64} if name == "transformer" else {}
    return ms.nn.create(
        name, input_size=3, hidden_size=units, dtype=torch.float64, generator=generator, **extra, **options
    )


def inputs(steps=23, batch=2, width=3):
    return torch.randn(steps, batch, width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("name", TODAY)
def test_a_block_can_be_stopped_and_taken_up_again(name):
    layer, x = build(name, block=True, num_layers=2), inputs()
    whole, last = layer(x)
    first, state = layer(x[:9])
    second, again = layer(x[9:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole)
    for found, wanted in zip(tree_leaves(again), tree_leaves(last), strict=True):
        torch.testing.assert_close(found, wanted)
    assert whole.shape[-1] == layer.output_size == 6


def test_a_block_is_what_it_says():
    """mingru's block written out: norm, convolution, cell, gate, residual, MLP."""
    layer, x = build("mingru", block=True), inputs()
    w = layer.weights()[0]
    x = x @ w["weight_project"].T
    u = x / torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-5) * w["norm"]
    padded = torch.cat([torch.zeros(3, 2, 6, dtype=u.dtype), u])
    c = F.silu(F.conv1d(padded.permute(1, 2, 0), w["weight_taps"].T[:, None], groups=6).permute(2, 0, 1))
    z, candidate = (c @ w["weight_ih"].T + w["bias"]).chunk(2, -1)
    h, states = torch.zeros(2, 6, dtype=u.dtype), []
    for gate, new in zip(torch.sigmoid(z), candidate, strict=True):
        h = (1 - gate) * h + gate * new
        states.append(h)
    y = torch.stack(states)
    y = y / torch.sqrt((y**2).mean(-1, keepdim=True) + 1e-5) * w["norm_heads"]
    r = x + (F.silu(u @ w["weight_swish"].T) * y) @ w["weight_merge"].T
    v = r / torch.sqrt((r**2).mean(-1, keepdim=True) + 1e-5) * w["norm_mlp"]
    up, gate = (v @ w["weight_up"].T).chunk(2, -1)
    torch.testing.assert_close(layer(inputs())[0], r + (up * F.silu(gate)) @ w["weight_down"].T)


def test_attention_with_rotary_positions():
    """Scores written out for every pair of steps, with complex rotations by their distance."""
    layer, x = build("transformer", heads=2), inputs(11, 1)
    q, k, v = (part.reshape(11, 2, 3) for part in (x[:, 0] @ layer.weight_ih_l0.T).chunk(3, -1))
    wanted = torch.zeros(11, 2, 3, dtype=torch.float64)
    for head in range(2):
        for t in range(11):
            scores = []
            for s in range(t + 1):
                pair = torch.complex(q[t, head, 0], q[t, head, 1]) * torch.complex(k[s, head, 0], -k[s, head, 1])
                turn = torch.exp(torch.tensor(1j * (t - s), dtype=torch.complex128))
                scores.append(((pair * turn).real + q[t, head, 2] * k[s, head, 2]) / 3**0.5)
            wanted[t, head] = torch.softmax(torch.stack(scores), 0) @ v[: t + 1, head]
    torch.testing.assert_close(layer(x)[0][:, 0], wanted.flatten(1))


def test_the_transformers_state_grows():
    layer = ms.nn.create("transformer", input_size=3, hidden_size=6, num_layers=2)
    assert layer.state_size is None
    assert layer.state_size_at(10) == 2 * 2 * 10 * 6
    assert build("transformer").state_size == 2 * 64 * 6


@pytest.mark.parametrize("name", ["deltanet", "gated-deltanet"])
def test_a_negative_eigenvalue_flips_what_is_stored(name):
    """With beta near 2 the part of the state along a key changes its sign at every step: parity."""
    layer = build(name, 4, heads=1, negative_eigenvalues=True)
    with torch.no_grad():
        layer.weight_beta_l0.fill_(20.0)
        layer.weight_ih_l0[8:].zero_()  # no values
        if name == "gated-deltanet":
            layer.step_l0.fill_(-40.0)  # no decay
            layer.weight_decay_l0.zero_()
        x = torch.ones(6, 1, 3, dtype=torch.float64)
        state, norms = (torch.randn(1, 1, 4, 4, dtype=torch.float64),), []
        w = layer.weights()[0]
        key = F.normalize(F.silu(x[0, 0] @ w["weight_ih"][4:8].T), dim=0)
        before = key @ state[0][0, 0]
        for t in range(6):
            _, state = layer(x[t : t + 1], state)
            norms.append(torch.dot(key @ state[0][0, 0], before) / before.square().sum())
    assert torch.stack(norms).round(decimals=3).tolist() == [-1, 1, -1, 1, -1, 1]


def test_states_are_matrices_of_heads():
    for name in ("retnet", "gla", "deltanet", "gated-deltanet", "hgrn2"):
        assert build(name, 6, heads=3).init_state(5)[0].shape == (5, 3, 2, 2)
    assert build("mamba2", 6, heads=3, order=7).init_state(5)[0].shape == (5, 3, 7, 2)
    assert build("mlstm", 6, heads=3).init_state(5)[0].memory.shape == (5, 3, 2, 2)
    assert build("rwkv7", 6, heads=3).init_state(5)[0].memory.shape == (5, 3, 2, 2)


def test_lower_bounds_of_hgrn2_grow_with_depth():
    layer = build("hgrn2", num_layers=3)
    with torch.no_grad():
        layer.weight_ih_l0.zero_(), layer.weight_ih_l1.zero_(), layer.weight_ih_l2.zero_()
        for bias in (layer.bias_l0, layer.bias_l1, layer.bias_l2):
            bias.fill_(-50.0)  # gates closed: only the bound is kept
        kept = [layer.drive_cell(w, torch.zeros(1, w.layer.input_size).double())[3].exp() for w in layer.weights()]
    for found, wanted in zip(kept, (0, 1 / 3, 2 / 3), strict=True):
        torch.testing.assert_close(found, torch.full_like(found, wanted), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gla", {"heads": 4}, "heads must be a divisor of hidden_size = 6, got 4"),
        ("s4", {"groups": 4}, "groups must be a divisor of hidden_size = 6, got 4"),
        ("s4d", {"order": 7}, "order must be an even positive integer, got 7"),
        ("slstm", {"mode": "parallel"}, "mode must be one of auto, recurrent, got 'parallel'"),
        ("retnet", {"mode": "parallel"}, "mode must be one of auto, recurrent, chunked, got 'parallel'"),
        ("lru", {"radii": (0.9, 0.5)}, "radii must be two numbers"),
        ("mamba", {"block": 1}, "block must be True or False, got 1"),
        ("deltanet", {"negative_eigenvalues": "yes"}, "negative_eigenvalues must be True or False"),
    ],
)
def test_bad_options(name, options, message):
    with pytest.raises(ValueError, match=message):
        build(name, **options)


def test_sequences_that_are_too_long():
    layer = ms.nn.create("transformer", input_size=3, hidden_size=4, capacity=5)
    with pytest.raises(ValueError, match="the sequence must be at most capacity = 5 steps long, got 6"):
        layer(torch.zeros(6, 1, 3))
    _, state = layer(torch.zeros(4, 1, 3))
    with pytest.raises(ValueError, match="at most 5 steps long with those before it, got 6"):
        layer(torch.zeros(2, 1, 3), state)
    with pytest.raises(ValueError, match="at most 5 steps long with those before it, got 6"):
        layer.step(torch.zeros(1, 3), layer(torch.zeros(1, 1, 3), state)[1])
    learned = ms.nn.create("transformer", input_size=3, hidden_size=4, positions=5)
    with pytest.raises(ValueError, match="the sequence must be at most positions = 5 steps long, got 6"):
        learned(torch.zeros(6, 1, 3))


@pytest.mark.parametrize("name", ["lru", "retnet"])
def test_a_state_of_another_layout(name):
    with pytest.raises(ValueError, match="hx must be"):
        build(name)(inputs(), torch.zeros(1, 2, 3, 3, dtype=torch.float64))


@pytest.mark.parametrize("name", TODAY)
def test_float16_on_a_cpu(name):
    layer, x = ms.nn.create(name, input_size=3, hidden_size=4).half(), torch.ones(9, 1, 3, dtype=torch.float16)
    if layer.field == "complex":
        with pytest.raises(ValueError, match="must be float32 or float64"):
            layer(x)
    else:
        assert layer(x)[0].isfinite().all()
