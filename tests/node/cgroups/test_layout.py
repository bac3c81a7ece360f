"""Which groups are made for a container, and what is written into them."""

from __future__ import annotations

from drayman.node.cgroups.layout import (
    Group,
    Hierarchies,
    Place,
    Write,
    groups_of,
    out_of_memory_file,
)
from drayman.node.cgroups.limits import Limits

PLACE = Place("uid", "main", 3)
POD = Limits(204, 200_000, 128, pids=9)
OWN = Limits(102, 100_000, 64)


def written(groups: tuple[Group, ...]) -> dict[str, dict[str, str]]:
    return {group.path: {write.file: write.value for write in group.writes} for group in groups}


def test_version_2() -> None:
    """One path, on which each group passes the controllers on, and processes only at its end."""
    where = Hierarchies(2, dict.fromkeys(("cpu", "cpuset", "memory", "pids"), "/b"))
    groups = groups_of(where, PLACE, POD, OWN)
    passed_on = {"cgroup.subtree_control": "+cpu +cpuset +memory +pids"}
    assert written(groups) == {
        "/b/drayman": passed_on,
        "/b/drayman/uid": {
            "cpu.weight": "8",
            "cpu.max": "200000 100000",
            "memory.max": "128",
            "memory.swap.max": "0",
            "pids.max": "9",
            **passed_on,
        },
        "/b/drayman/uid/main": {"cpu.weight": "4", **passed_on},
        "/b/drayman/uid/main/3": {
            "cpu.weight": "4",
            "cpu.max": "100000 100000",
            "memory.max": "64",
            "memory.swap.max": "0",
            "memory.oom.group": "1",
            "pids.max": "max",
        },
    }
    assert [group.holds for group in groups] == [False, False, False, True]
    assert out_of_memory_file(where, groups) == "/b/drayman/uid/main/3/memory.events"


def test_version_1() -> None:
    """A path for each controller, each with what that controller knows."""
    bases = {name: f"/{name}" for name in ("cpu", "cpuacct", "cpuset", "memory", "pids")}
    where = Hierarchies(1, bases, "0-3", "0")
    groups = groups_of(where, PLACE, POD, OWN)
    found = written(groups)
    assert found["/cpu/drayman/uid"] == {
        "cpu.shares": "204",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "200000",
    }
    assert found["/cpu/drayman/uid/main"] == {"cpu.shares": "102"}
    assert found["/memory/drayman/uid/main/3"] == {
        "memory.limit_in_bytes": "64",
        "memory.memsw.limit_in_bytes": "64",
    }
    assert found["/pids/drayman/uid"] == {"pids.max": "9"}
    assert found["/cpuacct/drayman/uid/main/3"] == {}
    assert not any(path.startswith("/cpuset") for path in found)
    assert sum(group.holds for group in groups) == 4
    assert out_of_memory_file(where, groups) == "/memory/drayman/uid/main/3/memory.oom_control"


def test_without_limits() -> None:
    """What has no limit is told so, because a group may have been made before with one."""
    where = Hierarchies(2, {"cpu": "/b", "memory": "/b"})
    leaf = written(groups_of(where, PLACE, Limits(2), Limits(2)))["/b/drayman/uid/main/3"]
    assert (leaf["cpu.max"], leaf["memory.max"]) == ("max 100000", "max")
    where = Hierarchies(1, {"cpu": "/c"})
    leaf = written(groups_of(where, PLACE, Limits(2), Limits(2)))["/c/drayman/uid/main/3"]
    assert leaf["cpu.cfs_quota_us"] == "-1"


def test_cpus() -> None:
    """A container's CPUs are its last group's; version 1 wants those above to have all of them."""
    own = Limits(2, cpus="2-3")
    where = Hierarchies(1, {"cpuset": "/s"}, "0-7", "0-1")
    groups = groups_of(where, PLACE, Limits(2), own)
    assert [group.writes for group in groups] == [
        *[(Write("cpuset.cpus", "0-7"), Write("cpuset.mems", "0-1"))] * 3,
        (Write("cpuset.cpus", "2-3"), Write("cpuset.mems", "0-1")),
    ]
    assert out_of_memory_file(where, groups) == ""
    unified = groups_of(Hierarchies(2, {"cpuset": "/b"}), PLACE, Limits(2), own)
    assert [Write("cpuset.cpus", "2-3") in group.writes for group in unified] == [
        False,
        False,
        False,
        True,
    ]
