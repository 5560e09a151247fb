"""Good networks of somebody else, written from scratch."""

import math
import operator
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence


def whole(name, value):
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
    return value


class Leaky(nn.Module):
    """h_t = (h_{t-1} + tanh(U x_t + V h_{t-1} + b)) / 2, and no verb that is not needed.

    The steps of `forward` are methods, so that a broken network breaks one of them.
    """

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.input_size = whole("input_size", input_size)
        self.hidden_size = whole("hidden_size", hidden_size)
        self.output_size = hidden_size
        self.inward = nn.Parameter(torch.empty(hidden_size, input_size))
        self.recurrent = nn.Parameter(torch.empty(hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(hidden_size))
        self.reset_parameters()

    def reset_parameters(self):
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.7, 0.7)

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return self.run_packed(input, hx)
        self.check_input(input)
        if input.dim() == 2:
            y, h = self.unroll(self.prepare(input.unsqueeze(1)), self.begin(input.unsqueeze(1), hx, ()))
            return y.squeeze(1), h.squeeze(1)
        return self.unroll(self.prepare(input), self.begin(input, hx, (input.shape[1],)))

    def run_packed(self, packed, hx):
        self.check_packed(packed)
        x, lengths = pad_packed_sequence(packed)
        y, h = self.unroll(self.prepare(x), self.begin(x, hx, (x.shape[1],)), lengths)
        return pack_padded_sequence(y, lengths, enforce_sorted=False), h

    def prepare(self, x):
        return x

    def begin(self, x, hx, batch):
        if hx is None:
            return torch.zeros(1, x.shape[1], self.hidden_size, dtype=x.dtype)
        shape = (1, *batch, self.hidden_size)
        if not isinstance(hx, torch.Tensor) or hx.shape != shape:
            raise ValueError(f"hx must be a tensor of shape {shape}, got {getattr(hx, 'shape', type(hx).__name__)}")
        if hx.dtype != x.dtype:
            raise ValueError(f"hx must be {x.dtype}, got {hx.dtype}")
        return hx.reshape(1, x.shape[1], self.hidden_size)

    def matrices(self):
        return self.inward, self.recurrent, self.bias

    def unroll(self, x, h, lengths=None):
        inward, recurrent, bias = self.matrices()
        outputs, h = [], h[0]
        for t, a in enumerate(x @ inward.mT + bias):
            new = (h + torch.tanh(a + h @ recurrent.mT)) / 2
            h = new if lengths is None else torch.where((t < lengths)[:, None], new, h)
            outputs.append(new)
        return torch.stack(outputs), h.unsqueeze(0)

    def check_input(self, x):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            raise ValueError(f"input must be floating point, got {getattr(x, 'dtype', type(x).__name__)}")
        if x.dim() not in (2, 3):
            raise ValueError(f"input must be (time, batch, input_size) or (time, input_size), got {tuple(x.shape)}")
        self.check_width(x)

    def check_width(self, x):
        if x.shape[-1] != self.input_size:
            raise ValueError(f"input must have width {self.input_size}, got {x.shape[-1]}")

    def check_packed(self, packed):
        self.check_width(packed.data)
        sizes = packed.batch_sizes
        if (sizes[1:] > sizes[:-1]).any() or int(sizes.sum()) != len(packed.data):
            raise ValueError(f"batch_sizes must not grow and must fit the data, got {sizes.tolist()}")


class SpiralState(NamedTuple):
    z: torch.Tensor
    count: torch.Tensor


