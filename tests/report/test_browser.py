"""The page in Chromium: drawn, operated by mouse and keys, and quiet."""

from __future__ import annotations

import csv
import io
import re
import struct
from xml.etree import ElementTree

import pytest
from tests.report.sample import HOSTILE, crowded, page, vanished

from mnemoscope.core.numbers import interval, number
from mnemoscope.report import Bars, Entry, Figure, HeatMap, Mark, Page, Section, Series, write
from mnemoscope.report.palette import DARK, LIGHT
from mnemoscope.report.tables import figure_csv, table_csv, table_latex

FIGURES = {one.name: one for section in page().sections for one in section.figures}
SUBJECT_LINE = "[data-figure='fisher-curve'] .plot > svg .line.subject"


def colour(opened, selector, name):
    """The colour of an element, as #rrggbb."""
    text = opened.tab.eval_on_selector(selector, f"node => getComputedStyle(node)['{name}']")
    return "#" + "".join(f"{int(part):02x}" for part in text[4:-1].split(","))


def test_every_chart_is_drawn_and_nothing_complains(open_page):
    opened = open_page()
    for name, figure in FIGURES.items():
        drawn = opened.figure(name).locator(".plot > svg")
        assert drawn.get_attribute("aria-label") == figure.alt
        assert drawn.locator("path, circle").count() >= 9
        assert "NaN" not in drawn.inner_html()
    assert opened.figure("fisher-curve").locator(".plot .line:not(.leader)").count() >= 9
    assert opened.figure("eigenvalues").locator(".eigen").count() == 9 * 64
    assert opened.complaints == []
    assert opened.requests == []


def test_a_request_would_be_seen(open_page, tmp_path):
    # What the test above relies on: a page that asks for something is caught.
    (tmp_path / "bad.html").write_text("<img src='https://example.org/x.png'>")
    opened = open_page(tmp_path / "bad.html")
    assert opened.requests == ["https://example.org/x.png"]
    assert opened.complaints


