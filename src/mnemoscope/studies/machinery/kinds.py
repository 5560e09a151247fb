"""Kinds of runs that several exact studies share: separation ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mnemoscope import nn
from mnemoscope.measures import separation_rank
from mnemoscope.studies.machinery.execution import executor

__all__ = ["measure_rank"]


@executor("separation-rank")
def measure_rank(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the exact rank of a circuit with random weights on one-hot templates, and the float rank beside it.

    Settings: channels ``M``, width ``R``, horizon ``T``, layers ``L``, ``seed``.
    """
    generator = torch.Generator().manual_seed(settings["seed"])
    circuit = nn.RAC(
        settings["M"],
        settings["R"],
        num_layers=settings["L"],
        output_size=1,
        dtype=torch.float64,
        generator=generator,
    )
    found = separation_rank(circuit, settings["T"], seed=settings["seed"])
    return {"rank": found.rank, "exact": found.exact, "float_rank": found.float_rank, "shape": list(found.shape)}
