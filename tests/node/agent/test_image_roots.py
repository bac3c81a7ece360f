"""Images that mean a directory on the node: containers see that as their root."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from drayman.api.errors import DocumentError
from drayman.cluster import DeleteOptions
from drayman.cluster.resources import PODS
from drayman.node.agent.images import Images, Meaning
from drayman.node.agent.processes import roots
from drayman.node.agent.processes.attempts import (
    Attempt,
    Bind,
    DeviceFile,
    Launch,
    may_mount,
    may_overlay,
)
from drayman.node.agent.running import NodeAgent
from drayman.node.agent.spec import Container
from node.agent.test_attempts import lines
from node.agent.world import NAMESPACE, World, container, logs, world

PROGRAMS = ("sh", "cat", "ls", "sleep")
needs_mounts = pytest.mark.skipif(
    not may_mount(), reason="this machine permits no mount namespaces"
)


def built(folder: Path) -> Path:
    """A small system: a few programs of this machine with their libraries, and a link that would lead out."""
    root = folder / "system"
    for name in ("bin", "etc", "tmp"):
        (root / name).mkdir(parents=True)
    for name in PROGRAMS:
        program = shutil.which(name)
        assert program is not None
        shutil.copy(program, root / "bin")
        listed = subprocess.run(("ldd", program), capture_output=True, text=True, check=False)
        for word in listed.stdout.split():
            if word.startswith("/") and not (target := root / word[1:]).exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(word, target)
    (root / "etc/release").write_text("small\n")
    (root / "var").symlink_to("/elsewhere")
    return root


def node(here: World, root: Path) -> NodeAgent:
    meanings = {"small:*": Meaning(("sh", "-c"), ("cat /etc/release",), str(root))}
    return NodeAgent(here.client, replace(here.options, images=Images(meanings)))


@needs_mounts
async def test_a_pod_sees_the_root(tmp_path: Path) -> None:
    """A container sees the files of its image, volumes, devices, processes and the host's names, and changes nothing but its own copy."""
    root = built(tmp_path)
    setting = "/proc/sys/kernel/core_pattern"
    change = f'v=$(cat {setting}); (echo "$v" > {setting}) && echo changed'
    script = (
        f"{change}; cat /etc/release; echo more > /etc/new && ls /etc; cat /etc/hosts;"
        " ls /dev/null /proc/self/stat /var/vol; sleep 1009"
    )
    async with world() as here, node(here, root) as agent:
        if not may_overlay(here.options.root):
            pytest.skip("this machine permits no overlays")
        pod = await here.pod(
            "p",
            container(
                script, image="small:1", volumeMounts=[{"name": "v", "mountPath": "/var/vol"}]
            ),
            volumes=[{"name": "v", "emptyDir": {}}],
        )
        await here.phase("p", "Running")
        while "/dev/null" not in (said := logs(agent, pod)):
            await asyncio.sleep(0.02)
        assert "small" in said
        assert "changed" not in said
        assert "new" in said
        assert all(line in said for line in Path("/etc/hosts").read_text().splitlines())
        assert "/proc/self/stat" in said
        assert not (root / "etc/new").exists()
        assert not (root / "elsewhere").exists()
        force = DeleteOptions(grace_period_seconds=0)
        await here.client.delete(PODS, "p", NAMESPACE, options=force)
        while agent.workers:
            await asyncio.sleep(0.02)
        assert not list(here.options.pods_dir.iterdir())


@needs_mounts
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("is_writable", [True, False])
async def test_another_user_in_the_root(is_writable: bool, tmp_path: Path) -> None:
    """It has what the image gives it, though it could not get there by the folders of the node."""
    root, volume = built(tmp_path), tmp_path / "volume"
    (root / "srv").mkdir(mode=0o777)
    (root / "srv").chmod(0o777)
    volume.mkdir()
    volume.chmod(0o777)
    if is_writable and not may_overlay(tmp_path):
        pytest.skip("this machine permits no overlays")
    script = "cat /etc/release; echo x > /data/new; echo y > /srv/new; cat /data/new /srv/new"
    launch = Launch(
        argv=("sh", "-c", script),
        env={"PATH": "/bin"},
        own_root=True,
        image_root=str(root),
        is_writable=is_writable,
        binds=(Bind(str(volume), "/data"),),
        user=4712,
    )
    attempt = Attempt(tmp_path / "closed/main/0")
    (tmp_path / "closed").mkdir(mode=0o700)
    attempt.start(launch)
    ended = await attempt.wait()
    assert ended.failure == ""
    said = [line.partition(" F ")[2] for line in lines(attempt) if line.startswith("stdout")]
    assert said == ["small", "x", *(["y"] if is_writable else [])]
    assert (volume / "new").stat().st_uid == 4712


