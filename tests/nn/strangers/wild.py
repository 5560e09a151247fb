"""Modules in further conventions of public repositories: written here, as their authors would."""

import itertools
from typing import NamedTuple

import torch
from torch import jit, nn


class StateThenOutput(nn.Module):
    """(new_state, output), and a time t."""

    def __init__(self, input_size, hidden_size, tau_init=1.0):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(input_size + hidden_size, hidden_size), nn.Tanh())
        self.out = nn.Linear(hidden_size, hidden_size)
        self.tau = nn.Parameter(torch.full((hidden_size,), tau_init))

    def forward(self, x, h, t=1.0):
        new = h + t * 0.5 * (self.body(torch.cat([x, h], -1)) - h) / (1 + self.tau**2)
        return new, torch.tanh(self.out(new))


class OscCell(nn.Module):
    def __init__(self, n_inp, n_hid, dt, gamma, epsilon):
        super().__init__()
        self.dt, self.gamma, self.epsilon = dt, gamma, epsilon
        self.i2h = nn.Linear(n_inp + 2 * n_hid, n_hid)

    def forward(self, x, hy, hz):
        hz = hz + self.dt * (torch.tanh(self.i2h(torch.cat((x, hz, hy), 1))) - self.gamma * hy - self.epsilon * hz)
        return hy + self.dt * hz, hz


class Osc(nn.Module):
    """Many to one, cell inside, (T, B, d)."""

    def __init__(self, n_inp, n_hid, n_out, dt, gamma, epsilon):
        super().__init__()
        self.n_hid = n_hid
        self.cell = OscCell(n_inp, n_hid, dt, gamma, epsilon)
        self.readout = nn.Linear(n_hid, n_out)

    def forward(self, x):
        hy = torch.zeros(x.size(1), self.n_hid)
        hz = torch.zeros(x.size(1), self.n_hid)
        for t in range(x.size(0)):
            hy, hz = self.cell(x[t], hy, hz)
        return self.readout(hy)


class NeedsActivation(nn.Module):
    def __init__(self, input_size, hidden_size, activation):
        super().__init__()
        self.W = nn.Linear(input_size, hidden_size)
        self.U = nn.Linear(hidden_size, hidden_size)
        self.act = activation

    def forward(self, x, h=None):
        if h is None:
            h = torch.zeros(x.shape[0], self.U.in_features)
        return self.act(self.W(x) + self.U(h))


class Neurons(nn.Module):
    def __init__(self, neuron_number: int, input_size: int, activation_function: object):
        super().__init__()
        self.__w = nn.Linear(input_size, neuron_number, bias=False)
        self.__r = nn.Linear(neuron_number, neuron_number, bias=False)
        self.__f = activation_function

    def forward(self, x_t, input_t):
        """x_t is the state!"""
        return self.__f(self.__r(x_t) + self.__w(input_t))


class Reservoir(nn.Module):
    """No parameters at all, plain tensors, (T, n_in) or (B,T,n_in) -> states."""

    def __init__(self, n_in, n_res, n_out, spectral_radius=0.9, leak_rate=0.3, seed=None, device="cpu"):
        super().__init__()
        self.n_res = n_res
        self.leak = leak_rate
        if seed is not None:
            torch.manual_seed(seed)
        self.W_in = torch.rand(n_res, n_in) - 0.5
        W = torch.rand(n_res, n_res) - 0.5
        self.W = W * spectral_radius / torch.linalg.eigvals(W).abs().max()
        self.W_out = None

    def forward(self, u, state=None):
        h = torch.zeros(u.shape[0], self.n_res) if state is None else state
        states = []
        for t in range(u.shape[1]):
            h = (1 - self.leak) * h + self.leak * torch.tanh(u[:, t] @ self.W_in.T + h @ self.W.T)
            states.append(h)
        return torch.stack(states, 1), h


