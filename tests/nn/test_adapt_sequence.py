"""Blocks without a state: which are causal, in which order they read, and padded sequences."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.nn.adapt.adapted import AdaptedSequence

T, B, D, N = 6, 4, 3, 5


class Convolution(nn.Module):
    def __init__(self, left, dilation=1):
        super().__init__()
        self.convolution = nn.Conv1d(D, N, 3, dilation=dilation)
        self.padding = (left, 2 * dilation - left)

    def forward(self, x):
        return self.convolution(F.pad(x.transpose(1, 2), self.padding)).transpose(1, 2)


class OutputOnly(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.rnn = nn.GRU(D, N, **options)

    def forward(self, x):
        return self.rnn(x)[0]


class Attention(nn.Module):
    """Its last matrix starts at zero, so that at first it is the identity."""

    def __init__(self, causal):
        super().__init__()
        self.mix, self.out, self.causal = nn.Linear(D, 3 * D), nn.Linear(D, D), causal
        nn.init.zeros_(self.out.weight)

    def forward(self, x):
        q, k, v = self.mix(x).chunk(3, dim=-1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal))


class LongConvolution(nn.Module):
    """By FFT, whose rounding reaches every step."""

    def __init__(self, circular):
        super().__init__()
        self.kernel, self.circular = nn.Parameter(torch.randn(64, D)), circular

    def forward(self, x):
        steps = x.shape[1]
        n = steps if self.circular else 2 * steps
        product = torch.fft.rfft(x, n=n, dim=1) * torch.fft.rfft(self.kernel[:steps], n=n, dim=0)
        return torch.fft.irfft(product, n=n, dim=1)[:, :steps]


class Reversed(nn.Module):
    """Reads only the future."""

    def forward(self, x):
        return x.flip(1).cumsum(1).flip(1)


class Mixer(nn.Module):
    """Takes one length only."""

    def __init__(self, masked):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.register_buffer("mask", torch.ones(8, 8).tril() if masked else torch.ones(8, 8))

    def forward(self, x):
        return torch.einsum("ts,bsd->btd", self.weight * self.mask, x)


class Cached(nn.Module):
    """An attention with a cache that grows; how transformers' decoders are called."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(D, 3 * D)

    def forward(self, inputs_embeds, past_key_values=None):
        q, k, v = self.mix(inputs_embeds).chunk(3, dim=-1)
        if past_key_values is not None:
            k, v = (torch.cat([old, new], dim=1) for old, new in zip(past_key_values, (k, v), strict=True))
        scores = q @ k.mT + torch.full((q.shape[1], k.shape[1]), -torch.inf).triu(1 + k.shape[1] - q.shape[1])
        return {"last_hidden_state": scores.softmax(-1) @ v, "past_key_values": (k, v)}


CAUSAL = {
    "convolution": (lambda: Convolution(2), {}),
    "dilated": (lambda: Convolution(16, dilation=8), {}),
    "recurrent inside": (lambda: OutputOnly(batch_first=True), {}),
    "attention": (lambda: Attention(True), {}),
    "fft": (lambda: LongConvolution(False), {}),
    "steps apart": (lambda: nn.Sequential(nn.Linear(D, N), nn.ReLU(), nn.Linear(N, 2)), {}),
    "cache": (Cached, {}),
    "one length": (lambda: Mixer(True), {"input_size": D, "length": 8}),
}
NOT_CAUSAL = {
    "convolution": (lambda: Convolution(1), {}),
    "dilated": (lambda: Convolution(8, dilation=8), {}),
    "bidirectional": (lambda: OutputOnly(batch_first=True, bidirectional=True), {}),
    "zero attention": (lambda: Attention(False), {}),
    "circular": (lambda: LongConvolution(True), {}),
    "reversed": (Reversed, {"input_size": D}),
    "encoder": (lambda: nn.TransformerEncoderLayer(D, 1, 8, batch_first=True), {}),
    "one length": (lambda: Mixer(False), {"input_size": D, "length": 8}),
}


@pytest.mark.parametrize("name", CAUSAL)
def test_causal_blocks(name):
    make, options = CAUSAL[name]
    network = ms.adapt(make(), **options)
    assert isinstance(network, AdaptedSequence)
    assert (network.kind, network.causal, network.input_size) == ("sequence", True, D)
    network.require_causal("anything")


@pytest.mark.parametrize("name", NOT_CAUSAL)
def test_blocks_that_read_the_future(name):
    make, options = NOT_CAUSAL[name]
    network = ms.adapt(make(), **options)
    assert not network.causal
    assert "it is not causal" in network.guesses[-1]
    with pytest.raises(
        UserError, match=r"^lag-copy needs a causal network, and this one is not: its output at step \d"
    ):
        network.require_causal("lag-copy")


