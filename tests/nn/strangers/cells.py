"""Cells in the shapes in which people write them: one step at a time, the state in and out."""

import itertools

import torch
from torch import nn


class Mix(nn.Module):
    """The arithmetic that all of these share: tanh of two affine maps."""

    def __init__(self, inputs, units):
        super().__init__()
        self.read, self.carry = nn.Linear(inputs, units), nn.Linear(units, units, bias=False)

    def forward(self, x, h):
        return torch.tanh(self.read(x) + self.carry(h))


class Plain(nn.Module):
    def __init__(self, n_inp, n_hid):
        super().__init__()
        self.mix = Mix(n_inp, n_hid)

    def forward(self, x, h):
        return self.mix(x, h)


class Tuple(Plain):
    def forward(self, x, state):
        h, c = state
        c = 0.5 * c + self.mix(x, h)
        return torch.tanh(c), c


class TwoArguments(Plain):
    def forward(self, x, h, c):
        c = 0.5 * c + self.mix(x, h)
        return torch.tanh(c), c


class Oscillator(nn.Module):
    """Two states whose names say nothing, and steps of its own."""

    def __init__(self, n_inp, n_hid, dt, gamma, epsilon):
        super().__init__()
        self.dt, self.gamma, self.epsilon, self.mix = dt, gamma, epsilon, Mix(n_inp, n_hid)

    def forward(self, x, y, z):
        z = z + self.dt * (self.mix(x, y) - self.gamma * y - self.epsilon * z)
        return y + self.dt * z, z


class StateFirst(Plain):
    def forward(self, h, x):
        return self.mix(x, h)


class OutputToo(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim):
        super().__init__()
        self.mix, self.out = Mix(input_dim, hidden_dim), nn.Linear(hidden_dim, output_dim)

    def forward(self, x, hidden):
        hidden = self.mix(x, hidden)
        return self.out(hidden), hidden


class Extra(OutputToo):
    """Returns a gate besides."""

    def forward(self, x, hidden):
        gate = torch.sigmoid(self.mix.read(x))
        hidden = gate * hidden + (1 - gate) * self.mix(x, hidden)
        return self.out(hidden), hidden, gate


class Dictionary(Plain):
    def forward(self, x, state=None):
        if state is None:
            zeros = x.new_zeros(len(x), self.mix.carry.in_features)
            state = {"h": zeros, "trace": zeros}
        h = self.mix(x, state["h"])
        return h, {"h": h, "trace": 0.9 * state["trace"] + h}


class PerLayer(nn.Module):
    def __init__(self, input_size, layer_sizes):
        super().__init__()
        widths = [input_size, *layer_sizes]
        self.layers = nn.ModuleList(Mix(a, b) for a, b in itertools.pairwise(widths))

    def forward(self, x, states=None):
        if states is None:
            states = [x.new_zeros(len(x), layer.carry.in_features) for layer in self.layers]
        after = []
        for layer, h in zip(self.layers, states, strict=True):
            x = layer(x, h)
            after.append(x)
        return x, after


class InPlace(PerLayer):
    """Writes into the list that it was given."""

    def forward(self, x, states=None):
        if states is None:
            states = [x.new_zeros(len(x), layer.carry.in_features) for layer in self.layers]
        for i, layer in enumerate(self.layers):
            x = states[i] = layer(x, states[i])
        return x, states


class Nested(nn.Module):
    """Two layers, each with a pair."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.one, self.two = nn.LSTMCell(input_size, hidden_size), nn.LSTMCell(hidden_size, hidden_size)

    def forward(self, x, state=None):
        one, two = (None, None) if state is None else state
        one = self.one(x, one)
        two = self.two(one[0], two)
        return two[0], (one, two)


class Matrix(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size, self.key = hidden_size, nn.Linear(input_size, hidden_size)
        self.value = nn.Linear(input_size, hidden_size)

    def forward(self, x, memory=None):
        if memory is None:
            memory = x.new_zeros(len(x), self.hidden_size, self.hidden_size)
        k = torch.softmax(self.key(x), -1)
        memory = 0.9 * memory + k.unsqueeze(-1) * self.value(x).unsqueeze(-2)
        return (k.unsqueeze(-2) @ memory).squeeze(-2), memory


class Complex(nn.Module):
    def __init__(self, in_features, state_features):
        super().__init__()
        self.angle = nn.Parameter(torch.linspace(0.1, 3.0, state_features))
        self.read = nn.Linear(in_features, state_features)
        self.out = nn.Linear(state_features, in_features)

    def forward(self, x, state=None):
        if state is None:
            state = torch.zeros(len(x), len(self.angle), dtype=torch.complex64, device=x.device)
        state = 0.97 * torch.polar(torch.ones_like(self.angle), self.angle) * state + self.read(x)
        return self.out(state.real), state


class RealZeros(nn.Module):
    """Its state is complex, and the zeros that it is given need not be."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.angle = nn.Parameter(torch.linspace(0.1, 3.0, hidden_size))
        self.read = nn.Linear(input_size, hidden_size)
        self.out = nn.Linear(2 * hidden_size, hidden_size)

    def forward(self, x, h):
        h = 0.97 * torch.polar(torch.ones_like(self.angle), self.angle) * h + self.read(x)
        return self.out(torch.cat([h.real, h.imag], -1)), h


