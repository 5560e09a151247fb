"""Matrix, Figure 2: Fisher memory of vector and of matrix networks with normal connections, exact beside published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.measures import fisher_memory, matrix_fisher_memory
from mnemoscope.report import Headline
from mnemoscope.studies.machinery import CurvesOf, Holds, Row, RunSpec, Study, TableOf, declared, executor, grid

__all__ = ["LAGS", "SIZES", "STUDY", "measure_normal", "normal_network", "padded"]

SIZES, LAGS = (4, 6, 8, 10, 12, 14, 15), 25


def normal_network(size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return normal U and V with eigenvalues uniform on +-0.95, and an input matrix of Frobenius norm 1."""
    random = np.random.default_rng(seed)
    frames = [np.linalg.qr(random.standard_normal((size, size)))[0] for _ in range(2)]
    U, V = (Q @ np.diag(random.uniform(-0.95, 0.95, size)) @ Q.T for Q in frames)
    W = random.standard_normal((size, size))
    return U, V, W / np.linalg.norm(W)


@executor("matrix-normal")
def measure_normal(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return totals and curves of a normal matrix network, exact and published, and of a normal vector network."""
    U, V, W = normal_network(settings["N"], settings["seed"])
    found = matrix_fisher_memory(U, V, W)
    vector = fisher_memory(U, W[:, 0] / np.linalg.norm(W[:, 0]))
    curves = {"exact": found.curve, "published": found.published_curve, "vector": vector.curve}
    totals = {"exact": found.total, "published": found.published_total, "vector": vector.total}
    return {name: {"total": totals[name], "curve": padded(curve)} for name, curve in curves.items()}


def padded(curve: Any) -> list[float]:
    """Return the first lags of a curve, with zeros behind its end."""
    found = np.zeros(LAGS)
    found[: min(LAGS, len(curve))] = curve[:LAGS]
    return [float(value) for value in found]


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    return grid("matrix-normal", N=SIZES, seed=(0, 1, 2))


def _rows(outcome: Any) -> list[Row]:
    given = outcome.spec.settings
    common = {**given, "neurons": given["N"] ** 2, "lags": list(range(LAGS))}
    return [
        {**common, "form": form, **found, "sums": np.cumsum(found["curve"]).tolist()}
        for form, found in outcome.summary.items()
    ]


def _headlines(rows: Sequence[Row]) -> tuple[Headline, ...]:
    published = [row["total"] for row in rows if row["form"] == "published"]
    worst = max((abs(row["total"] - 1) for row in rows if row["form"] == "exact"), default=0.0)
    return (
        Headline(value="1", unit="", meaning=f"exact relative capacity of every matrix network, to {worst:.0e}"),
        Headline(value=f"{min(published, default=0):.2f} to {max(published, default=0):.2f}", unit="",
                 meaning="by the published formula"),
    )  # fmt: skip


def _curves(name: str, title: str, y: str, y_title: str, **more: Any) -> CurvesOf:
    return CurvesOf(
        name=name, title=title, where={"N": 8, "seed": 0}, x="lags", y=y, by="form", x_title="lag k (steps)",
        y_title=y_title, points=False,
        alt=f"{y_title} against the lag for a vector network and a matrix network, by the exact and the published "
        "form.",
        how="N = 8 (64 neurons), eigenvalues uniform on +-0.95, input matrix of norm 1, noise 1. Exact: the "
        "covariance of "
        "the state. Published: Eq. 9, which also adds the cross terms between different lags.", **more,
    )  # fmt: skip


def _holds(claim: str, form: str, relation: Any, right: float = 1.0, **more: Any) -> Holds:
    return Holds(claim=claim, where={"form": form}, left="total", relation=relation, right=right, **more)


STUDY = declared(Study(
    name="matrix-fig-2",
    title="Whether a matrix network remembers less than a vector network", source="Matrix, Figure 2, Theorem 2",
    claim="With normal connections the Fisher memory of a vector network sums to 1, that of a matrix network of any "
    "size "
    "to less than 1.",
    references=("renanse2021", "ganguli2008"),
    minutes={"smoke": 0.1, "laptop": 0.1, "paper": 0.1},
    runs=_runs, rows=_rows, headlines=_headlines,
    rules=(
        _holds("A matrix network's capacity is below 1 (the covariance as it is)", "exact", "<", 0.999,
               otherwise="published value wrong"),
        _holds("A vector network's capacity is 1", "vector", "=", within=1e-9),
        _holds("The published formula gives less than 1", "published", "<"),
        _holds("Ours: a normal matrix network's capacity is 1", "exact", "=", within=1e-9),
    ),
    displays=(
        _curves("curves", "The published curve lies below the exact one", "curve", "Fisher information J(k)",
                section="Memory curves", log_y=True),
        _curves("sums", "Exactly, a matrix network's memory sums to 1 too", "sums", "sum of J up to lag k"),
        CurvesOf(
            name="by-size", title="No size changes the exact capacity", x="neurons", y="total", by="form",
            x_title="neurons N^2", y_title="capacity", alt="Capacity against the number of neurons, by form.",
            how="Mean over three networks, band from the least to the largest.",
        ),
        TableOf(name="totals", title="Capacities", section="Every network", words=("form",),
                columns={"N": "N", "seed": "seed", "form": "form", "capacity": "total"}),
    ),
    entries={"exact": "matrix, exact", "published": "matrix, published", "vector": "vector"},
    methods="Normal matrices U and V of sizes 4 to 15 with eigenvalues uniform on +-0.95, three seeds, an input "
    "matrix of "
    "Frobenius norm 1, unit noise; the document does not give its matrices.",
    caveats=("The document's matrices are not given: sizes are those of its figure, eigenvalues are ours.",),
))  # fmt: skip
