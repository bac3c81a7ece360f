"""The example driver: what its profile simulates, run for real."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from drayman.api.quantity import Quantity
from drayman.api.resource import Device
from drayman.drivers.example.devices import CPU, GPU, NET
from drayman.drivers.example.drivers import ExampleCpuDriver, ExampleGpuDriver, ExampleNetDriver
from drayman.drivers.kit.model import Allocated, Claim
from drayman.drivers.profiles import PROFILES
from drayman.plugins.model import Failed
from drivers.kit.probing import NODE, world

SETTINGS = {
    "example": {},
    "example-partitions": {"partitions": 4},
    "example-shared": {"shared": True},
    "example-shared-partitions": {"partitions": 4, "shared": True},
}


def published(profile: str, driver: str) -> tuple[str, list[Device]]:
    (node,) = PROFILES[profile].unit(0)
    slices = [each for each in node.slices if each.spec.driver == driver]
    return node.node.metadata.name, [d for each in slices for d in each.spec.devices or ()]


@pytest.mark.parametrize("profile", SETTINGS)
def test_the_driver_has_the_devices_of_its_profile(profile: str) -> None:
    """One description for both."""
    node, gpus = published(profile, GPU)
    assert list(ExampleGpuDriver(node, **SETTINGS[profile]).discover().devices) == gpus
    node, nics = published(profile, NET)
    assert list(ExampleNetDriver(node).discover().devices) == nics


async def test_gpus_are_published_and_prepared_as_their_configuration_says() -> None:
    """A real driver on a real socket, with the opaque configuration of upstream's example."""
    async with world() as w, w.plugin(ExampleGpuDriver(NODE, gpus=2)):
        (slice_,) = await w.until_slices(lambda found: len(found) == 1, GPU)
        assert [device.name for device in slice_.spec.devices or ()] == ["gpu-0", "gpu-1"]
        sharing = {
            "strategy": "SpacePartitioning",
            "spacePartitioningConfig": {"partitionCount": 10},
        }
        head = {"apiVersion": "gpu.resource.example.com/v1alpha1", "kind": "GpuConfig"}
        opaque = {"driver": GPU, "parameters": {**head, "sharing": sharing}}
        config = [{"source": "FromClaim", "requests": ["sp"], "opaque": opaque}]
        claim = await w.cluster.allocate(
            "c", GPU, NODE, {"ts": "gpu-0", "sp": "gpu-1"}, config=config
        )
        answer = await w.kubelet.prepare(GPU, claim)
        uid = claim.metadata.uid
        assert w.kubelet.container(answer).env == {
            "DRA_RESOURCE_DRIVER_NAME": GPU,
            "KUBERNETES_NODE_NAME": NODE,
            "DRA_ADMIN_ACCESS": "false",
            "GPU_DEVICE_0": "gpu-0",
            "GPU_DEVICE_GPU_0_RESOURCE_CLAIM": uid,
            "GPU_DEVICE_0_SHARING_STRATEGY": "TimeSlicing",
            "GPU_DEVICE_0_TIMESLICE_INTERVAL": "Default",
            "GPU_DEVICE_1": "gpu-1",
            "GPU_DEVICE_GPU_1_RESOURCE_CLAIM": uid,
            "GPU_DEVICE_1_SHARING_STRATEGY": "SpacePartitioning",
            "GPU_DEVICE_1_PARTITION_COUNT": "10",
        }
        wrong = {**opaque, "parameters": {**head, "sharing": {"strategy": "MPSS"}}}
        bad = [{"source": "FromClaim", "opaque": wrong}]
        assert await w.kubelet.unprepare(GPU, claim) is None
        await w.cluster.remove_claim("c")
        claim = await w.cluster.allocate("d", GPU, NODE, {"r": "gpu-0"}, config=bad)
        answer = await w.kubelet.prepare(GPU, claim)
        assert isinstance(answer, Failed)
        assert "sharing.strategy: 'MPSS' is none of" in answer.message


async def test_a_driver_is_run_from_the_command_line_until_it_is_told_to_end() -> None:
    """It registers, publishes what its options say, and leaves no socket behind."""
    async with world() as w:
        options = w.kubelet.options(GPU)
        words = ["driver", "run", GPU, "--node", NODE, "--gpus", "3", "--wipe-on-exit"]
        words += ["--kubeconfig", str(w.cluster.kubeconfig)]
        words += ["--plugin-dir", str(options.plugin_dir), "--cdi-dir", str(options.cdi_dir)]
        words += ["--registry-dir", str(options.registry_dir), "--metrics-port", "0"]
        driver = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "drayman", *words), stdout=asyncio.subprocess.PIPE
        )
        try:
            await w.kubelet.registered(GPU)
            (found,) = await w.until_slices(lambda found: len(found) == 1, GPU)
            assert len(found.spec.devices or ()) == 3
        finally:
            driver.terminate()
        output, _ = await driver.communicate()
        assert driver.returncode == 0
        assert output.decode().splitlines() == [
            f"{GPU} serves node {NODE} on {options.plugin_dir}/dra.sock",
            "stopped",
        ]
        assert await w.slices(GPU) == ()
        assert list(w.kubelet.registry_dir.iterdir()) == []


def test_cpus_are_those_of_the_machine() -> None:
    """As one NUMA node."""
    (cpus,) = ExampleCpuDriver(NODE).discover().devices
    assert (cpus.name, ExampleCpuDriver.name) == ("numa-0", CPU)
    assert next(iter(cpus.capacity.values())).value == Quantity.parse(str(os.cpu_count()))


AMOUNTS = {
    "a partition": (
        ExampleGpuDriver(NODE, partitions=2, shared=True),
        "gpu-0-partition-1",
        {"memory": "1Gi"},
        {"GPU_DEVICE_0_PARTITION_1": "gpu-0-partition-1", "GPU_DEVICE_0_PARTITION_1_MEMORY": "1Gi"},
    ),
    "an interface": (
        ExampleNetDriver(NODE),
        "nic-0",
        {"ingressBandwidth": "1G"},
        {"NET_DEVICE_0": "nic-0", "NET_DEVICE_0_INGRESS_RATE": "1G"},
    ),
    "CPUs": (
        ExampleCpuDriver(NODE),
        "numa-0",
        {"cpu": "2"},
        {"CPU_DEVICE_0": "numa-0", "CPU_DEVICE_0_CONSUMED_CPU": "2"},
    ),
}


@pytest.mark.parametrize("name", AMOUNTS)
def test_variables_have_the_names_of_the_upstream_example(name: str) -> None:
    """Programs that were written for it find what they look for."""
    driver, device, consumed, wanted = AMOUNTS[name]
    found = {each.name: each for each in driver.discover().devices}
    allocated = Allocated(
        request="r",
        pool=NODE,
        name=device,
        device=found[device],
        consumed={key: Quantity.parse(value) for key, value in consumed.items()},
    )
    claim = Claim(namespace="n", name="c", uid="u", devices=(allocated,))
    (prepared,) = driver.prepare(claim).devices
    assert prepared.env.items() >= wanted.items()
