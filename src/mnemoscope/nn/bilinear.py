"""Bilinear maps of matrices, U^T X V + B: as a function, as a layer, and stacks of cells whose states are matrices."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from mnemoscope.core.errors import choice, expected, positive_int
from mnemoscope.nn.activation import activate
from mnemoscope.nn.initialisers import Initialiser, uniform
from mnemoscope.nn.network import shape_of
from mnemoscope.nn.stack import Stack, Weights

__all__ = ["MatrixLinear", "MatrixStack", "bilinear", "matrix_size", "unit_gain_factor"]

Pair = tuple[int, int]


def bilinear(x: Float[Tensor, "*batch a b"], u: Float[Tensor, "a p"], v: Float[Tensor, "b q"]) -> Tensor:
    """Return U^T X V for every X, as two products with all of them."""
    return ((x @ v).mT @ u).mT


def unit_gain_factor(rows: int) -> Initialiser:
    """Draw one of the two factors of a bilinear map from U(-r, r), r^2 = sqrt(3)/rows.

    The map then multiplies mean squares by 1/3, as the uniform start of a vector network does.
    """
    return uniform(math.sqrt(math.sqrt(3) / rows))


def matrix_size(name: str, size: Any) -> Pair:
    """Return the size of a matrix, or raise the standard error unless it is a pair of positive integers."""
    if not isinstance(size, list | tuple) or len(size) != 2:
        raise expected(name, "a pair of positive integers, such as (15, 15)", size)
    rows, columns = shape_of(name, size)
    return rows, columns


class MatrixLinear(nn.Module):
    """A layer of matrices, sigma(U^T X V + B).

    Parameters
    ----------
    input_size, output_size
        (rows, columns) of X and of the result.
    nonlinearity
        sigma: ``"identity"``, ``"sigmoid"``, ``"tanh"`` or ``"relu"``.
    bias
        Whether there is a B.
    device, dtype
        Of the parameters.
    generator
        Draws the initial parameters; by default torch's global generator.

    Examples
    --------
    >>> layer = MatrixLinear((5, 5), (3, 2))
    >>> layer(torch.zeros(7, 5, 5)).shape, sum(p.numel() for p in layer.parameters())
    (torch.Size([7, 3, 2]), 31)
    """

    def __init__(
        self,
        input_size: Pair,
        output_size: Pair,
        *,
        nonlinearity: str = "identity",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.input_size, self.output_size = (
            matrix_size("input_size", input_size),
            matrix_size("output_size", output_size),
        )
        self.nonlinearity = choice("nonlinearity", nonlinearity, ("identity", "sigmoid", "tanh", "relu"))
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.rows = nn.Parameter(torch.empty(self.input_size[0], self.output_size[0], **factory))
        self.columns = nn.Parameter(torch.empty(self.input_size[1], self.output_size[1], **factory))
        self.bias = nn.Parameter(torch.empty(*self.output_size, **factory)) if bias else None
        self.reset_parameters(generator)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw U and V anew; B starts at zero."""
        for factor in (self.rows, self.columns):
            unit_gain_factor(factor.shape[0])(factor, generator)
        if self.bias is not None:
            self.bias.zero_()

    def forward(self, x: Float[Tensor, "*batch a b"]) -> Float[Tensor, "*batch p q"]:
        """Return sigma(U^T X V + B)."""
        if x.shape[-2:] != self.input_size:
            raise expected("the last axes of input", f"{self.input_size}", tuple(x.shape[-2:]))
        y = bilinear(x, self.rows, self.columns)
        y = y if self.bias is None else y + self.bias
        return torch.sigmoid(y) if self.nonlinearity == "sigmoid" else activate(self.nonlinearity, y)

    def extra_repr(self) -> str:
        """Sizes, and the options that are not at their default."""
        return (
            f"{self.input_size}, {self.output_size}, nonlinearity={self.nonlinearity!r}, bias={self.bias is not None}"
        )


class MatrixStack(Stack):
    """A stack of cells that read matrices and whose states are matrices.

    Parameters
    ----------
    input_size
        (rows, columns) of one input.
    hidden_size
        (rows, columns) of the state of every layer, or a list with one pair for each layer.
    num_layers
        Layers; with a list of sizes as many as it has.
    """

    batch_axis = 0
    input_axes: ClassVar[int] = 2
    small_sizes: ClassVar[dict[str, Any]] = {"input_size": (3, 2), "hidden_size": (2, 3)}
    counted_at: ClassVar[dict[str, Any]] = {"input_size": (5, 5), "hidden_size": (8, 8)}

    def __init__(self, input_size: Any, hidden_size: Any, num_layers: int = 1, **common: Any) -> None:
        if isinstance(hidden_size, list | tuple) and any(isinstance(size, list | tuple) for size in hidden_size):
            if num_layers not in (1, len(hidden_size)):
                raise expected("num_layers", f"{len(hidden_size)}, as many as hidden_size has pairs", num_layers)
            num_layers = len(hidden_size)
        super().__init__(input_size, hidden_size, num_layers, **common)

    def _take_input_size(self, input_size: Any) -> None:
        super()._take_input_size(matrix_size("input_size", input_size))

    def _checked_hidden_size(self, hidden_size: Any) -> Any:
        if isinstance(hidden_size, list | tuple) and any(isinstance(size, list | tuple) for size in hidden_size):
            return tuple(matrix_size("hidden_size", size) for size in hidden_size)
        return matrix_size("hidden_size", hidden_size)

    def size(self, index: int) -> Pair:
        """Return rows and columns of the state of layer `index`."""
        size: Pair = self.hidden_size if isinstance(self.hidden_size[0], int) else self.hidden_size[index]
        return size

    def layer_output_shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of what a layer hands on, both directions side by side."""
        rows, columns = self.size(index)
        return rows, columns * self.directions

    def unroll(
        self, w: Weights, x: Float[Tensor, "time batch a b"], state: Any, lengths: Tensor | None
    ) -> tuple[Tensor, Any]:
        """Run one cell over whole sequences; the last state has memory of its own."""
        y, last = super().unroll(w, x, state, lengths)
        return y, tree_map(torch.clone, last)

    def declare_factors(self, name: str, source: Pair, target: Pair, role: str = "", gates: int = 0) -> None:
        """Create U and V of a bilinear map, or of each of several gates: `name` with ``_rows`` and ``_columns``."""
        for side, a, b in (("rows", source[0], target[0]), ("columns", source[1], target[1])):
            shape = (gates, a, b) if gates else (a, b)
            self.parameter(f"{name}_{side}", *shape, init=unit_gain_factor(a), role=role)


def positive_sizes(name: str, sizes: Any, count: int) -> tuple[int, ...]:
    """Return so many positive integers, or raise the standard error."""
    if not isinstance(sizes, list | tuple) or len(sizes) != count:
        raise expected(name, f"{count} positive integers", sizes)
    return tuple(positive_int(name, size) for size in sizes)
