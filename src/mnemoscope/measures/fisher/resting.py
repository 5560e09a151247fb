"""Networks of matrices and machines as linear systems: exactly where they are linear, else near their rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.nn.machine import Machine
from mnemoscope.nn.networks.matrix_queue import MatrixQueue
from mnemoscope.nn.networks.matrixrnn import MatrixLSTM, MatrixRNN

__all__ = ["Linearised", "linearised", "matrices_of"]

_SETTLE = 500
_STILL = 1e-12
_LARGEST = 1500  # numbers in a state whose Jacobian is formed and solved


@dataclass(frozen=True)
class Linearised:
    """The system X(n) = U^T X(n-1) V + W s(n) + sum_k alpha_k X(n-1-k) that a network is, or is near its rest.

    Attributes
    ----------
    U, V, W
        Its matrices; of a network that is not of this form at rest U^T is the Jacobian of its state, V is 1.
    weights
        alpha; empty without a queue.
    words
        What was done, for the assumptions of a result.
    """

    U: Float[np.ndarray, "n n"]
    V: Float[np.ndarray, "m m"]
    W: Float[np.ndarray, "n m"]
    weights: tuple[float, ...]
    words: str


def matrices_of(
    U: Any, V: Any, W: Any, channel: int, what: str
) -> tuple[Any, Any, Any, tuple[float, ...] | None, tuple[str, ...]]:
    """Return U, V, W, a queue's weights where a network has one, and words: those given, or those of a network."""
    if isinstance(U, nn.Module | Dynamics):
        if V is not None or W is not None:
            raise UserError(f"{what} takes a network, or U, V and W; not both")
        found = linearised(U, what, channel)
        return found.U, found.V, found.W, found.weights or None, (found.words,)
    missing = [name for name, given in (("V", V), ("W", W)) if given is None]
    if missing:
        raise UserError(f"{what} of a matrix U also needs {' and '.join(missing)}")
    return U, V, W, None, ()


def linearised(network: Any, what: str, channel: int = 0) -> Linearised:
    """Return the linear system of a network of matrices or a machine, driven by one number of its input.

    Parameters
    ----------
    network
        matrixrnn, matrixlstm, matrix-queue, ntm or matntm, trained or not.
    what
        The measure, as errors name it.
    channel
        Which number of the input the signal is, counted row by row.
    """
    given = network.original if isinstance(network, Dynamics) else network
    if not isinstance(given, MatrixRNN | MatrixLSTM | MatrixQueue | Machine):
        wanted = "a network of matrices or a machine (matrixrnn, matrixlstm, matrix-queue, ntm, matntm)"
        raise expected("network", wanted, Description(type(given).__name__))
    dynamics = Dynamics.of(network, what)
    if isinstance(channel, bool) or not isinstance(channel, int) or not 0 <= channel < dynamics.input_size:
        raise expected("channel", f"an input from 0 to {dynamics.input_size - 1}", channel)
    if dynamics.size > _LARGEST:
        raise UserError(
            f"{what} forms the Jacobian of a state of at most {_LARGEST} numbers, and this network's has "
            f"{dynamics.size}; give it a smaller state or memory"
        )
    rest, moves = _at_rest(dynamics)
    twin: Any = dynamics.network
    if isinstance(given, MatrixRNN | MatrixQueue) and twin.num_layers == 1 and not twin.bidirectional:
        linear = twin.nonlinearity == "identity"
        if linear or (twin.nonlinearity == "tanh" and not bool(dynamics.flatten(rest).any())):
            return _bilinear(dynamics, twin, channel, linear)
    if isinstance(given, MatrixQueue):
        raise UserError(f"{what} needs a matrix-queue of one layer that is linear, or tanh without a bias, at rest")
    if moves:
        raise UserError(f"{what} linearises a network at rest, and this one does not come to rest in {_SETTLE} steps")
    found = dynamics.jacobians(torch.zeros(1, dynamics.input_size, **dynamics.factory), rest)
    response = found.input[0, :, channel].cpu().numpy()
    if not response.any():
        raise expected("channel", "an input that the state feels at rest", channel)
    words = f"linearised at rest, noise in each of the {dynamics.size} numbers of its state"
    return Linearised(found.state[0].T.cpu().numpy(), np.ones((1, 1)), response[:, None], (), words)


def _bilinear(dynamics: Dynamics, twin: Any, channel: int, linear: bool) -> Linearised:
    """Return the factors as they are: the network is this system, or has slope 1 at its rest, zero."""
    silence = torch.zeros(1, dynamics.input_size, **dynamics.factory)
    by_input = dynamics.jacobians(silence, dynamics.start(1)).input[0, :, channel]
    rows, columns = twin.weight_hh_rows_l0.cpu().numpy(), twin.weight_hh_columns_l0.cpu().numpy()
    response = by_input[: len(rows) * len(columns)]  # the latest state is the first of a queue
    return Linearised(
        rows,
        columns,
        response.reshape(len(rows), len(columns)).cpu().numpy(),
        getattr(twin, "queue", ()),
        "the network is linear" if linear else "linearised at rest, at zero, where tanh has slope 1",
    )


@torch.no_grad()
def _at_rest(dynamics: Dynamics) -> tuple[Any, bool]:
    """Return the state that zero input leads to from the start, and whether it still moves."""
    silence = torch.zeros(1, dynamics.input_size, **dynamics.factory)
    state = dynamics.start(1)
    for _ in range(_SETTLE):
        after = dynamics.step(silence, state)[1]
        if _distance(after, state) <= _STILL:
            return after, False
        state = after
    return state, True


def _distance(one: Any, other: Any) -> float:
    pairs = zip(tree_leaves(one), tree_leaves(other), strict=True)
    found = [_relative(a, b) for a, b in pairs if a.is_floating_point()]
    return max(found, default=0.0)


def _relative(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max() / (1 + a.abs().max())) if a.numel() else 0.0
