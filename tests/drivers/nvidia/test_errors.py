"""Errors of GPUs, and what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import click
import pytest
from msgspec.structs import replace

from drayman.api.resource import Device
from drayman.drivers.kit.command import own_options
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.health import tainted
from drayman.drivers.kit.model import Hardware, Health
from drayman.drivers.nvidia.driver import NvidiaGpuDriver
from drayman.drivers.nvidia.health import OF_PROGRAMS, Errors
from drayman.drivers.nvidia.nvml import Nvml
from drayman.testing.nvml_values import LostError, NVMLError
from drayman.testing.trees import add_capabilities
from drivers.nvidia.rig import Rig, until

XID, LOST = "gpu.nvidia.com/xid", "gpu.nvidia.com/gpu-lost"
REPORTED = {
    "none": ([], (True, "", "", "NoSchedule")),
    "one of the hardware": ([("GPU-a", 79)], (False, XID, "79", "NoSchedule")),
    "one of a program": ([("GPU-a", 13)], (None, XID, "13", "None")),
    "one that the user ignores": ([("GPU-a", 63)], (None, XID, "63", "None")),
    "one of a program after one of the hardware": (
        [("GPU-a", 79), ("GPU-a", 13)],
        (False, XID, "79", "NoSchedule"),
    ),
    "one of the hardware after one of a program": (
        [("GPU-a", 13), ("GPU-a", 79)],
        (False, XID, "79", "NoSchedule"),
    ),
    "one of another GPU": ([("GPU-b", 79)], (True, "", "", "NoSchedule")),
    "one of a GPU that is not known": ([("", 79)], (False, LOST, "", "NoSchedule")),
}


@pytest.mark.parametrize("name", REPORTED)
def test_an_error_taints_every_part_of_the_gpu(name: str) -> None:
    """One that a program causes, or the user ignores, only informs; where it cannot be told which GPU has one, all are tainted."""
    added, wanted = REPORTED[name]
    errors = Errors(ignored=OF_PROGRAMS | {63})
    for uuid, xid in added:
        errors.add(uuid, xid)
    report = errors.report("gpu-0-mig-x", "GPU-a")
    assert (report.healthy, report.taint_key, report.taint_value, report.effect) == wanted
    hardware = tainted("gpu.nvidia.com", Hardware.of([Device(name="gpu-0-mig-x")]), [report])
    assert [taint.key for taint in hardware.devices[0].taints] == ([wanted[1]] if wanted[1] else [])


def test_the_user_says_which_errors_are_ignored() -> None:
    """By their numbers."""
    said = own_options(NvidiaGpuDriver, ["--ignored-xids", "63, 94"])
    assert said["ignored_xids"] == (63, 94)
    assert own_options(NvidiaGpuDriver, [])["ignored_xids"] == ()
    with pytest.raises(click.UsageError, match="'63,x' is no list of numbers"):
        own_options(NvidiaGpuDriver, ["--ignored-xids", "63,x"])


async def test_a_gpu_is_divided_while_its_errors_are_followed(tmp_path: Path) -> None:
    """Following them keeps a GPU busy: it is suspended meanwhile, and a set of events is never freed under one who waits in it."""
    rig = Rig(tmp_path, "dgx-h200-mig", dynamic_mig=True)
    add_capabilities(rig.machine, 0, instance=1)
    claim = rig.claim("gpu-0-mig-3g71gb-9-4")
    stream = rig.driver.health()
    await anext(stream)
    waiting = asyncio.create_task(anext(stream))
    await until(lambda: any(each.waits for each in rig.fake.event_sets))
    await asyncio.to_thread(rig.driver.prepare, claim)
    assert rig.fake.gpus[0].mig_enabled
    rig.fake.report_xid(rig.fake.gpus[0], 79)
    assert {r.taint_value for r in await waiting if r.healthy is False} == {"79"}
    waiting = asyncio.create_task(anext(stream))
    await until(lambda: any(each.waits for each in rig.fake.event_sets))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await until(lambda: not rig.fake.event_sets)
    assert not rig.fake.freed_in_use


async def test_a_gpu_that_does_not_report_errors_says_so(rig: Rig) -> None:
    """A taint that only informs, on that GPU; the others are followed."""
    rig.fake.gpus[1].reports_errors = False
    found = rig.driver.discover()
    stream = rig.driver.health()
    reports = list(await anext(stream))
    await stream.aclose()
    taints = {
        device.name: [(taint.key, taint.effect) for taint in device.taints]
        for device in tainted("gpu.nvidia.com", found, reports).devices
        if device.taints
    }
    assert taints == {"gpu-1": [("gpu.nvidia.com/unmonitored", "None")]}


async def test_errors_are_reported_as_they_come(rig: Rig) -> None:
    """First that all is well, then the error of the one that has it."""
    rig.driver.discover()
    stream = rig.driver.health()
    first = list(await anext(stream))
    assert {report.healthy for report in first} == {True}
    rig.fake.report_xid(rig.fake.gpus[2], 79)
    second = {report.device: report for report in await anext(stream)}
    assert [name for name, report in second.items() if report.healthy is False] == ["gpu-2"]
    await stream.aclose()


async def test_devices_that_are_found_later_have_the_errors_of_their_gpu(rig: Rig) -> None:
    """Somebody divides a GPU that is broken: its parts are no better."""
    rig.driver.discover()
    broken = rig.fake.gpus[0]
    async with aclosing(rig.driver.health()) as stream:
        await anext(stream)
        rig.fake.report_xid(broken, 79)
        assert unhealthy(await anext(stream)) == {"gpu-0"}
        broken.mig_enabled = True
        Nvml(rig.fake).partitions.create(broken.gpu.uuid, broken.gpu.model.mig_profiles[0], 2)
        rig.driver.discover()
        assert unhealthy(await anext(stream)) == {"gpu-0-mig-1g18gb-19-2"}


async def test_a_gpu_that_is_gone_does_not_end_the_reports(rig: Rig) -> None:
    """Nor does it if that is noticed before the next discovery."""
    claim = rig.claim("gpu-0")
    async with aclosing(rig.driver.health()) as stream:
        await anext(stream)
        del rig.fake.gpus[7]
        stranger = replace(claim.devices[0], name="gpu-9")
        with pytest.raises(PrepareError, match="gpu-9 is not on node"):
            rig.driver.prepare(replace(claim, devices=(stranger,)))
        rig.fake.report_xid(rig.fake.gpus[2], 79)
        assert unhealthy(await anext(stream)) == {"gpu-2"}


def unhealthy(reports: Iterable[Health]) -> set[str]:
    return {report.device for report in reports if report.healthy is False}


def losing(rig: Rig, index: int, function: str, error: Exception) -> None:
    """From now on a function of the library fails for one GPU."""
    gpu, plain = rig.fake.gpus[index], getattr(rig.fake, function)

    def fail(*args: Any, **more: Any) -> Any:
        if args[0] is gpu or (function.endswith("ByIndex") and args[0] == index):
            raise error
        return plain(*args, **more)

    setattr(rig.fake, function, fail)


FACTS = (
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetNvLinkState",
    "nvmlDeviceGetGpuFabricInfoV",
)


@pytest.mark.parametrize("function", FACTS)
async def test_a_lost_gpu_costs_the_others_nothing(
    rig: Rig, function: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is asked for first: it stays published as it is known, tainted; a driver that is started then leaves it out."""
    before = rig.driver.discover()
    async with aclosing(rig.driver.health()) as stream:
        assert unhealthy(await anext(stream)) == set()
        losing(rig, 3, function, LostError())
        assert rig.driver.discover() == before
        reports = list(await anext(stream))
    found = tainted("gpu.nvidia.com", before, reports)
    assert {d.name: [t.key for t in d.taints] for d in found.devices if d.taints} == {
        "gpu-3": [LOST]
    }
    assert "GPU 3 of NVML cannot be read: GPU is lost" in caplog.text
    names = [device.name for device in rig.start().discover().devices]
    assert names == [f"gpu-{index}" for index in range(8) if index != 3]


