"""Spectra along a list of matrices, such as those of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Complex, Float
from torch import nn

from mnemoscope.core.errors import Description, expected
from mnemoscope.core.result import Result, result
from mnemoscope.measures.spectral.matrix import spectrum_of
from mnemoscope.measures.spectral.state_matrix import state_matrix

if TYPE_CHECKING:
    from mnemoscope.report.chart import Chart

__all__ = ["Spectra", "spectra"]


@result
class Spectra(Result):
    """The numbers of `Spectrum`, one for each matrix of a list.

    Attributes
    ----------
    positions
        Where each matrix stands: its number, or what was given, such as training steps.
    eigenvalues
        One row per matrix.
    radius, henrici, share, kreiss, amplification, numerical_abscissa, numerical_radius
        As in `Spectrum`, one per matrix.
    subdiagonals
        Mean size of the k-th subdiagonals of the Schur form, one row per matrix.
    angle_counts, angle_edges
        Histograms of the eigenvalues' angles in degrees, one row per matrix.
    """

    measure: ClassVar[str] = "spectra"
    references: ClassVar[tuple[str, ...]] = ("henrici1962", "spijker1991", "trefethen2005", "kerg2019")

    positions: Float[np.ndarray, " m"]
    eigenvalues: Complex[np.ndarray, "m n"]
    radius: Float[np.ndarray, " m"]
    henrici: Float[np.ndarray, " m"]
    share: Float[np.ndarray, " m"]
    kreiss: Float[np.ndarray, " m"]
    amplification: Float[np.ndarray, " m"]
    numerical_abscissa: Float[np.ndarray, " m"]
    numerical_radius: Float[np.ndarray, " m"]
    subdiagonals: Float[np.ndarray, "m n"]
    angle_counts: Float[np.ndarray, "m bins"]
    angle_edges: Float[np.ndarray, " edges"]

    def __str__(self) -> str:
        return (
            f"{len(self.positions)} matrices: Henrici departure {self.henrici[0]:.6g} -> {self.henrici[-1]:.6g}, "
            f"spectral radius {self.radius[0]:.6g} -> {self.radius[-1]:.6g}, "
            f"Kreiss constant {self.kreiss[0]:.6g} -> {self.kreiss[-1]:.6g}"
        )

    def plot(self) -> Chart:
        """Draw how radius, share and growth change along the list."""
        from mnemoscope.report.chart import beside, lines

        at = self.positions
        sizes = lines(
            {
                "spectral radius": (at, self.radius),
                "numerical radius": (at, self.numerical_radius),
                "non-normal share": (at, self.share),
            },
            x="position in the list",
            y="size",
            title="Spectrum along the list",
            points=len(at) <= 40,
        )
        growth = lines(
            {"Kreiss constant": (at, self.kreiss), "largest ||W^k||": (at, self.amplification)},
            x="position in the list",
            y="growth of powers (1: none)",
            title="Transient growth along the list",
            log_y=True,
            points=len(at) <= 40,
        )
        return beside(sizes, growth)


def spectra(
    sources: Sequence[Any],
    network: nn.Module | None = None,
    positions: Sequence[float] | None = None,
    tolerance: float | None = None,
    settle: int = 0,
    angles: int = 36,
) -> Spectra:
    """Find the spectra of several matrices, networks or state_dicts of one size.

    Parameters
    ----------
    sources
        Matrices (a list, or an array of three axes), networks, or state_dicts.
    network
        The network whose weights the state_dicts hold. It can be left out where they hold weight_hh_l0 itself.
    positions
        Where each stands, for the axis of the plot: training steps, for example.
    tolerance, settle, angles
        As in `spectrum`.

    Returns
    -------
    Spectra

    Examples
    --------
    >>> found = spectra([[[0.5, 0.0], [x, 0.5]] for x in (0.0, 1.0, 2.0)])
    >>> found.henrici.tolist(), found.kreiss.round(6).tolist()
    ([0.0, 1.0, 2.0], [1.0, 1.0, 1.25])
    """
    if isinstance(sources, Mapping | nn.Module | str) or not hasattr(sources, "__len__") or len(sources) == 0:
        raise expected("sources", "a list of matrices, networks or state_dicts", Description(_name(sources)))
    at = np.arange(len(sources), dtype=float) if positions is None else np.asarray(positions, dtype=float)
    if at.shape != (len(sources),):
        raise expected("positions", f"one number for each of the {len(sources)} sources", Description(f"{at.shape}"))
    matrices = [state_matrix(source, settle, network, "spectra") for source in sources]
    sizes = {len(each.matrix) for each in matrices}
    if len(sizes) > 1:
        raise expected("sources", "matrices of one size", sorted(sizes))
    found = [spectrum_of(each, tolerance, 1, angles) for each in matrices]
    return Spectra(
        status="exact" if all(each.status == "exact" for each in found) else "bound",
        digits=min(each.digits or 0 for each in found),
        assumptions=tuple(dict.fromkeys(line for each in found for line in each.assumptions)),
        cost=f"as spectrum, {len(found)} times",
        positions=at,
        eigenvalues=np.stack([each.eigenvalues for each in found]),
        radius=np.array([each.radius for each in found]),
        henrici=np.array([each.henrici for each in found]),
        share=np.array([each.share for each in found]),
        kreiss=np.array([each.kreiss for each in found]),
        amplification=np.array([each.amplification for each in found]),
        numerical_abscissa=np.array([each.numerical_abscissa for each in found]),
        numerical_radius=np.array([each.numerical_radius for each in found]),
        subdiagonals=np.stack([each.subdiagonals for each in found]),
        angle_counts=np.stack([each.angle_counts for each in found]).astype(float),
        angle_edges=found[0].angle_edges,
    )


def _name(value: Any) -> str:
    return "nothing" if hasattr(value, "__len__") and len(value) == 0 else f"a {type(value).__name__}"
