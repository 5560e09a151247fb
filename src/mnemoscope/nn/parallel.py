"""Networks that compute whole sequences in several forms: step by step, in parallel, in chunks."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.errors import expected
from mnemoscope.nn.ops.scan import forward_mode, tracing
from mnemoscope.nn.stack import Stack, StackOptions, Weights

__all__ = ["Parallel", "ParallelOptions"]


class ParallelOptions(StackOptions, total=False):
    """The options of networks that have several forms."""

    mode: str


class Parallel(Stack):
    """A stack of cells that have a parallel or a chunked form beside the recurrent one.

    A subclass says which in `modes`, and writes `unroll_parallel`, `unroll_chunked` or both: the same function as the
    loop over `advance`, with the same last state.

    Parameters
    ----------
    mode
        ``"auto"``: what is faster for the length of the sequence; or one of `modes`: ``"recurrent"``, ``"parallel"``,
        ``"chunked"``.
    """

    modes: ClassVar[tuple[str, ...]] = ("recurrent", "parallel")
    recurrent_below: ClassVar[int] = 4
    """Steps below which ``"auto"`` takes the recurrent form."""

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: Any,
        num_layers: int = 1,
        *,
        mode: str = "auto",
        **common: Unpack[StackOptions],
    ) -> None:
        if mode not in ("auto", *self.modes):
            raise expected("mode", f"one of auto, {', '.join(self.modes)}", mode)
        self.mode = mode
        super().__init__(input_size, hidden_size, num_layers, **common)

    def form(self, steps: int) -> str:
        """Return the form in which sequences of so many steps are computed."""
        if torch.compiler.is_exporting() or tracing():
            return "recurrent"  # in an exported graph a loop of any length
        if self.mode != "auto":
            return self.mode
        # Operations with a backward pass by hand have no forward-mode derivative; the loop has.
        return "recurrent" if steps < self.recurrent_below or forward_mode() else self.modes[-1]

    def unroll(
        self, w: Weights, x: Float[Tensor, "time batch *input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch *features"], Any]:
        """Run one cell over whole sequences in the form that `mode` says."""
        form = self.form(x.shape[0])
        if form == "parallel":
            return self.unroll_parallel(w, x, state, lengths)
        return self.unroll_chunked(w, x, state, lengths) if form == "chunked" else super().unroll(w, x, state, lengths)

    def unroll_parallel(
        self, w: Weights, x: Float[Tensor, "time batch *input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch *features"], Any]:
        """Return outputs and last state by an operation on all steps at once."""
        raise expected("mode", f"one of auto, {', '.join(self.modes)}", "parallel")

    def unroll_chunked(
        self, w: Weights, x: Float[Tensor, "time batch *input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch *features"], Any]:
        """Return outputs and last state chunk by chunk, in parallel within a chunk."""
        raise expected("mode", f"one of auto, {', '.join(self.modes)}", "chunked")
