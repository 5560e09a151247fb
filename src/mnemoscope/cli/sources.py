"""What a measure is pointed at: a network by name, from a file or as it was saved, or matrices from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import torch
import typer

from mnemoscope.cli.options import named_values
from mnemoscope.core import arrays
from mnemoscope.core.arrays import read_array
from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.construction import DEFAULT_SIZES
from mnemoscope.nn.registry import NETWORKS, create

__all__ = ["LINEAR", "SIZES", "Source", "network_parameters"]

_NAMES = {"hidden": "hidden_size", "input_size": "input_size", "layers": "num_layers"}

SIZES = {flag: DEFAULT_SIZES[name] for flag, name in _NAMES.items()}
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
        "--set",
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
        spec = NetworkSpec(self.network, seed=self.seed)
        if spec.saved:
            self.refuse_sizes("a saved network has its own")
        return spec.replace(**self.sizes(), options=named_values(self.option)).build()

    def sizes(self) -> dict[str, int]:
        """Return the sizes that were given, as constructors name them, or raise for one that is none."""
        given = {flag: getattr(self, flag) for flag in _NAMES}
        return {
            _NAMES[flag]: positive_int("--" + flag.replace("_", "-"), value)
            for flag, value in given.items()
            if value is not None
        }

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
