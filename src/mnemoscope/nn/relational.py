"""Base of relational networks: an encoder that sees each image once, context normalisation, one answer."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import Any, ClassVar, Self, TypedDict

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mnemoscope.core.errors import UserError, choice, expected, positive_int
from mnemoscope.nn.declared import Layer
from mnemoscope.nn.once import Once
from mnemoscope.nn.panels import Panels, encode_panels

__all__ = ["FEATURES", "ContextNormalisation", "ImageEncoder", "Relational", "RelationalOptions", "mlp"]

FEATURES = 128
"""Numbers that stand for an image."""

_CHANNELS = 32
_EPS = 1e-8


class RelationalOptions(TypedDict, total=False):
    """Options that all relational networks have."""

    input_size: tuple[int, ...]
    encoder: str
    segments: tuple[int, ...] | None
    l1: str
    l1_strength: float
    device: torch.device | str | None
    dtype: torch.dtype | None
    generator: torch.Generator | None


def mlp(*sizes: int) -> nn.Sequential:
    """Return affine maps of these sizes with ReLU between them."""
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        parts += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


class ImageEncoder(nn.Sequential):
    """Three convolutions and two affine maps, to 256 and 128 numbers, all with ReLU.

    The convolutions have 32 channels, kernel 4, stride 2, padding 1. Weights are drawn by Kaiming's normal rule, biases
    are zero.
    """

    def __init__(self, channels: int, height: int, width: int) -> None:
        for name, size in (("height", height), ("width", width)):
            if size < 8:
                raise expected(f"the {name} of input_size", "at least 8 pixels, to be halved three times", size)
        convolutions: list[nn.Module] = []
        for inputs in (channels, _CHANNELS, _CHANNELS):
            convolutions += [nn.Conv2d(inputs, _CHANNELS, 4, stride=2, padding=1), nn.ReLU()]
        flat = _CHANNELS * (height // 8) * (width // 8)
        super().__init__(*convolutions, nn.Flatten(), *mlp(flat, 256, FEATURES), nn.ReLU())

    @torch.no_grad()
    def draw(self, generator: torch.Generator | None) -> None:
        """Draw all weights anew."""
        for part in self:
            if isinstance(part, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(part.weight, generator=generator)
                nn.init.zeros_(part.bias)  # type: ignore[arg-type]


class ContextNormalisation(nn.Module):
    """Normalisation of every feature over the panels: gain (z - mean) / sqrt(variance + 1e-8) + shift.

    Parameters
    ----------
    segments
        How many panels are normalised together, segment after segment; the variance is the unbiased one.
    """

    def __init__(self, segments: tuple[int, ...]) -> None:
        super().__init__()
        self.segments = segments
        self.gain = nn.Parameter(torch.ones(FEATURES))
        self.shift = nn.Parameter(torch.zeros(FEATURES))

    def reset_parameters(self) -> None:
        """Start from the plain normalisation."""
        nn.init.ones_(self.gain)
        nn.init.zeros_(self.shift)

    def forward(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "panels batch features"]:
        """Normalise."""
        parts = [part - part.mean(0) for part in torch.split(z, list(self.segments))]
        # Not torch's var, which warns of an empty batch.
        spread = [(part.square().sum(0) / (len(part) - 1) + _EPS).sqrt() for part in parts]
        return self.gain * torch.cat([part / by for part, by in zip(parts, spread, strict=True)]) + self.shift


class _Noted:
    """A loss that the last call left for `penalty`; copies of a network do not take it along."""

    def __init__(self) -> None:
        self.value: Tensor | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)()

    def take(self, like: Tensor) -> Tensor:
        """Return the loss, once; before the first call a zero that has a gradient."""
        found, self.value = self.value, None
        return torch.zeros((), dtype=like.dtype, device=like.device, requires_grad=True) if found is None else found


class Relational(Once):
    """A network that answers a question about images: ``scores = layer(panels)``, (batch, answers).

    Panels are (panels, batch, channels, height, width), or `Panels`, whose images are encoded once each.
    z_t = norm(f(x_t)) with the encoder f and context normalisation; `reason` answers from z alone.

    Parameters
    ----------
    panels
        T, images of an example.
    answers
        K.
    input_size
        Channels, height and width of an image.
    encoder
        ``"learned"``, or ``"random"``: as it was drawn, and never trained.
    segments
        How many panels are normalised together, as (2, 2, 2); by default all of them.
    l1
        ``"none"``; ``"weights"``: an affine map of the 128 features behind the encoder, whose weights' absolute sum is
        penalised; ``"representations"``: the same map, whose outputs' absolute sum, in the mean over panels, is.
    l1_strength
        What that sum is multiplied by.
    device, dtype
        Of the parameters.
    generator
        Draws the initial parameters; by default torch's global generator.
    """

    input_axes: ClassVar[int] = 3
    counted_at: ClassVar[dict[str, int]] = {"panels": 2, "answers": 2}
    usual: ClassVar[dict[str, int]] = {"panels": 9, "answers": 4}
    small_sizes: ClassVar[dict[str, Any]] = {"panels": 3, "answers": 2, "input_size": (3, 8, 8)}
    has_relations: ClassVar[bool] = False
    """Whether `relations` gives a matrix."""

    adds_loss: ClassVar[bool] = False
    """Whether a call leaves a loss of its own for `penalty`."""

    image_encoder: ImageEncoder
    context: ContextNormalisation

    def __init__(
        self,
        panels: int,
        answers: int,
        *,
        input_size: tuple[int, ...] = (3, 32, 32),
        encoder: str = "learned",
        segments: tuple[int, ...] | None = None,
        l1: str = "none",
        l1_strength: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        self.panels, self.answers = positive_int("panels", panels), positive_int("answers", answers)
        if self.panels < 2:
            raise expected("panels", "at least 2, since relations are between them", panels)
        self.encoder = choice("encoder", encoder, ("learned", "random"))
        self.segments = _checked_segments(segments, self.panels)
        self.l1 = choice("l1", l1, ("none", "weights", "representations"))
        if isinstance(l1_strength, bool) or not isinstance(l1_strength, int | float) or not l1_strength >= 0:
            raise expected("l1_strength", "a number that is not negative", l1_strength)
        self.l1_strength = float(l1_strength)
        self._noted = _Noted()
        super().__init__(input_size, self.answers, device=device, dtype=dtype, generator=generator)
        self.image_encoder.requires_grad_(self.encoder == "learned")

    def declare(self, layer: Layer) -> None:
        """Create encoder and normalisation; a subclass adds what reasons."""
        encoder = ImageEncoder(*self.input_shape)
        self.submodule(
            "encoder", encoder, init=lambda module, generator: encoder.draw(generator), full_name="image_encoder"
        )
        if self.l1 != "none":
            self.submodule("sparse", nn.Linear(FEATURES, FEATURES), full_name="sparse")
        parts = (self.panels,) if self.segments is None else self.segments
        self.submodule("context", ContextNormalisation(parts), full_name="context")

    @abstractmethod
    def reason(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch answers"]:
        """Return the scores of the answers from the normalised features of all panels."""

    def relations(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch panels panels"]:
        """Return how much each panel (row) is related to each (column), as the network uses it."""
        raise UserError(f"{type(self).__name__} has no relation matrix; corelnet, corelnet-t, esbn and others have")

    def encode(self, input: Any) -> Float[Tensor, "panels batch features"]:
        """Return the features of every panel before they are normalised; each image is encoded once."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.encoder == "learned"):
            return encode_panels(self.image_encoder, input)

    def represent(self, input: Any) -> Float[Tensor, "panels batch features"]:
        """Return the normalised features of every panel, which `reason` answers from."""
        return self.normalise(self.encode(input))

    def normalise(self, features: Float[Tensor, "panels batch features"]) -> Float[Tensor, "panels batch features"]:
        """Return encoded features after the sparse map, where there is one, and context normalisation."""
        if self.l1 != "none":
            features = self.sparse(features)  # type: ignore[operator]
        if self.l1 == "representations":
            self.note(self.l1_strength * features.abs().sum(-1).mean())
        normalised: Tensor = self.context(features)
        return normalised

    def note(self, loss: Tensor) -> None:
        """Leave a loss for `penalty`, which training adds; not while answering."""
        if self.training and torch.is_grad_enabled():
            self._noted.value = loss if self._noted.value is None else self._noted.value + loss

    def penalty(self) -> Float[Tensor, ""]:
        """Return what is added to the loss: of the sparse map, and what the last call left, once."""
        total = super().penalty()
        if self.l1 == "weights":
            total = total + self.l1_strength * self.sparse.weight.abs().sum()  # type: ignore[operator, union-attr]
        if self.adds_loss or self.l1 == "representations":
            total = total + self._noted.take(self._like)
        return total

    def run(self, x: Any, lengths: Int[Tensor, " batch"] | None) -> Float[Tensor, "batch answers"]:
        """Return the scores of whole examples."""
        if lengths is not None and bool((lengths != self.panels).any()):
            raise expected("lengths", f"{self.panels}, the panels of every example", lengths.tolist())
        self._noted.value = None
        return self.reason(self.represent(x))

    def forward(self, input: Any, lengths: Any = None) -> Float[Tensor, "batch answers"]:
        """Return the scores of every example.

        Parameters
        ----------
        input
            ``(panels, batch, channels, height, width)``, or `Panels`.
        lengths
            `panels` for every example, where given.
        """
        if not isinstance(input, Panels):
            return super().forward(input, lengths)
        self._check_input(input.images.unsqueeze(0).expand(len(input.index), *input.images.shape))
        return self.run(input, lengths)

    def _check_input(self, input: Any) -> None:
        super()._check_input(input)
        if len(input) != self.panels:
            raise expected("input", f"of {self.panels} panels", len(input))


def _checked_segments(segments: Any, panels: int) -> tuple[int, ...] | None:
    if segments is None:
        return None
    given = tuple(segments) if isinstance(segments, tuple | list) else ()
    whole = all(isinstance(size, int) and not isinstance(size, bool) and size >= 2 for size in given)
    if not given or not whole or sum(given) != panels:
        raise expected("segments", f"numbers of panels, each at least 2, that sum to {panels}", segments)
    return given
