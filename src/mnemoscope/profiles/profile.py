"""Profile of one network, or of several side by side: the driver, what it finds, and its reader."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from mnemoscope.core.errors import UserError, expected
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.construction import DEFAULT_SIZES
from mnemoscope.profiles.comparison import Comparison
from mnemoscope.profiles.learned import before_and_after, names_run
from mnemoscope.profiles.page import build_page
from mnemoscope.profiles.row import SCHEMA, Row
from mnemoscope.profiles.section import ProfileSection, all_sections, judged_quantities
from mnemoscope.profiles.settings import Settings
from mnemoscope.profiles.subject import python_call
from mnemoscope.profiles.summary import plain, summary
from mnemoscope.profiles.verdict import Verdict, verdict
from mnemoscope.report import Page
from mnemoscope.training import Run

__all__ = ["COMPARISON", "Profile", "compare", "profile", "read_profile"]

COMPARISON = "mnemoscope.comparison/1"
"""The version of several networks side by side in JSON."""

_WIDTH = 100
"""Columns of a profile that is printed in Python."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The memory profile of one network, or of several side by side.

    Attributes
    ----------
    rows
        What was measured of each network.
    references
        Rows of established networks with about as many parameters.
    interrupted
        Whether somebody stopped the work before its end.
    command
        What makes it again.
    about_references
        Where the references come from.
    sections
        What was measured, in the order of the page.
    """

    rows: tuple[Row, ...]
    references: tuple[Row, ...] = ()
    interrupted: bool = False
    command: str = ""
    about_references: str = ""
    sections: tuple[ProfileSection, ...] = ()

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the sections that failed, which is a fault of the network's code or of ours."""
        return tuple(name for row in self.rows for name, each in row.sections.items() if each.status == "failed")

    @cached_property
    def verdict(self) -> Verdict | None:
        """What the numbers of one network say in plain words; of several, `comparison` says it."""
        if len(self.rows) > 1:
            return None
        return verdict(self.rows[0], self.references, judged_quantities(self.sections))

    @cached_property
    def comparison(self) -> Comparison | None:
        """Several networks side by side; None of one."""
        return Comparison(self.sections, self.rows) if len(self.rows) > 1 else None

    @cached_property
    def page(self) -> Page:
        """The page, as data."""
        return build_page(
            self.sections,
            self.rows,
            self.references,
            verdict=self.verdict,
            comparison=self.comparison,
            command=self.command,
            about_references=self.about_references,
        )

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the page: one file, which needs nothing else."""
        from mnemoscope.report import write

        write(self.page, Path(path))
        return Path(path)

    def export(self, folder: str | os.PathLike[str], *, transpose: bool = False) -> list[Path]:
        """Write every figure as SVG and PDF, every table as CSV and LaTeX, the methods and the references.

        Parameters
        ----------
        folder
            Where; it is made if it is missing.
        transpose
            Whether networks are the rows of the comparison in LaTeX, instead of its columns.
        """
        from mnemoscope.report import export

        return list(export(self.page, Path(folder), transpose=transpose))

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON: one network's row, or all of several under ``profiles``."""
        rest = {
            "references": [row.to_dict() for row in self.references],
            "about_references": self.about_references,
            "interrupted": self.interrupted,
        }
        if len(self.rows) == 1:
            said = None if self.verdict is None else self.verdict.to_dict()
            return {**self.rows[0].to_dict(), "verdict": said, **rest}
        rows = [row.to_dict() for row in self.rows]
        found = self.comparison
        assert found is not None
        said = {"sentence": found.sentence, "disagreements": list(found.disagreements)}
        return {"schema": COMPARISON, "profiles": rows, "verdict": said, "differences": found.to_dict(), **rest}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the profile that `to_dict` wrote, in this version or an older one."""
        if not isinstance(document, Mapping) or document.get("schema") not in (SCHEMA, COMPARISON):
            came = document.get("schema") if isinstance(document, Mapping) else document
            raise expected("the schema of a profile", f"{SCHEMA!r} or {COMPARISON!r}", came)
        rows = document["profiles"] if document["schema"] == COMPARISON else [document]
        try:
            return cls(
                rows=tuple(map(Row.from_dict, rows)),
                references=tuple(map(Row.from_dict, document.get("references", ()))),
                interrupted=bool(document.get("interrupted", False)),
                about_references=str(document.get("about_references", "")),
                sections=tuple(all_sections()),
            )
        except (TypeError, AttributeError, KeyError) as error:
            raise UserError(f"this is not a whole profile: {type(error).__name__}: {error}") from error

    def __str__(self) -> str:
        found = summary(self.page, self.comparison, _WIDTH, simple=True)
        return "\n".join(plain("".join(piece.text for piece in line)).rstrip() for line in found)

    def __repr__(self) -> str:
        return f"<Profile of {', '.join(row.label for row in self.rows)}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """Read a profile that ``mnemoscope profile --json`` or `Profile.to_dict` wrote: its page can be drawn again.

    Examples
    --------
    >>> read_profile("rnn.json").to_html("rnn.html")  # doctest: +SKIP
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{os.fspath(path)!r} cannot be read: {' '.join(str(error).split())}") from error
    return Profile.from_dict(document)


