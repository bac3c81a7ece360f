"""Where this process may make groups: below the group that it is in.

Version 1 lets whoever may write to a group make others in it. Version 2 has two more rules: controllers have to be passed on by each group
to those below it, and a group that passes controllers on has no processes of its own. So the agent moves into a group beside those of its
containers, if nobody else is in its group; others are not moved.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from drayman.node.cgroups.layout import CONTROLLERS, NAME, Hierarchies

AGENT: Final = "drayman-agent"
"""The group that the agent moves into, and that systemd can be told to start it in (`DelegateSubgroup`)."""
_UNIFIED: Final = "cgroup2"


class CannotLimitError(Exception):
    """This process cannot make groups. The message says why, and what would help."""


class Mount(Struct, frozen=True):
    """A hierarchy as it can be seen in the file system."""

    root: str
    """The group that is shown."""
    point: str
    kind: str
    options: frozenset[str]
    """Of version 1, the names of its controllers are among them."""


def mounts_of(text: str) -> list[Mount]:
    """The hierarchies in the text of a `mountinfo`."""
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, _, options) = before.split(" "), after.split(" ")[:3]
        if kind in ("cgroup", _UNIFIED):
            root, point = (field.replace("\\040", " ") for field in fields[3:5])
            found.append(Mount(root, point, kind, frozenset(options.split(","))))
    return found


def memberships_of(text: str) -> dict[str, str]:
    """The group of a process by controller, from its `cgroup` file; that of version 2 has no name."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def folder_of(mount: Mount, group: str) -> Path | None:
    """Where a group is in the file system; None if it lies outside of what is mounted."""
    if mount.root == "/":
        return Path(mount.point + group)
    below = group.removeprefix(mount.root)
    if below == group or ".." in below.split("/") or below[:1] not in ("", "/"):
        return None
    return Path(mount.point + below)


def find_hierarchies(proc: Path = Path("/proc/self")) -> Hierarchies:
    """Raises CannotLimitError. Makes the groups below which all others are."""
    try:
        mounts = mounts_of((proc / "mountinfo").read_text())
        groups = memberships_of((proc / "cgroup").read_text())
        unified = next((each for each in mounts if each.kind == _UNIFIED), None)
        if unified is not None and not any(name in groups for name in ("cpu", "memory")):
            return _unified(unified, groups)
        return _separate([each for each in mounts if each.kind == "cgroup"], groups)
    except OSError as error:
        raise CannotLimitError(f"{error.filename}: {error.strerror}") from error


def leave(where: Hierarchies) -> None:
    """Remove the top groups, unless something is in them."""
    for base in dict.fromkeys(where.bases.values()):
        try:
            Path(base, NAME).rmdir()
        except OSError:
            continue  # containers run on, or another agent has the same base


def _separate(mounts: Sequence[Mount], groups: dict[str, str]) -> Hierarchies:
    """Version 1."""
    bases: dict[str, str] = {}
    for controller in CONTROLLERS:
        mount = next((each for each in mounts if controller in each.options), None)
        folder = None if mount is None else folder_of(mount, groups.get(controller, "/"))
        if folder is not None and folder.is_dir():
            _make_top(folder)
            bases[controller] = str(folder)
    if not bases:
        raise CannotLimitError("no hierarchy of control groups is mounted")
    cpus = nodes = ""
    if "cpuset" in bases:
        cpus, nodes = (_text(bases["cpuset"], f"cpuset.{name}") for name in ("cpus", "mems"))
    return Hierarchies(1, bases, cpus, nodes)


def _unified(mount: Mount, groups: dict[str, str]) -> Hierarchies:
    """Version 2."""
    own = folder_of(mount, groups.get("", "/"))
    if own is None or not own.is_dir():
        raise CannotLimitError("the control group of this process cannot be seen from here")
    base = own.parent if own.name == AGENT else own
    there = _text(base, "cgroup.controllers").split()
    wanted = [name for name in CONTROLLERS if name in there]
    if not wanted:
        raise CannotLimitError(f"{base} has none of the controllers {', '.join(CONTROLLERS)}")
    passed_on = _text(base, "cgroup.subtree_control").split()
    missing = [name for name in wanted if name not in passed_on]
    if missing:
        _make_way(base)
        (base / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in missing))
    _make_top(base)
    return Hierarchies(2, dict.fromkeys(wanted, str(base)))


def _make_top(base: Path) -> None:
    """Make the group below which all others are. One that is there may be somebody else's, so a group is tried in it. Raises OSError."""
    top = base / NAME
    top.mkdir(exist_ok=True)
    trial = top / f"trial-{os.getpid()}"
    trial.mkdir()
    trial.rmdir()


def _make_way(base: Path) -> None:
    """See to it that no process is in a group that is to pass controllers on. The first of all groups is free to."""
    if not (base / "cgroup.events").exists():
        return
    inside = _numbers(_text(base, "cgroup.procs").split())
    others = inside - {os.getpid()}
    if others:
        raise CannotLimitError(
            f"other processes are in {base}; start the node in a group of its own, for example with"
            " systemd-run --scope -p Delegate=yes"
        )
    if inside:
        (base / AGENT).mkdir(exist_ok=True)
        (base / AGENT / "cgroup.procs").write_text(str(os.getpid()))


def _numbers(words: Iterable[str]) -> set[int]:
    return {int(word) for word in words}


def _text(folder: str | Path, name: str) -> str:
    return Path(folder, name).read_text().strip()
