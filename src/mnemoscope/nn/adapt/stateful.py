"""Finding out how a cell, or a recurrent module over whole sequences, is called and where its state is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice, product
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from mnemoscope.core.errors import UserError
from mnemoscope.nn.adapt.call import ABSENT, Call, Key, Signature, is_output_name, is_state_name, parts, pick, shown
from mnemoscope.nn.adapt.causality import Causality
from mnemoscope.nn.adapt.plan import (
    Plan,
    Understood,
    check_causality,
    check_examples,
    check_numbers,
    check_state,
    close,
    output_key,
)
from mnemoscope.nn.adapt.probe import CallFailed, Invoke, Lab, spell
from mnemoscope.nn.adapt.search import Attempt, search, signature_of
from mnemoscope.nn.adapt.sequence import ORDER_WORDS
from mnemoscope.nn.adapt.sizes import Width, hidden_sizes, input_widths, layer_counts
from mnemoscope.nn.adapt.state import Filled, Layout, Leaf, Made, Start, describe, is_tensors

__all__ = ["plan_stateful", "state_is_clear", "takes_state"]

_MAKERS = ["init_state", "init_hidden", "initial_state", "get_initial_state", "zero_state", "initHidden"]

_MISREAD = (LookupError, AttributeError, TypeError, ValueError, RuntimeError)
"""What reading a return raises when it is not what was hoped for."""


def plan_stateful(lab: Lab, kind: str) -> Plan:
    """Find out how to call a module of the kind ``"cell"`` or ``"recurrent"``."""
    signature = signature_of(lab, kind)
    if not signature.states:
        raise UserError(
            f"{lab.name}.forward takes no state; call {spell(kind=kind, state_name=...)} if one of its arguments is, "
            f"or {spell(kind='sequence')}"
        )
    hints = {"init_state": "lambda batch: ..."} if signature.required and lab.told.init_state is None else {}
    return search(lab, kind, hints, _attempts(lab, kind, signature))


def takes_state(lab: Lab) -> bool:
    """Whether an argument of the module's forward could be a state, or the user says that there is one."""
    return _state_told(lab) or bool(Signature.of(lab.module, lab.told.state_name, lab.told.keywords).states)


def state_is_clear(lab: Lab) -> bool:
    """Whether that is beyond doubt: the argument is called as states are, or is needed, or the user says so."""
    signature = Signature.of(lab.module, lab.told.state_name, lab.told.keywords)
    called = any(is_state_name(name) for names in signature.states for name in names)
    return _state_told(lab) or called or signature.required


def _state_told(lab: Lab) -> bool:
    return any(told is not None for told in (lab.told.init_state, lab.told.state, lab.told.state_name))


def _attempts(lab: Lab, kind: str, signature: Signature) -> Iterator[Attempt]:
    orders = [None] if kind == "cell" else lab.orders
    for width in input_widths(lab.module, lab.told.input_size):
        for names in signature.states:
            answered: set[str | None] = set()
            for start, order in product(_starts(lab, kind, signature, len(names)), orders):
                call = Call(signature.input_name, names, order=order, keywords=lab.told.keywords)
                # A module that starts by itself must be understood so; zeros of ours could be another start.
                if not (answered and isinstance(start, Filled)):
                    yield width, partial(_attempt, lab, kind, width, call, start, answered)


def _starts(lab: Lab, kind: str, signature: Signature, arguments: int) -> Iterator[Any]:
    """Yield what could stand for the state before the first input, likeliest first."""
    if lab.told.init_state is not None:
        yield Made(lab.told.init_state)
        return
    if not signature.required:
        yield ABSENT
    yield from _made(lab)
    if signature.required:
        yield None
    for n in hidden_sizes(lab.module):
        shapes = [(1, n)] if kind == "cell" else [*((layers, 1, n) for layers in layer_counts(lab.module)), (1, n)]
        for shape in shapes:
            leaf = Leaf(shape, len(shape) - 2, lab.dtype)
            yield from (Filled(leaf), Filled((leaf, leaf))) if arguments < 2 else (Filled((leaf,) * arguments),)


def _made(lab: Lab) -> list[Made]:
    return [Made(name) for name in _MAKERS if callable(getattr(lab.module, name, None))]


