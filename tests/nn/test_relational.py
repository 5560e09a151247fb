"""Relational networks: published sizes, loops over the document's equations, variants, panels encoded once."""

import contextlib
import math

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.nn.panels import Panels
from mnemoscope.testing.stateless import STATELESS_CHECKS, StatelessSubject

NAMES = ms.nn.names("relational")
SMALL = {"panels": 4, "answers": 3, "input_size": (3, 8, 8), "dtype": torch.float64}
CHEAP = {"esbn": {"hidden_size": 16}, "relational-lstm": {"hidden_size": 16}}
CHEAP["relational-ntm"] = {"hidden_size": 6, "memory": (4, 5)}


def small(name, **options):
    return ms.nn.create(name, **{**SMALL, **CHEAP.get(name, {}), **options}).eval()


def size(network):
    return sum(p.numel() for p in network.parameters())


def panels(network, batch=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(6, (network.panels, batch), generator=generator)
    images = torch.rand(6, *network.input_shape, generator=generator, dtype=torch.float64)
    return Panels(images.to(next(network.parameters()).dtype), index)


# Sizes --------------------------------------------------------------------------------------------

COUNTS = [
    ("corelnet", 2, 2, {}, 200_418),
    ("corelnet", 6, 2, {}, 205_026),
    ("corelnet", 9, 4, {}, 211_684),
    ("corelnet", 9, 2, {}, 211_170),
    ("corelnet", 13, 6, {}, 223_974),
    ("corelnet", 2, 2, {"nhid": "esbn"}, 1_910_760),
    ("corelnet", 6, 2, {"nhid": "esbn"}, 1_910_754),
    ("corelnet", 9, 4, {"nhid": "esbn"}, 1_911_784),
    ("corelnet", 9, 2, {"nhid": "esbn"}, 1_910_754),
    ("corelnet", 13, 6, {"nhid": "esbn"}, 1_912_808),
    ("esbn", 2, 2, {}, 1_910_757),
    ("esbn", 9, 4, {}, 1_911_783),
    ("esbn", 13, 6, {}, 1_912_809),
    ("relational-lstm", 2, 2, {}, 1_514_722),
    ("relational-transformer", 2, 2, {}, 430_946),
    ("relation-network", 2, 2, {}, 529_122),
    ("predinet", 2, 2, {}, 471_834),
    ("relational-ntm", 2, 2, {}, 2_573_038),
    ("corelnet", 9, 2, {"input_size": (3, 12, 12)}, 88_290),
    ("corelnet", 9, 4, {"input_size": (3, 12, 12)}, 88_804),
]


@pytest.mark.parametrize(("name", "count", "answers", "options", "published"), COUNTS)
def test_published_sizes(name, count, answers, options, published):
    assert size(ms.nn.create(name, panels=count, answers=answers, device="meta", **options)) == published


@pytest.mark.parametrize(
    ("name", "options", "more"),
    [
        ("corelnet", {"asymmetric": True}, 2 * 128 * 128),
        ("corelnet", {"l1": "weights"}, 128 * 128 + 128),
        ("corelnet", {"cat": True}, 6 * 128 * 256),
        ("corelnet", {"matrix": "diff"}, 128 + (36 - 21) * 256),
        ("corelnet", {"matrix": "mix"}, 128 + (36 - 21) * 256 + 128 * 16 + 16 + 2 * 16),
        ("esbn", {"cat": True}, 4 * 512 * 128),
        ("corelnet-t", {"cat": True}, 6 * 128 * 256),
        ("relational-transformer", {"symmetric": True}, -(128 * 128 + 128)),
        ("corelnet", {"segments": (2, 2, 2)}, 0),
        ("corelnet", {"encoder": "random"}, 0),
    ],
)
def test_sizes_of_variants(name, options, more):
    plain, changed = (ms.nn.create(name, panels=6, answers=2, device="meta", **each) for each in ({}, options))
    assert size(changed) - size(plain) == more


# Equations, panel by panel ------------------------------------------------------------------------


def encoded(network, given):
    """Return normalised features of one example, panel by panel, from the definition."""
    w = network.image_encoder
    parts = [part for part in w if isinstance(part, nn.Conv2d | nn.Linear)]
    found = []
    for image in given:
        x = image.unsqueeze(0)
        for part in parts[:3]:
            x = nn.functional.conv2d(x, part.weight, part.bias, stride=2, padding=1).clamp_min(0)
        x = x.reshape(-1)
        for part in parts[3:]:
            x = (part.weight @ x + part.bias).clamp_min(0)
        found.append(x)
    z, last = [], 0
    for count in network.segments or (len(found),):
        block = torch.stack(found[last : last + count])
        last += count
        mean = sum(block) / count
        variance = sum((row - mean) ** 2 for row in block) / (count - 1)
        z += [network.context.gain * (row - mean) / (variance + 1e-8).sqrt() + network.context.shift for row in block]
    return z


def dense(layers, x):
    """Run an MLP with ReLU between its affine maps."""
    maps = [part for part in layers if isinstance(part, nn.Linear)]
    for number, part in enumerate(maps):
        x = part.weight @ x + part.bias
        x = x.clamp_min(0) if number < len(maps) - 1 else x
    return x


def softmax(values):
    exponentials = [math.exp(float(v) - float(max(values))) for v in values]
    return [e / sum(exponentials) for e in exponentials]


def matrix_of(network, z):
    rows = []
    for i in range(len(z)):
        left = network.reference.weight @ z[i] if network.asymmetric else z[i]
        right = [network.comparison.weight @ z[j] if network.asymmetric else z[j] for j in range(i + 1)]
        rows.append(softmax([left @ other for other in right]))
    return rows


def corelnet(network, z):
    flat = [value for row in matrix_of(network, z) for value in row]
    x = torch.tensor(flat, dtype=torch.float64)
    return dense(network.decoder, torch.cat([x, *z]) if network.cat else x)


def corelnet_diff(network, z):
    level = [float(network.scale.weight[0] @ one) for one in z]
    return dense(network.decoder, torch.tensor([a - b for a in level for b in level], dtype=torch.float64))


def layer_norm(part, x):
    return (x - x.mean()) / (x.var(unbiased=False) + 1e-5).sqrt() * part.weight + part.bias


def attention(query, keys, values, heads):
    width = len(query) // heads
    found = []
    for h in range(heads):
        part = slice(h * width, (h + 1) * width)
        weights = softmax([query[part] @ key[part] / math.sqrt(width) for key in keys])
        found.append(sum(w * value[part] for w, value in zip(weights, values, strict=True)))
    return torch.cat(found)


def affine(part, x):
    return part.weight @ x + (0 if part.bias is None else part.bias)


def corelnet_t(network, z):
    rows = [torch.tensor(row + [0.0] * (len(z) - len(row)), dtype=torch.float64) for row in matrix_of(network, z)]
    tokens = [row @ network.positions for row in rows]
    keys, values = ([affine(part, token) for token in tokens] for part in (network.keys, network.values))
    found = attention(affine(network.queries, network.question), keys, values, 8)
    u = layer_norm(network.norm_attention, network.question + affine(network.project, found))
    u = layer_norm(network.norm_feedforward, u + dense(network.feedforward, u))
    return dense(network.decoder, u)


def lstm(cell, x, h, c):
    own = {name.split("_l0")[0]: p for name, p in cell.named_parameters()}
    gates = own["weight_ih"] @ x + own["bias_ih"] + own["weight_hh"] @ h + own["bias_hh"]
    i, f, g, o = gates.chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def esbn(network, z):
    n = network.hidden_size
    h = c = torch.zeros(n, dtype=torch.float64)
    read, memory = torch.zeros(257, dtype=torch.float64), []
    for t in range(len(z) + 1):
        seen = z[t] if t < len(z) else torch.zeros(128, dtype=torch.float64)
        h, c = lstm(network.controller, torch.cat([read, seen]) if network.cat else read, h, c)
        key, gate = affine(network.key, h).clamp_min(0), affine(network.gate, h).sigmoid()
        if memory:
            scores = [seen @ stored for _, stored in memory]
            weights = softmax(scores)
            read = gate * sum(
                w * torch.cat([k, (network.gain * s + network.bias).sigmoid()])
                for w, s, (k, _) in zip(weights, scores, memory, strict=True)
            )
        memory.append((key, seen))
    return affine(network.readout, h)


def relational_lstm(network, z):
    h = c = torch.zeros(network.hidden_size, dtype=torch.float64)
    for one in z:
        h, c = lstm(network.sequence, one, h, c)
    return affine(network.readout, h)


def transformer(network, z):
    positions = [
        torch.tensor(
            [f(t / 10_000 ** (2 * i / 128)) for i in range(64) for f in (math.sin, math.cos)], dtype=torch.float64
        )
        for t in range(len(z))
    ]
    x = [a + b for a, b in zip(z, positions, strict=True)]
    by_key = network.queries if network.symmetric else network.keys
    keys, values = ([affine(part, one) for one in x] for part in (by_key, network.values))
    total = 0
    for one in x:
        found = affine(network.project, attention(affine(network.queries, one), keys, values, 8))
        u = layer_norm(network.norm_attention, one + found)
        u = layer_norm(network.norm_feedforward, u + dense(network.feedforward, u))
        total = total + layer_norm(network.norm, u) / len(x)
    return dense(network.decoder, total)


def tagged(z):
    return [torch.cat([one, torch.tensor([float(t)], dtype=torch.float64)]) for t, one in enumerate(z)]


def relation_network(network, z):
    x = tagged(z)
    total = sum(dense(network.pair, torch.cat([a, b])).clamp_min(0) for a in x for b in x)
    return dense(network.decoder, total)


def predinet(network, z):
    x = tagged(z)
    everything = torch.cat(x)
    keys = [network.keys.weight @ one for one in x]
    found = []
    for h in range(32):
        picked = []
        for part in (network.first, network.second):
            query = part.weight[16 * h : 16 * h + 16] @ everything
            weights = softmax([query @ key for key in keys])
            picked.append(sum(w * one for w, one in zip(weights, x, strict=True)))
        one, other = picked
        found += [network.compare.weight @ (one - other), one[-1:], other[-1:]]
    return dense(network.decoder, torch.cat(found))


def mnm(network, z):
    h = c = read = torch.zeros(128, dtype=torch.float64)
    memory = [w.clone() for w in network.memory.start]

    def recall(key):
        first = (memory[0] @ key).tanh()
        second = (memory[1] @ first).tanh()
        return [key, first, second], [first, second, memory[2] @ second]

    for t in range(len(z) + 1):
        seen = z[t] if t < len(z) else torch.zeros(128, dtype=torch.float64)
        h, c = lstm(network.controller, torch.cat([seen, read]), h, c)
        write, value, ask, u = affine(network.interface, h).tanh().chunk(4)
        rate = affine(network.rate, u).sigmoid()
        inputs, outputs = recall(write)
        targets = affine(network.targets, value).chunk(3)
        memory = [
            w - 2 / 128 * torch.outer(out - target, rate * given)
            for w, out, target, given in zip(memory, outputs, targets, inputs, strict=True)
        ]
        read = recall(ask)[1][-1]
    return affine(network.readout, affine(network.join, torch.cat([h, read])))


def ntm(network, z):
    """Write by content and place, then read, panel after panel."""
    w = {name.removesuffix("_l0"): p for name, p in network.machine.named_parameters()}
    (slots, width), n = network.memory, network.hidden_size
    h = c = torch.zeros(n, dtype=torch.float64)
    read, memory = torch.zeros(width, dtype=torch.float64), network.blank.clone()
    focus = torch.eye(slots, dtype=torch.float64)[0]
    weights = [focus, focus]  # of the read head, of the write head

    def place(before, key, strength, gate, shift, sharpness):
        alike = [float(key @ slot / (key.norm() * slot.norm() + 1e-8)) for slot in memory]
        content = softmax([float(1 + nn.functional.softplus(strength)) * one for one in alike])
        g = float(gate.sigmoid())
        mixed = [g * new + (1 - g) * float(old) for new, old in zip(content, before, strict=True)]
        moves = softmax(list(shift))
        moved = [sum(moves[m] * mixed[(i - (m - 1)) % slots] for m in range(3)) for i in range(slots)]
        sharp = [one ** float(1 + nn.functional.softplus(sharpness)) for one in moved]
        return torch.tensor([one / sum(sharp) for one in sharp], dtype=torch.float64)

    for one in z:
        gates = w["weight_ih"] @ one + w["weight_rh"] @ read + w["weight_hh"] @ h + w["bias"] + network.bias_hh
        i, f, g, o = gates.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        said = w["weight_interface"] @ h + w["bias_interface"]
        keys, shifts, scalars, erase, add = said.split([2 * width, 6, 6, width, width])
        heads = [
            (key.tanh(), scalars[k], scalars[2 + k], shifts[3 * k : 3 * k + 3], scalars[4 + k])
            for k, key in enumerate(keys.chunk(2))
        ]
        weights[1] = place(weights[1], *heads[1])
        memory = memory * (1 - torch.outer(weights[1], erase.sigmoid())) + torch.outer(weights[1], add)
        weights[0] = place(weights[0], *heads[0])
        read = weights[0] @ memory
    return affine(network.readout, h)


TWINS = [
    ("relational-ntm", ntm, {}),
    ("corelnet", corelnet, {}),
    ("corelnet", corelnet, {"asymmetric": True, "segments": (2, 2)}),
    ("corelnet", corelnet, {"cat": True}),
    ("corelnet", corelnet_diff, {"matrix": "diff"}),
    ("corelnet-t", corelnet_t, {}),
    ("esbn", esbn, {}),
    ("esbn", esbn, {"cat": True}),
    ("relational-lstm", relational_lstm, {}),
    ("relational-transformer", transformer, {}),
    ("relational-transformer", transformer, {"symmetric": True}),
    ("relation-network", relation_network, {}),
    ("predinet", predinet, {}),
    ("mnm", mnm, {}),
]


@torch.no_grad()
@pytest.mark.parametrize(("name", "twin", "options"), TWINS, ids=lambda given: getattr(given, "__name__", str(given)))
def test_equations_panel_by_panel(name, twin, options):
    network = small(name, **options)
    network.context.gain.normal_()
    network.context.shift.normal_()
    given = panels(network, batch=3)
    found = network(given)
    for number, example in enumerate(given.dense().unbind(1)):
        torch.testing.assert_close(found[number], twin(network, encoded(network, example)), rtol=1e-9, atol=1e-9)


# What all of them promise ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_panels_and_the_same_images_in_full_give_one_answer_and_one_gradient(name):
    network = ms.nn.create(name, **{**SMALL, **CHEAP.get(name, {}), "dtype": torch.float32})
    given = panels(network)
    results = []
    for inputs in (given, given.dense()):
        scores = network(inputs)
        gradients = torch.autograd.grad(scores.sin().sum(), list(network.parameters()), allow_unused=True)
        results.append([scores, *gradients])
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(results[0][1:], results[1][1:], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_each_image_is_encoded_once(name, monkeypatch):
    network = small(name)
    seen = []
    network.image_encoder.register_forward_hook(lambda module, inputs, output: seen.append(len(inputs[0])))
    network(panels(network, batch=7))
    assert seen == [6]


@pytest.mark.parametrize("name", NAMES)
def test_relational_networks_keep_the_contract(name, every):
    def factory(dtype=None, generator=None):
        return ms.nn.create(name, **{**SMALL, **CHEAP.get(name, {}), "dtype": dtype, "generator": generator})

    def keeps(check):
        with contextlib.suppress(ms.testing.Skipped):  # of tensor classifiers
            check(StatelessSubject(factory))

    every({check.__name__: check for check in STATELESS_CHECKS}, keeps)


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded(name, tmp_path):
    network = small(name, dtype=torch.float32)
    ms.nn.save(network, tmp_path / "network.safetensors")
    again = ms.nn.load(tmp_path / "network.safetensors").eval()
    given = panels(network)
    assert torch.equal(again(given), network(given))


@pytest.mark.parametrize("name", NAMES)
def test_one_training_step_moves_what_learns(name):
    task = ms.tasks.create("games-same")
    options = {"panels": 9, "answers": 2, "input_size": (3, 12, 12), **CHEAP.get(name, {})}
    network = ms.nn.create(name, **options)
    before = {key: p.detach().clone() for key, p in network.named_parameters()}
    run = ms.training.fit(network, task, iterations=2, batch_size=8, lr=1e-3, optimizer="adam", test_size=20)
    assert set(run.tests) == {"hexominoes", "stripes"}
    still = {key for key, p in network.named_parameters() if torch.equal(p, before[key])}
    # Keys get no gradient where there is a single query of a constant; nothing else may stay.
    assert still <= {"keys.bias"}, still


def test_a_random_encoder_stays_and_its_normalisation_learns():
    network = small("corelnet", encoder="random", dtype=torch.float32)
    assert not any(p.requires_grad for p in network.image_encoder.parameters())
    network(panels(network)).sum().backward()
    assert network.context.gain.grad is not None
    assert all(p.grad is None for p in network.image_encoder.parameters())


def test_asymmetric_on_encoded_features_normalises_each_side():
    network = small("corelnet", asymmetric=True, asymmetric_on="encoded")
    features = torch.randn(4, 3, 128, dtype=torch.float64)
    left, right = (network.context(part(features)) for part in (network.reference, network.comparison))
    wanted = torch.einsum("ibf,jbf->bij", left, right)
    torch.testing.assert_close(network.similarities(network.normalise(features)), wanted)
    assert not torch.allclose(wanted, wanted.mT)


@pytest.mark.parametrize("name", ["corelnet", "corelnet-t", "esbn"])
def test_l1_is_a_penalty(name):
    weights = small(name, l1="weights", l1_strength=5.0)
    assert float(weights.penalty()) == pytest.approx(5 * float(weights.sparse.weight.abs().sum()))
    network = small(name, l1="representations").train()
    features = network.sparse(network.encode(panels(network)))
    network(panels(network))
    assert float(network.penalty()) == pytest.approx(float(features.abs().sum(-1).mean()))
    assert float(network.penalty()) == 0  # what a call left is taken once
    assert float(small(name).penalty()) == 0


def test_mnm_adds_what_its_memory_misses():
    network = small("mnm").train()
    network(panels(network))
    first = network.penalty()
    assert first > 0
    assert first.requires_grad
    network.eval()(panels(network))
    assert float(network.penalty()) == 0


def test_mix_chooses_one_matrix_per_example():
    network = small("corelnet", matrix="mix").train()
    z = network.represent(panels(network, batch=64))
    similar, different = ms.nn.CoRelNet.__mro__[1].relations(network, z), network.differences(z)
    found = network.relations(z)
    which = [torch.allclose(found[b], similar[b]) for b in range(64)]
    assert 0 < sum(which) < 64
    assert all(torch.allclose(found[b], (similar if which[b] else different)[b]) for b in range(64))
    network.eval()
    assert torch.equal(network.relations(z), network.relations(z))


@pytest.mark.parametrize("core", ["gru", "scornn", "urnn", "lstm"])
@pytest.mark.parametrize("name", ["relational-lstm", "esbn"])
def test_any_recurrent_network_is_a_core(name, core):
    network = ms.nn.create(name, panels=3, answers=2, input_size=(3, 8, 8), core=core, hidden_size=6)
    assert network(panels(network)).shape == (5, 2)


@pytest.mark.parametrize("name", [name for name in NAMES if ms.nn.get(name).has_relations])
def test_relations_are_distributions_over_panels(name):
    network = small(name)
    found = network.relations(network.represent(panels(network)))
    assert found.shape == (5, 4, 4)
    if name == "predinet":
        torch.testing.assert_close(found.sum((1, 2)), torch.ones(5, dtype=torch.float64))
        return
    rows = found.sum(-1)
    if name == "esbn":
        assert (rows[:, 0] == 0).all()
        rows = rows[:, 1:]
    torch.testing.assert_close(rows, torch.ones_like(rows))


@pytest.mark.parametrize(
    ("name", "options", "line"),
    [
        ("corelnet", {"panels": 1}, "panels must be at least 2, since relations are between them, got 1"),
        ("corelnet", {"answers": 0}, "answers must be a positive integer, got 0"),
        ("corelnet", {"input_size": (3, 7, 8)}, "the height of input_size must be at least 8 pixels"),
        ("corelnet", {"input_size": 3072}, "input_size must be 3 positive integers, got 3072"),
        ("corelnet", {"encoder": "frozen"}, "encoder must be 'learned' or 'random', got 'frozen'"),
        (
            "corelnet",
            {"segments": (2, 1, 1)},
            "segments must be numbers of panels, each at least 2, that sum to 4",
        ),
        (
            "corelnet",
            {"matrix": "dif"},
            "matrix must be 'similarity' or 'diff' or 'mix', got 'dif'; did you mean 'diff'?",
        ),
        ("corelnet", {"nhid": "big"}, "nhid must be a positive integer or 'esbn', got 'big'"),
        ("corelnet", {"l1_strength": -1}, "l1_strength must be a number that is not negative, got -1"),
        ("corelnet", {"symetric": True}, "CoRelNet has no option 'symetric'"),
        ("relational-ntm", {"memory": 10}, "memory must be two positive integers, slots and their width, got 10"),
        (
            "relational-lstm",
            {"core": "tt"},
            "core must be the name of a recurrent network, got 'tt', which is",
        ),
        ("relational-lstm", {"core": "lstn"}, "there is no network named 'lstn'; did you mean 'lstm'?"),
    ],
)
def test_one_line_for_a_wrong_option(name, options, line):
    with pytest.raises(UserError) as caught:
        small(name, **options)
    assert str(caught.value).startswith(line)


def test_inputs_that_do_not_fit():
    network = small("corelnet")
    given = panels(network)
    with pytest.raises(UserError, match="input must be of 4 panels, got 3"):
        network(Panels(given.images, given.index[:3]))
    with pytest.raises(UserError, match=r"input must be of shape \(time, batch, 3, 8, 8\)"):
        network(Panels(given.images[:, :2], given.index))
    other = small("relation-network")
    with pytest.raises(UserError, match="has no relation matrix"):
        other.relations(other.represent(given))
