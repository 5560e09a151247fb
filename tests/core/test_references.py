"""The bibliography: complete for the networks, and BibTeX that parses."""

import dataclasses
import re
import unicodedata
from pathlib import Path

import pytest

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.references import REFERENCES, Reference, read_bibtex, reference, software

ENTRY = "@misc{a2000,\n  author = {Doe, Jane},\n  title = {The {T} of it},\n  year = {2000},\n}\n"

# What BibTeX's standard styles ask of an entry.
NEEDED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "techreport": {"author", "title", "institution", "year"},
    "misc": {"author", "title", "year"},
}


def parse_bibtex(text):
    """Read one entry as BibTeX does: values in braces, which must balance."""
    kind, key, body = re.fullmatch(r"@(\w+)\{(\w+),\n(.*)\n\}", text, re.DOTALL).groups()
    fields, place = {}, 0
    while place < len(body):
        head = re.compile(r"\s*(\w+) = \{").match(body, place)
        assert head, body[place:]
        place, depth = head.end(), 1
        start = place
        while depth:
            if body[place] in "{}" and body[place - 1] != "\\":
                depth += 1 if body[place] == "{" else -1
            place += 1
        assert head[1] not in fields
        fields[head[1]] = body[start : place - 1]
        assert body[place : place + 1] == ","
        place += 1
    return kind, key, fields


def plain(latex):
    """Undo the escapes for accents, so that names can be compared."""
    accents = {"'": "\u0301", '"': "\u0308", "v": "\u030c", "c": "\u0327"}
    latex = re.sub(r"\{\\(['\"vc])\{\\?(\w)\}\}", lambda m: m[2] + accents[m[1]], latex)
    return re.sub(r"\\([&%$#_])", r"\1", latex)


def test_every_bibtex_parses_and_is_complete(every):
    every(REFERENCES, parses_and_is_complete)


def parses_and_is_complete(entry):
    text = entry.bibtex()
    assert text.isascii()
    kind, key, fields = parse_bibtex(text)
    assert (kind, key) == (entry.kind, entry.key)
    assert NEEDED[kind] <= set(fields)
    assert all(fields.values())
    authors = unicodedata.normalize("NFC", plain(fields["author"]))
    assert tuple(authors.split(" and ")) == entry.authors
    assert plain(fields["title"]) == entry.title
    assert fields["year"] == str(entry.year)
    # Nothing but a link may have a character that TeX reads as a command or as mathematics.
    for name in set(fields) - {"doi", "eprint"}:
        assert not re.search(r"(?<!\\)[&%$#_~^]", fields[name]), f"{name} = {fields[name]}"


def test_all_fields_have_their_form(every):
    every(REFERENCES, has_its_form)


def has_its_form(entry):
    family = re.sub(r"\W", "", entry.authors[0].split(",")[0].split("-")[0]).lower()
    assert entry.key.startswith(f"{family}{entry.year}")
    assert all(re.fullmatch(r"[^,{}]+, [^,{}]+", author) for author in entry.authors)
    assert re.fullmatch(r"(\d+--\d+|Article \d+)?", entry.pages)
    if "--" in entry.pages:
        first, last = map(int, entry.pages.split("--"))
        assert 0 < first < last
    assert re.fullmatch(r"(10\.\d{4,}/\S+)?", entry.doi)
    assert re.fullmatch(r"(\d{4}\.\d{4,5})?", entry.arxiv)
    assert entry.title.count("{") == entry.title.count("}")
    # An arXiv number says the month of submission, which does not come after publication.
    assert not entry.arxiv or 2000 + int(entry.arxiv[:2]) <= entry.year


def test_identifiers_are_unique():
    for name in ("key", "doi", "arxiv", "title"):
        values = [getattr(entry, name) for entry in REFERENCES.values() if getattr(entry, name)]
        assert len(values) == len(set(values)), name


def test_every_card_cites_what_the_bibliography_has():
    cited = {name: set(ms.nn.get(name).card.references) for name in ms.nn.names()}
    assert not {name: keys for name, keys in cited.items() if not keys or keys - set(REFERENCES)}


@pytest.mark.parametrize(
    ("key", "short"),
    [
        ("elman1990", "Elman 1990"),
        ("hochreiter1997", "Hochreiter and Schmidhuber 1997"),
        ("kerg2019", "Kerg et al. 2019"),
        ("cho2014", "Cho et al. 2014"),
    ],
)
def test_short_form(key, short):
    assert REFERENCES[key].short == short


def test_text():
    assert REFERENCES["hochreiter1997"].text == (
        "Sepp Hochreiter and Jürgen Schmidhuber. Long Short-Term Memory. Neural Computation 9(8), pp. 1735-1780. "
        "1997. doi:10.1162/neco.1997.9.8.1735."
    )
    assert REFERENCES["le2015"].text == (
        "Quoc V. Le, Navdeep Jaitly and Geoffrey E. Hinton. A Simple Way to Initialize Recurrent Networks of Rectified "
        "Linear Units. 2015. arXiv:1504.00941."
    )
    assert "{" not in REFERENCES["kerg2019"].text


def test_bibtex_whole():
    assert REFERENCES["elman1990"].bibtex() == (
        "@article{elman1990,\n"
        "  author = {Elman, Jeffrey L.},\n"
        "  title = {Finding Structure in Time},\n"
        "  journal = {Cognitive Science},\n"
        "  volume = {14},\n"
        "  number = {2},\n"
        "  pages = {179--211},\n"
        "  year = {1990},\n"
        "  doi = {10.1207/s15516709cog1402_1},\n"
        "}"
    )


def test_escapes():
    entry = Reference("a2000", "misc", ("Soljačić, Marín",), "50% of A & B_1, #2 for $3 by Ç", 2000)
    assert r"author = {Solja{\v{c}}i{\'{c}}, Mar{\'{\i}}n}," in entry.bibtex()
    assert r"title = {50\% of A \& B\_1, \#2 for \$3 by {\c{C}}}," in entry.bibtex()


def test_a_letter_without_bibtex_form_is_refused_and_not_dropped():
    with pytest.raises(ValueError, match="'Ø'"):
        Reference("a2000", "misc", ("Ørsted, Sørøn",), "T", 2000).bibtex()


def test_lookup():
    assert reference("kerg2019") is REFERENCES["kerg2019"]
    with pytest.raises(UserError, match="^there is no reference 'kerg2018'; did you mean 'kerg2019'"):
        reference("kerg2018")
    with pytest.raises(UserError, match="^there is no reference 'zzzzzzzz'$"):
        reference("zzzzzzzz")


def test_what_is_no_entry_is_refused():
    for text in ("@misc{a2000\n}", "@misc{,\n}", ENTRY + ENTRY):
        with pytest.raises(ValueError, match="a bibliography has entries with keys that differ"):
            read_bibtex(text)
    assert read_bibtex("% a comment\n" + ENTRY)["a2000"].title == "The {T} of it"


def test_references_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        REFERENCES["kerg2019"].year = 2020


def test_mnemoscope_itself_is_what_the_citation_file_says():
    cited = (Path(__file__).parents[2] / "CITATION.cff").read_text()
    entry = software()
    assert f"version: {ms.__version__}" in cited
    assert ms.__version__ in entry.venue
    assert f"name: {entry.short.removesuffix(' 2026')}" in cited
    assert parse_bibtex(entry.bibtex())[2]["author"] == "{The Mnemoscope authors}"
    assert entry.sentence.startswith("The Mnemoscope authors. Mnemoscope: an instrument")
