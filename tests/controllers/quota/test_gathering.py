"""Decisions of several cycles that are written together: what each workload gets, whatever happens on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from controllers.quota.waiting_room import (
    NAMESPACE,
    WORKLOADS,
    Room,
    admitted,
    has,
    waiting_room,
)
from drayman.api.kueue_workload import Admission
from drayman.apiserver.protocol.errors import StatusError, Subject, conflict
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.cluster.embedded.model import Event
from drayman.cluster.resources import JsonObject
from drayman.controllers.quota.book import known
from drayman.controllers.quota.gathering import LONGEST_S, MOST, Gathering, drives_out
from drayman.quota.decisions import Decision, Preempted, Refused, Reserved
from drayman.quota.quota_and_room import Made


def given(key: str) -> Reserved:
    return Reserved(key, Admission(cluster_queue="q"))


def refused(key: str, why: str = "no quota") -> Refused:
    return Refused(key, "WaitingForQuota", why)


@pytest.mark.parametrize(
    ("cycles", "written"),
    [
        ([[given("a")], [given("b")]], [given("a"), given("b")]),
        ([[refused("a"), given("b")], [given("a")]], [given("b"), given("a")]),
        ([[refused("a")], [refused("a", "others")]], [refused("a", "others")]),
        ([[given("a")], [refused("a")]], [refused("a")]),
    ],
    ids=["in order", "refused, then given", "refused for another reason", "taken back"],
)
def test_the_last_decision_about_each_workload_is_written(
    cycles: list[list[Decision]], written: list[Decision]
) -> None:
    """In the order in which the last ones were made."""
    gathering = Gathering()
    for cycle in cycles:
        gathering.add(Made(each, "1") for each in cycle)
    assert [each.decision for each in gathering.take()] == written
    assert not gathering


def test_gathering_is_bounded_in_number_and_in_time() -> None:
    """Nobody waits for others for long."""
    now = 0.0
    gathering = Gathering(lambda: now)
    assert not gathering.is_complete
    gathering.add(Made(given(str(number)), "1") for number in range(MOST - 1))
    assert not gathering.is_complete
    now = LONGEST_S
    assert gathering.is_complete
    gathering.take()
    gathering.add(Made(given(str(number)), "1") for number in range(MOST))
    assert gathering.is_complete


def test_a_preemption_is_noticed() -> None:
    """It has to be written before anything else is decided."""
    assert drives_out([Made(given("a"), "1"), Made(Preempted("b", "a", "r", "m"), "1")])
    assert not drives_out([Made(given("a"), "1"), Made(refused("b"), "1")])


# On a cluster.


def workload(name: str, cpu: int = 1, queue: str = "q", priority: int = 0) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    spec = {"queueName": queue, "priority": priority, "podSets": [pod_set]}
    return {"metadata": {"name": name}, "spec": spec}


async def waiting_for_the_controller(room: Room, workloads: Sequence[JsonObject]) -> None:
    """Create workloads while nobody looks after them, so that the first round has all of them."""
    await room.place.crash()
    for each in workloads:
        await room.place.create(WORKLOADS, each)


async def admitted_in_the_end(room: Room, number: int) -> set[str]:
    """The names of those that are admitted, once there are as many."""
    found = await room.place.until(
        WORKLOADS, lambda values: sum(admitted(known(each)) for each in values) == number
    )
    return {each.metadata.name for each in found if admitted(known(each))}


class Transactions:
    """Counts the transactions that change Workloads, and how many of them hold quota at most."""

    def __init__(self) -> None:
        self.number = 0
        self.most = 0
        self._holders: set[str] = set()

    def applied(self, events: Sequence[Event]) -> None:
        changed = [each for each in events if each.key.resource.startswith("workloads.")]
        for each in changed:
            status = each.stored.value.get("status") or {}
            (self._holders.add if "admission" in status else self._holders.discard)(each.key.name)
        self.most = max(self.most, len(self._holders))
        if any(each.stored.value.get("status") for each in changed):
            self.number += 1


class OnWrite(AdmissionPlugin):
    """Does something, so many times, when the status of a workload is about to be written.

    What is refused as one of several is written again with fewer others, and alone in the end.
    """

    def __init__(self, name: str, act: Callable[[], None], times: int) -> None:
        self._name = name
        self._act = act
        self._left = times

    def validate(self, write: Admitted) -> None:
        if (write.resource.plural, write.subresource, write.name) != (
            "workloads",
            "status",
            self._name,
        ):
            return
        if self._left:
            self._left -= 1
            self._act()

    @property
    def is_done(self) -> bool:
        return not self._left


def on_write(room: Room, name: str, act: Callable[[], None], times: int = 1) -> OnWrite:
    plugin = OnWrite(name, act, times)
    room.place.core.admission.plugins.append(plugin)
    return plugin


def at_once(work: Any) -> None:
    """Carry out a write that never has to wait: the store is in memory."""
    with pytest.raises(StopIteration):
        work.send(None)


async def test_many_cycles_need_few_transactions() -> None:
    """One queue, so each cycle decides about one workload. Each is counted and reported once."""
    async with waiting_room() as room:
        await room.queue(cpu=100)
        await waiting_for_the_controller(room, [workload(f"w-{n:02}") for n in range(60)])
        seen = Transactions()
        room.place.core.store.follow(seen)
        await room.start()
        await admitted_in_the_end(room, 60)
        assert seen.number <= 30
        tally = room.place.running.controllers[-1]._shared.tally
        assert tally.attempts == {("success",): 60}
        assert tally.cluster.admitted == tally.cluster.reserved == {("q", ""): 60}
        reasons = await room.place.reasons()
        assert (reasons.count("QuotaReserved"), reasons.count("Admitted")) == (60, 60)


async def test_a_workload_that_changes_meanwhile_is_decided_about_again() -> None:
    """It asks for more than there is by the time it is written; the others of the gathering get what they were given."""
    async with waiting_room() as room:
        await room.queue(cpu=10)
        await waiting_for_the_controller(room, [workload(f"w-{n}") for n in range(8)])
        change = {"spec": workload("w-5", cpu=20)["spec"]}
        plugin = on_write(room, "w-0", lambda: at_once(room.place.patch(WORKLOADS, "w-5", change)))
        await room.start()
        assert await admitted_in_the_end(room, 7) == {f"w-{n}" for n in range(8) if n != 5}
        left = await room.workload(has("QuotaReserved", "False", "ExceedsMaxQuota"), "w-5")
        assert plugin.is_done
        assert left.status.admission is None


@pytest.mark.parametrize(
    "error",
    [
        conflict(Subject("workloads", name="w-3")),
        StatusError(500, "InternalError", "no", Subject()),
    ],
    ids=["conflict", "error"],
)
async def test_what_cannot_be_written_is_taken_back_alone(error: StatusError) -> None:
    """And given again: in the end all that fit have quota, and never more than there is."""
    async with waiting_room() as room:
        await room.queue(cpu=6)
        made = [workload(f"w-{n}", priority=10 * (n == 3)) for n in range(8)]
        await waiting_for_the_controller(room, made)
        seen = Transactions()
        room.place.core.store.follow(seen)

        def fail() -> None:
            raise error

        plugin = on_write(room, "w-3", fail, times=4)
        await room.start()
        assert len(await admitted_in_the_end(room, 6)) == 6
        assert plugin.is_done
        assert seen.most == 6


async def test_who_got_quota_in_the_same_gathering_can_be_driven_out() -> None:
    """It gets it first, so that its history and the counts are right, and then gives it back."""
    async with waiting_room() as room:
        await room.queue(cpu=0, name="a", cohortName="c")
        await room.queue(cpu=4, name="b", cohortName="c", preemption={"reclaimWithinCohort": "Any"})
        made = [
            workload("guest", 1, "a"),
            workload("first", 3, "b"),
            workload("second", 1, "b"),
        ]
        await waiting_for_the_controller(room, made)
        await room.start()
        await room.workload(admitted, "first")
        await room.workload(admitted, "second")
        guest = await room.workload(has("Preempted", "True", "InCohortReclamation"), "guest")
        assert guest.status.is_true("Evicted")
        await room.workload(lambda found: found.status.admission is None, "guest")
        tally = room.place.running.controllers[-1]._shared.tally
        assert tally.cluster.reserved == {("a", ""): 1, ("b", ""): 2}
        assert tally.preempted == {("b", "InCohortReclamation"): 1}


async def test_a_preemption_that_could_not_be_written_is_decided_again() -> None:
    """Somebody else was quicker. Whoever has to go is asked only once, but this one was not."""
    async with waiting_room() as room:
        await room.queue(cpu=1, preemption={"withinClusterQueue": "LowerPriority"})
        await room.place.create(WORKLOADS, workload("low"))
        await room.workload(admitted, "low")

        def fail() -> None:
            raise conflict(Subject("workloads", name="low"))

        plugin = on_write(room, "low", fail)
        await room.place.create(WORKLOADS, workload("high", priority=10))
        await room.workload(admitted, "high")
        assert plugin.is_done


async def test_nobody_is_driven_out_for_quota_that_was_taken_back() -> None:
    """The runner would have to go beside the guest. The guest does not get its quota after all, so that there is enough."""
    async with waiting_room() as room:
        await room.queue(cpu=0, name="a", cohortName="c")
        await room.queue(cpu=4, name="b", cohortName="c", preemption={"reclaimWithinCohort": "Any"})
        await room.place.create(WORKLOADS, workload("runner", 1, "a", priority=-1))
        await room.workload(admitted, "runner")
        made = [workload("guest", 2, "a"), workload("one", 1, "b"), workload("other", 1, "b")]
        await waiting_for_the_controller(room, made)

        def fail() -> None:
            raise conflict(Subject("workloads", name="guest"))

        plugin = on_write(room, "guest", fail, times=2)
        await room.start()
        for name in ("one", "other"):
            await room.workload(admitted, name)
        await room.workload(has("QuotaReserved", "False", "WaitingForQuota"), "guest")
        assert plugin.is_done
        runner = await room.workload(admitted, "runner")
        assert not runner.status.is_true("Evicted")


async def test_a_refusal_that_could_not_be_written_is_written_later() -> None:
    """Also if nothing else ever changes: whoever waits says why."""
    async with waiting_room() as room:
        await room.queue(cpu=1)

        def fail() -> None:
            raise conflict(Subject("workloads", name="large"))

        plugin = on_write(room, "large", fail)
        await room.place.create(WORKLOADS, workload("large", cpu=2))
        await room.workload(has("QuotaReserved", "False", "ExceedsMaxQuota"), "large")
        assert plugin.is_done


class Crash(AdmissionPlugin):
    """Ends whoever writes the status of a workload, from one write on."""

    def __init__(self, after: int) -> None:
        self._left = after
        self.happened = asyncio.Event()

    def validate(self, write: Admitted) -> None:
        if (write.resource.plural, write.subresource) == ("workloads", "status"):
            self._left -= 1
            if self._left < 0:
                self.happened.set()
                raise asyncio.CancelledError


async def test_a_crash_in_the_middle_gives_nobody_too_much() -> None:
    """What was written counts; what was only decided is decided again."""
    async with waiting_room() as room:
        await room.queue(cpu=70)
        await waiting_for_the_controller(room, [workload(f"w-{n:03}") for n in range(120)])
        seen, crash = Transactions(), Crash(after=60)
        room.place.core.store.follow(seen)
        plugins = room.place.core.admission.plugins
        plugins.append(crash)
        await room.start()
        await crash.happened.wait()
        await room.place.crash()
        plugins.remove(crash)
        page = await room.place.client.list(WORKLOADS, NAMESPACE)
        before = {each.metadata.name for each in page.items if admitted(known(each))}
        assert 0 < len(before) < 70
        await room.start()
        assert before <= await admitted_in_the_end(room, 70)
        assert seen.most == 70
