"""One function of a sequence: however it is cut, stepped or batched, the numbers are the same."""

from __future__ import annotations

import torch
from torch.utils._pytree import tree_leaves, tree_map

from mnemoscope.nn.state import index_batch
from mnemoscope.testing.checking import check
from mnemoscope.testing.compare import require, require_close, require_same
from mnemoscope.testing.report import Skipped
from mnemoscope.testing.subject import BATCH, TIME, Subject

__all__ = [
    "check_causal",
    "check_chunked",
    "check_init_state",
    "check_inputs_kept",
    "check_noncontiguous",
    "check_one_by_one",
    "check_repeatable",
    "check_step",
]


@check("return the same numbers whenever the same input comes")
def check_repeatable(subject: Subject) -> None:
    """In evaluation the same input gives the same output and state, whatever was run before it."""
    network = subject.build_deep()
    x, other = subject.inputs(network), subject.inputs(network)
    first = subject.run(network, x)
    subject.run(network, other)
    require_close(
        subject.run(network, x), first, "keep no state in the network between two calls, and no chance in evaluation"
    )


@check("leave the tensors that come in as they are")
def check_inputs_kept(subject: Subject) -> None:
    """The input and hx are not changed in place."""
    network = subject.build_deep()
    x, hx = subject.inputs(network), subject.state(network)
    kept_x, kept_hx = x.clone(), tree_map(torch.clone, hx)
    subject.run(network, x, hx)
    require_same((x, hx), (kept_x, kept_hx), "do not change input or hx in place; work on a copy")


@check("accept a state where it continues a sequence")
def check_chunked(subject: Subject) -> None:
    """A sequence in pieces, the state handed on, gives the output and state of the whole sequence."""
    network = subject.build_deep()
    subject.require_causal(network)
    x = subject.inputs(network)
    whole, last = subject.run(network, x)
    outputs, state = [], None
    for piece in (x[:2], x[2:3], x[3:]):
        y, state = subject.run(network, piece, state)
        outputs.append(y)
    require_close(
        (torch.cat(outputs), state),
        (whole, last),
        "start from the hx that comes in and return the last one, so that a sequence in pieces is the same as whole",
    )


@check("make init_state(batch) return the state before the first input")
def check_init_state(subject: Subject) -> None:
    """`init_state(batch)` has the structure, shapes and types of hx, and is where a sequence without hx starts."""
    network = subject.build_deep()
    subject.require(network, "init_state")
    x = subject.inputs(network)
    y, state = subject.run(network, x)
    start = network.init_state(BATCH)
    like = [(leaf.shape, leaf.dtype) for leaf in tree_leaves(state)]
    came = [(leaf.shape, leaf.dtype) for leaf in tree_leaves(start)]
    require(like == came, f"make init_state({BATCH}) of the shapes and types of the state that forward returns")
    require_close(subject.run(network, x, start), (y, state), "start from init_state when no hx is given")


@check("make step(x_t, state) return (y_t, state) for x_t of shape (batch, input_size)")
def check_step(subject: Subject) -> None:
    """`step` from input to input gives the output and state of `forward`, and keeps nothing in the network."""
    network = subject.build_deep()
    subject.require(network, "step", "init_state")
    subject.require_causal(network)
    x = subject.inputs(network)
    state, outputs = network.init_state(BATCH), []
    for x_t in x:
        network.step(torch.randn_like(x_t), state)  # must leave no trace
        y, state = network.step(x_t, state)
        outputs.append(y)
    require_close(
        (torch.stack(outputs), state), subject.run(network, x), "make step by step the same function as forward"
    )


@check("accept a batch of one example")
def check_one_by_one(subject: Subject) -> None:
    """Each example of a batch gives what it gives alone, with its own state."""
    network = subject.build_deep()
    axis = subject.batch_axis(network)
    x, hx = subject.inputs(network), subject.state(network)
    y, state = subject.run(network, x, hx)
    for i in range(BATCH):
        one = torch.tensor([i])
        alone = subject.run(network, x[:, i : i + 1], index_batch(hx, one, axis))
        require_close(
            (y[:, i : i + 1], index_batch(state, one, axis)), alone, "keep the examples of a batch apart in forward"
        )


@check("accept sequences of several lengths")
def check_causal(subject: Subject) -> None:
    """Later inputs do not change earlier outputs, and earlier inputs change later ones through the state."""
    network = subject.build_deep()
    subject.require_causal(network)
    x = subject.inputs(network)
    later, earlier = x.clone(), x.clone()
    later[3:] += 1
    earlier[:3] += 1
    y, _ = subject.run(network, x)
    require_close(
        subject.run(network, later)[0][:3],
        y[:3],
        "let no output depend on later inputs, or set causal = False on the network",
    )
    changed = not torch.equal(subject.run(network, earlier)[0][3:], y[3:])
    require(changed, "carry what came before in the state: here earlier inputs change no later output")


@check("accept input that is not contiguous in memory")
def check_noncontiguous(subject: Subject) -> None:
    """Input and hx that are not contiguous in memory give what their contiguous copies give."""
    network = subject.build_deep()
    x, hx = subject.inputs(network, time=2 * TIME)[::2], subject.state(network, batch=BATCH)
    strided = tree_map(lambda leaf: torch.stack([leaf, leaf], dim=-1)[..., 0], hx)
    if x.is_contiguous() or any(leaf.is_contiguous() for leaf in tree_leaves(strided) if leaf.numel() > 1):
        raise Skipped("the state is too small to be anything but contiguous")
    alike = "use reshape instead of view, so that strides of input and hx do not matter"
    require_close(subject.run(network, x, strided), subject.run(network, x.contiguous(), hx), alike)
