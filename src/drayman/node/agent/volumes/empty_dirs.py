"""Volumes that begin empty: on the disk, or in memory where this node may mount.

A volume in memory is mounted once, in its folder, where all containers of the pod see it and the next agent finds it. It is gone with the
pod, or when the machine is, as it were, switched off.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from drayman.node.agent.processes import roots
from drayman.node.agent.spec import EmptyDirSource

MEMORY: Final = "Memory"


def size_of(source: EmptyDirSource, memory: int | None) -> int | None:
    """How many bytes a volume in memory may have: what it says, and no more than its pod may use (`memory`). None for no limit."""
    said = None if source.size_limit is None else source.size_limit.rounded_up()
    return min((each for each in (said, memory) if each), default=None)


def set_up_medium(name: str, folder: Path, source: EmptyDirSource, memory: int | None) -> str:
    """Put a volume where it is wanted. Returns what of it this node does not do; empty if it does everything. Raises OSError."""
    if source.medium == MEMORY:
        if os.path.ismount(folder):
            return ""
        size = size_of(source, memory)
        options = "mode=777" + ("" if size is None else f",size={size}")
        try:
            roots.mount("tmpfs", str(folder), "tmpfs", roots.MS_NOSUID | roots.MS_NODEV, options)
        except PermissionError:
            return f"volume {name} is on the disk and not limited: this node may not mount"
        return ""
    if source.medium:
        return f"volume {name} is on the disk: this node does not have medium {source.medium}"
    if source.size_limit is not None:
        return f"volume {name}: this node ignores sizeLimit of volumes on the disk"
    return ""


def unmount_all(folder: Path) -> None:
    """Free the memory of a pod's volumes; `folder` has all of them. Raises OSError."""
    if not folder.is_dir():
        return
    for volume in folder.iterdir():
        if os.path.ismount(volume):
            roots.unmount(str(volume), roots.MNT_DETACH)