@pytest.mark.parametrize("name", ["convolution", "recurrent inside", "fft", "cache"])
def test_output_is_the_module_s(name):
    module = CAUSAL[name][0]()
    x = torch.randn(B, T, D)
    expected = module(x)
    expected = expected if isinstance(expected, torch.Tensor) else expected["last_hidden_state"]
    network = ms.adapt(module)
    assert network.output_size == expected.shape[-1]
    torch.testing.assert_close(network(x.transpose(0, 1)), expected.transpose(0, 1))
    torch.testing.assert_close(network(x[1]), expected[1])
    torch.testing.assert_close(ms.adapt(module, batch_first=True)(x), expected)


@pytest.mark.parametrize("make", [OutputOnly, lambda: nn.TransformerEncoderLayer(D, 1, 8, dropout=0.0)])
@pytest.mark.parametrize("batch_first", [None, False, True])
def test_time_first_blocks_are_found_out(make, batch_first):
    module = make()
    network = ms.adapt(module, batch_first=batch_first)
    assert any("(time, batch, features)" in guess for guess in network.guesses)
    x = torch.randn(T, B, D)
    if batch_first:
        torch.testing.assert_close(network(x.transpose(0, 1)).transpose(0, 1), module(x))
    else:
        torch.testing.assert_close(network(x), module(x))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_channels_first_and_computed_weights():
    """As the blocks of temporal convolutional networks: (batch, channels, time), and torch's old weight_norm."""
    module = nn.utils.weight_norm(nn.Conv1d(D, N, 3, padding=1))
    network = ms.adapt(module)
    assert any("(batch, features, time)" in guess for guess in network.guesses)
    assert not network.causal
    x = torch.randn(T, B, D)
    torch.testing.assert_close(network(x), module(x.permute(1, 2, 0)).permute(2, 0, 1))
    twin = copy.deepcopy(network)
    torch.testing.assert_close(twin(x), network(x))
    assert ms.adapt(module, layout="bht").input_size == D
    with pytest.raises(UserError, match="Conv1d must take an input of shape"):
        ms.adapt(module, layout="bth")


@pytest.mark.parametrize("name", ["convolution", "attention", "recurrent inside"])
@pytest.mark.parametrize("causal", [True, False])
def test_padding_changes_nothing(name, causal):
    make, _ = (CAUSAL if causal else NOT_CAUSAL | {"attention": NOT_CAUSAL["zero attention"]}).get(name) or NOT_CAUSAL[
        "bidirectional"
    ]
    network = ms.adapt(make())
    assert network.causal is causal
    x, lengths = torch.randn(T, B, D), [2, 6, 1, 6]
    output = network(x, lengths)
    torch.testing.assert_close(network(x, torch.tensor(lengths)), output)
    for i, length in enumerate(lengths):
        torch.testing.assert_close(output[:length, i], network(x[:length, i]))
        assert not output[length:, i].any()
    torch.testing.assert_close(network(x, [T] * B), network(x))


def test_gradients_and_parameters():
    network = ms.adapt(Convolution(2))
    x = torch.randn(T, B, D, requires_grad=True)
    network(x, [6, 5, 2, 1]).square().sum().backward()
    assert (x.grad[:, 2].abs().sum(-1) > 0).tolist() == [True, True] + [False] * 4
    assert all(p.grad is not None for p in network.parameters())
    before = copy.deepcopy(network.state_dict())
    network.reset_parameters()
    assert all(not torch.equal(value, before[name]) for name, value in network.state_dict().items())
    ms.adapt(nn.TransformerEncoderLayer(D, 1, 8)).reset_parameters()


def test_dropout_is_off_while_probing_and_on_in_training():
    module = nn.Sequential(nn.Linear(D, N), nn.Dropout(0.5))
    network = ms.adapt(module)
    x = torch.randn(T, B, D)
    assert network.training
    assert not torch.equal(network(x), network(x))
    network.eval()
    assert torch.equal(network(x), network(x))


@pytest.mark.parametrize(
    "lengths", [[1, 2], [0, 1, 1, 1], [7, 1, 1, 1], [1.5, 1, 1, 1], "abc", torch.ones(4, 1, dtype=torch.int64)]
)
def test_wrong_lengths(lengths):
    with pytest.raises(UserError, match="^lengths must be 4 whole numbers[^\n]*$"):
        ms.adapt(Convolution(2))(torch.zeros(T, B, D), lengths)


@pytest.mark.parametrize(
    "wrong", [torch.zeros(T, B, D + 1), torch.zeros(D), torch.zeros(0, B, D), [1], torch.zeros(T, D).int()]
)
def test_wrong_input(wrong):
    with pytest.raises(UserError, match="input[^\n]*must be[^\n]*got[^\n]*"):
        ms.adapt(Convolution(2))(wrong)
