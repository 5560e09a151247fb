"""Call and state of a cell, or of a recurrent module over whole sequences, found by trial."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice, permutations, product
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from mnemoscope.core.errors import UserError
from mnemoscope.core.memory import require
from mnemoscope.nn.adapt.call import (
    ABSENT,
    STEPS,
    Call,
    Key,
    Signature,
    is_output_name,
    is_state_name,
    parts,
    pick,
    shown,
)
from mnemoscope.nn.adapt.causality import Causality
from mnemoscope.nn.adapt.plan import (
    Plan,
    Unusable,
    check_causality,
    check_examples,
    check_numbers,
    check_state,
    close,
    output_key,
    placed_output,
    writes,
)
from mnemoscope.nn.adapt.probe import CallFailed, Invoke, Probe, call_text
from mnemoscope.nn.adapt.search import Attempt, search, signature_of
from mnemoscope.nn.adapt.sequence import ORDER_WORDS
from mnemoscope.nn.adapt.sizes import Width, hidden_sizes, input_widths, layer_counts, stated_sizes
from mnemoscope.nn.adapt.state import Filled, Layout, Leaf, Made, Start, describe, is_tensors

__all__ = ["plan_stateful", "require_room", "state_is_clear", "takes_state"]

_MAKERS = ["init_state", "init_hidden", "initial_state", "get_initial_state", "zero_state", "initHidden", "init_states"]
_MAKERS += ["allocate_inference_cache", "init_cache", "initialize_state", "get_initial_states", "init_memory"]

_SHAPES = 4
"""Shapes of weights that are tried as the shape of a state."""

_WIDTHS = 4
"""Widths of which the parts of a state may have two."""

_HELD = 8
"""States of a batch that a trial holds at once."""

_MISREAD = (LookupError, AttributeError, TypeError, ValueError, RuntimeError)
"""What reading a return raises when it is not what was hoped for."""


def plan_stateful(probe: Probe, kind: str) -> Plan:
    """Find out how to call a module of the kind ``"cell"`` or ``"recurrent"``."""
    signature = signature_of(probe, kind)
    if not signature.states:
        raise UserError(
            f"{probe.name}.forward takes no state; call {call_text(kind=kind, state_name=...)} "
            f"if one of its arguments is, or {call_text(kind='sequence')}"
        )
    hints = {"init_state": "lambda batch: ..."} if signature.required and probe.advice.init_state is None else {}
    if kind == "recurrent":
        orders: list[str | None] = [order for order in probe.orders if order not in STEPS]
        if probe.advice.layout is None and not isinstance(getattr(probe.module, "batch_first", None), bool):
            orders.append("BDT")
        return search(probe, kind, hints, _attempts(probe, kind, signature, orders))
    told = probe.advice.layout in STEPS
    try:
        return search(probe, kind, hints, _attempts(probe, kind, signature, [probe.advice.layout if told else None]))
    except UserError:
        # A cell may want an axis for its one step.
        with suppress(UserError):
            return search(probe, kind, hints, _attempts(probe, kind, signature, [] if told else list(STEPS)))
        raise


def require_room(probe: Probe) -> None:
    """Raise where there is no room for trying out a state of the width that the module states."""
    stated = stated_sizes(probe.module)
    if not stated or not takes_state(probe):
        return
    needed = _HELD * probe.batch * max(stated) * probe.dtype.itemsize
    try:
        require(f"trying {probe.name} out, with {max(stated):,} numbers in its state,", needed, "fewer would fit")
    except UserError as error:
        raise Unusable(str(error)) from None


def takes_state(probe: Probe) -> bool:
    """Whether an argument of the module's forward could be a state, or the user says that there is one."""
    return _state_told(probe) or bool(probe.signature.states)


def state_is_clear(probe: Probe) -> bool:
    """Whether that is beyond doubt: the argument is called as states are, or is needed, or the user says so."""
    signature = probe.signature
    called = any(is_state_name(name) for names in signature.states for name in names)
    return _state_told(probe) or called or signature.required


def _state_told(probe: Probe) -> bool:
    return any(advice is not None for advice in (probe.advice.init_state, probe.advice.state, probe.advice.state_name))


