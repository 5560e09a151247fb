"""A paragraph of methods that can be pasted into a paper."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.core.references import reference
from mnemoscope.nn.parameters import COUNTED
from mnemoscope.profiles.rows import Row, is_done, label
from mnemoscope.profiles.section import Part, parts

__all__ = ["methods"]


def methods(subjects: Sequence[Row], references: Sequence[Row], about_references: str) -> str:
    """Return the paragraph: what was measured, with which weights, seeds and versions, beside what."""
    made = subjects[0]["environment"]
    done = [each for each in parts() if any(is_done(row, each.name) for row in subjects)]
    titles = {"python": "Python", "torch": "PyTorch", "numpy": "NumPy", "scipy": "SciPy"}
    versions = ", ".join(f"{title} {made[name]}" for name, title in titles.items())
    sentences = [
        f"Memory profiles were computed with Mnemoscope {made['mnemoscope']} ({versions}) in float64.",
        *(_subject(row) for row in subjects),
        f"Measured were: {'; '.join(_named(each, subjects) for each in done)}." if done else "",
        f"Numbers of parameters are {COUNTED}.",
        about_references if references else "",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _subject(row: Row) -> str:
    network = row["network"]
    sizes = {"hidden_size": "hidden size", "input_size": "input size", "num_layers": "layers"}
    said = ", ".join(f"{words} {network[name]}" for name, words in sizes.items() if network.get(name))
    options = ", ".join(f"{name} = {value}" for name, value in network["options"].items())
    inside = "; ".join(part for part in (said, options) if part)
    what = f"{label(row)} ({inside})" if inside else label(row)
    seeds = row["settings"]["seeds"]
    if network["weights"] == "trained":
        return f"{what} was measured with its own weights, seed {seeds[0]} drawing the inputs."
    if len(seeds) == 1:
        return f"{what} was measured with freshly initialised weights, seed {seeds[0]}."
    return (
        f"{what} was measured with freshly initialised weights at seeds {', '.join(map(str, seeds))}; values are means "
        "over seeds with 95% intervals of Student's t."
    )


def _named(part: Part, subjects: Sequence[Row]) -> str:
    cited = dict.fromkeys(reference(key).short for key in part.cited(subjects))
    return f"{part.title} ({'; '.join(cited)})" if cited else part.title
