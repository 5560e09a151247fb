"""What follows from the definition of a network: the range of its state, and the growth of its cost."""

from __future__ import annotations

from torch import nn

from mnemoscope.core.numbers import number
from mnemoscope.nn.networks.gated import GRU, LSTM
from mnemoscope.nn.networks.h_detach import HDetachLSTM
from mnemoscope.profiles.theorems.subject import Subject
from mnemoscope.profiles.theorems.table import Finding, theorem

_STEPS = 100


@theorem(
    "state-memory",
    topic="state",
    applies=lambda s: s.recurrent,
    reference="kerg2020",
    claims=("kerg-memory-growth",),
)
def memory(s: Subject) -> Finding:
    """A state of fixed size."""
    text = (
        f"It carries {number(s.state_size or 0)} numbers from step to step, at every length: a step costs the same at "
        f"any time, and the memory of training grows linearly with the length."
    )
    return Finding(text, 1.0, "exact")


def _lstm(s: Subject) -> bool:
    return s.is_a(LSTM, HDetachLSTM, nn.LSTM, nn.LSTMCell)


@theorem("state-lstm", topic="state", applies=_lstm, reference="hochreiter1997")
def lstm(s: Subject) -> Finding:
    """|c_t| <= |c_{t-1}| + 1, |h_t| < 1."""
    text = (
        f"Whatever it reads, every unit of h stays within (-1, 1) and every unit of c within (-t, t) after t steps "
        f"from zero, within {_STEPS} after {_STEPS}: it can count, and its gates only ever shrink what c passes on by "
        f"itself."
    )
    return Finding(text, _STEPS, "bound")


def _within_one(s: Subject) -> bool:
    tanh = s.first_order and s.phi == "tanh" and s.option("activation", "recurrent") == "recurrent"
    return s.is_a(GRU, nn.GRU, nn.GRUCell) or (tanh and s.name != "henaff")


@theorem("state-range", topic="state", applies=_within_one, reference="jaeger2001")
def within_one(s: Subject) -> Finding:
    """Tanh, and averages of tanh."""
    text = "Whatever it reads, every unit of its state stays within (-1, 1), from the zero state on."
    return Finding(text, 1.0, "bound")
