"""Base of all networks: facts about them, declared weights, training, copies."""

from __future__ import annotations

import inspect
import math
import re
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, ClassVar, Self

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from mnemoscope.core.errors import Description, UserError, expected, nearest, positive_int
from mnemoscope.nn.declared import Layer, Submodule, Weights
from mnemoscope.nn.initialisers import Initialiser, uniform
from mnemoscope.nn.maps.base import Transition
from mnemoscope.nn.maps.computed import ComputedMatrix, KeptMatrices
from mnemoscope.nn.members import map_members
from mnemoscope.nn.options import option_defaults, public_class

__all__ = ["Network", "rebuild", "shape_of"]


class _Kind:
    """Public word for the facts of a network, on the class as on its instances."""

    def __get__(self, network: Network | None, owner: type[Network]) -> str:
        if owner.output_at == "once":
            return "relational" if owner.input_axes == 3 else "classifier"
        return "recurrent" if owner.stateful else "sequence"


class Network(nn.Module, ABC):
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

    declares: ClassVar[bool] = True
    """Whether its weights come from `declare`; an adapted module brings its own."""

    _layers: list[Layer]
    _initialisers: dict[str, Any]
    _factory: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse options that the network does not have, with the nearest that it has, and missing sizes."""
        if cls.declares:
            known = option_defaults(cls)
            for name in kwargs:
                if name not in known:
                    near = nearest(name, known)
                    hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(known))}"
                    raise UserError(f"{cls.__name__} has no option {name!r}; {hint}")
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

        ``"non-negative"`` (diagonal, of at least 0), ``"real diagonal"``, ``"complex diagonal"``, ``"projections"``
        (I - b k k^T, b at most 1), ``"reflections"`` (b at most 2); empty for all others.
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

    # Declaring weights --------------------------------------------------------------------------

    def declare(self, layer: Layer) -> None:
        """Create the weights of one layer with `parameter`, `constrain` and `submodule`; no weights by default."""

    def _begin(self, device: Any, dtype: torch.dtype | None, generator: Any) -> None:
        """Check what every constructor takes, before anything is declared."""
        if device is not None:
            try:
                torch.device(device)
            except (RuntimeError, TypeError):
                raise expected("device", "a device such as 'cpu' or 'cuda:0'", device) from None
        if generator is not None and not isinstance(generator, torch.Generator):
            raise expected("generator", "a torch.Generator or None", generator)
        self._factory = {"device": device, "dtype": self._real_dtype(dtype)}
        self._initialisers, self._layers = {}, []
        self.register_load_state_dict_post_hook(_follow_parameters)  # type: ignore[no-untyped-call]

    def _declare_layer(self, layer: Layer) -> None:
        self._layers.append(layer)
        with torch.random.fork_rng(devices=[]):  # what modules draw as they are made is drawn again by reset_parameters
            self.declare(layer)

    def parameter(
        self,
        name: str,
        *shape: int,
        init: Initialiser | None = None,
        role: str = "",
        full_name: str = "",
    ) -> None:
        """Create the parameter `name` of the layer being declared.

        Parameters
        ----------
        init
            How it starts; by default uniform on +-1/sqrt(n).
        role
            What it is: ``"recurrent"``, ``"input"``, ``"bias"``, ``"readout"``, ``"initial"``, ``"state-space"``.
        full_name
            Its name in the module; by default that of the layer, ``name_l0``.
        """
        own = self._file(name, role, full_name)
        self.register_parameter(own, nn.Parameter(torch.empty(*shape, **self._factory)))
        self._initialisers[own] = init or uniform(1 / math.sqrt(self._width))

    def constrain(self, name: str, transition: Transition, role: str = "recurrent") -> None:
        """Create the matrix `name` of the layer being declared as a function of unconstrained parameters."""
        transition.to(**self._factory)
        transition.attach(self, self._file(name, role))

    def submodule(
        self,
        name: str,
        module: nn.Module,
        *,
        init: Callable[[nn.Module, torch.Generator | None], object] | None = None,
        role: str = "",
        full_name: str = "",
    ) -> None:
        """Make a module (an MLP, a norm, an encoder) a weight of the layer being declared: ``w[name](x)`` calls it.

        Parameters
        ----------
        init
            Draws it anew; by default every part that has `reset_parameters` calls it, with random numbers that come
            from the generator.
        """
        if not isinstance(module, nn.Module):
            raise expected(f"the submodule {name!r}", "a torch.nn.Module", Description(type(module).__name__))
        own = self._file(name, role, full_name)
        self.add_module(own, module.to(**self._factory))
        self._initialisers[own] = init or _draw_module

    def _file(self, name: str, role: str, full_name: str = "") -> str:
        layer = self._layers[-1]
        layer.names[name] = full_name or name + layer.suffix
        layer.roles[name] = role
        return layer.names[name]

    @property
    def _width(self) -> int:
        """Units that the default initial weights are scaled by."""
        size = getattr(self, "hidden_size", self.input_size)
        return size if isinstance(size, int) else math.prod(size)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew; with a generator on the CPU, so that they are the same on every device."""
        if self._like.is_meta:
            return
        for layer in self._layers:
            for full in layer.names.values():
                transition = self.transition(full)
                if transition is not None:
                    transition.reset(self._parameters_of(full), generator)
                elif full in self._modules:
                    self._initialisers[full](self._modules[full], generator)
                else:
                    parameter = getattr(self, full)
                    drawn = torch.empty_like(parameter, device=generator.device) if generator else parameter
                    self._initialisers[full](drawn, generator)
                    parameter.copy_(drawn)

    # Reading weights ----------------------------------------------------------------------------

    def transition(self, name: str = "weight_hh_l0") -> Transition | None:
        """Return the map that makes the matrix `name`, or None when the matrix itself is the parameter."""
        found = self._maps[name][0] if name in self._maps else None
        return found if isinstance(found, Transition) else None

    @property
    def _maps(self) -> Any:
        return self._modules.get("parametrizations", {})

    def _parameters_of(self, name: str) -> list[Tensor]:
        return list(self._maps[name].parameters(recurse=False))

    def _transitions(self) -> Iterator[tuple[Transition, list[Tensor]]]:
        for full in self._weight_names():
            transition = self.transition(full)
            if transition is not None:
                yield transition, self._parameters_of(full)

    def weights(self, dtype: torch.dtype | None = None) -> list[Weights]:
        """Return the weights of every layer and direction, each map computed once.

        Give them to `step` to save computing the maps at every step. Under autocast they are rounded to `dtype`, the
        input's type, after the maps.
        """
        gathered = [self._gather(layer) for layer in self._layers]
        if dtype is None or dtype == self._like.dtype:
            return gathered
        return [w.to(dtype) for w in gathered]

    def _gather(self, layer: Layer, maps: bool = True) -> Weights:
        """Return the weights of one layer; without those that a map makes where `maps` is False."""
        own, found = self._parameters, Weights(layer)
        for name, full in layer.names.items():
            if full in own:
                found[name] = own[full]
            elif (module := self._modules.get(full)) is not None:
                found[name] = Submodule(module)
            elif maps:
                found[name] = self._matrix(full) if full in self._maps else getattr(self, full)
        return found

    def _matrix(self, name: str) -> Tensor:
        """Return a matrix that a map makes: computed, or kept from before."""
        cached = self.__dict__.get("_cached")
        made: Tensor
        if cached is not None:
            if name not in cached:
                cached[name] = self._maps[name]()
            made = cached[name]
        elif KeptMatrices.usable():
            kept: KeptMatrices = self.__dict__.setdefault("_kept", KeptMatrices())
            made = kept.matrix(name, self._maps[name])
        else:
            made = self._maps[name]()
        return made

    @contextmanager
    def cached(self) -> Iterator[Self]:
        """Compute every map once for all calls within, whatever becomes of its parameters: for loops of single steps.

        Without it, and without gradients, a map is computed again only when its parameters have changed, which is found
        by comparing them.
        """
        self.__dict__["_cached"] = {}
        try:
            yield self
        finally:
            del self.__dict__["_cached"]

    def matrices(self, role: str = "recurrent") -> dict[str, Tensor]:
        """Return the weights of one role by their full names, maps computed: ``{"weight_hh_l0": V}``."""
        return {
            layer.names[name]: getattr(self, layer.names[name])
            for layer in self._layers
            for name, own in layer.roles.items()
            if own == role
        }

    def role_of(self, parameter: str) -> str:
        """Return what a parameter is, by its name in `named_parameters`."""
        return self._roles.get(_weight_of(parameter), "")

    @property
    def _roles(self) -> dict[str, str]:
        return {layer.names[name]: role for layer in self._layers for name, role in layer.roles.items()}

    def _weight_names(self) -> list[str]:
        return [full for layer in self._layers for full in layer.names.values()]

    @property
    def _like(self) -> Tensor:
        """The first parameter, whose type and device are the network's."""
        own = next((p for p in self._parameters.values() if p is not None), None)
        return next(self.parameters()) if own is None else own

    def _own_factory(self) -> dict[str, Any]:
        return {"device": self._like.device, "dtype": self._like.dtype}

    def _real_dtype(self, dtype: torch.dtype | None) -> torch.dtype:
        dtype = dtype or torch.get_default_dtype()
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise expected("dtype", "a real floating-point type", Description(str(dtype)))
        return dtype

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Add a parameter; a matrix that a map computed becomes a plain one, when its parametrisation is removed."""
        if isinstance(param, ComputedMatrix):
            param = nn.Parameter(param.detach().as_subclass(Tensor), requires_grad=param.requires_grad)
        super().register_parameter(name, param)

    def __setattr__(self, name: str, value: Any) -> None:
        # `layer.weight_hh_l0 = V` sets values, of a free weight as of one that a map makes. Only an nn.Parameter takes
        # the place of another, as torch's own tools expect: load_state_dict(assign=True), pruning.
        own = self.__dict__.get("_parameters", {})
        if name in own:
            swaps = isinstance(value, nn.Parameter) and value.shape == own[name].shape
            super().__setattr__(name, value) if swaps else _copy_into(own[name], value, name)
        elif isinstance(value, Tensor) and _WEIGHT_NAME.fullmatch(name):
            if name not in self._weight_names():
                raise UserError(f"this network has no {name}; it has {', '.join(self._weight_names())}")
            super().__setattr__(name, value if self.transition(name) is None else value.detach())
        else:
            if isinstance(value, nn.Module) and self.declares:
                self._check_submodule(name)
            super().__setattr__(name, value)

    def _check_submodule(self, name: str) -> None:
        if name not in self.__dict__.get("_modules", {}) and name != "parametrizations":
            raise UserError(
                f"{type(self).__name__} must make the submodule {name!r} in declare, by "
                f"self.submodule({name!r}, module), so that it is drawn, batched and stepped with the weights"
            )

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
        total = torch.zeros((), **self._own_factory())
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

    def remove_maps(self, names: Iterable[str]) -> None:
        """Make plain parameters of those of the named weights that a map makes: the state dict of such a layer fits."""
        for name in [name for name in self._maps if name in names]:
            parametrize.remove_parametrizations(self, name)

    def __repr__(self) -> str:
        return f"{public_class(type(self)).__name__}({self.extra_repr()})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = nn.Module.__new__(type(self))
        memo[id(self)] = twin
        passing = {"_kept", "_cached", "_known_states"}
        twin.__dict__ = deepcopy({name: value for name, value in self.__dict__.items() if name not in passing}, memo)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        if any(len(found) > 1 or self.transition(name) is None for name, found in self._maps.items()):
            raise UserError("a network with a parametrisation of your own cannot be pickled: save its state_dict()")
        frozen = [name for name, parameter in self.named_parameters() if not parameter.requires_grad]
        rest = (self._own_factory(), self.training, self.state_dict(), frozen)
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


_WEIGHT_NAME = re.compile(r"(weight|bias)\w*_l\d+(_reverse)?")


def _weight_of(parameter: str) -> str:
    """Return the weight that a parameter belongs to, by its name in `named_parameters`."""
    path = parameter.split(".")
    return path[1] if path[0] == "parametrizations" else path[0]


def _draw_module(module: nn.Module, generator: torch.Generator | None) -> None:
    with torch.random.fork_rng(devices=[], enabled=generator is not None):
        if generator is not None:
            torch.manual_seed(int(torch.randint(2**62, (), generator=generator, device=generator.device)))
        for part in module.modules():
            reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
            if reset is not None:
                reset()


def _follow_parameters(network: Network, _: Any) -> None:
    for transition, own in network._transitions():
        transition.follow(own)


@torch.no_grad()
def _copy_into(parameter: Tensor, value: Any, name: str) -> None:
    try:
        given = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise expected(name, f"numbers of shape {tuple(parameter.shape)}", value) from None
    if given.shape != parameter.shape:
        raise expected(name, f"of shape {tuple(parameter.shape)}", tuple(given.shape))
    if given.is_complex():
        raise expected(name, "real", given.dtype)
    parameter.copy_(given)


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
