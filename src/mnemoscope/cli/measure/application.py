"""Application of a measure: to a network by name, from a file or as it was saved, or to matrices from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import torch
import typer

from mnemoscope.cli.advice import ADVICE_OPTIONS
from mnemoscope.cli.options import Option, named_values, options_of, size_of
from mnemoscope.core import arrays
from mnemoscope.core.arrays import read_array
from mnemoscope.core.docs import REQUIRED, Argument, function_arguments
from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.core.result import Result
from mnemoscope.measures import MEASURES, Measure
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.construction import DEFAULT_SIZES
from mnemoscope.nn.linear_system import LinearSystem
from mnemoscope.nn.registry import NETWORKS, create

__all__ = [
    "LINEAR",
    "Source",
    "apply",
    "apply_to_network",
    "linear_files",
    "measure_options",
    "network_function",
    "network_parameters",
    "no_network",
    "reason_against",
    "run_parameters",
    "takes_nothing",
    "takes_runs",
]

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
        "hidden": "Hidden size n; of matrices as 15,15.",
        "input_size": "Numbers per step of the input, d; of matrices and images as 5,5.",
        "layers": "Layers.",
    }
    sizes = {
        name: (
            Annotated[
                str | None,
                typer.Option(
                    "--" + name.replace("_", "-"),
                    help=f"{meaning} Default: {SIZES[name]}.",
                    metavar="N|N,N",
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
    budget = typer.Option(
        "--parameters",
        help="Instead of --hidden: so many, as --count says.",
        show_default=False,
        rich_help_panel=_PANEL,
    )
    count = typer.Option(
        "--count",
        help="What --parameters counts: recurrent, all, published.",
        show_default=False,
        rich_help_panel=_PANEL,
    )
    return {
        "network": (Annotated[str | None, argument], None),
        **sizes,
        "parameters": (Annotated[int | None, budget], None),
        "count": (Annotated[str | None, count], None),
        "option": (Annotated[list[str] | None, option], None),
        **ADVICE_OPTIONS,
    }


def linear_files(files: Mapping[str, list[str]], given: dict[str, Any]) -> dict[str, list[str]]:
    """Return the files of a linear network: beside W, ``--output`` is that of C and no advice on a module."""
    if "matrix" not in files or "output" in files or not given.get("output"):
        return dict(files)
    return {**files, "output": [given.pop("output")]}


def run_parameters() -> dict[str, tuple[Any, Any]]:
    """Return annotation and default of the arguments by which a command takes a run."""
    words = "The folder of a run, its id or a beginning of it, as `mnemoscope runs` lists them."
    argument = typer.Argument(metavar="RUN", help=words, show_default=False)
    trust = typer.Option("--trust", help="Run the code of the file that the run's network comes from.")
    return {"network": (Annotated[str | None, argument], None), "trust": (Annotated[bool, trust], False)}


def takes_runs(entry: Measure) -> bool:
    """Say whether a measure takes the networks at the checkpoints of a run."""
    return entry.kinds == ("run",)


def _of_run(entry: Measure, source: Source, given: Mapping[str, Any]) -> Result:
    """Compute a measure of the networks at the checkpoints of a run."""
    from mnemoscope.training.snapshots import snapshots

    found = snapshots(source.network or "", trust=source.trust)
    layers, steps = [each.model.layer for each in found], [float(each.step) for each in found]
    return entry.function(layers, **{"positions": steps, **given})


@dataclass(frozen=True)
class Source:
    """Source of a measure's numbers, as it was typed: a network or files.

    Attributes
    ----------
    network
        The name of a network, or where it is; None when files were given.
    files
        Paths by flag: ``{"matrix": ["W.npy"]}``; flags that were not given are left out.
    hidden, input_size, layers, parameters, count
        Sizes, None where they were not given.
    option
        Options of the network, each ``NAME=VALUE``.
    seed
        Draws the weights of a network that is built.
    about
        Advice on a stranger's module, and its trained weights.
    trust
        Whether the code of a file that a run's record names may be run.
    """

    network: str | None = None
    files: Mapping[str, list[str]] = field(default_factory=dict)
    hidden: str | None = None
    input_size: str | None = None
    layers: str | None = None
    parameters: int | None = None
    count: str | None = None
    option: tuple[str, ...] = ()
    seed: int = 0
    about: Mapping[str, Any] = field(default_factory=dict)
    trust: bool = False

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
        found = [read_array(path, complex_too=True) for path in self.files[flag]]
        return found[0] if len(found) == 1 else found

    def build(self, *, as_it_is: bool = False) -> Any:
        """Return the network: built with weights drawn from the seed, loaded, or made of matrices.

        A module that cannot be read as a network is returned as it is where that is asked for.
        """
        if self.network is None:
            return self._linear()
        spec = NetworkSpec(self.network, seed=self.seed, **self.about)
        if spec.saved:
            self.refuse_sizes("a saved network has its own")
        whole = spec.replace(**self.sizes(), options=named_values(self.option))
        try:
            return whole.build()
        except UserError:
            if not as_it_is or self.network in NETWORKS:
                raise
            return whole.build(as_it_is=True)

    def sizes(self) -> dict[str, Any]:
        """Return the sizes that were given, as constructors name them, or raise for one that is none."""
        given = {flag: getattr(self, flag) for flag in _NAMES}
        if self.count is not None and self.parameters is None:
            raise UserError("--count says what --parameters counts: give it beside --parameters")
        budget = {"parameters": self.parameters, "count": self.count or "recurrent"}
        return ({} if self.parameters is None else budget) | {
            _NAMES[flag]: size_of("--" + flag.replace("_", "-"), value)
            for flag, value in given.items()
            if value is not None
        }

    def _linear(self) -> Any:
        self.refuse_sizes("the sizes of a linear network are those of its matrices")
        for flag in LINEAR:
            if flag not in self.files:
                raise UserError(f"a linear network needs --matrix W and --input v, got no --{flag}")
        W = arrays.square("the matrix of --matrix", self.array("matrix"))
        v = self.array("input")
        v = arrays.matrix("the array of --input", v[:, None] if np.ndim(v) == 1 else v)
        if v.shape[0] != W.shape[0] and v.shape == (1, W.shape[0]):
            v = v.T
        if v.shape[0] != W.shape[0]:
            raise expected("the array of --input", f"of {W.shape[0]} rows, as --matrix", Description(str(v.shape)))
        if "output" in self.files:
            C = self.array("output")
            C = arrays.matrix("the array of --output", C[None] if np.ndim(C) == 1 else C)
            if C.shape[1] != W.shape[0]:
                raise expected(
                    "the array of --output", f"of {W.shape[0]} columns, as --matrix", Description(str(C.shape))
                )
            return LinearSystem.of(W, v, C)
        layer = create("linear-rnn", input_size=v.shape[1], hidden_size=len(W), bias=False, dtype=torch.float64)
        layer.weight_hh_l0 = torch.from_numpy(W)
        layer.weight_ih_l0 = torch.from_numpy(v)
        return layer

    def refuse_sizes(self, why: str) -> None:
        """Raise when sizes or options were given that have no meaning here."""
        given = {
            **{name: getattr(self, name) for name in (*SIZES, "parameters", "count")},
            "option": self.option or None,
        }
        for name, value in given.items():
            if value is not None:
                raise UserError(f"--{name.replace('_', '-')} cannot be given: {why}")


def network_function(entry: Measure) -> Callable[..., Result] | None:
    """Return what computes a measure for a network, or None when nothing does.

    Where a measure of matrices names no function for networks, that is the measure ``network-NAME``, if there is one.
    """
    if entry.of_network is not None or entry.kinds:
        return entry.of_network or entry.function
    twin = f"network-{entry.name}"
    return MEASURES[twin].function if twin in MEASURES else None


def takes_nothing(entry: Measure) -> bool:
    """Say whether a measure takes neither a network nor matrices, but numbers only."""
    return not entry.matrices and network_function(entry) is None


def measure_options(entry: Measure) -> dict[str, Option]:
    """Return the options of a measure's functions: what is neither the network, nor a matrix, nor the seed."""
    found: dict[str, Option] = {}
    for function in (entry.function, network_function(entry)):
        if function is not None:
            found = {**_function_options(entry, function), **found}
    return found


