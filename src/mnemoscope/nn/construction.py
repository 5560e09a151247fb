"""Call of a stranger's constructor: sizes by the meaning of its arguments, never by their place.

Every author has other words for the same sizes (`mnemoscope.nn.meanings`). What is neither a size nor optional is
filled by a value that public code gives it, which is said, or is asked for by name.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from mnemoscope.core.errors import Advised, Description, UserError, expected, nearest
from mnemoscope.core.loading import advice_on, notes_of, stranger, where_in
from mnemoscope.core.standins import missing_base
from mnemoscope.nn.configuration import Configuration, configuration_class, fields_of, reads_of
from mnemoscope.nn.meanings import DEFAULT_SIZES, Sizes, is_configuration, meaning_of, suggested, usual_value

__all__ = ["DEFAULT_SIZES", "Built", "construct", "known_sizes", "shaped_sizes"]


_TRIED = 32
"""Sets of values for arguments without a known meaning that are tried."""


class Unbuilt(UserError):
    """A stranger's constructor raised an error of its own."""


@dataclass(frozen=True)
class Built:
    """A stranger's network as its constructor made it.

    Attributes
    ----------
    module
        The network.
    notes
        Which arguments were filled in for the user, and what else was done, in plain words.
    input_size
        The width of its input, where its constructor was told one.
    """

    module: nn.Module
    notes: tuple[str, ...] = ()
    input_size: Any = None


def construct(name: str, factory: Any, chosen: Mapping[str, Any], options: Mapping[str, Any]) -> Built:
    """Build a stranger's network: sizes go to the arguments that mean them, options to those of their names."""
    if not callable(factory) or isinstance(factory, nn.Module):
        raise expected(name, "a class or a function that builds a network", factory)
    signature = _signature(name, factory)
    if isinstance(factory, type):
        _check_class(name, factory)
    sizes = {**DEFAULT_SIZES, **chosen}
    try:
        return _Call(name, factory, signature, Sizes(sizes), chosen, options).build()
    except Unbuilt:
        # Some networks add their input to their state: its width is then that of the state.
        if "input_size" in {**chosen, **options} or sizes["input_size"] == sizes["hidden_size"]:
            raise
        wide = Sizes({**sizes, "input_size": sizes["hidden_size"]})
        with contextlib.suppress(UserError):
            built = _Call(name, factory, signature, wide, chosen, options).build()
            return replace(built, notes=(*built.notes, "its input is as wide as its state: it does not take 1 number"))
        raise


