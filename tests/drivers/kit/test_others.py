"""Drivers for which more counts than the claim at hand: what other claims have, and what the hardware announces."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, ClassVar

from drayman.api.codec import convert
from drayman.api.resource import Device, ResourceClaim
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import RESOURCE_CLAIMS
from drayman.driver_configs.known import CONFIGS
from drayman.driver_configs.memory_limits import ALLOW_OVERCOMMIT
from drayman.driver_configs.nvidia import GpuConfig
from drayman.drivers.kit import Claim, Config, Prepared, PreparedDevice
from drayman.plugins.model import Answers, ClaimRef, Failed, Ready
from drivers.kit.probing import NAME, NODE, Probe, World, names, world


class Numbering(Probe):
    """Gives every claim the lowest number that no other has."""

    sees_others = True
    at_work: set[str]
    """The claims that any instance is preparing."""

    def __init__(self, at_work: set[str]) -> None:
        super().__init__()
        self.at_work = at_work

    async def prepare(self, claim: Claim) -> Prepared:
        assert not self.at_work
        self.at_work.add(claim.name)
        taken = {other.state for other in claim.others}
        for _ in range(200):  # others that do not wait for their turn come in
            await asyncio.sleep(0)
        self.at_work.remove(claim.name)
        number = next(number for number in range(10) if number not in taken)
        env = {"NUMBER": str(number)}
        return Prepared(
            devices=[PreparedDevice(device=each, env=env) for each in claim.devices], state=number
        )

    async def unprepare(self, claim: Claim) -> None:
        self.calls.append(("unprepare", ",".join(sorted(other.name for other in claim.others))))


def ref(claim: ResourceClaim) -> ClaimRef:
    return ClaimRef("default", claim.metadata.name, claim.metadata.uid)


def numbers(w: World, answers: Answers) -> list[str]:
    return [w.kubelet.container(answer).env["NUMBER"] for answer in answers.values()]


async def test_claims_see_what_others_have_from_another_instance_too() -> None:
    """Prepared at the same time by two instances, each has a number of its own; one that the other instance gives back is free."""
    at_work: set[str] = set()
    driver = Numbering(at_work)
    async with (
        world() as w,
        w.plugin(Numbering(at_work), instance="old") as old,
        w.plugin(driver, instance="new") as new,
    ):
        a, b, c, d = [ref(await w.claim(name, f"probe-{at}")) for at, name in enumerate("abcd")]
        both = await asyncio.gather(old.prepare([a, b]), new.prepare([c, d]))
        given = {
            uid: number for each in both for uid, number in zip(each, numbers(w, each), strict=True)
        }
        assert sorted(given.values()) == ["0", "1", "2", "3"]
        assert await new.unprepare([a]) == {a.uid: None}
        assert driver.calls == [("unprepare", "b,c,d")]
        await w.cluster.remove_claim("a")
        again = await w.claim("again", "probe-0")
        assert numbers(w, await old.prepare([ref(again)])) == [given[a.uid]]


class Announcing(Probe):
    """Hears of new probes."""

    def __init__(self) -> None:
        super().__init__()
        self.news: asyncio.Queue[int] = asyncio.Queue()
        self.ended = asyncio.Event()

    async def follow(self) -> None:
        try:
            while True:
                self.count = await self.news.get()
                if not self.count:
                    raise OSError("the line is dead")
                self.changed()
        finally:
            self.ended.set()


async def test_what_the_hardware_announces_is_published_for_as_long_as_the_driver_runs() -> None:
    """It is followed from the start to the end."""
    driver = Announcing()
    async with world() as w, w.plugin(driver):
        driver.news.put_nowait(6)
        await w.until_slices(lambda found: len(names(found)) == 6)
        assert not driver.ended.is_set()
    assert driver.ended.is_set()


async def test_a_driver_that_hears_nothing_any_more_still_serves() -> None:
    """It is asked for its devices, as those are that announce nothing."""
    driver = Announcing()
    async with world() as w, w.plugin(driver) as plugin:
        driver.news.put_nowait(0)
        await driver.ended.wait()
        driver.count = 5
        assert await plugin.discover()
        await w.until_slices(lambda found: len(names(found)) == 5)
        claim = await w.claim("c", "probe-4")
        assert w.kubelet.container(await w.kubelet.prepare(NAME, claim)).env


class Gpus(Probe):
    """GPUs of 40 GiB that take NVIDIA's configuration."""

    name = "gpu.nvidia.com"
    configs: ClassVar[tuple[type[Config], ...]] = CONFIGS["gpu.nvidia.com"]

    @classmethod
    def config_type(cls, device: Device) -> type[Config] | None:
        return GpuConfig

    def discover(self) -> Iterable[Device]:
        said = {"type": {"string": "gpu"}}
        memory = {"memory": {"value": "40Gi"}}
        return [convert(Device, {"name": "gpu-0", "attributes": said, "capacity": memory})]


async def test_a_claim_whose_limits_exceed_the_memory_is_not_prepared() -> None:
    """Every pod that the claim is reserved for counts, also one that comes when the claim is prepared; the claim may permit it."""
    limits = {"strategy": "MPS", "mpsConfig": {"defaultPinnedDeviceMemoryLimit": "15Gi"}}
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
    opaque = {"driver": Gpus.name, "parameters": {**parameters, "sharing": limits}}
    config: Any = [{"source": "FromClaim", "opaque": opaque}]
    async with world() as w, w.plugin(Gpus()) as plugin:
        client = w.cluster.client
        made = await w.cluster.allocate("c", Gpus.name, NODE, {"r": "gpu-0"}, config=config)

        async def reserve(pods: int) -> None:
            users: Any = [
                {"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(pods)
            ]
            change = merge_patch({"status": {"reservedFor": users}})
            await client.patch(RESOURCE_CLAIMS, "c", change, "default", subresource="status")

        await reserve(2)
        (answer,) = (await plugin.prepare([ref(made)])).values()
        assert isinstance(answer, Ready)
        await reserve(3)
        (answer,) = (await plugin.prepare([ref(made)])).values()
        assert isinstance(answer, Failed)
        assert "gpu-0 add up to 45Gi of 40Gi: 3 programs of claim default/c" in answer.message
        allow = {"metadata": {"annotations": {ALLOW_OVERCOMMIT: "true"}}}
        await client.patch(RESOURCE_CLAIMS, "c", merge_patch(allow), "default")
        (answer,) = (await plugin.prepare([ref(made)])).values()
        assert isinstance(answer, Ready)
