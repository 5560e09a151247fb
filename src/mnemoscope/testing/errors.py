"""Bad input: one line that says what was expected and what came."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from torch.utils._pytree import tree_map

from mnemoscope.testing.checking import check
from mnemoscope.testing.compare import require, require_refusal
from mnemoscope.testing.report import CheckFailed, Skipped
from mnemoscope.testing.subject import BATCH, TIME, Subject

__all__ = [
    "check_input_dimensions",
    "check_input_type",
    "check_input_width",
    "check_malformed_packed",
    "check_size_errors",
    "check_state_shape",
    "check_state_structure",
    "check_unknown_option",
]

NOT_SIZES = (0, -3, 2.5, math.nan, "8", True)


@check("refuse input of the wrong width")
def check_input_width(subject: Subject) -> None:
    """Input of the wrong width, packed or not, is refused in one line with both widths."""
    network = subject.build()
    subject.require_vectors(network)
    width = subject.width(network)
    for wrong in (width + 4, 1 if width > 1 else 2):
        x = subject.inputs(network, width=wrong)
        what = f"input of width {wrong}"
        require_refusal(partial(subject.run, network, x), what, width, wrong)
        packed = pack_padded_sequence(x, torch.tensor([TIME, 2, 1]))
        require_refusal(partial(subject.run, network, packed), f"packed {what}", width, wrong)


@check("refuse input that is not floating point")
def check_input_type(subject: Subject) -> None:
    """Integer input, and input that is no tensor, is refused in one line."""
    network = subject.build()
    x = torch.ones(TIME, BATCH, *subject.shape(network), dtype=torch.int64)
    require_refusal(lambda: subject.run(network, x), "integer input", "int64")
    require_refusal(lambda: network(x.tolist()), "a list as input", "list")


@check("refuse input that has neither two nor three axes")
def check_input_dimensions(subject: Subject) -> None:
    """Input that has neither two nor three axes is refused in one line with its shape."""
    network = subject.build()
    for shape in (subject.shape(network), (2, TIME, BATCH, *subject.shape(network))):
        x = torch.randn(shape)
        require_refusal(partial(network, x), f"input of shape {shape}", shape)


@check("refuse a state of the wrong shape")
def check_state_shape(subject: Subject) -> None:
    """A state of another batch or another width is refused in one line, also by unbatched input."""
    network = subject.build()
    axis = subject.batch_axis(network)
    x, hx = subject.inputs(network), subject.state(network)
    for what, wrong in (
        ("hx of another batch", subject.state(network, batch=BATCH + 4)),
        ("hx of a batch of one for a larger batch", subject.state(network, batch=1)),
        ("hx of another width", tree_map(lambda leaf: torch.cat([leaf, leaf], dim=-1), hx)),
        ("hx with one axis more", tree_map(lambda leaf: leaf.unsqueeze(0), hx)),
    ):
        require_refusal(partial(subject.run, network, x, wrong), what, "hx")
    batched = tree_map(lambda leaf: leaf.narrow(axis, 0, 2), hx)
    require_refusal(lambda: subject.run(network, x[:, 0], batched), "batched hx with unbatched input", "hx")


@check("refuse a state of the wrong structure")
def check_state_structure(subject: Subject) -> None:
    """A state of another structure, of integers, or that holds no tensors, is refused in one line."""
    network = subject.build()
    x, hx = subject.inputs(network), subject.state(network)
    for what, wrong in (
        ("a tuple of two states as hx", (hx, hx)),
        ("a list around hx", [hx]),
        ("integers as hx", tree_map(lambda leaf: torch.zeros(leaf.shape, dtype=torch.int32), hx)),
        ("words as hx", "zeros"),
        ("lists of numbers as hx", tree_map(lambda leaf: leaf.tolist(), hx)),
    ):
        require_refusal(partial(subject.run, network, x, wrong), what, "hx")


@check("refuse a PackedSequence that contradicts itself")
def check_malformed_packed(subject: Subject) -> None:
    """A PackedSequence whose batch_sizes grow, or do not fit its data, is refused in one line."""
    network = subject.build()
    data = torch.randn(6, *subject.shape(network))
    for what, sizes in (("batch_sizes that grow", [1, 2, 3]), ("more batch_sizes than data", [4, 3])):
        packed = PackedSequence(data, torch.tensor(sizes))
        require_refusal(
            partial(subject.run, network, packed),
            f"a PackedSequence with {what}",
            kinds=(ValueError, RuntimeError),
        )


@check("refuse sizes that are not positive integers")
def check_size_errors(subject: Subject) -> None:
    """Sizes that are not positive integers (0, -3, 2.5, nan, "8", True) are refused in one line with name and value."""
    subject.require_sizes()
    names = ["input_size", "hidden_size", *(["num_layers"] if subject.has("num_layers") else [])]
    for name in names:
        for value in NOT_SIZES:
            arguments: dict[str, Any] = {"input_size": subject.input_size, "hidden_size": subject.hidden_size} | {
                name: value
            }
            require_refusal(partial(subject.call, **arguments), f"{name}={value!r}", name, value)


@check("refuse an option that the network does not have")
def check_unknown_option(subject: Subject) -> None:
    """An option that does not exist is refused in one line with the nearest that does."""
    subject.require_sizes()
    known = next((name for name in ("bidirectional", "num_layers", "batch_first") if subject.has(name)), None)
    typo = known[:-1] if known else "unknown_option"
    arguments: dict[str, Any] = {"input_size": subject.input_size, "hidden_size": subject.hidden_size, typo: 1}
    try:
        subject.call(**arguments)
    except TypeError as error:
        require(typo in str(error), f"name the option {typo!r} in the error about it")
        raise Skipped("Python's own TypeError refuses it; a ValueError with the nearest option is kinder") from error
    except Exception:
        words = (typo, known) if known else (typo,)
        require_refusal(partial(subject.call, **arguments), f"the option {typo!r}", *words)
    else:
        raise CheckFailed(f"refuse options that do not exist: {typo!r} is accepted in silence")
