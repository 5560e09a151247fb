"""Turing machines: addressing on crafted memories, and whole machines against loops over the equations."""

import math

import pytest
import torch
import torch.nn.functional as F

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.nn.addressing import Heads, address, write_heads


def head(key, strength=1.0, gate=1.0, shift=(0.0, 1.0, 0.0), sharpness=1.0, dtype=torch.float64):
    """Return one head of one example, its numbers as they are."""
    one = [torch.tensor([[value]], dtype=dtype) for value in (strength, gate, sharpness)]
    return Heads(torch.tensor([[key]], dtype=dtype), one[0], one[1], torch.tensor([[shift]], dtype=dtype), one[2])


def weights(values, dtype=torch.float64):
    return torch.tensor([[values]], dtype=dtype)


class TestAddressing:
    memory = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [-1.0, 0.0]]], dtype=torch.float64)
    before = weights([0.7, 0.1, 0.2, 0.0])

    def test_content(self):
        """The cosine does not see lengths: e^{b cos} of angles 0, 90, 45 and 180 degrees."""
        found = address(self.memory, head([5.0, 0.0], strength=3.0), self.before)[0, 0]
        powers = [math.exp(3 * c) for c in (1, 0, math.sqrt(0.5), -1)]
        assert found.tolist() == pytest.approx([p / sum(powers) for p in powers], rel=1e-6)

    def test_gate_and_shift(self):
        """A closed gate and a shift by one: the weights of the step before, around the circle."""
        ahead = address(self.memory, head([1.0, 1.0], gate=0.0, shift=(0.0, 0.0, 1.0)), self.before)[0, 0]
        assert ahead.tolist() == pytest.approx([0.0, 0.7, 0.1, 0.2], abs=1e-12)
        back = address(self.memory, head([1.0, 1.0], gate=0.0, shift=(1.0, 0.0, 0.0)), self.before)[0, 0]
        assert back.tolist() == pytest.approx([0.1, 0.2, 0.0, 0.7], abs=1e-12)
        far = address(self.memory, head([1.0, 1.0], gate=0.0, shift=(0.5, 0, 0, 0, 0, 0, 0, 0, 0.5)), self.before)[0, 0]
        assert far.tolist() == pytest.approx(self.before[0, 0].tolist(), abs=1e-12)  # four slots on: back again

    def test_sharpening(self):
        found = address(self.memory, head([1.0, 1.0], gate=0.0, sharpness=3.0), self.before)[0, 0]
        powers = [0.7**3, 0.1**3, 0.2**3, 0.0]
        assert found.tolist() == pytest.approx([p / sum(powers) for p in powers], abs=1e-12)

    def test_float32_is_stable(self):
        """Small weights to a high power, slots of zeros and a key of zeros: finite, with finite gradients."""
        memory = torch.zeros(1, 4, 2, requires_grad=True)
        said = head([0.0, 0.0], gate=0.0, sharpness=40.0, dtype=torch.float32)
        before = weights([1e-20, 1e-19, 0.0, 0.0], torch.float32).requires_grad_()
        found = address(memory, said, before)
        assert found[0, 0].tolist() == pytest.approx([0, 1, 0, 0], abs=1e-6)
        found[0, 0, 0].backward()
        assert bool(memory.grad.isfinite().all() and before.grad.isfinite().all())

    def test_writing(self):
        """Two heads erase one after the other, and add."""
        memory = torch.ones(1, 2, 2, dtype=torch.float64)
        two = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]], dtype=torch.float64)
        erase = torch.tensor([[[1.0, 0.0], [1.0, 0.5]]], dtype=torch.float64)
        add = torch.tensor([[[3.0, 4.0], [2.0, 2.0]]], dtype=torch.float64)
        assert write_heads(memory, two, erase, add)[0].tolist() == [[0 + 3 + 1, 0.75 + 4 + 1], [0.5 + 1, 0.75 + 1]]
        one = write_heads(memory, two[:, 1:], erase[:, 1:], add[:, 1:])[0]
        assert one.tolist() == [[0.5 + 1, 0.75 + 1], [0.5 + 1, 0.75 + 1]]


