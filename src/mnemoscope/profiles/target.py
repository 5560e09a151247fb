"""What a profile is of: a network by name, from a file, as a class, or as somebody's own module with its weights."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from mnemoscope import __version__
from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.nn.adapt import adapt
from mnemoscope.nn.building import DEFAULTS, build, is_saved
from mnemoscope.nn.options import public_class
from mnemoscope.nn.registry import NETWORKS, card
from mnemoscope.nn.storage import weights_digest
from mnemoscope.profiles.equal import parameters_of

__all__ = ["Target"]

_FLAGS = {"hidden_size": "--hidden", "input_size": "--input-size", "num_layers": "--layers"}


@dataclass(frozen=True)
class Target:
    """A network to be profiled.

    Attributes
    ----------
    what
        A name, ``FILE.py:CLASS``, ``FILE.safetensors``, a class or function that builds one, or a module.
    sizes
        Those that were given: hidden_size, input_size, num_layers.
    options
        Further arguments of the constructor.
    """

    what: Any
    sizes: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.sizes.items():
            positive_int(name, value)
        if not isinstance(self.what, str) and not callable(self.what):
            raise expected("network", "a name, a file, a class, a function that builds one, or a module", self.what)
        if self.trained and (self.sizes or self.options):
            given = next(iter({**self.sizes, **self.options}))
            flag = _FLAGS.get(given, "--set")
            raise UserError(f"{given} ({flag}) cannot be given: a network with weights of its own has its sizes")

    @property
    def trained(self) -> bool:
        """Whether it comes with weights of its own; else they are drawn anew for every seed."""
        return is_saved(self.what) or isinstance(self.what, nn.Module)

    @property
    def source(self) -> str:
        """Where it comes from, in words."""
        if isinstance(self.what, str):
            return self.what
        if isinstance(self.what, nn.Module):
            return f"a module of class {public_class(type(self.what)).__name__}, given in Python"
        return f"{getattr(self.what, '__name__', self.what)}, given in Python"

    @property
    def label(self) -> str:
        """Its short name: a registry name, a class, or a file's stem."""
        if isinstance(self.what, str):
            stem = Path(self.what).stem if is_saved(self.what) else self.what.rpartition(":")[2]
            return stem + "".join(f" {name}={value}" for name, value in self.options.items())
        made = getattr(self.what, "module", self.what) if isinstance(self.what, nn.Module) else self.what
        cls = public_class(type(made)) if isinstance(made, nn.Module) else made
        own = card(cls) if isinstance(cls, type) else None
        return own.name if own else str(getattr(cls, "__name__", cls))

    def network(self, seed: int, input_size: int | None = None) -> Any:
        """Return the network: its own weights, or those that the seed draws."""
        if isinstance(self.what, nn.Module):
            return adapt(self.what)
        sizes = self.sizes if input_size is None else {**self.sizes, "input_size": input_size}
        return build(self.what, sizes, self.options, seed)

    def facts(self, network: Any) -> dict[str, Any]:
        """Return ``row["network"]``."""
        module = getattr(network, "module", network)
        own = card(public_class(type(module)))
        return {
            "name": own.name if own else public_class(type(module)).__name__,
            "class": public_class(type(module)).__qualname__,
            "options": {
                name: value if isinstance(value, _PLAIN) else repr(value) for name, value in self.options.items()
            },
            "input_size": _whole(network, "input_size"),
            "hidden_size": _whole(network, "hidden_size"),
            "num_layers": _whole(module, "num_layers"),
            "output_size": _whole(network, "output_size"),
            "kind": getattr(network, "kind", None),
            "causal": bool(getattr(network, "causal", True)),
            "parameters": parameters_of(network),
            "state_size": _whole(network, "state_size"),
            "weights": "trained" if self.trained else "initialised",
            "source": self.source,
            "guesses": list(getattr(network, "guesses", ())),
        }

    def words(self, input_size: int | None = None) -> str | None:
        """Return the network as commands take it, with its sizes; None when no command can name it."""
        if not isinstance(self.what, str):
            return None
        if is_saved(self.what):
            return shlex.quote(self.what)
        sizes = {**self.sizes} if input_size is None else {**self.sizes, "input_size": input_size}
        sizes = {"hidden_size": DEFAULTS["hidden_size"], **sizes} if self._has_default_sizes() else sizes
        given = [f"{_FLAGS[name]} {value}" for name, value in sizes.items()]
        given += [f"--set {shlex.quote(f'{name}={value}')}" for name, value in self.options.items()]
        return " ".join([shlex.quote(self.what), *given])

    def _has_default_sizes(self) -> bool:
        return self.what in NETWORKS and getattr(NETWORKS[self.what], "kind", None) == "recurrent"

    def fingerprint(self, network: Any, quick: bool) -> str:
        """Return a hash of all that the results of one seed depend on, besides the seed."""
        known = {
            "source": self.source,
            "sizes": dict(self.sizes),
            "options": {name: repr(value) for name, value in self.options.items()},
            "weights": weights_digest(network),
            "structure": repr(network),
            "code": self._code(),
            "quick": quick,
            "versions": [__version__, torch.__version__, np.__version__],
        }
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()

    def _code(self) -> str:
        """Return a hash of the user's file, which may change between two runs."""
        where = self.what.rpartition(":")[0] if isinstance(self.what, str) else ""
        file = Path(where)
        return hashlib.sha256(file.read_bytes()).hexdigest() if where.endswith(".py") and file.is_file() else ""


_PLAIN = (bool, int, float, str, type(None))


def _whole(network: Any, name: str) -> int | None:
    try:
        found = getattr(network, name, None)
    except Exception:  # a stranger's property may fail as it likes; then there is no number
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) else None