def _attempts(probe: Probe, kind: str, signature: Signature, orders: list[str | None]) -> Iterator[Attempt]:
    for width in input_widths(probe.module, probe.advice.input_size):
        for names in signature.states:
            answered: set[str | None] = set()
            starts = _starts(probe, kind, signature, len(names))
            for start, order, flags in product(starts, orders, [signature.flags, {}] if signature.flags else [{}]):
                keywords = {**signature.keywords, **flags}
                call = Call(signature.input_name, names, order=order, keywords=keywords, method=probe.advice.method)
                # A module that starts by itself must be understood so; zeros of ours could be another start.
                if not (answered and isinstance(start, Filled)):
                    yield width, partial(_attempt, probe, kind, width, call, start, answered)


def _starts(probe: Probe, kind: str, signature: Signature, arguments: int) -> Iterator[Any]:
    """Yield what could stand for the state before the first input, likeliest first."""
    if probe.advice.init_state is not None:
        yield Made(probe.advice.init_state)
        return
    if not signature.required:
        yield ABSENT
    yield from _made(probe)
    if signature.required:
        yield None
    for n in hidden_sizes(probe.module):
        shapes = [(1, n)] if kind == "cell" else [*((layers, 1, n) for layers in layer_counts(probe.module)), (1, n)]
        for shape in shapes:
            leaf = Leaf(shape, len(shape) - 2, probe.dtype)
            yield from (Filled(leaf), Filled((leaf, leaf))) if arguments < 2 else (Filled((leaf,) * arguments),)
    if kind == "cell":  # parts of two widths, such as a hidden state and a memory
        several = permutations(hidden_sizes(probe.module)[:_WIDTHS], max(arguments, 2))
        yield from (Filled(tuple(Leaf((1, n), 0, probe.dtype) for n in sizes)) for sizes in several)
    if kind == "cell" and arguments < 2:  # a matrix of the shape of a weight, as state spaces have
        shapes_of = dict.fromkeys(tuple(p.shape) for p in probe.module.parameters() if p.dim() == 2)
        yield from (Filled(Leaf((1, *shape), 0, probe.dtype)) for shape in [*shapes_of][:_SHAPES])


def _made(probe: Probe) -> list[Made]:
    return [Made(name) for name in _MAKERS if callable(getattr(probe.module, name, None))]


def _attempt(probe: Probe, kind: str, width: Width, call: Call, start: Any, answered: set[str | None]) -> Plan:
    steps = () if kind == "cell" else (probe.time,)
    x = probe.normal(*steps, probe.batch, width.size)
    given = probe.begin(start)
    if is_tensors(given):
        describe(given, probe.batch)
    try:
        returned = probe.call(call, x, given)
    except CallFailed as error:
        error.state_guessed = isinstance(start, Filled)
        raise
    if not is_tensors(given):
        answered.add(call.order)
    call, continues = (_read_cell if kind == "cell" else _read_recurrent)(probe, call, x, given, returned)
    if isinstance(start, Filled) and _types(state := call.state_of(returned)) != _types(given):
        start = Filled(describe(state, probe.batch))  # a state that becomes complex begins as complex zeros
        given = probe.begin(start)
        returned = probe.call(call, x, given)
    check_numbers(probe, call, x, given)
    begun = start if isinstance(start, Filled | Made) else _own_start(probe, kind, call, x, start, returned)
    call = replace(call, copies=writes(probe, call, x, begun))
    check_state(probe, call, x, begun)
    layout = Layout(describe(probe.begin(begun), probe.batch))
    invoke = _invoke(call, begun)
    check_examples(probe, invoke, x if call.whole else x.unsqueeze(0))
    found = None if continues else _future(probe, invoke, width.size)
    output_size = call.output_of(returned).shape[-1]
    words = tuple(_words(probe, kind, width, call, begun, layout, found))
    # A state before the output is nobody's custom, and may be an output of the same width.
    unusual = call.state == 0 and len(parts(returned)) > 1 and probe.advice.state is None
    return Plan(call, width.size, output_size, words, found, begun, layout, unusual)


