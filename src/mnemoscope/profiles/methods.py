"""Methods of a profile: a paragraph for a paper, and the works that it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.core.references import REFERENCES, reference
from mnemoscope.nn.parameters import COUNTED
from mnemoscope.nn.registry import NETWORKS, card
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import ProfileSection
from mnemoscope.profiles.verdict.statements import listed

__all__ = ["RULES", "cited", "methods"]

RULES = ("benjamini1995", "smyth2004")
"""Works that every comparison of two networks rests on."""

_TITLES = {"python": "Python", "torch": "PyTorch", "numpy": "NumPy", "scipy": "SciPy"}


def methods(
    sections: Sequence[ProfileSection], subjects: Sequence[Row], references: Sequence[Row], about_references: str
) -> str:
    """Return a paragraph for a paper: which networks, weights, seeds and versions, what was measured and how judged.

    Parameters
    ----------
    sections
        What was asked for.
    subjects
        Rows of what the profile is about.
    references
        Rows beside them.
    about_references
        Where the references come from, in a sentence.
    """
    made = subjects[0].environment
    versions = ", ".join(f"{title} {made[name]}" for name, title in _TITLES.items())
    own_precision = all(row.network.kind == "relational" for row in subjects)
    precision = "the networks' own precision" if own_precision else "float64"
    done = [each for each in sections if any(row.section(each.name).done for row in subjects)]
    verb = "were compared" if len(subjects) > 1 else "was measured"
    networks, made_with = listed([_network(row) for row in subjects]), f"Mnemoscope {made['mnemoscope']} ({versions})"
    sentences = [
        f"{networks} {verb} with {made_with} in {precision}.",
        f"Counted are {COUNTED}.",
        *_weights(sections, subjects),
        *(_measured(each, subjects) for each in done),
        about_references if references else "",
        _compared(len(subjects) > 1) if references or len(subjects) > 1 else "",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def cited(sections: Sequence[ProfileSection], subjects: Sequence[Row], references: Sequence[Row]) -> tuple[str, ...]:
    """Return the keys of all that a paper has to cite: the networks' papers, those of what was measured, the rules."""
    keys = [key for each in sections for key in each.cited(subjects)]
    for row in (*subjects, *references):
        own = card(NETWORKS[row.network.name]) if row.network.name in NETWORKS else None
        keys += own.references if own else ()
    keys += RULES if references or len(subjects) > 1 else ()
    return tuple(key for key in dict.fromkeys(keys) if key in REFERENCES)


def _network(row: Row) -> str:
    """Return a network with its sizes and options."""
    network = row.network
    layers = network.num_layers if (network.num_layers or 1) > 1 else None
    sizes = {"hidden size": network.hidden_size, "input size": network.input_size, "layers": layers}
    facts = [f"{network.parameters:,} parameters", *(f"{words} {size}" for words, size in sizes.items() if size)]
    return f"{row.label} ({', '.join([*facts, *(f'{name} = {value}' for name, value in network.options.items())])})"


def _weights(sections: Sequence[ProfileSection], subjects: Sequence[Row]) -> list[str]:
    """Say with which weights and seeds the networks were measured, those that are alike together."""
    found = []
    for given in (False, True):
        rows = [row for row in subjects if row.network.given is given]
        if not rows:
            continue
        who = "" if len(rows) == len(subjects) else f" of {listed([row.label for row in rows])}"
        seeds = rows[0].settings.seeds
        if given:
            found.append(f"Weights{who} are those that were given; seed {seeds[0]} drew the inputs.")
            continue
        drawn = f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"seed {seeds[0]}"
        means = "; values are means over seeds with 95% intervals of Student's t" if len(seeds) > 1 else ""
        few = " (of some parts fewer seeds)" if _has_fewer(sections, rows) else ""
        found.append(f"Weights{who} were freshly initialised with {drawn}{few}, and not trained{means}.")
    return found


def _has_fewer(sections: Sequence[ProfileSection], rows: Sequence[Row]) -> bool:
    several = [each for each in sections if not each.once]
    return any(
        len(row.section(each.name).seeds) < len(row.settings.seeds)
        for row in rows
        for each in several
        if row.section(each.name).done
    )


def _measured(section: ProfileSection, subjects: Sequence[Row]) -> str:
    """Say what a section measured: its numbers, how they were found, and the sources."""
    works = dict.fromkeys(reference(key).short for key in section.cited(subjects))
    sources = f" ({'; '.join(works)})" if works else ""
    shown = [each for each in section.quantities if each.axis or each.compared or each is section.lead]
    ways: dict[str, list[str]] = {}
    for each in shown:
        if each.how:
            ways.setdefault(each.how.rstrip("."), []).append(each.title)
    notes = dict.fromkeys(note for row in subjects for note in row.section(section.name).notes[:1] if section.trains)
    said = [*notes, *(f"{_capital(listed(titles))}: {how[:1].lower()}{how[1:]}." for how, titles in ways.items())]
    if not said:
        return f"{section.title}{sources}."
    return " ".join([*said[:-1], f"{said[-1][:-1]}{sources}."])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _compared(several: bool) -> str:
    what = "Two networks differ clearly in a number" if several else "A network and a reference differ clearly"
    rules = " and ".join(reference(key).short for key in RULES)
    return (
        f"{what} where Student's t with moderated variances, on a logarithmic scale, is accepted at a false discovery "
        f"rate of 5% among all comparisons ({rules})."
    )
