"""`fsGroup`: the files of a pod's volumes belong to a group that all its containers are in.

A volume that begins empty can be written by the group, and what is made in it belongs to the group; what the node fills in can be read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from drayman.node.agent.environment import SourceError
from drayman.node.agent.volumes.files import VolumeFile

_READ: Final = 0o440
_WRITE: Final = 0o660
_ENTER: Final = stat.S_ISGID | 0o110


def readable_by_group(files: Mapping[str, VolumeFile]) -> dict[str, VolumeFile]:
    """Files that the group may read, whatever their mode says."""
    return {name: replace(file, mode=file.mode | _READ) for name, file in files.items()}


def give_to_group(folder: Path, group: int, *, is_filled: bool) -> None:
    """Give a volume to a group. `is_filled`: with its files, which are the node's. Raises SourceError."""
    try:
        _give(folder, group, _READ if is_filled else _WRITE)
        for parent, folders, files in os.walk(folder) if is_filled else ():
            for name in (*folders, *files):
                _give(Path(parent, name), group, _READ)
    except PermissionError as error:
        raise SourceError(
            f"fsGroup {group}: this node may not give {error.filename} to that group"
        ) from error


def _give(path: Path, group: int, more: int) -> None:
    found = path.lstat()
    if found.st_gid != group:
        os.chown(path, -1, group, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        return
    wanted = stat.S_IMODE(found.st_mode) | more
    wanted |= _ENTER if stat.S_ISDIR(found.st_mode) else 0
    # Also where it seems to be there already: giving a file to another group takes that bit away.
    path.chmod(wanted)
