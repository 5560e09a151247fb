"""State of a module whose forward keeps it to itself, found by a method that makes single steps."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch

from mnemoscope.core.errors import UserError
from mnemoscope.nn.adapt.filling import fillings
from mnemoscope.nn.adapt.plan import Plan, close
from mnemoscope.nn.adapt.probe import Probe
from mnemoscope.nn.adapt.stateful import plan_stateful

__all__ = ["by_method"]

_METHODS = [
    *("step", "forward_step", "step_forward", "single_step", "one_step", "recurrent_step", "recurrent"),
    *("forward_recurrent", "recurrent_forward", "inference", "inference_step", "decode_step", "forward_with_state"),
]
"""What people call the method that takes a state, likeliest first."""


def by_method(probe: Probe, block: Plan) -> tuple[str, Plan] | None:
    """Return how a block is read by a method of its own that takes a state, where both give the same outputs."""
    if probe.advice.method is not None or block.causality is None or not block.causality.causal:
        return None
    given = probe.advice
    try:
        for method in _METHODS:
            if not callable(getattr(probe.module, method, None)):
                continue
            probe.advice = replace(given, method=method, input_size=block.input_size)
            index = next(fillings(probe.signature.missing, False), {})  # a number of the step, say
            probe.advice = replace(probe.advice, keywords={**given.keywords, **index})
            for kind in ("cell", "recurrent"):
                with suppress(UserError):
                    plan = plan_stateful(probe, kind)
                    if _same(probe, plan, block):
                        words = f"its method {method} takes the state that forward keeps to itself: same outputs"
                        return kind, replace(plan, guesses=(*plan.guesses, words))
    finally:
        probe.advice = given
    return None


def _same(probe: Probe, plan: Plan, block: Plan) -> bool:
    """Whether the method, step by step from its first state, gives what the whole gives."""
    x = probe.normal(probe.time, probe.batch, block.input_size)
    whole = block.call.output_of(block.call.returned(probe.module, x))
    state: Any = probe.begin(plan.start)
    outputs = []
    try:
        for now in x:
            y, state = plan.call(probe.module, now.unsqueeze(0) if plan.call.whole else now, state)
            outputs.append(y.squeeze(0) if plan.call.whole else y)
    except Exception:  # a stranger's own step may raise anything: then it is not taken
        return False
    return close(torch.stack(outputs), whole)
