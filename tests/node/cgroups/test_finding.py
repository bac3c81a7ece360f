"""Where groups can be made: on built trees that look as those of other machines, and on this one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drayman.node.cgroups.finding import (
    AGENT,
    CannotLimitError,
    Mount,
    find_hierarchies,
    folder_of,
    leave,
    memberships_of,
    mounts_of,
)
from drayman.node.cgroups.layout import Hierarchies

UNIFIED = "30 23 0:26 / {point} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
SEPARATE = "31 23 0:27 / {point}/{name} rw - cgroup cgroup rw,{name}\n"


def built(
    folder: Path,
    *,
    procs: str,
    own: str = "/svc",
    passed_on: str = "",
    there: str = "cpuset cpu memory pids",
) -> Path:
    """What the kernel shows of a process in a group of version 2; returns what stands for its /proc."""
    group = Path(f"{folder}/tree{own}")
    base = group.parent if group.name == AGENT else group
    group.mkdir(parents=True)
    (base / "cgroup.controllers").write_text(there)
    (base / "cgroup.subtree_control").write_text(passed_on)
    (base / "cgroup.procs").write_text(procs)
    (base / "cgroup.events").write_text("populated 1\n")
    proc = folder / "proc"
    proc.mkdir()
    (proc / "mountinfo").write_text(
        "1 1 8:1 / / rw - ext4 /dev/sda rw\n" + UNIFIED.format(point=folder / "tree")
    )
    (proc / "cgroup").write_text(f"0::{own}\n")
    return proc


def test_a_group_of_its_own(tmp_path: Path) -> None:
    """An agent that is alone in its group moves beside its containers, and the group passes its controllers on."""
    proc, base = built(tmp_path, procs=f"{os.getpid()}\n"), tmp_path / "tree/svc"
    found = find_hierarchies(proc)
    assert found == Hierarchies(2, dict.fromkeys(("cpu", "cpuset", "memory", "pids"), str(base)))
    assert (base / AGENT / "cgroup.procs").read_text() == str(os.getpid())
    assert (base / "cgroup.subtree_control").read_text() == "+cpu +cpuset +memory +pids"
    leave(found)
    assert not (base / "drayman").exists()


def test_started_beside_its_containers(tmp_path: Path) -> None:
    """A service manager may start the agent in the group that it would move to."""
    proc = built(
        tmp_path, procs="", own=f"/svc/{AGENT}", passed_on="cpu memory", there="cpu memory"
    )
    assert find_hierarchies(proc).bases == dict.fromkeys(
        ("cpu", "memory"), str(tmp_path / "tree/svc")
    )


@pytest.mark.parametrize(
    ("procs", "there", "says"),
    [
        (f"{os.getpid()}\n1\n", "cpu memory", "other processes are in .*systemd-run"),
        ("", "io", "has none of the controllers"),
    ],
    ids=["a session is shared", "nothing was delegated"],
)
def test_where_it_cannot_be(tmp_path: Path, procs: str, there: str, says: str) -> None:
    """Groups of others are left as they are, and the reason names what would help."""
    with pytest.raises(CannotLimitError, match=says):
        find_hierarchies(built(tmp_path, procs=procs, there=there))
    assert not (tmp_path / "tree/svc/drayman").exists()


def built_separately(folder: Path, names: dict[str, str]) -> Path:
    """What the kernel shows of a process in groups of version 1, by controller; returns what stands for its /proc."""
    for name, group in names.items():
        Path(f"{folder}/{name}{group}").mkdir(parents=True)
    lines = "".join(SEPARATE.format(point=folder, name=name) for name in names)
    (folder / "mountinfo").write_text(lines + UNIFIED.format(point=folder / "unified"))
    members = [
        f"{number}:{name}:{group}\n" for number, (name, group) in enumerate(names.items(), 1)
    ]
    (folder / "cgroup").write_text("".join(members) + "0::/\n")
    return folder


@pytest.mark.parametrize("version", [1, 2])
def test_groups_of_somebody_else(tmp_path: Path, version: int) -> None:
    """A group that is there, but in which this process may make none, is no place for containers."""
    if version == 1:
        proc, base = built_separately(tmp_path, {"cpu": "/"}), tmp_path / "cpu"
    else:
        proc, base = built(tmp_path, procs="", passed_on="cpu", there="cpu"), tmp_path / "tree/svc"
    # Nobody may make anything in there, not even root, who runs the tests in some places.
    (base / "drayman").symlink_to("/proc/self/task")
    with pytest.raises(CannotLimitError, match=r"drayman/trial-\d+: "):
        find_hierarchies(proc)


def test_version_1(tmp_path: Path) -> None:
    """Each controller has its own hierarchy, and the agent another group in each."""
    built_separately(tmp_path, {"cpu": "/", "memory": "/deep/one", "cpuset": "/"})
    for file, text in (("cpus", "0-1\n"), ("mems", "0\n")):
        (tmp_path / f"cpuset/cpuset.{file}").write_text(text)
    found = find_hierarchies(tmp_path)
    assert (found.version, found.all_cpus, found.all_nodes) == (1, "0-1", "0")
    assert found.bases["memory"] == f"{tmp_path}/memory/deep/one"
    assert (tmp_path / "memory/deep/one/drayman").is_dir()


def test_no_groups_at_all(tmp_path: Path) -> None:
    """A machine that shows no hierarchies is said to have none."""
    (tmp_path / "mountinfo").write_text("1 1 8:1 / / rw - ext4 /dev/sda rw\n")
    (tmp_path / "cgroup").write_text("")
    with pytest.raises(CannotLimitError, match="no hierarchy of control groups is mounted"):
        find_hierarchies(tmp_path)


def test_reading_what_the_kernel_shows() -> None:
    """Several controllers may share a hierarchy; spaces in names are escaped; a mount may show a part only."""
    (mount,) = mounts_of("1 2 0:1 /docker/x /a\\040b rw,x shared:1 - cgroup none rw,cpu,cpuacct\n")
    assert mount == Mount("/docker/x", "/a b", "cgroup", frozenset({"rw", "cpu", "cpuacct"}))
    assert memberships_of("3:cpu,cpuacct:/docker/x/y\n0::/z:1\n") == {
        "cpu": "/docker/x/y",
        "cpuacct": "/docker/x/y",
        "": "/z:1",
    }
    assert folder_of(mount, "/docker/x/y") == Path("/a b/y")
    assert folder_of(mount, "/docker/xy") is None
    assert folder_of(mount, "/elsewhere") is None
