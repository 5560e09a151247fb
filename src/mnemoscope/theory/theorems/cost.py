"""Size and cost: parameter counts, memory of training, the range of a state; where a task can be drawn at all."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch import nn as torch_nn

from mnemoscope import measures, nn, tasks
from mnemoscope.core.numbers import number
from mnemoscope.tasks.signals import LagCopy
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView

_STEPS = 100
_LENGTHS = (32, 64, 128, 256)


def _count(name: str, inputs: int, hidden: int, outputs: int, **options: Any) -> int:
    """Return the trainable numbers of a network and its linear readout."""
    layer = nn.create(name, input_size=inputs, hidden_size=hidden, **options)
    return sum(int(p.numel()) for p in layer.parameters() if p.requires_grad) + outputs * (hidden + 1)


@theorem("ziv-table-c1-parameters", "ziv2020", "Table C.1", severity="wrong result")
def table_c1(_: int) -> Verdict:
    """ScoRNN on permuted MNIST has 26K parameters as 2 x 128 and 167K as 3 x 256.

    Right: 34,314 and 232,586: each matrix between layers was counted as R(R-1)/2, as if it were skew-symmetric.
    Check: parameters of both networks themselves, and the published way of counting them.
    """
    sizes = ((2, 128), (3, 256))
    found = [_count("scornn", 1, hidden, 10, num_layers=layers) for layers, hidden in sizes]
    between = [(layers - 1) * (n * n - n * (n - 1) // 2) for layers, n in sizes]
    published = [count - more for count, more in zip(found, between, strict=True)]
    evidence = f"2x128: {found[0]:,}, 3x256: {found[1]:,}; counted as published {published[0]:,}, {published[1]:,}"
    return Verdict(found == [34_314, 232_586] and [round(p / 1000) for p in published] == [26, 167], 2, evidence)


@theorem("kerg-parameter-counts", "kerg2022thesis", "app. A, tables of copy, psMNIST and PTB")
def counts(_: int) -> Verdict:
    """NnRNN and expRNN with n=128 and 176 (copy), 512 and 722 (psMNIST) or 1024 and 1386 (PTB) are equal to 0.3%.

    That is, in parameters. So is an LSTM with n=475 on PTB, where both of its biases count to 0.4%.

    Check: trainable numbers of all layers with their linear readouts; on PTB with 50 embeddings of 200 numbers.
    """
    wanted = {
        ("nnrnn", 10, 128, 9): 18_953,
        ("exprnn", 10, 176, 9): 18_929,
        ("nnrnn", 1, 512, 10): 268_298,
        ("exprnn", 1, 722, 10): 268_955,
        ("nnrnn", 200, 1024, 50): 1_315_650,
        ("exprnn", 200, 1386, 50): 1_317_741,
    }
    options: dict[str, dict[str, Any]] = {"nnrnn": {"block": "published"}, "exprnn": {}}
    words = {200: 50 * 200}
    found = {size: _count(*size, **options[size[0]]) + words.get(size[1], 0) for size in wanted}
    gaps = [abs(found[other] / found[one] - 1) for one, other in itertools.pairwise(wanted) if one[0] == "nnrnn"]
    lstm = sum(p.numel() for p in torch_nn.LSTM(200, 475).parameters()) + 50 * 476 + words[200]
    listed = ", ".join(f"{name} n={n}: {count:,}" for (name, _, n, _), count in found.items())
    right = found == wanted and max(gaps) < 3e-3 and lstm == 1_320_100
    return Verdict(right, len(found) + 1, f"{listed}, LSTM n=475: {lstm:,}")


@theorem("matrix-table-1", "renanse2021", "Table 1")
def matrix_table(_: int) -> Verdict:
    """MatrixRNN has 2,175 and 5,675 parameters, MatNTM 4,121 and 7,946: for copy and for recall.

    MatrixRNN does when its last cell has the 5 x 5 output as its state: beside 2 cells of 15 x 15, or 3 of 20 x 20.

    Check: all four networks, counted.
    """
    wanted = {"MatrixRNN": [2175, 5675], "MatNTM": [4121, 7946]}
    found = _matrix_counts()
    listed = "; ".join(f"{name} {copy:,} and {recall:,}" for name, (copy, recall) in found.items())
    return Verdict(found == wanted, 4, listed)


@theorem("matrix-memory-count", "renanse2021", "§5", severity="misprint")
def matrix_memory(_: int) -> Verdict:
    """An external memory makes the task learnable with very few parameters, as low as 5,675.

    Right: with an external memory there are 4,121 (copy) or 7,946 (recall); 5,675 are MatrixRNN's, which has none.
    Check: the networks of Table 1, counted.
    """
    found = _matrix_counts()
    return Verdict(
        5675 in found["MatrixRNN"] and 5675 not in found["MatNTM"],
        4,
        f"5,675 is the count of MatrixRNN for recall; MatNTM has {found['MatNTM'][0]:,} and {found['MatNTM'][1]:,}",
    )


def _matrix_counts() -> dict[str, list[int]]:
    """Return the parameters of the networks of Table 1, for copy and for recall."""
    memory = (120, 6, 6)
    made = {
        "MatrixRNN": [nn.create("matrixrnn", input_size=(5, 5), hidden_size=[*sizes, (5, 5)])
                      for sizes in ([(15, 15)] * 2, [(20, 20)] * 3)],
        "MatNTM": [nn.create("matntm", input_size=(5, 5), hidden_size=sizes, memory=memory)
                   for sizes in ([(15, 15)] * 3, [(20, 20)] * 4)],
    }  # fmt: skip
    return {name: [sum(p.numel() for p in each.parameters()) for each in both] for name, both in made.items()}


@theorem("depth-evaluation-sets", "lizaire2026", "app. B.1", severity="misprint")
def evaluation_sets(seed: int) -> Verdict:
    """Validation and test sets of the copy task contain 200 sequences each.

    Right: 2,000, as §4.1 has it; and what is scored are the steps t > p, since before them there is nothing to copy.
    Check: the sets of the task, their scored steps, and what both sizes leave of the error of saying 0, which is 1.
    """
    sets = LagCopy(lag=8, length=16).splits(seed)
    sizes = [each.inputs.shape[1] for each in (sets.validation, sets.test)]
    scored = bool(sets.test.mask[8:].all()) and not bool(sets.test.mask[:8].any())
    spread = {}
    for size in (200, 2000):
        errors = sets.train.targets[8:, :10_000].square().mean(dim=(0, 2)).reshape(-1, size).mean(1)
        spread[size] = float((errors - 1).square().mean().sqrt())
    return Verdict(
        sizes == [2000, 2000] and scored and spread[2000] < 0.7 * spread[200],
        2,
        f"sets of {sizes[0]:,} and {sizes[1]:,}, scored at steps 9 to 16; the error of saying 0 is 1 to within "
        f"{spread[200]:.3f} on 200 sequences, {spread[2000]:.3f} on 2,000",
    )


@theorem("kerg-corelnet-decoder", "kerg2022", "Fig. 2", severity="misprint")
def corelnet_decoder(_: int) -> Verdict:
    """The decoder of CoRelNet reads the T x T matrix of similarities.

    Right: it reads the lower triangle with the diagonal, T(T+1)/2 numbers, after context normalisation (256
    parameters); the numbers above the diagonal are zero whatever the panels.
    Check: networks of 4 and 9 panels: their decoder's inputs, parameters, and what lies above the diagonal.
    """
    inputs, above, parameters = [], 0.0, []
    for panels in (4, 9):
        network = nn.create("corelnet", panels=panels, answers=2)
        inputs.append(int(network.decoder[0].in_features))
        with torch.no_grad():
            relations = network.relations(torch.randn(panels, 3, 128, generator=torch.Generator().manual_seed(0)))
        above = max(above, float(relations.triu(1).abs().max()))
        parameters.append(sum(p.numel() for p in network.context.parameters()))
    return Verdict(
        inputs == [10, 45] and above == 0 and parameters == [256, 256],
        2,
        f"decoders of 4 and 9 panels read {inputs[0]} and {inputs[1]} numbers, not 16 and 81; above the diagonal "
        f"{above:g}; {parameters[0]} parameters of context normalisation",
    )


@theorem("ziv-similarity-grid", "ziv2020", "§3.2, Fig. 3.2", severity="misprint")
def similarity(seed: int) -> Verdict:
    """The start-end similarity task with pieces of m = 30 < T/2 symbols is tried from T = 60 on.

    The first piece begins at t ~ Uni{1, .., T/2 - m}.

    Right: at T = 60 there is no such t, and m = T/2: the task needs m <= T/2 with t = 1 there, or starts at T = 62.
    Check: starts that are left at T = 60 and 90; blanks and starts of 64 sequences that are drawn of each length.
    """
    starts = {T: len(range(1, T // 2 - 30 + 1)) for T in (60, 90)}
    blanks, begins = {}, {}
    for T in (60, 90):
        task = tasks.create("start-end-similarity", length=T, symbols=30, alphabet=32)
        letters = task.sample(64, torch.Generator().manual_seed(seed)).inputs.argmax(-1)
        blank = letters == 32
        blanks[T] = sorted(set(blank.sum(0).tolist()))
        begins[T] = sorted(set((~blank).int().argmax(0).tolist()))
    right = starts == {60: 0, 90: 15} and blanks == {60: [0], 90: [30]}
    inside = begins[60] == [0] and len(begins[90]) > 5 and max(begins[90]) < 15
    evidence = (
        f"T = 60: {starts[60]} starts, sequences with {blanks[60][0]} blanks; T = 90: {starts[90]} starts, "
        f"{blanks[90][0]} "
        f"blanks, {len(begins[90])} different starts drawn"
    )
    return Verdict(right and inside, 128, evidence)


class _AttentiveRNN(torch_nn.Module):
    """h_{t+1} = tanh(V s_t + U x_t), s_t = h_t + sum_i alpha_{t,i} h_i over all states so far, by softmax."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.recurrent = torch_nn.Linear(hidden_size, hidden_size)
        self.input = torch_nn.Linear(input_size, hidden_size, bias=False)
        self.align = torch_nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, x: Float[Tensor, "batch time input"]) -> Float[Tensor, "batch time hidden"]:
        macro = x.new_zeros(x.shape[0], self.recurrent.in_features)
        states: list[Tensor] = []
        for x_t in x.unbind(1):
            h = torch.tanh(self.recurrent(macro) + self.input(x_t))
            states.append(h)
            past = torch.stack(states, dim=1)
            weights = torch.softmax(torch.einsum("bth,bh->bt", past, self.align(h)), dim=1)
            macro = h + torch.einsum("bt,bth->bh", weights, past)
        return torch.stack(states, dim=1)