@needs_mounts
async def test_the_command_of_the_image(tmp_path: Path) -> None:
    """A container without a command runs that of its image; a root that is asked to be read-only is."""
    async with world() as here, node(here, built(tmp_path)) as agent:
        secure = {"readOnlyRootFilesystem": True}
        pods = [
            await here.pod("plain", {"name": "main", "image": "small:1"}),
            await here.pod(
                "kept",
                container(
                    "echo x > /etc/new || echo refused", image="small:1", securityContext=secure
                ),
            ),
        ]
        await here.phase("plain", "Succeeded")
        await here.phase("kept", "Succeeded")
        assert logs(agent, pods[0]) == ["small"]
        assert "refused" in logs(agent, pods[1])


@needs_mounts
async def test_without_overlays(tmp_path: Path) -> None:
    """Where nothing can be laid over a root it is read-only, also with mounts in places that it does not have."""
    root, volume = built(tmp_path), tmp_path / "volume"
    volume.mkdir()
    script = "echo x > /etc/new || echo refused; echo y > /new/deep/file && cat /new/deep/file /dev/given; ls /sys"
    attempt = Attempt(tmp_path / "0")
    attempt.start(
        Launch(
            argv=("sh", "-c", script),
            env={"PATH": "/bin"},
            own_root=True,
            image_root=str(root),
            is_writable=False,
            binds=(Bind(str(volume), "/new/deep"),),
            devices=(DeviceFile("/dev/given", "/dev/null"),),
        )
    )
    ended = await attempt.wait()
    said = [line.split(" ", 3)[3] for line in attempt.log.read_text().splitlines()]
    assert (ended.code, ended.failure) == (0, "")
    assert "refused" in said
    assert "y" in said
    assert (volume / "file").read_text() == "y\n"
    assert not (root / "new").exists()


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("/a/b", "/a/b"),
        ("/out/x", "/somewhere/x"),
        ("/up/x", "/x"),
        ("/chain", "/somewhere"),
        ("/../../x/./y/", "/x/y"),
        ("/", "/"),
    ],
)
def test_links_lead_nowhere_else(tmp_path: Path, path: str, want: str) -> None:
    """Links in the root of an image are followed within that root."""
    (tmp_path / "out").symlink_to("/somewhere")
    (tmp_path / "up").symlink_to("../../..")
    (tmp_path / "chain").symlink_to("out")
    assert roots.inside(str(tmp_path), path) == want


def test_links_in_a_circle(tmp_path: Path) -> None:
    """A link that leads to itself is an error that names the path."""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="/loop/x"):
        roots.inside(str(tmp_path), "/loop/x")


FILES = {
    b'images: {"small:*": {root: /no/such}}': "1: images[small:*].root: there is no directory /no/such",
    b'images: {"small:*": {root: roots/small}}': "1: images[small:*].root: roots/small is not an absolute path",
    b"images:\n  a: {}\n  b:\n    root: [x]": "4: images[b].root: must be a text",
    b"images:\n  a: {}\n  b:\n    comand: [x]": "4: images[b].comand: is unknown; did you mean command",
    b"images:\n  a: {}\n  b:\n    command: x": "4: images[b].command: must be a list of texts",
    b"images:\n  a: {args: [80]}": "2: images[a].args: must be a list of texts; numbers have to be in",
    b"images:\n  a:\n": "2: images[a]: must be a mapping",
    b"\nimages: []": "2: images: must be a mapping",
    b"\nimage: {}": "2: image: is unknown; did you mean images",
    b"{}": "1: the file: `images` is missing",
    b"[]": "1: the file: must be a mapping",
    b"": " is to be one document with `images`",
    b"\xff": "1: ",
}


@pytest.mark.parametrize(("data", "says"), FILES.items(), ids=FILES.values())
def test_a_file_of_images_that_makes_no_sense(data: bytes, says: str) -> None:
    """The error names the file, the line, the image and the field."""
    with pytest.raises(DocumentError, match=re.escape(f"images.yaml:{says}")):
        Images.read("images.yaml", data)


def test_what_images_stand_for() -> None:
    """Fields that a file leaves out are empty."""
    images = Images.read("f", b"images: {a: {command: [serve], args: [--port, '80']}, b: {}}")
    assert images.argv(Container(name="c", image="a")) == ("serve", "--port", "80")
    assert images.argv(Container(name="c", image="b", command=("x",))) == ("x",)
