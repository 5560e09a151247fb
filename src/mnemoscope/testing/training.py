"""Training: parameters move, and with them all that is made of them."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import parametrize

from mnemoscope.testing.checking import check
from mnemoscope.testing.compare import require, require_close
from mnemoscope.testing.report import Skipped
from mnemoscope.testing.subject import Network, Subject

__all__ = [
    "check_after_step",
    "check_dropout",
    "check_parameter_groups",
    "check_penalty",
    "check_training_step",
    "same_objects",
    "train_step",
]


@check("let a loss on the output run backward and an optimiser step on parameters()")
def check_training_step(subject: Subject) -> None:
    """A step of an optimiser changes every parameter, every weight that is made of some, and the output."""
    network = subject.build_deep()
    require(any(True for _ in network.parameters()), "register what is learned as torch.nn.Parameter")
    x = subject.inputs(network)
    y, _ = subject.run(network, x)
    before, weights = _clones(dict(network.named_parameters())), _clones(_derived(network))
    train_step(subject, network.train(), follow=False)
    for name, parameter in network.named_parameters():
        unused = f"use the parameter {name} in forward: a step of the optimiser does not change it"
        require(not parameter.requires_grad or _moved(before[name], parameter), unused)
    for name, weight in _derived(network).items():
        stale = f"compute {name} from its parameters at every call: a step of the optimiser does not change it"
        require(_moved(weights[name], weight), stale)
    again, _ = subject.run(network.eval(), x)
    require(_moved(y, again), "compute the output from the parameters at every call: a step does not change it")


@check("make after_step() callable after each step of an optimiser")
def check_after_step(subject: Subject) -> None:
    """`after_step()` keeps the Parameter objects that the optimiser holds, and training goes on after it."""
    network = subject.build_deep()
    subject.require(network, "after_step")
    held = list(network.parameters())
    for _ in range(3):
        loss = train_step(subject, network.train())
        require(math.isfinite(loss), "keep the loss finite when after_step() follows each step")
    require(same_objects(held, network), "change parameters in place in after_step(): the optimiser holds the old ones")
    require(all(p.requires_grad for p in network.parameters()), "keep requires_grad of parameters in after_step()")


@check("make penalty() a number that can be added to the loss")
def check_penalty(subject: Subject) -> None:
    """`penalty()` is one finite real number of the network's type that can be added to the loss and differentiated."""
    network = subject.build_deep()
    subject.require(network, "penalty")
    penalty = network.penalty()
    require(isinstance(penalty, Tensor) and penalty.shape == (), "return a tensor of shape () from penalty()")
    y, _ = subject.run(network, subject.inputs(network))
    require(penalty.dtype == y.dtype, f"return penalty() in the network's type, {y.dtype}, not {penalty.dtype}")
    require(bool(penalty.isfinite()), "keep penalty() finite")
    (y.square().mean() + penalty).backward()


@check("make parameter_groups(lr, lr_orthogonal) a list of groups that an optimiser takes")
def check_parameter_groups(subject: Subject) -> None:
    """`parameter_groups(lr, lr_orthogonal)` holds every parameter once, at one of the two rates."""
    network = subject.build_deep()
    subject.require(network, "parameter_groups")
    for rates in ((0.1, 0.01), (0.1,)):
        groups = network.parameter_groups(*rates)
        held = [id(parameter) for group in groups for parameter in group["params"]]
        wanted = sorted(id(parameter) for parameter in network.parameters())
        require(sorted(held) == wanted, "put every parameter into exactly one group of parameter_groups")
        for group in groups:
            allowed = group["lr"] in rates if len(rates) == 2 else group["lr"] > 0
            require(allowed, f"give every group of parameter_groups{rates} one of these rates, not {group['lr']!r}")
        torch.optim.SGD(groups)


@check("accept dropout between layers")
def check_dropout(subject: Subject) -> None:
    """Dropout acts between layers, in training only, and never on the output of the last layer."""
    network = subject.build(num_layers=2, dropout=0.5)
    plain = subject.build(num_layers=2)
    plain.load_state_dict(network.state_dict())
    x = subject.inputs(network)
    expected, hx = subject.run(plain, x)
    if not torch.equal(subject.run(plain.train(), x)[0], expected):
        raise Skipped("the network is not the same function in training, even without dropout")
    require_close(subject.run(network, x)[0], expected, "leave dropout out in evaluation")
    trained = subject.run(network.train(), x)[0]
    require(_moved(expected, trained), "apply dropout between layers in training")
    _require_last_layer_kept(subject, x, hx)


def _require_last_layer_kept(subject: Subject, x: Tensor, hx: Any) -> None:
    sentence = "apply dropout to what passes between layers only, never to the output of the last layer"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch's advice that one layer has nothing to drop
        single = subject.build(num_layers=1, dropout=0.5)
    y, _ = subject.run(single, x)
    require_close(subject.run(single.train(), x)[0], y, sentence)
    if not bool((subject.run(single, torch.zeros_like(x), subject.state(single))[0] != 0).any()):
        return  # a network of products answers zero to zero input: with all dropped it has nothing to give out
    # With all dropped between the layers, the last still has its state to give out.
    empty = subject.build(num_layers=2, dropout=1.0).train()
    require(bool((subject.run(empty, x, hx)[0] != 0).any()), sentence)


def train_step(subject: Subject, network: Network, *, follow: bool = True) -> float:
    """Take one step of Adam on a squared error and the penalty, `follow` it by after_step(), and return the loss."""
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    y, _ = subject.run(network, subject.inputs(network))
    loss = (y - 1).square().mean()
    if hasattr(network, "penalty"):
        loss = loss + network.penalty()
    loss.backward()
    optimiser.step()
    optimiser.zero_grad()
    if follow and hasattr(network, "after_step"):
        network.after_step()
    return float(loss.detach())


def same_objects(held: list[Tensor], network: Network) -> bool:
    """Say whether the network's parameters are still the objects in `held`."""
    now = list(network.parameters())
    return len(held) == len(now) and all(old is new for old, new in zip(held, now, strict=True))


def _derived(network: Network) -> dict[str, Tensor]:
    """Return the weights that are functions of parameters, by name."""
    found = {}
    for path, module in network.named_modules():
        if parametrize.is_parametrized(module):
            for name in module.parametrizations:
                found[f"{path}.{name}".lstrip(".")] = getattr(module, name)
    return found


def _clones(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def _moved(before: Tensor, after: Tensor) -> bool:
    return before.numel() == 0 or not torch.equal(before, after.detach())
