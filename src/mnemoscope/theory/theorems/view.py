"""A network as theorems see it: its sizes, what it is made of, and what its matrices are like."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Inexact
from scipy.sparse.linalg import svds
from torch import nn

from mnemoscope.core.errors import UserError
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.trajectory import constant_jacobians
from mnemoscope.nn.adapt import adapt
from mnemoscope.nn.first_order import FirstOrder
from mnemoscope.nn.maps.base import Transition
from mnemoscope.nn.maps.cayley import ComplexScaledCayley, RebasedCayley, ScaledCayley
from mnemoscope.nn.maps.exponential import Exponential
from mnemoscope.nn.maps.fourier import Fourier
from mnemoscope.nn.maps.givens import Givens
from mnemoscope.nn.maps.householder import Householder
from mnemoscope.nn.networks.birnn import Bilinear
from mnemoscope.nn.networks.cprnn import CPRNN
from mnemoscope.nn.networks.henaff import Henaff
from mnemoscope.nn.networks.mirnn import MIRNN
from mnemoscope.nn.networks.rac import RAC
from mnemoscope.nn.networks.second_order import SecondOrderRNN
from mnemoscope.nn.options import public_class
from mnemoscope.nn.registry import card
from mnemoscope.nn.stack import Stack

__all__ = ["NetworkView"]

_ORTHOGONAL = (ScaledCayley, ComplexScaledCayley, RebasedCayley, Exponential, Fourier, Givens, Householder)
_SAME = 1e-5
"""Up to which share two matrices in single precision count as equal."""
_FEW = 8
"""Columns that are compared before all of them."""
_LARGE = 512
"""Rows from which on singular values are not all found for the largest."""
_MOST = 1024
"""Numbers in a state up to which a stranger's network is asked whether it is linear."""


