"""The table of trained ladders in the docs is that of what was kept."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_in_the_docs_is_that_of_the_numbers_kept():
    script = runpy.run_path(str(ROOT / "scripts" / "ladder"))
    page = (ROOT / "docs" / "remembering.md").read_text(encoding="utf-8")
    assert page == script["page"](), "scripts/ladder --write writes it"
    for row in script["known"]().values():
        for rung, line in row["rungs"].items():
            assert len(line["solved"]) == row["asked"]["seeds"], rung
            assert row["asked"]["length"] > max(line["solved"]) or rung not in row["excluded"], "a theorem is broken"
