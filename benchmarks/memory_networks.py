"""Networks that remember outside their state: time and saved memory against torch.nn.RNN and eager loops.

    python benchmarks/memory_networks.py

Issue 23's goals: relrnn's time linear in T (slope of log time 0.95 to 1.1), a training step at T = 200 at most 4 x
torch.nn.RNN's, saved memory at T = 2000 at most a quarter of memrnn's; matntm at most 2.5 x a 3-layer torch.nn.RNN of
width 225; ntm at most a third of a step-by-step machine with a linear layer for every number that a head says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from harness import interleave, machine, ratios, write
from torch import Tensor, nn

import mnemoscope as ms

N, D, B = 128, 10, 10


def training(network: nn.Module, x: Tensor) -> Callable[[], object]:
    """Return a step of training on a squared output."""

    def step() -> None:
        network.zero_grad(set_to_none=True)
        network(x)[0].square().mean().backward()

    return step


def saved(network: nn.Module, x: Tensor) -> int:
    """Return the bytes that a call keeps for its backward pass."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = network(x)
    del y
    return sum(kept.values())


class EagerNTM(nn.Module):
    """One read and one write head, a linear layer for each thing that a head says, shifts by torch.roll."""

    def __init__(self, inputs: int, hidden: int, slots: int, width: int) -> None:
        super().__init__()
        self.slots, self.width, self.hidden = slots, width, hidden
        self.controller = nn.LSTMCell(inputs + width, hidden)
        sizes = {"key": width, "beta": 1, "gate": 1, "shift": 3, "gamma": 1}
        self.heads = nn.ModuleList(
            nn.ModuleDict({name: nn.Linear(hidden, size) for name, size in sizes.items()}) for _ in range(2)
        )
        self.erase, self.add = nn.Linear(hidden, width), nn.Linear(hidden, width)

    def address(self, head: Any, h: Tensor, memory: Tensor, before: Tensor) -> Tensor:
        """Return the weights of a head."""
        key, beta = torch.tanh(head["key"](h)), 1 + F.softplus(head["beta"](h))
        content = torch.softmax(beta * F.cosine_similarity(memory, key.unsqueeze(1), dim=-1), -1)
        gate, shift = torch.sigmoid(head["gate"](h)), torch.softmax(head["shift"](h), -1)
        mixed = gate * content + (1 - gate) * before
        turned = sum(shift[:, j : j + 1] * torch.roll(mixed, j - 1, -1) for j in range(3))
        sharp = turned ** (1 + F.softplus(head["gamma"](h)))
        return sharp / (sharp.sum(-1, keepdim=True) + 1e-8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return [h, r] at every step, and the last memory."""
        batch = x.shape[1]
        memory, read = x.new_full((batch, self.slots, self.width), 1e-5), x.new_zeros(batch, self.width)
        h = c = x.new_zeros(batch, self.hidden)
        weights = [torch.eye(1, self.slots).expand(batch, -1) for _ in range(2)]
        outputs = []
        for x_t in x:
            h, c = self.controller(torch.cat([x_t, read], -1), (h, c))
            weights[1] = self.address(self.heads[1], h, memory, weights[1])
            w = weights[1].unsqueeze(-1)
            memory = memory * (1 - w * torch.sigmoid(self.erase(h)).unsqueeze(1)) + w * self.add(h).unsqueeze(1)
            weights[0] = self.address(self.heads[0], h, memory, weights[0])
            read = (weights[0].unsqueeze(-1) * memory).sum(1)
            outputs.append(torch.cat([h, read], -1))
        return torch.stack(outputs), memory


def main() -> None:
    """Measure, print and write docs/benchmarks/memory_networks.json."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found: dict[str, Any] = {"machine": machine()}
    x = torch.randn(200, B, D)
    steps = {"torch.nn.RNN": training(nn.RNN(D, N), x)}
    for name in ("relrnn", "rellstm", "memrnn", "sab"):
        steps[name] = training(ms.nn.create(name, input_size=D, hidden_size=N), x)
    found["training step at T = 200, over torch.nn.RNN's"] = ratios(interleave(steps, 5), "torch.nn.RNN")
    network = ms.nn.create("relrnn", input_size=D, hidden_size=N)
    lengths = (250, 1000, 4000)
    times = interleave({str(t): training(network, torch.randn(t, B, D)) for t in lengths}, 3)
    least = [min(times[str(t)]) for t in lengths]
    found["slope of relrnn's log time"] = math.log(least[-1] / least[0]) / math.log(lengths[-1] / lengths[0])
    long = torch.randn(2000, B, D)
    kept = {name: saved(ms.nn.create(name, input_size=D, hidden_size=N), long) for name in ("relrnn", "memrnn")}
    found["bytes saved at T = 2000"] = kept
    found["relrnn's share of memrnn's"] = kept["relrnn"] / kept["memrnn"]
    matrices = torch.randn(41, 16, 5, 5)
    matntm = ms.nn.create("matntm", input_size=(5, 5), hidden_size=(15, 15), num_layers=3, memory=(120, 6, 6))
    pair = {"torch.nn.RNN": training(nn.RNN(25, 225, 3), matrices.flatten(2)), "matntm": training(matntm, matrices)}
    found["matntm over a 3-layer torch.nn.RNN of width 225"] = ratios(interleave(pair, 5), "torch.nn.RNN")["matntm"]
    bits = torch.randn(41, 16, 9)
    ntm = ms.nn.create("ntm", input_size=9, hidden_size=100, memory=(128, 20))
    pair = {"eager": training(EagerNTM(9, 100, 128, 20), bits), "ntm": training(ntm, bits)}
    found["ntm over an eager machine"] = ratios(interleave(pair, 5), "eager")["ntm"]
    rows = [f"| {name} | {_shown(value)} |" for name, value in found.items()]
    table = "\n".join(
        ["# Networks that remember outside their state", "", "| what | measured |", "|---|---|", *rows, ""]
    )
    print(table)
    write("memory_networks", table, found, Path("docs/benchmarks"))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
