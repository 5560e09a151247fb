"""Base of all networks: facts about them, what training asks, copies."""

from __future__ import annotations

import inspect
import math
from abc import ABC
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar, Self

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.errors import UserError, expected, positive_int, unknown
from mnemoscope.nn.members import map_members
from mnemoscope.nn.module import DeclaredModule
from mnemoscope.nn.options import option_defaults, public_class

__all__ = ["Network", "rebuild", "shape_of"]


class _Kind:
    """Public word for the facts of a network, on the class as on its instances."""

    def __get__(self, network: Network | None, owner: type[Network]) -> str:
        if owner.output_at == "once":
            return "relational" if owner.input_axes == 3 else "classifier"
        return "recurrent" if owner.stateful else "sequence"


class Network(DeclaredModule, ABC):
    """A network of any kind: facts, options, declared weights, what training asks, copies.

    Attributes
    ----------
    stateful
        Whether a state goes from call to call; what is carried within a call does not count.
    output_at
        ``"steps"``: an output at every step; ``"once"``: one answer for a whole sequence.
    causal, future
        Whether the output at a step depends on nothing that comes later, and why not, in words.
    input_axes
        Axes of one input that the cells read: 1 for vectors (others are flattened), 2 for matrices, 3 for images.
    modes
        Forms in which whole sequences can be computed: ``"recurrent"``, ``"parallel"``, ``"chunked"``.
    kind
        Follows from the facts: ``"recurrent"`` (stateful, steps), ``"sequence"`` (stateless, steps), ``"relational"``
        (once, images), ``"classifier"`` (once, otherwise).
    """

    stateful: ClassVar[bool] = False
    output_at: ClassVar[str] = "steps"
    input_axes: ClassVar[int] = 1
    modes: ClassVar[tuple[str, ...]] = ("parallel",)
    kind = _Kind()
    causal: bool = True
    future: str = "it reads the future"
    batch_first: bool = False
    input_size: int
    output_size: int
    small_sizes: ClassVar[dict[str, Any]] = {"input_size": 3, "hidden_size": 4}
    """Sizes at which checks build it."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse options that the network does not have, with the nearest that it has, and missing sizes."""
        if cls.declares:
            known = option_defaults(cls)
            for name in kwargs:
                if name not in known:
                    raise unknown(f"{cls.__name__} has no option {name!r}", name, sorted(known), "it has")
            needed = list(required_arguments(cls))
            missing = [name for name in needed[len(args) :] if name not in kwargs]
            if missing:
                raise UserError(f"{cls.__name__}({', '.join(needed)}, ..) needs {' and '.join(missing)}")
        return super().__new__(cls)

    # Facts --------------------------------------------------------------------------------------

    def require_causal(self, what: str) -> None:
        """Raise the reason why `what`, which needs a causal network, cannot use this one; else do nothing."""
        if not self.causal:
            raise UserError(f"{what} needs a causal network, and this one is not: {self.future}")

    @property
    def transitions(self) -> str:
        """What A(x) is made of where the state obeys h_t = A(x_t) h_{t-1} + b(x_t): theorems say what that can track.

        ``"non-negative"`` (diagonal, of at least 0), ``"real diagonal"``, ``"fixed diagonal"`` (complex, the same at
        every input), ``"projections"`` (I - b k k^T, b at most 1), ``"reflections"`` (b at most 2), ``"fading
        negative"`` (real eigenvalues, all above -1/2); empty for all others.
        """
        return ""

    @property
    def key_size(self) -> int | None:
        """Numbers of a key by which a matrix state is read; None for all others."""
        return None

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input: ``(input_size,)``, or that of a matrix or an image."""
        return self.__dict__.get("_input_shape") or (self.input_size,)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of one output."""
        return (self.output_size,)

    def _take_input_size(self, input_size: Any) -> None:
        """Keep the shape of one input, given as a number or as a tuple, and its product, `input_size`."""
        shape = shape_of("input_size", input_size)
        if self.input_axes > 1 and len(shape) != self.input_axes:
            raise expected("input_size", f"{self.input_axes} positive integers", input_size)
        self._input_shape, self.input_size = shape, math.prod(shape)

    # Training -----------------------------------------------------------------------------------

    def parameter_groups(
        self, lr: float, lr_orthogonal: float | None = None, lr_state_space: float | None = None
    ) -> list[dict[str, Any]]:
        """Return groups for an optimiser.

        Parameters of orthogonal maps get their own rate, by default a tenth; those of the role ``"state-space"`` get
        theirs, by default `lr`, and no weight decay.
        """
        rates = {"lr": lr, "lr_orthogonal": lr_orthogonal, "lr_state_space": lr_state_space}
        for name, rate in rates.items():
            if rate is not None and (
                isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < math.inf
            ):
                raise expected(name, "a finite number that is not negative", rate)
        orthogonal = [p for transition, own in self._transitions() for p in transition.orthogonal(own)]
        dynamics = [p for name, p in self.named_parameters() if self.role_of(name) == "state-space"]
        marked = {id(p) for p in (*orthogonal, *dynamics)}
        groups = [{"params": [p for p in self.parameters() if id(p) not in marked], "lr": lr}]
        if orthogonal:
            groups.append({"params": orthogonal, "lr": lr / 10 if lr_orthogonal is None else lr_orthogonal})
        if dynamics:
            rate = lr if lr_state_space is None else lr_state_space
            groups.append({"params": dynamics, "lr": rate, "weight_decay": 0.0})
        return groups

    def penalty(self) -> Float[Tensor, ""]:
        """Return what the network asks to be added to the loss; zero for most."""
        total = torch.zeros((), **self._own_factory()).real  # of a module whose first weight is complex, too
        for transition, own in self._transitions():
            total = total + transition.penalty(own)
        return total

    def after_step(self) -> None:
        """Do what must happen after each step of the optimiser: rebase, retract. Nothing for most."""
        for transition, own in self._transitions():
            transition.after_step(own)

    def run_members(self, weights: Mapping[str, Tensor], *inputs: Any, randomness: str = "different") -> Any:
        """Run K networks of this shape on inputs of their own, as one.

        Parameters
        ----------
        weights
            The members' parameters and buffers by name, stacked; this network's own are not used.
        inputs
            What `forward` takes, with the members in front; None is None for all.
        randomness
            As in `map_members`.
        """
        return map_members(self, weights, *inputs, randomness=randomness)

    # Copies -------------------------------------------------------------------------------------

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that build this network again, but for device, dtype and generator."""
        skipped = {"device", "dtype", "generator"}
        found = {name: getattr(self, name) for name in option_defaults(type(self)) if name not in skipped}
        if "input_size" in found and len(self.input_shape) > 1:
            found["input_size"] = self.input_shape
        return found

    def extra_repr(self) -> str:
        """Sizes first, then the options that are not at their default."""
        options, needed = self.options, required_arguments(type(self))
        defaults = option_defaults(type(self))
        defaults |= {name: getattr(self, f"{name}_default", value) for name, value in defaults.items()}
        sizes = [repr(options[name]) for name in needed]
        named = [f"{k}={v!r}" for k, v in options.items() if k not in needed and v != defaults[k]]
        return ", ".join([*sizes, *named])

    def __prepare_scriptable__(self) -> Any:
        raise UserError(f"{type(self).__name__} cannot be scripted by torch.jit.script: use torch.export.export")

    def __repr__(self) -> str:
        return f"{public_class(type(self)).__name__}({self.extra_repr()})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = nn.Module.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__ = deepcopy(self._lasting(), memo)
        return twin

    def _replicate_for_data_parallel(self) -> Self:
        twin = nn.Module.__new__(type(self))
        own = {"_parameters": {}, "_buffers": self._buffers.copy(), "_modules": self._modules.copy()}
        twin.__dict__ = self._lasting() | own | {"_is_replica": True}
        return twin

    def _lasting(self) -> dict[str, Any]:
        """Return all attributes but what is kept from call to call."""
        passing = {"_kept", "_cached", "_known_states"}
        return {name: value for name, value in self.__dict__.items() if name not in passing}

    def __reduce__(self) -> tuple[Any, ...]:
        if any(len(found) > 1 or self.transition(name) is None for name, found in self._maps.items()):
            raise UserError("a network with a parametrisation of your own cannot be pickled: save its state_dict()")
        frozen = [name for name, parameter in self.named_parameters() if not parameter.requires_grad]
        # The parameters themselves: what two networks share they share again.
        rest = (self._own_factory(), self.training, self.state_dict(keep_vars=True), frozen)
        return rebuild, (public_class(type(self)), self.options, *rest)


def shape_of(name: str, size: Any) -> tuple[int, ...]:
    """Return a size, given as a positive integer or several, as a tuple."""
    sizes = tuple(size) if isinstance(size, list | tuple) and len(size) else (size,)
    return tuple(positive_int(name, each) for each in sizes)


def required_arguments(cls: type[Network]) -> tuple[str, ...]:
    """Return the arguments of a constructor that have no default, its sizes."""
    return tuple(
        name
        for name, p in inspect.signature(public_class(cls)).parameters.items()
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    )


def rebuild(
    cls: type[Network],
    options: dict[str, Any],
    factory: dict[str, Any],
    training: bool,
    weights: Any,
    frozen: list[str],
) -> Network:
    """Build a network that was pickled."""
    layer = cls(**options, **factory, generator=torch.Generator())  # what it draws is overwritten
    layer.remove_maps(weights)
    layer.load_state_dict(weights, assign=True)  # memory that is shared with other processes stays shared
    for name in frozen:
        layer.get_parameter(name).requires_grad_(False)
    return layer.train(training)
