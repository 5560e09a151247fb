"""`profile` and `compare`: what a person comes for."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mnemoscope.core.errors import expected
from mnemoscope.core.files import writable
from mnemoscope.core.result import plain
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.construction import DEFAULT_SIZES
from mnemoscope.profiles.atlas.references import about, specs_like, stored
from mnemoscope.profiles.comparison import differences
from mnemoscope.profiles.page import build_page, keyed
from mnemoscope.profiles.results import Store, beside
from mnemoscope.profiles.rows import Row
from mnemoscope.profiles.runner import Runner
from mnemoscope.profiles.settings import Settings
from mnemoscope.profiles.subject import python_call
from mnemoscope.profiles.summary import lines
from mnemoscope.report import Page, Statement

__all__ = ["Profile", "Work", "compare", "profile"]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The memory profile of one network, or of several side by side.

    Attributes
    ----------
    rows
        What was measured: one row, plain JSON, per network.
    references
        Rows of established networks with about as many parameters.
    verdict
        What the numbers say, in plain words.
    interrupted
        Whether somebody stopped the work before its end.
    command
        What makes it again.
    about_references
        Where the references come from.
    failed
        Names of the parts that failed, which is a fault of the network's code or of ours.
    """

    rows: tuple[Row, ...]
    references: tuple[Row, ...] = ()
    verdict: tuple[Statement, ...] = ()
    interrupted: bool = False
    command: str = ""
    about_references: str = ""
    failed: tuple[str, ...] = ()

    @property
    def page(self) -> Page:
        """The page, as data."""
        return build_page(
            self.rows,
            self.references,
            self.verdict,
            command=self.command,
            about_references=self.about_references,
        )

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the page: one file, which needs nothing else."""
        from mnemoscope.report import write

        write(self.page, Path(path))
        return Path(path)

    def export(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write every figure as SVG and PDF, every table as CSV and LaTeX, the methods and the references."""
        from mnemoscope.report import export

        return list(export(self.page, Path(folder)))

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON: one network's row, or all of several under ``profiles``."""
        rest = {
            "references": list(self.references),
            "verdict": plain([asdict(statement) for statement in self.verdict]),
            "about_references": self.about_references,
            "interrupted": self.interrupted,
        }
        if len(self.rows) == 1:
            return {**self.rows[0], **rest}
        several = {"profiles": list(self.rows), "differences": differences(self.rows)}
        return {"schema": "mnemoscope.comparison/1", **several, **rest}

    def __str__(self) -> str:
        return "\n".join(lines(self.rows, self.references, self.verdict))

    def __repr__(self) -> str:
        return f"<Profile of {', '.join(row['label'] for row in self.rows)}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def profile(
    network: Any,
    hidden_size: int | None = None,
    *,
    input_size: int | None = None,
    num_layers: int | None = None,
    options: Mapping[str, Any] | None = None,
    quick: bool = False,
    seed: int = 0,
    seeds: int | None = None,
    budget: float | None = None,
    train_minutes: float | None = None,
    fresh: bool = False,
    html: str | os.PathLike[str] | None = None,
    **more: Any,
) -> Profile:
    """Measure what a network remembers, and set it beside established networks with as many parameters.

    Parameters
    ----------
    network
        A registry name, ``file.py:Class`` (which runs the file), ``file.safetensors``, a class or function that builds
        one, or any module, which `mnemoscope.adapt` understands. A module and a saved network are measured with
        their own weights, all others with freshly initialised ones at several seeds.
    hidden_size, input_size, num_layers
        Sizes of a network that is built; by default 64 units, one input, one layer.
    options, more
        Further arguments of its constructor, such as ``rank=8``.
    quick
        A first look within seconds.
    seed, seeds
        The first seed, and how many sets of weights; by default 5, or 3 for a quick look.
    budget
        Seconds that measuring may take. What it does not suffice for is listed.
    train_minutes
        Also train it on five tasks, for so long in all.
    fresh
        Measure the references too, at exactly as many parameters, instead of taking them from the table.
    html
        Where to write the page; results are then kept beside it, and taken up again.

    Returns
    -------
    Profile

    Examples
    --------
    >>> import mnemoscope as ms
    >>> found = ms.profile("rnn", hidden_size=8, quick=True)  # doctest: +SKIP
    >>> found.to_html("rnn.html")  # doctest: +SKIP
    """
    chosen = {**(options or {}), **more}
    spec = NetworkSpec(network, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers, options=chosen)
    settings = Settings(quick=quick, seed=seed, seeds=seeds, budget=budget, train_minutes=train_minutes)
    return _profiled([spec], settings, fresh, html)


