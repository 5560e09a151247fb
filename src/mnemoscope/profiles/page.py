"""The page of a profile: rows become entries, sections, a list of what is absent, and a paragraph of methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from mnemoscope.core.numbers import number
from mnemoscope.core.references import REFERENCES
from mnemoscope.nn.registry import NETWORKS, card
from mnemoscope.profiles.comparison import comparative_statements, differences_section
from mnemoscope.profiles.drawing import spoken
from mnemoscope.profiles.methods import methods
from mnemoscope.profiles.rows import Row, key, label, part, scalar
from mnemoscope.profiles.section import parts
from mnemoscope.report import Entry, Headline, Page, Section, Statement

__all__ = ["build_page", "keyed"]

_SUMMARY = (
    ("fisher", "total", "total Fisher memory"),
    ("fisher", "half_life", "Fisher half-life"),
    ("capacity", "linear", "linear memory capacity"),
    ("gradients", "rate", "gradient rate, backwards"),
)


def keyed(rows: Sequence[Row], taken: Sequence[str] = ()) -> list[Row]:
    """Return copies of rows with labels that tell equal names apart, and keys that no two share.

    Names that are `taken` are those of the subjects: who has one of them too is called a reference.
    """
    names = Counter(label(row) for row in rows)
    found, used = [], set(taken)
    for row in rows:
        size = row["network"]["hidden_size"]
        name = label(row) if names[label(row)] == 1 or size is None else f"{label(row)} n={size}"
        name = f"{name} (reference)" if name in taken else name
        own, copy = name, 2
        while own in used:
            own, copy = f"{name} ({copy})", copy + 1
        used.add(own)
        found.append({**row, "label": own, "key": own})
    return found


def build_page(
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
    names = [key(row) for row in subjects]
    several = len(subjects) > 1
    sections = [] if not several else [differences_section(subjects)]
    for each in parts():
        section = each.section(rows, names)
        if section is not None:
            sections.append(section)
    return Page(
        title=" and ".join(map(label, subjects)) if several else label(subjects[0]),
        subtitle=_subtitle(subjects, about_references),
        entries=[*(_entry(row, "subject") for row in subjects), *(_entry(row, "reference") for row in references)],
        summary=_summary(subjects),
        verdict=(*(comparative_statements(subjects) if several else ()), *verdict),
        sections=sections,
        absent=absent(subjects),
        methods=methods(subjects, references, about_references),
        references=_cited(subjects, references, sections),
        command=command,
        facts=_facts(subjects[0]),
    )


def absent(subjects: Sequence[Row]) -> list[tuple[str, str]]:
    """Return what was not measured, with the reason; and what a reader should know before all numbers."""
    found = []
    for row in subjects:
        before = f"{label(row)}: " if len(subjects) > 1 else ""
        found += [(f"{before}note", said) for said in row.get("notices", ())]
        for each in parts():
            entry = part(row, each.name)
            if entry["status"] != "done":
                status = "" if entry["status"] == "not applicable" else f"{entry['status']}: "
                found.append((before + each.title, f"{status}{entry['reason']}"))
    return found


def _entry(row: Row, role: str) -> Entry:
    network = row["network"]
    size = "" if network["hidden_size"] is None else f"n = {network['hidden_size']}, "
    weights = ", its own weights" if network["weights"] == "trained" else ""
    detail = f"{size}{network['parameters']:,} parameters{weights}"
    return Entry(key=key(row), label=label(row), role="subject" if role == "subject" else "reference", detail=detail)


def _subtitle(subjects: Sequence[Row], about_references: str) -> str:
    kinds = {row["network"]["weights"] for row in subjects}
    words = {"initialised": "freshly initialised weights", "trained": "weights of its own"}
    seeds = len(subjects[0]["settings"]["seeds"])
    drawn = f", {seeds} seeds" if kinds == {"initialised"} else ""
    return f"Memory profile with {' and '.join(words[kind] for kind in sorted(kinds))}{drawn}. {about_references}"


def _summary(subjects: Sequence[Row]) -> tuple[Headline, ...]:
    if len(subjects) > 1:
        found = [(row, scalar(row, "capacity", "linear")) for row in subjects]
        return tuple(
            Headline(value=number(each["value"]), unit=each["unit"], meaning=f"linear memory capacity of {label(row)}")
            for row, each in found
            if each is not None
        )
    row = subjects[0]
    numbers = [Headline(value=f"{row['network']['parameters']:,}", unit="parameters", meaning=_identity(row))]
    for name, entry, meaning in _SUMMARY:
        each = scalar(row, name, entry)
        if each is not None and each["value"] is not None:
            between = spoken(each).partition(" ")[2]
            said = f"{meaning} {between}".strip()
            numbers.append(Headline(value=number(each["value"]), unit=each["unit"], meaning=said))
    return tuple(numbers)


def _identity(row: Row) -> str:
    network = row["network"]
    size = "" if network["hidden_size"] is None else f" with n = {network['hidden_size']}"
    return f"{network['class']}{size}"


def _facts(row: Row) -> Mapping[str, str]:
    seeds = ", ".join(map(str, row["settings"]["seeds"]))
    return {"seeds": seeds, **{name: str(value) for name, value in row["environment"].items()}}


def _cited(subjects: Sequence[Row], references: Sequence[Row], sections: Sequence[Section]) -> tuple[str, ...]:
    """Return the keys of all that a paper has to cite: the networks' own papers, and those of the parts."""
    there = {section.name for section in sections}
    keys = [cited for each in parts() if each.name in there for cited in each.cited(subjects)]
    for row in (*subjects, *references):
        name = row["network"]["name"]
        own = card(NETWORKS[name]) if name in NETWORKS else None
        keys += own.references if own else ()
    return tuple(cited for cited in dict.fromkeys(keys) if cited in REFERENCES)
