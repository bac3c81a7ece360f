"""Who may use the files of volumes, and where volumes that begin empty are."""

from __future__ import annotations

import asyncio
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from drayman.api.quantity import Quantity
from drayman.cluster import DeleteOptions
from drayman.cluster.resources import CONFIG_MAPS, PODS
from drayman.node.agent.environment import SourceError
from drayman.node.agent.folders import make_private
from drayman.node.agent.processes.attempts import may_mount
from drayman.node.agent.spec import EmptyDirSource
from drayman.node.agent.volumes.empty_dirs import size_of
from drayman.node.agent.volumes.group_ownership import give_to_group
from node.agent.world import NAMESPACE, container, logs, world

GROUP = 4711
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not may_mount(), reason="only root can mount and give files away"
)


@needs_root
async def test_a_group_for_volumes() -> None:
    """Another user writes to an empty volume and reads a file that was for its owner, because of the group."""
    script = "id -G; echo x > /data/new && ls -ln /data; cat /config/key"
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/config"}]
    volumes = [
        {"name": "data", "emptyDir": {}},
        {"name": "config", "configMap": {"name": "m", "defaultMode": 0o400}},
    ]
    async with world() as here, here.agent() as agent:
        made = {"metadata": {"name": "m"}, "data": {"key": "secret\n"}}
        await here.client.create(CONFIG_MAPS, made, NAMESPACE)
        pod = await here.pod(
            "p",
            container(script, volumeMounts=mounts),
            volumes=volumes,
            securityContext={"runAsUser": 4712, "runAsGroup": 4713, "fsGroup": GROUP},
        )
        await here.phase("p", "Succeeded")
        said = logs(agent, pod)
        assert set(said[0].split()) == {"4713", str(GROUP)}
        assert said[-1] == "secret"
        (line,) = [line for line in said if line.endswith(" new")]
        assert line.split()[2:4] == ["4712", str(GROUP)]


@needs_root
async def test_what_may_be_written() -> None:
    """Another user writes to a part of an empty volume, which belongs to the group, and nobody to what the node fills in."""
    script = """
        echo x > /part/new && ls -ldn /part && ls -n /part
        cat /one; for each in /config/key /config/new /about/name /mixed/key /one; do
            (echo x > $each) 2>/dev/null && echo wrote $each; done; true"""
    mounts = [
        {"name": "data", "mountPath": "/part", "subPath": "deep/er"},
        {"name": "config", "mountPath": "/config"},
        {"name": "config", "mountPath": "/one", "subPath": "key"},
        {"name": "about", "mountPath": "/about"},
        {"name": "mixed", "mountPath": "/mixed"},
    ]
    name = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    volumes = [
        {"name": "data", "emptyDir": {}},
        {"name": "config", "configMap": {"name": "m", "defaultMode": 0o666}},
        {"name": "about", "downwardAPI": {"items": [name], "defaultMode": 0o666}},
        {
            "name": "mixed",
            "projected": {"sources": [{"configMap": {"name": "m"}}], "defaultMode": 0o666},
        },
    ]
    async with world() as here, here.agent() as agent:
        made = {"metadata": {"name": "m"}, "data": {"key": "content\n"}}
        await here.client.create(CONFIG_MAPS, made, NAMESPACE)
        for user in ({"runAsUser": 4712, "runAsGroup": 4713, "fsGroup": GROUP}, {}):
            name = f"p{len(user)}"
            pod = await here.pod(
                name,
                container(script, volumeMounts=mounts),
                volumes=volumes,
                securityContext=user,
            )
            await here.phase(name, "Succeeded")
            folder, *said = logs(agent, pod)
            assert folder.split()[0] == ("drwxrwsrwx" if user else "drwxrwxrwx")
            assert folder.split()[2:4] == ["0", str(GROUP if user else 0)]
            assert said[1].split()[2:4] == (["4712", str(GROUP)] if user else ["0", "0"])
            assert said[2:] == ["content"]


async def test_who_may_look() -> None:
    """What pods keep is for the agent's user only."""
    volumes = [{"name": "v", "configMap": {"name": "m"}}]
    async with world() as here, here.agent():
        made = {"metadata": {"name": "m"}, "data": {"key": "content\n"}}
        await here.client.create(CONFIG_MAPS, made, NAMESPACE)
        pod = await here.pod("p", container("true"), volumes=volumes)
        await here.phase("p", "Succeeded")
        folder = here.options.pods_dir / pod["metadata"]["uid"]
        found = (folder / "volumes", *folder.glob("containers/*"), *folder.glob("containers/*/*"))
        assert len(found) == 3
        assert {stat.S_IMODE(each.stat().st_mode) for each in found} == {0o700}


