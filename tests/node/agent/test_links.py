"""Links that containers put into their volumes lead neither mounts nor the agent out of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from drayman.node.agent.environment import SourceError
from drayman.node.agent.launching import launch_of
from drayman.node.agent.processes import shim
from drayman.node.agent.processes.attempts import Attempt, Bind, Launch, may_mount
from drayman.node.agent.processes.beneath import by_descriptor, open_below
from drayman.node.agent.spec import Container, RunnablePod, Volume, VolumeMount
from drayman.node.agent.volumes.files import VolumeFile, set_up
from drayman.plugins import cdi
from node.agent.test_attempts import lines
from node.agent.world import attempted

ENV = {"PATH": "/usr/bin:/bin"}
needs_mounts = pytest.mark.skipif(not may_mount(), reason="mount namespaces are not permitted")


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A volume with links, beside something that is none of its business."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("outside\n")
    found = tmp_path / "volume"
    (found / "deep/er").mkdir(parents=True)
    (found / "deep/file").write_text("inside\n")
    (found / "near").symlink_to("deep/../deep")
    (found / "deep/up").symlink_to("../deep/file")
    (found / "far").symlink_to(tmp_path / "outside")
    (found / "deep/away").symlink_to("../../outside")
    (found / "loop").symlink_to("loop")
    (found / "itself").symlink_to(found)
    return found


@dataclass(frozen=True)
class Case:
    says: str
    path: str
    want: str | type[OSError]
    """What it leads to, or what comes of it."""
    follows: bool = True


CASES = [
    Case("a path", "deep/file", "deep/file"),
    Case("nothing is the volume", "", ""),
    Case("points and slashes mean nothing", "./deep//er/", "deep/er"),
    Case("a link that stays within", "near/file", "deep/file"),
    Case("a link as the last part", "near/up", "deep/file"),
    Case("up and down again", "deep/er/../file", "deep/file"),
    Case("up and out", "deep/../../outside", OSError),
    Case("a link with an absolute path", "far/file", OSError),
    Case("also one that leads back", "itself/deep", OSError),
    Case("a link up and out", "near/away/file", OSError),
    Case("a link in a circle", "loop", OSError),
    Case("nothing there", "deep/none/x", FileNotFoundError),
    Case("something below a file", "deep/file/x", NotADirectoryError),
    Case("a link where none is followed", "near/file", OSError, follows=False),
    Case("no link where none is followed", "deep/file", "deep/file", follows=False),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_what_lies_below(case: Case, volume: Path) -> None:
    """Each case says what is opened, or is refused by its name."""
    base = os.open(volume, os.O_PATH)
    try:
        if isinstance(case.want, type):
            with pytest.raises(case.want, match=case.path):
                open_below(base, case.path, follows=case.follows)
            return
        found = open_below(base, case.path, follows=case.follows)
        assert os.readlink(by_descriptor(found)) == str(volume / case.want).rstrip("/")
        os.close(found)
    finally:
        os.close(base)


def mounted(volume: Path, sub_path: str) -> Launch:
    container = Container(
        volume_mounts=(VolumeMount(name="v", mount_path="/data", sub_path=sub_path),)
    )
    pod = RunnablePod()
    return launch_of(pod, container, ("true",), ENV, {"v": volume}, cdi.merged(()), own_root=True)


def test_a_mount_point_comes_before_what_lies_below_it(volume: Path) -> None:
    """Whoever asks for which, and however it is written: a driver's mount does not cover a volume that is mounted in it."""
    edits = cdi.ContainerEdits(mounts=(cdi.Mount(host_path="/usr", container_path="/data/"),))
    paths = ("/data/deep/own", "/data/deep/", "/")
    container = Container(volume_mounts=tuple(VolumeMount(name="v", mount_path=p) for p in paths))
    launch = launch_of(
        RunnablePod(), container, ("true",), ENV, {"v": volume}, cdi.merged((edits,)), own_root=True
    )
    assert [bind.target for bind in launch.binds] == ["/", "/data", "/data/deep", "/data/deep/own"]


@pytest.mark.parametrize("sub_path", ["far/new", "deep/away/new", "../outside/new", "loop/new"])
def test_a_part_that_leads_out(sub_path: str, volume: Path) -> None:
    """It is refused by its name, and nothing is made anywhere."""
    with pytest.raises(
        SourceError, match=f"subPath {sub_path} of volume v leads out of the volume"
    ):
        mounted(volume, sub_path)
    assert not (volume.parent / "outside/new").exists()