def _invoke(call: Call, start: Start) -> Invoke:
    def invoke(module: nn.Module, x: Tensor) -> Tensor:
        state = start(module, x.shape[1], x.device, x.dtype)
        return call(module, x, state)[0] if call.whole else call(module, x[0], state)[0].unsqueeze(0)

    return invoke


def _state_keys(probe: Probe, returned: Any) -> list[Key]:
    """Return where the state could stand, likeliest first: the whole, what is called so, the second, the rest."""
    found: list[Any] = list(parts(returned))
    advice = probe.advice.state
    if advice is not None:
        if any(key not in found for key in (advice if isinstance(advice, tuple) else (advice,))):
            raise UserError(f"state must name a part of what {probe.name} returns, got {advice!r} of {shown(returned)}")
        return [advice]
    several = [tuple(found[1:])] if len(found) > 2 and isinstance(returned, tuple | list) and 0 in found else []
    called = [key for key in found if is_state_name(key) and not is_output_name(key)]
    return list(dict.fromkeys([None, *several, *called, *found[1:2], *found]))


def _read_cell(probe: Probe, call: Call, x: Tensor, given: Any, returned: Any) -> tuple[Call, bool]:
    """Return the call with the places of output and state: a state is what the cell takes back and gives again."""
    raised = ""
    for key in _state_keys(probe, returned):
        state = pick(returned, key)
        if not _is_batch(state, probe.batch) or (is_tensors(given) and not _alike(state, given)):
            continue
        try:
            again = probe.call(call, x, state)
            fits = _alike(pick(again, key), state)
        except CallFailed as error:
            raised = raised or f", which raised {error.reason} when it came back"
            continue
        except _MISREAD:
            continue
        if fits:
            return replace(call, state=key, output=_cell_output(probe, returned, key)), True
    _refuse_lost_batch(probe, returned)
    took = f" for {shown(given)} that it took" if is_tensors(given) and not raised else ""
    raise UserError(
        f"{probe.name} must return a state that it takes back, got {shown(returned)}{took}{raised}; "
        f"call {call_text(kind='cell', output=..., state=..., init_state='lambda batch: ...')}"
    )


def _cell_output(probe: Probe, returned: Any, key: Key) -> Key:
    if key is not None:
        beside = [each for each in parts(returned) if each != key and (not isinstance(key, tuple) or each not in key)]
        # A cell that returns its state and nothing else that could be an output gives its state out.
        if not any(isinstance(pick(returned, each), Tensor) for each in beside) and probe.advice.output is None:
            return output_key(probe, returned, None)
    return output_key(probe, returned, None, key)


def _refuse_lost_batch(probe: Probe, returned: Any) -> None:
    tensors = [leaf for leaf in tree_leaves(returned) if isinstance(leaf, Tensor)]
    if tensors and all(probe.batch not in tensor.shape for tensor in tensors):
        raise UserError(f"{probe.name} must keep the batch, here of {probe.batch}, got {shown(returned)}")


def _read_recurrent(probe: Probe, call: Call, x: Tensor, given: Any, returned: Any) -> tuple[Call, bool]:
    """Return the call with the places of output and state, and whether the module goes on from that state."""
    call = placed_output(probe, call, returned)
    found: dict[str, Call] = {}
    for key in _state_keys(probe, returned):
        candidate = replace(call, state=key)
        if key is not None and key != call.output and _is_batch(pick(returned, key), probe.batch):
            found.setdefault(_chunked(probe, candidate, x, given, returned), candidate)
    if "agrees" in found:
        return found["agrees"], True
    if "differs" in found:
        return found["differs"], False
    if "grows" in found:
        state = shown(found["grows"].state_of(returned))
        raise UserError(
            f"the state of {probe.name} must keep its size, got {state} after {probe.time} steps and another before; "
            f"call {call_text(kind='sequence')}"
        )
    raise UserError(
        f"{probe.name} must return a state of tensors that it takes back, beside its output, got {shown(returned)}; "
        f"call {call_text(kind='sequence')}, or {call_text(kind='recurrent', state=...)}"
    )


