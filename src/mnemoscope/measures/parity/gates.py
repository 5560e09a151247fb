"""Gates of two implementations: which weights make one, and in which of them the two differ."""

from __future__ import annotations

import math
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
_STAYS = 1e-3
"""Share above which it counts as still there."""
_LARGE = 1e6
"""A gate so far from zero is open or shut, and nothing between."""

_MATRIX = r"[wuvbWUVRB]|weight|bias|kernel|linear|lin|fc"
_NO_GATE = re.compile(rf"{_MATRIX}|ih|hh|x|h|gate|cell|rnn|module|l?\d+|input|hidden")
_SHORT = re.compile(r"(?:[WUVRbwuv](?:[xhi](?=[a-z]$))?|[xh]2|[xh](?=[a-z]$))_?([a-z]+)")
_SIDE = re.compile(r"[WUVRbwuv][xhi]")
"""What a gate makes of its input or of its state, where another word says which gate: ``wx_r`` and ``wh_r``."""
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
    kept, sides = [], list[str]()
    for k, word in enumerate(words):
        near = words[max(k - 1, 0) : k] + words[k + 1 : k + 2]
        beside = any(re.fullmatch(_MATRIX, each) for each in near)  # W_if and b_if, or `self.hf = nn.Linear(..)`
        both = _BOTH.fullmatch(word) if beside else None
        short = _SHORT.fullmatch(word)
        if both and word not in ("ih", "hh"):
            kept.append(both[1])
        elif not _NO_GATE.fullmatch(word):
            kept.append(short[1] if short else word)
            sides += [kept[-1]] if _SIDE.fullmatch(word) else []
    kept = [word for word in kept if word not in sides] or kept
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
    weights
        Which weight of a gate does it alone, where silencing all of the gate shuts off others with it.
    """

    gates: tuple[str, ...]
    together: bool
    remaining: dict[str, float]
    weights: tuple[str, ...] = ()


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

    def clean(self, silenced: Rows, now: Mapping[str, Tensor], start: int) -> bool:
        """Say whether every other weight still changes the outputs, with the weights that are there now."""
        state, gone = self.starts[start][0], {(name, part.start) for name, part in silenced}
        before = forward(self.one, self.x, state)[0]
        for name, part in (each for rows in self.gates.values() for each in rows):
            if (name, part.start) in gone:
                continue
            self.weights[name][part] *= 0.5
            after = forward(self.one, self.x, state)[0]
            self.weights[name].copy_(now[name])
            if relative(after, before) <= _HIDDEN:
                return False
        return True


def _silent(kept: Mapping[str, Tensor], rows: Rows) -> Iterator[tuple[dict[str, Tensor], bool]]:
    """Give the weights with a gate silenced: at zero, at either end for each unit, and at one end for all of them.

    And whether that holds it where it is, whatever comes.
    """
    biases = [k for k, (name, _) in enumerate(rows) if kept[name].dim() == 1]
    for factor, bias in ((0.0, 0.0), (_LARGE, 0.0), *(((0.0, _LARGE), (0.0, -_LARGE)) if biases else ())):
        changed = {name: each.clone() for name, each in kept.items()}
        for name, part in rows:
            changed[name][part] *= factor
        if bias:
            name, part = rows[biases[0]]
            changed[name][part] = bias
        yield changed, not factor


@torch.no_grad()
def where_they_differ(pair: Pair) -> Found:
    """Find the gates with which the difference goes, while all other weights still do something.

    Where no gate alone does that, one of its weights may; else two gates at once are silenced: they may have been
    exchanged, or made of one another. A gate that hides the difference only by shutting off others with it counts where
    there is nothing better, and not where the difference stays when it is held otherwise.
    """
    remaining: dict[str, float] = {}
    clean, hidden = [], []
    for gate, rows in pair.gates.items():
        shares = [1.0]
        for changed, _ in _silent(pair.kept, rows):
            pair.set(changed)
            for start in range(len(pair.starts)):
                share = pair.hides(start)
                shares.append(share)
                if share < _HIDDEN:
                    hidden.append(gate)
                    clean += [gate] if gate not in clean and pair.clean(rows, changed, start) else []
        remaining[gate] = min(shares)
    alone = () if clean else _alone(pair)
    two = () if clean or alone else _exchanged(pair, hidden)
    found = clean or [gate for gate, _ in alone] or two
    gates = found or [gate for gate in hidden if not _stays(pair, gate)] or hidden
    pair.set(pair.kept)
    return Found(tuple(dict.fromkeys(gates)), bool(two), remaining, tuple(name for _, name in alone))


def _alone(pair: Pair) -> list[tuple[str, str]]:
    """Return each weight, after its gate, that hides the difference when it alone is zero."""
    found = []
    for gate, rows in pair.gates.items():
        for row in rows if len(rows) > 1 else ():
            changed, _ = next(_silent(pair.kept, [row]))
            pair.set(changed)
            if any(pair.hides(k) < _HIDDEN and pair.clean([row], changed, k) for k in range(len(pair.starts))):
                found.append((gate, row[0]))
    return found


def _stays(pair: Pair, gate: str) -> bool:
    """Say whether the difference is there with a gate held somewhere, and all other weights at work."""
    for changed, held in _silent(pair.kept, pair.gates[gate]):
        pair.set(changed)
        for start in range(len(pair.starts) if held else 0):
            if _STAYS < pair.hides(start) < math.inf and pair.clean(pair.gates[gate], changed, start):
                return True
    return False


def _exchanged(pair: Pair, hidden: Sequence[str]) -> tuple[str, ...]:
    """Return the first two gates that hide the difference when both are silenced, and neither does alone."""
    for two in combinations((each for each in pair.gates if each not in hidden), 2):
        if len(pair.gates) < 3:
            break
        rows = [row for gate in two for row in pair.gates[gate]]
        changed, _ = next(_silent(pair.kept, rows))
        pair.set(changed)
        if any(pair.hides(k) < _HIDDEN and pair.clean(rows, changed, k) for k in range(len(pair.starts))):
            return two
    return ()
