"""Kreiss constant of a matrix in discrete time, found globally and with a certificate.

Extremes over all angles of a circle are not searched on a grid: an eigenvalue problem of twice the size finds every
angle at which a level is crossed, so that a level that is nowhere crossed is proved to be above all.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Float, Inexact
from scipy.optimize import minimize, minimize_scalar

from mnemoscope.core.errors import UserError
from mnemoscope.measures.spectral.neumann import kreiss_from_powers
from mnemoscope.measures.spectral.powers import Stability, spectral_norm, stability
from mnemoscope.measures.spectral.schur import SchurForm, checked_matrix, schur_form

__all__ = ["Kreiss", "kreiss_constant"]

Value = Callable[[float], float]
Crossings = Callable[[float], Float[np.ndarray, " m"]]

_ON_CIRCLE = 1e-6
_ROUNDS = 30
_SLACK = 1e-12
"""Relative precision of a numerical radius."""


@dataclass(frozen=True)
class Peak:
    """The largest value over all angles.

    Attributes
    ----------
    value, angle
        What was found, and where.
    bound
        What no angle exceeds.
    """

    value: float
    angle: float
    bound: float


def highest(value: Value, crossings: Crossings, starts: Iterable[float], slack: float) -> Peak:
    """Return the largest value over all angles.

    Parameters
    ----------
    value
        The function of the angle.
    crossings
        For a level, all angles at which the function passes it, and perhaps others.
    starts
        Angles to begin with.
    slack
        Relative precision to which the largest value is certified.
    """
    angle, best = _best(value, starts)
    angle, best = _climb(value, angle, 0.05, best, slack)
    for _ in range(_ROUNDS):
        level = best * (1 + slack)
        found = np.sort(crossings(level))
        if len(found) == 0:
            return Peak(best, angle, level)
        gaps = np.diff(np.append(found, found[0] + 2 * math.pi))
        trial, top = _best(value, found + gaps / 2)
        if top <= level:  # the eigenvalues near the circle were near misses
            return Peak(max(best, top), angle if best >= top else trial, level)
        angle, best = _climb(value, trial, float(gaps.max()) / 2, top, slack)
    return Peak(best, angle, math.inf)


def _best(value: Value, angles: Iterable[float]) -> tuple[float, float]:
    found = [(value(float(angle)), float(angle)) for angle in angles]
    best, angle = max(found)
    return angle, best


def _climb(value: Value, angle: float, reach: float, best: float, slack: float) -> tuple[float, float]:
    """Go uphill near an angle; at the top the value is flat, so that the angle needs half the digits only."""
    reach = min(reach, 0.05)
    options = {"xatol": max(0.1 * slack**0.5, 1e-8)}
    found = minimize_scalar(
        lambda x: -value(x), bounds=(angle - reach, angle + reach), method="bounded", options=options
    )
    return (float(found.x), -float(found.fun)) if -found.fun > best else (angle, best)


def numerical_radius(W: Inexact[np.ndarray, "n n"]) -> float:
    """Return the largest |x* W x| over unit vectors x, which lies between the spectral radius and the spectral norm."""
    n, identity = len(W), np.eye(len(W))
    eigenvalues = np.linalg.eigvals(W)
    radius, size = float(np.abs(eigenvalues).max()), spectral_norm(W)
    if size <= radius * (1 + _SLACK):
        return min(radius, size)

    def value(angle: float) -> float:
        turned = np.exp(1j * angle) * W
        return float(np.linalg.eigvalsh((turned + turned.conj().T) / 2)[-1])

    def crossings(level: float) -> Float[np.ndarray, " m"]:
        zero = np.zeros((n, n))
        left = np.block([[zero, identity], [-W.conj().T, 2 * level * identity]])
        right = np.block([[identity, zero], [zero, W]])
        return _angles(left, right)

    starts = np.concatenate([np.linspace(0, 2 * math.pi, 8, endpoint=False), -np.angle(eigenvalues)[:8]])
    return highest(value, crossings, starts, _SLACK).value


def resolvent(upper: Inexact[np.ndarray, "n n"], z: complex) -> Inexact[np.ndarray, "n n"]:
    """Return (z - T)^-1 for a triangular T, row by row to full precision."""
    n = len(upper)
    shifted = z * np.eye(n) - upper
    found: np.ndarray = scipy.linalg.solve_triangular(shifted, np.eye(n), check_finite=False)
    return found


def resolvent_crossings(W: Inexact[np.ndarray, "n n"], radius: float) -> Crossings:
    """Return the function that gives all angles at which ||(z - W)^-1|| passes a level on the circle |z| = radius."""
    n = len(W)
    identity, zero = np.eye(n), np.zeros((n, n))

    def crossings(level: float) -> Float[np.ndarray, " m"]:
        left = np.block([[-identity / level, -W], [radius * identity, zero]])
        right = np.block([[zero, -radius * identity], [W.conj().T, identity / level]])
        return _angles(left, right)

    return crossings


def _angles(left: Inexact[np.ndarray, "m m"], right: Inexact[np.ndarray, "m m"]) -> Float[np.ndarray, " k"]:
    """Return the angles of the pencil's eigenvalues on the unit circle, to rounding."""
    above, below = scipy.linalg.eigvals(left, right, homogeneous_eigvals=True, check_finite=False)
    above_size, below_size = np.abs(above), np.abs(below)
    on = np.abs(above_size - below_size) < _ON_CIRCLE * np.maximum(above_size, below_size)
    angles: np.ndarray = np.angle(above[on] * below[on].conj())
    return angles


