"""LSTM and GRU against torch's own, GORU and h-detach against loops written from DETAILS (Networks)."""

import collections
import itertools

import numpy as np
import pytest
import scipy.stats
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import mnemoscope as ms

TORCH = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
D, N, T, B = 3, 5, 7, 4


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make(name, num_layers=2, seed=0, input_size=D, hidden_size=N, **options):
    """A network whose every parameter, biases included, is random."""
    generator = torch.Generator().manual_seed(seed)
    layer = ms.nn.create(
        name,
        input_size=input_size,
        hidden_size=hidden_size,
        num_layers=num_layers,
        dtype=torch.float64,
        generator=generator,
        **options,
    )
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator, dtype=torch.float64))
    return layer


def flat(value):
    """The tensors of a tensor, a PackedSequence or nested tuples of them."""
    if isinstance(value, PackedSequence):
        return [value.data, value.batch_sizes]
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in flat(part)]
    return [value]


def assert_same(actual, expected, atol=1e-12):
    actual, expected = flat(actual), flat(expected)
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=0, atol=atol)


def state(name, seed, rows, *batch):
    tensors = [draw(seed + i, rows, *batch, N) for i in range(2)]
    return tuple(tensors) if "lstm" in name else tensors[0]


# LSTM and GRU --------------------------------------------------------------------------------------------------------


def pair(name, **options):
    """Ours and torch's with the same weights, by state_dict."""
    torch.manual_seed(0)
    oracle = TORCH[name](D, N, 2, dtype=torch.float64, **options)
    layer = make(name, **options)
    layer.load_state_dict(oracle.state_dict())
    return layer, oracle


