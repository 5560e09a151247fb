"""Page of a profile: entries, sections, and a list of what is absent."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from mnemoscope.core.numbers import number
from mnemoscope.profiles.comparison import Comparison
from mnemoscope.profiles.drawing import spoken
from mnemoscope.profiles.methods import cited, methods
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Estimate, NetworkFacts, Row
from mnemoscope.profiles.section import ProfileSection
from mnemoscope.profiles.verdict import Verdict, scorecard
from mnemoscope.profiles.verdict.statements import listed
from mnemoscope.report import Curves, Entry, Headline, Page, Section

__all__ = ["build_page", "keyed", "read_as"]


def keyed(rows: Sequence[Row], taken: Sequence[str] = ()) -> list[Row]:
    """Return copies of rows with labels that tell equal names apart, and keys that no two share.

    Names that are `taken` are those of the subjects: who has one of them too is called a reference.
    """
    names = Counter(row.label for row in rows)
    files = Counter((row.label, _file(row)) for row in rows)
    found, used = [], set(taken)
    for row in rows:
        size, alone = row.network.hidden_size, names[row.label] == 1
        name = row.label if alone or size is None else f"{row.label} n={size}"
        if not alone and _file(row) and files[row.label, _file(row)] == 1:  # classes of one name in several files
            name = f"{row.label} of {_file(row)}"
        name = f"{name} (reference)" if name in taken else name
        own, copy = name, 2
        while own in used:
            own, copy = f"{name} ({copy})", copy + 1
        used.add(own)
        found.append(dataclasses.replace(row, label=own, own_key=own))
    return found


def _file(row: Row) -> str:
    """Return the name of the file that a network is of; empty where there is none."""
    path, colon, _ = row.network.source.rpartition(":")
    return Path(path).name if colon and path.endswith(".py") else ""


def build_page(
    sections: Sequence[ProfileSection],
    subjects: Sequence[Row],
    references: Sequence[Row],
    *,
    verdict: Verdict | None = None,
    comparison: Comparison | None = None,
    command: str,
    about_references: str,
) -> Page:
    """Return the page.

    Parameters
    ----------
    sections
        What was measured, in the order of the page.
    subjects
        Rows of what the page is about, keyed.
    references
        Rows beside them, keyed.
    verdict
        On the one subject.
    comparison
        Of several subjects.
    command
        What makes the page again.
    about_references
        Where the references come from, in a sentence.
    """
    rows = [*subjects, *references]
    names = [row.key for row in subjects]
    drawn = [each for one in sections if (each := one.draw(rows, names)) is not None]
    scores = () if verdict is None else scorecard(subjects[0], verdict)
    if comparison is not None and (grown := comparison.growth()) is not None:
        drawn.insert(0, grown)
    return Page(
        title=listed([row.label for row in subjects]) if len(subjects) < 4 else f"{len(subjects)} networks",
        subtitle=_subtitle(sections, subjects, about_references),
        entries=[*(_entry(row, "subject") for row in subjects), *(_entry(row, "reference") for row in references)],
        summary=() if scores or comparison else _summary(sections, subjects),
        read_as="" if comparison else read_as(subjects[0]),
        sentence=comparison.sentence if comparison else verdict.sentence if verdict and scores else "",
        scores=scores,
        score_note=_rests_on(sections, subjects[0], references) if scores else "",
        table=None if comparison is None else comparison.table(),
        first=_first(drawn, names) if scores or comparison else "",
        advice=comparison.disagreements if comparison else () if verdict is None else verdict.instead,
        sections=drawn,
        absent=absent(sections, subjects),
        methods=methods(sections, subjects, references, about_references),
        references=cited([one for one in sections if one.name in {each.name for each in drawn}], subjects, references),
        command=command,
        facts=_facts(subjects[0]),
    )


def read_as(row: Row) -> str:
    """Say in a line what a network was taken for, and how well its forms agree."""
    network = row.network
    if network.reading:  # a stranger's module, which was compared with the original
        return network.reading
    inputs = "" if network.input_size is None else f", {_count(network.input_size, 'input')} a step"
    state = "" if network.state_size is None else f", a state of {network.state_size:,} numbers"
    guessed = f" ({'; '.join(network.guesses[:2])})" if network.guesses else ""
    return f"read as {network.class_name}, {network.kind}{inputs}{state}{guessed}{_parity(row)}"


def _parity(row: Row) -> str:
    """Say how well the forms of a network agree: as its section found, else as a first look did."""
    entry = row.section("parity")
    told = entry.data.get("differences")
    if told:
        more = f" and {len(told) - 1} more" if len(told) > 1 else ""
        return f"; forms DIFFER: {told[0]}{more}"
    found, steps = entry.scalars.get("difference"), entry.data.get("steps")
    if found is not None and found.value is not None and steps:
        return f"; forms agree to {_rough(found.value)} over {steps} steps"
    return "" if row.network.agreement is None else f"; forms agree to {_rough(row.network.agreement)}"


def _rough(share: float) -> str:
    return "the last digit" if share == 0 else f"{share:.0e}".replace("e-0", "e-")


def _count(number: int, one: str) -> str:
    return f"{number} {one}{'' if number == 1 else 's'}"


def _seeds(sections: Sequence[ProfileSection], rows: Sequence[Row]) -> str:
    """Return at how many seeds was measured what is judged: ``3 seeds``; ``1 to 3 seeds`` where the time was short."""
    judged = [
        one for one in sections if not one.once and any(each.axis and each.axis.weights for each in one.quantities)
    ]
    found = [len(row.section(one.name).seeds) for row in rows for one in judged if row.section(one.name).done]
    least, most = (end(found, default=len(rows[0].settings.seeds)) for end in (min, max))
    return _count(most, "seed") if least == most else f"{least} to {_count(most, 'seed')}"


def _rests_on(sections: Sequence[ProfileSection], row: Row, references: Sequence[Row]) -> str:
    """Say what the scorecard rests on."""
    if row.network.given:
        own = "One set of weights, as given; the references have initial weights."
    else:
        own = f"Initial weights of {_seeds(sections, [row])}; training changes what depends on them."
    if not references:
        return own
    return (
        f"{own} Dots: {len(references)} references. Line: 95% interval by its own seeds; words rest on the scatter of "
        "all networks together, and can be surer. At most 1 in 20 clear differences is chance."
    )


def _first(drawn: Sequence[Section], names: Sequence[str]) -> str:
    """Return the name of the curve that tells most: the first one that has all subjects."""
    for section in drawn:
        for figure in section.figures if section.name != "growth" else ():
            if isinstance(figure.drawing, Curves) and {one.entry for one in figure.drawing.series} >= set(names):
                return figure.name
    return ""


def absent(sections: Sequence[ProfileSection], subjects: Sequence[Row]) -> list[tuple[str, str]]:
    """Return what was not measured, with the reason; and what a reader should know before all numbers."""
    found = []
    for row in subjects:
        before = f"{row.label}: " if len(subjects) > 1 else ""
        found += [(f"{before}note", said) for said in row.notices]
        for each in sections:
            entry = row.section(each.name)
            if not entry.done and each.concerns(row.network):
                status = "" if entry.status == "not applicable" else f"{entry.status}: "
                found.append((before + each.title, f"{status}{entry.reason}"))
    return found


def _entry(row: Row, role: Literal["subject", "reference"]) -> Entry:
    network = row.network
    size = "" if network.hidden_size is None else f"n = {network.hidden_size}, "
    weights = ", given weights" if network.given else ""
    how = f", {network.source}" if network.source.startswith("interpolated") else ""
    return Entry(
        key=row.key, label=row.label, role=role, detail=f"{size}{network.parameters:,} parameters{weights}{how}"
    )


def _subtitle(sections: Sequence[ProfileSection], subjects: Sequence[Row], about_references: str) -> str:
    """Return sizes and weights in a line, and what stands beside."""
    if len(subjects) == 1:
        sizes = _sizes(subjects[0].network)
    else:
        sizes = "; ".join(f"{row.label}: {_sizes(row.network)}" for row in subjects)
    given = {row.network.given for row in subjects}
    drawn = f"initial weights, {_seeds(sections, subjects)}"
    weights = "given weights" if given == {True} else drawn if given == {False} else ""
    return ". ".join(part for part in (", ".join(p for p in (sizes, weights) if p), about_references) if part)


def _sizes(network: NetworkFacts) -> str:
    size = "" if network.hidden_size is None else f", n = {network.hidden_size}"
    layers = f", {network.num_layers} layers" if (network.num_layers or 1) > 1 else ""
    return f"{network.parameters:,} parameters{size}{layers}"


def _summary(sections: Sequence[ProfileSection], subjects: Sequence[Row]) -> tuple[Headline, ...]:
    """Return the numbers at the top of the page: of one network several, of several networks one."""
    top = [each for one in sections for each in one.quantities if each.top]
    if len(subjects) > 1:
        shared = next((each for each in top if all(row.number(each) for row in subjects)), None)
        return () if shared is None else tuple(_headline(row, shared, f" of {row.label}") for row in subjects)
    row = subjects[0]
    network = row.network
    size = "" if network.hidden_size is None else f" with n = {network.hidden_size}"
    own = Headline(value=f"{network.parameters:,}", unit="parameters", meaning=f"{network.class_name}{size}")
    return (own, *(_headline(row, each) for each in top if row.number(each) is not None))


def _headline(row: Row, quantity: Quantity, owner: str = "") -> Headline:
    found = row.number(quantity) or Estimate()
    between = "" if owner else spoken(found).partition(" ")[2]
    return Headline(value=number(found.value), unit=found.unit, meaning=f"{quantity.title}{owner} {between}".strip())


def _facts(row: Row) -> Mapping[str, str]:
    seeds = ", ".join(map(str, row.settings.seeds))
    return {"seeds": seeds, **{name: str(value) for name, value in row.environment.items()}}