@theorem("kerg-memory-growth", "kerg2022thesis", "§4.7, Fig. 4.2", status="measured")
def memory_growth(seed: int) -> Verdict:
    """Memory of training grows linearly with the length for an RNN and an LSTM, quadratically with full self-attention.

    Check: what autograd saves for three networks of 16 to 32 units at lengths 32 to 256: the exponent that fits.
    """
    n = 16 + int(torch.randint(17, (), generator=torch.Generator().manual_seed(seed)))
    made = {"RNN": nn.RNN(2, n), "LSTM": nn.LSTM(2, n), "attention": _AttentiveRNN(2, n)}
    found = {name: measures.resources(layer, lengths=_LENGTHS, repeats=1).exponent for name, layer in made.items()}
    held = all(abs(found[name] - 1) < 0.1 for name in ("RNN", "LSTM")) and abs(found["attention"] - 2) < 0.15
    words = ", ".join(f"{name} T^{value:.2f}" for name, value in found.items())
    return Verdict(held, 3, f"n = {n}, T = {_LENGTHS[0]}..{_LENGTHS[-1]}: {words}")


@memory_growth.about("state", lambda s: s.recurrent)
def _(s: NetworkView) -> Instance:
    text = (
        f"It carries {number(s.state_size or 0)} numbers from step to step, at every length: a step costs the same at "
        f"any time, and the memory of training grows linearly with the length."
    )
    return Instance(text, 1.0, "exact")