_EPS = float(np.finfo(float).eps)
_CIRCLES = 200
_CIRCLES_AT_LIMIT = 40
_ANGLES = 48
_HELD = 1e12
_FIRST = (0.01, 0.1, 1.0, 10.0)
_TRUSTED = 3  # with fewer digits from inverses the powers are asked
_BLIND = 1e-3  # beyond this relative uncertainty of a level the eigenvalue test says nothing


@dataclass(frozen=True)
class Kreiss:
    """The Kreiss constant.

    Attributes
    ----------
    value
        sup over |z| > 1 of (|z| - 1) ||(z - W)^-1||; 1 at least, infinite when the powers of W are not bounded.
    point
        Where it is attained; infinite when it is 1, on the unit circle when it is a limit there.
    bound
        What no z exceeds, by the certificate; infinite where resolvents are too large (1e11 or so) for the eigenvalue
        problem to say anything, and the angles were searched by a grid.
    digits
        Decimal digits of the value that rounding leaves.
    """

    value: float
    point: complex
    bound: float
    digits: int


def kreiss_constant(
    W: Any,
    form: SchurForm | None = None,
    kind: Stability | None = None,
    tolerance: float = 1e-6,
    *,
    reach: float | None = None,
) -> Kreiss:
    r"""Return the Kreiss constant of a matrix.

    .. math:: K(W) = \sup_{|z|>1} (|z| - 1)\,\|(z I - W)^{-1}\|, \qquad K \le \sup_k \|W^k\| \le e\,N\,K

    K = 1 exactly when the numerical radius is at most 1. Otherwise let phi(r) be the largest resolvent norm on \|z\| =
    r, found over all angles at once by an eigenvalue problem of size 2N. By Hadamard's three circles log phi is convex
    in log r, so between two circles (r - 1) phi(r) is below what the chord gives. Circles are added where that bound is
    highest until it is within `tolerance` of the best value found; outside, phi(r) <= phi(1) and
    phi(r) <= 1/(r - numerical radius) close the case.

    Parameters
    ----------
    W
        A square matrix.
    form, kind
        Its Schur form, and what its powers do, where they are known.
    tolerance
        Relative gap that the certificate may leave. The value itself comes from a local maximiser, at full precision.
    reach
        Its numerical radius, where it is known.

    References
    ----------
    Spijker (1991) on the factor e N; Trefethen and Embree (2005), chapter 14; Mitchell (2020) on its computation.

    Examples
    --------
    >>> round(kreiss_constant([[0.5, 0.0], [2.0, 0.5]]).value, 12)
    1.25
    """
    W = checked_matrix("W", W)
    form = schur_form(W) if form is None else form
    kind = stability(W, form) if kind is None else kind
    if not kind.bounded:
        return Kreiss(math.inf, complex(math.inf), math.inf, 15)
    reach = numerical_radius(W) if reach is None else reach
    if kind.is_one(reach, len(W)):
        return Kreiss(1.0, complex(math.inf), 1.0, 15)
    return _Search(W, form, kind, reach, tolerance).run()


