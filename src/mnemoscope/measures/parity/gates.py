"""Gates of two implementations: which weights make one, and in which of them the two differ."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from mnemoscope.measures.parity.running import forward, relative
from mnemoscope.measures.parity.weights import weights_of
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.state import State

__all__ = ["Found", "Pair", "gates_of", "where_they_differ"]

Rows = list[tuple[str, slice]]
"""Rows of weights that make a gate."""

_HIDDEN = 1e-6
"""Share of the difference below which it counts as hidden."""
_LARGE = 1e6
"""A gate so far from zero is open or shut, and nothing between."""

_MATRIX = r"[wuvbWUVRB]|weight|bias|kernel|linear|lin|fc"
_NO_GATE = re.compile(rf"{_MATRIX}|ih|hh|x|h|gate|cell|rnn|module|l?\d+|input|hidden")
_SHORT = re.compile(r"(?:[WUVRbwuv]|[xh]2|[xh](?=[a-z]$))_?([a-z]+)")
_BOTH = re.compile(r"[ih]([a-z])")
_TORCH = {3: "rzn", 4: "ifgo"}
"""Gates of torch's GRU and LSTM, in the order of their rows."""


def gates_of(weights: Mapping[str, Tensor], hidden: int) -> dict[str, Rows]:
    """Return the gates of a network by name, each as rows of weights.

    Weights of k times `hidden` rows have k gates, one after the other; others belong to the gate that their names share
    (``W_f``, ``U_f``, ``b_f``: f), or stand for themselves.
    """
    found: dict[str, Rows] = defaultdict(list)
    as_torch = any(re.search(r"(^|\.)weight_[ih]h(_l\d+)?$", name) for name in weights)
    for name, each in weights.items():
        blocks = len(each) // hidden if each.dim() and hidden and len(each) % hidden == 0 else 1
        if blocks > 1:
            torchs = _TORCH.get(blocks) if as_torch else None
            for k in range(blocks):
                called = f" ({torchs[k]}, in torch's order)" if torchs else ""
                found[f"gate {k + 1} of {blocks}{called}"].append((name, slice(k * hidden, (k + 1) * hidden)))
        else:
            found[_gate_name(name)].append((name, slice(None)))
    return dict(found)


def _gate_name(name: str) -> str:
    words = [word for word in re.split(r"[._]", name) if word]
    kept = []
    for k, word in enumerate(words):
        near = words[max(k - 1, 0) : k] + words[k + 1 : k + 2]
        beside = any(re.fullmatch(_MATRIX, each) for each in near)  # W_if and b_if, or `self.hf = nn.Linear(..)`
        both = _BOTH.fullmatch(word) if beside else None
        short = _SHORT.fullmatch(word)
        if both and word not in ("ih", "hh"):
            kept.append(both[1])
        elif not _NO_GATE.fullmatch(word):
            kept.append(short[1] if short else word)
    letters = [word for word in words if re.fullmatch(r"[uvwb]", word)]  # W_u, b_u, u.weight: an update gate
    place, _, last = name.rpartition(".")  # `self.gate = nn.Linear(..)`: its weight and bias belong together
    whole = place if place and last in ("weight", "bias") else name
    return " ".join(kept) or (letters[-1] if letters and len(words) > 1 else whole)


class Found(NamedTuple):
    """Where two implementations differ.

    Attributes
    ----------
    gates
        Which gates, empty where no gate hides the difference.
    together
        Whether it takes all of them at once.
    remaining
        For every gate the share of the difference that is left when it is silenced.
    """

    gates: tuple[str, ...]
    together: bool
    remaining: dict[str, float]


