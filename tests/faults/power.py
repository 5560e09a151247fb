"""Loss of power: what a folder may hold afterwards, by what was made durable before.

POSIX promises of a file only the bytes that it had at its last fsync, and of a folder only the names that it had at its
own. Whatever came later may be there, be gone, or be there in part, each for itself and in any order.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.calls import KILLED


class Disk:
    """The durable part of a folder, followed call by call.

    Parameters
    ----------
    root
        The folder; what is in it now is durable.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._tokens: dict[int, int] = {}
        self._next = 0
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        for folder, _, files in os.walk(root):
            self._names[self._token(Path(folder))] = self._listing(Path(folder))
            for name in files:
                self._bytes[self._token(Path(folder) / name)] = (Path(folder) / name).read_bytes()

    def watch(self, name: str, path: str) -> None:
        """Follow a call that is about to be made."""
        place = Path(path)
        if name == "fsync" and place.is_dir():
            self._names[self._token(place)] = self._listing(place)
        elif name == "fsync":
            self._bytes[self._token(place)] = place.read_bytes()
        elif name in ("unlink", "remove", "rmdir") and os.path.lexists(place):
            self._tokens.pop(place.lstat().st_ino, None)  # the number may be used again, for another file

    def crash(self, target: Path, chance: random.Random | None) -> None:
        """Write what may be left into a folder: only what is durable, or by chance more of what came later."""
        self._write(self._token(self.root), self.root, target, chance)

    def _write(self, token: int, source: Path | None, target: Path, chance: random.Random | None) -> None:
        target.mkdir(exist_ok=True)
        now = {} if source is None else self._listing(source)
        for name in sorted({**self._names.get(token, {}), **now}):
            durable, late = self._names.get(token, {}).get(name), now.get(name)
            chosen = durable if chance is None or chance.random() < 0.5 else late
            if chosen is None:
                continue
            here = source / name if source is not None and chosen == late else None
            if chosen in self._names or (here is not None and here.is_dir()):
                self._write(chosen, here, target / name, chance)
            else:
                (target / name).write_bytes(self._content(chosen, here, chance))

    def _content(self, token: int, here: Path | None, chance: random.Random | None) -> bytes:
        durable = self._bytes.get(token, b"")
        if chance is None or here is None:
            return durable
        late = here.read_bytes()
        kept = len(durable) if late.startswith(durable) else 0  # what was appended to, is not lost with it
        return chance.choice((durable, late, late[: (kept + len(late)) // 2]))

    def _listing(self, folder: Path) -> dict[str, int]:
        return {one.name: self._token(one) for one in folder.iterdir()}

    def _token(self, path: Path) -> int:
        number = path.lstat().st_ino
        if number not in self._tokens:
            self._next += 1
            self._tokens[number] = self._next
        return self._tokens[number]


def power_loss(disk: Disk, target: Path, seed: int | None) -> Callable[..., Any]:
    """Return a fault: the process ends, and `target` holds what is left; seed None: only what is durable."""

    def lose(name: str, perform: Callable[[], Any], arguments: tuple) -> Any:
        disk.crash(target, None if seed is None else random.Random(seed))
        os._exit(KILLED)

    return lose