@dataclass
class _Search:
    W: np.ndarray
    form: SchurForm
    kind: Stability
    reach: float
    tolerance: float
    best: float = 1.0
    point: complex = complex(math.inf)
    angle: float = 0.0
    circles: dict[float, float] = field(default_factory=dict)  # radius: log of the bound of phi there
    tail: float = 0.0
    blurred: float = 0.0

    def __post_init__(self) -> None:
        self.size = spectral_norm(self.W)
        values = self.form.eigenvalues
        self.starts = np.angle(values)[:4]

    def run(self) -> Kreiss:
        inner = self.inner()
        outer = 1 + 20 * (1 / (self.reach - 1) + self.size * (self.size / (self.reach - 1)))
        if not inner > 1:
            raise UserError("the matrix is so far from normal that float64 cannot hold its Kreiss constant")
        count = max(8, round(math.log(outer / (inner - 1)) / 2))
        for excess in np.geomspace(inner - 1, outer - 1, min(count, 16)):
            self.add(1 + float(excess))
        self.climb()
        gap = self.certify()
        # At a marginal eigenvalue there is no resolvent: the constant is the size of its projector there.
        at_eigenvalue = self.kind.kind == "marginal" and self.best == self.kind.projector
        sure = self.form.triangular or at_eigenvalue
        lost = max(20 * len(self.W) * _EPS, 0.0 if sure else self.blur(self.norm(self.point)))
        digits = max(0, min(15, math.floor(-math.log10(lost))))
        if digits < _TRUSTED:
            return self.from_powers(Kreiss(self.best, self.point, math.inf, digits))
        bound = math.inf if self.blurred >= _BLIND else self.best * (1 + gap)
        return Kreiss(self.best, self.point, bound, digits)

    def from_powers(self, solved: Kreiss) -> Kreiss:
        """Return the constant from the series of powers where that has more digits than inverses in float64.

        Angles are those of the leading eigenvalues; what no z exceeds is then the largest power, by Kreiss's theorem.
        """
        found = kreiss_from_powers(self.W, np.concatenate([self.starts, [0.0, math.pi, self.angle]]))
        if found is None:
            return solved
        lost = max(20 * len(self.W) * _EPS, found.error / found.value)
        digits = 0 if lost >= 1 else min(15, math.floor(-math.log10(lost)))
        return Kreiss(found.value, found.point, math.inf, digits) if digits > solved.digits else solved

    def inner(self) -> float:
        """Return a radius within which nothing larger than what is known can be."""
        if self.kind.kind == "marginal":
            if self.kind.projector > self.best:
                self.best, self.point = self.kind.projector, complex(1.0)
            return 1 + 1e-7
        largest = self.add(1.0)
        if not largest < _HELD:  # then a larger value than 1 has to be known, for a radius that is not 1 in float64
            for excess in _FIRST:
                self.add(1 + excess)
        return 1 + self.best / largest

    def add(self, radius: float) -> float:
        """Find phi on a circle, and return it."""
        known = self.norm(radius * np.exp(1j * self.angle))
        blur = self.blur(known)
        slack = max(min(self.tolerance / 10, 1e-4), blur)
        starts = np.concatenate([self.starts, [self.angle, 0.0, math.pi]])
        if slack < _BLIND:
            peak = highest(self.value(radius), resolvent_crossings(self.W, radius), starts, slack)
        else:
            starts = np.concatenate([starts, np.linspace(0, 2 * math.pi, _ANGLES, endpoint=False)])
            peak = highest(self.value(radius), lambda level: np.empty(0), starts, 1e-8)
        self.circles[radius] = math.log(peak.bound)
        here = (radius - 1) * peak.value
        if here > self.best:
            self.best, self.point, self.blurred = here, radius * complex(np.exp(1j * peak.angle)), blur
        self.angle = peak.angle
        return peak.value

    def certify(self) -> float:
        """Add circles until none can hold a larger value; return the relative gap that is left."""
        radii = sorted(r for r in self.circles if r > 1)
        heap = [self.chord(a, b) for a, b in itertools.pairwise(radii)]
        heapq.heapify(heap)
        last = radii[-1]
        # Where the supremum is a limit at the unit circle, chords cannot close the gap: few circles will do.
        most = _CIRCLES_AT_LIMIT if abs(self.point) <= 1 else _CIRCLES
        allowed = max(self.tolerance, 4 * self.blurred)
        while len(self.circles) < most:
            self.tail = (last - 1) / (last - self.reach) if last > self.reach else math.inf
            if self.tail > self.best * (1 + allowed):
                further = (self.best * self.reach - 1) / max(self.best - 1, 1e-12)
                new = max(1.05 * further, 1.5 * last)
                self.visit(new)
                heapq.heappush(heap, self.chord(last, new))
                last = new
                continue
            if not heap or -heap[0][0] <= math.log(self.best) + allowed:
                break
            _, a, b, middle = heapq.heappop(heap)
            self.visit(middle)
            for interval in (self.chord(a, middle), self.chord(middle, b)):
                heapq.heappush(heap, interval)
        top = max(-heap[0][0] if heap else 0.0, math.log(max(self.tail, 1.0)))
        return max(0.0, math.expm1(top - math.log(self.best)))

    def visit(self, radius: float) -> None:
        before = self.best
        self.add(radius)
        if self.best > before * (1 + 1e-12):
            self.climb()

    def chord(self, a: float, b: float) -> tuple[float, float, float, float]:
        """Return (minus) the bound of log (r - 1) phi(r) between two circles, the circles, and where to look next."""
        low, high = math.log(a), math.log(b)
        slope = (self.circles[b] - self.circles[a]) / (high - low)
        top = -math.log1p(1 / slope) if slope < -1 else high
        top = min(max(top, low), high)
        bound = math.log(math.expm1(top)) + self.circles[a] + slope * (top - low)
        middle = math.exp(min(max(top, low + (high - low) / 5), high - (high - low) / 5))
        if not a < middle < b or high - low < 1e-13:
            bound, middle = -math.inf, a
        return -bound, a, b, middle

    def climb(self) -> None:
        """Move from the best point to the top of its hill."""
        if not np.isfinite(self.point) or abs(self.point) <= 1:
            return
        start = np.array([math.log(abs(self.point) - 1), float(np.angle(self.point))])
        found = minimize(self.slope, start, jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 60})
        if -found.fun > math.log(self.best):
            self.best = math.exp(-found.fun)
            self.point = complex((1 + math.exp(found.x[0])) * np.exp(1j * found.x[1]))
            self.angle = float(found.x[1])

    def slope(self, x: Float[np.ndarray, " 2"]) -> tuple[float, Float[np.ndarray, " 2"]]:
        """Return -log (r - 1) ||R|| and its gradient, at log (r - 1) and the angle."""
        excess, turn = math.exp(min(x[0], 300.0)), np.exp(1j * x[1])
        z = (1 + excess) * turn
        u, sizes, vh = np.linalg.svd(resolvent(self.form.upper, z))
        flow = -sizes[0] * (vh[0] @ u[:, 0])  # d log ||R|| = Re(flow dz)
        gradient = np.array([1 + (flow * turn * excess).real, (flow * 1j * z).real])
        return -(x[0] + math.log(sizes[0])), -gradient

    def value(self, radius: float) -> Callable[[float], float]:
        """Return the resolvent norm as a function of the angle."""
        return lambda angle: self.norm(radius * np.exp(1j * angle))

    def norm(self, z: complex) -> float:
        return spectral_norm(resolvent(self.form.upper, z))

    def blur(self, norm: float) -> float:
        """Return the relative error of a resolvent norm that rounding of W, or of a pencil with it, may cause."""
        return 4 * math.sqrt(len(self.W)) * _EPS * (1 + self.size) * norm
