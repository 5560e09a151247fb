"""A browser for the tests of the page: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.report.sample import HOSTILE, page, scored_page

from mnemoscope.report import write


@dataclass
class Opened:
    """A page in the browser, with what it complained about and what it asked for."""

    tab: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def figure(self, name: str) -> Any:
        return self.tab.locator(f"[data-figure='{name}']")

    def button(self, figure: str, text: str) -> Any:
        return self.figure(figure).get_by_role("button").filter(has_text=text)

    def saved(self, button: Any) -> tuple[str, bytes]:
        with self.tab.expect_download() as waiting:
            button.click()
        return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("chromium is not installed: apt install chromium")
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if root else [])
        yield found
        found.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {
        "plain": write(page(), folder / "plain.html"),
        "scored": write(scored_page(), folder / "scored.html"),
        "hostile": write(page(HOSTILE, detail=HOSTILE), folder / "hostile.html"),
    }


@pytest.fixture
def open_page(browser: Any, pages: dict[str, Path]) -> Iterator[Any]:
    """A function that opens a page in a fresh profile, with every request intercepted."""
    contexts = []

    def opener(
        name: str | Path = "plain", *, width: int = 1280, theme: str = "light", height: int = 900, folded: bool = False
    ) -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            reduced_motion="reduce",
            has_touch=width < 500,
        )
        contexts.append(context)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        found = Opened(context.new_page())
        address = (pages[name] if isinstance(name, str) else name).as_uri()

        def answer(route: Any) -> None:
            if route.request.url == address:
                route.continue_()
            else:
                found.requests.append(route.request.url)
                route.abort()

        found.tab.route("**/*", answer)
        found.tab.on("console", lambda message: found.complaints.append(message.text))
        found.tab.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.tab.goto(address)
        found.tab.wait_for_load_state("load")
        if not folded:
            found.tab.evaluate(
                """async () => {
                    for (const fold of document.querySelectorAll("details.fold")) fold.open = true;
                    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
                }"""
            )
        return found

    yield opener
    for context in contexts:
        context.close()
