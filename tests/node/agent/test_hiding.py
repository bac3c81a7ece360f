"""What containers do not see: the credentials of the cluster, and the files of other pods, whichever way they look."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.node.agent.folders import Hidden
from drayman.node.agent.launching import reveals
from drayman.node.agent.processes.attempts import Attempt, Isolation, Launch
from drayman.node.agent.processes.executing import run_inside
from drayman.node.agent.spec import Container
from node.agent.world import World, world
from patience import PATIENCE_S

ISOLATION = Isolation.here()
ENV = {"PATH": os.environ["PATH"]}
needs_hiding = pytest.mark.skipif(not ISOLATION.hides, reason="this machine cannot hide anything")


def shell(script: str) -> dict[str, Any]:
    return {"name": "main", "image": "host", "command": ["sh", "-c", script]}


def logs(here: World, pod: dict[str, Any]) -> str:
    folder = here.options.pods_dir / pod["metadata"]["uid"] / "containers" / "main" / "0"
    return (folder / "log").read_text()


LOOKS = {
    "by its path": "cat {secret}",
    "by the root of the first process of the machine": "cat /proc/1/root{secret}",
    "by the root of the agent": "cat /proc/{agent}/root{secret}",
    "by the directory of the agent": "ls /proc/{agent}/cwd/",
    "by the environment of the agent": "tr '\\0' ' ' < /proc/{agent}/environ",
    "in the namespace of the agent": "nsenter -t {agent} -m cat {secret}",
    "after an unmount": "umount {folder}; cat {secret}",
    "in a mount namespace": "unshare -m sh -c 'umount {folder}; cat {secret}'",
    "in a user namespace": "unshare -U -r -m sh -c 'umount {folder}; cat {secret}'",
    "under another mount": "mkdir -p /dev/shm/m; mount --bind / /dev/shm/m; cat /dev/shm/m{secret}",
    "by leaving a root": (
        'python3 -c \'import os; os.chdir("/"); os.mkdir("/dev/shm/x"); os.chroot("/dev/shm/x");'
        ' [os.chdir("..") for _ in range(9)]; os.chroot("."); print(open("{secret}").read())\''
    ),
    "by a link": "ln -s {secret} /dev/shm/link; cat /dev/shm/link",
}


@needs_hiding
@pytest.mark.parametrize("way", LOOKS)
async def test_a_secret_of_the_cluster(way: str, tmp_path: Path) -> None:
    """A container sees an empty directory in the place of the data directory, and finds no way behind it."""
    secret = tmp_path / "data" / "admin.token"
    secret.parent.mkdir()
    secret.write_text("the-token")
    async with world() as plain:
        here = replace(plain, options=replace(plain.options, secrets=[secret.parent]))
        words = {"secret": secret, "folder": secret.parent, "agent": os.getpid()}
        script = LOOKS[way]
        for name, value in words.items():
            script = script.replace(f"{{{name}}}", str(value))
        async with here.agent():
            made = await here.pod("p", shell(f"{script}; ls -a {secret.parent}; exit 0"))
            await here.phase("p", "Succeeded")
            said = logs(here, made)
    assert "the-token" not in said
    assert "admin.token\n" not in said.replace(str(secret), "")
    if "environment" in way:
        assert ENV["PATH"] not in said


KERNEL_SETTING = "/proc/sys/kernel/core_pattern"
"""Names a program that the kernel runs with all rights, outside of all containers."""


@needs_hiding
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change it anyway")
@pytest.mark.parametrize(
    ("shown", "place"), [("/", ""), ("/proc", "/proc"), ("/proc/sys/kernel", "/proc/sys/kernel")]
)
async def test_settings_of_the_kernel(shown: str, place: str, tmp_path: Path) -> None:
    """They can be read and not changed, where they are and in a hostPath. What is written is what is there already."""
    mounted = [{"name": "h", "mountPath": "/h"}]
    there = "/h" + KERNEL_SETTING.removeprefix(place)
    script = "".join(
        f'v=$(cat {each}) && echo read; (echo "$v" > {each}) && echo changed; '
        for each in (KERNEL_SETTING, there)
    )
    async with world() as here, here.agent():
        volumes = [{"name": "h", "hostPath": {"path": shown}}]
        made = await here.pod(
            "p", {**shell(script + "exit 0"), "volumeMounts": mounted}, volumes=volumes
        )
        await here.phase("p", "Succeeded")
        said = logs(here, made).split()
    assert said.count("read") == 2
    assert "changed" not in said


@needs_hiding
async def test_another_pod(tmp_path: Path) -> None:
    """A container sees neither the folder of another pod nor, by the other's processes, what is mounted there."""
    async with world() as here, here.agent():
        secret = {"name": "s", "emptyDir": {}}
        mounted = [{"name": "s", "mountPath": "/hush"}]
        owner = {**shell("echo secret > /hush/key; exec sleep 300"), "volumeMounts": mounted}
        first = await here.pod("owner", owner, volumes=[secret])
        await here.phase("owner", "Running")
        folder = here.options.pods_dir / first["metadata"]["uid"]
        pid = Attempt(folder / "containers" / "main" / "0").pid
        root = f"/proc/{pid}/root"
        script = f"cat {root}/hush/key {folder}/volumes/s/key; ls {here.options.pods_dir}"
        made = await here.pod("thief", shell(f"{script}; exit 0"))
        await here.phase("thief", "Succeeded")
        said = logs(here, made)
        assert (folder / "volumes" / "s" / "key").read_text() == "secret\n"
    assert "secret" not in said
    assert first["metadata"]["uid"] + "\n" not in said