def compare(*networks: Any, quick: bool = False, seed: int = 0, seeds: int | None = None, **more: Any) -> Profile:
    """Profile several networks side by side: each a name, file, class or module, or a `NetworkSpec`."""
    if len(networks) < 2:
        raise expected("compare", "called with at least two networks", list(networks))
    own: dict[str, int] = {name: more.pop(name) for name in DEFAULT_SIZES if name in more}
    budget, fresh, html = more.pop("budget", None), more.pop("fresh", False), more.pop("html", None)
    minutes = more.pop("train_minutes", None)
    specs = [each if isinstance(each, NetworkSpec) else _spec(each, own, more) for each in networks]
    return _profiled(specs, Settings(quick, seed, seeds, budget, minutes), fresh, html)


def _spec(network: Any, sizes: Mapping[str, Any], options: Mapping[str, Any]) -> NetworkSpec:
    """Describe one of several networks: those with weights of their own have their sizes."""
    bare = NetworkSpec(network)
    return bare if bare.trained and not options else NetworkSpec(network, **sizes, options=options)


def _profiled(specs: Sequence[NetworkSpec], settings: Settings, fresh: bool, html: Any) -> Profile:
    if html is not None:
        writable(Path(html))
    store = Store(None if html is None else beside(html))
    work = Work(specs, settings, store, fresh=fresh)
    found = work.finish(work.runner.run(), python_call(specs, settings, fresh))
    if found.interrupted and html is None:
        raise KeyboardInterrupt
    if html is not None:
        found.to_html(html)
    return found


class Work:
    """Networks and what they are set beside, ready to be measured: everything that can be wrong is found before that.

    Parameters
    ----------
    specs
        What the profile is about.
    settings
        How much to do.
    store
        Where results are kept.
    fresh
        Measure the references too.
    """

    def __init__(self, specs: Sequence[NetworkSpec], settings: Settings, store: Store, *, fresh: bool = False) -> None:
        self.subjects, self.fresh = len(specs), fresh
        more = specs_like(specs[0], settings) if fresh else []
        self.runner = Runner([*specs, *more], settings, store)
        self._stored = [] if fresh else stored(self.runner.rows()[0], settings.quick)

    def finish(self, rows: Sequence[Row], command: str) -> Profile:
        """Set what was measured beside the references."""
        own = keyed(rows[: self.subjects])
        others = keyed(rows[self.subjects :] if self.fresh else self._stored, [row["key"] for row in own])
        return Profile(
            rows=tuple(own),
            references=tuple(others),
            verdict=_verdict(own, others),
            interrupted=self.runner.interrupted,
            command=command,
            about_references=about(own, others, self.fresh),
            failed=tuple(name for row in own for name, each in row["parts"].items() if each["status"] == "failed"),
        )


def _verdict(subjects: Sequence[Row], references: Sequence[Row]) -> tuple[Statement, ...]:
    from mnemoscope.profiles.verdict.statements import verdict

    found = [verdict(row, list(references)) for row in subjects]
    if len(found) > 1:  # side by side, each has its summary and what stands out
        found = [(*said[:1], *(each for each in said[1:] if each.tone != "neutral")) for said in found]
    return tuple(statement for said in found for statement in said)
