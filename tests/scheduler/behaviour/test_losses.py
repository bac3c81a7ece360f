"""Claims that are taken from running pods, on a server that lets anyone do that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controllers.world import CLAIM_VALUES, POD_VALUES
from drayman.api import codec
from drayman.api.core import Pod
from drayman.cluster import HttpClient
from drayman.cluster.errors import ConflictError, Status
from drayman.placement.lost_claims import CONDITION, lost_claims_of
from scheduler.behaviour.beside import scheduling, served
from scheduler.behaviour.stage import Stage, devices_of

OURS = "default-scheduler"


async def one_device(stage: Stage) -> None:
    await stage.device_class()
    await stage.node("node-a", "gpu-0")
    await stage.make_claim("c")
    await stage.make_claim("other")


async def take_away(stage: Stage, claim: str = "c") -> None:
    """Delete a claim in use, as a user who may edit claims can in Kubernetes."""
    await stage.patch(CLAIM_VALUES, claim, {"metadata": {"finalizers": None}})
    await stage.delete(CLAIM_VALUES, claim)


async def shows(stage: Stage, pod: str, *devices: str) -> None:
    """The pod's condition lists these devices, and no others."""

    def listed(found: Pod) -> list[str]:
        lost = lost_claims_of(found)
        return sorted(result.device for each in lost for result in each.results)

    await stage.until_pod(pod, lambda found: listed(found) == sorted(devices))


async def is_lost(stage: Stage, pod: str) -> None:
    await stage.until_pod(pod, lambda found: bool(lost_claims_of(found)))


async def test_devices_of_a_deleted_claim_stay_with_its_pod(tmp_path: Path) -> None:
    """The pod says so, and other pods get them when it is gone."""
    async with (
        served(tmp_path, guard=False) as (stage, connect),
        scheduling(connect(), OURS) as ours,
    ):
        await one_device(stage)
        await stage.start_pod("p", "c")
        await stage.bound("p")
        await take_away(stage)
        await stage.start_pod("q", "other")
        await stage.refused("q", "DevicesInUse")
        event = await stage.event("p", "ClaimLost")
        said = "claim default/c was deleted while its pod uses gpu.example.com/node-a/gpu-0"
        assert event["note"] == f"{said}; they stay with the pod until it has ended"
        await is_lost(stage, "p")
        assert ours.tally.claims_lost == 1
        await stage.finish("p")
        await stage.bound("q")
        assert devices_of(await stage.allocated("other")) == ["gpu-0"]


async def test_a_claim_made_again_under_its_name_does_not_get_them(tmp_path: Path) -> None:
    """It is another claim, and its pod waits."""
    async with served(tmp_path, guard=False) as (stage, connect), scheduling(connect(), OURS):
        await one_device(stage)
        await stage.start_pod("p", "c")
        await stage.bound("p")
        await take_away(stage)
        await stage.make_claim("c")
        await stage.start_pod("q", "c")
        await stage.refused("q", "DevicesInUse")
        await stage.keeps_waiting("q")


async def test_the_next_scheduler_keeps_them_too(tmp_path: Path) -> None:
    """It knows of the loss from the condition of the pod."""
    async with served(tmp_path, guard=False) as (stage, connect):
        await one_device(stage)
        async with scheduling(connect(), OURS):
            await stage.start_pod("p", "c")
            await stage.bound("p")
            await stage.patch(
                CLAIM_VALUES, "c", {"status": {"allocation": None, "reservedFor": None}}, "status"
            )
            await is_lost(stage, "p")
        async with scheduling(connect(), OURS) as later:
            await stage.start_pod("q", "other")
            await stage.refused("q", "DevicesInUse")
            await stage.keeps_waiting("q")
            assert later.tally.claims_lost == 0
        pod = await stage.get_pod("p")
        assert pod is not None
        assert [c.reason for c in pod.status.conditions if c.type_ == CONDITION] == ["ClaimLost"]


async def test_a_pod_that_ends_loses_nothing(tmp_path: Path) -> None:
    """Its claim gives back its devices in the same moment, and no loss is reported."""
    async with (
        served(tmp_path, guard=False) as (stage, connect),
        scheduling(connect(), OURS) as ours,
    ):
        await one_device(stage)
        for name in ("p", "q", "r"):
            await stage.start_pod(name, "c")
            await stage.bound(name)
            await stage.remove(POD_VALUES, name)
            await stage.free("c")
        await stage.start_pod("last", "other")
        await stage.bound("last")
        assert ours.tally.claims_lost == 0


async def test_claims_that_are_lost_together_are_all_reported(tmp_path: Path) -> None:
    """The condition lists each of them, so the next scheduler gives away none of their devices."""
    async with served(tmp_path, guard=False) as (stage, connect):
        await stage.device_class()
        await stage.node("node-a", "gpu-0", "gpu-1", "gpu-2")
        for name in ("a", "b", "c", "other"):
            await stage.make_claim(name)
        async with scheduling(connect(), OURS) as ours:
            await stage.start_pod("p", "a", "b", "c")
            await stage.bound("p")
            for name in ("a", "b", "c"):
                await take_away(stage, name)
            await shows(stage, "p", "gpu-0", "gpu-1", "gpu-2")
            assert ours.tally.claims_lost == 3
        async with scheduling(connect(), OURS):
            await stage.start_pod("q", "other")
            await stage.refused("q", "DevicesInUse")


async def test_a_loss_is_written_though_the_pod_changes_meanwhile(tmp_path: Path) -> None:
    """A conflict is no reason to leave the next scheduler without it."""

    class Overtaken(HttpClient):
        conflicts = 2

        async def patch(self, resource: Any, name: str, patch: Any, *args: Any, **more: Any) -> Any:
            if CONDITION.encode() in patch.encode() and self.conflicts:
                self.conflicts -= 1
                raise ConflictError(Status(reason="Conflict", code=409))
            return await super().patch(resource, name, patch, *args, **more)

    async with served(tmp_path, guard=False) as (stage, connect):
        client = connect()
        client.__class__ = Overtaken
        async with scheduling(client, OURS) as ours:
            await one_device(stage)
            await stage.start_pod("p", "c")
            await stage.bound("p")
            await take_away(stage)
            await shows(stage, "p", "gpu-0")
            assert ours.tally.claims_lost == 1


async def test_a_claim_that_is_lost_once_more_is_reported_with_all_its_devices(
    tmp_path: Path,
) -> None:
    """It had got another device meanwhile; the pod may use both."""
    async with served(tmp_path, guard=False) as (stage, connect), scheduling(connect(), OURS):
        await stage.device_class()
        await stage.node("node-a", "gpu-0", "gpu-1")
        await stage.make_claim("c")
        await stage.start_pod("p", "c")
        await stage.bound("p")
        claim = codec.to_dict((await stage.allocated("c")).status)
        (result,) = claim["allocation"]["devices"]["results"]
        await stage.patch(
            CLAIM_VALUES, "c", {"status": {"allocation": None, "reservedFor": None}}, "status"
        )
        await shows(stage, "p", result["device"])
        other = "gpu-1" if result["device"] == "gpu-0" else "gpu-0"
        result["device"] = other
        await stage.patch(CLAIM_VALUES, "c", {"status": claim}, "status")
        await stage.allocated("c")
        await take_away(stage)
        await shows(stage, "p", "gpu-0", "gpu-1")
