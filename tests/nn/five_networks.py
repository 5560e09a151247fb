"""Five networks written only from CONTRIBUTING.md, one for each thing that the contract must carry."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from mnemoscope.nn import Once, Parallel, Stack
from mnemoscope.nn.initialisers import uniform
from mnemoscope.nn.ops.linear_scan import linear_scan


class Tape(NamedTuple):
    """Slots, where the head is, and the controller's state."""

    memory: torch.Tensor
    head: torch.Tensor
    h: torch.Tensor


class SmallTuringMachine(Stack):
    """A controller that reads and writes slots by content; its memory starts as it was learned."""

    batch_axis = 0
    slots = 5

    def declare(self, layer):
        n = self.hidden_size
        self.parameter("initial", self.slots, n, init=uniform(0.5), role="initial")
        self.submodule("controller", nn.Linear(layer.input_size + 2 * n, n))
        self.submodule("key", nn.Linear(n, n))
        self.submodule("write", nn.Linear(n, 2 * n))

    def start(self, w, batch, **factory):
        memory = w["initial"].to(**factory).expand(batch, -1, -1)
        head = torch.full((batch, self.slots), 1 / self.slots, **factory)
        return Tape(memory, head, torch.zeros(batch, self.hidden_size, **factory))

    def drive(self, w, x):
        return x

    def advance(self, w, a, state):
        read = torch.einsum("bs,bsn->bn", state.head, state.memory)
        h = torch.tanh(w["controller"](torch.cat([a, read, state.h], dim=-1)))
        head = torch.softmax(torch.einsum("bn,bsn->bs", w["key"](h), state.memory), dim=-1)
        erase, add = w["write"](h).chunk(2, dim=-1)
        kept = state.memory * (1 - head[..., None] * torch.sigmoid(erase)[:, None])
        return h, Tape(kept + head[..., None] * torch.tanh(add)[:, None], head, h)


class Ring(NamedTuple):
    """The last states, how many there have been, and the state itself."""

    kept: torch.Tensor
    count: torch.Tensor
    h: torch.Tensor


class RingAttention(Stack):
    """Attention over a ring buffer of the network's own last states."""

    batch_axis = 0
    size = 3

    def declare(self, layer):
        n = self.hidden_size
        self.parameter("weight_ih", n, layer.input_size, role="input")
        self.parameter("weight_hh", n, n, role="recurrent")
        self.parameter("weight_query", n, n)

    def start(self, w, batch, **factory):
        kept = torch.zeros(batch, self.size, self.hidden_size, **factory)
        return Ring(kept, torch.zeros(batch, dtype=torch.int64, device=factory["device"]), kept[:, 0])

    def advance(self, w, a, state):
        scores = torch.einsum("bn,bkn->bk", state.h @ w["weight_query"].mT, state.kept)
        places = torch.arange(self.size, device=a.device)
        empty = places >= state.count.clamp(max=self.size)[:, None]
        weights = torch.softmax(scores.masked_fill(empty & (state.count > 0)[:, None], -math.inf), dim=-1)
        seen = torch.einsum("bk,bkn->bn", weights, state.kept)
        h = torch.tanh(a + (state.h + seen) @ w["weight_hh"].mT)
        here = (places == (state.count % self.size)[:, None])[..., None]
        return h, Ring(torch.where(here, h[:, None], state.kept), state.count + 1, h)


class SmallStateSpace(Parallel):
    """A complex diagonal state-space layer: h_t = a h_{t-1} + B x_t, y = Re(C h), |a| < 1."""

    field = "complex"

    def declare(self, layer):
        n = self.hidden_size
        self.parameter("decay", 2, n, init=uniform(1.0), role="state-space")
        self.parameter("weight_ih", 2 * n, layer.input_size, role="input")
        self.parameter("weight_out", n, 2 * n, role="readout")

    def rates(self, w):
        size, angle = torch.sigmoid(w["decay"][0]), math.pi * w["decay"][1]
        return torch.polar(size, angle)

    def drive(self, w, x):
        return torch.complex(*F.linear(x, w["weight_ih"]).chunk(2, dim=-1))

    def read(self, w, h):
        return F.linear(torch.cat([h.real, h.imag], dim=-1), w["weight_out"])

    @property
    def cell_output_size(self):
        return self.hidden_size

    def advance(self, w, a, state):
        h = self.rates(w) * state + a
        return self.read(w, h), h

    def unroll_parallel(self, w, x, state, lengths):
        h, last = linear_scan(self.drive(w, x), self.rates(w), state, lengths)
        return self.read(w, h), last


class PairsOfImages(Once):
    """A relational classifier: a convolutional encoder, dot products of all pairs of panels, an affine readout."""

    input_axes = 3
    small_sizes: ClassVar = {"panels": 4, "answers": 2}

    def __init__(self, panels, answers, channels=1, size=8, *, device=None, dtype=None, generator=None):
        self.panels, self.answers, self.channels, self.size = panels, answers, channels, size
        super().__init__((channels, size, size), answers, device=device, dtype=dtype, generator=generator)

    def declare(self, layer):
        wide = 4 * (self.size - 2) ** 2
        encoder = nn.Sequential(nn.Conv2d(self.channels, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(wide, 6))
        self.submodule("encoder", encoder)
        self.submodule("readout", nn.Linear(self.panels**2, self.answers), role="readout")

    def run(self, x, lengths):
        (w,) = self.weights()
        codes = w["encoder"](x.flatten(0, 1)).unflatten(0, x.shape[:2])
        pairs = torch.einsum("tbk,sbk->bts", codes, codes)
        return w["readout"](torch.softmax(pairs, dim=-1).flatten(1))


class NormedResidual(Stack):
    """Tanh layers with a norm and a residual connection between them."""

    def declare(self, layer):
        n = self.hidden_size
        self.parameter("weight_ih", n, layer.input_size, role="input")
        self.parameter("weight_hh", n, n, role="recurrent")
        if not layer.last:
            self.submodule("norm", nn.LayerNorm(n * self.directions))

    def advance(self, w, a, state):
        h = torch.tanh(a + state @ w["weight_hh"].mT)
        return h, h

    def between(self, w, x, y):
        y = x + y if w.layer.index else y
        return y if w.layer.last else w["norm"](y)


NETWORKS = [SmallTuringMachine, RingAttention, SmallStateSpace, PairsOfImages, NormedResidual]
