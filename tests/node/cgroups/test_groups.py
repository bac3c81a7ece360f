"""Groups of the kernel that this runs on: everything in them ends, and nothing of them stays."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from drayman.node.cgroups import groups
from drayman.node.cgroups.layout import Group, Write
from node.cgroups.real import writable_hierarchies

PLACES = writable_hierarchies()


@pytest.mark.skipif(not PLACES, reason="this user may write to no hierarchy of control groups")
@pytest.mark.parametrize("top", PLACES, ids=lambda path: path.parent.name)
def test_everything_ends(top: Path) -> None:
    """What is in a group is killed, also what has left its session and its parent, and the groups are removed."""
    made = (Group(str(top)), Group(str(top / "a")), Group(str(top / "a/0"), holds=True))
    groups.make(made)
    escape = f"echo 0 > {top}/a/0/cgroup.procs; setsid sleep 1004 & exec sleep 1005"
    process = subprocess.Popen(("sh", "-c", escape))
    try:
        while len((top / "a/0/cgroup.procs").read_text().split()) < 2:
            assert process.poll() is None
        assert groups.remove(made)
        assert process.wait() == -9
        assert not top.exists()
        assert groups.remove(made), "removing what is gone is no failure"
    finally:
        process.kill()
        process.wait()
        groups.remove(made)


def test_files_that_only_some_kernels_have(tmp_path: Path) -> None:
    """Optional files are skipped where they are missing; others are named."""
    (tmp_path / "there").touch()
    optional = Write("missing", "1", is_optional=True)
    groups.make([Group(str(tmp_path), (Write("there", "7"), optional))])
    assert (tmp_path / "there").read_text() == "7"
    with pytest.raises(FileNotFoundError, match="missing"):
        groups.make([Group(str(tmp_path), (Write("missing", "1"),))])
