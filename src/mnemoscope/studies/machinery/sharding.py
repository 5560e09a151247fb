"""Shards of a study: a share of its runs, done anywhere, each result one file in a folder that all shards have.

A shard takes up its own runs in a folder of its own within the common one, so that nobody waits for another machine.
What is finished is packed into one file, named by its content, and renamed into its place: whoever does it again writes
the same name, and whoever is killed has written it or not.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

from mnemoscope import runs
from mnemoscope.machines import Shard, split
from mnemoscope.machines.manifests import Manifest, write_manifest
from mnemoscope.runs.folders import root
from mnemoscope.runs.lock import patient
from mnemoscope.runs.packing import ENDING, pack
from mnemoscope.runs.stores import FolderStore, Store, open_store
from mnemoscope.studies.machinery.execution import execute, run_name
from mnemoscope.studies.machinery.study import RunSpec

__all__ = ["Share"]


class Share:
    """The runs of a whole that are a shard's, and where they are worked on.

    Parameters
    ----------
    name, scale
        Of what is run: a study, or a search.
    plan
        All its runs.
    shard
        Which of its runs.
    place
        The folder of all shards, or the URL of a store. With a URL, runs that are under way are kept on this machine,
        in the folder of the runs.
    """

    def __init__(self, name: str, scale: str, plan: Sequence[RunSpec], shard: Shard, place: str) -> None:
        self.name, self.scale, self.shard = name, scale, shard
        self.store: Store = open_store(place)
        whole = {run_name(spec): spec for spec in plan}
        self.specs: dict[str, RunSpec] = {name: whole[name] for name in split(list(whole), shard)}
        self.manifest = Manifest(name, scale, shard.number, shard.of, tuple(whole))
        common = self.store.folder if isinstance(self.store, FolderStore) else root()
        self.work = common / "work" / f"{name}.{scale}.{shard.label}"

    def missing(self) -> list[str]:
        """Return the names of the runs without a result."""
        there = set(self.store.names())
        return [name for name in self.specs if f"{name}{ENDING}" not in there]

    def run(self, minutes: float | None = None) -> Iterator[str]:
        """Do what is missing, and give the name of each run when its result is there."""
        write_manifest(self.store, self.manifest)
        todo = [self.specs[name] for name in self.missing()]
        with patient():
            for outcome in execute(todo, self.work, minutes):
                self._keep()
                yield run_name(outcome.spec)
        if not self.missing():
            shutil.rmtree(self.work, ignore_errors=True)

    def _keep(self) -> None:
        """Pack what is finished and has no file yet: the run, and those that it has asked for."""
        there = set(self.store.names())
        for folder in sorted(self.work.iterdir()):
            name = f"{folder.name}{ENDING}"
            if name not in there and not folder.name.startswith(".") and runs.is_run(folder):
                try:
                    if runs.load(folder).status == "finished":
                        self.store.write(name, pack(folder))
                except runs.Damaged:  # it is opened when it is asked for, and says so then
                    continue
