"""What a measure is pointed at: a network by name, from a file or as it was saved, or matrices from files."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import nn

from mnemoscope.cli.options import named_values
from mnemoscope.core import arrays
from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.core.files import ARRAYS, read_array
from mnemoscope.core.plugins import is_location
from mnemoscope.nn.adapt import adapt
from mnemoscope.nn.registry import NETWORKS, create, get
from mnemoscope.nn.storage import load

__all__ = ["LINEAR", "SIZES", "Source", "network_parameters"]

SIZES = {"hidden": 64, "input_size": 1, "layers": 1}
"""The sizes of a network that is named without any."""

LINEAR = {"matrix": "W of the linear network h = W h + v s, instead of NETWORK.", "input": "Its input weights v."}
"""The files that make a network, for measures of networks."""

_PANEL = "The network"


def network_parameters() -> dict[str, tuple[Any, Any]]:
    """Return annotation and default of the arguments by which a command takes a network."""
    words = (
        "A name of `mnemoscope networks`, FILE.py:CLASS (this runs the file's code), or FILE.safetensors written by "
        "mnemoscope.nn.save."
    )
    argument = typer.Argument(metavar="NETWORK", help=words, show_default=False)
    whole = {
        "hidden": "Hidden size n.",
        "input_size": "Numbers per step of the input, d.",
        "layers": "Layers.",
    }
    sizes = {
        name: (
            Annotated[
                int | None,
                typer.Option(
                    "--" + name.replace("_", "-"),
                    help=f"{meaning} Default: {SIZES[name]}.",
                    metavar="INTEGER",
                    show_default=False,
                    rich_help_panel=_PANEL,
                ),
            ],
            None,
        )
        for name, meaning in whole.items()
    }
    option = typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the network, as `mnemoscope show` lists them; may be repeated.",
        rich_help_panel=_PANEL,
    )
    return {
        "network": (Annotated[str | None, argument], None),
        **sizes,
        "option": (Annotated[list[str] | None, option], None),
    }


@dataclass(frozen=True)
class Source:
    """Where numbers come from, as it was typed.

    Attributes
    ----------
    network
        The name of a network, or where it is; None when files were given.
    files
        Paths by flag: ``{"matrix": ["W.npy"]}``; flags that were not given are left out.
    hidden, input_size, layers
        Sizes, None where they were not given.
    option
        Options of the network, each ``NAME=VALUE``.
    seed
        Draws the weights of a network that is built.
    """

    network: str | None = None
    files: Mapping[str, list[str]] = field(default_factory=dict)
    hidden: int | None = None
    input_size: int | None = None
    layers: int | None = None
    option: tuple[str, ...] = ()
    seed: int = 0

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self.network or " ".join(f"--{flag} {' '.join(paths)}" for flag, paths in self.files.items())

    @property
    def kind(self) -> str | None:
        """The kind of a network of the table, known before it is built; None for all others."""
        return getattr(NETWORKS[self.network or ""], "kind", None) if self.network in NETWORKS else None

    def array(self, flag: str) -> Any:
        """Return the array of a flag, or a list of them when it was given several times."""
        found = [read_array(path) for path in self.files[flag]]
        return found[0] if len(found) == 1 else found

    def build(self) -> Any:
        """Return the network: built with weights drawn from the seed, loaded, or made of matrices."""
        if self.network is None:
            return self._linear()
        if self.network.endswith(".safetensors"):
            self.refuse_sizes("a saved network has its own")
            return load(self.network)
        _check_ending(self.network)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return adapt(self._construct(self.network))

    def _construct(self, name: str) -> nn.Module:
        sizes = {"input_size": self.input_size, "hidden_size": self.hidden, "num_layers": self.layers}
        defaults = {"input_size": SIZES["input_size"], "hidden_size": SIZES["hidden"], "num_layers": SIZES["layers"]}
        chosen = {key: positive_int(_FLAGS[key], value) for key, value in sizes.items() if value is not None}
        options = named_values(self.option)
        if name in NETWORKS or not is_location(name):
            network: nn.Module = create(name, **{**_known(NETWORKS[name], defaults), **chosen, **options})
            return network
        return _call_factory(name, get(name), defaults, chosen, options)

    def _linear(self) -> Any:
        self.refuse_sizes("the sizes of a linear network are those of its matrices")
        for flag in ("matrix", "input"):
            if flag not in self.files:
                raise UserError(f"a linear network needs --matrix W and --input v, got no --{flag}")
        W = arrays.square("the matrix of --matrix", self.array("matrix"))
        v = self.array("input")
        v = arrays.matrix("the array of --input", v[:, None] if np.ndim(v) == 1 else v)
        if v.shape[0] != W.shape[0] and v.shape == (1, W.shape[0]):
            v = v.T
        if v.shape[0] != W.shape[0]:
            raise expected("the array of --input", f"of {W.shape[0]} rows, as --matrix", Description(str(v.shape)))
        layer = create("linear-rnn", input_size=v.shape[1], hidden_size=len(W), bias=False, dtype=torch.float64)
        layer.weight_hh_l0 = torch.from_numpy(W)
        layer.weight_ih_l0 = torch.from_numpy(v)
        return layer

    def refuse_sizes(self, why: str) -> None:
        """Raise when sizes or options were given that have no meaning here."""
        given = {**{name: getattr(self, name) for name in SIZES}, "option": self.option or None}
        for name, value in given.items():
            if value is not None:
                raise UserError(f"--{name.replace('_', '-')} cannot be given: {why}")


_FLAGS = {"input_size": "--input-size", "hidden_size": "--hidden", "num_layers": "--layers"}


def _check_ending(name: str) -> None:
    if Path(name).suffix.lower() in ARRAYS:
        raise UserError(f"{name!r} is a file of an array, not a network; give it with --matrix")
    if Path(name).suffix.lower() in (".pt", ".pth", ".pkl", ".ckpt", ".bin"):
        raise UserError(f"{name!r} is a pickle, which could run code; write the network with mnemoscope.nn.save")


def _call_factory(
    name: str, factory: Any, defaults: dict[str, int], chosen: dict[str, int], options: dict[str, Any]
) -> nn.Module:
    """Build a stranger's network: with sizes by name where it has these names, else by place, else without any."""
    if not callable(factory) or isinstance(factory, nn.Module):
        raise expected(name, "a class or a function that builds a network", factory)
    signature = inspect.signature(factory)
    known = _known(factory, defaults)
    sizes = {**defaults, **chosen}
    attempts: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {**known, **chosen, **options}),
        ((sizes["input_size"], sizes["hidden_size"]), {**_layers(chosen), **options}),
        ((), {**chosen, **options}),
    ]
    for args, keywords in attempts:
        if _binds(signature, args, keywords):
            return _built(name, factory, args, keywords)
    given = ", ".join([*chosen, *options]) or "no sizes"
    raise UserError(f"{name} cannot be built with {given}: it is called as {Path(name).name}{signature}; use --option")


def _known(factory: Any, sizes: dict[str, int]) -> dict[str, int]:
    """Return the sizes that a constructor takes by name."""
    parameters = inspect.signature(factory).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return {key: value for key, value in sizes.items() if open_ended or key in parameters}


def _layers(chosen: dict[str, int]) -> dict[str, int]:
    return {key: value for key, value in chosen.items() if key == "num_layers"}


def _binds(signature: inspect.Signature, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    try:
        signature.bind(*args, **keywords)
    except TypeError:
        return False
    return True


def _built(name: str, factory: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> nn.Module:
    try:
        made = factory(*args, **keywords)
    except UserError:
        raise
    except Exception as error:  # a stranger's constructor may fail as it likes
        raise UserError(f"{name} cannot be built: {type(error).__name__}: {error}") from error
    if not isinstance(made, nn.Module):
        raise expected(name, "a class or a function that builds a torch.nn.Module", made)
    return made
