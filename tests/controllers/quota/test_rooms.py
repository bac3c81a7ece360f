"""Room for pods, before and after admission, in a cluster with queues at work."""

from __future__ import annotations

from typing import Any

from controllers.quota.test_topologies import node
from controllers.quota.waiting_room import (
    CLASS,
    CLASSES,
    WORKLOADS,
    Room,
    admitted,
    has,
    waiting,
    waiting_room,
)
from drayman.api.kueue_workload import PREEMPTED
from drayman.apiserver.protocol.errors import StatusError, Subject
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import JOBS, NODES
from drayman.controllers.quota.book import Known
from drayman.quota.fitting.rooms import ROOM

LOWER = {"preemption": {"withinClusterQueue": "LowerPriority"}}


async def classes(room: Room) -> None:
    for name, value in (("low", 1), ("high", 2)):
        body: dict[str, Any] = {"metadata": {"name": name}, "value": value}
        await room.place.create(CLASSES, body)


async def test_room_is_made_by_the_rules_of_the_queue() -> None:
    """There is quota for both and room for one: the less important one stops, and says for what; the other one starts."""
    async with waiting_room() as room:
        await classes(room)
        await node(room, "n1", "a")
        await room.queue(cpu=100, **LOWER)
        await room.job("modest", cpu=2, labels={CLASS: "low"})
        await room.workload(admitted, "modest")
        await room.job("important", cpu=2, labels={CLASS: "high"})
        await room.workload(admitted, "important")
        found = await room.workload(waiting("WaitingForRoom"), "modest")
        condition = found.status.condition("QuotaReserved")
        assert condition is not None
        assert "there is nobody that it may preempt" in condition.message
        told = found.status.condition(PREEMPTED)
        assert told is not None
        assert told.reason == "InClusterQueue"
        assert "there is quota for it, and no room for its pods" in told.message
        # When the other one has ended, it goes on.
        options = DeleteOptions(propagation="Background")
        await room.place.client.delete(JOBS, "important", "default", options=options)
        await room.workload(admitted, "modest")


async def test_a_queue_that_preempts_nobody_says_so() -> None:
    async with waiting_room() as room:
        await classes(room)
        await node(room, "n1", "a")
        await room.queue(cpu=100)
        await room.job("modest", cpu=2, labels={CLASS: "low"})
        await room.workload(admitted, "modest")
        await room.job("important", cpu=2, labels={CLASS: "high"})
        found = await room.workload(waiting("WaitingForRoom"), "important")
        condition = found.status.condition("QuotaReserved")
        assert condition is not None
        assert "ClusterQueue q preempts nobody" in condition.message
        assert not (await room.workload(admitted, "modest")).status.is_true("Evicted")


async def test_what_others_write_about_room_is_written_over() -> None:
    """As on a server that lets them: the room that was found stays, and is written down again."""
    async with waiting_room() as room:
        await node(room, "n1", "a")
        await room.queue(cpu=100)
        await room.job("first", cpu=2)
        found = await room.workload(
            lambda found: admitted(found) and ROOM in _notes(found), "first"
        )
        text = _notes(found)[ROOM]
        for wrong in ('{"places":[]}', "nonsense", None):
            change = {"metadata": {"annotations": {ROOM: wrong, "seen": str(wrong)}}}
            await room.place.patch(WORKLOADS, found.name, change)

            def is_back(found: Known, wrong: str | None = wrong) -> bool:
                return _notes(found).get(ROOM) == text and _notes(found).get("seen") == str(wrong)

            assert not has("Evicted", "True", "NodeFailures")(await room.workload(is_back, "first"))


class Refusing(AdmissionPlugin):
    """Refuses the first change of what is written down about room."""

    def __init__(self) -> None:
        self.is_done = False

    def validate(self, write: Admitted) -> None:
        if write.resource.plural == "workloads" and not write.subresource and write.old:
            notes = [(each or {})["metadata"].get("annotations") for each in (write.new, write.old)]
            new, old = ((each or {}).get(ROOM) for each in notes)
            if old and new != old and not self.is_done:
                self.is_done = True
                raise StatusError(500, "InternalError", "no", Subject())


async def test_room_that_moved_is_written_down_even_if_that_fails_at_first() -> None:
    """The node is lost before the pod is there. Its place is on another node, and says so in the end."""
    async with waiting_room() as room:
        for name in ("n1", "n2"):
            await node(room, name, "a")
        await room.queue(cpu=100)
        await room.job("first", cpu=2)
        found = await room.workload(
            lambda found: admitted(found) and ROOM in _notes(found), "first"
        )
        lost, other = ("n1", "n2") if "n1" in _notes(found)[ROOM] else ("n2", "n1")
        plugin = Refusing()
        room.place.core.admission.plugins.append(plugin)
        await room.place.client.delete(NODES, lost, None)
        await room.workload(lambda found: other in _notes(found)[ROOM], "first")
        assert plugin.is_done


def _notes(found: Known) -> Any:
    return found.workload.metadata.annotations
