"""Drift of recurrent weights along a training: away from orthogonal, away from normal, and of eigenvalues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.linalg
from jaxtyping import Complex, Float, Inexact
from torch import nn

from mnemoscope.core.errors import Description, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import in_double_precision
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.spectral.state_matrix import state_matrix

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["Drift", "drift"]

_WHAT = "drift"


@result
class Drift(Result):
    """Recurrent weights at several moments.

    Attributes
    ----------
    positions
        When: training steps, or the place in the list.
    orthogonality
        Frobenius norm of V^T V - I, of the layer in which it is largest.
    stretch
        Largest and smallest singular value of V, over layers.
    eigenvalues
        One row per moment, the largest first.
    gamma
        Moduli of the eigenvalues: the network's own gamma where it has one (nnRNN), else computed; descending.
    henrici
        Distance from normal: the norm of what stands above the diagonal of the Schur form.
    share
        That over the norm of the matrix.
    of
        What matrix it is, in words.
    frames
        How many moments the film strip shows.
    """

    measure: ClassVar[str] = "drift"
    references: ClassVar[tuple[str, ...]] = ("henrici1962", "kerg2019")

    positions: Float[np.ndarray, " moment"]
    orthogonality: Float[np.ndarray, " moment"]
    stretch: Float[np.ndarray, "moment two"]
    eigenvalues: Complex[np.ndarray, "moment n"]
    gamma: Float[np.ndarray, "moment k"]
    henrici: Float[np.ndarray, " moment"]
    share: Float[np.ndarray, " moment"]
    of: str
    frames: int

    @property
    def radius(self) -> Float[np.ndarray, " moment"]:
        """Largest modulus of an eigenvalue, at each moment."""
        return np.asarray(np.abs(self.eigenvalues).max(1))

    def __str__(self) -> str:
        first, last = self.positions[[0, -1]]
        moments = f"{len(self.positions)} checkpoints from step {first:g} to {last:g}"
        parts = {
            "|V'V - I|": self.orthogonality,
            "spectral radius": self.radius,
            "mean gamma": self.gamma.mean(1),
            "Henrici departure": self.henrici,
        }
        said = [f"{name} {row[0]:.4g} -> {row[-1]:.4g}" for name, row in parts.items()]
        return f"{moments}: {', '.join(said)} (of {self.of})"

    def plot(self) -> chart.Chart:
        """Draw a film strip of the eigenvalues, and below it what drifts."""
        from mnemoscope.report import Figure, Mark, Plane, chart
        from mnemoscope.report.vega import chart as drawn

        count = len(self.positions)
        shown = np.unique(np.linspace(0, count - 1, min(count, self.frames)).round().astype(int))
        film = Plane(
            points={f"step {self.positions[i]:g}": self.eigenvalues[i].tolist() for i in shown},
            title="eigenvalues",
            marks=(Mark(kind="circle", label="unit circle", value=1.0),),
        )
        away = {"|V'V - I|": self.orthogonality, "Henrici departure": self.henrici}
        sizes = {
            "largest gamma": self.gamma.max(1),
            "mean gamma": self.gamma.mean(1),
            "smallest gamma": self.gamma.min(1),
        }
        at, points = self.positions, count <= 40
        curves = chart.beside(
            chart.lines(
                {name: (at, row) for name, row in away.items()},
                x="training step",
                y="distance",
                title="From orthogonal, from normal",
                points=points,
            ),
            chart.lines(
                {name: (at, row) for name, row in sizes.items()},
                x="training step",
                y="modulus of an eigenvalue",
                title="Gamma",
                points=points,
            ),
        )
        return chart.beside(drawn(Figure(title=f"Eigenvalues of {self.of}", drawing=film)), curves, columns=1)


_COST = Cost(
    time={"m S^3": 6e-8},
    memory="m S",
    sizes={"m": lambda known: len(known.get("networks") or (1,))},
    letters={"m": "checkpoints"},
)


@measure("drift", kinds=("run",), matrices={"networks": "matrix"}, cost=_COST)
def drift(
    networks: Sequence[Any] | Float[np.ndarray, "moment n n"],
    *,
    positions: Sequence[float] | None = None,
    frames: int = 6,
) -> Drift:
    r"""Follow the recurrent weights of a network along its training.

    .. math::
        \|V^\top V - I\|_F, \qquad \lambda_i(V), \; \gamma_i = |\lambda_i|, \qquad
        \Big( \|V\|_F^2 - \sum_i |\lambda_i|^2 \Big)^{1/2}

    at every moment, the last from the Schur form, which keeps its digits near normal matrices. V is the recurrent
    matrix of a first-order network, of several layers the block-triangular matrix of all (orthogonality is then that of
    the layer furthest from it); of any other network the Jacobian of the state at rest.

    Parameters
    ----------
    networks
        Networks of one size, state_dicts with weight_hh_l0 in them, or matrices, in the order of time. On the command
        line the checkpoints of a run (`training.snapshots`), or matrices from files.
    positions
        When each was so: training steps. None: 0, 1, 2, ..
    frames
        Most pictures in the film strip.

    Returns
    -------
    Drift

    References
    ----------
    Henrici (1962); Kerg et al. (2019).

    Examples
    --------
    >>> import numpy as np
    >>> found = drift([np.eye(2), [[1.0, 0.0], [3.0, 1.0]]])
    >>> found.henrici.round(12).tolist(), found.orthogonality.round(6).tolist()
    ([0.0, 3.0], [0.0, 9.949874])
    """
    if isinstance(networks, Mapping | nn.Module | str) or not hasattr(networks, "__len__") or not len(networks):
        raise expected("networks", "a list of matrices, networks or state_dicts", Description(_name(networks)))
    if isinstance(networks, np.ndarray) and networks.ndim == 2:
        raise expected("networks", "several matrices, one for each moment", Description("one matrix"))
    at = np.arange(len(networks), dtype=float) if positions is None else np.asarray(positions, dtype=float)
    if at.shape != (len(networks),):
        raise expected("positions", f"one number for each of the {len(networks)} networks", Description(f"{at.shape}"))
    whole = [state_matrix(each, measure=_WHAT) for each in networks]
    sizes = {len(each.matrix) for each in whole}
    if len(sizes) > 1:
        raise expected("networks", "of one size", sorted(sizes))
    layers = [_layers(source, found.matrix) for source, found in zip(networks, whole, strict=True)]
    spectra = [_spectrum(found.matrix) for found in whole]
    own = [_gamma(each) for each in networks]
    moduli = [np.abs(values) for values, _ in spectra]
    told = [given for given in own if given is not None]
    return Drift(
        status="exact",
        digits=12,
        assumptions=(
            f"the matrix is {whole[0].what}",
            "gamma is the network's own" if len(told) == len(own) else "gamma is the moduli of the eigenvalues",
        ),
        cost=str(_COST),
        positions=at,
        orthogonality=np.array([max(map(_from_orthogonal, each)) for each in layers]),
        stretch=np.array([_stretch(each) for each in layers]),
        eigenvalues=np.stack([values for values, _ in spectra]),
        gamma=np.stack(told if len(told) == len(own) else moduli),
        henrici=np.array([departure for _, departure in spectra]),
        share=np.array([_share(departure, f.matrix) for (_, departure), f in zip(spectra, whole, strict=True)]),
        of=whole[0].what,
        frames=positive_int("frames", frames),
    )


def _spectrum(V: Inexact[np.ndarray, "n n"]) -> tuple[Complex[np.ndarray, " n"], float]:
    """Return the eigenvalues, the largest first, and the departure from normality."""
    form = scipy.linalg.schur(V.astype(complex), output="complex")[0]
    values = np.diag(form)
    order = np.lexsort((-values.imag, -values.real.round(12), -np.abs(values).round(12)))
    return values[order], float(np.linalg.norm(np.triu(form, 1)))


def _share(departure: float, V: Inexact[np.ndarray, "n n"]) -> float:
    size = float(np.linalg.norm(V))
    return departure / size if size else 0.0


def _layers(source: Any, whole: Inexact[np.ndarray, "n n"]) -> list[Inexact[np.ndarray, "n n"]]:
    """Return the recurrent matrix of every layer of a first-order network; else the whole matrix."""
    layers = getattr(source, "num_layers", 1) if isinstance(source, nn.Module) else 1
    if layers == 1 or not hasattr(source, "weight_hh_l0"):
        return [whole]
    return [in_double_precision(getattr(source, f"weight_hh_l{k}").detach().cpu()).numpy() for k in range(layers)]


def _from_orthogonal(V: Inexact[np.ndarray, "n n"]) -> float:
    return float(np.linalg.norm(V.conj().T @ V - np.eye(V.shape[1])))


def _stretch(layers: list[Inexact[np.ndarray, "n n"]]) -> tuple[float, float]:
    values = np.concatenate([np.linalg.svd(each, compute_uv=False) for each in layers])
    return float(values.max()), float(values.min())


def _gamma(source: Any) -> Float[np.ndarray, " k"] | None:
    """Return the moduli that a network made of its Schur form (nnRNN) has for parameters, descending."""
    if not isinstance(source, nn.Module) or not hasattr(source, "parametrizations"):
        return None
    from mnemoscope.nn.maps.schur import Schur

    maps: Any = source.parametrizations
    if "weight_hh_l0" not in maps or getattr(source, "num_layers", 1) != 1:
        return None
    schur = next((each for each in maps["weight_hh_l0"] if isinstance(each, Schur)), None)
    if schur is None or schur.block == "published":
        return None
    gamma = schur.named(list(maps["weight_hh_l0"].parameters(recurse=False)))["gamma"]
    return np.sort(np.abs(gamma.detach().cpu().double().numpy()))[::-1]


def _name(value: Any) -> str:
    return "nothing" if hasattr(value, "__len__") and len(value) == 0 else f"a {type(value).__name__}"