class NetworkView:
    """One network as theorems see it. Everything is computed when it is asked for.

    Parameters
    ----------
    network
        Any network, or a module that `mnemoscope.adapt` understands.
    """

    def __init__(self, network: nn.Module) -> None:
        self.network: Any = adapt(network)
        self.module: Any = getattr(self.network, "module", self.network)
        self.kind = str(getattr(self.network, "kind", ""))
        own = card(public_class(type(self.module)))
        self.name = public_class(type(self.module)).__name__ if own is None else own.name
        self.family = "" if own is None else own.family

    def is_a(self, *classes: type) -> bool:
        """Say whether the network is one of these."""
        return isinstance(self.module, classes)

    def option(self, name: str, default: Any = None) -> Any:
        """Return an option of the network by its name."""
        return getattr(self.module, name, default)

    @property
    def d(self) -> int:
        """Numbers per step of the input."""
        return int(self.network.input_size)

    @property
    def n(self) -> int:
        """Units of a layer."""
        return int(self.option("hidden_size") or self.state_size or 0)

    @property
    def layers(self) -> int:
        """L."""
        return int(self.option("num_layers", 1))

    @cached_property
    def state_size(self) -> int | None:
        """Real numbers in the state; None where there is none, or where it grows."""
        found = getattr(self.network, "state_size", None)
        return None if found is None else int(found)

    @property
    def one_way(self) -> bool:
        """Whether it reads its input from the past to the future only."""
        return bool(getattr(self.network, "causal", True))

    @property
    def recurrent(self) -> bool:
        """Whether it has a state of a fixed size that is carried from step to step."""
        return self.kind == "recurrent" and self.one_way and self.state_size is not None

    @property
    def products(self) -> bool:
        """Whether every state is a product with every input: circuits and bilinear networks."""
        return self.is_a(RAC, Bilinear) and self.one_way

    @property
    def polynomial(self) -> bool:
        """Whether its states are polynomials of its inputs, of a degree above one."""
        second = self.is_a(SecondOrderRNN, CPRNN, MIRNN) and self.phi == "identity"
        return self.products or (second and self.one_way)

    @property
    def transitions(self) -> str:
        """Declared form of A(x) in h_t = A(x_t) h_{t-1} + b(x_t); empty where nothing is declared."""
        return str(self.option("transitions", ""))

    @property
    def key_size(self) -> int | None:
        """Numbers of a key by which a matrix state is read, as declared."""
        found = self.option("key_size")
        return None if found is None else int(found)

    # Matrices -----------------------------------------------------------------------------------

    @property
    def first_order(self) -> bool:
        """Whether it is h = phi(V h + U x + b), in one direction."""
        return self.is_a(FirstOrder, nn.RNN, nn.RNNCell) and self.one_way

    @property
    def phi(self) -> str:
        """The nonlinearity of a first-order or second-order network."""
        return str(self.option("nonlinearity", ""))

    @property
    def straight(self) -> bool:
        """Whether phi is not in the recurrence of one first-order layer: the state Jacobian is V everywhere."""
        depth = self.option("activation") == "depth"
        return self.first_order and self.layers == 1 and (depth or self.phi == "identity" or self.is_a(Henaff))

    @property
    def complex(self) -> bool:
        """Whether the state is complex."""
        return bool(self.option("field", "real") == "complex")

    @cached_property
    def V(self) -> Inexact[np.ndarray, "n n"]:  # noqa: N802 - the letter of the papers
        """The recurrent matrix of the first layer of a first-order network."""
        return _array(self._weight("weight_hh"))

    @cached_property
    def U(self) -> Float[np.ndarray, "n d"]:  # noqa: N802 - the letter of the papers
        """The input matrix of the first layer of a first-order network; [Re, Im] over the complex field."""
        return _array(self._weight("weight_ih"))

    def _weight(self, name: str, layer: int = 0) -> torch.Tensor:
        found: torch.Tensor = getattr(self.module, name if self.is_a(nn.RNNCell) else f"{name}_l{layer}")
        return found

    @property
    def map(self) -> Transition | None:
        """Map that makes V, or None when V is free."""
        return self.module.transition() if isinstance(self.module, Stack) else None

    @property
    def stays_orthogonal(self) -> bool:
        """Whether V is orthogonal or unitary by construction, so that training cannot change it."""
        return self.first_order and isinstance(self.map, _ORTHOGONAL)

    @cached_property
    def orthogonal(self) -> bool:
        """Whether V is orthogonal or unitary, to single precision."""
        if not self.first_order:
            return False
        for count in (min(_FEW, len(self.V)), len(self.V)):  # a few columns tell of most matrices that they are none
            gap = self.V.conj().T @ self.V[:, :count] - np.eye(len(self.V), count)
            if not np.abs(gap).max() <= _SAME:
                return False
        return True

    @cached_property
    def normal(self) -> bool:
        """Whether V commutes with its adjoint, to single precision."""
        if not self.first_order or self.orthogonal:
            return self.orthogonal
        adjoint, most = self.V.conj().T, _SAME * np.linalg.norm(self.V) ** 2
        for count in (_FEW, len(self.V)):
            gap = self.V @ adjoint[:, :count] - adjoint @ self.V[:, :count]
            if not np.linalg.norm(gap) <= most:
                return False
        return True

    @cached_property
    def matrices(self) -> tuple[Float[np.ndarray, "S S"], Float[np.ndarray, "S d"]] | None:
        """A and B of the whole state of a linear network, h = A h + B x + b; None for all others."""
        # Of our own networks only linear first-order ones and some with fixed transitions need to be asked.
        known = self.is_a(Stack, nn.RNN, nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell)
        known = known and self.transitions != "fixed diagonal"
        if not self.recurrent or (known and not (self.first_order and self.phi == "identity")):
            return None
        if (self.state_size or 0) > _MOST:
            return None
        try:
            fixed = constant_jacobians(Dynamics.of(self.network, "theory"))
        except UserError:
            return None  # a module that cannot be differentiated, or overflows: not linear as far as anybody knows
        return None if fixed is None else (fixed.state[0].cpu().numpy(), fixed.input[0].cpu().numpy())

    @property
    def linear(self) -> bool:
        """Whether the next state is an affine function of state and input."""
        return self.matrices is not None

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """Of the state matrix: that of a linear network, V of a straight one."""
        return np.linalg.eigvals(self.matrices[0] if self.matrices is not None else self.V)

    @cached_property
    def radius(self) -> float:
        """The spectral radius of the state matrix."""
        return float(np.abs(self.eigenvalues).max())

    @cached_property
    def input_norm(self) -> float:
        r"""By how much a unit input moves the state of a linear or first-order network at most.

        Exact where it is linear. Otherwise layer l moves by at most \|U_l\| .. \|U_1\|, slopes being at most 1.
        """
        if self.matrices is not None:
            return float(np.linalg.norm(self.matrices[1], 2))
        gains = np.cumprod([np.linalg.norm(U, 2) for U in self._layers("weight_ih")])
        return float(np.linalg.norm(gains))

    @cached_property
    def recurrent_norm(self) -> float:
        """The largest singular value of the recurrent matrices of a first-order network."""
        return max(map(_norm, self._layers("weight_hh")))

    def _layers(self, name: str) -> list[np.ndarray]:
        return [_array(self._weight(name, layer)) for layer in range(self.layers)]


def _norm(V: Inexact[np.ndarray, "n n"]) -> float:
    """Return the largest singular value: of a large matrix by a Lanczos process, to rounding."""
    if len(V) <= _LARGE:
        return float(np.linalg.norm(V, 2))
    start = np.random.default_rng(0).normal(size=len(V)).astype(V.dtype)
    return float(svds(V, k=1, v0=start, return_singular_vectors=False)[0])


def _array(tensor: torch.Tensor) -> np.ndarray:
    values = tensor.detach().cpu()
    found: np.ndarray = values.to(torch.complex128 if values.is_complex() else torch.float64).numpy()
    return found