class StateFeatures(nn.Module):
    """LRU-like: in_features, out_features, state_features, and a required step h: float."""

    def __init__(self, in_features: int, out_features: int, state_features: int, h: float, rmin=0.5, rmax=0.99):
        super().__init__()
        self.nu = nn.Parameter(torch.rand(state_features))
        self.B = nn.Parameter(torch.randn(state_features, in_features, dtype=torch.cfloat) * 0.3)
        self.C = nn.Parameter(torch.randn(out_features, state_features, dtype=torch.cfloat) * 0.3)
        self.h = h
        self.theta = nn.Parameter(torch.rand(state_features))
        self.D = nn.Parameter(torch.randn(out_features, in_features))

    def forward(self, input, state=None):
        lam = torch.exp(torch.complex(-self.nu.exp() * self.h, self.theta))
        x = torch.zeros(input.shape[0], lam.numel(), dtype=torch.cfloat) if state is None else state
        ys = []
        for t in range(input.shape[1]):
            x = lam * x + input[:, t].to(self.B.dtype) @ self.B.T
            ys.append((x @ self.C.T).real + input[:, t] @ self.D.T)
        return torch.stack(ys, 1), x


class InputShapeInit(nn.Module):
    """init_hidden takes the shape of the input, (T, B, d)."""

    def __init__(self, input_size, hidden_size, dt=None, **kwargs):
        super().__init__()
        self.input_size, self.hidden_size, self.alpha = input_size, hidden_size, 1.0 if dt is None else dt / 100
        self.input2h = nn.Linear(input_size, hidden_size)
        self.h2h = nn.Linear(hidden_size, hidden_size)

    def init_hidden(self, input_shape):
        return torch.zeros(input_shape[1], self.hidden_size)

    def recurrence(self, input, hidden):
        return hidden * (1 - self.alpha) + self.alpha * torch.relu(self.input2h(input) + self.h2h(hidden))

    def forward(self, input, hidden=None):
        if hidden is None:
            hidden = self.init_hidden(input.shape).to(input.device)
        out = []
        for i in range(input.size(0)):
            hidden = self.recurrence(input[i], hidden)
            out.append(hidden)
        return torch.stack(out, 0), hidden


class InitSequence(nn.Module):
    """init_sequence first, then one step at a time: forward(x=None)."""

    def __init__(self, num_inputs, num_outputs, controller_size):
        super().__init__()
        self.lstm = nn.LSTMCell(num_inputs, controller_size)
        self.fc = nn.Linear(controller_size, num_outputs)
        self.size = controller_size
        self.num_inputs = num_inputs
        self.bias = nn.Parameter(torch.randn(1, controller_size) * 0.05)

    def init_sequence(self, batch_size):
        self.batch_size = batch_size
        self.previous_state = (self.bias.repeat(batch_size, 1), torch.zeros(batch_size, self.size))

    def forward(self, x=None):
        if x is None:
            x = torch.zeros(self.batch_size, self.num_inputs)
        self.previous_state = self.lstm(x, self.previous_state)
        return torch.sigmoid(self.fc(self.previous_state[0])), self.previous_state


class IndexN(nn.Module):
    """forward(X), forward_recurrent(x_n, s_n_1, n)."""

    def __init__(self, hidden_size, gamma, head_size=None):
        super().__init__()
        n = hidden_size
        self.gamma = gamma
        self.q, self.k, self.v = (nn.Parameter(torch.randn(n, n) / n) for _ in range(3))
        self.hidden_size = n

    def forward(self, X):
        T = X.shape[1]
        i = torch.arange(T)
        D = (self.gamma ** (i[:, None] - i[None]).clamp(min=0).float()) * (i[:, None] >= i[None])
        return ((X @ self.q) @ (X @ self.k).transpose(1, 2) * D.to(X)) @ (X @ self.v)

    def forward_recurrent(self, x_n, s_n_1, n):
        q, k, v = x_n @ self.q, x_n @ self.k, x_n @ self.v
        s = self.gamma * s_n_1 + k.transpose(-1, -2) @ v
        return q @ s, s