def test_the_policy_forbids_scripts_and_requests_that_are_not_the_pages_own(open_page):
    opened = open_page()
    opened.tab.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.hacked = 1";
        document.body.append(script);
        const image = new Image(); image.src = "https://example.org/x.png"; document.body.append(image);
        document.body.insertAdjacentHTML("beforeend", "<b onclick='window.hacked = 1' id='trap'>x</b>");
        document.getElementById("trap").click();
    }""")
    opened.tab.wait_for_timeout(200)
    assert opened.tab.evaluate("window.hacked") is None
    assert opened.requests == []
    assert len([text for text in opened.complaints if "Content Security Policy" in text]) == 3


@pytest.mark.parametrize("width", [1280, 390])
def test_a_hostile_name_is_text(open_page, width):
    opened = open_page("hostile", width=width)
    assert opened.tab.locator("h1").inner_text() == HOSTILE
    assert HOSTILE in opened.tab.title()
    assert opened.tab.locator(".chip").first.inner_text() == HOSTILE
    opened.figure("fisher-total").locator(".plot").hover()
    opened.button("gradient-rate", "Table").click()
    assert HOSTILE in opened.figure("gradient-rate").locator(".values").inner_text()
    _, svg = opened.saved(opened.button("fisher-curve", "SVG"))
    assert HOSTILE[:8] in "".join(ElementTree.fromstring(svg).itertext())
    assert opened.tab.evaluate("window.hacked") is None
    assert opened.tab.locator("img").count() == 0
    assert opened.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert (opened.complaints, opened.requests) == ([], [])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_readable_on_a_phone(open_page, theme):
    opened = open_page(width=390, theme=theme)
    assert opened.tab.evaluate("document.documentElement.scrollWidth") == 390
    small = opened.tab.evaluate("""() => [...document.querySelectorAll("button")].filter((node) => {
        const box = node.getBoundingClientRect(); return box.width && (box.height < 24 || box.width < 24);
    }).length""")
    assert small == 0
    tiny = opened.tab.evaluate("""() => Math.min(...[...document.querySelectorAll("p, td, th, li, button, .plot text")]
        .map((node) => parseFloat(getComputedStyle(node).fontSize)))""")
    assert tiny >= 12
    plot = opened.figure("fisher-curve").locator(".plot")
    plot.tap()
    assert "lag k" in plot.locator(".tip").inner_text()
    box = plot.locator(".tip").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def test_networks_are_switched_in_all_charts(open_page):
    opened = open_page()
    chip = opened.tab.locator(".chip").filter(has_text="lstm")
    entry = "[data-entry='6']"
    assert opened.tab.locator(f".plot > svg {entry}").count() > 4
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert opened.tab.locator(f".plot > svg {entry}").count() == 0
    opened.button("gradient-norms", "Table").click()
    assert "lstm" not in opened.figure("gradient-norms").locator(".values").inner_text()
    opened.tab.locator("#all").click()  # shows all again
    assert opened.tab.locator(f".plot > svg {entry}").count() > 4
    opened.tab.locator("#all").click()  # only the subject
    assert opened.tab.locator(".chip[aria-pressed='true']").count() == 1
    shown = opened.tab.eval_on_selector_all(
        ".plot > svg [data-entry]", "all => [...new Set(all.map(n => n.dataset.entry))]"
    )
    assert shown == ["0"]


def test_with_no_network_shown_the_axes_stay(open_page):
    opened = open_page()
    opened.tab.locator("#all").click()
    opened.tab.locator(".chip").first.click()
    assert opened.figure("fisher-curve").locator(".plot .axis").count() > 0
    opened.figure("fisher-curve").locator(".plot").hover()
    assert opened.complaints == []


def test_axes_switch_between_linear_and_logarithmic(open_page):
    opened = open_page()
    ticks = lambda: opened.figure("gradient-norms").locator(".plot .tick").all_text_contents()  # noqa: E731
    before = opened.tab.get_attribute(SUBJECT_LINE, "d")
    assert "10⁻⁶" in ticks()
    log_y = opened.button("gradient-norms", "Log y")
    assert log_y.get_attribute("aria-pressed") == "true"
    log_y.click()
    assert log_y.get_attribute("aria-pressed") == "false"
    assert "0.8" in ticks()
    assert "10⁻⁶" not in ticks()
    assert opened.tab.get_attribute(SUBJECT_LINE, "d") == before  # the other chart is as it was
    opened.button("gradient-norms", "Log x").click()
    # Lag 0 of nine networks has no place on a logarithmic axis, and the page says so.
    assert "9 values are zero or negative" in opened.figure("gradient-norms").locator(".cut").inner_text()
    dots = "[data-figure='fisher-total'] .plot > svg g[data-entry='0'] .dot"
    place = opened.tab.locator(dots).last.get_attribute("transform")
    opened.button("fisher-total", "Log scale").click()
    assert opened.tab.locator(dots).last.get_attribute("transform") != place
    assert opened.button("gradient-rate", "Log scale").count() == 0  # negative numbers have no logarithm


def test_a_straight_line_is_straight_on_a_logarithmic_axis(open_page):
    opened = open_page()
    path = opened.tab.get_attribute("[data-figure='gradient-norms'] .plot > svg .line.subject", "d")
    places = [tuple(map(float, part.split())) for part in path.replace("M", "L").split("L")[1:]]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(places[::10], places[10::10], strict=False)]
    assert len(places) == 101
    assert max(slopes) - min(slopes) < 0.01


def test_themes_follow_the_system_the_reader_and_paper(open_page):
    opened = open_page(theme="dark")
    assert colour(opened, "body", "backgroundColor") == DARK["ground"]
    dark_line = colour(opened, SUBJECT_LINE, "stroke")
    button = opened.tab.locator("#theme")
    assert button.inner_text() == "Light theme"
    button.click()
    assert colour(opened, "body", "backgroundColor") == LIGHT["ground"]
    assert colour(opened, SUBJECT_LINE, "stroke") != dark_line  # charts follow
    assert button.inner_text() == "Dark theme"
    opened.tab.reload()
    assert colour(opened, "body", "backgroundColor") == LIGHT["ground"]  # the choice is kept
    opened.tab.locator("#theme").click()
    assert colour(opened, SUBJECT_LINE, "stroke") == dark_line
    opened.tab.emulate_media(media="print")
    assert colour(opened, "body", "backgroundColor") == "#ffffff"
    assert colour(opened, "body", "color") == LIGHT["ink"]
    assert not opened.button("fisher-curve", "SVG").is_visible()
    assert opened.tab.pdf(format="A4").startswith(b"%PDF")


def test_the_pointer_shows_values(open_page):
    opened = open_page()
    plot = opened.figure("fisher-curve").locator(".plot")
    plot.scroll_into_view_if_needed()
    assert not plot.locator(".tip").is_visible()
    box = plot.bounding_box()
    opened.tab.mouse.move(box["x"] + box["width"] - 4, box["y"] + 100)
    tip = plot.locator(".tip").inner_text()
    curve = FIGURES["fisher-curve"].drawing
    assert "lag k (steps): 127" in tip
    for series in curve.series:
        ends = (series.lower[127], series.upper[127]) if series.lower is not None else (None, None)
        assert interval(series.y[127], *ends) in tip
    opened.tab.mouse.move(2, box["y"] + 100)
    assert not plot.locator(".tip").is_visible()
    opened.figure("fisher-total").locator(".plot").hover()
    assert "Total Fisher memory" in opened.figure("fisher-total").locator(".tip").inner_text()
    opened.figure("eigenvalues").locator(".plot").hover()
    assert "modulus" in opened.figure("eigenvalues").locator(".tip").inner_text()


def test_the_keyboard_reaches_everything(open_page):
    opened = open_page()
    wanted = opened.tab.evaluate("""() => {
        const found = [...document.querySelectorAll("button, a[href], .plot, summary")];
        const all = found.filter((node) => node.checkVisibility());
        all.forEach((node, index) => { node.dataset.wanted = index; });
        return all.length;
    }""")
    reached = set()
    for _ in range(wanted + 30):
        opened.tab.keyboard.press("Tab")
        reached.add(opened.tab.evaluate("document.activeElement.dataset.wanted"))
    reached.discard(None)
    assert len(reached) == wanted


def test_the_keyboard_operates_everything(open_page):
    opened = open_page()
    keys = opened.tab.keyboard
    chip = opened.tab.locator(".chip").nth(1)
    chip.focus()
    keys.press("Space")
    assert chip.get_attribute("aria-pressed") == "false"
    log = opened.button("fisher-curve", "Log y")
    log.focus()
    keys.press("Enter")
    assert log.get_attribute("aria-pressed") == "false"
    opened.tab.locator("#theme").focus()
    keys.press("Enter")
    assert opened.tab.get_attribute("html", "data-theme") == "dark"
    plot = opened.figure("fisher-curve").locator(".plot")
    plot.focus()
    assert (
        opened.tab.eval_on_selector("[data-figure='fisher-curve'] .plot", "n => getComputedStyle(n).outlineStyle")
        == "solid"
    )
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        keys.press(key)
    said = opened.tab.locator("#said").inner_text()
    assert said.startswith("lag k (steps): 2,")
    first = FIGURES["fisher-curve"].drawing.series[0]
    assert f"nnrnn {interval(first.y[2], first.lower[2], first.upper[2])}" in said
    keys.press("End")
    assert "127" in plot.locator(".tip").inner_text()
    keys.press("Escape")
    assert not plot.locator(".tip").is_visible()
    for name in ("fisher-total", "eigenvalues"):
        opened.figure(name).locator(".plot").focus()
        keys.press("ArrowDown")
        assert opened.figure(name).locator(".tip").is_visible()


def test_the_table_of_a_chart_shows_its_numbers(open_page):
    opened = open_page()
    opened.button("separation-rank", "Table").click()
    cells = opened.figure("separation-rank").locator("tbody tr").all()
    rows = [row.locator("td").all_inner_texts() for row in cells]
    drawing = FIGURES["separation-rank"].drawing
    assert [row[0] for row in rows] == [number(x) for x in drawing.series[0].x]
    for column, series in enumerate(drawing.series, start=1):
        assert [row[column] for row in rows] == [number(y) for y in series.y]
    opened.button("fisher-curve", "Table").click()
    first = opened.figure("fisher-curve").locator("tbody tr").nth(70).locator("td").all_inner_texts()
    assert first[1:] == [number(series.y[70]) for series in FIGURES["fisher-curve"].drawing.series]


# Chromium lets a page start ten downloads in a second: more than a reader clicks, less than a test does.
def test_pictures_are_downloaded(open_page):
    opened = open_page(theme="dark")
    for name, figure in FIGURES.items():
        file, svg = opened.saved(opened.button(name, "SVG"))
        text = "".join(ElementTree.fromstring(svg).itertext())
        assert file == f"{name}.svg"
        assert figure.title in text
        assert "nnrnn" in text
        assert "var(" not in svg.decode()
        assert DARK["ink"] not in svg.decode()  # on light ground, whatever the theme
    file, png = opened.saved(opened.button("fisher-total", "PNG"))
    assert file == "fisher-total.png"
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    assert width > 2000
    assert height > 900
    assert len(png) > 40_000  # an empty picture of that size has a few thousand
    assert opened.complaints == []


def test_numbers_are_downloaded(open_page):
    opened = open_page()
    for name, figure in FIGURES.items():
        file, content = opened.saved(opened.button(name, "CSV"))
        assert file == f"{name}.csv"
        found = list(csv.reader(io.StringIO(content.decode())))
        wanted = list(csv.reader(io.StringIO(figure_csv(figure, page().entries))))
        assert found[0] == wanted[0]
        assert [row[0] for row in found] == [row[0] for row in wanted]
        for row, other in zip(found[1:], wanted[1:], strict=True):
            assert _numbers(row[1:]) == pytest.approx(_numbers(other[1:]), nan_ok=True)
    table = page().sections[0].tables[0]
    tools = opened.tab.locator("[data-table='fisher-numbers'] .tools")
    assert opened.saved(tools.get_by_text("CSV")) == ("fisher-numbers.csv", table_csv(table).encode())
    assert opened.saved(tools.get_by_text("LaTeX")) == ("fisher-numbers.tex", table_latex(table).encode())
    assert opened.complaints == []


def _numbers(cells):
    return [float(cell) if cell else None for cell in cells]


def test_copy_buttons(open_page):
    opened = open_page()

    def copied(button):
        button.click()
        opened.tab.wait_for_function("node => node.textContent === 'Copied'", arg=button.element_handle())
        return opened.tab.evaluate("navigator.clipboard.readText()")

    command = opened.tab.locator("#section-fisher").get_by_role("button", name="Copy the command")
    assert FIGURES["fisher-curve"].command in copied(command).split("\n")
    assert copied(opened.tab.locator("[data-copy='methods-text']")) == page().methods
    assert copied(opened.tab.locator("[data-copy='bibtex']")).startswith("@misc{mnemoscope,")


CONTRASTS = """() => {
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const linear = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const ground = (node) => {
        const row = node.closest("g[data-entry]")?.querySelector("rect.row");
        if (row) return getComputedStyle(row).fill;
        for (let at = node; at; at = at.parentElement) {
            const found = getComputedStyle(at).backgroundColor;
            if (parse(found)[3] !== 0) return found;
        }
        return "rgb(255, 255, 255)";
    };
    const written = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    const seen = (node) => node.getClientRects().length && !node.closest(".hidden, .skip");
    return [...document.querySelectorAll("body *")].filter((node) => seen(node) && written(node)).map((node) => {
        const style = getComputedStyle(node), size = parseFloat(style.fontSize);
        const ink = node instanceof SVGElement ? style.fill : style.color;
        const [low, high] = [light(parse(ink)), light(parse(ground(node)))].sort((x, y) => x - y);
        const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        return { ratio: (high + 0.05) / (low + 0.05), least: large ? 3 : 4.5, text: node.textContent.slice(0, 40) };
    });
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast(open_page, theme):
    opened = open_page(theme=theme)
    opened.figure("fisher-curve").locator(".plot").hover()
    opened.tab.locator(".chip").nth(3).click()
    opened.tab.locator(".jump summary").click()
    opened.tab.mouse.move(1, 1)
    found = opened.tab.evaluate(CONTRASTS)
    assert len(found) > 300
    assert [one for one in found if one["ratio"] < one["least"]] == []


def test_controls_have_names_and_links_lead_somewhere(open_page):
    opened = open_page()
    unnamed, twice, broken = opened.tab.evaluate("""() => {
        const all = (selector) => [...document.querySelectorAll(selector)];
        const told = ["aria-label", "aria-labelledby"];
        const name = (node) => told.some((key) => node.getAttribute(key)) || node.textContent.trim();
        const ids = all("[id]").map((node) => node.id);
        return [
            all("button, a[href], .plot, svg[role=img], [role=region]").filter((node) => !name(node)).length,
            ids.length - new Set(ids).size,
            all("a[href^='#']").filter((link) => !document.getElementById(link.hash.slice(1))).length,
        ];
    }""")
    assert (unnamed, twice, broken) == (0, 0, 0)


@pytest.mark.parametrize("width", [1280, 390])
def test_names_of_marks_that_are_close_do_not_cover_each_other(open_page, tmp_path, width):
    opened = open_page(write(crowded(), tmp_path / "crowded.html"), width=width)
    boxes = [one.bounding_box() for one in opened.figure("crowded").locator("text.halo", has_text="limit").all()]
    assert len(boxes) == 4
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            assert apart or abs(a["y"] - b["y"]) >= 12


@pytest.mark.parametrize("width", [1280, 390])
def test_a_curve_below_the_floor_leaves_no_name_outside_its_chart(open_page, tmp_path, width):
    figure = open_page(write(vanished(), tmp_path / "vanished.html"), width=width).figure("vanished")
    frame = figure.locator("svg").first.bounding_box()
    for text in figure.locator("svg text").all():
        box = text.bounding_box()
        assert frame["y"] - 1 <= box["y"] <= frame["y"] + frame["height"], text.text_content()
    assert figure.locator("svg text.label", has_text="gone").count() == 0


def test_bars_and_matrices_are_drawn_and_read(open_page, tmp_path):
    made = page_of(
        Bars(
            groups=["copy", "recall"],
            series=[
                Series(entry="a", x=range(2), y=[0.913, 0.5], lower=[0.9, 0.4], upper=[0.926, 0.6]),
                Series(entry="b", x=range(2), y=[0.25, None]),
            ],
            x_title="task",
            y_title="accuracy",
            marks=(Mark(kind="y", value=0.125, label="chance"),),
        ),
        HeatMap(values=[[1.0, -2.0], [None, 3.5]], x_title="l", y_title="k", title="overlap", diverging=True),
    )
    opened = open_page(write(made, tmp_path / "kinds.html"))
    assert opened.figure("one-0").locator(".bar").count() == 3
    assert opened.figure("one-1").locator("svg rect").count() == 3 + 48  # cells, and the scale of colours
    for name in ("one-0", "one-1"):
        opened.figure(name).locator(".plot").focus()
        opened.tab.keyboard.press("ArrowRight")
    said = opened.tab.locator("#said").inner_text()
    assert said == "l 0, k 0, overlap: 1"
    opened.button("one-0", "Table").click()
    cells = opened.figure("one-0").locator(".values td").all_inner_texts()
    assert cells == ["copy", interval(0.913, 0.9, 0.926), "0.25", "recall", interval(0.5, 0.4, 0.6), "\u2013"]
    _, content = opened.saved(opened.button("one-1", "CSV"))
    assert list(csv.reader(io.StringIO(content.decode())))[:3] == [
        ["l", "k", "overlap"],
        ["0", "0", "1"],
        ["1", "0", "-2"],
    ]
    assert opened.complaints == []


def page_of(*drawings) -> Page:
    figures = [
        Figure(name=f"one-{k}", title="t", drawing=drawing, alt="a", how="h", command="c")
        for k, drawing in enumerate(drawings)
    ]
    entries = [Entry(key=key, label=key.upper(), role="subject" if key == "a" else "reference") for key in "ab"]
    return Page(title="t", subtitle="", entries=entries, sections=[Section(name="s", title="s", figures=figures)])


# The first screen ----------------------------------------------------------------------------------------------


def test_the_first_screen_holds_the_whole_scorecard(open_page):
    opened = open_page("scored", height=800, folded=True)
    below = opened.tab.evaluate(
        """() => [...document.querySelectorAll(".first h2, .scores li, .rests, .board figure .plot svg, .advice")]
            .filter((node) => node.getBoundingClientRect().bottom > innerHeight).map((node) => node.className)"""
    )
    assert below == []
    assert opened.tab.locator(".scores li").count() == 9
    assert opened.tab.locator(".scores .own").count() == 9
    assert opened.tab.evaluate("document.documentElement.scrollWidth") <= 1280


def test_on_a_phone_the_scorecard_takes_two_screens(open_page):
    opened = open_page("scored", width=390, height=844, folded=True)
    assert opened.tab.evaluate("document.querySelector('.scores').getBoundingClientRect().bottom") <= 2 * 844
    assert opened.tab.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_scorecard_can_be_read(open_page, theme):
    opened = open_page("scored", theme=theme)
    assert [one for one in opened.tab.evaluate(CONTRASTS) if one["ratio"] < one["least"]] == []


def test_a_line_of_the_scorecard_says_its_sentence(open_page):
    opened = open_page("scored", folded=True)
    line = opened.tab.locator(".scores li").first
    assert not line.locator(".say").is_visible()
    line.hover()
    assert line.locator(".say").is_visible()
    opened.tab.locator(".scores li").nth(1).focus()
    assert opened.tab.locator(".scores li").nth(1).locator(".say").is_visible()
    titles = opened.tab.locator(".scores li").first.locator("circle title").all_text_contents()
    assert len(titles) == 9  # every network has its number


def test_folds_draw_their_charts_when_they_are_opened(open_page):
    opened = open_page("scored", folded=True)
    fold = opened.tab.locator("#section-gradients details.fold").first
    assert not fold.locator("svg[role=img]").first.is_visible()
    fold.locator("summary").first.click()
    box = fold.locator(".plot svg[role=img]").first
    box.wait_for(state="visible")
    width = opened.tab.evaluate("node => node.viewBox.baseVal.width", box.element_handle())
    assert width == pytest.approx(box.bounding_box()["width"], abs=2)


def test_a_link_opens_the_fold_that_it_leads_into(open_page):
    opened = open_page("scored", folded=True)
    opened.tab.evaluate("location.hash = '#work-ganguli2008'")
    opened.tab.locator("#work-ganguli2008").wait_for(state="visible")


def test_the_menu_leads_to_sections(open_page):
    opened = open_page("scored", width=390, folded=True)
    menu = opened.tab.locator(".jump")
    assert not menu.locator("a").first.is_visible()
    menu.locator("summary").click()
    assert menu.locator("a").count() == len(page().sections) + 1
    menu.locator("a", has_text="Spectrum").first.click()
    assert not menu.locator("a").first.is_visible()
    opened.tab.wait_for_function(
        "Math.abs(document.querySelector('#section-spectrum').getBoundingClientRect().top) < 200"
    )


def test_print_is_short_and_not_clipped(open_page, tmp_path):
    opened = open_page("scored", width=1280, folded=True)
    opened.tab.pdf(path=str(tmp_path / "x.pdf"), prefer_css_page_size=True)
    pages = len(re.findall(rb"/Type\s*/Page[^s]", (tmp_path / "x.pdf").read_bytes()))
    assert 1 <= pages <= 10
    opened.tab.set_viewport_size({"width": 688, "height": 1000})  # A4 without its margins
    opened.tab.emulate_media(media="print")
    wide = opened.tab.evaluate(
        """() => [...document.querySelectorAll(".first *, .section *")].filter((node) =>
            node.checkVisibility() && !node.closest(".scroll") && node.getBoundingClientRect().right > 690)
            .map((node) => node.tagName + "." + node.className)"""
    )
    assert wide == []