def known_sizes(factory: Any, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes that a constructor takes by name."""
    parameters = inspect.signature(factory).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return {key: value for key, value in sizes.items() if open_ended or key in parameters}


class _Call:
    """The arguments of one call, found one by one."""

    def __init__(
        self,
        name: str,
        factory: Any,
        signature: inspect.Signature,
        sizes: Sizes,
        chosen: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        self.name, self.factory, self.signature, self.sizes = name, factory, signature, sizes
        self.chosen = chosen
        self.options = {key: value for key, value in options.items() if "." not in key}
        self.fields = {key: value for key, value in options.items() if "." in key}
        self.places = [p for p in signature.parameters.values() if p.kind is not p.VAR_POSITIONAL]
        self.named = [p for p in self.places if p.kind is not p.VAR_KEYWORD]
        self.placed: dict[str, str] = {}
        self.notes: list[str] = []
        self.configurations: list[Configuration] = []

    def build(self) -> Built:
        """Find the arguments, call the constructor, and say what was filled in."""
        given = self._arguments()
        missing = [p.name for p in self.named if p.default is p.empty and p.name not in given]
        if missing:
            raise self._unbound(missing, given)
        width = given.get(self.placed.get("input_size", self.placed.get("both", "")))
        if not self.configurations:
            self._check_placed()
        module = _built(self.name, self.factory, self._positional(given), given)
        for configuration in self.configurations:  # a namespace knows what was read of it only now
            self.placed |= configuration.placed
            self.notes += configuration.notes
        self._check_placed()
        notes = (*notes_of(getattr(self.factory, "__module__", "")), *self.notes)
        return Built(module, notes, width)

    def _arguments(self) -> dict[str, Any]:
        if self._takes_any():
            return {**self.sizes.given, **self.options}
        known = [p.name for p in self.named]
        for option in self.options:
            if option not in known and not any(p.kind is p.VAR_KEYWORD for p in self.places):
                near = nearest(option, known)
                raise UserError(
                    f"{self.name} takes no {option!r}; " + (f"did you mean {near!r}?" if near else self._called)
                )
        found = dict(self.options)
        self.placed = self.sizes.place(self.named, found)
        found |= {
            argument: self.sizes.value(size, argument)
            for size, argument in self.placed.items()
            if self._wanted(size, argument)
        }
        if not isinstance(self.factory, type):
            found |= self._by_place(found)
        for p in self.named:
            if p.name not in found and p.default is p.empty:
                self._fill(p, found)
        return found

    def _wanted(self, size: str, argument: str) -> bool:
        """Whether a size goes to its argument: it was chosen, or nothing else fills the argument."""
        if argument in self.options:
            return False
        return size != "num_layers" or size in self.chosen or self._needed(argument)

    def _needed(self, argument: str) -> bool:
        return self.signature.parameters[argument].default is inspect.Parameter.empty

    def _takes_any(self) -> bool:
        """Whether the arguments are hidden behind ``**``: of a function, or of a class that derives from torch's."""
        if not any(p.kind is p.VAR_KEYWORD for p in self.places) or self.named:
            return False
        return not isinstance(self.factory, type) or issubclass(self.factory, nn.RNNBase | nn.RNNCellBase)

    def _by_place(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return sizes that are left for the unknown arguments of a function: a factory is (input, hidden)."""
        needed = [p.name for p in self.named if p.default is p.empty and p.name not in found]
        left = [size for size in ("input_size", "hidden_size") if size not in self.placed]
        if len(needed) != len(left) or "both" in self.placed:
            return {}
        own = dict(zip(left, needed, strict=True))
        self.placed |= own
        return {argument: self.sizes.given[size] for size, argument in own.items()}

    def _fill(self, parameter: inspect.Parameter, found: dict[str, Any]) -> None:
        name = parameter.name
        if is_configuration(name):
            own = {key.partition(".")[2]: value for key, value in self.fields.items() if key.partition(".")[0] == name}
            configuration = Configuration(self.sizes, self._class_of(parameter), own, name)
            found[name] = configuration.value
            self.configurations.append(configuration)
            return
        value = usual_value(name, self.sizes, [p.name for p in self.named])
        if value is not inspect.Parameter.empty:
            found[name] = value
            self.notes.append(f"its argument {name} was filled in: {name}={value!r}")

    def _class_of(self, parameter: inspect.Parameter) -> type | None:
        """Return the class of a configuration; without an annotation only where it has all that is read of it."""
        found = configuration_class(self.factory, parameter)
        if found is None or parameter.annotation is not parameter.empty:
            return found
        return found if reads_of(self.factory, parameter.name) <= fields_of(found) else None

    def _check_placed(self) -> None:
        """Refuse a size that was chosen and goes nowhere."""
        if self._takes_any():
            return
        same = {"input_size": "both", "hidden_size": "both"}
        lost = [size for size in self.chosen if size not in self.placed and same.get(size) not in self.placed]
        lost = [size for size in lost if not (size in same and self._is_covered())]
        if lost:
            raise UserError(f"{self.name} cannot be built with {', '.join(lost)}: {self._called}")

    def _is_covered(self) -> bool:
        """Whether the user gave a size under the constructor's own word."""
        return any(
            meaning_of(option) in ("input_size", "hidden_size", "both") for option in (*self.options, *self.fields)
        )

    def _positional(self, given: dict[str, Any]) -> tuple[Any, ...]:
        """Take out of `given` what must be given by place."""
        return tuple(given.pop(p.name) for p in self.named if p.kind is p.POSITIONAL_ONLY and p.name in given)

    def _unbound(self, missing: list[str], given: Mapping[str, Any]) -> UserError:
        """Ask for arguments by name, with values that were tried."""
        needs = f"{self.name} also needs {' and '.join(missing)}"
        choices = [suggested(self.signature.parameters[argument]) for argument in missing]
        for values in itertools.islice(itertools.product(*choices), _TRIED):
            tried = dict(zip(missing, values, strict=True))
            with contextlib.suppress(UserError):
                _built(self.name, self.factory, (), {**given, **tried})
                flags = [word for name, value in tried.items() for word in ("--set", f"{name}={value}")]
                python = ", ".join(f"{name}={value!r}" for name, value in tried.items())
                return Advised(needs, flags, python, options=tried)
        python = ", ".join(f"{argument}=.." for argument in missing)
        typed = " ".join(f"--set {argument}=.." for argument in missing)
        return UserError(
            f"{needs}, and no usual value will do ({typed} takes numbers, texts and lists); {self._called}; "
            f"{_written_by_hand(self.name, python)}"
        )

    @property
    def _called(self) -> str:
        return f"it is called as {Path(self.name).name}{self.signature}"


def shaped_sizes(name: str, network: Any, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return sizes with the shape that a network of matrices needs where one number was given.

    d inputs are a row (1, d); n hidden numbers are the matrix of n numbers that is nearest to a square, at most twice
    as wide as high. For other n the line that is raised says what to give.
    """
    usual = getattr(network, "counted_at", {})
    pairs = {key for key, size in usual.items() if isinstance(size, tuple) and len(size) == 2}
    found = dict(sizes)
    if "input_size" in pairs and isinstance(found.get("input_size"), int):
        found["input_size"] = (1, found["input_size"])
    count = found.get("hidden_size")
    if "hidden_size" in pairs and isinstance(count, int):
        rows = max(p for p in range(1, math.isqrt(count) + 1) if count % p == 0)
        if count > 2 * rows * rows:
            side = max(2, round(math.sqrt(count)))
            wanted = f"rows and columns of a matrix, such as --hidden {side},{side} (in Python ({side}, {side}))"
            raise expected(f"hidden_size of {name}", wanted, count)
        found["hidden_size"] = (rows, count // rows)
    return found


def _written_by_hand(name: str, python: str) -> str:
    return (
        f"mnemoscope adapt {shlex.quote(name)} --write my_adapter.py writes a file to give them in (in Python {python})"
    )


def _signature(name: str, factory: Any) -> inspect.Signature:
    try:
        return inspect.signature(factory)
    except (TypeError, ValueError) as error:
        raise expected(name, "a class or a function whose arguments are known", factory) from error


def _check_class(name: str, cls: type) -> None:
    """Refuse a class that builds no network, whatever its arguments are."""
    if (package := missing_base(cls)) is not None:
        raise UserError(
            f"{name} derives from a class of {package}, which cannot be imported here: pip install {package}"
        )
    if inspect.isabstract(cls):
        left = ", ".join(sorted(cls.__abstractmethods__))  # type: ignore[attr-defined]
        raise UserError(f"{name} is abstract: it leaves {left} to its subclasses; name one of them")
    if not issubclass(cls, nn.Module):
        raise expected(
            name, "a torch.nn.Module or a function that builds one", Description(f"the class {cls.__name__}")
        )


def _built(name: str, factory: Any, places: tuple[Any, ...], keywords: dict[str, Any]) -> nn.Module:
    try:
        with stranger(f"the constructor of {name}"):
            made = factory(*places, **keywords)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # a stranger's constructor may fail as it likes
        text = " ".join(str(error).split())[:300]
        reason = f"{type(error).__name__}: {text}{where_in(error, factory)}{advice_on(error)}"
        raise Unbuilt(f"{name} cannot be built: {reason}") from error
    if not isinstance(made, nn.Module):
        raise expected(name, "a class or a function that builds a torch.nn.Module", Description(repr(made)))
    return made