def build(name, **options):
    network = ms.nn.create(name, dtype=torch.float64, **options)
    with torch.no_grad():
        for seed, parameter in enumerate(network.parameters()):
            values = torch.randn(parameter.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
            parameter.copy_(0.7 * values)
    return network


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def addressed(memory, key, beta, g, s, gamma, before):
    """Return the weights of one head by the equations; slots are lists of numbers."""
    k = torch.tanh(key)
    c = torch.stack([k @ slot / (k.norm() * slot.norm() + 1e-8) for slot in memory])
    c = torch.softmax((1 + F.softplus(beta)) * c, 0)
    mixed = torch.sigmoid(g) * c + (1 - torch.sigmoid(g)) * before
    s, n = torch.softmax(s, 0), len(memory)
    turned = torch.stack([sum(s[j] * mixed[(i - (j - len(s) // 2)) % n] for j in range(len(s))) for i in range(n)])
    sharp = turned ** (1 + F.softplus(gamma))
    return sharp / sum(sharp)


@torch.no_grad()
def turn(network, memory, said, before):
    """Write, then read, with one head each; `said` has (key, beta, g, s, gamma) of reader and writer, erase, add."""
    reader, writer, erase, add = said
    w = addressed(memory, *writer, before[1])
    add = torch.tanh(add) if network.add == "tanh" else add
    memory = torch.stack([slot * (1 - w[i] * torch.sigmoid(erase)) + w[i] * add for i, slot in enumerate(memory)])
    r = addressed(memory, *reader, before[0])
    return memory, sum(r[i] * slot for i, slot in enumerate(memory)), (r, w)


@torch.no_grad()
@pytest.mark.parametrize(
    "options", [{}, {"controller": "feed-forward", "add": "tanh", "shifts": 5, "focus": "uniform"}]
)
def test_ntm(options):
    network = build("ntm", input_size=3, hidden_size=4, memory=(5, 2), **options)
    x = draw(6, 2, 3)
    y, _ = network(x)
    trace = network.trace(x)
    for b in range(2):
        h = c = torch.zeros(4, dtype=torch.float64)
        memory, read = torch.full((5, 2), 1e-5, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
        before = network.init_state(1)[0].weights[0]
        for t in range(6):
            z = network.weight_ih_l0 @ x[t, b] + network.weight_rh_l0 @ read + network.bias_l0
            if network.controller == "lstm":
                i, f, g, o = (z + network.weight_hh_l0 @ h).chunk(4)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
            else:
                h = torch.tanh(z)
            said = network.weight_interface_l0 @ h + network.bias_interface_l0
            keys, shifts, scalars, erase, add = said.split([4, 2 * network.shifts, 6, 2, 2])
            heads = [
                (keys.chunk(2)[k], scalars[k], scalars[2 + k], shifts.chunk(2)[k], scalars[4 + k]) for k in range(2)
            ]
            memory, read, before = turn(network, memory, (*heads, erase, add), before)
            torch.testing.assert_close(y[t, b], torch.cat([h, read]))
            torch.testing.assert_close(trace.memory[t, b], memory)
            torch.testing.assert_close((trace.read[t, b, 0], trace.write[t, b, 0]), before)


def loop_matntm(network, x):
    """Return outputs, memories, and what was erased and added at each step, of one example."""

    def bilinear(name, value, bias):
        u, v = (getattr(network, f"weight_{name}_{side}_l0") for side in ("rows", "columns"))
        return u.T @ value @ v + (0 if bias is None else getattr(network, f"bias_{bias}_l0"))

    (slots, a, b), h = network.memory, torch.zeros(network.hidden_shape, dtype=torch.float64)
    memory, read = torch.full((slots, a * b), 1e-5, dtype=torch.float64), torch.zeros(a, b, dtype=torch.float64)
    before, found = network.init_state(1)[0].weights[0], []
    for value in x:
        for i in range(network.num_layers):
            z = bilinear(f"hh_{i}", h, None) + bilinear(f"ih_{i}", value, None) + bilinear(f"rh_{i}", read, i)
            h = torch.tanh(z)
        keys, write = bilinear("key", h, "key"), bilinear("write", h, "write")
        shift, scalars = bilinear("shift", h, "shift"), bilinear("scalars", h, "scalars")
        heads = [(keys[:, k * b : (k + 1) * b].flatten(), *scalars[:2, k], shift[:, k], scalars[2, k]) for k in (0, 1)]
        add, erase = write[:, :b].flatten(), write[:, b:].flatten()
        memory, read, before = turn(network, memory, (*heads, erase, add), before)
        read = read.reshape(a, b)
        y = torch.sigmoid(bilinear("out", h, "out") + bilinear("out_read", read, "out_read"))
        found.append((y, memory.reshape(slots, a, b), torch.sigmoid(erase).reshape(a, b), add.reshape(a, b)))
    return [torch.stack(parts) for parts in zip(*found, strict=True)]


@torch.no_grad()
def test_matntm():
    network = build("matntm", input_size=(2, 3), hidden_size=[(3, 2), (4, 3)], memory=(4, 2, 3))
    x = draw(6, 2, 2, 3)
    y, _ = network(x)
    memory = network.trace(x).memory
    for b in range(2):
        outputs, memories, _, _ = loop_matntm(network, x[:, b])
        torch.testing.assert_close(y[:, b], outputs)
        torch.testing.assert_close(memory[:, b], memories)


@torch.no_grad()
def test_one_slot_in_closed_form():
    """R_t = sum_k A_{t-k} prod_{i<k} (1 - Er_{t-i}): what is written and not yet erased."""
    network = build("matntm", input_size=(2, 2), hidden_size=(3, 3), memory=(1, 2, 2))
    x = draw(8, 1, 2, 2)
    _, _, erase, add = loop_matntm(network, x[:, 0])
    trace, state = network.trace(x), network(x)[1][0]
    for t in range(8):
        blank = 1e-5 * torch.prod(1 - erase[: t + 1], 0)
        closed = sum(add[t - k] * torch.prod(1 - erase[t - k + 1 : t + 1], 0) for k in range(t + 1)) + blank
        torch.testing.assert_close(trace.memory[t, 0, 0], closed)
    assert bool((trace.read == 1).all() and (trace.write == 1).all())
    torch.testing.assert_close(state.read[0, 0], closed)


@torch.no_grad()
def test_uniform_heads_make_one_slot_of_all():
    network = build("ntm", input_size=2, hidden_size=3, memory=(6, 2), focus="uniform")
    memory = network.trace(draw(5, 1, 2)).memory
    torch.testing.assert_close(memory, memory[:, :, :1].expand_as(memory))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ntm", {"memory": (0, 4)}, "memory must be a positive integer, got 0"),
        ("ntm", {"memory": (5, 4, 4)}, r"memory must be 2 positive integers, got \(5, 4, 4\)"),
        ("ntm", {"shifts": 2}, "shifts must be an odd number"),
        ("ntm", {"shifts": 0}, "shifts must be a positive integer, got 0"),
        ("ntm", {"read_heads": 0}, "read_heads must be a positive integer, got 0"),
        ("matntm", {"memory": (120, 6)}, "memory must be 3 positive integers"),
        ("matntm", {"write_heads": -1}, "write_heads must be a positive integer, got -1"),
        ("matntm", {"controller": "gru"}, "controller must be 'rnn' or 'lstm', got 'gru'"),
    ],
)
def test_bad_options(name, options, message):
    sizes = {"input_size": (3, 3), "hidden_size": (2, 2)} if name == "matntm" else {"input_size": 3, "hidden_size": 2}
    with pytest.raises(UserError, match=message):
        ms.nn.create(name, **sizes, **options)