class Time(nn.Module):
    """BN-LSTM: forward(input_, hx, time), max_length."""

    def __init__(self, input_size, hidden_size, max_length, use_bias=True):
        super().__init__()
        self.max_length = max_length
        self.W = nn.Parameter(torch.empty(input_size, 4 * hidden_size))
        self.U = nn.Parameter(torch.empty(hidden_size, 4 * hidden_size))
        self.gain = nn.Parameter(torch.ones(max_length, 4 * hidden_size))
        self.hidden_size = hidden_size
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.orthogonal_(self.W.data)
        nn.init.orthogonal_(self.U.data)
        self.gain.data.fill_(1)

    def forward(self, input_, hx, time):
        h, c = hx
        g = (input_ @ self.W + h @ self.U) * self.gain[min(time, self.max_length - 1)]
        f, i, o, z = g.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z)
        return torch.sigmoid(o) * torch.tanh(c), c


class CellClass(nn.Module):
    """The class of the cell is an argument."""

    def __init__(
        self, cell_class, input_size, hidden_size, num_layers=1, use_bias=True, batch_first=False, dropout=0, **kwargs
    ):
        super().__init__()
        self.cells = nn.ModuleList(
            [
                cell_class(input_size if layer == 0 else hidden_size, hidden_size, **kwargs)
                for layer in range(num_layers)
            ]
        )
        self.batch_first = batch_first

    def forward(self, input_, hx=None):
        if self.batch_first:
            input_ = input_.transpose(0, 1)
        h = hx if hx is not None else torch.zeros(input_.shape[1], self.cells[0].hidden_size)
        out = []
        for t in range(input_.shape[0]):
            h = self.cells[0](input_[t], h)
            out.append(h)
        return torch.stack(out), h


class Awd(nn.Module):
    """Language model: tokens, init_hidden by weight.new."""

    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.5, tie_weights=False):
        super().__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnns = nn.ModuleList([nn.LSTM(ninp if layer == 0 else nhid, nhid) for layer in range(nlayers)])
        self.decoder = nn.Linear(nhid, ntoken)
        self.nlayers, self.nhid = nlayers, nhid

    def init_hidden(self, bsz):
        weight = next(self.parameters()).data
        return [
            (weight.new(1, bsz, self.nhid).zero_(), weight.new(1, bsz, self.nhid).zero_())
            for layer in range(self.nlayers)
        ]

    def forward(self, input, hidden, return_h=False):
        x = self.encoder(input)
        new = []
        for layer, rnn in enumerate(self.rnns):
            x, h = rnn(x, hidden[layer])
            new.append(h)
        return self.decoder(x), new


class Losses(nn.Module):
    """Returns losses."""

    def __init__(self, x_dim, h_dim, z_dim, n_layers, bias=False):
        super().__init__()
        self.rnn = nn.GRU(x_dim, h_dim, n_layers, bias)
        self.dec = nn.Linear(h_dim, x_dim)

    def forward(self, x):
        h, _ = self.rnn(x)
        return ((self.dec(h) - x) ** 2).mean(), h.abs().mean()


class WithMemory(nn.Module):
    """Memory cell, scipy-like matrices in numpy, forward(x, (h, m))."""

    def __init__(self, input_size, hidden_size, memory_size, theta, learn_a=False, learn_b=False):
        super().__init__()
        A = torch.eye(memory_size) * 0.9 + torch.diag(torch.ones(memory_size - 1) * 0.05, 1)
        self.register_buffer("A", A)
        self.register_buffer("B", torch.ones(memory_size, 1) / theta)
        self.e = nn.Linear(input_size + hidden_size + memory_size, 1)
        self.W = nn.Linear(input_size + hidden_size + memory_size, hidden_size)
        self.hidden_size, self.memory_size = hidden_size, memory_size

    def forward(self, x, state):
        h, m = state
        z = torch.cat([x, h, m], -1)
        m = m @ self.A.T + self.e(z) @ self.B.T
        return torch.tanh(self.W(torch.cat([x, h, m], -1))), m