OPTIONS = [
    {},
    {"bidirectional": True},
    {"batch_first": True},
    {"bias": False},
    {"batch_first": True, "bidirectional": True, "bias": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", TORCH)
def test_equals_torch_in_every_calling_form(name, options):
    layer, oracle = pair(name, **options)
    rows = 4 if options.get("bidirectional") else 2
    x = draw(1, B, T, D) if options.get("batch_first") else draw(1, T, B, D)
    hx = state(name, 2, rows, B)
    assert_same(layer(x), oracle(x))
    assert_same(layer(x, hx), oracle(x, hx))
    one, one_state = draw(3, T, D), state(name, 4, rows)  # unbatched
    assert_same(layer(one), oracle(one))
    assert_same(layer(one, one_state), oracle(one, one_state))
    for lengths, ordered in [([7, 5, 5, 1], True), ([3, 7, 1, 6], False)]:
        packed = pack_padded_sequence(
            x, torch.tensor(lengths), batch_first=options.get("batch_first", False), enforce_sorted=ordered
        )
        assert_same(layer(packed), oracle(packed))
        assert_same(layer(packed, hx), oracle(packed, hx))
        ours, theirs = (pad_packed_sequence(module(packed)[0]) for module in (layer, oracle))
        assert_same(tuple(ours), tuple(theirs))


@pytest.mark.parametrize("name", TORCH)
def test_gradients_equal_torchs(name):
    layer, oracle = pair(name)
    found = []
    for module in (layer, oracle):
        x = draw(1, T, B, D).requires_grad_()
        output, final = module(x, state(name, 2, 2, B))
        (output * draw(5, *output.shape)).sum().add(sum(h.square().sum() for h in flat(final))).backward()
        found.append([x.grad, *(p.grad for _, p in sorted(module.named_parameters()))])
    assert_same(tuple(found[0]), tuple(found[1]), atol=1e-10)


@pytest.mark.parametrize("name", TORCH)
def test_dropout_between_layers_is_torchs(name):
    layer, oracle = pair(name, dropout=0.5)
    x = draw(1, T, B, D)
    results = []
    for module in (layer, oracle):
        torch.manual_seed(3)
        results.append(module(x))
    assert_same(*results)
    layer.eval()
    oracle.eval()
    assert_same(layer(x), oracle(x))


@pytest.mark.parametrize("name", TORCH)
def test_state_dict_has_torchs_names_and_loads_both_ways(name):
    layer, oracle = pair(name, bidirectional=True)
    assert list(layer.state_dict()) == list(oracle.state_dict())
    other = TORCH[name](D, N, 2, bidirectional=True, dtype=torch.float64)
    other.load_state_dict(layer.state_dict())
    x = draw(1, T, B, D)
    assert_same(other(x), oracle(x))


@pytest.mark.parametrize("name", TORCH)
def test_starts_like_torch(name):
    """U(-1/sqrt n, 1/sqrt n) for every parameter."""
    layer = ms.nn.create(name, input_size=50, hidden_size=100, generator=torch.Generator().manual_seed(0))
    for key, p in layer.named_parameters():
        values = p.detach().numpy().ravel()
        assert abs(values).max() <= 0.1, key
        assert scipy.stats.kstest(values, "uniform", args=(-0.1, 0.2)).pvalue > 1e-3, key


@pytest.mark.parametrize("name", ["lstm", "gru", "goru", "h-detach-lstm"])
def test_step_by_step_equals_forward(name):
    layer = make(name).eval()
    x = draw(1, T, B, D)
    now = layer.init_state(B, device="cpu", dtype=torch.float64)
    assert all(not leaf.any() for leaf in flat(now))
    assert [leaf.shape for leaf in flat(now)] == [(2, B, N)] * (2 if "lstm" in name else 1)
    outputs = []
    for x_t in x:
        y, now = layer.step(x_t, now)
        outputs.append(y)
    output, final = layer(x)
    assert_same(torch.stack(outputs), output)
    assert_same(now, final)


@pytest.mark.parametrize("name", TORCH)
def test_step_without_bias(name):
    layer, oracle = pair(name, bias=False)
    hx = state(name, 2, 2, B)
    y, after = layer.step(draw(1, B, D), hx)
    expected, expected_after = oracle(draw(1, B, D)[None], hx)
    assert_same(y, expected[0])
    assert_same(after, expected_after)


def test_lstm_by_hand():
    """i, f, o sigmoid, g tanh (torch's order i, f, g, o); c = f c + i g; h = o tanh(c)."""
    layer = make("lstm", num_layers=1)
    sigmoid = torch.sigmoid
    h, c = torch.zeros(B, N, dtype=torch.float64), torch.zeros(B, N, dtype=torch.float64)
    x = draw(1, T, B, D)
    output, final = layer(x)
    for t in range(T):
        a = x[t] @ layer.weight_ih_l0.T + layer.bias_ih_l0 + h @ layer.weight_hh_l0.T + layer.bias_hh_l0
        i, f, g, o = a.chunk(4, dim=-1)
        c = sigmoid(f) * c + sigmoid(i) * torch.tanh(g)
        h = sigmoid(o) * torch.tanh(c)
        assert_same(output[t], h)
    assert_same(final, (h[None], c[None]))


# GORU ----------------------------------------------------------------------------------------------------------------


def goru_by_hand(layer, x, h0):
    """r, z = sigmoid(W x + U h + b); h = z h + (1 - z) modReLU(W x + r (V h)), entry by entry in NumPy."""
    y, finals = x, []
    for k in range(layer.num_layers):
        W, U, V, gate_bias, bias = (
            getattr(layer, f"{name}_l{k}").detach().numpy()
            for name in ("weight_ih", "weight_gate", "weight_hh", "bias_gate", "bias")
        )
        n, h, outputs = len(V), h0[k], []
        for x_t in y:
            r = 1 / (1 + np.exp(-(x_t @ W[:n].T + h @ U[:n].T + gate_bias[:n])))
            z = 1 / (1 + np.exp(-(x_t @ W[n : 2 * n].T + h @ U[n:].T + gate_bias[n:])))
            a = x_t @ W[2 * n :].T + r * (h @ V.T)
            candidate = np.sign(a) * np.maximum(abs(a) + bias, 0)
            h = z * h + (1 - z) * candidate
            outputs.append(h)
        y = np.stack(outputs)
        finals.append(h)
    return y, np.stack(finals)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_goru_is_its_equation(num_layers):
    layer = make("goru", num_layers)
    x, h0 = draw(1, T, B, D), draw(2, num_layers, B, N)
    output, final = layer(x, h0)
    expected_output, expected_final = goru_by_hand(layer, x.numpy(), h0.numpy())
    np.testing.assert_allclose(output.detach().numpy(), expected_output, rtol=0, atol=1e-12)
    np.testing.assert_allclose(final.detach().numpy(), expected_final, rtol=0, atol=1e-12)


def test_goru_matrix_is_orthogonal_and_its_gates_are_free():
    layer = make("goru")
    for k in range(2):
        V = getattr(layer, f"weight_hh_l{k}").detach()
        torch.testing.assert_close(V.T @ V, torch.eye(N, dtype=torch.float64), rtol=0, atol=1e-13)
    assert layer.weight_ih_l0.shape == (3 * N, D)
    assert layer.weight_ih_l1.shape == (3 * N, N)
    assert layer.weight_gate_l0.shape == (2 * N, N)
    assert layer.bias_gate_l0.shape == (2 * N,)
    assert layer.bias_l0.shape == (N,)


def test_goru_with_closed_update_gate_keeps_its_state():
    layer = make("goru", num_layers=1)
    with torch.no_grad():
        layer.bias_gate_l0[N:] = 100.0  # z = 1
    h0 = draw(2, 1, B, N)
    _, final = layer(draw(1, T, B, D), h0)
    torch.testing.assert_close(final, h0, rtol=0, atol=1e-12)


# h-detach ------------------------------------------------------------------------------------------------------------


def as_lstm(layer):
    """torch's LSTM with the weights of an h-detach LSTM: its one bias in bias_ih."""
    oracle = torch.nn.LSTM(layer.input_size, layer.hidden_size, layer.num_layers, dtype=torch.float64)
    with torch.no_grad():
        for name, p in oracle.named_parameters():
            if name.startswith("bias_hh"):
                p.zero_()
            else:
                p.copy_(getattr(layer, name.replace("bias_ih", "bias")))
    return oracle


def detached_loop(layer, x, hx, detached):
    """An LSTM in which h_{t-1} enters the gates without its gradient at the steps where detached[layer][t]."""
    y, hs, cs = x, [], []
    for k in range(layer.num_layers):
        W, U, b = (getattr(layer, f"{name}_l{k}") for name in ("weight_ih", "weight_hh", "bias"))
        h, c, outputs = hx[0][k], hx[1][k], []
        for t, x_t in enumerate(y):
            seen = h.detach() if detached[k][t] else h
            i, f, g, o = (x_t @ W.T + seen @ U.T + b).chunk(4, dim=-1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        y = torch.stack(outputs)
        hs.append(h)
        cs.append(c)
    return y, (torch.stack(hs), torch.stack(cs))


def gradients(run, layer, num_layers):
    """Of a loss of all outputs and the final state, for the input, the initial state and the weights."""
    x, h0, c0 = draw(1, T, B, D), draw(2, num_layers, B, N), draw(3, num_layers, B, N)
    leaves = [x.requires_grad_(), h0.requires_grad_(), c0.requires_grad_()]
    output, (h, c) = run(x, (h0, c0))
    loss = (output * draw(4, *output.shape)).sum() + (h * draw(5, *h.shape)).sum() + (c * draw(6, *c.shape)).sum()
    weights = [p for name, p in sorted(layer.named_parameters()) if not name.startswith("bias_hh")]
    found = torch.autograd.grad(loss, [*leaves, *weights], allow_unused=True)
    return (
        output,
        h,
        c,
        *(torch.zeros_like(p) if g is None else g for g, p in zip(found, [*leaves, *weights], strict=True)),
    )


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("probability", [0.0, 0.25, 1.0])
def test_h_detach_in_evaluation_is_an_lstm(probability, num_layers):
    layer = make("h-detach-lstm", num_layers, probability=probability).eval()
    oracle = as_lstm(layer)
    assert_same(gradients(layer, layer, num_layers), gradients(oracle, oracle, num_layers), atol=1e-10)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_h_detach_with_probability_zero_is_an_lstm_in_training(num_layers):
    layer = make("h-detach-lstm", num_layers, probability=0.0).train()
    oracle = as_lstm(layer)
    assert_same(gradients(layer, layer, num_layers), gradients(oracle, oracle, num_layers), atol=1e-10)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_h_detach_with_probability_one_blocks_every_step_in_training(num_layers):
    layer = make("h-detach-lstm", num_layers, probability=1.0).train()
    detached = [[True] * T] * num_layers
    expected = gradients(lambda x, hx: detached_loop(layer, x, hx, detached), layer, num_layers)
    actual = gradients(layer, layer, num_layers)
    assert_same(actual, expected, atol=1e-10)
    assert not actual[4].any()  # nothing reaches h_0 ..
    assert actual[5].abs().max() > 1e-3  # .. but through c_0 the gradient flows


def test_h_detach_values_in_training_are_those_of_an_lstm():
    torch.manual_seed(0)
    layer = make("h-detach-lstm", probability=0.5).train()
    x, hx = draw(1, T, B, D), state("lstm", 2, 2, B)
    assert_same(layer(x, hx), as_lstm(layer)(x, hx))


def test_h_detach_probability_is_a_quarter_by_default():
    assert make("h-detach-lstm").options["probability"] == 0.25


@pytest.mark.parametrize("probability", [0.25, 0.6])
def test_h_detach_blocks_single_steps_at_random_with_its_probability(probability):
    """The gradient of a 3-step run tells which of the 8 patterns of blocked steps was drawn.

    800 runs of one example; the counts against independent draws of probability p, chi-squared at 0.1%.
    """
    layer = make("h-detach-lstm", num_layers=1, hidden_size=2, input_size=1, probability=probability).train()
    x, hx = draw(1, 3, 1, 1), (draw(2, 1, 1, 2).requires_grad_(), draw(3, 1, 1, 2))
    leaves = [layer.weight_ih_l0, hx[0]]

    def signature(run):
        found = torch.autograd.grad(run(x, hx)[0].sum(), leaves, allow_unused=True)
        return torch.cat([torch.zeros(2).double() if g is None else g.flatten() for g in found])

    patterns = list(itertools.product([False, True], repeat=3))
    signatures = torch.stack([signature(lambda a, b, p=p: detached_loop(layer, a, b, [p])) for p in patterns])
    assert torch.pdist(signatures).min() > 1e-6  # every pattern can be told from every other
    torch.manual_seed(1)
    counts = collections.Counter()
    for _ in range(800):
        distances = (signatures - signature(layer)).norm(dim=1)
        assert distances.min() < 1e-10, "a gradient that no pattern of blocked steps has"
        counts[patterns[int(distances.argmin())]] += 1
    expected = [800 * probability ** sum(p) * (1 - probability) ** (3 - sum(p)) for p in patterns]
    assert scipy.stats.chisquare([counts[p] for p in patterns], expected).pvalue > 1e-3
    blocked = sum(sum(p) * k for p, k in counts.items()) / 2400
    assert abs(blocked - probability) < 4 * np.sqrt(probability * (1 - probability) / 2400)


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan"), "often"])
def test_h_detach_refuses_what_is_no_probability(probability):
    with pytest.raises(ValueError, match="probability") as error:
        ms.nn.create("h-detach-lstm", input_size=2, hidden_size=3, probability=probability)
    assert "\n" not in str(error.value)
