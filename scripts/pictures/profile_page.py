"""Take the README's picture: the top of the page of ``mnemoscope profile nnrnn --hidden 64 --html nnrnn.html``.

Run ``python scripts/pictures/profile_page.py nnrnn.html``; it needs Chromium and Playwright.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1180, 1330
TARGET = Path(__file__).parents[2] / "docs" / "profile.png"


def main() -> None:
    """Open the page in Chromium and write what a reader sees first."""
    page = Path(sys.argv[1]).resolve()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
