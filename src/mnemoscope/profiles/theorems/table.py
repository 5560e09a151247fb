"""The table of theorems, and what they say of a network."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mnemoscope.core.errors import UserError
from mnemoscope.profiles.theorems.subject import Subject

__all__ = ["NO_THEOREM", "TOPICS", "Finding", "Theorem", "says", "theorem", "theorems"]

Status = Literal["exact", "bound", "conjecture"]

TOPICS = {
    "capacity": "Memory capacity",
    "fisher": "Fisher memory",
    "copying": "Copying",
    "gradients": "Gradients",
    "spectrum": "Spectrum",
    "separation": "Separation rank",
    "degree": "Polynomials",
    "tracking": "State tracking",
    "reach": "What training can reach",
    "state": "State and cost",
}
"""What theorems are about, in the order in which a page shows them."""

NO_THEOREM = {
    "capacity": "No theorem here gives its memory capacity: {name} has no fixed state that a readout could see.",
    "fisher": "No theorem here gives or bounds its Fisher memory: what is proved is about linear networks, and about "
    "h = phi(V h + U x + b) with a real phi that never has a slope above 1. It is measured instead.",
    "copying": "No theorem here says how far back {name} can copy its input: what is proved is about linear networks.",
    "gradients": "No theorem here bounds its gradients: the Jacobians of {name} depend on its states in a way that no "
    "norm of its weights bounds usefully. They are measured instead.",
    "separation": "No theorem here gives or bounds its separation rank: what is proved is about linear networks and "
    "networks of products. It is measured instead.",
}
"""What is said where no theorem of a topic applies, so that silence is not taken for an answer."""


@dataclass(frozen=True)
class Finding:
    """What a theorem says of one network.

    Attributes
    ----------
    text
        One sentence or two, with the numbers in them.
    value
        The main number; None where it is infinite or there is none.
    status
        ``"exact"``: it is so. ``"bound"``: it cannot be more, or less, as the text says. ``"conjecture"``: it held in
        every case that was tried, and nobody has proved it.
    """

    text: str
    value: float | None
    status: Status


Evaluate = Callable[[Subject], Finding]


@dataclass(frozen=True)
class Theorem:
    """One theorem.

    Attributes
    ----------
    name
        By which rows name it.
    topic
        A key of `TOPICS`.
    applies
        Tells whether it speaks of a network.
    evaluate
        Puts in the network's numbers; called only where it applies.
    reference
        A key of `mnemoscope.core.references`.
    claims
        The claims of `mnemoscope theory` that it evaluates.
    """

    name: str
    topic: str
    applies: Callable[[Subject], bool]
    evaluate: Evaluate
    reference: str
    claims: tuple[str, ...] = ()


_TABLE: dict[str, Theorem] = {}


def theorem(
    name: str, *, topic: str, applies: Callable[[Subject], bool], reference: str, claims: tuple[str, ...] = ()
) -> Callable[[Evaluate], Evaluate]:
    """Return a decorator that puts a function of a `Subject` into the table."""

    def file(evaluate: Evaluate) -> Evaluate:
        if name in _TABLE or topic not in TOPICS:
            raise UserError(f"a theorem must have a name of its own and a known topic, got {name!r} on {topic!r}")
        _TABLE[name] = Theorem(name, topic, applies, evaluate, reference, claims)
        return evaluate

    return file


def theorems() -> list[Theorem]:
    """Return the whole table, by topic and then by name."""
    package = importlib.import_module("mnemoscope.profiles.theorems")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    order = list(TOPICS)
    return sorted(_TABLE.values(), key=lambda each: (order.index(each.topic), each.name))


def says(network: Any) -> list[dict[str, Any]]:
    """Return what every theorem that applies says of a network, as rows hold it; and where none applies, that.

    Each is ``{"claim", "topic", "text", "value", "status", "reference"}``, `status` being ``"none"`` where there is no
    theorem.
    """
    subject = network if isinstance(network, Subject) else Subject(network)
    found = [_row(each, each.evaluate(subject)) for each in theorems() if each.applies(subject)]
    spoken = {statement["topic"] for statement in found}
    missing = [topic for topic in NO_THEOREM if topic not in spoken] if subject.kind == "recurrent" else []
    order = list(TOPICS)
    return sorted([*found, *(_silence(topic, subject) for topic in missing)], key=lambda s: order.index(s["topic"]))


def _row(entry: Theorem, finding: Finding) -> dict[str, Any]:
    return {
        "claim": entry.name,
        "topic": entry.topic,
        "text": finding.text,
        "value": _plain(finding.value),
        "status": finding.status,
        "reference": entry.reference,
    }


def _plain(value: float | None) -> float | None:
    """Return a value as JSON holds it: None for what no float holds, which the text says."""
    try:
        found = None if value is None else float(value)
    except OverflowError:
        return None
    return found if found is not None and math.isfinite(found) else None


def _silence(topic: str, subject: Subject) -> dict[str, Any]:
    text = NO_THEOREM[topic].format(name=subject.name)
    return {
        "claim": f"no-theorem-{topic}",
        "topic": topic,
        "text": text,
        "value": None,
        "status": "none",
        "reference": "",
    }
