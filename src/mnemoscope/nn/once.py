"""Contract of a network that answers once: a whole sequence in, one row of scores out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mnemoscope.core.errors import Description, expected, positive_int
from mnemoscope.nn.declared import Layer
from mnemoscope.nn.network import Network
from mnemoscope.nn.sequence import checked_lengths

__all__ = ["Once"]


class Once(Network):
    """A network that reads a sequence and answers once: ``scores = layer(input, lengths=None)``, (batch, classes).

    A subclass keeps its options as attributes, calls this constructor, declares its weights and runs whole sequences;
    ``self.weights()[0]`` has the weights by name. What it carries from step to step within a call does not make it
    stateful.

    Parameters
    ----------
    input_size
        Numbers per step of the input, or the shape of one input, ``(1, 32, 32)``.
    output_size
        Scores of an answer.
    batch_first
        Whether input is (batch, time, ..).
    device, dtype
        Of the parameters.
    generator
        Draws the initial parameters; by default torch's global generator.
    """

    output_at: ClassVar[str] = "once"
    usual: ClassVar[dict[str, int]] = {}
    """Sizes of one that is named without them on a command line."""

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        output_size: int,
        *,
        batch_first: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self._take_input_size(input_size)
        self.output_size = positive_int("output_size", output_size)
        self.batch_first = batch_first
        self._begin(device, dtype, generator)
        self._declare_layer(Layer(input_shape=self.input_shape))
        self.reset_parameters(generator)

    @abstractmethod
    def run(
        self, x: Float[Tensor, "time batch *input"], lengths: Int[Tensor, " batch"] | None
    ) -> Float[Tensor, "batch classes"]:
        """Return the scores of whole sequences. `lengths` says where padded ones end."""

    def forward(self, input: Any, lengths: Any = None) -> Float[Tensor, "batch classes"]:
        """Return the scores of every sequence.

        Parameters
        ----------
        input
            ``(time, batch, *input_shape)``, or batch first where the layer says so.
        lengths
            Steps of every sequence, where some are padded.
        """
        self._check_input(input)
        x = input.transpose(0, 1) if self.batch_first else input
        x = x.flatten(2) if self.input_axes == 1 and x.dim() > 3 else x
        return self.run(x, None if lengths is None else checked_lengths(lengths, x))

    def _check_input(self, input: Any) -> None:
        if not isinstance(input, Tensor):
            raise expected("input", "a tensor", Description(type(input).__name__))
        shape = self.input_shape
        if input.dim() != 2 + len(shape) or input.shape[2:] != shape or 0 in input.shape[:1]:
            one = ", ".join(map(str, shape))
            order = f"(batch, time, {one})" if self.batch_first else f"(time, batch, {one})"
            raise expected("input", f"of shape {order}", tuple(input.shape))
        if not input.is_floating_point():
            raise expected("input", "real floating point", input.dtype)
        self.require_filled(input)
