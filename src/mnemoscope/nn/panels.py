"""Sequences of images in which few are distinct: each is stored, and encoded, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Float, Int64
from torch import Tensor

__all__ = ["Panels", "encode_panels"]


class Panels(NamedTuple):
    """Images by number: panel t of sequence b is ``images[index[t, b]]``.

    Attributes
    ----------
    images
        (K, channels, height, width).
    index
        (time, batch), numbers from 0 to K - 1.
    """

    images: Float[Tensor, "images channels height width"]
    index: Int64[Tensor, "time batch"]  # type: ignore[assignment]  # tuple.index is not needed here

    def dense(self) -> Float[Tensor, "time batch channels height width"]:
        """Return every panel in its place.

        Examples
        --------
        >>> import torch
        >>> Panels(torch.rand(5, 3, 8, 8), torch.tensor([[0, 4], [4, 4], [1, 0]])).dense().shape
        torch.Size([3, 2, 3, 8, 8])
        """
        return self.images[self.index]

    def take(self, which: Int64[Tensor, " some"] | slice) -> Panels:
        """Return some of the sequences, by their numbers."""
        return Panels(self.images, self.index[:, which])


def encode_panels(encoder: Callable[[Tensor], Tensor], inputs: Any) -> Float[Tensor, "time batch *features"]:
    """Return what an encoder makes of every panel; it sees each image once.

    Parameters
    ----------
    encoder
        Makes (count, ...) of images (count, channels, height, width).
    inputs
        `Panels`, or all panels (time, batch, channels, height, width).
    """
    if isinstance(inputs, Panels):
        return encoder(inputs.images)[inputs.index]
    encoded: Tensor = encoder(inputs.flatten(0, 1))
    return encoded.view(*inputs.shape[:2], *encoded.shape[1:])
