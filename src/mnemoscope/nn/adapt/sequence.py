"""Call of a block without a state, found by trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from mnemoscope.core.errors import UserError
from mnemoscope.nn.adapt.call import ORDERS, STEPS, Call, Signature
from mnemoscope.nn.adapt.causality import Causality
from mnemoscope.nn.adapt.plan import Plan, check_causality, check_examples, check_numbers, placed_output
from mnemoscope.nn.adapt.probe import Probe, call_text
from mnemoscope.nn.adapt.search import Attempt, search, signature_of
from mnemoscope.nn.adapt.sizes import Width, input_widths

__all__ = ["ORDER_WORDS", "plan_sequence"]

_AXES = {"T": "time", "B": "batch", "D": "features", "1": "1"}
ORDER_WORDS = {order: f"({', '.join(_AXES[axis] for axis in order)})" for order in (*ORDERS, *STEPS)}
"""The order of axes, in words."""


def plan_sequence(probe: Probe) -> Plan:
    """Find out how to call a block ``(batch, time, features) -> (batch, time, features)``."""
    signature = signature_of(probe, "sequence")
    if signature.required:
        calls = f"{call_text(kind='cell')} or {call_text(kind='recurrent')}"
        raise UserError(f"{probe.name} must take an input alone, got a forward that needs a state; call {calls}")
    return search(probe, "sequence", {}, _attempts(probe, signature))


def _attempts(probe: Probe, signature: Signature) -> Iterator[Attempt]:
    orders = probe.orders if probe.advice.layout else [*probe.orders, "BDT"]
    for width in input_widths(probe.module, probe.advice.input_size):
        for order in orders:
            yield width, partial(_attempt, probe, signature, width, order)


def _attempt(probe: Probe, signature: Signature, width: Width, order: str) -> Plan:
    call = Call(signature.input_name, order=order, keywords=signature.keywords, method=probe.advice.method)
    x = probe.normal(probe.time, probe.batch, width.size)
    returned = probe.call(call, x)
    call = _placed(probe, call, returned)

    def invoke(module: nn.Module, x: Tensor) -> Tensor:
        return call.outputs(module, x)

    check_numbers(probe, call, x)
    check_examples(probe, invoke, x)
    found = check_causality(probe, invoke, width.size)
    output_size = invoke(probe.module, x[:1]).shape[-1] if call.prefixes else call.output_of(returned).shape[-1]
    return Plan(call, width.size, output_size, tuple(_words(probe, width, call, found)), found)


def _placed(probe: Probe, call: Call, returned: Any) -> Call:
    """Return the call with the place of its output; of a module that answers once, by prefixes if no cell is inside."""
    try:
        return placed_output(probe, call, returned)
    except UserError:
        parts = probe.module.named_modules()
        cell = any("cell" in name.lower() or isinstance(part, nn.RNNBase | nn.RNNCellBase) for name, part in parts)
        once = isinstance(returned, Tensor) and returned.dim() == 2 and returned.shape[0] == probe.batch
        if cell or not once or call.order not in ("BTD", "TBD"):
            raise
        return replace(call, prefixes=True)


def _words(probe: Probe, width: Width, call: Call, found: Causality) -> Iterator[str]:
    advice = probe.advice
    if advice.kind is None:
        yield "it is a block over whole sequences without a state"
    if advice.input_size is None:
        yield f"it reads {width.size} numbers per step, as {width.why}"
    if advice.layout is None:
        yield f"it reads sequences as {ORDER_WORDS[call.order or 'BTD']}"
    if advice.output is None and call.output is not None:
        yield f"of what it returns, part {call.output!r} is the output"
    if call.prefixes:
        yield "it answers once: its output at a step is its answer to the inputs until then"
    if not found.causal:
        yield f"it is not causal: {found.reason}"
    elif found.remembers:
        yield f"it is causal: no change of later inputs changed an output in {found.steps} steps"
    else:
        yield f"every output depends on its own step only: nothing else changed one in {found.steps} steps"