def _chunked(probe: Probe, call: Call, x: Tensor, given: Any, returned: Any) -> str:
    """Say how running in chunks, each from the state before it, compares with running at once."""
    state, outputs = given, []
    try:
        for chunk in (x[:1], x[1:2], x[2:]):
            answer = probe.call(call, chunk, state)
            outputs.append(call.output_of(answer))
            state = call.state_of(answer)
            if not _alike(state, call.state_of(returned)):
                return "grows"
    except (CallFailed, *_MISREAD):
        return "refused"
    at_once = call.output_of(returned), call.state_of(returned)
    return "agrees" if close((torch.cat(outputs), state), at_once) else "differs"


def _future(probe: Probe, invoke: Invoke, input_size: int) -> Causality:
    """Return why the module cannot go on from its state: it reads the future. Any other reason is an error."""
    found = check_causality(probe, invoke, input_size)
    if found.causal:
        raise Unusable(
            f"{probe.name} must go on from the state that it returns, got other outputs in chunks than at once; "
            f"call {call_text(kind='recurrent', state=...)}, or {call_text(kind='sequence')}"
        )
    return found


def _own_start(probe: Probe, kind: str, call: Call, x: Tensor, given: Any, returned: Any) -> Start:
    """Find the state that the module makes for itself: zeros, ones, its parameters, or what a method of it gives."""
    wanted = call.output_of(returned), call.state_of(returned)
    zeros = Filled(describe(wanted[1], probe.batch))
    leaves = tree_leaves(zeros.leaves)
    learned = [*probe.module.named_parameters(), *probe.module.named_buffers()]
    options = [["zeros", *(name for name, p in learned if p.numel() == _numel(leaf))] for leaf in leaves]
    fills = [("zeros",) * len(leaves), ("ones",) * len(leaves), *islice(product(*options), 32)]
    starts: list[Start] = [*(zeros.filled(each) for each in fills), *_made(probe)]
    for start in starts:
        try:
            answer = probe.call(call, x, probe.begin(start))
            if close((call.output_of(answer), call.state_of(answer)), wanted):
                return start
        except (CallFailed, UserError, *_MISREAD):  # no start of this module's
            continue
    raise Unusable(
        f"cannot tell the state that {probe.name} starts from: it is neither zeros nor ones nor one of its parameters; "
        f"call {call_text(kind=kind, init_state='lambda batch: ...')}"
    )


def _numel(leaf: Leaf) -> int:
    return torch.Size(leaf.shape).numel()


def _is_batch(state: Any, batch: int) -> bool:
    return is_tensors(state) and all(tuple(t.shape).count(batch) == 1 for t in tree_leaves(state))


def _alike(state: Any, like: Any) -> bool:
    return is_tensors(state) and [t.shape for t in tree_leaves(state)] == [t.shape for t in tree_leaves(like)]


def _types(state: Any) -> list[torch.dtype]:
    return [tensor.dtype for tensor in tree_leaves(state)]


def _words(
    probe: Probe, kind: str, width: Width, call: Call, start: Start, layout: Layout, found: Causality | None
) -> Iterator[str]:
    advice = probe.advice
    if advice.kind is None:
        yield "it is a cell that reads one step" if kind == "cell" else "it is recurrent over whole sequences"
    if advice.input_size is None:
        yield f"it reads {width.size} numbers per step, as {width.why}"
    if call.order and len(probe.orders) > 1:
        yield f"it reads sequences as {ORDER_WORDS[call.order]}"
    if advice.state_name is None and call.state_names:
        yield f"its state goes in as {' and '.join(call.state_names)}"
    if advice.output is None or advice.state is None:
        yield _places(call)
    if advice.init_state is None:
        yield f"its state {layout} starts as {start}"
    if found is not None:
        yield f"it is not causal: {found.reason}"


def _places(call: Call) -> str:
    if call.state is None:
        return "it returns its state" + ("" if call.output is None else f", whose part {call.output!r} is the output")
    if call.output == call.state:
        return f"part {call.state!r} of what it returns is both output and state"
    return f"of what it returns, part {call.output!r} is the output and part {call.state!r} the state"
