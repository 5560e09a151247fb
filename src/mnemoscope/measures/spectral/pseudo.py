"""Pseudospectra: the places of the eigenvalues of nearby matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Complex, Float

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import expected, positive_int
from mnemoscope.core.memory import require
from mnemoscope.core.result import Result, result
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.spectral import large
from mnemoscope.measures.spectral.kreiss import resolvent
from mnemoscope.measures.spectral.powers import spectral_norm
from mnemoscope.measures.spectral.pseudo_radius import MOST, pseudospectral_radius
from mnemoscope.measures.spectral.schur import schur_form
from mnemoscope.measures.spectral.state_matrix import state_matrix

if TYPE_CHECKING:
    from mnemoscope.report.chart import Chart

__all__ = ["Pseudospectrum", "pseudospectrum"]


@result
class Pseudospectrum(Result):
    """The smallest singular value of z - W on a grid of the complex plane.

    Attributes
    ----------
    real, imaginary
        The grid's axes.
    distance
        ``[i, j]``: sigma_min(z - W) at z = real[j] + i imaginary[i]: the size of the smallest change of W that makes z
        an eigenvalue. z lies in the epsilon-pseudospectrum where it is below epsilon.
    eigenvalues
        Of W.
    levels
        The epsilon of the contours.
    reach
        For each level the largest modulus within that pseudospectrum, by following its boundary; of more than 100 rows
        that on the grid, 0 where the grid misses it.
    matrix
        What W is of the network.
    """

    measure: ClassVar[str] = "pseudospectrum"
    references: ClassVar[tuple[str, ...]] = ("trefethen2005",)

    real: Float[np.ndarray, " columns"]
    imaginary: Float[np.ndarray, " rows"]
    distance: Float[np.ndarray, "rows columns"]
    eigenvalues: Complex[np.ndarray, " n"]
    levels: tuple[float, ...]
    reach: tuple[float, ...]
    matrix: str

    def __str__(self) -> str:
        radius = float(np.abs(self.eigenvalues).max())
        reached = ", ".join(f"{r:.4g} at epsilon {e:g}" for e, r in zip(self.levels, self.reach, strict=True) if r)
        return f"spectral radius {radius:.6g}; pseudospectra reach to {reached or 'nowhere on this grid'}"

    def plot(self) -> Chart:
        """Draw the pseudospectra as bands of colour with the eigenvalues and the unit circle."""
        import altair as alt

        from mnemoscope.report.chart import PALETTE, WIDTH, styled

        make: Any = alt
        width, height = self.real[1] - self.real[0], self.imaginary[1] - self.imaginary[0]
        names = [f"< {level:g}" for level in self.levels]
        bands = np.searchsorted(self.levels, self.distance, side="right")
        rows = [
            {
                "x": float(x - width / 2),
                "x2": float(x + width / 2),
                "y": float(y - height / 2),
                "y2": float(y + height / 2),
                "band": names[bands[i, j]],
            }
            for i, y in enumerate(self.imaginary)
            for j, x in enumerate(self.real)
            if bands[i, j] < len(names)
        ]
        scale = alt.Scale(domain=names, range=_colours(len(names)))
        reach = float(np.abs(self.real).max() + width / 2)
        axis = alt.Scale(domain=[-reach, reach], nice=False)
        cells = (
            make.Chart(make.Data(values=rows))
            .mark_rect(strokeWidth=0.5)
            .encode(
                x=alt.X("x:Q", title="real part", scale=axis),
                x2="x2:Q",
                y=alt.Y("y:Q", title="imaginary part", scale=axis),
                y2="y2:Q",
                color=alt.Color(
                    "band:O", sort=names, title="epsilon", scale=scale, legend=alt.Legend(symbolType="square")
                ),
                stroke=alt.Stroke("band:O", sort=names, scale=scale, legend=None),
            )
        )
        turn = np.linspace(0, 2 * math.pi, 181)
        circle = make.Chart(
            make.Data(values=[{"x": math.cos(t), "y": math.sin(t), "order": t} for t in turn.tolist()])
        ).mark_line(color="#333", strokeDash=[4, 3], strokeWidth=1.2, clip=True)
        dots = make.Chart(
            make.Data(values=[{"x": float(z.real), "y": float(z.imag)} for z in self.eigenvalues])
        ).mark_circle(size=22, color=PALETTE[1], opacity=1, stroke="white", strokeWidth=0.5, clip=True)
        place = {"x": "x:Q", "y": "y:Q"}
        drawn = make.layer(cells, circle.encode(**place, order="order:Q"), dots.encode(**place))
        return styled(drawn, "Pseudospectra, eigenvalues, unit circle", height=WIDTH)


_DARK, _LIGHT = (8, 29, 88), (226, 240, 250)


def _colours(count: int) -> list[str]:
    """Return blues from dark to light, one for each band."""
    shares = np.linspace(0, 1, count) if count > 1 else np.zeros(1)
    mixed = [[round(a + share * (b - a)) for a, b in zip(_DARK, _LIGHT, strict=True)] for share in shares]
    return ["#" + "".join(f"{part:02x}" for part in colour) for colour in mixed]


_DIGITS = 7
"""Digits that the eigenvalues of twice as many rows leave of how far the pseudospectra reach."""

_COST = Cost(
    time={"G^2 S^2": 4e-8, "S^3": 4e-8}, memory="S^2", sizes={"G": "points"}, letters={"G": "points along a side"}
)


@measure("pseudospectrum", kinds=("recurrent",), needs=("matrix",), matrices={"W": "matrix"}, cost=_COST)
def pseudospectrum(
    W: Any,
    points: int = 81,
    reach: float | None = None,
    levels: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3),
    settle: int = 0,
) -> Pseudospectrum:
    r"""Map how far W is, at each z, from a matrix with the eigenvalue z.

    .. math::
        \Lambda_\epsilon(W) = \{z : \sigma_{\min}(z I - W) < \epsilon\} = \bigcup_{\|E\| < \epsilon} \Lambda(W + E)

    For a normal matrix these are discs of radius epsilon around the eigenvalues. Where they bulge out of the unit disc
    by more than epsilon, powers of W grow before they decay.

    Parameters
    ----------
    W
        A square matrix, or a network (its matrix is taken as `mnemoscope.measures.spectrum` takes it).
    points
        Points of the grid along each axis.
    reach
        The grid covers real and imaginary parts from -reach to reach; None: a little beyond the unit disc and W's norm.
    levels
        The epsilon of the contours.
    settle
        Steps at zero input before a network's Jacobian is taken.

    Returns
    -------
    Pseudospectrum

    References
    ----------
    Trefethen and Embree (2005), Spectra and Pseudospectra.

    Examples
    --------
    >>> found = pseudospectrum(np.diag(np.ones(9), -1), points=41, levels=(0.1, 0.01))
    >>> print(found)
    spectral radius 0; pseudospectra reach to 0.6695 at epsilon 0.01, 0.9246 at epsilon 0.1
    """
    count = positive_int("points", points)
    if count < 3:
        raise expected("points", "an integer of at least 3", points)
    if not isinstance(levels, tuple | list) or not levels:
        raise expected("levels", "several positive numbers", levels)
    edges = tuple(sorted(positive("each of levels", level) for level in levels))
    source = state_matrix(W, settle, measure="pseudospectrum")
    n, bounded = len(source.matrix), len(source.matrix) > large.DENSE
    form = None if bounded else schur_form(source.matrix)
    values = large.leading_eigenvalues(source.matrix) if form is None else form.eigenvalues
    require(f"a grid of {count} x {count}", 8 * 40 * count * count + 64 * n * n, "fewer points would fit")
    size = float(np.linalg.norm(source.matrix)) if form is None else spectral_norm(source.matrix)
    span = max(1.15, min(1.1 * size, float(np.abs(values).max()) + 1)) if reach is None else reach
    axis = np.linspace(-1, 1, count) * positive("reach", span)
    real = not np.iscomplexobj(source.matrix)
    distance = _upper_bounds(source.matrix, axis) if form is None else _distances(form.upper, axis, symmetric=real)
    moduli = np.abs(axis[None, :] + 1j * axis[:, None])
    return Pseudospectrum(
        status="bound" if bounded else "estimate" if n > MOST else "exact",
        digits=None if bounded or n > MOST else _DIGITS,
        assumptions=(
            *(() if source.what == "the given matrix" else (f"W is {source.what}",)),
            *((_BOUNDED,) if bounded else (_ESTIMATED,) if n > MOST else ()),
        ),
        cost=str(_COST),
        real=axis,
        imaginary=axis.copy(),
        distance=distance,
        eigenvalues=values,
        levels=edges,
        reach=tuple(
            pseudospectral_radius(source.matrix, edge, values)
            if n <= MOST and not bounded
            else float(moduli[distance < edge].max(initial=0.0))
            for edge in edges
        ),
        matrix=source.what,
    )


_ESTIMATED = "distances are exact at each point of the grid, how far pseudospectra reach is an estimate as fine as it"
_BOUNDED = "distances are upper bounds, from an Arnoldi process: pseudospectra reach at least as far as is shown"


def _upper_bounds(W: np.ndarray, axis: Float[np.ndarray, " m"]) -> Float[np.ndarray, "m m"]:
    """Return upper bounds of sigma_min(z - W) on the grid."""
    points = (axis[None, :] + 1j * axis[:, None]).ravel()
    found: np.ndarray = 1 / large.resolvent_lower_bound(large.arnoldi(W), points)
    return found.reshape(len(axis), len(axis))


def _distances(upper: np.ndarray, axis: Float[np.ndarray, " m"], symmetric: bool) -> Float[np.ndarray, "m m"]:
    """Return sigma_min(z - T) on the grid; for a real W the lower half is the mirror of the upper."""
    found = np.zeros((len(axis), len(axis)))
    values = np.diag(upper)
    for i, y in enumerate(axis):
        if symmetric and i > (len(axis) - 1) / 2:
            found[i] = found[len(axis) - 1 - i]
            continue
        for j, x in enumerate(axis):
            z = complex(x, y)
            if np.abs(values - z).min() > 0:
                found[i, j] = 1 / spectral_norm(resolvent(upper, z))
    return found