def ways(entry: Measure) -> str:
    """Say in words what a measure can be pointed at."""
    if takes_nothing(entry):
        return "nothing but its options"
    files = " ".join(f"--{flag} FILE" for flag in entry.matrices.values() or LINEAR)
    if takes_runs(entry):
        return f"a run or {files} several times"
    return f"a network or {files}" if network_function(entry) else files


def apply(entry: Measure, source: Source, given: Mapping[str, Any]) -> Result:
    """Compute a measure of what was typed, `given` the values of its options."""
    if source.network is not None and source.files:
        flags = ", ".join(f"--{flag}" for flag in source.files)
        raise UserError(f"give a network or files, not both: got {source.network!r} and {flags}")
    if takes_nothing(entry):
        return entry.function(**_keywords(entry, entry.function, source.seed, given))
    if source.network is None and not source.files:
        raise UserError(f"{entry.name} needs {ways(entry)}; mnemoscope measure {entry.name} --help says more")
    if source.network is None and entry.matrices:
        return _apply_to_matrices(entry, source, given)
    if takes_runs(entry):
        return _of_run(entry, source, given)
    against = _wrong_kind(entry, source.kind)
    if source.kind is not None and against is not None:
        raise UserError(f"{entry.name} cannot measure {source.network}: {against}")
    return apply_to_network(entry, source.build(as_it_is=entry.any_module), source.seed, given)


