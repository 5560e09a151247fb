"""Plan of a profile: which sections were measured at which seeds, to be repeated whatever time that takes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mnemoscope.core.errors import UserError, expected
from mnemoscope.core.files import write_atomic

__all__ = ["SCHEMA", "Entry", "Plan"]

SCHEMA = "mnemoscope.plan/1"
"""The version of the file."""


@dataclass(frozen=True)
class Entry:
    """One section of one network at one seed: measured, or not, and why not.

    Attributes
    ----------
    network
        Its place among those that are measured.
    part
        The name of the section.
    seed
        Of its weights.
    reason
        Why it is not measured; None: it is.
    status
        As in a row: ``"done"``, or ``"stopped"`` by the budget, or ``"settled"``.
    """

    network: int
    part: str
    seed: int
    reason: str | None = None
    status: str = "done"


@dataclass(frozen=True)
class Plan:
    """What is measured, in its order.

    Attributes
    ----------
    networks
        Their names.
    entries
        The work.
    """

    networks: tuple[str, ...]
    entries: tuple[Entry, ...]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Plan:
        """Return the plan of a file, or raise one line about what is none."""
        try:
            found = json.loads(Path(path).read_text())
        except (OSError, ValueError) as error:
            raise UserError(
                f"--plan needs a file that an earlier profile wrote, got {os.fspath(path)!r}: {error}"
            ) from None
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise expected(
                "the schema of a plan", repr(SCHEMA), found.get("schema") if isinstance(found, dict) else None
            )
        try:
            return cls(tuple(found["networks"]), tuple(Entry(**each) for each in found["pieces"]))
        except (KeyError, TypeError) as error:
            raise UserError(f"{os.fspath(path)!r} is not a plan: {error}") from None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file."""
        document = {"schema": SCHEMA, "networks": self.networks, "pieces": [asdict(each) for each in self.entries]}
        write_atomic(Path(path), (json.dumps(document, indent=1) + "\n").encode())

    def check(self, networks: Sequence[str], parts: Sequence[str]) -> None:
        """Raise unless it is a plan for these networks, with sections that there are."""
        if tuple(networks) != self.networks:
            raise expected("the networks of the plan", ", ".join(networks), ", ".join(self.networks))
        for each in self.entries:
            if each.part not in parts or not 0 <= each.network < len(networks):
                raise UserError(f"the plan names the part {each.part!r} of network {each.network}, which there is not")
