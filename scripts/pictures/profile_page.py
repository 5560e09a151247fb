"""Take the README's picture: the first screen of the page of ``mnemoscope profile nnrnn --hidden 64``.

Run ``python scripts/pictures/profile_page.py``, which makes the page, or give it one that is there; it needs Chromium
and Playwright.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

import mnemoscope as ms

WIDTH, HEIGHT = 1280, 660
TARGET = Path(__file__).parents[2] / "docs" / "profile.png"


def main() -> None:
    """Open the page in Chromium and write what a reader sees first."""
    page = Path(sys.argv[1] if len(sys.argv) > 1 else "nnrnn.html").resolve()
    if len(sys.argv) < 2:
        ms.profile("nnrnn", hidden_size=64, html=page)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
