"""Time-invariant state space of each feature, by chunks or by convolution.

    x_t = A x_{t-1} + b u_t,   y_t = c x_t

Inside a chunk of C steps that starts from x, outputs are a Toeplitz matrix of c A^k b times the inputs plus the rows
c A^{i+1} times x, and the state after it is A^C x plus the columns A^{C-1-j} b times the inputs: three products over
all chunks at once (`state_space`); only A^C goes from chunk to chunk. Or all outputs are the convolution with the
kernel c A^k b, by the fast Fourier transform (`convolved_state_space`). Nothing but powers of A is formed, so that a
contraction is safe in float32. A is diagonal and complex (`Diagonal`) or a real matrix (`Dense`). The naive twin is the
recurrence, `naive_state_space`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float
from torch import Tensor

from mnemoscope.nn.ops.convolution import convolution
from mnemoscope.nn.ops.linear_scan import linear_scan
from mnemoscope.nn.ops.scan import mask_of, scan

__all__ = ["Dense", "Diagonal", "System", "convolved_state_space", "naive_state_space", "state_space"]

_CHUNK = 128
"""Steps in a chunk: a power of two."""


class System(ABC):
    """A, b and c of every feature, on states of N real numbers.

    Attributes
    ----------
    inputs, readout
        b and c, (n, N).
    """

    inputs: Float[Tensor, "n N"]
    readout: Float[Tensor, "n N"]

    @abstractmethod
    def columns(self, vectors: Float[Tensor, "n N k"], steps: int) -> Float[Tensor, "n N steps k"]:
        """Return A^j v for j = 0 .. steps - 1, a power of two."""

    @abstractmethod
    def rows(self, count: int, stride: int = 1) -> Float[Tensor, "n count N"]:
        """Return c A^{i stride} for i = 0 .. count - 1; the stride is a power of two."""

    @abstractmethod
    def later_rows(self, count: int) -> Float[Tensor, "n count N"]:
        """Return c A^{i+1} for i = 0 .. count - 1."""

    @abstractmethod
    def power(self, state: Float[Tensor, "n N batch"], exponents: Tensor) -> Float[Tensor, "n N batch"]:
        """Return A^r x, with an exponent for each example."""

    @abstractmethod
    def carry(
        self, parts: Float[Tensor, "chunks n N batch"], start: Float[Tensor, "n N batch"], steps: int
    ) -> Float[Tensor, "chunks n N batch"]:
        """Return the states after each chunk of `steps`, a power of two, from what its inputs contribute."""

    def response(self, vectors: Float[Tensor, "n N k"], steps: int) -> Float[Tensor, "n steps k"]:
        """Return c A^l v for l = 0 .. steps - 1: with l = i w + j, w about sqrt(steps), as (c A^{i w}) (A^j v)."""
        width = 1 << (max(0, steps - 1).bit_length() + 1) // 2
        columns = self.columns(vectors, width)
        found = self.rows(-(-steps // width), width) @ columns.flatten(-2)
        return found.reshape(len(found), -(-steps // width) * width, vectors.shape[-1])[:, :steps]


class Diagonal(System):
    """Complex diagonal systems with real outputs: A = diag(exp z), y = Re(c x); a state is [Re x, Im x].

    Parameters
    ----------
    rates, inputs, readout
        z, b and c, (n, modes).
    """

    def __init__(
        self,
        rates: Complex[Tensor, "n modes"],
        inputs: Complex[Tensor, "n modes"],
        readout: Complex[Tensor, "n modes"],
    ) -> None:
        self.rates, self._readout, self._tables = rates, readout, dict[tuple[int, int], Tensor]()
        self.inputs = torch.cat([inputs.real, inputs.imag], -1)
        self.readout = torch.cat([readout.real, -readout.imag], -1)

    def _powers(self, count: int, stride: int = 1) -> Complex[Tensor, "n modes count"]:
        """Return exp(i stride z) for i = 0 .. count - 1, by doubling, which takes a tenth of the exponentials' time."""
        if (count, stride) not in self._tables:
            found = torch.ones_like(self.rates)[..., None]
            for k in range((count - 1).bit_length()):
                found = torch.cat([found, found * torch.exp((stride << k) * self.rates)[..., None]], -1)
            self._tables[count, stride] = found[..., :count]
        return self._tables[count, stride]

    def columns(self, vectors: Float[Tensor, "n N k"], steps: int) -> Float[Tensor, "n N steps k"]:
        """Return exp(j z) v."""
        found = self._powers(steps)[..., None] * _complex(vectors)[..., None, :]
        return torch.cat([found.real, found.imag], 1)

    def rows(self, count: int, stride: int = 1) -> Float[Tensor, "n count N"]:
        """Return c exp(i stride z)."""
        return self._read(self._powers(count, stride) * self._readout[..., None])

    def later_rows(self, count: int) -> Float[Tensor, "n count N"]:
        """Return c exp((i + 1) z)."""
        return self._read(self._powers(count) * (self._readout * torch.exp(self.rates))[..., None])

    def _read(self, rows: Tensor) -> Float[Tensor, "n count N"]:
        return torch.cat([rows.real, -rows.imag], -2).mT

    def power(self, state: Float[Tensor, "n N batch"], exponents: Tensor) -> Float[Tensor, "n N batch"]:
        """Return exp(r z) x."""
        moved = torch.exp(self.rates[..., None] * exponents.to(self.rates.device)) * _complex(state)
        return torch.cat([moved.real, moved.imag], -2)

    def carry(
        self, parts: Float[Tensor, "chunks n N batch"], start: Float[Tensor, "n N batch"], steps: int
    ) -> Float[Tensor, "chunks n N batch"]:
        """Run the linear scan over chunks."""
        states, _ = linear_scan(_complex(parts), torch.exp(steps * self.rates)[..., None], _complex(start))
        return torch.cat([states.real, states.imag], -2)


