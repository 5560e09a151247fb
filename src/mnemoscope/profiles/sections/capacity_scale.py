"""Memory capacity against the scale of the input, on which that of a nonlinear network depends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.measures import MemoryCapacity
from mnemoscope.profiles.drawing import SectionView
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Curves, Figure

__all__ = ["CapacityScale"]

_SCALES = (0.1, 0.3, 3.0, 10.0)
"""Beside 1: from inputs that leave a tanh linear to inputs that saturate it."""

_LAGS = {128: 20, 256: 12}
"""Longest lag of products, by the numbers in a state."""

_LARGEST = 256
"""Numbers in a state beyond which the sweep takes longer than a profile has."""

_HOW = (
    "Capacities as above, at inputs uniform on [-a, a] for five scales a; products of two and three inputs of lags up "
    "to 20 (12 for states of more than 128 numbers). The capacity of a linear network is the rank of "
    "what its inputs reach, exactly, at every scale."
)


@section("capacity-scale", title="Memory capacity against input scale", order=41)
class CapacityScale(ProfileSection):
    """Plain memory and products as curves over the scale of the input, with the exact rank of linear networks."""

    needs_causal = True
    once = True
    references = ("ballarin2024", "ballarin2025")
    text = (
        "One number for the memory of a nonlinear network says little: by the scale of its input it can be made almost "
        "anything between its bounds. Small inputs leave units linear, large ones turn plain memory into products. A "
        "linear network keeps as many past inputs as its state has dimensions that inputs reach, at every scale."
    )
    quantities = (
        Quantity(
            name="swing",
            title="largest over smallest plain memory, over input scales",
            least=1.0,
            how=_HOW,
            meaning="times as much plain memory at the best scale as at the worst",
        ),
        Quantity(name="best_scale", title="input scale of the largest plain memory", least=0.0, how=_HOW),
        Quantity(
            name="rank",
            title="dimensions that inputs reach",
            unit="dimensions",
            least=0.0,
            how="Exact; linear networks.",
        ),
    )

    def reason_against(self, network: Any, context: Context) -> str | None:
        """Say that a state is too large for a sweep."""
        if context.state_size > _LARGEST:
            return f"it takes states of at most {_LARGEST} numbers, and this one has {context.state_size:,}"
        return super().reason_against(network, context)

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return plain memory at all lags, and products of short ones."""
        size = context.state_size
        lag = next((lag for most, lag in _LAGS.items() if size <= most), min(_LAGS.values()))
        common = {"threshold": True, "samples": max(2048, 10 * size), "scales": _SCALES}
        return (
            Call("memory-capacity", {"degree": 1, **common}),
            Call("memory-capacity", {"degree": 3, "lag": min(lag, 8) if context.quick else lag, **common}),
        )

    def run(self, network: Any, context: Context) -> Measurement:
        """Sweep the input scale of one network."""
        plain, products = self.calls(context)
        straight: MemoryCapacity = plain(network, context)
        mixed: MemoryCapacity = straight if straight.status == "exact" else products(network, context)
        scales = np.array([*_SCALES[:2], 1.0, *_SCALES[2:]])
        linear = np.insert(straight.totals, 2, straight.total)
        rest = np.zeros(len(scales))
        if mixed is not straight:
            rest = np.insert(mixed.totals_by_degree[:, 1:].sum(1), 2, mixed.by_degree[1:].sum())
        low, high = float(linear.min()), float(linear.max())
        exact = f"Inputs reach {straight.rank} of the {straight.size} dimensions of its state, exactly."
        scalars = {
            "swing": Scalar(
                value=high / low if low > 0 else None, note="" if low > 0 else "nothing is left at one scale"
            ),
            "best_scale": Scalar(value=float(scales[linear.argmax()]) if high > low * (1 + 1e-9) else None),
        }
        if straight.rank is not None:
            scalars["rank"] = Scalar(value=float(straight.rank))
        return Measurement(
            scalars=scalars,
            data={"scales": scales, "linear": linear, "products": rest, "total": linear + rest, "rank": straight.rank},
            notes=(exact,) if straight.rank is not None else (),
        )

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return both capacities against the scale."""
        titles = {"linear": "Plain memory by input scale", "products": "Products by input scale"}
        units = {"linear": "past inputs recovered", "products": "products of two or three inputs recovered"}
        return [
            view.figure(
                f"capacity-scale-{name}",
                title,
                Curves(
                    series=view.curve("scales", name),
                    x_title="input scale",
                    y_title=units[name],
                    log_x=True,
                    points=True,
                ),
                _HOW,
            )
            for name, title in titles.items()
        ]
