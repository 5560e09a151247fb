"""Claims on Ziv's experiments: the sizes of the networks, and where the similarity task is possible."""

from __future__ import annotations

import torch

from mnemoscope.nn.networks.scornn import SCORNN
from mnemoscope.studies.claims.base import Verdict, claim

__all__: list[str] = []


@claim(
    "ziv-table-c1-parameters",
    "Ziv Table C.1",
    "scoRNN on permuted MNIST has 26K parameters as 2 x 128 and 167K as 3 x 256",
    "false",
    "34,314 and 232,586: each matrix between layers was counted as R(R-1)/2, as if it were skew-symmetric",
)
def table_c1(seed: int) -> Verdict:
    """Count the parameters of the networks themselves, and repeat the published count."""
    found, published = [], []
    for layers, hidden in ((2, 128), (3, 256)):
        network = SCORNN(1, hidden, num_layers=layers, generator=torch.Generator().manual_seed(seed))
        readout = 10 * (hidden + 1)
        found.append(sum(parameter.numel() for parameter in network.parameters()) + readout)
        between = (layers - 1) * hidden**2
        published.append(found[-1] - between + (layers - 1) * hidden * (hidden - 1) // 2)
    thousands = [round(count / 1000) for count in published]
    evidence = f"2x128: {found[0]:,}, 3x256: {found[1]:,}; counted as published {published[0]:,}, {published[1]:,}"
    return Verdict(found == [34_314, 232_586] and thousands == [26, 167], 2, evidence)


@claim(
    "ziv-similarity-grid",
    "Ziv §3.2",
    "the start-end similarity task compares pieces of m = 30 symbols with m < T/2, on a grid that starts at T = 60",
    "false",
    "at T = 60 both pieces touch, m = T/2: the condition is m <= T/2, or the grid starts at T = 61",
)
def similarity(seed: int) -> Verdict:
    """Look at which steps both pieces take."""
    m = 30
    apart = {T: T - 2 * m for T in (60, 61, 90, 1350)}
    evidence = f"steps between the pieces: {', '.join(f'{gap} at T={T}' for T, gap in apart.items())}"
    return Verdict(apart[60] == 0 and not m < 60 / 2 and all(m < T / 2 for T in apart if T > 60), len(apart), evidence)