@needs_hiding
async def test_host_paths(tmp_path: Path) -> None:
    """A hostPath above what is hidden shows everything else; one into it is refused with its field, unless it is a driver's folder."""
    async with world() as here, here.agent():
        hidden = here.options.root
        (hidden.parent / "other").write_text("visible\n")
        mounted = [{"name": "h", "mountPath": "/h"}]
        reader = {**shell(f"ls -A /h /h/{hidden.name}"), "volumeMounts": mounted}

        async def pod(name: str, path: Path) -> Any:
            return await here.pod(
                name, reader, volumes=[{"name": "h", "hostPath": {"path": str(path)}}]
            )

        made = await pod("above", hidden.parent)
        await here.phase("above", "Succeeded")
        said = logs(here, made)
        assert "other" in said
        assert "pods" not in said
        await pod("inside", here.options.pods_dir)
        (note,) = await here.notes("Failed")
        assert f"volume h: hostPath.path {here.options.pods_dir} has credentials" in note


@needs_hiding
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to keep")
async def test_ordinary_work_of_root(tmp_path: Path) -> None:
    """Root in a container still changes owners, moves files between directories, listens on low ports and changes its user."""
    folder = tmp_path / "work"
    folder.mkdir()
    tmp_path.chmod(0o755)
    script = (
        f"cd {folder} && mkdir a b && echo x > a/f && mv a/f b/g && ln b/g a/h && chown 1234 b/g"
        ' && python3 -c \'import socket; socket.create_server(("127.0.0.1", 0)); s = socket.socket();'
        f' s.bind(("127.0.0.1", {_free_low_port()}))\' && setpriv --reuid 1234 --clear-groups id -u'
    )
    said = await _run(tmp_path, ("sh", "-c", script), hidden=[tmp_path / "none"])
    assert said.endswith("1234\n"), said


def _free_low_port() -> int:
    for port in range(900, 1000):
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port below 1024 is free")


async def _run(folder: Path, argv: Sequence[str], hidden: Sequence[Path]) -> str:
    """What a sealed container says, with the reason for which it could not be started."""
    attempt = Attempt(folder / "attempts" / "0")
    attempt.start(
        Launch(
            argv=tuple(argv),
            env=ENV,
            own_root=True,
            hidden=tuple(str(path.resolve()) for path in hidden),
            is_sealed=os.geteuid() == 0,
        )
    )
    ended = await attempt.wait()
    lines = attempt.log.read_text().splitlines() if attempt.log.exists() else []
    return "".join(line.split(" ", 3)[3] + "\n" for line in lines) + ended.failure


@needs_hiding
async def test_commands_inside(tmp_path: Path) -> None:
    """A command that is run in a container sees as little as the container."""
    secret = tmp_path / "data" / "token"
    secret.parent.mkdir()
    secret.write_text("the-token")
    attempt = Attempt(tmp_path / "attempts" / "0")
    attempt.start(
        Launch(
            argv=("sleep", "300"),
            env=ENV,
            own_root=True,
            hidden=(str(secret.parent.resolve()),),
            is_sealed=os.geteuid() == 0,
        )
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not attempt.is_program():
                await asyncio.sleep(0.01)
        for path in (secret, f"/proc/{os.getpid()}/root{secret}"):
            result = await run_inside(attempt, ("cat", str(path)))
            assert (result.code, "the-token" in result.text) == (1, False), result
    finally:
        attempt.signal(9)
        await attempt.wait()


@pytest.mark.parametrize(
    ("context", "want"),
    [
        (None, False),
        ({}, False),
        ({"privileged": True}, True),
        ({"capabilities": {"add": ["NET_ADMIN"]}}, False),
        ({"capabilities": {"add": ["SYS_ADMIN"]}}, True),
        ({"capabilities": {"add": ["CAP_SYS_PTRACE"]}}, True),
        ({"capabilities": {"add": ["ALL"]}}, True),
    ],
)
def test_who_keeps_all_privileges(context: Any, want: bool) -> None:
    """A privileged container, and one that adds a capability to look elsewhere, keeps what others give up."""
    assert reveals(convert(Container, {"name": "c", "securityContext": context})) is want


def test_which_paths_are_refused(tmp_path: Path) -> None:
    """What lies in a hidden directory is refused, by a link as well; what holds it, or is meant for drivers, is not."""
    (tmp_path / "data" / "plugins").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    hidden = Hidden.of([tmp_path / "data"], [tmp_path / "data" / "plugins"])
    found = {
        name: hidden.refuses(tmp_path / name)
        for name in ("data", "data/x", "link", "link/x", ".", "database", "data/plugins/x")
    }
    assert [name for name, is_refused in found.items() if is_refused] == [
        "data",
        "data/x",
        "link",
        "link/x",
    ]


@pytest.mark.parametrize(
    ("isolation", "words"),
    [
        (Isolation(mounts=False, hides=False), "mount namespaces are not permitted here"),
        (Isolation(mounts=True, hides=False), "containers can read the credentials of the cluster"),
        (Isolation(mounts=True, hides=True), ""),
    ],
)
def test_what_is_exposed_is_said(isolation: Isolation, words: str) -> None:
    """A machine that cannot hide anything says so, and why."""
    assert words in isolation.exposed
    assert bool(isolation.exposed) is bool(words)