def apply_to_network(entry: Measure, network: Any, seed: int, given: Mapping[str, Any]) -> Result:
    """Compute a measure of a network."""
    function = network_function(entry)
    strange = entry.any_module and not hasattr(network, "kind")
    reason = None if strange else reason_against(entry, network, given)
    if reason is not None or function is None:
        raise UserError(f"{entry.name} cannot measure this network: {reason}")
    return function(network, **_keywords(entry, function, seed, given))


def reason_against(entry: Measure, network: Any, given: Mapping[str, Any]) -> str | None:
    """Say why a measure cannot be computed of a network, or None when it can be tried."""
    function = network_function(entry)
    if function is None:
        return f"it takes {'' if takes_nothing(entry) else 'matrices: '}{ways(entry)}"
    against = _wrong_kind(entry, getattr(network, "kind", None))
    if against is not None:
        return against
    if "polynomial" in entry.needs and not hasattr(network, "evaluate"):
        return "it needs a network that is a polynomial of its weights and inputs"
    if "attention" in entry.needs and not hasattr(network, "attention"):
        return "it needs a network that attends to its own past states"
    if "memory" in entry.needs and not hasattr(network, "trace"):
        return "it needs a machine with an external memory"
    missing = [o.flag for o in _function_options(entry, function).values() if o.required and o.name not in given]
    return f"it needs {' and '.join(missing)}" if missing else None


def _wrong_kind(entry: Measure, kind: str | None) -> str | None:
    if not entry.kinds or kind in entry.kinds:
        return None
    if takes_runs(entry):
        return f"it takes the checkpoints of a run: mnemoscope measure {entry.name} RUN"
    return f"it takes networks of kind {' or '.join(entry.kinds)}, and this one is of kind {kind}"


def no_network(entry: Measure) -> str:
    """Say that a measure takes no network."""
    return f"{entry.name} takes {'' if takes_nothing(entry) else 'matrices, not a network: '}{ways(entry)}"


def _apply_to_matrices(entry: Measure, source: Source, given: Mapping[str, Any]) -> Result:
    source.refuse_sizes("the sizes are those of the files")
    arguments = {argument.name: argument for argument in function_arguments(entry.function)}
    needed = [flag for name, flag in entry.matrices.items() if _is_required(arguments.get(name))]
    missing = [f"--{flag}" for flag in needed if flag not in source.files]
    missing += [o.flag for o in _function_options(entry, entry.function).values() if o.required and o.name not in given]
    if missing:
        raise UserError(f"{entry.name} of matrices also needs {' and '.join(missing)}")
    matrices = {name: source.array(flag) for name, flag in entry.matrices.items() if flag in source.files}
    keywords = _keywords(entry, entry.function, source.seed, given)
    named = {name: array for name, array in matrices.items() if name in arguments}
    # Matrices that no argument is named after stand together in the place of a network: (W, v).
    together = tuple(array for name, array in matrices.items() if name not in arguments)
    first = (together if len(together) > 1 else together[0],) if together else ()
    return entry.function(*first, **named, **keywords)


def _is_required(argument: Argument | None) -> bool:
    return argument is None or argument.default is REQUIRED


def _keywords(entry: Measure, function: Callable[..., Any], seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
    accepted = _function_options(entry, function)
    for name in given:
        if name not in accepted:
            known = ", ".join(option.flag for option in accepted.values()) or "no options"
            flag = "--" + name.replace("_", "-")
            other = "a network" if function is entry.function else "matrices"
            raise UserError(f"{flag} belongs to {entry.name} of {other}; here there are {known}")
    takes_seed = any(argument.name == "seed" for argument in function_arguments(function))
    return {**given, **({"seed": seed} if takes_seed else {})}


def _function_options(entry: Measure, function: Callable[..., Any]) -> dict[str, Option]:
    of_network = function is network_function(entry)
    first = [function_arguments(function)[0].name] if of_network else []
    return options_of(function, {"seed", *entry.matrices, *first})
