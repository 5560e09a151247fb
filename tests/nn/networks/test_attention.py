"""Attention to past states: against loops over the equations, example by example, and against autograd."""

import math

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence, unpack_sequence
from torch.utils._pytree import tree_leaves

import mnemoscope as ms
from mnemoscope.core.errors import UserError


def make(name, d=3, n=4, **options):
    generator = torch.Generator().manual_seed(3)
    return ms.nn.create(name, input_size=d, hidden_size=n, dtype=torch.float64, generator=generator, **options)


def inputs(time=12, batch=3, d=3, seed=0):
    return torch.randn(time, batch, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def align(network, query, key):
    """Return the score of every head, by the equation."""
    q, k = network.weight_query_l0 @ query, network.weight_key_l0 @ key
    if network.alignment == "additive":
        return [p.sum() for p in (network.weight_score_l0 * torch.tanh(q + k)).chunk(network.heads)]
    width = network.hidden_size // network.heads
    return [a @ b / math.sqrt(width) for a, b in zip(q.chunk(network.heads), k.chunk(network.heads), strict=True)]


def core(network, x, macro, cell):
    n = network.hidden_size
    h = macro[:n]
    z = network.weight_ih_l0 @ x + network.weight_hh_l0 @ h
    if network.combine == "concat":
        z = z + network.weight_context_l0 @ macro[n:]
    if network.core == "lstm":
        i, f, g, o = (z + network.bias_ih_l0 + network.bias_hh_l0).chunk(4)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        return o.sigmoid() * cell.tanh(), cell
    if network.nonlinearity == "modrelu" or network.core == "exprnn":
        return z.sign() * torch.relu(z.abs() + network.bias_l0), cell
    return torch.tanh(z + network.bias_l0), cell


def softmax(values):
    top = max(values)
    powers = [torch.exp(v - top) for v in values]
    return [p / sum(powers) for p in powers]


def sparse(values, best):
    least = sorted(values, reverse=True)[min(best, len(values) - 1)]
    excess = [torch.relu(v - least) for v in values]
    total = sum(excess)
    return [e / total for e in excess] if total > 0 else [torch.zeros_like(total) for _ in excess]


def screen(network, buffer, relevant, step, h):
    """Algorithm 1: entries are [step, state, beta]."""
    buffer.append([step, h, 0.0])
    if len(buffer) <= network.buffer:
        return
    left = buffer.pop(0)
    left[2] = left[2] if network.screening == "relevance" else float(left[0])
    if len(relevant) < network.relevant:
        relevant.append(left)
    elif relevant:
        least = min(range(len(relevant)), key=lambda i: relevant[i][2])
        if left[2] > relevant[least][2]:
            relevant[least] = left


def loop(network, x):
    """Run one example by the equations; return outputs and {step: mean weight} at every step."""
    n = network.hidden_size
    macro, cell = x.new_zeros(2 * n if network.combine == "concat" else n), x.new_zeros(n)
    buffer, relevant, outputs, received = [], [], [], []
    name = network.card.name
    for t, x_t in enumerate(x):
        query = macro
        h, cell = core(network, x_t, macro, cell)
        if name.startswith("rel"):
            screen(network, buffer, relevant, t, h)
        elif name.startswith("mem") or (t + 1) % network.every == 0:
            buffer.append([t, h, 0.0])
        entries = buffer + relevant
        fits = [align(network, query, entry[1]) for entry in entries]
        by_head = []
        for head in range(network.heads):
            values = [fit[head] for fit in fits]
            by_head.append(
                sparse(values, network.best) if name == "sab" and values else softmax(values) if values else []
            )
        parts = [
            sum(
                (w * entry[1].chunk(network.heads)[i] for w, entry in zip(weights, entries, strict=True)),
                torch.zeros(()),
            )
            for i, weights in enumerate(by_head)
        ]
        c = torch.cat([part.expand(n // network.heads) for part in parts])
        macro = {"sum": h + c, "mean": (h + c) / 2, "concat": torch.cat([h, c])}[network.combine]
        mean = [float(sum(w[i] for w in by_head).detach()) / network.heads for i in range(len(entries))]
        for entry, weight in zip(buffer, mean, strict=False):
            entry[2] += weight
        received.append({entry[0]: weight for entry, weight in zip(entries, mean, strict=True)})
        outputs.append(macro if network.readout == "s" else h)
    return torch.stack(outputs), received


CASES = {
    "relrnn": ("relrnn", {"buffer": 3, "relevant": 2}),
    "relrnn, many slots": ("relrnn", {}),
    "relrnn, no buffer": ("relrnn", {"buffer": 0, "relevant": 2}),
    "relrnn, buffer alone": ("relrnn", {"buffer": 4, "relevant": 0, "heads": 2}),
    "relrnn, concat": ("relrnn", {"buffer": 2, "relevant": 3, "combine": "concat", "alignment": "dot", "heads": 2}),
    "relrnn, mean of exprnn": (
        "relrnn",
        {"buffer": 2, "relevant": 2, "core": "exprnn", "combine": "mean", "readout": "h"},
    ),
    "relrnn, modrelu": ("relrnn", {"buffer": 2, "relevant": 2, "core": "orth-rnn", "nonlinearity": "modrelu"}),
    "relrnn, recency": ("relrnn", {"buffer": 2, "relevant": 2, "screening": "recency"}),
    "rellstm": ("rellstm", {"buffer": 3, "relevant": 2}),
    "rellstm, concat": ("rellstm", {"buffer": 2, "relevant": 1, "combine": "concat"}),
    "memrnn": ("memrnn", {}),
    "memrnn, dot": ("memrnn", {"alignment": "dot", "heads": 2}),
    "memlstm": ("memlstm", {"readout": "h"}),
    "sab": ("sab", {"every": 2, "best": 2, "truncate": 3}),
    "sab, heads": ("sab", {"every": 1, "best": 1, "truncate": 2, "heads": 2}),
}
ALL = pytest.mark.parametrize("case", CASES)


@ALL
def test_equations(case):
    name, options = CASES[case]
    network, x = make(name, **options), inputs()
    y, _ = network(x)
    found = network.attention(x)
    for b in range(x.shape[1]):
        outputs, received = loop(network, x[:, b])
        torch.testing.assert_close(y[:, b], outputs, rtol=1e-12, atol=1e-12)
        for t, weights in enumerate(received):
            held = {
                int(s): float(w)
                for s, w in zip(found.steps[t, b], found.weights[t, b].detach().mean(0), strict=True)
                if s >= 0
            }
            assert held == pytest.approx(weights, abs=1e-12)


@ALL
def test_backward_by_hand_is_autograd(case):
    name, options = CASES[case]
    answers = []
    for fused in (True, False):
        network = make(name, capacity=16, **options) if name in ("memrnn", "memlstm", "sab") else make(name, **options)
        if not fused:
            network._fuses = lambda *_: False
        x = [part.requires_grad_() for part in (inputs(4), inputs(7, seed=1))]
        _, state = network(x[0])
        y, state = network(x[1], state)
        leaves = [y, *(leaf for leaf in tree_leaves(state) if leaf.is_floating_point())]
        generator = torch.Generator().manual_seed(5)
        loss = sum((leaf * torch.randn(leaf.shape, generator=generator, dtype=leaf.dtype)).sum() for leaf in leaves)
        gradients = torch.autograd.grad(loss, [*x, *network.parameters()])
        answers.append((leaves, gradients))
    torch.testing.assert_close(answers[0], answers[1], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("case", ["relrnn", "rellstm", "memrnn", "sab"])
def test_packed_sequences_after_others(case):
    """Examples that have come to different steps: each is as if alone, with its gradient."""
    name, options = CASES[case]
    network = make(name, **({} if name.startswith("rel") else {"capacity": 20}) | options)
    first, second = [inputs(t, 1, seed=t)[:, 0] for t in (5, 2, 8)], [inputs(t, 1, seed=t)[:, 0] for t in (3, 9, 6)]
    _, state = network(pack_sequence(first, enforce_sorted=False))
    y, _ = network(pack_sequence(second, enforce_sorted=False), state)
    together = torch.autograd.grad(y.data.square().sum(), list(network.parameters()))
    alone = [network(torch.cat([a, b]))[0][len(a) :] for a, b in zip(first, second, strict=True)]
    for part, one in zip(unpack_sequence(y), alone, strict=True):
        torch.testing.assert_close(part, one)
    apart = torch.autograd.grad(torch.cat(alone).square().sum(), list(network.parameters()))
    torch.testing.assert_close(together, apart)


def test_second_derivatives():
    network = make("relrnn", n=2, buffer=2, relevant=1)
    x = inputs(4, 1).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: network(x)[0], x)


def test_relevant_states_on_a_crafted_sequence():
    """With e_i = 9 tanh(h_i): the first step had all attention at first, step 3 is loud, step 6 shares with step 3."""
    network = make("relrnn", 1, 1, buffer=2, relevant=2, nonlinearity="identity")
    with torch.no_grad():
        for name, value in (("ih", 1.0), ("hh", 0.0), ("query", 0.0), ("key", 1.0)):
            getattr(network, f"weight_{name}_l0").fill_(value)
        network.weight_score_l0.fill_(9.0)
        network.bias_l0.zero_()
    x = torch.zeros(12, 1, 1, dtype=torch.float64)
    x[3], x[6], x[8] = 2.0, 3.0, 1.0
    _, (state,) = network(x)
    held = dict(zip(state.steps[0, 2:].tolist(), state.relevance[0, 2:].tolist(), strict=True))
    # Step 3 is in the buffer with h_2 = 0, then with h_4 = 0; the relevant set has two zeros: e^{9 tanh 2} against 1
    loud = math.exp(9 * math.tanh(2))
    assert held == pytest.approx({0: 1 + 1 / 2, 3: 2 * loud / (loud + 3)}, rel=1e-12)


def test_random_screening_keeps_a_uniform_sample():
    """Over many lengths the relevant set has no taste for early or late steps."""
    network = make("relrnn", 1, 1, buffer=1, relevant=4, screening="random")
    means = [float(network(inputs(t, 1, 1))[1][0].steps[0, 1:].double().mean()) / t for t in range(40, 200, 5)]
    assert sum(means) / len(means) == pytest.approx(0.5, abs=0.1)


def test_screening_by_a_function():
    network = make("relrnn", buffer=2, relevant=2, screening=lambda states, relevance, steps: -steps.double())
    steps = network(inputs())[1][0].steps
    assert sorted(steps[0, 2:].tolist()) == [0, 1]


def test_gradient_of_sab_goes_through_local_steps_and_reads_only():
    options = {"every": 4, "best": 1, "truncate": 4}
    network, x = make("sab", **options), inputs(11, 1).requires_grad_()
    with torch.no_grad():
        network.weight_score_l0.mul_(20)
    y, _ = network(x)
    reached = torch.autograd.grad(y[-1].square().sum(), x)[0].abs().sum((1, 2)) > 0
    # Stored: steps 3 and 7; cuts before 0, 4, 8. Read at 8 .. 10: the better of the two, in whose segment it goes on
    better = set(network.attention(x).weights[8:, 0, 0].argmax(-1).tolist())
    segments = {slot: set(range(4 * slot, 4 * slot + 4)) for slot in (0, 1)}
    wanted = {8, 9, 10}.union(*(segments[slot] for slot in (0, 1)))  # the other's score is subtracted
    assert set(reached.nonzero().flatten().tolist()) <= wanted
    assert {8, 9, 10}.union(*(segments[slot] for slot in better)) <= set(reached.nonzero().flatten().tolist())
    whole = torch.autograd.grad(network.eval()(x)[0][-1].square().sum(), x)[0]
    torch.testing.assert_close(network(x)[0], y)
    assert bool((whole.abs().sum((1, 2)) > 0).all())
    network.train().truncate = 100
    assert not bool((torch.autograd.grad(network(x)[0][2].square().sum(), x)[0][3:] != 0).any())
    free = make("sab", **options | {"truncate": 2, "every": 20})
    local = torch.autograd.grad(free(x)[0][-1].square().sum(), x)[0].abs().sum((1, 2)) > 0
    assert local.nonzero().flatten().tolist() == [10]


def saved_bytes(network, x):
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = network(x)[0]  # noqa: F841 - its graph must live
    return sum(kept.values())


def test_memory_of_the_backward_pass():
    """Per step and example: one state, and nu + rho weights and row numbers. All states: a triangle of weights."""
    n, batch, nu, rho = 8, 2, 3, 2
    network = make("relrnn", n=n, buffer=nu, relevant=rho).float()
    a, b = (saved_bytes(network, inputs(t, batch).float()) for t in (100, 300))
    inputs_too = 3 * 4
    assert (b - a) / 200 / batch == pytest.approx(4 * (n + 2 * (nu + rho)) + inputs_too)
    network = make("memrnn", n=n).float()
    a, b, c = (saved_bytes(network, inputs(t, batch).float()) for t in (100, 200, 300))
    assert a - 2 * b + c == 4 * batch * (100**2 - 2 * 200**2 + 300**2) / 2


def test_matrix_of_attention():
    network, x = make("relrnn", buffer=2, relevant=1), inputs(6)
    alpha = network.attention(x).matrix()
    assert alpha.shape == (3, 6, 6)
    torch.testing.assert_close(alpha.sum(-1), torch.ones(3, 6, dtype=torch.float64))
    assert not bool(alpha.triu(1).any())


def test_sizes_of_the_state():
    assert make("relrnn", buffer=3, relevant=2).state_size == 4 + 5 * (4 + 1)
    assert make("memrnn").state_size is None
    assert make("memrnn").state_size_at(7) == make("memrnn", capacity=7).state_size == 4 * 8
    assert make("sab", every=3, capacity=7).state_size == 2 * 4 + 2 * 4
    network = make("rellstm")
    ((macro, cell),) = network.readout_state(network.init_state(2))
    assert macro.shape == cell.shape == (2, 4)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("relrnn", {"buffer": 0, "relevant": 0}, "buffer or relevant must be above 0, got 0 for both"),
        ("relrnn", {"buffer": -1}, "buffer must be an integer that is not negative, got -1"),
        ("relrnn", {"heads": 3}, "hidden_size must be a multiple of heads = 3, got 4"),
        ("relrnn", {"heads": 0}, "heads must be a positive integer, got 0"),
        ("relrnn", {"combine": "add"}, "combine must be .sum. or"),
        ("relrnn", {"core": "gru"}, "core must be rnn, orth-rnn, exprnn"),
        ("relrnn", {"screening": "age"}, "screening must be .relevance. or"),
        ("memrnn", {"capacity": 0}, "capacity must be a positive integer, got 0"),
        ("sab", {"best": 0}, "best must be a positive integer, got 0"),
        ("rellstm", {"core": "rnn"}, "RelLSTM has no option 'core'"),
    ],
)
def test_bad_options(name, options, message):
    with pytest.raises(UserError, match=message):
        make(name, **options)


def test_bad_use():
    network = make("relrnn", buffer=1, relevant=1, screening=lambda states, relevance, steps: states)
    with pytest.raises(
        UserError, match=r"screening must be a function that returns scores of shape \(3,\), got \(3, 4\)"
    ):
        network(inputs())
    with pytest.raises(UserError, match="a sequence of 12 steps does not fit: give MemRNN capacity=12"):
        make("memrnn", capacity=5)(inputs())
    network = make("memlstm", capacity=5)
    _, state = network(inputs(5))
    with pytest.raises(UserError, match="a sequence of 6 steps does not fit: give MemLSTM capacity=6"):
        network.step(inputs(1)[0], state)
    with pytest.raises(UserError, match="give it a capacity"):
        make("memrnn").init_state(1)
