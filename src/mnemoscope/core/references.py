"""Bibliography: the works of ``references.bib``, which networks, measures and studies name by their keys.

>>> REFERENCES["hyland2017"].short
'Hyland and Rätsch 2017'
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from importlib.resources import files

from mnemoscope.core.errors import UserError, nearest

__all__ = ["REFERENCES", "Reference", "read_bibtex", "reference", "software"]

_VENUE = {"article": "journal", "inproceedings": "booktitle", "techreport": "institution", "misc": "howpublished"}
_ACCENTS = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u030c": "v", "\u0327": "c"}
_ENTRY = re.compile(r"@(?P<kind>\w+)\{(?P<key>\w+),\n(?P<fields>.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^ *(\w+) = \{(.*)\},$", re.MULTILINE)
_SPECIAL = {"&", "%", "$", "#", "_"}


@dataclass(frozen=True)
class Reference:
    """One published work.

    Attributes
    ----------
    key
        By which it is named: the first author's family name and the year.
    kind
        Of BibTeX entry: ``article``, ``inproceedings``, ``techreport`` or ``misc``.
    authors
        Each as ``"Family, Given"``.
    title
        Braces keep the capitals of what they enclose, as in BibTeX.
    year
        Of publication.
    venue
        The journal, the proceedings or the institution.
    series, volume, number, pages, doi, arxiv
        Where they exist.
    """

    key: str
    kind: str
    authors: tuple[str, ...]
    title: str
    year: int
    venue: str = ""
    series: str = ""
    volume: str = ""
    number: str = ""
    pages: str = ""
    doi: str = ""
    arxiv: str = ""

    @property
    def short(self) -> str:
        """Authors and year: ``Kerg et al. 2019``."""
        families = [author.partition(",")[0].strip("{}") for author in self.authors]
        names = f"{families[0]} et al." if len(families) > 2 else " and ".join(families)
        return f"{names} {self.year}"

    @property
    def sentence(self) -> str:
        """The reference as a sentence."""
        *others, last = [_given_first(author) for author in self.authors]
        authors = f"{', '.join(others)} and {last}" if others else last
        where = self.venue
        if self.volume:
            where += f" {self.volume}" + (f"({self.number})" if self.number else "")
        where += f", pp. {self.pages.replace('--', '-')}" if self.pages else ""
        title = self.title.translate({ord("{"): None, ord("}"): None})
        return ". ".join(part for part in (authors, title, where, str(self.year)) if part) + "."

    @property
    def text(self) -> str:
        """The reference as a sentence, with its DOI or its number at arXiv."""
        return f"{self.sentence[:-1]}. {self.identifier}." if self.identifier else self.sentence

    @property
    def identifier(self) -> str:
        """``doi:10.1073/..`` or ``arXiv:2102.02611``; empty where it has neither."""
        return f"doi:{self.doi}" if self.doi else f"arXiv:{self.arxiv}" if self.arxiv else ""

    @property
    def link(self) -> str:
        """Its address; empty where it has none."""
        if self.doi:
            return f"https://doi.org/{self.doi}"
        return f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else ""

    def bibtex(self) -> str:
        """Return the BibTeX entry, in ASCII."""
        # Links are read verbatim by BibTeX styles: escaping would break them.
        fields = {
            "author": _latex(" and ".join(self.authors)),
            "title": _latex(self.title),
            _VENUE[self.kind]: _latex(self.venue),
            "series": _latex(self.series),
            "volume": self.volume,
            "number": self.number,
            "pages": self.pages,
            "year": str(self.year),
            "doi": self.doi,
            "eprint": self.arxiv,
            "archiveprefix": "arXiv" if self.arxiv else "",
        }
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


def software() -> Reference:
    """Return Mnemoscope itself, in the version that is used, as CITATION.cff has it.

    Examples
    --------
    >>> print(software().bibtex().splitlines()[1])
      author = {{The Mnemoscope authors}},
    """
    from mnemoscope import __version__

    title = "{Mnemoscope}: an instrument that shows how much a recurrent network can remember and express"
    authors = ("{The Mnemoscope authors}",)  # in braces: BibTeX takes it for one name
    return Reference("mnemoscope", "misc", authors, title, 2026, venue=f"Software, version {__version__}")


def reference(key: str) -> Reference:
    """Return the reference filed under `key`, or raise with the nearest key there is."""
    if key not in REFERENCES:
        near = nearest(key, REFERENCES)
        raise UserError(f"there is no reference {key!r}" + (f"; did you mean {near!r}?" if near else ""))
    return REFERENCES[key]


def _given_first(author: str) -> str:
    family, _, given = author.strip("{}").partition(", ")
    return f"{given} {family}" if given else family


def _latex(text: str) -> str:
    return "".join(_latex_letter(letter) for letter in unicodedata.normalize("NFC", text))


def _latex_letter(letter: str) -> str:
    if letter.isascii():
        return f"\\{letter}" if letter in _SPECIAL else letter
    parts = unicodedata.normalize("NFD", letter)
    base, mark = parts[0], parts[1:]
    if mark not in _ACCENTS:
        raise ValueError(f"no BibTeX form is known for {letter!r}")
    accent = _ACCENTS[mark]
    inner = f"\\{base}" if base in "ij" else base  # dotless, so that the accent takes the place of the dot
    return f"{{\\{accent}{{{inner}}}}}"


def read_bibtex(text: str) -> dict[str, Reference]:
    r"""Return the works of a BibTeX file by their keys; each field stands on a line of its own, in braces.

    Examples
    --------
    >>> read_bibtex("@misc{a2000,\n  author = {Doe, Jane},\n  title = {T},\n  year = {2000},\n}")["a2000"].short
    'Doe 2000'
    """
    found: dict[str, Reference] = {}
    for part in re.split(r"^(?=@)", text, flags=re.MULTILINE)[1:]:
        entry = _ENTRY.match(part)
        if entry is None or entry["key"] in found:
            raise ValueError(f"a bibliography has entries with keys that differ, got {part.splitlines()[0]!r}")
        found[entry["key"]] = _read(entry)
    return found


def _read(entry: re.Match[str]) -> Reference:
    fields = dict(_FIELD.findall(entry["fields"]))
    kind = entry["kind"]
    return Reference(
        key=entry["key"],
        kind=kind,
        authors=tuple(fields.pop("author").split(" and ")),
        title=fields.pop("title"),
        year=int(fields.pop("year")),
        venue=fields.pop(_VENUE[kind], ""),
        arxiv=fields.pop("eprint", ""),
        **fields,
    )


REFERENCES: dict[str, Reference] = read_bibtex(
    (files("mnemoscope.core") / "references.bib").read_text(encoding="utf-8")
)
"""Every reference by its key, from ``references.bib``. A package with networks of its own adds its papers here."""
