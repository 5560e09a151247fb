"""Training steps of CoRelNet beside those of its encoder alone, and what a fresh batch costs.

The yardstick is a step of the encoder on all T x B images: forward, a sum, backward. CoRelNet's step is a whole one
(relations, answer, loss, backward, Adam) on the same images, given as the task gives them (distinct images once) and as
all panels. Identity rules, T = 9, B = 32, at m = 95 held-out symbols; the times take turns in every round.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
from pathlib import Path

import torch
from harness import Step, interleave, machine, ratios, write

import mnemoscope as ms
from mnemoscope.nn.panels import Panels
from mnemoscope.nn.relational import ImageEncoder

BATCH = 32
ENCODER, STEP, DENSE, GENERATION = "encoder, all images", "step", "step on all images", "generation"
BARS = {STEP: 1.3, DENSE: 1.3, GENERATION: 0.1}


def steps(task: ms.tasks.Task) -> dict[str, Step]:
    """Return the steps that are timed."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    batch = task.sample(BATCH, generator)
    panels = batch.inputs
    assert isinstance(panels, Panels)
    images = panels.dense()
    network = ms.nn.create("corelnet", panels=images.shape[0], answers=task.output_size, input_size=images.shape[2:])
    encoder = ImageEncoder(*images.shape[2:])
    optimiser = torch.optim.Adam(network.parameters(), lr=5e-4)

    def train(inputs: object) -> None:
        optimiser.zero_grad()
        task.loss(network(inputs), batch).backward()
        optimiser.step()

    def encode() -> None:
        encoder.zero_grad()
        encoder(images.flatten(0, 1)).sum().backward()

    return {
        ENCODER: encode,
        STEP: lambda: train(panels),
        DENSE: lambda: train(images),
        GENERATION: lambda: task.sample(BATCH, generator),
    }


def main() -> None:
    """Measure, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", type=Path, help="folder for the table and the numbers")
    given = parser.parse_args()
    torch.set_num_threads(1)
    times = interleave(steps(ms.tasks.create("identity-rules", held_out=95)), given.rounds)
    found = ratios(times, ENCODER)
    date = datetime.datetime.now(tz=datetime.UTC).date()
    lines = ["# CoRelNet beside its encoder", "", " ".join((__doc__ or "").split()), ""]
    lines += [f"{machine()}, 1 thread, {date}.", "", "| | ms | of the encoder | goal |", "|---|---|---|---|"]
    for name, ratio in found.items():
        goal = f"at most {BARS[name]}" if name in BARS else ""
        lines.append(f"| {name} | {1000 * statistics.median(times[name]):.1f} | {ratio:.3f} | {goal} |")
    table = "\n".join(lines) + "\n"
    print(table)
    if given.write:
        write("relational", table, {"machine": machine(), "date": str(date), "ratios": found}, given.write)


if __name__ == "__main__":
    main()
