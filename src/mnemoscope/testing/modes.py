"""Forms of one network: recurrent, parallel and chunked ones are the same function."""

from __future__ import annotations

import torch
from torch.utils._pytree import tree_leaves

from mnemoscope.testing.checking import check
from mnemoscope.testing.compare import require, require_close
from mnemoscope.testing.report import Skipped
from mnemoscope.testing.subject import BATCH, Network, Subject

__all__ = ["check_modes"]

LENGTHS = (1, 5, 37)


@check("make all forms of the network one function")
def check_modes(subject: Subject) -> None:
    """Every form that `modes` names gives the outputs, last states and gradients of the others (float64)."""
    modes: tuple[str, ...] = getattr(subject.build(), "modes", ())
    if len(modes) < 2:
        raise Skipped("the network has one form")
    room = {"capacity": 2 * max(LENGTHS)} if getattr(subject.build(), "grows", False) else {}
    networks = [subject.build_deep(mode=mode, **room).double() for mode in modes]
    first = networks[0]
    for mode, other in list(zip(modes, networks, strict=True))[1:]:
        other.load_state_dict(first.state_dict())
        for time in LENGTHS:
            x, hx = subject.inputs(first, time=time), subject.state(first, batch=BATCH)
            for start in (None, hx):
                found = [_everything(subject, network, x, start) for network in (first, other)]
                sentence = f"make the form {mode!r} the same function as {modes[0]!r} for sequences of {time} steps"
                require_close(found[1], found[0], sentence, tolerance=1e-7)


def _everything(subject: Subject, network: Network, x: torch.Tensor, hx: object) -> list[torch.Tensor]:
    """Return outputs, last state and all gradients of a network on one batch."""
    x = x.clone().requires_grad_()
    y, state = subject.run(network, x, hx)
    leaves = [leaf for leaf in tree_leaves((y, state)) if leaf.is_floating_point() or leaf.is_complex()]
    total = sum((leaf.abs().square().sum() for leaf in leaves), torch.zeros((), dtype=torch.float64))
    parameters = [p for p in network.parameters() if p.numel()]
    require(total.requires_grad, "let gradients flow in every form")
    return [*leaves, *torch.autograd.grad(total, [x, *parameters], materialize_grads=True)]
