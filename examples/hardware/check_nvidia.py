"""Try the driver `gpu.nvidia.com` on this machine: what it publishes, and what can be done with its first GPU.

    pip install 'drayman[nvidia]'
    sudo python examples/hardware/check_nvidia.py

It starts a cluster in the process and the driver beside it, and asks for claims as a kubelet would. No container is started. Each step
says what happened, or why the machine does not permit it; everything is undone before the next. Nothing else should use the GPU meanwhile.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from drayman.api.resource import Device
from drayman.cluster.options import ListOptions
from drayman.cluster.resources import RESOURCE_SLICES
from drayman.drivers.kit import KitError, Plugin
from drayman.drivers.nvidia.driver import NvidiaGpuDriver
from drayman.plugins.model import Ready
from drayman.testing import FakeKubelet, TestCluster

NODE = "this-machine"
NAME = NvidiaGpuDriver.name
HEAD = {"apiVersion": "resource.nvidia.com/v1beta1"}
SLICES = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
MPS = {"strategy": "MPS", "mpsConfig": {"defaultPinnedDeviceMemoryLimit": "1Gi"}}


async def check(driver: NvidiaGpuDriver, folder: Path) -> AsyncIterator[str]:
    """The steps, each as a line when it is done."""
    async with TestCluster(folder) as cluster, FakeKubelet(cluster.client, NODE, folder) as kubelet:
        await cluster.add_node(NODE)
        async with Plugin(driver, cluster.client, kubelet.options()):
            await kubelet.registered(NAME)
            devices = await published(cluster)
            kinds = [str(device.attributes["type"].string) for device in devices]
            counts = ", ".join(
                f"{kinds.count(kind)} of type {kind}" for kind in dict.fromkeys(kinds)
            )
            yield f"published: {len(devices)} devices, {counts}"
            whole = next(
                (each for each in devices if each.attributes["type"].string == "gpu"), None
            )
            if whole is not None:
                yield f"whole GPU: {await use(cluster, kubelet, whole, 'whole')}"
                for title, sharing in (("time slices", SLICES), ("MPS", MPS)):
                    config = HEAD | {"kind": "GpuConfig", "sharing": sharing}
                    yield f"{title}: {await use(cluster, kubelet, whole, title[:3].lower(), config)}"
            part = next((each for each in devices if each.attributes["type"].string == "mig"), None)
            if part is not None:
                yield f"partition {part.name}: {await use(cluster, kubelet, part, 'part')}"


async def published(cluster: TestCluster) -> list[Device]:
    """What the driver has published, once it has."""
    while True:
        found = await cluster.client.list_all(RESOURCE_SLICES, options=ListOptions())
        if found.items and len(found.items) == found.items[0].spec.pool.resource_slice_count:
            return [device for each in found.items for device in each.spec.devices or ()]
        await asyncio.sleep(0.1)


async def use(
    cluster: TestCluster, kubelet: FakeKubelet, device: Device, name: str, config: Any = None
) -> str:
    """Prepare a claim for a device, say what a container would get, and undo it."""
    entries = [{"source": "FromClaim", "opaque": {"driver": NAME, "parameters": config}}]
    claim = await cluster.allocate(
        name, NAME, NODE, {"gpu": device.name}, config=entries if config else ()
    )
    answer = await kubelet.prepare(NAME, claim)
    try:
        if not isinstance(answer, Ready):
            return f"not permitted: {answer.message}"
        container = kubelet.container(answer)
        nodes = " ".join(node.path for node in container.device_nodes)
        env = " ".join(f"{key}={value}" for key, value in container.env.items())
        return f"prepared; a container gets {nodes}, {len(container.mounts)} mounts, {env}"
    finally:
        failed = await kubelet.unprepare(NAME, claim)
        if failed is not None:
            print(f"not undone: {failed.message}")
        await cluster.remove_claim(name)


async def main() -> None:
    if shutil.which("nvidia-smi"):
        subprocess.run(["nvidia-smi", "-L"], check=True)
    for dynamic in (False, True):
        print(f"--- {'dynamic MIG' if dynamic else 'as the GPUs are'}")
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            try:
                driver = NvidiaGpuDriver(NODE, dynamic_mig=dynamic, mps_dir=folder / "mps")
            except KitError as error:
                raise SystemExit(str(error)) from error
            async for line in check(driver, folder):
                print(line)


if __name__ == "__main__":
    asyncio.run(main())
