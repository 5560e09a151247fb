"""Page of a profile: entries, sections, a list of what is absent, and a paragraph of methods for a paper."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from mnemoscope.core.numbers import number
from mnemoscope.core.references import REFERENCES, reference
from mnemoscope.nn.parameters import COUNTED
from mnemoscope.nn.registry import NETWORKS, card
from mnemoscope.profiles.comparison import comparative_statements, differences_section
from mnemoscope.profiles.drawing import spoken
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Estimate, Row
from mnemoscope.profiles.section import ProfileSection
from mnemoscope.report import Entry, Headline, Page, Statement

__all__ = ["build_page", "keyed"]


def keyed(rows: Sequence[Row], taken: Sequence[str] = ()) -> list[Row]:
    """Return copies of rows with labels that tell equal names apart, and keys that no two share.

    Names that are `taken` are those of the subjects: who has one of them too is called a reference.
    """
    names = Counter(row.label for row in rows)
    found, used = [], set(taken)
    for row in rows:
        size = row.network.hidden_size
        name = row.label if names[row.label] == 1 or size is None else f"{row.label} n={size}"
        name = f"{name} (reference)" if name in taken else name
        own, copy = name, 2
        while own in used:
            own, copy = f"{name} ({copy})", copy + 1
        used.add(own)
        found.append(dataclasses.replace(row, label=own, own_key=own))
    return found


def build_page(
    sections: Sequence[ProfileSection],
    subjects: Sequence[Row],
    references: Sequence[Row],
    verdict: Sequence[Statement],
    *,
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
        What the numbers say.
    command
        What makes the page again.
    about_references
        Where the references come from, in a sentence.
    """
    rows = [*subjects, *references]
    names = [row.key for row in subjects]
    several = len(subjects) > 1
    drawn = [each for one in sections if (each := one.draw(rows, names)) is not None]
    if several:
        drawn.insert(0, differences_section(sections, subjects))
    said = comparative_statements(sections, subjects) if several else ()
    return Page(
        title=" and ".join(row.label for row in subjects) if several else subjects[0].label,
        subtitle=_subtitle(subjects, about_references),
        entries=[*(_entry(row, "subject") for row in subjects), *(_entry(row, "reference") for row in references)],
        summary=_summary(sections, subjects),
        verdict=(*said, *verdict),
        sections=drawn,
        absent=absent(sections, subjects),
        methods=methods(sections, subjects, references, about_references),
        references=_cited([one for one in sections if one.name in {each.name for each in drawn}], subjects, references),
        command=command,
        facts=_facts(subjects[0]),
    )


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


def methods(
    sections: Sequence[ProfileSection], subjects: Sequence[Row], references: Sequence[Row], about_references: str
) -> str:
    """Return a paragraph for a paper: what was measured, with which weights, seeds and versions, beside what."""
    made = subjects[0].environment
    done = [each for each in sections if any(row.section(each.name).done for row in subjects)]
    titles = {"python": "Python", "torch": "PyTorch", "numpy": "NumPy", "scipy": "SciPy"}
    versions = ", ".join(f"{title} {made[name]}" for name, title in titles.items())
    own_precision = all(row.network.kind == "relational" for row in subjects)
    precision = "the networks' own precision" if own_precision else "float64"
    sentences = [
        f"Memory profiles were computed with Mnemoscope {made['mnemoscope']} ({versions}) in {precision}.",
        *(_measured(row) for row in subjects),
        f"Measured were: {'; '.join(_named(each, subjects) for each in done)}." if done else "",
        f"Numbers of parameters are {COUNTED}.",
        about_references if references else "",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _measured(row: Row) -> str:
    """Say with which weights and seeds a network was measured."""
    network = row.network
    sizes = {"hidden size": network.hidden_size, "input size": network.input_size, "layers": network.num_layers}
    said = ", ".join(f"{words} {size}" for words, size in sizes.items() if size)
    options = ", ".join(f"{name} = {value}" for name, value in network.options.items())
    inside = "; ".join(part for part in (said, options) if part)
    what = f"{row.label} ({inside})" if inside else row.label
    seeds = row.settings.seeds
    if network.trained:
        return f"{what} was measured with its own weights, seed {seeds[0]} drawing the inputs."
    if len(seeds) == 1:
        return f"{what} was measured with freshly initialised weights, seed {seeds[0]}."
    return (
        f"{what} was measured with freshly initialised weights at seeds {', '.join(map(str, seeds))}; values are means "
        "over seeds with 95% intervals of Student's t."
    )


def _named(section: ProfileSection, subjects: Sequence[Row]) -> str:
    cited = dict.fromkeys(reference(key).short for key in section.cited(subjects))
    return f"{section.title} ({'; '.join(cited)})" if cited else section.title


def _entry(row: Row, role: Literal["subject", "reference"]) -> Entry:
    network = row.network
    size = "" if network.hidden_size is None else f"n = {network.hidden_size}, "
    weights = ", its own weights" if network.trained else ""
    return Entry(key=row.key, label=row.label, role=role, detail=f"{size}{network.parameters:,} parameters{weights}")


def _subtitle(subjects: Sequence[Row], about_references: str) -> str:
    kinds = {row.network.weights for row in subjects}
    words = {"initialised": "freshly initialised weights", "trained": "weights of its own"}
    seeds = len(subjects[0].settings.seeds)
    drawn = f", {seeds} seeds" if kinds == {"initialised"} else ""
    return f"Memory profile with {' and '.join(words[kind] for kind in sorted(kinds))}{drawn}. {about_references}"


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


def _cited(sections: Sequence[ProfileSection], subjects: Sequence[Row], references: Sequence[Row]) -> tuple[str, ...]:
    """Return the keys of all that a paper has to cite: the networks' own papers, and those of the sections."""
    keys = [cited for each in sections for cited in each.cited(subjects)]
    for row in (*subjects, *references):
        own = card(NETWORKS[row.network.name]) if row.network.name in NETWORKS else None
        keys += own.references if own else ()
    return tuple(cited for cited in dict.fromkeys(keys) if cited in REFERENCES)
