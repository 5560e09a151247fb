"""Finding out how a block without a state is called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from torch import Tensor, nn

from mnemoscope.core.errors import UserError
from mnemoscope.nn.adapt.call import Call, Signature
from mnemoscope.nn.adapt.causality import Causality
from mnemoscope.nn.adapt.plan import Plan, check_causality, check_examples, check_numbers, output_key
from mnemoscope.nn.adapt.probe import Lab, spell
from mnemoscope.nn.adapt.search import Attempt, search, signature_of
from mnemoscope.nn.adapt.sizes import Width, input_widths

__all__ = ["ORDER_WORDS", "plan_sequence"]

ORDER_WORDS = {
    "TBD": "(time, batch, features)",
    "BTD": "(batch, time, features)",
    "BDT": "(batch, features, time)",
}


def plan_sequence(lab: Lab) -> Plan:
    """Find out how to call a block ``(batch, time, features) -> (batch, time, features)``."""
    signature = signature_of(lab, "sequence")
    if signature.required:
        calls = f"{spell(kind='cell')} or {spell(kind='recurrent')}"
        raise UserError(f"{lab.name} must take an input alone, got a forward that needs a state; call {calls}")
    return search(lab, "sequence", {}, _attempts(lab, signature))


def _attempts(lab: Lab, signature: Signature) -> Iterator[Attempt]:
    channels = lab.told.channels_first
    orders = ["BDT"] if channels else lab.orders if channels is False else [*lab.orders, "BDT"]
    for width in input_widths(lab.module, lab.told.input_size):
        for order in orders:
            yield width, partial(_attempt, lab, signature, width, order)


def _attempt(lab: Lab, signature: Signature, width: Width, order: str) -> Plan:
    call = Call(signature.input_name, order=order, keywords=lab.told.keywords)
    x = lab.normal(lab.time, lab.batch, width.size)
    returned = lab.call(call, x)
    call = replace(call, output=output_key(lab, returned, order))

    def invoke(module: nn.Module, x: Tensor) -> Tensor:
        return call.output_of(call.returned(module, x))

    check_numbers(lab, call, x)
    check_examples(lab, invoke, x)
    found = check_causality(lab, invoke, width.size)
    output_size = call.output_of(returned).shape[-1]
    return Plan(call, width.size, output_size, tuple(_words(lab, width, call, found)), found)


def _words(lab: Lab, width: Width, call: Call, found: Causality) -> Iterator[str]:
    told = lab.told
    if told.kind is None:
        yield "it is a block over whole sequences without a state"
    if told.input_size is None:
        yield f"it reads {width.size} numbers per step, as {width.why}"
    if not told.channels_first:
        yield f"it reads sequences as {ORDER_WORDS[call.order or 'BTD']}"
    if told.output is None and call.output is not None:
        yield f"of what it returns, part {call.output!r} is the output"
    if not found.causal:
        yield f"it is not causal: {found.reason}"
    elif found.remembers:
        yield f"it is causal: no change of later inputs changed an output in {found.steps} steps"
    else:
        yield f"every output depends on its own step only: nothing else changed one in {found.steps} steps"