class Spiral(nn.Module):
    """z_t = e^{i w} z_{t-1} r + U x_t: complex numbers and a counter, batch in front, with every optional verb."""

    def __init__(self, input_size, hidden_size, *, batch_first=False, dtype=None, generator=None):
        super().__init__()
        self.input_size = whole("input_size", input_size)
        self.hidden_size = whole("hidden_size", hidden_size)
        self.output_size = 2 * hidden_size
        self.state_size = 2 * hidden_size
        self.batch_first = batch_first
        self.angle = nn.Parameter(torch.empty(hidden_size, dtype=dtype))
        self.weight = nn.Parameter(torch.empty(2 * hidden_size, input_size, dtype=dtype))
        self.reset_parameters(generator)

    def reset_parameters(self, generator=None):
        nn.init.uniform_(self.angle, -math.pi, math.pi, generator=generator)
        nn.init.uniform_(self.weight, -1, 1, generator=generator)

    def init_state(self, batch, *, device=None, dtype=None):
        real = dtype or self.angle.dtype
        if real not in (torch.float32, torch.float64):
            raise ValueError(f"dtype must be float32 or float64, got {real}")
        return SpiralState(
            torch.zeros(batch, self.hidden_size, dtype=real.to_complex()), torch.zeros(batch, dtype=torch.int64)
        )

    def step(self, x, state):
        real, imaginary = (x @ self.weight.mT).chunk(2, -1)
        turn = torch.complex(self.angle.cos(), self.angle.sin())
        z = 0.9 * turn * state.z + torch.complex(real, imaginary)
        return torch.cat([z.real, z.imag], -1), SpiralState(z, state.count + 1)

    def flatten_state(self, state):
        return torch.view_as_real(state.z).flatten(1)

    def unflatten_state(self, flat, like=None):
        like = self.init_state(flat.shape[0], dtype=flat.dtype) if like is None else like
        return SpiralState(torch.view_as_complex(flat.unflatten(1, (-1, 2))), like.count)

    def parameter_groups(self, lr, lr_orthogonal=None):
        return [{"params": [self.weight], "lr": lr}, {"params": [self.angle], "lr": lr_orthogonal or lr / 10}]

    def penalty(self):
        return 0.01 * self.weight.square().sum()

    @torch.no_grad()
    def after_step(self):
        self.angle.remainder_(2 * math.pi)

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return self._run_packed(input, hx)
        self._check_input(input)
        if input.dim() == 2:
            hx = None if hx is None else self._check_state(hx, self._unbatched(self.init_state(1, dtype=input.dtype)))
            y, state = self._unroll(input.unsqueeze(1), hx and SpiralState(hx.z[None], hx.count[None]))
            return y.squeeze(1), self._unbatched(state)
        y, state = self._unroll(input.transpose(0, 1) if self.batch_first else input, hx)
        return (y.transpose(0, 1) if self.batch_first else y), state

    def _unbatched(self, state):
        return SpiralState(state.z[0], state.count[0])

    def _run_packed(self, packed, hx):
        data, sizes = packed.data, packed.batch_sizes
        if (sizes[1:] > sizes[:-1]).any() or int(sizes.sum()) != len(data):
            raise ValueError(f"batch_sizes must not grow and must fit the data, got {sizes.tolist()}")
        self._check_input(data)
        x, lengths = pad_packed_sequence(packed)
        y, state = self._unroll(x, hx, lengths)
        return pack_padded_sequence(y, lengths, enforce_sorted=False), state

    def _unroll(self, x, state, lengths=None):
        initial = self.init_state(x.shape[1], dtype=x.dtype)
        state = initial if state is None else self._check_state(state, initial)
        outputs = []
        for t, x_t in enumerate(x):
            y, new = self.step(x_t, state)
            if lengths is not None:
                alive = t < lengths
                new = SpiralState(
                    torch.where(alive[:, None], new.z, state.z), torch.where(alive, new.count, state.count)
                )
            state = new
            outputs.append(y)
        return torch.stack(outputs), state

    def _check_input(self, x):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            raise ValueError(f"input must be floating point, got {getattr(x, 'dtype', type(x).__name__)}")
        if x.dim() not in (2, 3) or x.shape[-1] != self.input_size:
            raise ValueError(f"input must be (time, batch, {self.input_size}), got {tuple(x.shape)}")

    def _check_state(self, state, like):
        if not isinstance(state, SpiralState) or not all(isinstance(leaf, torch.Tensor) for leaf in state):
            raise ValueError(f"hx must be a SpiralState, got {type(state).__name__}")
        if any(leaf.shape != other.shape for leaf, other in zip(state, like, strict=True)):
            raise ValueError(f"hx must be of shape {tuple(like.z.shape)}, got {tuple(state.z.shape)}")
        if not state.z.is_complex():
            raise ValueError(f"hx must be complex, got {state.z.dtype}")
        return state
