"""On which kind of file system a folder is."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["network_file_system"]

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
