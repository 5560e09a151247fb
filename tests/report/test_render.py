"""The page as text: what it lets in, what it lets run, how large it is."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.sample import HOSTILE, page

from mnemoscope.core.errors import UserError
from mnemoscope.report import (
    Column,
    Curves,
    Entry,
    Figure,
    Headline,
    Page,
    Section,
    Series,
    Statement,
    Table,
    render,
    write,
)
from mnemoscope.report.data import embedded, page_data


def data_of(text: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def everywhere(evil: str) -> Page:
    """A page with a text in every place that takes one."""
    figure = Figure(
        name="one",
        title=evil,
        drawing=Curves(series=[Series(entry=evil, x=[1, 2], y=[1, 2])], x_title=evil, y_title=evil),
        alt=evil,
        how=evil,
        command=evil,
    )
    table = Table(
        name="two", title=evil, columns=[Column(title=evil, numeric=False, unit=evil)], rows=[[evil]], note=evil
    )
    number = Headline(value=evil, unit=evil, meaning=evil)
    section = Section(
        name="all", title=evil, headline=number, text=(evil,), figures=[figure], tables=[table], notes=(evil,)
    )
    return Page(
        title=evil,
        subtitle=evil,
        entries=[Entry(key=evil, label=evil, role="subject", detail=evil)],
        summary=(number,),
        verdict=(Statement(text=evil, tone="good", confidence=evil, evidence=("all", evil)),),
        sections=[section],
        absent=[(evil, evil)],
        methods=evil,
        command=evil,
        facts={evil: evil},
    )


def _tags(text: str) -> int:
    """How many elements are opened; commands have a span for every word."""
    return len(re.findall(r"<(?!span)\w", text))


@pytest.mark.parametrize("evil", [HOSTILE, '"><b onclick=x>', "{{ 7 * 7 }}", "]]><!--", "&lt;\u2028'\x00\x1b[31m"])
def test_text_is_escaped_wherever_it_stands(evil):
    text = render(everywhere(evil))
    plain = render(everywhere("harmless"))
    # No tag more than on the same page without it.
    assert _tags(text) == _tags(plain)
    assert text.count("</script>") == 3
    assert f"<h1>{html.escape(evil, quote=False)}</h1>".replace("'", "&#39;").replace('"', "&#34;") in text
    assert data_of(text)["figures"]["one"]["title"] == evil


def test_half_of_a_surrogate_pair_does_not_break_the_file():
    assert "?" in render(dataclasses.replace(page(), title="a\ud800b", subtitle="")).encode().decode()


@given(st.text())
def test_embedded_json_cannot_leave_its_element(text):
    made = embedded({"name": text})
    assert not set("<>&\u2028\u2029") & set(made)
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        assert json.loads(made) == {"name": text}


def test_numbers_that_are_not_finite_are_named():
    values = [1.0, math.nan, math.inf, -math.inf, None, 1e-320, 1 / 3]
    figure = Figure(
        name="one",
        title="t",
        drawing=Curves(series=[Series(entry="a", x=range(7), y=values)], x_title="x", y_title="y"),
        alt="a",
        how="h",
        command="c",
    )
    made = Page(
        title="t",
        subtitle="",
        entries=[Entry(key="a", label="a", role="subject")],
        sections=[Section(name="s", title="s", figures=[figure])],
    )
    found = data_of(render(made))["figures"]["one"]["series"][0]["y"]
    assert found == [1, "nan", "inf", "-inf", None, pytest.approx(1e-320), 0.333333333]


def test_the_policy_names_exactly_the_scripts_and_the_style_that_are_there():
    text = render(page())
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])

    def digest(part: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"

    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    styles = re.findall(r"<style>(.*?)</style>", text, re.S)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == " ".join(map(digest, scripts))
    assert rules["style-src"] == " ".join(map(digest, styles))
    assert "unsafe" not in policy
    assert not re.search(
        r"""\sstyle=|\son\w+=|https?://(?!www\.w3\.org/2000/svg|doi\.org/|arxiv\.org/abs/)""",
        re.sub(r"<script.*?</script>", "", text, flags=re.S),
    )