def test_a_folder_that_was_open(tmp_path: Path) -> None:
    """An earlier version may have left it so; it is closed, with what is in it."""
    folder = tmp_path / "volumes"
    (folder / "v").mkdir(parents=True)
    folder.chmod(0o755)
    make_private(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "v").is_dir()


@needs_root
def test_what_is_given(tmp_path: Path) -> None:
    """Folders pass the group on, files become readable, and links are not followed."""
    outside, folder = tmp_path / "outside", tmp_path / "volume"
    outside.touch(0o600)
    (folder / "deep").mkdir(parents=True, mode=0o700)
    (folder / "deep/file").touch(0o400)
    (folder / "link").symlink_to(outside)
    give_to_group(folder, GROUP, is_filled=True)
    for path in (folder, folder / "deep", folder / "deep/file", folder / "link"):
        assert path.lstat().st_gid == GROUP
    assert stat.S_IMODE((folder / "deep/file").stat().st_mode) == 0o440
    assert stat.S_IMODE((folder / "deep").stat().st_mode) == stat.S_ISGID | 0o750
    assert (outside.stat().st_gid, stat.S_IMODE(outside.stat().st_mode)) == (os.getgid(), 0o600)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may give files to every group")
def test_a_group_that_is_not_ours(tmp_path: Path) -> None:
    """A node that may not do it says so."""
    with pytest.raises(SourceError, match="fsGroup 4711: this node may not give"):
        give_to_group(tmp_path, GROUP, is_filled=False)


@needs_root
async def test_volumes_in_memory() -> None:
    """A volume in memory has the size that it says, is shared by the containers of a pod, outlives the agent, and goes with the pod."""
    mounts = [{"name": "v", "mountPath": "/fast"}]
    read = "until cat /fast/word 2>/dev/null; do sleep 0.05; done; while :; do sleep 0.05; done"
    write = (
        "grep ' /fast ' /proc/self/mounts; echo hello > /fast/word; while :; do sleep 0.05; done"
    )
    async with world() as here:
        async with here.agent() as agent:
            pod = await here.pod(
                "p",
                container(write, volumeMounts=mounts),
                container(read, "other", volumeMounts=mounts),
                volumes=[{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}],
            )
            await here.phase("p", "Running")
            while logs(agent, pod, "other") != ["hello"] or not logs(agent, pod):
                await asyncio.sleep(0.02)
            (line,) = logs(agent, pod)
            assert line.startswith("tmpfs /fast tmpfs")
            assert "size=8192k" in line
        volume = here.options.pods_dir / pod["metadata"]["uid"] / "volumes/v"
        assert (volume / "word").read_text() == "hello\n"
        async with here.agent() as agent:
            force = DeleteOptions(grace_period_seconds=0)
            await here.client.delete(PODS, "p", NAMESPACE, options=force)
            while agent.workers:
                await asyncio.sleep(0.02)
        assert not list(here.options.pods_dir.iterdir())
        assert str(here.options.pods_dir) not in Path("/proc/self/mounts").read_text()


async def test_sizes_of_volumes_on_the_disk() -> None:
    """An event says that nobody watches how large they become."""
    async with world() as here:
        async with here.agent():
            volume = {"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}
            await here.pod("p", container("true"), volumes=[volume])
            await here.phase("p", "Succeeded")
        (event,) = await here.events("NotActedOn")
        assert event["note"] == "volume v: this node ignores sizeLimit of volumes on the disk"


@dataclass(frozen=True)
class Case:
    says: str
    size: str | None
    memory: int | None
    want: int | None


@pytest.mark.parametrize(
    "case",
    [
        Case("its own limit", "1Ki", None, 1024),
        Case("that of the pod", None, 7, 7),
        Case("the smaller of both", "1Ki", 7, 7),
        Case("none", None, None, None),
        Case("a limit of nothing is none", "0", None, None),
    ],
    ids=lambda case: case.says,
)
def test_size_in_memory(case: Case) -> None:
    """Each case says which limit counts."""
    size = None if case.size is None else Quantity.parse(case.size)
    assert size_of(EmptyDirSource(size_limit=size), case.memory) == case.want