@pytest.mark.parametrize("mode", [0o777, 0o750, stat.S_ISGID | 0o770])
def test_a_part_that_is_made(mode: int, volume: Path) -> None:
    """Its directories have the mode of the volume, so that whoever may write to that may write to them."""
    volume.chmod(mode)
    before = os.umask(0o077)
    try:
        (bind,) = mounted(volume, "near/new/er").binds
    finally:
        os.umask(before)
    assert (bind.source, bind.sub_path) == (str(volume), "near/new/er")
    for path in (volume / "deep/new", volume / "deep/new/er"):
        assert stat.S_IMODE(path.stat().st_mode) == mode


@dataclass(frozen=True)
class Start:
    says: str
    binds: Callable[[Path, Path], tuple[Bind, ...]]
    said: str = ""
    failure: str = ""


STARTS = [
    Start(
        "a mount below a link that leads to a directory of the host",
        lambda volume, other: (Bind(str(volume), "/data"), Bind(str(other), "/data/far/x")),
        failure="/data/far/x: leads through a link",
    ),
    Start(
        "a mount below a link by steps upwards",
        lambda volume, other: (Bind(str(volume), "/data"), Bind(str(other), "/data/deep/away/x")),
        failure="/data/deep/away/x: leads through a link",
    ),
    Start(
        "a mount on a link",
        lambda volume, other: (Bind(str(volume), "/data"), Bind(str(other), "/data/far")),
        failure="/data/far: leads through a link",
    ),
    Start(
        "a mount in a place that is made in another volume",
        lambda volume, other: (Bind(str(other), "/data"), Bind(str(volume), "/data/new", True)),
        said="directory",
    ),
    Start(
        "a part that has become a link that leads out",
        lambda volume, _: (Bind(str(volume), "/data", sub_path="far"),),
        failure="far: leads out",
    ),
    Start(
        "a part by a link that stays within",
        lambda volume, _: (Bind(str(volume), "/data", sub_path="near/up"),),
        said="inside",
    ),
]


@needs_mounts
@pytest.mark.parametrize("case", STARTS, ids=lambda case: case.says)
async def test_a_container_with_links_in_its_volume(
    case: Start, volume: Path, tmp_path: Path
) -> None:
    """Each case is started, or refused by its name; nothing outside of the volumes changes."""
    other = tmp_path / "other"
    other.mkdir()
    script = "[ -d /data ] && echo directory || cat /data"
    binds = case.binds(volume, other)
    launch = Launch(argv=("sh", "-c", script), env=ENV, own_root=True, binds=binds)
    async with attempted(tmp_path / "0", launch) as attempt:
        ended = await attempt.wait()
        said = lines(attempt)
    assert ended.failure == case.failure
    assert ended.code == (shim.START_ERROR if case.failure else 0)
    assert said == ([f"stdout F {case.said}"] if case.said else [])
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["file"]


def files(folder: Path, word: str) -> None:
    set_up(folder, Volume(name="v"), {"key": VolumeFile(word.encode())})


@pytest.mark.parametrize("lie", ["/outside", "..", "../outside", "..data"])
def test_a_volume_whose_link_was_changed(lie: str, tmp_path: Path) -> None:
    """Whatever a container has made of it, nothing but what the node made is removed, and the files are right again."""
    outside, folder = tmp_path / "outside", tmp_path / "v"
    outside.mkdir()
    (outside / "key").write_text("other")
    files(folder, "old")
    (folder / "..data").unlink()
    (folder / "..data").symlink_to(lie.replace("/outside", str(outside)) if lie[0] == "/" else lie)
    files(folder, "new")
    assert (outside / "key").read_text() == "other"
    assert (folder / "key").read_text() == "new"


async def test_an_attempt_of_an_earlier_version(tmp_path: Path) -> None:
    """What it was started with is still understood."""
    (tmp_path / "start.json").write_text('{"argv":["true"],"env":{},"binds":[["/a","/b",true]]}')
    assert Attempt(tmp_path).launch().binds == (Bind("/a", "/b", read_only=True),)
