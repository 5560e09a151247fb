"""Command ``data``: files of the data sets that are there, and sources of the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mnemoscope.cli.tasks import Data
from mnemoscope.cli.terminal import Json, console, print_json

if TYPE_CHECKING:
    from mnemoscope.tasks.datasets import Dataset

__all__ = ["data"]

_MEANINGS = {
    "checked": "the published file, by its SHA-256",
    "not checked": "of the published size where that is known; its SHA-256 is not known to us",
    "altered": "not the published file",
    "damaged": "cannot be read",
    "missing": "not found",
}


def data(data: Data = None, json: Json = False) -> None:
    """Say which data are there, which are missing, where to get them, and under which licence."""
    from mnemoscope.tasks.datasets import DATASETS, VARIABLE, data_folder

    folder = data_folder(data)
    found = [_facts(dataset, folder) for dataset in DATASETS.values()]
    if json:
        print_json({"folder": None if folder is None else str(folder), "datasets": found})
        return
    out = console(wide=True)
    if folder is None:
        out.print(f"No data folder is named: give --data FOLDER or set {VARIABLE}.", soft_wrap=True)
    else:
        out.print(f"Data folder: {folder}", soft_wrap=True)
    for one in found:
        _print_dataset(out, one, folder)
    states = {file["state"] for one in found for file in one["files"]}
    out.print()
    for name in (name for name in _MEANINGS if name in states):
        out.print(f"{name}: {_MEANINGS[name]}", soft_wrap=True)


def _facts(dataset: Dataset, folder: Path | None) -> dict[str, Any]:
    from mnemoscope.tasks.datasets import state

    files = []
    for file in dataset.files:
        found, path = state(dataset, file, folder)
        where = None if path is None else str(path)
        files.append({"name": file.name, "state": found, "path": where, "size": file.size, "sha256": file.sha256})
    return {
        "name": dataset.name,
        "title": dataset.title,
        "complete": all(file["state"] in ("checked", "not checked") for file in files),
        "files": files,
        "tasks": list(dataset.tasks),
        "folders": list(dataset.folders),
        "source": dataset.source,
        "licence": dataset.licence,
    }


def _print_dataset(out: Console, facts: dict[str, Any], folder: Path | None) -> None:
    out.print()
    tasks = ", ".join(facts["tasks"])
    out.print(Text.assemble((facts["title"], "bold"), f" ({'task' if len(facts['tasks']) == 1 else 'tasks'} {tasks})"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for _ in range(3):
        table.add_column(no_wrap=True, overflow="fold")
    for file in facts["files"]:
        path = "" if file["path"] is None else str(Path(file["path"]).relative_to(folder or "."))
        table.add_row(f"  {file['state']}", file["name"], path)
    out.print(table)
    out.print(f"  from: {facts['source']}", soft_wrap=True)
    out.print(f"  licence: {facts['licence']}", soft_wrap=True)
    if not facts["complete"]:
        out.print(
            f"  put it into the data folder, or into {facts['folders'][0]}/ below it; .gz will do", soft_wrap=True
        )
