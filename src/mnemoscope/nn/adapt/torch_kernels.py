"""torch's recurrent kernels written out, for the transforms of `torch.func` that have no rule for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from mnemoscope.nn.ops.gates import gate, lstm_cell
from mnemoscope.nn.ops.scan import scan

__all__ = ["PlainKernels"]

Weights = list[Tensor]
Cell = Callable[[Tensor, tuple[Tensor, ...], Weights, bool], tuple[Tensor, tuple[Tensor, ...]]]


class PlainKernels(TorchFunctionMode):
    """While this mode is on, torch's RNN, LSTM and GRU, cells and layers, run as plain arithmetic.

    So `torch.func.vmap` goes through any module that has one of them inside. PackedSequences stay with torch.
    """

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replace the kernels that are known, and call all else as it is."""
        replacement = _CELLS.get(func) or (_LAYERS.get(func) if len(args) > 2 and isinstance(args[2], list) else None)
        return (replacement or func)(*args, **(kwargs or {}))


def _elman(activation: Callable[[Tensor], Tensor]) -> Cell:
    def cell(x: Tensor, state: tuple[Tensor, ...], w: Weights, biases: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        h = activation(sum(_gates(x, state[0], w, biases)))
        return h, (h,)

    return cell


def _gru(x: Tensor, state: tuple[Tensor, ...], w: Weights, biases: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
    (xr, xz, xg), (hr, hz, hg) = (part.chunk(3, dim=-1) for part in _gates(x, state[0], w, biases))
    r, z = gate(torch.sigmoid(xr + hr)), gate(torch.sigmoid(xz + hz))
    h = (1 - z) * torch.tanh(xg + r * hg) + z * state[0]
    return h, (h,)


def _lstm(x: Tensor, state: tuple[Tensor, ...], w: Weights, biases: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
    h, (_, c) = lstm_cell(sum(_gates(x, state[0], w, biases)), state[1])
    projection = w[4:] if biases else w[2:]
    h = F.linear(h, projection[0]) if projection else h
    return h, (h, c)


def _gates(x: Tensor, h: Tensor, w: Weights, biases: bool) -> Any:
    b_ih, b_hh = w[2:4] if biases else (None, None)
    return F.linear(x, w[0], b_ih), F.linear(h, w[1], b_hh)


def _as_cell(cell: Cell) -> Callable[..., Any]:
    """Give `cell` the arguments of ``torch.gru_cell`` and its kin."""

    def kernel(x: Tensor, hx: Any, *weights: Tensor | None) -> Any:
        given = [w for w in weights if w is not None]
        several = isinstance(hx, tuple | list)
        _, state = cell(x, tuple(hx) if several else (hx,), given, len(given) == 4)
        return state if several else state[0]

    return kernel


def _as_layers(cell: Cell) -> Callable[..., Any]:
    """Give `cell` the arguments of ``torch.gru`` and its kin."""

    def kernel(
        x: Tensor, hx: Any, weights: Weights, biases: bool, layers: int, dropout: float, train: bool, *turned: bool
    ) -> tuple[Tensor, ...]:
        bidirectional, batch_first = turned
        x = x.transpose(0, 1) if batch_first else x
        start = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
        directions = 2 if bidirectional else 1
        each = len(weights) // (layers * directions)
        last = []
        for layer in range(layers):
            x = F.dropout(x, dropout, train) if layer and dropout else x
            outputs = []
            for direction in range(directions):
                i = layer * directions + direction
                begin = tuple(part[i] for part in start)
                y, state = _run(cell, x, begin, weights[i * each :][:each], biases, direction)
                outputs.append(y)
                last.append(state)
            x = torch.cat(outputs, dim=-1)
        return (x.transpose(0, 1) if batch_first else x), *(torch.stack(part) for part in zip(*last, strict=True))

    return kernel


def _run(
    cell: Cell, x: Tensor, state: tuple[Tensor, ...], w: Weights, biases: bool, backwards: int
) -> tuple[Tensor, tuple[Tensor, ...]]:
    y, state = scan(lambda x_t, s: cell(x_t, s, w, biases), x.flip(0) if backwards else x, state)
    return (y.flip(0) if backwards else y), state


_CELLS: dict[Any, Callable[..., Any]] = {
    torch.rnn_tanh_cell: _as_cell(_elman(torch.tanh)),
    torch.rnn_relu_cell: _as_cell(_elman(torch.relu)),
    torch.gru_cell: _as_cell(_gru),
    torch.lstm_cell: _as_cell(_lstm),
}
_LAYERS: dict[Any, Callable[..., Any]] = {
    torch.rnn_tanh: _as_layers(_elman(torch.tanh)),
    torch.rnn_relu: _as_layers(_elman(torch.relu)),
    torch.gru: _as_layers(_gru),
    torch.lstm: _as_layers(_lstm),
}
