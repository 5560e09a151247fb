"""Matrix by which a network's state goes from one step to the next."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Inexact
from torch import Tensor, nn

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.core.memory import require
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.spectral.schur import checked_matrix

if TYPE_CHECKING:
    from mnemoscope.nn.first_order import FirstOrder

__all__ = ["BYTES", "StateMatrix", "state_matrix"]

BYTES = 8 * 6
"""Of memory for each entry of a Jacobian: itself, and what is made of it."""

_ASIDE, _JUMP = 1e-6, 0.01
"""How far from rest the derivative is looked at again, and by which share it may differ there."""

_DRIVEN = 100
"""Inputs after which it is taken where the one at rest says nothing."""


@dataclass(frozen=True)
class StateMatrix:
    """The matrix of a network.

    Attributes
    ----------
    matrix
        In double precision.
    what
        What it is of the network, in words.
    rounding
        Of the type that the weights were stored in.
    theta
        S and Q of W = Q S Q^T where the network is made of them (nnRNN); None: they have to be computed.
    """

    matrix: Inexact[np.ndarray, "n n"]
    what: str
    rounding: float = float(np.finfo(float).eps)
    theta: tuple[Float[np.ndarray, "n n"], Float[np.ndarray, "n n"]] | None = None


def state_matrix(
    source: Any, settle: int = 0, network: nn.Module | None = None, measure: str = "spectrum"
) -> StateMatrix:
    """Return the matrix of a network, of saved weights, or the given one, checked.

    A first-order network h = phi(V h + U x + b) has one: V. With several layers it is that of the linear part, phi =
    id: block lower triangular, as each layer reads what the one below it has just become. Any other network has the
    Jacobian of its step at rest: at zero input, at the initial state or after `settle` steps from there. Where that is
    zero, or jumps right beside it (a relu), it is taken at the end of a driven trajectory, and `what` says so.

    Parameters
    ----------
    source
        A square matrix, a network, or a state_dict.
    settle
        Steps at zero input before the Jacobian is taken.
    network
        Whose weights a state_dict holds; needed unless it holds V as it is.
    measure
        Who asks, as errors name it.
    """
    if isinstance(source, Mapping):
        return _of_weights(source, network, settle, measure)
    if not isinstance(source, nn.Module | Dynamics):
        return StateMatrix(checked_matrix("W", source), "the given matrix", _rounding(source))
    dynamics = Dynamics.of(source, measure, differentiable=False)
    found = _of_network(dynamics, settle)
    types = [_rounding(p) for p in dynamics.original.parameters() if p.is_floating_point() or p.is_complex()]
    return replace(found, rounding=max(types, default=found.rounding))


def _rounding(value: Any) -> float:
    """Return the relative precision of an array's type; that of float64 for what has none."""
    kind = getattr(value, "dtype", None)
    if isinstance(kind, torch.dtype) and (kind.is_floating_point or kind.is_complex):
        return float(torch.finfo(kind).eps)
    if isinstance(kind, np.dtype) and kind.kind in "fc":
        return float(np.finfo(kind).eps)
    return float(np.finfo(float).eps)


def _of_network(dynamics: Dynamics, settle: int) -> StateMatrix:
    from mnemoscope.nn.first_order import FirstOrder  # neither is needed for matrices

    inner = getattr(dynamics.network, "module", dynamics.network)
    if isinstance(inner, FirstOrder | nn.RNN):
        weights = {name: getattr(inner, name) for name in _names(inner.num_layers)}
        return replace(_first_order(weights, inner.num_layers), theta=_own_schur_form(inner))
    if isinstance(inner, nn.RNNCell):
        return StateMatrix(checked_matrix("weight_hh", inner.weight_hh), "weight_hh")
    return _at_rest(dynamics, settle)


def _names(layers: int) -> list[str]:
    return [f"{name}_l{k}" for k in range(layers) for name in ("weight_ih", "weight_hh")]


