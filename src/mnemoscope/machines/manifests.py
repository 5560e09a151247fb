"""Manifests: what each shard of a study was to do, so that whoever merges them knows what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from mnemoscope.core.errors import UserError
from mnemoscope.machines.shards import Shard, split
from mnemoscope.runs.documents import canonical, digest
from mnemoscope.runs.errors import Damaged
from mnemoscope.runs.stores import Store

__all__ = ["Manifest", "read_manifests", "write_manifest"]

SCHEMA = "mnemoscope.shard/1"
_MARK = ".shard-"
_DIGITS = 8


@dataclass(frozen=True)
class Manifest:
    """One shard of a study: which it is, and the names of the runs of the whole, in order."""

    study: str
    scale: str
    number: int
    of: int
    plan: tuple[str, ...]

    @property
    def shard(self) -> Shard:
        """Which it is."""
        return Shard(self.of, self.number)

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of its own runs."""
        return tuple(split(self.plan, self.shard))

    @property
    def whole(self) -> tuple[str, str, tuple[str, ...]]:
        """What it is a share of."""
        return self.study, self.scale, self.plan


def write_manifest(store: Store, manifest: Manifest) -> None:
    """Write a manifest; that of the same shard is the same, whoever writes it and however often."""
    body = json.dumps({"schema": SCHEMA, **asdict(manifest)}, indent=1)
    plan = digest(canonical(manifest.plan))[:_DIGITS]  # with other settings it is another whole
    store.write(f"{manifest.study}.{manifest.scale}.{plan}.{manifest.shard.label}.json", body.encode())


def read_manifests(store: Store) -> Iterator[Manifest]:
    """Give the manifests in a store."""
    for name in store.names():
        if _MARK in name and name.endswith(".json"):
            yield _read(store, name)


def _read(store: Store, name: str) -> Manifest:
    try:
        body = json.loads(store.read(name))
        if body.pop("schema") != SCHEMA:
            raise UserError(f"{name!r} in {str(store)!r} must be a manifest of schema {SCHEMA!r}")
        manifest = Manifest(**{**body, "plan": tuple(map(str, body["plan"]))})
        Shard.parse(str(manifest.shard))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise Damaged(f"{name!r} in {str(store)!r} is damaged: it is no manifest of a shard") from None
    return manifest
