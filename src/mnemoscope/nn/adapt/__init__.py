"""`adapt`: somebody's module as a network of Mnemoscope."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from torch import nn
from torch.nn.parameter import is_lazy

from mnemoscope.core.errors import Description, UserError, choice, expected, positive_int
from mnemoscope.nn.adapt.adapted import AdaptedCell, AdaptedRecurrent, AdaptedSequence
from mnemoscope.nn.adapt.call import ORDERS, STEPS, Key, arguments_of
from mnemoscope.nn.adapt.filling import fillings
from mnemoscope.nn.adapt.methods import by_method
from mnemoscope.nn.adapt.plan import Plan, Unusable
from mnemoscope.nn.adapt.probe import Advice, Probe, call_text, undisturbed
from mnemoscope.nn.adapt.reading import reading
from mnemoscope.nn.adapt.search import Raised
from mnemoscope.nn.adapt.sequence import plan_sequence
from mnemoscope.nn.adapt.stateful import plan_stateful, require_room, state_is_clear, takes_state
from mnemoscope.nn.network import Network
from mnemoscope.nn.registry import card

__all__ = ["adapt"]

_CLASSES = {"cell": AdaptedCell, "recurrent": AdaptedRecurrent, "sequence": AdaptedSequence}


def adapt(
    module: nn.Module,
    kind: str | None = None,
    *,
    input_size: int | None = None,
    batch_first: bool | None = None,
    layout: str | None = None,
    init_state: Callable[..., Any] | str | None = None,
    state_name: str | tuple[str, ...] | None = None,
    output: int | str | None = None,
    state: Key = None,
    length: int | None = None,
    keywords: Mapping[str, Any] | None = None,
    method: str | None = None,
) -> Any:
    """Wrap a module that does not keep torch.nn.RNN's contract into a network that does.

    Whatever is not said is guessed: from the attributes of the module, from the arguments of its forward, and from
    a few small calls of a copy. The guesses stand in the attribute `guesses` of the network and in its repr. Where
    a guess is not possible, the error tells the call that would work.

    Parameters
    ----------
    module
        A cell, a recurrent module over whole sequences, or a block without a state. A network of Mnemoscope is
        returned as it is.
    kind
        ``"cell"``: ``(x, state) -> state`` or ``(output, state)``, one step at a time. ``"recurrent"``: whole
        sequences and a state, in and out. ``"sequence"``: whole sequences and no state.
    input_size
        Numbers per step of the input.
    batch_first
        Whether the network reads (batch, time, features); by default (time, batch, features). In which order the
        module reads them is found out.
    layout
        The axes that the module reads, b, t and h for batch, time and features: ``"bht"`` as torch.nn.Conv1d does;
        ``"1bh"`` or ``"b1h"`` of a cell that wants an axis for its one step.
    init_state
        Called with the batch size; returns the module's own state before the first input. Or the name of a method of
        the module that does so.
    state_name
        The argument of forward that takes the state; several take its parts.
    output, state
        Where they stand in what the module returns: an index, a name, or several indices.
    length
        A number of steps to try a module with that does not take every length.
    keywords
        Further arguments of the module's forward, given at every call.
    method
        The method that is called instead of forward.

    Returns
    -------
    AdaptedCell, AdaptedRecurrent or AdaptedSequence
        With the module as `.module`.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> network = ms.adapt(torch.nn.GRUCell(3, 4))
    >>> output, hx = network(torch.zeros(7, 2, 3))
    >>> output.shape, hx.shape
    (torch.Size([7, 2, 4]), torch.Size([1, 2, 4]))
    >>> print(network.guesses[0])
    it is a cell that reads one step
    """
    _check_module(module)
    kind = None if kind is None else choice("kind", kind, _CLASSES)
    if isinstance(module, Network) or card(type(module)) is not None:
        return _as_it_is(module, kind)
    advice = Advice(
        kind=kind,
        input_size=None if input_size is None else positive_int("input_size", input_size),
        batch_first=_flag("batch_first", batch_first),
        layout=_layout(layout),
        method=_method(module, "method", method),
        init_state=_maker(module, init_state),
        state_name=_names(module, state_name, method),
        output=output,
        state=state,
        length=_length(length),
        keywords=_keywords(keywords),
    )
    with undisturbed(module):
        probe = Probe(module, advice)
        require_room(probe)
        found, plan, filled = _filled(probe)
        plan = replace(plan, length=advice.length)
        network = _CLASSES[found](module, plan, bool(batch_first))
        network.reading = "; ".join([reading(network, found, plan), *filled])
    return network


def _filled(probe: Probe) -> tuple[str, Plan, list[str]]:
    """Find the plan; what forward needs besides is filled with usual values, which is said."""
    missing, given = probe.signature.missing, probe.advice
    filled = [*fillings(missing, False), *fillings(missing, True)] if missing else []
    for values in filled:
        probe.advice = replace(given, keywords={**given.keywords, **values})
        with suppress(UserError):
            found, plan = _plan(probe)
            said = ", ".join(f"{name}={value!r}" for name, value in values.items())
            words = f"its forward gets {said} at every call"
            return found, replace(plan, guesses=(*plan.guesses, words)), [words]
    probe.advice = given
    return (*_plan(probe), [])


def _plan(probe: Probe) -> tuple[str, Plan]:
    kind = probe.advice.kind or (None if takes_state(probe) else "sequence")
    if kind is None:
        return _guessed(probe)
    try:
        plan = _plan_as(probe, kind)
        stepped = by_method(probe, plan) if probe.advice.kind is None else None
        return stepped or (kind, plan)
    except UserError as error:
        if probe.advice.kind is None:
            raise
        other = _other_kind(probe)
        if other is None:
            raise
        raise UserError(f"{_reason(error)}; it works with another kind, call {call_text(kind=other)}") from None


def _plan_as(probe: Probe, kind: str) -> Plan:
    return plan_sequence(probe) if kind == "sequence" else plan_stateful(probe, kind)


def _guessed(probe: Probe) -> tuple[str, Plan]:
    refused: list[UserError] = []
    for kind in ("recurrent", "cell"):
        try:
            plan = plan_stateful(probe, kind)
        except UserError as error:
            refused.append(error)
        else:
            return _unmistakable(probe, kind, plan)
    with suppress(UserError):
        plan = plan_sequence(probe)
        # What has a state and remembers nothing without it is no block, but a cell that was not understood.
        if not state_is_clear(probe) or _remembers(plan):
            unread = _reason(refused[0])
            words = f"its state is left alone, since {unread}"
            return "sequence", replace(plan, guesses=(*plan.guesses, words), unread=unread)
    return _turned(probe, _clearest(probe, *refused))


def _turned(probe: Probe, error: UserError) -> tuple[str, Plan]:
    """Read a cell whose state comes first and is called otherwise than states are; else raise the error."""
    needed = [p for p in arguments_of(probe.module, probe.advice.method) if p.default is p.empty]
    if len(needed) == 2 and not probe.advice.state_name and not probe.state_first:
        probe.state_first = True
        with suppress(UserError):
            return "cell", plan_stateful(probe, "cell")
        probe.state_first = False
    raise error


def _unmistakable(probe: Probe, kind: str, plan: Plan) -> tuple[str, Plan]:
    """Refuse a cell that may as well be a block, whose second argument is something else than a state."""
    if kind == "recurrent" or state_is_clear(probe):
        return kind, plan
    try:
        block = plan_sequence(probe)
    except UserError:
        return kind, plan
    if _remembers(block):  # a cell would not: it treats all axes but the last alike
        return "sequence", block
    argument = " and ".join(plan.call.state_names) or "the second argument"
    calls = f"{call_text(kind='cell')} or {call_text(kind='sequence')}"
    raise UserError(f"cannot tell whether {argument} of {probe.name}.forward is a state; call {calls}")


def _remembers(plan: Plan) -> bool:
    return plan.causality is not None and plan.causality.remembers


def _clearest(probe: Probe, recurrent: UserError, cell: UserError) -> UserError:
    """Return the error of the kind that the module seems to be, or both."""
    for error, other in ((recurrent, cell), (cell, recurrent)):
        if isinstance(error, Unusable) or (isinstance(other, Raised) and not isinstance(error, Raised)):
            return error
    if isinstance(cell, Raised) or _reason(cell) == _reason(recurrent):
        return cell
    reasons = "; ".join(f"as {kind}: {_reason(e)}" for kind, e in (("recurrent", recurrent), ("a cell", cell)))
    call = call_text(kind=..., output=..., state=..., init_state="lambda batch: ...")
    return UserError(f"cannot tell how {probe.name} is called; {reasons}; call {call}")


def _reason(error: UserError) -> str:
    return str(error).split("; call")[0]


def _other_kind(probe: Probe) -> str | None:
    """Return the kind as which a module works that does not work as the one that was named."""
    advice = probe.advice
    probe.advice = replace(advice, kind=None)
    try:
        return _plan(probe)[0]
    except UserError:
        return None
    finally:
        probe.advice = advice


def _as_it_is(module: Any, kind: str | None) -> Any:
    own = getattr(module, "kind", None)
    if kind not in (None, own):
        raise UserError(f"{type(module).__name__} is already a network of kind {own!r}, got kind={kind!r}")
    return module


def _check_module(module: Any) -> None:
    if inspect.isclass(module) and issubclass(module, nn.Module):
        needed = inspect.signature(module).parameters.values()
        arguments = ", ".join(p.name for p in needed if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD)
        name = module.__name__
        raise expected("module", "an instance", Description(f"the class {name}; call ms.adapt({name}({arguments}))"))
    if not isinstance(module, nn.Module):
        raise expected("module", "a torch.nn.Module", Description(f"a {type(module).__name__}"))
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_meta:
            made = Description(f"{name!r} on the meta device; call module.to_empty(device='cpu') and load its weights")
            raise expected(f"every parameter of {type(module).__name__}", "a tensor with values", made)
        if is_lazy(tensor):
            made = Description(f"{name!r} without a size; run the module once on an input")
            raise expected(f"every parameter of {type(module).__name__}", "initialised", made)


def _flag(name: str, value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise expected(name, "True, False or None", value)
    return value


def _layout(value: Any) -> str | None:
    """Return an order of axes: of several letters for the features, one."""
    if value is None:
        return None
    found = re.sub("[hfcnx]", "d", value.lower()).upper() if isinstance(value, str) else ""
    if found not in (*ORDERS, *STEPS):
        raise expected("layout", "the letters b, t and h in the order of the axes, such as bht", value)
    return found


def _method(module: nn.Module, what: str, value: Any) -> Any:
    if value is None or callable(getattr(module, value, None) if isinstance(value, str) else None):
        return value
    own = [
        n for n in dir(module) if not n.startswith("_") and not hasattr(nn.Module, n) and callable(getattr(module, n))
    ]
    raise expected(what, f"a method of {type(module).__name__}: {', '.join(own) or 'it has none of its own'}", value)


def _names(module: nn.Module, value: Any, method: str | None) -> tuple[str, ...] | None:
    names = (value,) if isinstance(value, str) else value
    if names is None:
        return None
    if not isinstance(names, tuple | list) or not names or not all(isinstance(name, str) for name in names):
        raise expected("state_name", "the name of an argument, or several", value)
    known = arguments_of(module, method)
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known)
    named = [parameter.name for parameter in known]
    for name in () if open_ended else names:
        if name not in named:
            raise expected("state_name", f"an argument of {type(module).__name__}.forward: {', '.join(named)}", name)
    return tuple(names)


def _keywords(value: Any) -> dict[str, Any]:
    if value is not None and not (isinstance(value, Mapping) and all(isinstance(name, str) for name in value)):
        raise expected("keywords", "names and values", value)
    return dict(value or {})


def _length(value: Any) -> int | None:
    if value is not None and positive_int("length", value) < 3:
        raise expected("length", "at least 3", value)
    return None if value is None else int(value)


def _maker(module: nn.Module, init_state: Any) -> Callable[..., Any] | str | None:
    if isinstance(init_state, str):
        found: str = _method(module, "init_state", init_state)
        return found
    if init_state is None or callable(init_state):
        made: Callable[..., Any] | None = init_state
        return made
    got = f"a {type(init_state).__name__}; call {call_text(init_state='lambda batch: ...')}"
    raise expected("init_state", "a function of the batch size", Description(got))