class Masked(nn.Module):
    """GRU-D-like: X, Mask, Delta; x_mean."""

    def __init__(self, input_size, hidden_size, x_mean=0.0):
        super().__init__()
        self.z = nn.Linear(2 * input_size + hidden_size, hidden_size)
        self.g = nn.Linear(input_size, hidden_size)
        self.hidden_size = hidden_size

    def forward(self, X, Mask, Delta):
        h = torch.zeros(X.shape[0], self.hidden_size)
        out = []
        for t in range(X.shape[1]):
            h = torch.exp(-torch.relu(self.g(Delta[:, t]))) * h
            h = torch.tanh(self.z(torch.cat([X[:, t] * Mask[:, t], Mask[:, t], h], -1)))
            out.append(h)
        return torch.stack(out, 1)


class Conv2dLSTM(nn.Module):
    """images"""

    def __init__(self, in_channels, hidden_channels, kernel_size=3):
        super().__init__()
        self.conv = nn.Conv2d(in_channels + hidden_channels, 4 * hidden_channels, kernel_size, padding=1)
        self.hc = hidden_channels

    def forward(self, x, state=None):
        b, c, h, w = x.shape
        if state is None:
            state = (torch.zeros(b, self.hc, h, w), torch.zeros(b, self.hc, h, w))
        i, f, o, g = self.conv(torch.cat([x, state[0]], 1)).chunk(4, 1)
        c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class ModelArgs:
    d_model: int
    n_layer: int
    vocab_size: int
    d_state: int = 4
    expand: int = 2
    dt_rank: int | str = "auto"
    d_conv: int = 4

    def __post_init__(self):
        self.d_inner = self.expand * self.d_model
        if self.dt_rank == "auto":
            self.dt_rank = max(1, self.d_model // 16)


class Selective(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.args = args
        self.inp = nn.Linear(args.d_model, args.d_inner)
        self.out = nn.Linear(args.d_inner, args.d_model)
        self.dt = nn.Linear(args.d_inner, args.d_inner)
        self.A = nn.Parameter(torch.randn(args.d_inner, args.d_state))
        self.bc = nn.Linear(args.d_inner, 2 * args.d_state)

    def forward(self, x):
        u = self.inp(x)
        dt = torch.nn.functional.softplus(self.dt(u))
        B, C = self.bc(u).chunk(2, -1)
        h = torch.zeros(x.shape[0], *self.A.shape, device=x.device)
        ys = []
        for t in range(x.shape[1]):
            h = torch.exp(-dt[:, t, :, None] * self.A.exp()) * h + dt[:, t, :, None] * u[:, t, :, None] * B[:, t, None]
            ys.append((h * C[:, t, None]).sum(-1))
        return self.out(torch.stack(ys, 1))


class TimeMix(nn.Module):
    """args namespace and layer_id, state as list of tensors written in place"""

    def __init__(self, args, layer_id):
        super().__init__()
        self.args, self.layer_id = args, layer_id
        n = args.n_embd
        self.mix = nn.Parameter(torch.rand(1, 1, n))
        self.k = nn.Linear(n, n, bias=False)
        self.v = nn.Linear(n, n, bias=False)
        self.r = nn.Linear(n, n, bias=False)
        self.decay = nn.Parameter(torch.rand(n))
        self.shift = nn.ZeroPad2d((0, 0, 1, -1))

    def forward(self, x):
        B, T, C = x.size()
        xx = self.shift(x)
        m = x * self.mix + xx * (1 - self.mix)
        k, v, r = self.k(m), self.v(m), torch.sigmoid(self.r(m))
        a = torch.zeros(B, C, device=x.device)
        b = torch.zeros(B, C, device=x.device) + 1e-3
        ys = []
        w = torch.exp(-torch.exp(self.decay))
        for t in range(T):
            e = torch.exp(k[:, t].clamp(max=30))
            a = w * a + e * v[:, t]
            b = w * b + e
            ys.append(a / b)
        return r * torch.stack(ys, 1)


class HState(NamedTuple):
    h: torch.Tensor
    c: torch.Tensor


class ScriptCell(jit.ScriptModule):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4 * hidden_size, input_size))
        self.u = nn.Parameter(torch.randn(4 * hidden_size, hidden_size) * 0.1)

    @jit.script_method
    def forward(self, input: torch.Tensor, state: HState):
        g = torch.mm(input, self.w.t()) + torch.mm(state.h, self.u.t())
        i, f, c, o = g.chunk(4, 1)
        cy = torch.sigmoid(f) * state.c + torch.sigmoid(i) * torch.tanh(c)
        hy = torch.sigmoid(o) * torch.tanh(cy)
        return hy, HState(hy, cy)