@theorem("state-lstm", "hochreiter1997", "")
def lstm(seed: int) -> Verdict:
    """From zero, every unit of an LSTM's h stays within (-1, 1) and every unit of c within (-t, t) after t steps.

    Check: eight LSTMs over 100 steps with inputs of size 50, one of them made to count: largest h, and c over t.
    """
    generator = torch.Generator().manual_seed(seed)
    h_most = c_most = 0.0
    for case in range(8):
        layer = nn.LSTM(2, 5, generator=generator)
        with torch.no_grad():
            if case == 0:  # all gates open and all candidates at one
                for parameter in layer.parameters():
                    parameter.fill_(50.0)
            x = 50 * torch.randn(_STEPS, 4, 2, generator=generator)
            state = None
            for t in range(_STEPS):
                y, state = layer(x[t : t + 1].abs() if case == 0 else x[t : t + 1], state)
                h_most, c_most = max(h_most, float(y.abs().max())), max(c_most, float(state[1].abs().max()) / (t + 1))
    right = h_most <= 1 and 0.99 < c_most <= 1
    return Verdict(right, 8, f"|h| at most {h_most:.6f}, |c| / t at most {c_most:.6f}")


@lstm.about("state", lambda s: s.is_a(nn.LSTM, nn.HDetachLSTM, torch_nn.LSTM, torch_nn.LSTMCell))
def _(_: NetworkView) -> Instance:
    text = (
        f"Whatever it reads, every unit of h stays within (-1, 1) and every unit of c within (-t, t) after t steps "
        f"from zero, within {_STEPS} after {_STEPS}: it can count, and its gates only ever shrink what c passes on by "
        f"itself."
    )
    return Instance(text, _STEPS, "bound")


@theorem("state-range", "jaeger2001", "")
def within_one(seed: int) -> Verdict:
    """From zero, every unit of a tanh network or GRU stays within (-1, 1), whatever it reads.

    Check: five RNNs and five GRUs over 100 steps with inputs of size 50: the largest unit.
    """
    generator = torch.Generator().manual_seed(seed)
    most, x = 0.0, 50 * torch.randn(_STEPS, 4, 2, generator=generator)
    for _ in range(5):
        for kind in (nn.RNN, nn.GRU):
            layer = kind(2, 5, generator=generator)
            with torch.no_grad():
                for parameter in layer.parameters():
                    parameter.mul_(5)
                most = max(most, float(layer(x)[0].abs().max()))
    return Verdict(0.99 < most <= 1, 10, f"largest unit {most:.6f}")


def _bounded(s: NetworkView) -> bool:
    tanh = s.first_order and s.phi == "tanh" and s.option("activation", "recurrent") == "recurrent"
    return s.is_a(nn.GRU, torch_nn.GRU, torch_nn.GRUCell) or (tanh and s.name != "henaff")


@within_one.about("state", _bounded)
def _(_: NetworkView) -> Instance:
    text = "Whatever it reads, every unit of its state stays within (-1, 1), from the zero state on."
    return Instance(text, 1.0, "bound")
