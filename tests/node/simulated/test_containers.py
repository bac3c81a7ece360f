"""Logs of pods on simulated nodes, and commands in them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from drayman.cluster import merge_patch
from drayman.driver_configs.nvidia import API_VERSION
from drayman.drivers.nvidia.driver import MPS_DIR
from drayman.drivers.nvidia.programs import MpsDaemon
from drayman.node.simulated.model import FAILED
from drayman.node.streams.model import (
    ContainerName,
    LogOptions,
    NodeApiError,
    PodName,
    StreamOptions,
)
from node.simulated.world import NODE_VALUES, POD_VALUES, World, world
from node.streams.talking import Collected

GPU = ("gpu.example.com", "example-0", "gpu-1")
CONTAINERS = [
    {"name": "with", "image": "i", "resources": {"claims": [{"name": "c0"}]}},
    {"name": "without", "image": "i"},
]
ALL = StreamOptions(stdin=True, stdout=True, stderr=True)


def named(pod: dict[str, Any], container: str) -> ContainerName:
    return ContainerName("default", pod["metadata"]["name"], pod["metadata"]["uid"], container)


async def log_of(w: World, name: ContainerName, options: LogOptions = LogOptions()) -> list[str]:  # noqa: B008
    chunks = [chunk async for chunk in await w.nodes.containers.logs(name, options)]
    return b"".join(chunks).decode().splitlines()


async def with_gpu(w: World, **more: Any) -> dict[str, Any]:
    await w.claim("c", GPU)
    await w.pod("p", "example-0", claims=["c"], containers=CONTAINERS, **more)
    return await w.until(
        POD_VALUES, "p", lambda pod: pod["status"].get("phase") in ("Running", "Succeeded")
    )


async def test_a_log_says_what_a_container_has() -> None:
    """Each container its own devices; every line says that it is simulated."""
    async with world() as w:
        pod = await with_gpu(w)
        started, claim, running = await log_of(w, named(pod, "with"))
        assert started == "simulated: started i on node example-0; nothing is executed"
        assert claim.startswith("simulated: claim c gives gpu-1 of gpu.example.com")
        assert running == "simulated: running"
        assert await log_of(w, named(pod, "without")) == [started, running]
        assert await log_of(w, named(pod, "with"), LogOptions(tail=1)) == [running]
        assert await log_of(w, named(pod, "with"), LogOptions(limit_bytes=9)) == ["simulated"]
        (stamped,) = await log_of(w, named(pod, "with"), LogOptions(tail=1, timestamps=True))
        assert stamped.split()[0].endswith(".000000000Z")


async def test_a_log_is_followed_to_its_end() -> None:
    """What it had first, then what is added; it ends with the container."""
    async with world() as w:
        pod = await with_gpu(w, restartPolicy="Never")
        following = await w.nodes.containers.logs(named(pod, "with"), LogOptions(follow=True))
        first = await anext(following)
        assert b"running" in first
        await w.client.delete(POD_VALUES, "p", "default")
        rest = b"".join([chunk async for chunk in following])
        assert rest == b"simulated: ended with exit code 143\n"


async def test_nothing_listens_on_a_port() -> None:
    """The refusal says that the pod is simulated, and where."""
    async with world() as w:
        pod = await with_gpu(w)
        name = PodName("default", "p", pod["metadata"]["uid"])
        said = "simulated: nothing listens on port 80 of pod p on node example-0"
        with pytest.raises(NodeApiError, match=said):
            await w.nodes.containers.forward(name, 80)


async def test_the_log_of_a_container_that_was_started_again() -> None:
    """Both runs have one."""
    async with world() as w:
        wishes = {"drayman.dev/run-for": "10ms", "drayman.dev/exit-code": "2"}
        await w.pod("p", "example-0", annotations=wishes, restartPolicy="OnFailure")
        pod = await w.until(
            POD_VALUES,
            "p",
            lambda each: (
                (each["status"].get("containerStatuses") or [{}])[0].get("restartCount", 0) > 0
            ),
        )
        last = await log_of(w, named(pod, "main"), LogOptions(previous=True))
        assert last[-1] == "simulated: ended with exit code 2"


async def test_what_is_not_there_is_refused_as_by_a_kubelet() -> None:
    """A container that waits, one without a past, a pod that is gone, a node that is silent."""
    async with world() as w:
        await w.pod(
            "waits",
            "example-0",
            claims=[],
            resourceClaims=[{"name": "c0", "resourceClaimName": "none"}],
        )
        waits = await w.until(
            POD_VALUES, "waits", lambda pod: pod["status"].get("containerStatuses")
        )
        with pytest.raises(
            NodeApiError,
            match='container "main" in pod "waits" is waiting to start: ContainerCreating',
        ):
            await log_of(w, named(waits, "main"))
        with pytest.raises(
            NodeApiError, match=r'unable to upgrade connection: container not found \("main"\)'
        ):
            await w.nodes.containers.execute(named(waits, "main"), ("ls",), ALL, Collected())
        await w.pod("p", "example-0")
        pod = await w.until_phase("p", "Running")
        with pytest.raises(
            NodeApiError, match='previous terminated container "main" in pod "p" not found'
        ):
            await log_of(w, named(pod, "main"), LogOptions(previous=True))
        with pytest.raises(NodeApiError, match='pod "p" not found'):
            await log_of(w, ContainerName("default", "p", "another", "main"))
        silent = merge_patch({"metadata": {"annotations": {FAILED: "true"}}})
        await w.client.patch(NODE_VALUES, "example-0", silent)
        while w.nodes.living:
            await asyncio.sleep(0)
        with pytest.raises(NodeApiError, match="example-0 is silent"):
            await log_of(w, named(pod, "main"))


async def test_a_command_sees_the_devices_of_its_container() -> None:
    """And says on standard error that nothing is executed."""
    async with world() as w:
        pod = await with_gpu(w)
        client = Collected()
        code = await w.nodes.containers.execute(named(pod, "with"), ("env",), ALL, client)
        assert code == 0
        assert b"GPU_DEVICE_1=gpu-1" in client.output
        assert client.errors.startswith(b"simulated: node example-0 executes nothing")
        other = Collected()
        await w.nodes.containers.execute(named(pod, "without"), ("env",), ALL, other)
        assert b"GPU_DEVICE" not in other.output


async def test_programs_find_the_control_daemon_of_mps() -> None:
    """Where the driver of a real node has it for the claim, in the containers that use the claim."""
    sharing = {"strategy": "MPS"}
    said = {"apiVersion": API_VERSION, "kind": "GpuConfig", "sharing": sharing}
    config = [{"source": "FromClaim", "opaque": {"driver": "gpu.nvidia.com", "parameters": said}}]
    async with world("dgx-h100=1") as w:
        claim = await w.claim("c", ("gpu.nvidia.com", "dgx-h100-0", "gpu-0"), config=config)
        await w.pod("p", "dgx-h100-0", claims=["c"], containers=CONTAINERS)
        pod = await w.until_phase("p", "Running")
        client, other = Collected(), Collected()
        await w.nodes.containers.execute(named(pod, "with"), ("env",), ALL, client)
        await w.nodes.containers.execute(named(pod, "without"), ("env",), ALL, other)
        pipes = MpsDaemon(MPS_DIR / claim["metadata"]["uid"]).pipes
        assert f"CUDA_MPS_PIPE_DIRECTORY={pipes}\n".encode() in client.output
        assert b"CUDA_MPS" not in other.output


async def test_a_shell_answers_line_by_line() -> None:
    """And ends with the code of its last command, or with its container."""
    async with world() as w:
        pod = await with_gpu(w)
        client = Collected([b"hostname\nnope\n"])
        code = await w.nodes.containers.execute(named(pod, "with"), ("/bin/bash",), ALL, client)
        assert (code, client.output) == (127, b"p\n")
        client = Collected([b"hostname; ls /dev/nul*\nhostname | wc\n\nexit; env\n"])
        code = await w.nodes.containers.execute(named(pod, "with"), ("sh",), ALL, client)
        assert (code, client.output) == (2, b"p\n/dev/null\n")
        assert client.errors.endswith(b"sh: | is not simulated: only plain commands, joined by ; or &&, are simulated\n")  # fmt: skip

        class Waiting(Collected):
            async def read(self) -> bytes:
                await w.client.delete(POD_VALUES, "p", "default")
                await asyncio.Event().wait()
                return b""

        code = await w.nodes.containers.execute(named(pod, "with"), ("sh",), ALL, Waiting())
        assert code == 137