def _attempt(lab: Lab, kind: str, width: Width, call: Call, start: Any, answered: set[str | None]) -> Plan:
    steps = () if kind == "cell" else (lab.time,)
    x = lab.normal(*steps, lab.batch, width.size)
    given = lab.begin(start)
    if is_tensors(given):
        describe(given, lab.batch)
    try:
        returned = lab.call(call, x, given)
    except CallFailed as error:
        error.state_guessed = isinstance(start, Filled)
        raise
    if not is_tensors(given):
        answered.add(call.order)
    call, continues = (_read_cell if kind == "cell" else _read_recurrent)(lab, call, x, given, returned)
    check_numbers(lab, call, x, given)
    begun = start if isinstance(start, Filled | Made) else _own_start(lab, kind, call, x, start, returned)
    check_state(lab, call, x, begun)
    layout = Layout(describe(lab.begin(begun), lab.batch))
    invoke = _invoke(call, begun)
    check_examples(lab, invoke, x if call.order else x.unsqueeze(0))
    found = None if continues else _future(lab, invoke, width.size)
    output_size = call.output_of(returned).shape[-1]
    words = tuple(_words(lab, kind, width, call, begun, layout, found))
    # A state before the output is nobody's custom, and may be an output of the same width.
    unusual = call.state == 0 and len(parts(returned)) > 1 and lab.told.state is None
    return Plan(call, width.size, output_size, words, found, begun, layout, unusual)


def _invoke(call: Call, start: Start) -> Invoke:
    def invoke(module: nn.Module, x: Tensor) -> Tensor:
        state = start(module, x.shape[1], x.device, x.dtype)
        return call(module, x, state)[0] if call.order else call(module, x[0], state)[0].unsqueeze(0)

    return invoke


def _state_keys(lab: Lab, returned: Any) -> list[Key]:
    """Return where the state could stand, likeliest first: the whole, what is called so, the second, the rest."""
    found: list[Any] = list(parts(returned))
    told = lab.told.state
    if told is not None:
        if any(key not in found for key in (told if isinstance(told, tuple) else (told,))):
            raise UserError(f"state must name a part of what {lab.name} returns, got {told!r} of {shown(returned)}")
        return [told]
    several = [tuple(found[1:])] if len(found) > 2 and isinstance(returned, tuple | list) and 0 in found else []
    called = [key for key in found if is_state_name(key) and not is_output_name(key)]
    return list(dict.fromkeys([None, *several, *called, *found[1:2], *found]))


def _read_cell(lab: Lab, call: Call, x: Tensor, given: Any, returned: Any) -> tuple[Call, bool]:
    """Return the call with the places of output and state: a state is what the cell takes back and gives again."""
    for key in _state_keys(lab, returned):
        state = pick(returned, key)
        if not _is_batch(state, lab.batch) or (is_tensors(given) and not _alike(state, given)):
            continue
        try:
            again = lab.call(call, x, state)
            fits = _alike(pick(again, key), state)
        except (CallFailed, *_MISREAD):
            continue
        if fits:
            return replace(call, state=key, output=_cell_output(lab, returned, key)), True
    _refuse_lost_batch(lab, returned)
    raise UserError(
        f"{lab.name} must return a state that it takes back, got {shown(returned)}; "
        f"call {spell(kind='cell', output=..., state=..., init_state='lambda batch: ...')}"
    )


def _cell_output(lab: Lab, returned: Any, key: Key) -> Key:
    if key is not None:
        beside = [each for each in parts(returned) if each != key and (not isinstance(key, tuple) or each not in key)]
        # A cell that returns its state and nothing else that could be an output gives its state out.
        if not any(isinstance(pick(returned, each), Tensor) for each in beside) and lab.told.output is None:
            return output_key(lab, returned, None)
    return output_key(lab, returned, None, key)


def _refuse_lost_batch(lab: Lab, returned: Any) -> None:
    tensors = [leaf for leaf in tree_leaves(returned) if isinstance(leaf, Tensor)]
    if tensors and all(lab.batch not in tensor.shape for tensor in tensors):
        raise UserError(f"{lab.name} must keep the batch, here of {lab.batch}, got {shown(returned)}")


