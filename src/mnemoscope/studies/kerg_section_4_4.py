"""Kerg, section 4.4: laws of gradients under uniform and sparse attention, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.measures import attention_paths
from mnemoscope.report import Headline
from mnemoscope.studies.machinery import CurvesOf, Holds, Row, RunSpec, Study, TableOf, declared, executor, grid
from mnemoscope.theory.formulas import attention as laws

__all__ = ["STUDY", "measure_sparse", "measure_uniform"]

_LENGTH, _VALUES, _KAPPAS = 20_000, (-0.5, -0.25, 0.25, 0.5, 0.6, 0.8), (1, 2, 4, 8, 16)
_SHOWN = [int(t) for t in np.unique(np.geomspace(1, _LENGTH, 40).round())]


@executor("uniform-attention")
def measure_uniform(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return |ds_T/dh_1| under uniform attention with V = lambda, and the power of T at the end."""
    found = np.abs(laws.uniform_attention_gradient(settings["value"], _LENGTH))
    slope = math.log(found[-1] / found[_LENGTH // 2 - 1]) / math.log(_LENGTH / (_LENGTH // 2))
    return {"kind": "uniform", "gradient": [float(found[t - 1]) for t in _SHOWN], "slope": slope}


@executor("sparse-attention")
def measure_sparse(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return |ds_T/dh_t| over the one chain of attended states that leads from h_t to the end, by kappa."""
    depth, value = settings["depth"], settings["value"]
    chains = [(laws.chain_attention(kappa, depth, gap=60), kappa) for kappa in _KAPPAS]
    found = [float(attention_paths(value, chain, start=k, skips=depth).totals[-1]) for chain, k in chains]
    bounds = [laws.sparse_attention_bound(kappa, depth, value) for kappa in _KAPPAS]
    slope = math.log(found[-1] / found[-2]) / math.log(_KAPPAS[-1] / _KAPPAS[-2])
    least = min(gradient / bound for gradient, bound in zip(found, bounds, strict=True))
    return {"kind": "sparse", "gradient": found, "slope": slope, "least": least}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    return [*grid("sparse-attention", value=(0.5,), depth=(0, 1, 2, 3)), *grid("uniform-attention", value=_VALUES)]


def _rows(outcome: Any) -> list[Row]:
    given, found = outcome.spec.settings, outcome.summary
    value, depth = given["value"], given.get("depth")
    if depth is None:
        told = {"law": laws.uniform_attention_exponent(value), "printed": value - 1, "x": _SHOWN}
    else:
        told = {"law": -(depth + 1), "printed": -depth, "x": list(_KAPPAS)}
    return [{**given, **found, **told, "network": f"l{value:g}" if depth is None else f"d{depth}"}]


def _headlines(rows: Sequence[Row]) -> tuple[Headline, ...]:
    apart = max((abs(row["slope"] - row["law"]) for row in rows), default=0.0)
    return (
        Headline(
            value=f"{apart:.1e}", unit="", meaning="largest difference of a measured power from the corrected law"
        ),
        Headline(value="T^3", unit="", meaning="growth at lambda = 0.8 under uniform attention; printed: T^-0.2"),
    )


_UNIFORM, _SPARSE = {"kind": "uniform"}, {"kind": "sparse"}
_NAMES = {"slope": "measured power", "law": "the corrected power", "printed": "the printed power", "kind": "attention",
          "least": "least ratio of gradient and bound"}  # fmt: skip


def _holds(claim: str, left: str, relation: Any, right: float | str, within: float, **more: Any) -> Holds:
    return Holds(claim=claim, left=left, relation=relation, right=right, within=within, names=_NAMES, **more)


STUDY = declared(Study(
    name="kerg-section-4-4",
    title="How gradients reach back through attention", source="Kerg, section 4.4 and app. B.1",
    claim="Under uniform attention gradients vanish no faster than 1/T, as T^(lambda - 1) for V = lambda; under "
    "attention "
    "to kappa states with dependency depth d they stay above a constant times 1/kappa^d.",
    references=("kerg2020",),
    minutes={"smoke": 0.1, "laptop": 0.1, "paper": 0.1},
    runs=_runs, rows=_rows, headlines=_headlines,
    rules=(
        _holds("Uniform attention: gradients are at least of order 1/T", "slope", ">=", -1.0, 1e-3, where=_UNIFORM,
               otherwise="published value wrong"),
        _holds("Uniform attention: gradients go as T^(lambda - 1)", "slope", "=", "printed", 0.01, where=_UNIFORM,
               otherwise="published value wrong"),
        _holds("Ours: they go as T^(Re(lambda/(1 - lambda)) - 1)", "slope", "=", "law", 0.01, where=_UNIFORM),
        _holds("Sparse attention: gradients go as 1/kappa^d", "slope", "=", "printed", 0.05, where=_SPARSE,
               otherwise="published value wrong"),
        _holds("Ours: they go as 1/kappa^(d + 1)", "slope", "=", "law", 0.05, where=_SPARSE),
        _holds("Ours: at least lambda^d/kappa^(d + 1)", "least", ">=", 1.0, 1e-6, where=_SPARSE),
    ),
    displays=(
        CurvesOf(
            name="uniform", title="Uniform attention can make gradients explode", where=_UNIFORM, x="x",
            y="gradient", by="network", x_title="sequence length T", y_title="gradient of s(T) by h(1)", log_x=True,
            log_y=True, points=False, section="Uniform attention",
            alt="Gradient against the sequence length under uniform attention, one straight line for each eigenvalue.",
            how="Exact recursion for a linear network with V = lambda and weights 1/t, to T = 20,000.",
        ),
        CurvesOf(
            name="sparse", title="Every link of a chain costs a factor", where=_SPARSE, x="x", y="gradient",
            by="network", x_title="attended states kappa", y_title="gradient along the chain", log_x=True, log_y=True,
            section="Sparse attention",
            alt="Gradient against the number of attended states, one line for each dependency depth.",
            how="All paths through a chain of links of 60 steps, V = 0.5: d intermediate states make d + 1 skips.",
        ),
        TableOf(name="powers", title="Powers", section="Every case", words=("attention",), columns={
            "attention": "kind", "lambda": "value", "depth": "depth", "printed": "printed", "corrected": "law",
            "measured": "slope"}),
    ),
    entries={**{f"l{value:g}": f"λ = {value:g}" for value in reversed(_VALUES)},
             **{f"d{depth}": f"depth {depth}" for depth in range(4)}},
    methods="Linear networks with scalar V and constant attention weights; gradients are exact sums over all paths.",
    caveats=("The bound 1/T needs an eigenvalue with |lambda - 1/2| <= 1/2: mild assumptions on V do not suffice.",),
))  # fmt: skip
