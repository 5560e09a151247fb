"""Contract of a network without a state: whole sequences in, whole sequences out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mnemoscope.core.errors import Description, expected
from mnemoscope.nn.network import Network

__all__ = ["SequenceNetwork", "by_length", "checked_lengths"]


class SequenceNetwork(Network):
    """A network without a state: ``output = layer(input, lengths=None)``.

    A subclass sets `input_size`, `output_size`, `batch_first`, `causal`, and runs whole sequences.
    """

    @property
    def answers_once(self) -> bool:
        """Whether it answers whole sequences with one output each, so that outputs at steps are those of prefixes."""
        return False

    @abstractmethod
    def run(
        self, x: Float[Tensor, "time batch input"], lengths: Int[Tensor, " batch"] | None
    ) -> Float[Tensor, "time batch output"]:
        """Run whole sequences. `lengths` says where padded ones end, and the output is zero from there on."""

    def last(self, x: Float[Tensor, "time batch input"]) -> Float[Tensor, "batch output"]:
        """Return the output at the last step of whole sequences."""
        return self.run(x, None)[-1]

    def forward(self, input: Tensor, lengths: Any = None) -> Tensor:
        """Run the network over `input`.

        Parameters
        ----------
        input
            ``(time, batch, input_size)``, or batch first where the layer says so, or unbatched
            ``(time, input_size)``.
        lengths
            Steps of every sequence, where some are padded; the output is zero after the end.
        """
        self._check_input(input)
        batched = input.dim() == 2 + len(self.input_shape)
        x = input if batched else input.unsqueeze(1)
        x = x.transpose(0, 1) if batched and self.batch_first else x
        x = x.flatten(2) if self.input_axes == 1 and x.dim() > 3 else x
        y = self.run(x, None if lengths is None else checked_lengths(lengths, x))
        if not batched:
            return y.squeeze(1)
        return y.transpose(0, 1) if self.batch_first else y

    def _check_input(self, input: Any) -> None:
        if not isinstance(input, Tensor):
            raise expected("input", "a tensor, with lengths= where padded", Description(type(input).__name__))
        shape = self.input_shape
        if input.dim() not in (1 + len(shape), 2 + len(shape)) or 0 in input.shape:
            one = "input_size" if len(shape) == 1 else ", ".join(map(str, shape))
            order = f"(batch, time, {one})" if self.batch_first else f"(time, batch, {one})"
            raise expected("input", f"of shape {order} or (time, {one}), none zero", tuple(input.shape))
        if not input.is_floating_point():
            raise expected("input", "real floating point", input.dtype)
        if len(shape) == 1 and input.shape[-1] != self.input_size:
            raise expected("the last axis of input", f"input_size = {self.input_size}", input.shape[-1])
        if input.shape[-len(shape) :] != shape:
            raise expected("the last axes of input", f"input_shape = {shape}", tuple(input.shape[-len(shape) :]))
        self.require_filled(input)


def by_length(
    run: Callable[[Float[Tensor, "time group input"], Tensor], Float[Tensor, "time group output"]],
    x: Float[Tensor, "time batch input"],
    lengths: Int[Tensor, " batch"],
) -> Float[Tensor, "time batch output"]:
    """Run sequences of one length together, so that none sees any padding; the output is zero after the end.

    Parameters
    ----------
    run
        Takes the sequences of one length, and which examples of the batch they are.
    """
    total, order, outputs = x.shape[0], [], []
    for length in sorted(set(lengths.tolist())):
        rows = (lengths == length).nonzero().squeeze(1).to(x.device)
        y = run(x[:length, rows], rows)
        outputs.append(torch.cat([y, y.new_zeros(total - length, *y.shape[1:])]))
        order.append(rows)
    return torch.cat(outputs, dim=1)[:, torch.cat(order).argsort()]


def checked_lengths(lengths: Any, x: Tensor) -> Int[Tensor, " batch"]:
    """Return the lengths of the sequences of `x`, (time, batch, ..), or raise what they must be."""
    try:
        found = torch.as_tensor(lengths).cpu()
    except (TypeError, ValueError, RuntimeError):
        raise expected("lengths", f"{x.shape[1]} whole numbers", lengths) from None
    whole = found.dim() == 1 and not (found.is_floating_point() or found.is_complex() or found.dtype == torch.bool)
    if not whole or found.shape[0] != x.shape[1] or int(found.min()) < 1 or int(found.max()) > x.shape[0]:
        raise expected("lengths", f"{x.shape[1]} whole numbers between 1 and {x.shape[0]}", found.tolist())
    return found.long()