class Dense(System):
    """Systems with a real matrix each.

    Parameters
    ----------
    matrix, inputs, readout
        A, b and c: (n, N, N), (n, N), (n, N).
    """

    def __init__(
        self, matrix: Float[Tensor, "n N N"], inputs: Float[Tensor, "n N"], readout: Float[Tensor, "n N"]
    ) -> None:
        self.inputs, self.readout, self._squares = inputs, readout, [matrix]

    def _square(self, k: int) -> Float[Tensor, "n N N"]:
        """Return A^(2^k)."""
        while len(self._squares) <= k:
            self._squares.append(self._squares[-1] @ self._squares[-1])
        return self._squares[k]

    def columns(self, vectors: Float[Tensor, "n N k"], steps: int) -> Float[Tensor, "n N steps k"]:
        """Return A^j v, by doubling: A^{m + j} v = A^m (A^j v)."""
        found = vectors
        for k in range(steps.bit_length() - 1):
            found = torch.cat([found, self._square(k) @ found], -1)
        return found.reshape(*vectors.shape[:2], steps, vectors.shape[-1])

    def rows(self, count: int, stride: int = 1) -> Float[Tensor, "n count N"]:
        """Return c A^{i stride}, by doubling."""
        found = self.readout[:, None]
        for k in range((count - 1).bit_length()):
            found = torch.cat([found, found @ self._square(stride.bit_length() - 1 + k)], 1)
        return found[:, :count]

    def later_rows(self, count: int) -> Float[Tensor, "n count N"]:
        """Return c A^i A."""
        return self.rows(count) @ self._squares[0]

    def power(self, state: Float[Tensor, "n N batch"], exponents: Tensor) -> Float[Tensor, "n N batch"]:
        """Return A^r x, by the binary digits of r."""
        for k in range(int(exponents.max()).bit_length() if exponents.numel() else 0):
            digit = ((exponents >> k) & 1).to(state.device, torch.bool)
            state = torch.where(digit, self._square(k) @ state, state)
        return state

    def carry(
        self, parts: Float[Tensor, "chunks n N batch"], start: Float[Tensor, "n N batch"], steps: int
    ) -> Float[Tensor, "chunks n N batch"]:
        """Multiply by A^steps from chunk to chunk."""
        leap, states = self._square(steps.bit_length() - 1), [start]
        for part in parts.unbind(0):
            states.append(part + leap @ states[-1])
        return torch.stack(states[1:])


def state_space(
    inputs: Float[Tensor, "time batch n"],
    system: System,
    start: Float[Tensor, "batch n N"] | None = None,
    lengths: Tensor | None = None,
) -> tuple[Float[Tensor, "time batch n"], Float[Tensor, "batch n N"]]:
    """Return y_1 .. y_T and the last state, chunk by chunk.

    Parameters
    ----------
    inputs
        u, one number for each feature.
    system
        A, b and c.
    start
        x_0; by default zeros.
    lengths
        Where the sequences end, descending; after that outputs are zero and the state stays. None: all are full.
    """
    run = _Run(inputs, system, start)
    taps = (system.readout[:, None] @ run.columns).squeeze(1)
    carried = run.states[:-1].permute(1, 2, 0, 3).flatten(-2)
    y = system.later_rows(run.size) @ carried + _toeplitz(taps) @ run.rows
    y = y.reshape(*y.shape[:2], run.count, inputs.shape[1]).permute(2, 1, 3, 0).flatten(0, 1)[: len(inputs)]
    return _end(y, lengths), run.last(lengths)


