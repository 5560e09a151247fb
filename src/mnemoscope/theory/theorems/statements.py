"""Statements about one network: every theorem that applies to it, and the topics on which none does."""

from __future__ import annotations

import math
from typing import Any

from mnemoscope.theory.theorems.base import TOPICS, Instance, Theorem, claims, view
from mnemoscope.theory.theorems.view import NetworkView

__all__ = ["statements"]

_NONE = {
    "capacity": "No theorem here gives its memory capacity: {name} has no fixed state that a readout could see.",
    "fisher": "No theorem here gives or bounds its Fisher memory: what is proved is about linear networks, and about "
    "h = phi(V h + U x + b) with a real phi that never has a slope above 1. It is measured instead.",
    "copying": "No theorem here says how far back {name} can copy its input: what is proved is about fixed states.",
    "gradients": "No theorem here bounds its gradients: no norm of the weights of {name} bounds its Jacobians well. "
    "They are measured instead.",
    "separation": "No theorem here gives or bounds its separation rank: what is proved is about linear networks and "
    "networks of products. It is measured instead.",
}
"""Sentences where no theorem of a topic applies, so that silence is not taken for an answer."""


def statements(network: Any) -> list[dict[str, Any]]:
    """Return what every theorem that applies says of a network, by topic; and where none applies, that.

    Each is ``{"claim", "topic", "text", "value", "status", "source", "reference"}``, `status` being ``"none"`` where
    there is no theorem.
    """
    known = view(network)
    order = list(TOPICS)
    found = [_row(each, each.value(known)) for each in claims() if each.applies(known)]
    spoken = {row["topic"] for row in found}
    if known.kind == "recurrent":
        found += [_silence(topic, known) for topic in _NONE if topic not in spoken]
    return sorted(found, key=lambda row: order.index(row["topic"]))


def _row(theorem: Theorem, said: Instance) -> dict[str, Any]:
    return {
        "claim": theorem.name,
        "topic": theorem.topic,
        "text": said.text,
        "value": _plain(said.value),
        "status": said.status,
        "source": theorem.source,
        "reference": theorem.reference,
    }


def _silence(topic: str, known: NetworkView) -> dict[str, Any]:
    empty = {"value": None, "status": "none", "source": "", "reference": ""}
    return {"claim": f"no-theorem-{topic}", "topic": topic, "text": _NONE[topic].format(name=known.name)} | empty


def _plain(value: float | None) -> float | None:
    """Return a value as JSON holds it: None for what no float holds, which the text says."""
    try:
        found = None if value is None else float(value)
    except OverflowError:
        return None
    return found if found is not None and math.isfinite(found) else None
