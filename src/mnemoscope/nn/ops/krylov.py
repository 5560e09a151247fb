"""Powers of one matrix for each feature, applied to its input and output: what a time-invariant network needs.

    x_t = A x_{t-1} + b u_t,   y_t = c x_t:   kernel c A^l b, outputs of a state c A^{l+1} x_0, last state.

With l = i w + j, w about the root of T, c A^l b = (c A^{i w}) (A^j b): two tables of w rows, each made by doubling
(A^{m + j} b = A^m A^j b), and one product of them. Nothing but powers of A is formed, so that a contraction is safe in
float32. The naive twin is `naive_matrix_powers`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mnemoscope.nn.ops.convolution import align_ends

__all__ = ["MatrixPowers", "naive_matrix_powers"]


class MatrixPowers:
    """Tables of powers for sequences of one length.

    Parameters
    ----------
    matrix, inputs, readout
        A, b and c of each feature: (n, N, N), (n, N), (n, N).
    steps
        T.
    """

    def __init__(
        self, matrix: Float[Tensor, "n N N"], inputs: Float[Tensor, "n N"], readout: Float[Tensor, "n N"], steps: int
    ) -> None:
        self.steps = steps
        self.doublings = (max(0, steps - 1).bit_length() + 1) // 2
        self.width = 1 << self.doublings
        self.squares = [matrix]
        while len(self.squares) <= max(self.doublings, steps.bit_length()):
            self.squares.append(self.squares[-1] @ self.squares[-1])
        self.columns = self._spread(inputs[..., None])
        self.rows = readout[:, None]
        for k in range((-(-steps // self.width) - 1).bit_length()):
            self.rows = torch.cat([self.rows, self.rows @ self.squares[self.doublings + k]], 1)

    def _spread(self, columns: Tensor) -> Tensor:
        """Return A^j applied to some columns, j = 0 .. w - 1, side by side."""
        for k in range(self.doublings):
            columns = torch.cat([columns, self.squares[k] @ columns], -1)
        return columns

    @property
    def kernel(self) -> Float[Tensor, "n time"]:
        """C A^l b for l = 0 .. T - 1."""
        return (self.rows @ self.columns).flatten(-2)[:, : self.steps]

    def free(self, start: Float[Tensor, "batch n N"]) -> Float[Tensor, "time batch n"]:
        """Return c A^t x_0 for t = 1 .. T."""
        batch = len(start)
        columns = self._spread(self.squares[0] @ start.permute(1, 2, 0))
        found = (self.rows @ columns).reshape(len(self.rows), self.rows.shape[1], self.width, batch)
        return found.flatten(1, 2)[:, : self.steps].permute(1, 2, 0)

    def last(
        self, inputs: Float[Tensor, "time batch n"], start: Float[Tensor, "batch n N"] | None, lengths: Tensor | None
    ) -> Float[Tensor, "batch n N"]:
        """Return the state at each sequence's own end."""
        u = F.pad(align_ends(inputs, lengths), (0, 0, 0, 0, -self.steps % self.width, 0))
        count, batch = len(u) // self.width, u.shape[1]
        rows = u.reshape(count, self.width, batch, u.shape[2]).permute(3, 1, 0, 2)
        parts = (self.columns.flip(-1) @ rows.flatten(-2)).reshape(*self.columns.shape[:2], count, batch)
        state, leap = torch.zeros_like(parts[:, :, 0]), self.squares[self.doublings]
        for part in parts.unbind(2):
            state = part + leap @ state
        if start is not None:
            state = state + self._leap(start.permute(1, 2, 0), lengths)
        return state.permute(2, 0, 1)

    def _leap(self, state: Tensor, lengths: Tensor | None) -> Tensor:
        """Return A^length applied to states (n, N, batch), by the binary digits of each length."""
        ends = torch.tensor([self.steps]) if lengths is None else lengths
        for k in range(self.steps.bit_length()):
            digit = ((ends >> k) & 1).to(state.device, torch.bool)
            state = torch.where(digit, self.squares[k] @ state, state)
        return state


def naive_matrix_powers(
    matrix: Tensor, inputs: Tensor, readout: Tensor, start: Tensor, u: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return outputs and last state by the recurrence."""
    state, outputs = start, []
    ends = torch.full((u.shape[1],), len(u)) if lengths is None else lengths
    for t, now in enumerate(u):
        alive = (ends > t)[:, None]
        moved = torch.einsum("nij,bnj->bni", matrix, state) + inputs * now[..., None]
        state = torch.where(alive[..., None], moved, state)
        outputs.append(torch.where(alive, (readout * state).sum(-1), 0.0))
    return torch.stack(outputs), state