def profile(
    network: Any,
    hidden_size: int | None = None,
    *,
    input_size: int | None = None,
    num_layers: int | None = None,
    parameters: int | None = None,
    count: str = "recurrent",
    options: Mapping[str, Any] | None = None,
    quick: bool = False,
    seed: int = 0,
    seeds: int | None = None,
    budget: float | None = None,
    full: bool = False,
    train_minutes: float | None = None,
    fresh: bool = False,
    html: str | os.PathLike[str] | None = None,
    inputs: Any = None,
    plan: str | os.PathLike[str] | None = None,
    advice: Mapping[str, Any] | None = None,
    weights: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **more: Any,
) -> Profile:
    """Measure what a network remembers, and set it beside established networks with as many parameters.

    Parameters
    ----------
    network
        A registry name, ``file.py:Class`` (which runs the file), ``file.safetensors``, a class or function that builds
        one, or any module, which `mnemoscope.adapt` understands. A module and a saved network are measured with
        their own weights, all others with freshly initialised ones at several seeds. The id or folder of a recorded
        run: its network before and after training; a `mnemoscope.training.Run`: its trained network.
    hidden_size, input_size, num_layers
        Sizes of a network that is built; by default 64 units, one input, one layer.
    parameters, count
        A number of parameters instead of a hidden size, counted as `NetworkSpec` counts.
    options, more
        Further arguments of its constructor, such as ``rank=8``.
    quick
        A first look within seconds.
    seed, seeds
        The first seed, and how many sets of weights; by default 3, and 5 with a budget or `full`.
    budget, full
        Seconds that measuring may take; by default 60 for a state of up to 1,024 numbers, 90 to 2,048 and 120 beyond,
        half of it for a quick look. What it does not suffice for is listed. `full`: as long as it takes.
    train_minutes
        Also train it on five tasks, for so long in all.
    fresh
        Measure the references too, at exactly as many parameters, instead of taking them from the table.
    html
        Where to write the page; results are then kept beside it, and taken up again.
    inputs
        Sequences of one's own that drive every measure, (time, sequences, input_size), in place of drawn ones.
    plan
        A file that says which sections are measured at which seeds, whatever time that takes: written by an earlier
        call, or by this one where it is not there.
    advice, weights
        How a stranger's module is called, and a file of its trained weights, as `NetworkSpec` takes them.
    progress
        Whether work that takes more than seconds prints a line for each part, with the time left, on standard error.

    Returns
    -------
    Profile

    Examples
    --------
    >>> import mnemoscope as ms
    >>> found = ms.profile("rnn", hidden_size=8, quick=True)  # doctest: +SKIP
    >>> found.to_html("rnn.html")  # doctest: +SKIP
    """
    if isinstance(network, str) and names_run(network):
        specs, seed = before_and_after(network)
        return _profiled(specs, Settings(quick, seed, seeds, budget, bounded=not full), fresh, html, progress)
    spec = NetworkSpec(
        network.model.layer if isinstance(network, Run) else network,
        input_size=input_size,
        hidden_size=hidden_size,
        num_layers=num_layers,
        parameters=parameters,
        count=count,
        options={**(options or {}), **more},
        advice=advice,
        weights=weights,
    )
    settings = Settings(quick, seed, seeds, budget, train_minutes, bounded=not full, inputs=inputs)
    return _profiled([spec], settings, fresh, html, progress, plan)


_SPEC = (*DEFAULT_SIZES, "parameters", "count", "advice", "weights")


def compare(*networks: Any, quick: bool = False, seed: int = 0, seeds: int | None = None, **more: Any) -> Profile:
    """Profile several networks side by side: each a name, file, class or module, or a `NetworkSpec`.

    Parameters
    ----------
    networks
        Two or more; those with weights of their own keep their sizes.
    quick, seed, seeds
        As `profile` takes them.
    more
        The other parameters of `profile`, of all networks alike: ``parameters=4000``, ``train_minutes=10``, ..

    Examples
    --------
    >>> import mnemoscope as ms
    >>> found = ms.compare("lstm", "gru", parameters=4000, quick=True)  # doctest: +SKIP
    >>> found.export("paper")  # doctest: +SKIP
    """
    if len(networks) < 2:
        raise expected("compare", "called with at least two networks", list(networks))
    own: dict[str, Any] = {name: more.pop(name) for name in _SPEC if name in more}
    budget, fresh, html = more.pop("budget", None), more.pop("fresh", False), more.pop("html", None)
    minutes, full, progress = more.pop("train_minutes", None), more.pop("full", False), more.pop("progress", True)
    inputs = more.pop("inputs", None)
    own = {"input_size": width_of(inputs), **own} if inputs is not None else own
    specs = [each if isinstance(each, NetworkSpec) else _spec(each, own, more) for each in networks]
    settings = Settings(quick, seed, seeds, budget, minutes, bounded=not full, inputs=inputs)
    return _profiled(specs, settings, fresh, html, progress)


def width_of(inputs: Any) -> int:
    """Return how many numbers a step of given sequences has: (time, sequences, width), (time, width) or (time,)."""
    shape = np.shape(inputs)
    return int(shape[-1]) if len(shape) > 1 else 1


def _spec(network: Any, sizes: Mapping[str, Any], options: Mapping[str, Any]) -> NetworkSpec:
    """Describe one of several networks: those with weights of their own have their sizes."""
    bare = NetworkSpec(network)
    return bare if bare.trained and not options else NetworkSpec(network, **sizes, options=options)


def _profiled(
    specs: Sequence[NetworkSpec], settings: Settings, fresh: bool, html: Any, progress: bool, plan: Any = None
) -> Profile:
    from mnemoscope.profiles.profiling import Profiling
    from mnemoscope.profiles.progress import Lines

    work = Profiling(specs, settings, html=html, fresh=fresh, plan=plan)
    found = work.run(python_call(specs, settings, fresh, html), Lines(work.label) if progress else None)
    if found.interrupted and html is None:
        raise KeyboardInterrupt
    return found
