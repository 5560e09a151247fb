"""Modules over whole sequences in the shapes in which people write them."""

from dataclasses import dataclass

import torch
from torch import nn


class Encoder(nn.Module):
    """Batch first, whatever torch's default."""

    def __init__(self, input_dim, hidden_dim):
        super().__init__()
        self.rnn = nn.GRU(input_dim, hidden_dim, batch_first=True)

    def forward(self, x, hidden=None):
        return self.rnn(x, hidden)


class AsDict(Encoder):
    def forward(self, inputs, state=None):
        output, state = self.rnn(inputs, state)
        return {"output": output, "state": state}


@dataclass
class Answer:
    last_hidden_state: torch.Tensor
    past: torch.Tensor


class AsObject(Encoder):
    def forward(self, inputs_embeds, past=None):
        return Answer(*self.rnn(inputs_embeds, past))


class Loop(nn.Module):
    """A loop over time by hand, with lists of states of its layers."""

    def __init__(self, input_size, hidden_size, num_layers=1):
        super().__init__()
        self.hidden_size = hidden_size
        self.cells = nn.ModuleList(
            nn.LSTMCell(input_size if i == 0 else hidden_size, hidden_size) for i in range(num_layers)
        )

    def forward(self, x, state=None):
        if state is None:
            state = [(x.new_zeros(x.shape[1], self.hidden_size),) * 2 for _ in self.cells]
        outputs = []
        for y in x:
            after = []
            for cell, pair in zip(self.cells, state, strict=True):
                pair = cell(y, pair)
                y = pair[0]
                after.append(pair)
            state = after
            outputs.append(y)
        return torch.stack(outputs), state


class Decaying(nn.Module):
    """The recurrence that the next ones share: a decaying sum of what is read, batch first."""

    def __init__(self, d_model, d_state=8):
        super().__init__()
        self.d_state = d_state
        self.rate = nn.Parameter(torch.linspace(-1.0, 3.0, d_model * d_state).view(d_model, d_state))
        self.read, self.out = nn.Parameter(torch.randn(d_model, d_state)), nn.Linear(d_model, d_model)

    def advance(self, x, state):
        state = torch.sigmoid(self.rate) * state + x.unsqueeze(-1) * self.read
        return self.out(state.sum(-1)), state

    def run(self, x, state):
        outputs = []
        for x_t in x.unbind(1):
            y, state = self.advance(x_t, state)
            outputs.append(y)
        return torch.stack(outputs, 1), state

    def zeros(self, x):
        return x.new_zeros(x.shape[0], x.shape[-1], self.d_state)


class ReturnState(Decaying):
    def forward(self, x, state=None, return_state=False):
        y, state = self.run(x, self.zeros(x) if state is None else state)
        return (y, state) if return_state else y


class ReturnLastState(Decaying):
    def forward(self, x, last_state=None, return_last_state=False):
        y, state = self.run(x, self.zeros(x) if last_state is None else last_state)
        return (y, state) if return_last_state else y


class PrevHidden(Decaying):
    def forward(self, x, prev_hidden=None, return_next_prev_hidden=False):
        y, state = self.run(x, self.zeros(x) if prev_hidden is None else prev_hidden)
        return (y, state) if return_next_prev_hidden else y


class Step(Decaying):
    """Whole sequences by forward, one step by step, which takes the state."""

    def forward(self, x):
        return self.run(x, self.zeros(x))[0]

    def step(self, x, state):
        return self.advance(x, state)


class StepCache(Decaying):
    """As the packages of state spaces do: a cache of several things, made by a method."""

    def forward(self, x):
        return self.run(torch.relu(x + self._shifted(x)), self.zeros(x))[0]

    def _shifted(self, x):
        return torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)

    def allocate_inference_cache(self, batch_size):
        d = self.out.in_features
        return torch.zeros(batch_size, d, self.d_state), torch.zeros(batch_size, d)

    def step(self, x, cache):
        state, before = cache
        y, state = self.advance(torch.relu(x + before), state)
        return y, (state, x)


class Recurrent(Decaying):
    """Parallel by forward, one after the other by forward_recurrent."""

    def forward(self, x):
        return self.run(x, self.zeros(x))[0]

    def forward_recurrent(self, x_n, s_n_1):
        return self.advance(x_n, s_n_1)


class Inference(Decaying):
    """One step of shape (batch, 1, features) by inference."""

    def forward(self, x):
        return self.run(x, self.zeros(x))[0]

    def inference(self, x, state=None):
        return self.run(x, self.zeros(x) if state is None else state)


class KeptInside(nn.Module):
    """Keeps its state on itself, with a method that forgets it."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.cell, self.h = nn.GRUCell(input_size, hidden_size), None

    def reset(self):
        self.h = None

    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h


class Wrapped(nn.Module):
    """Many to one, with a cell inside that does the work."""

    def __init__(self, input_size, hidden_size, num_classes):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(input_size, hidden_size), nn.Linear(hidden_size, num_classes)

    def forward(self, x):
        state = None
        for x_t in x.unbind(1):
            state = self.cell(x_t, state)
        return self.head(state[0])


class Answering(Decaying):
    """Many to one, with nothing inside that could be taken for a cell: measured by prefixes."""

    def forward(self, x):
        return self.run(x, self.zeros(x))[0][:, -1]


class MaskAndCache(Encoder):
    def forward(self, x, attention_mask=None, cache=None):
        return self.rnn(x, cache)


class Positions(Encoder):
    def forward(self, x, position, cache=None):
        y, cache = self.rnn(x + 0.0 * position, cache)
        return y, cache


class Channels(nn.Module):
    """(batch, features, time), as convolutions read."""

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3)

    def forward(self, x):
        return torch.relu(self.conv(nn.functional.pad(x, (2, 0))))


class Turned(nn.Module):
    """Reads batch first and answers time first."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.rnn = nn.GRU(input_size, hidden_size, batch_first=True)

    def forward(self, x, h=None):
        y, h = self.rnn(x, h)
        return y.transpose(0, 1), h


class Attention(nn.Module):
    """No state at all: it looks back."""

    def __init__(self, embed_dim, num_heads=2):
        super().__init__()
        self.attention = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        return x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]


class FixedLength(nn.Module):
    """A learned matrix over time: one length only."""

    def __init__(self, dim, seq_len):
        super().__init__()
        self.mix, self.out = nn.Parameter(torch.randn(seq_len, seq_len) / seq_len), nn.Linear(dim, dim)

    def forward(self, x):
        return self.out(torch.einsum("ts,bsd->btd", self.mix.tril(), x))


class Fourier(nn.Module):
    """A long convolution by FFT, whose rounding reaches every step."""

    def __init__(self, d_model):
        super().__init__()
        self.decay = nn.Parameter(torch.linspace(0.1, 2.0, d_model))

    def forward(self, x):
        time = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
        kernel = torch.exp(-self.decay * time.unsqueeze(1))
        n = 2 * x.shape[1]
        return torch.fft.irfft(torch.fft.rfft(x, n, dim=1) * torch.fft.rfft(kernel, n, dim=0), n, dim=1)[
            :, : x.shape[1]
        ]


class Both(nn.Module):
    """Runs both ways, so that nothing asks it how long it remembers."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.rnn = nn.LSTM(input_size, hidden_size, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]