async def test_a_gpu_that_cannot_be_read_for_once_stays_as_it_is_known(rig: Rig) -> None:
    """That it is lost has not been said."""
    before = rig.driver.discover()
    losing(rig, 3, "nvmlDeviceGetMemoryInfo", NVMLError(999))
    assert rig.driver.discover() == before
    async with aclosing(rig.driver.health()) as stream:
        assert unhealthy(await anext(stream)) == set()


async def test_a_gpu_that_is_lost_meanwhile_is_found_out(rig: Rig) -> None:
    """It alone is tainted; the others are followed further."""
    rig.driver.discover()
    async with aclosing(rig.driver.health()) as stream:
        await anext(stream)
        rig.fake.gpus[1].is_lost = True
        (lost,) = [report for report in await anext(stream) if not report.healthy]
        assert (lost.device, lost.taint_key, lost.message) == ("gpu-1", LOST, "the GPU is lost")
        rig.fake.report_xid(rig.fake.gpus[2], 79)
        assert unhealthy(await anext(stream)) == {"gpu-1", "gpu-2"}


def test_gpus_behind_a_lost_one_can_be_prepared(rig: Rig) -> None:
    """The library comes upon the lost one on its search for them."""
    lost, other = rig.claim("gpu-0"), rig.claim("gpu-3")
    rig.fake.gpus[0].is_lost = True
    (device,) = rig.driver.prepare(other).devices
    assert device.device_nodes[0].path == "/dev/nvidia3"
    with pytest.raises(PrepareError, match="gpu-0 has fallen off the bus"):
        rig.driver.prepare(lost)