class Stacked(nn.Module):
    """A list of hidden sizes; input (B, d, T); hidden list optional"""

    def __init__(self, input_dim, hidden_dims, kernel=3, bidirectional=False):
        super().__init__()
        dims = [input_dim, *list(hidden_dims)]
        self.cells = nn.ModuleList(nn.GRUCell(a, b) for a, b in itertools.pairwise(dims))

    def forward(self, x, hiddens: list[torch.Tensor] | None = None):
        if hiddens is None:
            hiddens = [x.new_zeros(x.size(0), c.hidden_size) for c in self.cells]
        outs = []
        for t in range(x.size(-1)):
            inp = x[..., t]
            new = []
            for cell, h in zip(self.cells, hiddens, strict=False):
                inp = cell(inp, h)
                new.append(inp)
            hiddens = new
            outs.append(inp)
        return torch.stack(outs, -1), hiddens


class Opt(nn.Module):
    """argparse options"""

    def __init__(self, opt):
        super().__init__()
        self.opt = opt
        self.rnn = nn.GRU(opt.input_dim, opt.rnn_hid, opt.nlayers, dropout=opt.drop, batch_first=True)
        self.head = nn.Linear(opt.rnn_hid, opt.nclasses)

    def forward(self, x, lengths=None):
        out, _h = self.rnn(x)
        return self.head(out), out


class PeepPacked(nn.Module):
    """Packed sequences only."""

    def __init__(self, input_dim, hidden_dim, num_layers=1, num_classes=10):
        super().__init__()
        self.lstm = nn.LSTM(input_dim, hidden_dim, num_layers, batch_first=True)
        self.fc = nn.Linear(hidden_dim, num_classes)

    def forward(self, x, x_lens):
        p = nn.utils.rnn.pack_padded_sequence(x, x_lens, batch_first=True, enforce_sorted=False)
        o, (_h, _c) = self.lstm(p)
        o, _ = nn.utils.rnn.pad_packed_sequence(o, batch_first=True)
        return self.fc(o)


class FirstStep(nn.Module):
    """done mask: RL"""

    def __init__(self, obs_dim, action_dim, hidden_size=64):
        super().__init__()
        self.enc = nn.Linear(obs_dim, hidden_size)
        self.gru = nn.GRUCell(hidden_size, hidden_size)
        self.pi = nn.Linear(hidden_size, action_dim)
        self.v = nn.Linear(hidden_size, 1)

    def forward(self, inputs, rnn_hxs, masks):
        x = torch.relu(self.enc(inputs))
        h = self.gru(x, rnn_hxs * masks)
        return self.v(h), self.pi(h), h


class TimeLast(nn.Module):
    """(B, H, L) and returns (y, None); transposed flag; bidirectional flag"""

    def __init__(self, d_model, d_state=8, dropout=0.0, transposed=True, **kernel_args):
        super().__init__()
        self.h = d_model
        self.D = nn.Parameter(torch.randn(d_model))
        self.C = nn.Parameter(torch.randn(d_model, d_state))
        self.la = nn.Parameter(torch.rand(d_model, d_state))
        self.transposed = transposed
        self.out = nn.Conv1d(d_model, d_model, 1)

    def forward(self, u, **kwargs):
        if not self.transposed:
            u = u.transpose(-1, -2)
        L = u.size(-1)
        k = (self.C[..., None] * torch.exp(-self.la.exp()[..., None] * torch.arange(L))).sum(1)
        y = (
            torch.fft.irfft(torch.fft.rfft(k, n=2 * L) * torch.fft.rfft(u, n=2 * L), n=2 * L)[..., :L]
            + u * self.D[:, None]
        )
        y = self.out(y)
        return (y if self.transposed else y.transpose(-1, -2)), None
