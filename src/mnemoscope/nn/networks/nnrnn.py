"""nnRNN: V by its Schur form, non-normal with eigenvalues near the unit circle."""

from __future__ import annotations

from typing import Unpack

from mnemoscope.nn.first_order import FirstOrder, FirstOrderOptions
from mnemoscope.nn.maps.schur import Schur
from mnemoscope.nn.registry import network

__all__ = ["NNRNN"]


@network(
    "nnrnn",
    family="non-normal",
    equations=(
        "h_t = phi(V h_{t-1} + U x_t + b)",
        "V = P (Lambda + T) P^T, P = exp(A) orthogonal, T strictly lower triangular",
        "Lambda = diag(gamma_1 R(theta_1), gamma_2 R(theta_2), ..), loss + delta sum (gamma_i - 1)^2 + decay |T|^2",
    ),
    state="n",
    references=("kerg2019",),
    notes=(
        "block='published' lets T into the 2 x 2 blocks, as printed; eigenvalue moduli are then not gamma.",
        "For odd n the last block is 1 x 1: the number gamma.",
        "Add penalty() to the loss.",
    ),
)
class NNRNN(FirstOrder):
    """The non-normal network.

    Parameters
    ----------
    block
        ``"rotation"``: gamma R(theta); ``"balanced"``: gamma [[cos, -r sin], [sin / r, cos]], r learned, which reaches
        every real matrix with pairs of non-real eigenvalues; ``"published"``: T also within the blocks.
    gamma
        ``"regularised"``, ``"free"`` or ``"clamped"`` at `gamma_value`.
    delta
        Strength of the penalty on gamma.
    decay
        Strength of the penalty on T.
    gamma_value
        Where gamma is clamped.
    """

    init_default = "henaff"

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        block: str = "rotation",
        gamma: str = "regularised",
        delta: float = 1e-4,
        decay: float = 1e-6,
        gamma_value: float = 1.0,
        **common: Unpack[FirstOrderOptions],
    ) -> None:
        self.block, self.gamma, self.delta, self.decay = block, gamma, delta, decay
        self.gamma_value = gamma_value
        super().__init__(input_size, hidden_size, num_layers, **common)

    def make_transition(self) -> Schur:
        """Return the Schur form."""
        return Schur(self.hidden_size, self.block, self.gamma, self.delta, self.decay, self.init, self.gamma_value)
