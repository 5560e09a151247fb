"""Description of a network in words: the only way from a name, a class or a file to a network with weights.

The same description gives the same weights everywhere: `mnemoscope.profile`, ``train``, ``capacity``, ``measure``, the
atlas and the studies all build from it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from mnemoscope.core.arrays import ARRAYS
from mnemoscope.core.devices import chosen_device
from mnemoscope.core.errors import Advised, UserError, choice, expected, positive_int
from mnemoscope.core.plugins import is_location, load_object
from mnemoscope.core.seeds import check_seed, seed_of
from mnemoscope.core.standins import stand_in
from mnemoscope.nn.advice import checked_advice
from mnemoscope.nn.construction import DEFAULT_SIZES, Built, construct, known_sizes, shaped_sizes
from mnemoscope.nn.options import public_class
from mnemoscope.nn.parameters import COUNTS, size_within
from mnemoscope.nn.registry import NETWORKS, card, create, get
from mnemoscope.nn.storage import load, load_weights
from mnemoscope.nn.tensor_classifier import TensorClassifier

__all__ = ["DEFAULT_SIZES", "NETWORK_VERSION", "NetworkSpec", "Size"]

Size = int | tuple[Any, ...]
"""A whole number; or several, of matrices and images, or of layers that differ."""

_MOST_WORDS = 24
"""Words of advice beyond which nobody would type them."""

_PICKLES = (".pt", ".pth", ".pkl", ".ckpt", ".bin")
_FLAGS = {
    "hidden_size": "--hidden",
    "input_size": "--input-size",
    "num_layers": "--layers",
    "parameters": "--parameters",
}
NETWORK_VERSION = 1
"""The version of a recorded description."""


@dataclass(frozen=True, init=False, repr=False)
class NetworkSpec:
    """Description of a network: what it is, its sizes or a budget of parameters, options, and a seed.

    Parameters
    ----------
    what
        A registry name; ``FILE.py:CLASS`` (which runs the file's code); ``FILE.safetensors``, as `mnemoscope.nn.save`
        writes it; a class or function that builds a network; or a module, which has its weights already.
    input_size, hidden_size, num_layers
        Sizes, where they are given; else `DEFAULT_SIZES`.
    parameters
        A budget instead of a hidden size: of the recurrent part the nearest size, otherwise the largest within.
    count, readout_size
        What of the network the budget counts (`mnemoscope.nn.parameters.COUNTS`); with ``"all"`` and ``"published"``
        an affine readout to so many numbers counts too.
    seed
        Draws the weights.
    options, more
        Further arguments of the network's constructor, such as ``rank=8``.
    advice
        How a stranger's module is called, as `mnemoscope.nn.advice.ADVICE` names it: ``{"kind": "cell"}``.
    weights
        A file of trained weights of a class that is built: safetensors, or a state_dict that torch.save wrote.
    called
        What it is called beside others, instead of its name and options: ``"rnn before training"``.

    Examples
    --------
    >>> spec = NetworkSpec("rnn", input_size=10, hidden_size=8)
    >>> bool((spec.build().weight_hh_l0 == NetworkSpec.from_dict(spec.to_dict()).build().weight_hh_l0).all())
    True
    >>> NetworkSpec("lstm", input_size=4, parameters=4096).resolved()
    NetworkSpec('lstm', input_size=4, hidden_size=29)
    """

    what: Any
    input_size: Size | None = None
    hidden_size: Size | None = None
    num_layers: int | None = None
    parameters: int | None = None
    count: str = "recurrent"
    readout_size: int = 0
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    advice: Mapping[str, Any] = field(default_factory=dict)
    weights: str | None = None
    called: str | None = field(default=None, compare=False)
    recorded: str | None = field(default=None, compare=False)
    """The digest of the file that `what` names, when this description was recorded."""

    def __init__(
        self,
        what: Any,
        /,
        *,
        input_size: Size | None = None,
        hidden_size: Size | None = None,
        num_layers: int | None = None,
        parameters: int | None = None,
        count: str = "recurrent",
        readout_size: int = 0,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        advice: Mapping[str, Any] | None = None,
        weights: str | os.PathLike[str] | None = None,
        called: str | None = None,
        **more: Any,
    ) -> None:
        values: dict[str, Any] = {
            "what": what,
            "input_size": _size("input_size", input_size),
            "hidden_size": _size("hidden_size", hidden_size),
            "num_layers": None if num_layers is None else positive_int("num_layers", num_layers),
            "parameters": None if parameters is None else positive_int("parameters", parameters),
            "count": choice("count", count, COUNTS),
            "readout_size": readout_size,
            "seed": check_seed(seed),
            "options": {**(options or {}), **more},
            "advice": checked_advice(advice),
            "weights": None if weights is None else os.fspath(weights),
            "called": called,
            "recorded": None,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        if not isinstance(self.what, str) and not callable(self.what):
            raise expected("network", "a name, a file, a class, a function that builds one, or a module", self.what)
        if self.hidden_size is not None and self.parameters is not None:
            both = f"{self.hidden_size} and {self.parameters}"
            raise UserError(f"give hidden_size or parameters, not both: got {both}")
        given = {**self.sizes, **({} if self.parameters is None else {"parameters": 1}), **self.options}
        if self._complete and self.weights is not None:
            raise UserError("weights (--weights) cannot be given: the network has weights of its own")
        if self._complete and given:
            first = next(iter(given))
            flag = "--set" if first in self.options else _FLAGS[first]
            raise UserError(f"{first} ({flag}) cannot be given: a network with weights of its own has its sizes")

    def __hash__(self) -> int:
        return hash((self.what, _frozen(self.arguments), _frozen(self.options), _frozen(self.advice)))

    def __repr__(self) -> str:
        what = repr(self.what) if isinstance(self.what, str) else self.name
        words = {**self.arguments, **({"advice": dict(self.advice)} if self.advice else {}), **self.options}
        return f"NetworkSpec({', '.join([what, *(f'{name}={value!r}' for name, value in words.items())])})"

    @property
    def sizes(self) -> dict[str, Any]:
        """The sizes that were given, as constructors name them."""
        given = {name: getattr(self, name) for name in DEFAULT_SIZES}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def trained(self) -> bool:
        """Whether it comes with weights of its own; else the seed draws them."""
        return self._complete or self.weights is not None

    @property
    def _complete(self) -> bool:
        """Whether nothing can be chosen about it."""
        return self.saved or isinstance(self.what, nn.Module)

    @property
    def saved(self) -> bool:
        """Whether it is a file that `mnemoscope.nn.save` wrote."""
        return isinstance(self.what, str) and self.what.endswith(".safetensors")

    @property
    def name(self) -> str:
        """Its name without options: a registry name, a class, or a file's stem."""
        if isinstance(self.what, str):
            return Path(self.what).stem if self.saved else self.what.rpartition(":")[2]
        made = getattr(self.what, "module", self.what) if isinstance(self.what, nn.Module) else self.what
        cls = public_class(type(made)) if isinstance(made, nn.Module) else made
        own = card(cls) if isinstance(cls, type) else None
        return own.name if own else str(getattr(cls, "__name__", cls))

    @property
    def label(self) -> str:
        """What it is called: its short name, with its options where it is named in words."""
        options = self.options if isinstance(self.what, str) else {}
        return self.called or self.name + "".join(f" {name}={value}" for name, value in options.items())

    @property
    def digest(self) -> str | None:
        """A hash of the file that it names, as it is now; None when it names none."""
        file = self._file()
        return hashlib.sha256(file.read_bytes()).hexdigest() if file is not None and file.is_file() else None

    def replace(self, **changes: Any) -> Self:
        """Return the description with other sizes, budget, seed or options."""
        kept = {**self.arguments, "options": self.options, "advice": self.advice, "called": self.called}
        made = type(self)(changes.pop("what", self.what), **{**kept, **changes})
        object.__setattr__(made, "recorded", self.recorded)
        return made

    def resolved(self) -> Self:
        """Return the description with the size that the budget of parameters allows, in place of the budget."""
        if self.parameters is None:
            return self
        found = size_within(
            self.name, lambda size: self._at(size)._construct().module, self.parameters, self.count, self.readout_size
        )
        return self._at(found.size)

    def build(self, *, as_it_is: bool = False) -> Any:
        """Return the network: with its own weights where it has any, else with those that the seed draws.

        The weights are those that the constructor draws from torch's generator at the state
        ``mnemoscope.core.seeds.stream(seed, "layer")``: a stream apart from those of a training's batches and a
        measure's inputs, which may have the same seed. Torch's own random numbers stay as they were. A module that
        does not keep the contract of a network is adapted, unless it is asked for `as_it_is`. Within
        `mnemoscope.core.devices.computing_on` the network is moved to that device.
        """
        try:
            built, where = self._built(as_it_is), chosen_device()
            return built if where is None else built.to(where)
        except Advised as error:
            raise self._mended(error) from error

    def _mended(self, error: Advised) -> UserError:
        """Return an error with the whole advice that mends it, tried; without any where it does not."""
        spec, first, flags, python = self, error, list(error.flags), [error.python]
        while error.options:  # a constructor that can be called now may give a module that needs advice
            spec = spec.replace(options={**spec.options, **error.options}, advice={**spec.advice, **error.advice})
            try:
                spec._built()
            except Advised as further:
                error = further
                flags += error.flags
                python.append(error.python)
                if len(flags) > _MOST_WORDS:
                    return UserError(first.reason)
            except UserError as last:
                return UserError(f"{first.reason}; with {' '.join(flags)} {last}")
            else:
                break
        return Advised(first.reason, flags, ", ".join(python))

    def _built(self, as_it_is: bool = False) -> Any:
        from mnemoscope.nn.understanding import understood  # not needed to describe a network

        if isinstance(self.what, nn.Module):
            return self.what if as_it_is else understood(self.what, self.advice)
        self.check_unchanged()
        if self.saved:
            return load(self.what)
        spec = self.resolved()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(self.seed, "layer"))
            built = spec._construct()
        if self.weights is not None:
            load_weights(built.module, self.weights)
        if as_it_is:
            return built.module
        where = self.what if isinstance(self.what, str) else None
        return understood(built.module, self.advice, built.notes, built.input_size, self.name, where)

    def check_unchanged(self) -> None:
        """Raise when the file that the description names is not the one that it was recorded with."""
        if self.recorded is not None and self.digest != self.recorded:
            happened = "changed" if self.digest else "is gone"
            raise UserError(
                f"{self._file()} {happened} since it was recorded: put the file back as it was, "
                "or describe the network anew"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the description as JSON; of what only Python knows, words that no network can be built from."""
        what = _named(self.what)
        named = {"given": " ".join(repr(self.what).split())[:500]} if what is None else {"what": what}
        found = {"version": NETWORK_VERSION, **named, **self.arguments}
        if self.options:
            found["options"] = {name: _as_json(name, value) for name, value in self.options.items()}
        if self.advice:
            found["advice"] = {name: _as_json(name, value) for name, value in self.advice.items()}
        digest = self.recorded or self.digest
        return found if digest is None else {**found, "digest": digest}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """Return the description that `to_dict` wrote."""
        words = dict(found)
        if words.pop("version", None) != NETWORK_VERSION:
            raise expected("the version of a recorded network", str(NETWORK_VERSION), found.get("version"))
        if "what" not in words:
            raise UserError(
                f"the network was given as an object and cannot be built again from the record: {words.get('given')}"
            )
        digest = words.pop("digest", None)
        options = {name: _from_json(name, value) for name, value in words.pop("options", {}).items()}
        made = cls(words.pop("what"), options=options, **words)
        object.__setattr__(made, "recorded", digest)
        return made

    @classmethod
    def of(cls, network: nn.Module) -> Self:
        """Return the description by which a network like this is built, with weights of its own or drawn anew.

        One that is registered is described by its name and options; any other by itself.
        """
        own = card(type(network))
        options = getattr(network, "options", None)
        if own is None or not isinstance(options, Mapping) or not _is_json(options):
            return cls(network)
        dtype = next((p.dtype for p in network.parameters()), torch.get_default_dtype())
        more = {} if dtype == torch.get_default_dtype() else {"dtype": dtype}
        sizes = {name: options[name] for name in DEFAULT_SIZES if name in options}
        rest = {name: value for name, value in options.items() if name not in sizes}
        return cls(own.name, **sizes, options={**rest, **more})

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that differ from their defaults: sizes, budget and seed, without the network's options."""
        budget = {"parameters": self.parameters, "count": self.count, "readout_size": self.readout_size}
        usual = {"parameters": None, "count": "recurrent", "readout_size": 0, "seed": 0}
        more = {name: value for name, value in {**budget, "seed": self.seed}.items() if value != usual[name]}
        return {**self.sizes, **more, **({} if self.weights is None else {"weights": self.weights})}

    def _at(self, size: int) -> Self:
        """Return the description of a network of this size."""
        plain = self.replace(parameters=None, count="recurrent", readout_size=0)
        factory = get(self.what) if isinstance(self.what, str) else self.what
        if not isinstance(factory, type) or not issubclass(factory, TensorClassifier):
            pairs = isinstance(getattr(factory, "counted_at", {}).get("hidden_size"), tuple)
            return plain.replace(hidden_size=(size, size) if pairs else size)
        # A count depends on an example's length and classes, where these are not told.
        told = {name: factory.counted_at[name] for name in ("length", "classes")}
        width = DEFAULT_SIZES["input_size"] if self.input_size is None else self.input_size
        sizes = {"features": width, "rank": size}
        return plain.replace(input_size=None, options={**told, **self.options, **sizes})

    def _file(self) -> Path | None:
        """Return the file that it names, if any."""
        if not isinstance(self.what, str):
            return None
        if self.saved:
            return Path(self.what)
        where = self.what.rpartition(":")[0]
        return Path(where) if where.endswith(".py") else None

    def _construct(self) -> Built:
        """Return the module itself, as its constructor makes it, and what was done for it."""
        for package in self.advice.get("stub", ()):
            stand_in(package)
        if not isinstance(self.what, str):
            return construct(self.name, self.what, self.sizes, self.options)
        _check_ending(self.what)
        if self.what in NETWORKS or not is_location(self.what):
            cls = NETWORKS[self.what]
            # A network that answers once has sizes of its own.
            once = getattr(cls, "output_at", "steps") == "once"
            usual = getattr(cls, "usual", {}) if once else known_sizes(cls, DEFAULT_SIZES)
            sizes = shaped_sizes(self.what, cls, {**usual, **self.sizes})
            return Built(create(self.what, **{**sizes, **self.options}))
        return construct(self.what, get(self.what), self.sizes, self.options)


def _size(name: str, value: Any) -> Any:
    """Return a size, or several as a tuple, or raise the standard error."""
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        return positive_int(name, value)
    if not value:
        raise expected(name, "positive integers, one or more", value)
    return tuple(_size(name, each) for each in value)


def _frozen(value: Any) -> Any:
    """Return a value with its mappings and lists as tuples, which have a hash where their members have one."""
    if isinstance(value, Mapping):
        return tuple(sorted((name, _frozen(each)) for name, each in value.items()))
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _named(what: Any) -> str | None:
    """Return the words by which a class or function is found again; None when there are none."""
    if isinstance(what, str):
        return what
    if isinstance(what, nn.Module) or not hasattr(what, "__qualname__"):
        return None
    own = card(what) if isinstance(what, type) else None
    if own is not None and own.name in NETWORKS and NETWORKS[own.name] is what:
        return own.name
    location = f"{what.__module__}:{what.__qualname__}"
    try:
        found = load_object(location)
    except UserError:
        return None
    return location if found is what and what.__module__ != "__main__" else None


def _as_json(name: str, value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if not _is_json(value):
        raise UserError(f"the option {name} cannot be recorded: a file holds no {type(value).__name__}")
    return value


def _from_json(name: str, value: Any) -> Any:
    return getattr(torch, value) if name == "dtype" and isinstance(value, str) else value


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _check_ending(name: str) -> None:
    if Path(name).suffix.lower() in ARRAYS:
        raise UserError(f"{name!r} is a file of an array, not a network; give it with --matrix")
    if Path(name).suffix.lower() in _PICKLES:
        raise UserError(f"{name!r} is a pickle, which could run code; write the network with mnemoscope.nn.save")
