"""The law of explanations: what they say of a cluster is what the control loop does with it."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest
import yaml

from controllers.quota.test_devices import HEAD, MAPPED, device_class, template
from controllers.quota.test_published import create as configure
from controllers.quota.test_topologies import HOST, RACK, TOPOLOGIES, gpus, node
from controllers.quota.waiting_room import (
    CHECKS,
    LOCAL_QUEUES,
    WORKLOADS,
    Room,
    admitted,
    waiting,
    waiting_room,
)
from drayman.api.times import timestamp_at
from drayman.controllers.quota.book import known
from drayman.controllers.quota.source import ConfigurationSource
from drayman.explain.queues.standing import Line
from drayman.questions.reading import read_world
from drayman.reasons.reason import Reason

SEEDS: Final = range(6)
BY_PAST_USE: Final = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}
SAYS: Final[dict[str, set[Reason]]] = {
    "WaitingForQuota": {Reason.QUOTA_IN_USE, Reason.QUOTA_SCATTERED},
    "ExceedsMaxQuota": {Reason.QUOTA_TOO_SMALL},
}


class Town:
    """A random cluster with queues: racks of nodes with devices, flavors with and without a topology, work for all of it."""

    def __init__(self, room: Room, seed: int) -> None:
        self.room = room
        self.random = random.Random(seed)
        self.names: list[str] = []
        # Not both: what pods without a place will use is unknown to places until they are bound, so that a second try may end otherwise.
        self.flavor = self.random.choice(("placed", "placed", "standard"))

    async def build(self) -> None:
        chosen, room = self.random, self.room
        sharing = {"usageHalfLifeTime": "1h"}
        configuration = {**HEAD, **MAPPED}
        self.by_past_use = chosen.random() < 0.5
        if self.by_past_use:
            configuration["admissionFairSharing"] = sharing
        await configure(room, yaml.safe_dump(configuration))
        await device_class(room)
        await template(room, count=1)
        for rack in "ab":
            for number in range(chosen.randint(1, 2)):
                name = f"{rack}{number}"
                await node(room, name, rack, cpu=chosen.randint(2, 5))
                if devices := chosen.randint(0, 3):
                    await gpus(room, name, devices)
        levels = [{"nodeLabel": RACK}, {"nodeLabel": HOST}]
        body = {"metadata": {"name": "racks"}, "spec": {"levels": levels}}
        await room.place.create(TOPOLOGIES, body)
        await room.flavor("placed", nodeLabels={"kind": "std"}, topologyName="racks")
        for name in ("x", "y"):
            await self._queue(name)
        for number in range(chosen.randint(5, 9)):
            await self._workload(f"w{number}")

    async def _queue(self, name: str) -> None:
        chosen = self.random
        quota = [{"name": "cpu", "nominalQuota": chosen.randint(2, 8)}]
        quota.append({"name": "gpus", "nominalQuota": chosen.randint(1, 4)})
        flavor = {"name": self.flavor, "resources": quota}
        group = {"coveredResources": ["cpu", "gpus"], "flavors": [flavor]}
        more: dict[str, Any] = {"resourceGroups": [group], "cohortName": "all"}
        more["queueingStrategy"] = chosen.choice(("BestEffortFIFO", "StrictFIFO"))
        await self.room.queue(name=name, **more, **(BY_PAST_USE if self.by_past_use else {}))
        local = {"metadata": {"name": f"{name}2"}, "spec": {"clusterQueue": name}}
        await self.room.place.create(LOCAL_QUEUES, local)
        for each in (name, f"{name}2"):
            used = {"cpu": str(chosen.randint(0, 9))}
            at = timestamp_at(self.room.place.clock())
            past = {"consumedResources": used, "lastUpdate": at}
            status = {"status": {"fairSharing": {"admissionFairSharingStatus": past}}}
            await self.room.place.patch(LOCAL_QUEUES, each, status, subresource="status")

    async def _workload(self, name: str) -> None:
        chosen = self.random
        container: dict[str, Any] = {"name": "main", "image": "i"}
        container["resources"] = {"requests": {"cpu": chosen.randint(1, 2)}}
        spec: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
        if chosen.random() < 0.6:
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
            container["resources"]["claims"] = [{"name": "gpu"}]
        pods: dict[str, Any] = {"name": "main", "count": chosen.randint(1, 3)}
        pods["template"] = {"spec": spec}
        if chosen.random() < 0.5:
            pods["topologyRequest"] = {chosen.choice(("required", "preferred")): RACK}
        queue = chosen.choice(("x", "x2", "y", "y2"))
        body = {"queueName": queue, "podSets": [pods], "priority": chosen.choice((0, 0, 5))}
        await self.room.place.create(WORKLOADS, {"metadata": {"name": name}, "spec": body})
        self.names.append(name)

    async def line(self) -> Line:
        return Line(await read_world(self.room.place.client, queues=True))


async def come_to_rest(room: Room) -> list[Any]:
    """All Workloads, once one more has quota that comes later: it is decided about after all the others."""
    await room.queue(name="last")
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1m"}}}
    template_ = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    pods = [{"name": "main", "count": 0, "template": template_}]
    body = {"metadata": {"name": "last"}, "spec": {"queueName": "last", "podSets": pods}}
    await room.place.create(WORKLOADS, body)
    return await room.place.until(WORKLOADS, lambda values: "last" in _with_quota(values))


def _with_quota(values: list[Any]) -> set[str]:
    return {each.metadata.name for each in values if admitted(known(each))}


@pytest.mark.parametrize("seed", SEEDS)
async def test_those_are_admitted_that_explain_says_are(seed: int) -> None:
    """On a random cluster, before the loop begins; and when it has come to rest, nobody else is said to fit, and reasons agree."""
    async with waiting_room(ConfigurationSource()) as room:
        await room.place.crash()
        town = Town(room, seed)
        await town.build()
        line = await town.line()
        expected = {name for name in town.names if line.is_admitted_now(f"default/{name}")}
        await room.start()
        await room.place.until(WORKLOADS, lambda values: _with_quota(values) == expected)
        values = await come_to_rest(room)
        assert _with_quota(values) == {*expected, "last"}
        line = await town.line()
        for each in map(known, values):
            key, condition = f"default/{each.name}", each.status.condition("QuotaReserved")
            assert not line.is_admitted_now(key)
            if condition is not None and condition.status == "False":
                # Whoever was tried first is behind others by now, if their order is that of what they used.
                said = line.headline(key).reason
                wanted = SAYS.get(condition.reason, {said})
                assert said in {*wanted, Reason.BEHIND_IN_QUEUE}, condition


async def test_checks_are_read_as_the_loop_reads_them() -> None:
    """While the check of a queue is missing or not active the queue is inactive for both, and afterwards for neither."""
    async with waiting_room() as room:
        strategy = {"admissionChecks": [{"name": "budget"}]}
        await room.queue(admissionChecksStrategy=strategy)
        await room.job("train")
        found = await room.workload(waiting("Suspended"), "train")

        async def said() -> Reason:
            line = Line(await read_world(room.place.client, queues=True))
            return line.headline(f"default/{found.name}").reason

        assert await said() is Reason.QUEUE_INACTIVE
        await room.place.create(
            CHECKS, {"metadata": {"name": "budget"}, "spec": {"controllerName": "example.com/x"}}
        )
        assert await said() is Reason.QUEUE_INACTIVE
        condition = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
        at = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"status": {"conditions": [{**condition, **at}]}}
        await room.place.patch(CHECKS, "budget", status, subresource="status")
        await room.workload(lambda each: each.status.is_true("QuotaReserved"), "train")
        assert await said() is Reason.CHECKS_PENDING
