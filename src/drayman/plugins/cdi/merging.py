"""What a container gets for the ids of its devices, worked out as runtimes do it.

Folders are read in order, and a device of a later one hides that of an earlier one. If one folder has a device twice, nobody can tell which
is meant, and it cannot be used. A file that cannot be read costs its own devices only; asking for one of them says why.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from drayman.plugins.cdi.files import ENDINGS, read_spec
from drayman.plugins.cdi.model import (
    CdiDevice,
    ContainerEdits,
    DeviceNode,
    Hook,
    IntelRdt,
    Mount,
    NetDevice,
    Spec,
    qualified,
)
from drayman.plugins.errors import CdiError


@dataclass(frozen=True, slots=True)
class _Found:
    """A device and the file it comes from."""

    device: CdiDevice
    spec: Spec
    path: Path


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of all files, by id."""

    _found: dict[str, _Found]
    conflicts: dict[str, tuple[Path, ...]]
    """Ids that one folder has twice, with the files."""
    broken: tuple[str, ...]
    """Files that cannot be used, and why."""

    @classmethod
    def load(cls, folders: Sequence[Path]) -> Self:
        """Reads every file of the folders, the most important folder last."""
        found: dict[str, _Found] = {}
        conflicts: dict[str, tuple[Path, ...]] = {}
        broken: list[str] = []
        for folder in folders:
            here: dict[str, list[_Found]] = {}
            for path in _files(folder):
                try:
                    spec = read_spec(path)
                except FileNotFoundError:
                    continue  # removed since the folder was read
                except (CdiError, OSError) as error:
                    broken.append(str(error))
                    continue
                for device in spec.devices:
                    one = _Found(device, spec, path)
                    here.setdefault(qualified(spec.kind, device.name), []).append(one)
            for name, several in here.items():
                found[name] = several[0]
                conflicts.pop(name, None)
                if len(several) > 1:
                    conflicts[name] = tuple(each.path for each in several)
        return cls(found, conflicts, tuple(broken))

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids that can be used."""
        return tuple(name for name in self._found if name not in self.conflicts)

    def edits(self, ids: Iterable[str]) -> list[ContainerEdits]:
        """What the ids mean, in order: the edits of a file once, before those of its first device. Raises CdiError."""
        wanted = list(dict.fromkeys(ids))
        self._require(wanted)
        result: list[ContainerEdits] = []
        opened: set[Path] = set()
        for name in wanted:
            found = self._found[name]
            if found.path not in opened:
                opened.add(found.path)
                result.append(found.spec.container_edits)
            result.append(found.device.container_edits)
        return [edits for edits in result if not edits.is_empty]

    def _require(self, ids: Sequence[str]) -> None:
        for name in ids:
            if name in self.conflicts:
                files = " and ".join(map(str, self.conflicts[name]))
                raise CdiError(f"CDI device {name} is in {files}: one of them has to go")
        missing = [name for name in ids if name not in self._found]
        if missing:
            why = f" ({'; '.join(self.broken)})" if self.broken else ""
            raise CdiError(f"no CDI file has {', '.join(missing)}{why}")


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in ENDINGS and not path.name.startswith(".")
    )


@dataclass(frozen=True, slots=True)
class Container:
    """All edits of a container put together."""

    env: dict[str, str]
    device_nodes: tuple[DeviceNode, ...]
    mounts: tuple[Mount, ...]
    hooks: tuple[Hook, ...]
    additional_gids: tuple[int, ...]
    intel_rdt: IntelRdt | None
    net_devices: tuple[NetDevice, ...]


def merged(edits: Sequence[ContainerEdits]) -> Container:
    """One container's edits in one: later ones win where both name the same variable, device node or mount point."""
    env: dict[str, str] = {}
    nodes: dict[str, DeviceNode] = {}
    mounts: dict[str, Mount] = {}
    rdt: IntelRdt | None = None
    for each in edits:
        env.update((name, value) for name, _, value in (v.partition("=") for v in each.env))
        for node in each.device_nodes:
            nodes.pop(node.path, None)
            nodes[node.path] = node
        for mount in each.mounts:
            mounts.pop(mount.container_path, None)
            mounts[mount.container_path] = mount
        rdt = each.intel_rdt or rdt
    return Container(
        env,
        tuple(nodes.values()),
        # A mount point has to be there before what lies below it.
        tuple(sorted(mounts.values(), key=lambda mount: mount.container_path.count("/"))),
        tuple(hook for each in edits for hook in each.hooks),
        tuple(dict.fromkeys(gid for each in edits for gid in each.additional_gids if gid)),
        rdt,
        tuple(device for each in edits for device in each.net_devices),
    )


def completed(node: DeviceNode) -> DeviceNode:
    """A device node with type and numbers, from the host's file where the edits leave them out. Raises CdiError."""
    if node.type_ and (node.major or node.type_ == "p"):
        return node
    host = node.host_path or node.path
    try:
        found = os.stat(host)
    except OSError as error:
        raise CdiError(f"device node {node.path}: {error.strerror}: {host}") from error
    types = ((stat.S_ISCHR, "c"), (stat.S_ISBLK, "b"), (stat.S_ISFIFO, "p"))
    type_ = next((letter for test, letter in types if test(found.st_mode)), "")
    if not type_ or (node.type_ and node.type_ != type_):
        raise CdiError(f"device node {node.path}: {host} is no {node.type_ or 'device'}")
    return replace(node, type_=type_, major=os.major(found.st_rdev), minor=os.minor(found.st_rdev))