class Pair:
    """Two networks with the same weights, and what becomes of their difference when the weights change."""

    def __init__(
        self,
        one: Recurrent,
        other: Recurrent,
        sources: Callable[[Mapping[str, Tensor]], dict[str, Tensor]],
        x: Tensor,
    ) -> None:
        self.one, self.other, self.sources, self.x = one, other, sources, x
        self.weights, self.others = weights_of(one), weights_of(other)
        self.kept = {name: each.clone() for name, each in self.weights.items()}
        self.gates = gates_of(self.kept, one.output_size)
        self.starts = self._starts()
        self.whole = [self._gap(start) for start in self.starts]

    def _starts(self) -> list[tuple[State | None, State | None]]:
        """Return the usual initial states, and random ones where both networks carry tensors of the same shapes.

        A cell whose candidates are silent stays at zero from zero, and shows nothing of the rest.
        """
        batch = self.x.shape[1]
        first, second = (
            net.init_state(batch, device=self.x.device, dtype=self.x.dtype) for net in (self.one, self.other)
        )
        shapes = [[each.shape for each in tree_leaves(state)] for state in (first, second)]
        if shapes[0] != shapes[1] or not all(each.is_floating_point() for each in tree_leaves((first, second))):
            return [(None, None)]
        drawn = []
        for state in (first, second):
            generator = torch.Generator().manual_seed(0)
            drawn.append(tree_map(lambda t, g=generator: t + 0.5 * torch.rand(t.shape, generator=g).to(t), state))
        return [(None, None), (drawn[0], drawn[1])]

    def set(self, weights: Mapping[str, Tensor]) -> None:
        """Give both networks these weights, in the names of the first."""
        for places, values in ((self.weights, weights), (self.others, self.sources(weights))):
            for name, value in values.items():
                places[name].copy_(value)

    def _gap(self, start: tuple[State | None, State | None]) -> float:
        wanted, found = (
            forward(net, self.x, state)[0] for net, state in zip((self.one, self.other), start, strict=True)
        )
        return relative(found, wanted) if bool(wanted.isfinite().all()) else float("inf")

    def hides(self, start: int) -> float:
        """Return the share of the difference that is left, infinite where nothing that depends on inputs is left."""
        state = self.starts[start][0]
        y, moved = (forward(self.one, x, state)[0] for x in (self.x, self.x.flip(1)))
        alive = bool(y.isfinite().all()) and relative(moved, y) > _HIDDEN and float(y.abs().max()) > 1e-9
        return self._gap(self.starts[start]) / max(self.whole[start], 1e-300) if alive else float("inf")

    def matters(self, gate: str, now: Mapping[str, Tensor], start: int) -> bool:
        """Say whether a gate still changes the outputs, with the weights that are there now."""
        state = self.starts[start][0]
        before = forward(self.one, self.x, state)[0]
        for name, part in self.gates[gate]:
            self.weights[name][part] *= 0.5
        after = forward(self.one, self.x, state)[0]
        for name, value in now.items():
            self.weights[name].copy_(value)
        return relative(after, before) > _HIDDEN


def _silent(kept: Mapping[str, Tensor], rows: Rows) -> Iterator[dict[str, Tensor]]:
    """Give the weights with a gate silenced: at zero, at either end for each unit, and at one end for all of them."""
    biases = [k for k, (name, _) in enumerate(rows) if kept[name].dim() == 1]
    for factor, bias in ((0.0, 0.0), (_LARGE, 0.0), *(((0.0, _LARGE), (0.0, -_LARGE)) if biases else ())):
        changed = {name: each.clone() for name, each in kept.items()}
        for name, part in rows:
            changed[name][part] *= factor
        if bias:
            name, part = rows[biases[0]]
            changed[name][part] = bias
        yield changed


@torch.no_grad()
def where_they_differ(pair: Pair) -> Found:
    """Find the gates with which the difference goes, while all other gates still do something.

    Where no gate alone does that, two at once are silenced: they may have been exchanged, or made of one another. A
    gate that hides the difference only by shutting off others with it counts where there is nothing better.
    """
    remaining: dict[str, float] = {}
    clean, hidden = [], []
    for gate, rows in pair.gates.items():
        shares = [1.0]
        for changed in _silent(pair.kept, rows):
            pair.set(changed)
            for start in range(len(pair.starts)):
                share = pair.hides(start)
                shares.append(share)
                if share < _HIDDEN:
                    hidden.append(gate)
                    others = (each for each in pair.gates if each != gate)
                    if all(pair.matters(each, changed, start) for each in others):
                        clean.append(gate)
        remaining[gate] = min(shares)
    two = () if clean else _exchanged(pair, hidden)
    pair.set(pair.kept)
    return Found(tuple(dict.fromkeys(clean)) or two or tuple(dict.fromkeys(hidden)), bool(two), remaining)


def _exchanged(pair: Pair, hidden: Sequence[str]) -> tuple[str, ...]:
    """Return the first two gates that hide the difference when both are silenced, and neither does alone."""
    for two in combinations((each for each in pair.gates if each not in hidden), 2):
        if len(pair.gates) < 3:
            break
        changed = next(_silent(pair.kept, [rows for gate in two for rows in pair.gates[gate]]))
        pair.set(changed)
        others = [each for each in pair.gates if each not in two]
        for start in range(len(pair.starts)):
            if pair.hides(start) < _HIDDEN and all(pair.matters(each, changed, start) for each in others):
                return two
    return ()