class Counter(Plain):
    """Keeps the number of the step beside its units."""

    def forward(self, x, state=None):
        if state is None:
            state = x.new_zeros(len(x), self.mix.carry.in_features), torch.zeros(len(x), dtype=torch.long)
        h, t = state
        h = self.mix(x, h) / (1 + t.unsqueeze(1)).to(x) ** 0.1
        return h, (h, t + 1)


class TimeSpans(Plain):
    def forward(self, x, hx, ts):
        return hx + ts * self.mix(x, hx)


class Learned(Plain):
    """Starts from a parameter when it gets no state."""

    def __init__(self, n_inp, n_hid):
        super().__init__(n_inp, n_hid)
        self.h0 = nn.Parameter(torch.linspace(-1, 1, n_hid))

    def forward(self, x, h=None):
        return self.mix(x, self.h0.expand(len(x), -1) if h is None else h)


class InitHidden(Plain):
    def init_hidden(self, batch_size):
        return torch.full((batch_size, self.mix.carry.in_features), 0.5)

    def forward(self, x, h):
        return self.mix(x, h)


class RandomStart(Plain):
    def init_hidden(self, batch_size):
        return torch.randn(batch_size, self.mix.carry.in_features)

    def forward(self, x, h):
        return self.mix(x, h)


class TimeAxis(nn.Module):
    """Wants (1, batch, features) for its one step, as the tutorial on translation does."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size, self.gru = hidden_size, nn.GRU(input_size, hidden_size)

    def forward(self, x, hidden):
        y, hidden = self.gru(x.view(1, -1, self.gru.input_size), hidden)
        return y[0], hidden

    def init_hidden(self, batch):
        return torch.zeros(1, batch, self.hidden_size)


class TwoWidths(nn.Module):
    """A slow state beside a fast one of another width."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.fast, self.slow = Mix(input_size, hidden_size), nn.Linear(hidden_size, hidden_size // 2)

    def forward(self, x, state=None):
        if state is None:
            n = self.slow.in_features
            state = x.new_zeros(len(x), n), x.new_zeros(len(x), n // 2)
        h, s = state
        h = self.fast(x, h)
        s = 0.95 * s + 0.05 * self.slow(h)
        return torch.cat([h, s], -1), (h, s)


class Modules(nn.Module):
    """Several units of several numbers each: (batch, units, numbers)."""

    def __init__(self, input_size, hidden_size, num_units):
        super().__init__()
        self.shape = num_units, hidden_size
        self.read = nn.Linear(input_size, num_units * hidden_size)
        self.carry = nn.Parameter(torch.randn(num_units, hidden_size, hidden_size) / hidden_size**0.5)

    def forward(self, x, hs=None):
        hs = x.new_zeros(len(x), *self.shape) if hs is None else hs
        hs = torch.tanh(self.read(x).view(-1, *self.shape) + torch.einsum("bun,unm->bum", hs, self.carry))
        return hs.flatten(1), hs


class Single(Plain):
    """Only float32: casts inside."""

    def forward(self, x, h):
        return self.mix(x.float(), h.float())


class Square(torch.autograd.Function):
    """Without a rule for vmap or for a second derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class OwnBackward(Plain):
    def forward(self, x, h):
        return self.mix(x, h) - 0.1 * Square.apply(h)


class Normalised(nn.Module):
    """A LayerNorm over the input: blind to a single number."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(input_size), Mix(input_size, hidden_size)

    def forward(self, x, h):
        return self.mix(self.norm(x), h)


class Refreshed(nn.Module):
    """An orthogonal matrix that is computed once and kept until it is told to compute it again."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.read, self.A = nn.Linear(input_size, hidden_size), nn.Parameter(torch.randn(hidden_size, hidden_size))
        self.B = None

    def refresh(self):
        self.B = torch.linalg.matrix_exp(self.A.triu(1) - self.A.triu(1).mT)

    def forward(self, x, h):
        if self.B is None:
            self.refresh()
        return torch.relu(self.read(x) + h @ self.B)


def scripted(input_size, hidden_size):
    """Build a cell that TorchScript compiled."""
    return torch.jit.script(nn.GRUCell(input_size, hidden_size))