def _of_weights(saved: Mapping[str, Any], network: nn.Module | None, settle: int, measure: str) -> StateMatrix:
    if network is not None:
        twin = copy.deepcopy(network)
        try:
            twin.load_state_dict(dict(saved))
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:160]
            raise UserError(f"the state_dict must be one of {type(network).__name__}: {reason}") from error
        return state_matrix(twin, settle, None, measure)
    layers = 0
    while f"weight_hh_l{layers}" in saved:
        layers += 1
    square = layers and all(
        saved[f"weight_hh_l{k}"].shape[0] == saved[f"weight_hh_l{k}"].shape[1] for k in range(layers)
    )
    if not square:
        kept = ", ".join(list(saved)[:3])
        raise expected(
            "a state_dict without network=", "one with square weight_hh_l0", Description(f"one of {kept}, ..")
        )
    found = _first_order({name: saved[name] for name in _names(layers) if name in saved}, layers)
    return replace(found, rounding=_rounding(saved["weight_hh_l0"]))


def _first_order(weights: Mapping[str, Tensor], layers: int) -> StateMatrix:
    if layers == 1:
        return StateMatrix(checked_matrix("weight_hh_l0", weights["weight_hh_l0"]), "weight_hh_l0")
    recurrent = [_real(checked_matrix(f"weight_hh_l{k}", weights[f"weight_hh_l{k}"])) for k in range(layers)]
    n = len(recurrent[0])
    rows = np.zeros((layers, n, layers * n))
    for k in range(layers):
        if k:
            rows[k] = weights[f"weight_ih_l{k}"].detach().cpu().double().numpy() @ rows[k - 1]
        rows[k][:, k * n : (k + 1) * n] += recurrent[k]
    return StateMatrix(rows.reshape(layers * n, layers * n), f"the linear part of {layers} layers")


def _own_schur_form(layer: FirstOrder | nn.RNN) -> tuple[np.ndarray, np.ndarray] | None:
    """Return Theta and P of a one-layer network whose V is P Theta P^T by construction."""
    from mnemoscope.nn.first_order import FirstOrder
    from mnemoscope.nn.maps.schur import Schur

    schur = layer.transition() if isinstance(layer, FirstOrder) and layer.num_layers == 1 else None
    if not isinstance(schur, Schur):
        return None
    maps: Any = layer.parametrizations
    parameters = list(maps["weight_hh_l0"].parameters(recurse=False))
    return schur.form(*parameters).numpy(), schur.orthogonal_map.map(parameters[0]).numpy()


def _real(matrix: Inexact[np.ndarray, "n n"]) -> Inexact[np.ndarray, "m m"]:
    """Return a complex matrix as a real one of twice the size; layers above read real and imaginary parts."""
    if not np.iscomplexobj(matrix):
        return matrix
    return np.block([[matrix.real, -matrix.imag], [matrix.imag, matrix.real]])


def _kink(step: Dynamics, silent: Tensor, state: Any, jacobian: Tensor) -> bool:
    """Say whether the derivative at rest is none of the network's: zero, or another one right beside it (a relu)."""
    if not bool(jacobian.any()):
        return True
    generator = torch.Generator().manual_seed(0)
    flat = step.flatten(state)
    aside = _ASIDE * torch.randn(flat.shape, generator=generator, dtype=torch.float64).to(flat)
    x = _ASIDE * torch.randn(silent.shape, generator=generator, dtype=torch.float64).to(silent)
    near = step.jacobians(x, step.unflatten(flat + aside, state)).state[0]
    return float((near - jacobian).norm()) > _JUMP * float(jacobian.norm())


def _at_rest(dynamics: Dynamics, settle: int) -> StateMatrix:
    step = Dynamics.of(dynamics, dynamics.what)  # whose step has to be differentiable
    size = step.size
    require(f"the Jacobian of {size} numbers of state", BYTES * size * size, "a smaller hidden_size would fit")
    silence = torch.zeros(settle, 1, step.input_size, **step.factory)
    state = step.drive(silence, step.start(1))[-1]
    silent = torch.zeros(1, step.input_size, **step.factory)
    jacobian = step.jacobians(silent, state).state[0]
    where = f"after {settle} steps at rest" if settle else "at rest"
    if _kink(step, silent, state, jacobian):
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(_DRIVEN, 1, step.input_size, generator=generator, dtype=torch.float64).to(**step.factory)
        jacobian = step.jacobians(x[-1], step.drive(x[:-1], step.start(1))[-1]).state[0]
        where = f"after {_DRIVEN - 1} normal inputs, since at rest the slope is zero or jumps"
    return StateMatrix(checked_matrix("the state Jacobian", jacobian), f"the state Jacobian {where}")