def test_a_large_page_is_below_three_megabytes():
    entries = [Entry(key=str(k), label=f"network {k}", role="reference" if k else "subject") for k in range(12)]
    lags = list(range(500))
    figures = [
        Figure(
            name=f"figure-{i}",
            title="t",
            drawing=Curves(
                series=[Series(entry=e.key, x=lags, y=[math.exp(-0.01 * k) / 3 for k in lags]) for e in entries],
                x_title="x",
                y_title="y",
            ),
            alt="a",
            how="h",
            command="c",
        )
        for i in range(12)
    ]
    made = Page(title="t", subtitle="", entries=entries, sections=[Section(name="s", title="s", figures=figures)])
    assert 500_000 < len(render(made).encode()) < 3_000_000
    assert len(render(page()).encode()) < 200_000


def test_an_empty_page_is_a_page():
    text = render(Page(title="nothing", subtitle="", entries=[]))
    assert "<h1>nothing</h1>" in text
    assert "Verdict" not in text
    assert page_data(Page(title="nothing", subtitle="", entries=[])) == {
        "entries": [],
        "figures": {},
        "tables": {},
        "scores": [],
    }


def test_evidence_that_is_not_on_the_page_is_no_link():
    made = dataclasses.replace(page(), sections=page().sections[:1])
    text = render(made)
    assert 'href="#section-fisher"' in text
    assert 'href="#section-gradients"' not in text


def test_the_lead_of_the_verdict_stands_above_the_rest():
    text = render(page())
    lead = next(one for one in page().verdict if one.lead)
    assert text.count(lead.text) == 1
    assert text.index(lead.text) < text.index("In its favour")


def test_a_command_of_several_lines_keeps_them():
    figure = dataclasses.replace(page().sections[0].figures[0], command="first --a 1\nsecond  --b")
    made = dataclasses.replace(page(), sections=[Section(name="s", title="s", figures=[figure])])
    assert "<code>first --a 1\nsecond  --b</code>" in re.sub(r"</?span>", "", render(made))


def test_every_chart_says_how_and_by_which_command():
    text = html.unescape(re.sub(r"</?span>", "", render(page())))
    for section in page().sections:
        for figure in section.figures:
            assert figure.how in text
            assert all(line in text for line in figure.command.split("\n"))
    assert "Ganguli et al. 2008" in text
    assert "@article{ganguli2008," in text


WRONG = [
    ({"entries": [*page().entries, page().entries[0]]}, "keys of networks must differ, got 'mine' 2 times"),
    ({"entries": page().entries[1:]}, "the network of figure 'fisher-curve' must be 'rnn' or "),
    ({"sections": [*page().sections, page().sections[0]]}, "names of sections must differ, got 'fisher' 2 times"),
    ({"sections": [Section(name="A b", title="t")]}, "names of sections must be small letters and digits with"),
    ({"references": ("ganguli2009",)}, "there is no reference 'ganguli2009'; did you mean 'ganguli2008'?"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message[:30] for _, message in WRONG])
def test_what_does_not_hold_together_is_said_in_one_line(change, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        render(dataclasses.replace(page(), **change))
    assert "\n" not in str(caught.value)


def with_curve(**change) -> Page:
    series = Series(**{"entry": "mine", "x": [1, 2], "y": [1, 2], **change})
    figure = dataclasses.replace(
        page().sections[0].figures[0], drawing=Curves(series=[series], x_title="x", y_title="y")
    )
    return dataclasses.replace(page(), sections=[Section(name="s", title="s", figures=[figure])])


def test_lengths_are_checked():
    with pytest.raises(UserError, match=r"the curve 'mine' .* must be columns of one length, got 2 and 1 values"):
        render(with_curve(y=[1]))
    with pytest.raises(UserError, match="must be given by both ends, got one"):
        render(with_curve(lower=[1, 2]))
    table = Table(name="t", title="t", columns=[Column(title="a", numeric=True)], rows=[[1], [1, 2]])
    with pytest.raises(UserError, match="table 't' must be rows of 1 cells, got 2 in row 1"):
        render(dataclasses.replace(page(), sections=[Section(name="s", title="s", tables=[table])]))
    table = dataclasses.replace(table, rows=[[1]], highlight=1)
    with pytest.raises(UserError, match="the highlighted row of table 't' must be one of its rows, got 1"):
        render(dataclasses.replace(page(), sections=[Section(name="s", title="s", tables=[table])]))


def test_a_page_is_written_whole_over_an_older_one(tmp_path):
    file = tmp_path / "page.html"
    file.write_text("old")
    assert write(page(), file) == file
    assert file.read_text().rstrip().endswith("</html>")
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(UserError, match="cannot be written: it is a folder"):
        write(page(), tmp_path)