def convolved_state_space(
    inputs: Float[Tensor, "time batch n"],
    system: System,
    start: Float[Tensor, "batch n N"] | None = None,
    lengths: Tensor | None = None,
) -> tuple[Float[Tensor, "time batch n"], Float[Tensor, "batch n N"]]:
    """Return the same, with the outputs by convolution."""
    steps = len(inputs)
    y = convolution(inputs, system.response(system.inputs[..., None], steps).squeeze(-1).mT)
    if start is not None:
        moved = system.power(start.permute(1, 2, 0), torch.ones(len(start), dtype=torch.int64, device="cpu"))
        y = y + system.response(moved, steps).permute(1, 2, 0)
    return _end(y, lengths), _Run(inputs, system, start).last(lengths)


def naive_state_space(
    inputs: Float[Tensor, "time batch n"],
    system: System,
    start: Float[Tensor, "batch n N"] | None = None,
    lengths: Tensor | None = None,
) -> tuple[Float[Tensor, "time batch n"], Float[Tensor, "batch n N"]]:
    """Return the same by the definition."""
    one = torch.ones(inputs.shape[1], dtype=torch.int64, device="cpu")

    def step(u: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        x = system.power(x.permute(1, 2, 0), one).permute(2, 0, 1) + system.inputs * u[..., None]
        return (system.readout * x).sum(-1), x

    zeros = inputs.new_zeros(inputs.shape[1], *system.inputs.shape)
    return scan(step, inputs, zeros if start is None else start, mask_of(lengths, inputs))


class _Run:
    """Chunks of sequences, padded at the end, and the states between them.

    Attributes
    ----------
    rows
        Inputs, (n, steps of a chunk, chunks x batch).
    columns
        A^j b, (n, N, steps of a chunk).
    states
        Before the first chunk and after each, (chunks + 1, n, N, batch).
    """

    def __init__(self, inputs: Tensor, system: System, start: Tensor | None) -> None:
        self.system = system
        self.steps, batch, features = inputs.shape
        self.size = min(_CHUNK, 1 << max(0, self.steps - 1).bit_length())
        self.count = -(-self.steps // self.size)
        padded = F.pad(inputs, (0, 0, 0, 0, 0, self.count * self.size - self.steps))
        self.inputs = padded.reshape(self.count, self.size, batch, features)
        self.rows = self.inputs.permute(3, 1, 0, 2).flatten(-2)
        self.columns = system.columns(system.inputs[..., None], self.size).squeeze(-1)
        parts = self.columns.flip(-1) @ self.rows
        parts = parts.reshape(*parts.shape[:2], self.count, batch).permute(2, 0, 1, 3)
        first = torch.zeros_like(parts[0]) if start is None else start.permute(1, 2, 0)
        self.states = torch.cat([first[None], system.carry(parts, first, self.size)])

    def last(self, lengths: Tensor | None) -> Float[Tensor, "batch n N"]:
        """Return the state at each sequence's own end: that before its last chunk, and what it does in there."""
        if lengths is None and self.steps % self.size == 0:
            return self.states[-1].permute(2, 0, 1)
        batch = torch.arange(self.inputs.shape[2], device="cpu")  # counts: to be read without waiting for a device
        ends = torch.full_like(batch, self.steps) if lengths is None else lengths.cpu()
        whole, rest = ends // self.size, ends % self.size
        state = self.states[whole, :, :, batch].permute(1, 2, 0)
        chunk = self.inputs[whole.clamp(max=self.count - 1), :, batch]  # batch, steps, n
        places = torch.arange(self.size, device="cpu") - (
            self.size - rest[:, None]
        )  # its steps moved to the chunk's end
        moved = chunk.gather(1, places.clamp(min=0).to(chunk.device)[..., None].expand(chunk.shape))
        moved = torch.where((places >= 0).to(chunk.device)[..., None], moved, 0.0)
        return (self.system.power(state, rest) + self.columns.flip(-1) @ moved.permute(2, 1, 0)).permute(2, 0, 1)


def _toeplitz(taps: Float[Tensor, "n steps"]) -> Float[Tensor, "n steps steps"]:
    """Return the lower triangular matrix K_{i-j}.

    Rows of 2 C numbers, K and zeros, read as rows of 2 C - 1, move by one from row to row.
    """
    features, steps = taps.shape
    repeated = F.pad(taps, (0, steps))[:, None].expand(features, steps, 2 * steps).flatten(1)
    return repeated[:, : steps * (2 * steps - 1)].reshape(features, steps, -1)[..., :steps].mT


def _complex(parts: Tensor) -> Tensor:
    """Return x from [Re x, Im x] on the last axis but one."""
    return torch.complex(*parts.chunk(2, -2))


def _end(outputs: Tensor, lengths: Tensor | None) -> Tensor:
    mask = mask_of(lengths, outputs)
    return outputs if mask is None else torch.where(mask[..., None], outputs, 0.0)