def _read_recurrent(lab: Lab, call: Call, x: Tensor, given: Any, returned: Any) -> tuple[Call, bool]:
    """Return the call with the places of output and state, and whether the module goes on from that state."""
    call = replace(call, output=output_key(lab, returned, call.order))
    found: dict[str, Call] = {}
    for key in _state_keys(lab, returned):
        candidate = replace(call, state=key)
        if key is not None and key != call.output and _is_batch(pick(returned, key), lab.batch):
            found.setdefault(_chunked(lab, candidate, x, given, returned), candidate)
    if "agrees" in found:
        return found["agrees"], True
    if "differs" in found:
        return found["differs"], False
    if "grows" in found:
        state = shown(found["grows"].state_of(returned))
        raise UserError(
            f"the state of {lab.name} must keep its size, got {state} after {lab.time} steps and another before; "
            f"call {spell(kind='sequence')}"
        )
    raise UserError(
        f"{lab.name} must return a state of tensors that it takes back, beside its output, got {shown(returned)}; "
        f"call {spell(kind='sequence')}, or {spell(kind='recurrent', state=...)}"
    )


def _chunked(lab: Lab, call: Call, x: Tensor, given: Any, returned: Any) -> str:
    """Say how running in chunks, each from the state before it, compares with running at once."""
    state, outputs = given, []
    try:
        for chunk in (x[:1], x[1:2], x[2:]):
            answer = lab.call(call, chunk, state)
            outputs.append(call.output_of(answer))
            state = call.state_of(answer)
            if not _alike(state, call.state_of(returned)):
                return "grows"
    except (CallFailed, *_MISREAD):
        return "refused"
    at_once = call.output_of(returned), call.state_of(returned)
    return "agrees" if close((torch.cat(outputs), state), at_once) else "differs"


def _future(lab: Lab, invoke: Invoke, input_size: int) -> Causality:
    """Return why the module cannot go on from its state: it reads the future. Any other reason is an error."""
    found = check_causality(lab, invoke, input_size)
    if found.causal:
        raise Understood(
            f"{lab.name} must go on from the state that it returns, got other outputs in chunks than at once; "
            f"call {spell(kind='recurrent', state=...)}, or {spell(kind='sequence')}"
        )
    return found


def _own_start(lab: Lab, kind: str, call: Call, x: Tensor, given: Any, returned: Any) -> Start:
    """Find the state that the module makes for itself: zeros, ones, its parameters, or what a method of it gives."""
    wanted = call.output_of(returned), call.state_of(returned)
    zeros = Filled(describe(wanted[1], lab.batch))
    leaves = tree_leaves(zeros.leaves)
    learned = [*lab.module.named_parameters(), *lab.module.named_buffers()]
    options = [["zeros", *(name for name, p in learned if p.numel() == _numel(leaf))] for leaf in leaves]
    fills = [("zeros",) * len(leaves), ("ones",) * len(leaves), *islice(product(*options), 32)]
    starts: list[Start] = [*(zeros.filled(each) for each in fills), *_made(lab)]
    for start in starts:
        try:
            answer = lab.call(call, x, lab.begin(start))
            if close((call.output_of(answer), call.state_of(answer)), wanted):
                return start
        except Exception:
            continue
    raise Understood(
        f"cannot tell the state that {lab.name} starts from: it is neither zeros nor ones nor one of its parameters; "
        f"call {spell(kind=kind, init_state='lambda batch: ...')}"
    )


def _numel(leaf: Leaf) -> int:
    return torch.Size(leaf.shape).numel()


def _is_batch(state: Any, batch: int) -> bool:
    return is_tensors(state) and all(tuple(t.shape).count(batch) == 1 for t in tree_leaves(state))


def _alike(state: Any, like: Any) -> bool:
    return is_tensors(state) and [t.shape for t in tree_leaves(state)] == [t.shape for t in tree_leaves(like)]


def _words(
    lab: Lab, kind: str, width: Width, call: Call, start: Start, layout: Layout, found: Causality | None
) -> Iterator[str]:
    told = lab.told
    if told.kind is None:
        yield "it is a cell that reads one step" if kind == "cell" else "it is recurrent over whole sequences"
    if told.input_size is None:
        yield f"it reads {width.size} numbers per step, as {width.why}"
    if call.order and len(lab.orders) > 1:
        yield f"it reads sequences as {ORDER_WORDS[call.order]}"
    if told.state_name is None and call.state_names:
        yield f"its state goes in as {' and '.join(call.state_names)}"
    if told.output is None or told.state is None:
        yield _places(call)
    if told.init_state is None:
        yield f"its state {layout} starts as {start}"
    if found is not None:
        yield f"it is not causal: {found.reason}"


def _places(call: Call) -> str:
    if call.state is None:
        return "it returns its state" + ("" if call.output is None else f", whose part {call.output!r} is the output")
    if call.output == call.state:
        return f"part {call.state!r} of what it returns is both output and state"
    return f"of what it returns, part {call.output!r} is the output and part {call.state!r} the state"
