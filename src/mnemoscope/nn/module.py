"""Module with declared weights: created layer by layer, drawn, made by maps, read and set."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.nn.declared import Layer, Submodule, Weights
from mnemoscope.nn.initialisers import Initialiser, uniform
from mnemoscope.nn.maps.base import Transition
from mnemoscope.nn.maps.computed import ComputedMatrix, KeptMatrices
from mnemoscope.nn.options import public_class

__all__ = ["DeclaredModule"]


class DeclaredModule(nn.Module):
    """A module whose layers declare their weights by name, role and initial values.

    A weight is a parameter of its own, a matrix that a map makes of unconstrained parameters, or a submodule. Who runs
    the module gets the weights of each layer together (`weights`), every map computed once.
    """

    declares: ClassVar[bool] = True
    """Whether its weights come from `declare`; an adapted module brings its own."""

    _layers: list[Layer]
    _initialisers: dict[str, Any]
    _factory: dict[str, Any]

    _maybe_empty: bool = False
    """Whether weights may be on the meta device, as they are until what was built there is filled."""

    input_size: int

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
        self._maybe_empty = torch.empty(0, **self._factory).is_meta
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
                    self._draw(full, generator)

    def _draw(self, name: str, generator: torch.Generator | None) -> None:
        weight = getattr(self, name)
        drawn = torch.empty_like(weight, device=generator.device if generator else None)
        self._initialisers[name](drawn, generator)
        if name in self._parameters:
            weight.copy_(drawn)
        elif name in self._maps:
            setattr(self, name, drawn)  # one of torch's own parametrisations finds its parameters
        else:
            raise UserError(f"{name} is no parameter any more (was it pruned?), and cannot be drawn anew")

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
        """Yield every map with its parameters; one that two weights share once."""
        found: dict[Transition, str] = {}
        for full in self._weight_names():
            transition = self.transition(full)
            if transition is not None:
                found.setdefault(transition, full)
        for transition, full in found.items():
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
            key = name, torch.is_grad_enabled()  # what was computed without gradients passes none on
            if key not in cached:
                cached[key] = self._maps[name]()
            made = cached[key]
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
        before = self.__dict__.get("_cached")
        self.__dict__["_cached"] = {} if before is None else before
        try:
            yield self
        finally:
            self.__dict__["_cached"] = before

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
        for own in self._parameters.values():
            if own is not None:
                return own
        return next(_weights_within(self))

    def _own_factory(self) -> dict[str, Any]:
        return {"device": self._like.device, "dtype": self._like.dtype}

    def require_filled(self, x: Tensor) -> None:
        """Raise where an input with values meets weights without: some products of torch would read unset memory."""
        if not self._maybe_empty or x.is_meta:
            return
        empty = self._empty_weights()
        if empty:
            raise UserError(
                f"{public_class(type(self)).__name__} has no values yet: {_some(empty)} on the meta device; fill it by "
                "load_state_dict(state, assign=True), or by to_empty(device='cpu') and reset_parameters()"
            )

    def _empty_weights(self) -> list[str]:
        return [name for name, tensor in self.state_dict().items() if tensor.is_meta]

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._maybe_empty = bool(self._empty_weights())
        return self

    def _real_dtype(self, dtype: torch.dtype | None) -> torch.dtype:
        dtype = dtype or torch.get_default_dtype()
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise expected("dtype", "a real floating-point type", Description(str(dtype)))
        return dtype

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Add a parameter; a matrix that a map computed becomes a plain one, when its parametrisation is removed."""
        if isinstance(param, ComputedMatrix):
            if name != param.weight:  # as torch.nn.utils.prune does
                raise UserError(f"{param.weight} is computed from its parameters: call remove_parametrizations() first")
            param = nn.Parameter(param.detach().as_subclass(Tensor), requires_grad=param.requires_grad)
        super().register_parameter(name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer; but a matrix that a map computed of frozen parameters becomes a frozen parameter."""
        if isinstance(tensor, ComputedMatrix):
            self.register_parameter(name, nn.Parameter(tensor, requires_grad=False))
        else:
            super().register_buffer(name, tensor, persistent)

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

    def remove_parametrizations(self) -> Self:
        """Make plain parameters of all weights that a map makes, as export wants it; return the network itself."""
        self.remove_maps(list(self._maps))
        return self

    def remove_maps(self, names: Iterable[str]) -> None:
        """Make plain parameters of those of the named weights that a map makes: the state dict of such a layer fits."""
        for name in [name for name in self._maps if name in names]:
            with torch.enable_grad():  # torch asks the matrix whether it is trained
                parametrize.remove_parametrizations(self, name)


_WEIGHT_NAME = re.compile(r"(weight|bias)\w*_l\d+(_reverse)?")


def _weight_of(parameter: str) -> str:
    """Return the weight that a parameter belongs to, by its name in `named_parameters`."""
    path = parameter.split(".")
    return path[1] if path[0] == "parametrizations" else path[0]


def _weights_within(module: nn.Module) -> Iterator[Tensor]:
    """Yield all parameters; those of a replica of torch.nn.DataParallel are plain tensors."""
    for part in module.modules():
        former = vars(part).get("_former_parameters", {})
        yield from (p for p in (*part._parameters.values(), *former.values()) if p is not None)


def _some(names: list[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (
        f" and {len(names) - most} more are" if len(names) > most else " is" if len(names) == 1 else " are"
    )


def _draw_module(module: nn.Module, generator: torch.Generator | None) -> None:
    with torch.random.fork_rng(devices=[], enabled=generator is not None):
        if generator is not None:
            torch.manual_seed(int(torch.randint(2**62, (), generator=generator, device=generator.device)))
        for part in module.modules():
            reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
            if reset is not None:
                reset()


def _follow_parameters(module: DeclaredModule, _: Any) -> None:
    for transition, own in module._transitions():
        transition.follow(own)
    module._maybe_empty = bool(module._empty_weights())


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
