"""Files of a record: reading, size, and the kind of file system they are on. Writing is `mnemoscope.core.files`."""

from __future__ import annotations

import os
from pathlib import Path

from mnemoscope.core.files import read_regular
from mnemoscope.runs.errors import read_failure

__all__ = ["network_file_system", "read_bytes", "size"]

_NETWORK = frozenset(
    (
        *(
            "9p",
            "afpfs",
            "afs",
            "beegfs",
            "ceph",
            "cifs",
            "davfs",
            "glusterfs",
            "gpfs",
            "lustre",
            "ncpfs",
            "nfs",
            "nfs4",
        ),
        *("panfs", "pvfs2", "smb2", "smb3", "smbfs", "sshfs", "webdav"),
        *("fuse.ceph", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
    )
)


def read_bytes(path: Path) -> bytes:
    """Return what a regular file holds, or raise `Damaged`; a link in its place is not followed."""
    try:
        return read_regular(path, follow=False)
    except OSError as error:
        raise read_failure(path, error) from error


def size(path: Path) -> int:
    """Return the bytes of a file, 0 when it is gone."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def network_file_system(folder: Path) -> str | None:
    """Return the kind of the network file system that a folder is on, or None when it is on one of this machine."""
    kind = _kind(folder.resolve())
    return kind if kind in _NETWORK else None


def _kind(folder: Path) -> str | None:
    import psutil

    try:
        mounts = psutil.disk_partitions(all=True)
    except (OSError, RuntimeError):
        return None
    above = {str(folder), *map(str, folder.parents)}
    # Of several mounts at one place the last one is seen.
    found = [(len(os.path.normpath(one.mountpoint)), one.fstype) for one in mounts if one.mountpoint in above]
    return max(reversed(found), key=lambda pair: pair[0])[1].lower() if found else None
