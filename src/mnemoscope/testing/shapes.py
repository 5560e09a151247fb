"""Calling forms: what shape goes in, and what comes out."""

from __future__ import annotations

import math

from torch.utils._pytree import tree_leaves

from mnemoscope.nn.state import insert_batch, remove_batch
from mnemoscope.testing.checking import check
from mnemoscope.testing.compare import require, require_close
from mnemoscope.testing.report import Skipped
from mnemoscope.testing.subject import BATCH, TIME, Network, Subject

__all__ = [
    "check_batch_first",
    "check_batched",
    "check_bidirectional",
    "check_layers",
    "check_output_size",
    "check_small_shapes",
    "check_small_sizes",
    "check_unbatched",
]


@check("accept input of shape (time, batch, input_size), with hx and without it")
def check_batched(subject: Subject) -> None:
    """Batched input gives output (time, batch, features) and a state of one shape that goes in again as hx."""
    network = subject.build()
    _run_twice(subject, network, TIME, BATCH)
    axis = subject.batch_axis(network)
    stated = getattr(network, "batch_axis", axis)
    require(stated == axis, f"set batch_axis = {axis}, where the batch stands in hx, instead of {stated}")


@check("give the network the attributes input_size and output_size")
def check_output_size(subject: Subject) -> None:
    """The attributes `input_size` and `output_size` are the widths of input and output, in one direction and in two."""
    networks = [subject.build()]
    if subject.has("bidirectional"):
        networks.append(subject.build(bidirectional=True))
    for network in networks:
        y, _ = subject.run(network, subject.inputs(network))
        for name, width in (("input_size", subject.width(network)), ("output_size", math.prod(y.shape[2:]))):
            require(hasattr(network, name), f"give the network an attribute {name}, here {width}")
            stated = getattr(network, name)
            require(stated == width, f"set {name} to the width that it is, {width}, instead of {stated!r}")


@check("accept unbatched input of shape (time, input_size), with a state that has no batch axis")
def check_unbatched(subject: Subject) -> None:
    """Unbatched input (time, input_size) gives what a batch of one gives, without the batch axis, also with hx."""
    network = subject.build_deep()
    axis = subject.batch_axis(network)
    x = subject.inputs(network, batch=1)
    alike = "make output and state of unbatched input those of a batch of one, without the batch axis"
    for hx in (None, subject.state(network, batch=1)):
        y, state = subject.run(network, x, hx)
        flat = None if hx is None else remove_batch(hx, axis)
        unbatched, last = subject.run(network, x.squeeze(1), flat)
        require(unbatched.dim() == y.dim() - 1, f"{alike}; the output has shape {tuple(unbatched.shape)}")
        require_close((unbatched.unsqueeze(1), insert_batch(last, axis)), (y, state), alike)


@check("make batch_first=True exchange the first two axes of batched input and output, and nothing else")
def check_batch_first(subject: Subject) -> None:
    """`batch_first=True` turns batched input and output around, and neither the state nor unbatched input."""
    turned, plain = subject.build(batch_first=True), subject.build(batch_first=False)
    turned.load_state_dict(plain.state_dict())
    require(
        getattr(turned, "batch_first", False) is True,
        "keep batch_first as an attribute, so that a caller can see the order of the axes",
    )
    x = subject.inputs(plain)
    y, state = plain(x)
    output, last = turned(x.transpose(0, 1))
    alike = "make batch_first=True exchange the first two axes of input and output, and nothing else"
    require_close((output, last), (y.transpose(0, 1), state), alike)
    require_close(turned(x[:, 0])[0], plain(x[:, 0])[0], "ignore batch_first when the input is unbatched")


@check("accept num_layers from 1 to 3")
def check_layers(subject: Subject) -> None:
    """One to three layers run, and in torch's layout the state has one row per layer."""
    for layers in (1, 2, 3):
        network = subject.build(num_layers=layers)
        _run_twice(subject, network, TIME, BATCH)
        _require_rows(subject, network, layers)


@check("accept bidirectional=True in every calling form")
def check_bidirectional(subject: Subject) -> None:
    """`bidirectional=True` doubles the width of the output, unless directions are merged, and the rows of the state."""
    single, double = subject.build(), subject.build(bidirectional=True)
    x = subject.inputs(single)
    width = subject.run(single, x)[0].shape[-1]
    came = subject.run(double, x)[0].shape[-1]
    wanted = width if getattr(double, "merges_directions", False) else 2 * width
    require(came == wanted, f"concatenate both directions to an output of width {wanted}, not {came}")
    if subject.has("num_layers"):
        double = subject.build(bidirectional=True, num_layers=2)
        _run_twice(subject, double, TIME, BATCH)
        _require_rows(subject, double, 4)


@check("accept sequences of one step and batches of one and of none")
def check_small_shapes(subject: Subject) -> None:
    """One step, a batch of one and an empty batch run, and an empty batch has gradients."""
    network = subject.build_deep()
    _run_twice(subject, network, 1, BATCH)
    _run_twice(subject, network, TIME, 1)
    _run_twice(subject, network, TIME, 0)
    x = subject.inputs(network, batch=0).requires_grad_()
    subject.run(network, x)[0].sum().backward()
    require(x.grad is not None and x.grad.shape == x.shape, "let gradients of an empty batch flow back to the input")


@check("accept hidden_size=1, odd sizes and input_size=1")
def check_small_sizes(subject: Subject) -> None:
    """`hidden_size` 1 and 5 and `input_size` 1 run forward and backward, or are refused in one line."""
    subject.require_vectors(subject.build())
    for input_size, hidden_size in ((1, 1), (3, 1), (3, 5), (1, 4)):
        try:
            network = subject.build(input_size=input_size, hidden_size=hidden_size)
        except ValueError as error:
            require("\n" not in str(error), f"refuse hidden_size={hidden_size} in one line")
            raise Skipped(str(error)) from error
        y, _ = subject.run(network, subject.inputs(network, width=input_size))
        require(y.shape[:2] == (TIME, BATCH), f"return (time, batch, features) for hidden_size={hidden_size}")
        y.sum().backward()
        require(bool(y.isfinite().all()), f"keep the output finite for hidden_size={hidden_size}")


def _run_twice(subject: Subject, network: Network, time: int, batch: int) -> None:
    """Run without a state and with the one that comes out, and compare all shapes."""
    x = subject.inputs(network, time=time, batch=batch)
    y, state = subject.run(network, x)
    again, last = subject.run(network, x, state)
    stated = getattr(network, "output_shape", ())
    features = stated if len(stated) > 1 else y.shape[-1:]
    wanted = f"({time}, {batch}, {', '.join(map(str, stated)) if len(stated) > 1 else 'features'})"
    for output in (y, again):
        right = output.shape == (time, batch, *features)
        require(right, f"return output of shape {wanted}, not {tuple(output.shape)}")
        require(output.dtype == x.dtype, f"return output of the input's type, {x.dtype}, not {output.dtype}")
    require(_shapes(state) == _shapes(last), "return hx with the shapes that it has when it comes in")


def _shapes(state: object) -> list[tuple[int, ...]]:
    return [tuple(leaf.shape) for leaf in tree_leaves(state)]


def _require_rows(subject: Subject, network: Network, rows: int) -> None:
    if subject.batch_axis(network) != 1:
        return
    for shape in _shapes(subject.state(network)):
        require(shape[0] == rows, f"return hx of shape (layers * directions, batch, n), here {rows} rows, not {shape}")
