"""Pods are told why they wait: when it is news, and only then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from cluster.contract.clusters import in_process
from controllers.world import NAMESPACE, POD_VALUES, World, stays
from drayman.api.core import Pod, PodCondition
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, InvalidError, Status
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import EVENTS
from drayman.scheduler.reporting import UNSCHEDULABLE, Reporter
from scheduler.wire import AWAY, FAILURES, Wire, soon


@dataclass(slots=True)
class Desk:
    """A reporter at work on a cluster. All pods wait, but those in `settled`."""

    world: World
    reporter: Reporter
    settled: set[str]
    shown: dict[str, Pod]
    """Pods as they were last told something, by uid."""

    async def pod(self, name: str) -> Pod:
        return await self.world.pod(name)

    async def told(self, name: str, message: str) -> Pod:
        """The pod, once it carries the message."""
        found = await self.world.until_pod(
            name, lambda pod: any(c.message == message for c in pod.status.conditions)
        )
        self.shown[found.metadata.uid] = found
        return found

    async def untouched(self, pod: Pod) -> None:
        """Nobody writes the pod any more."""
        await stays(lambda: self.world.get_pod(pod.metadata.name), lambda now: now == pod)


@asynccontextmanager
async def desk(folder: Path, wire: Wire | None = None) -> AsyncIterator[Desk]:
    """`wire` is how reports, and nothing else, are written."""
    async with in_process(folder) as client, EventRecorder(client, "default-scheduler") as recorder:
        settled: set[str] = set()
        shown: dict[str, Pod] = {}
        if wire is not None:
            wire.client = client
        reporter = Reporter(
            client if wire is None else cast("Client", wire),
            recorder,
            lambda uid: uid not in settled,
            time.time,
            shown=lambda pod: shown.get(pod.metadata.uid, pod),
        )
        running = asyncio.create_task(reporter.run())
        try:
            yield Desk(World(client, ()), reporter, settled, shown)
        finally:
            running.cancel()
            await asyncio.wait((running,))


def condition(pod: Pod) -> PodCondition:
    (found,) = [c for c in pod.status.conditions if c.type_ == "PodScheduled"]
    return found


async def test_a_refusal_is_told_by_condition_and_event(tmp_path: Path) -> None:
    """PodScheduled is False with reason and text, and an event says the same."""
    async with desk(tmp_path) as at:
        at.reporter.refuse(await at.pod("p"), UNSCHEDULABLE, lambda: "no room")
        found = condition(await at.told("p", "no room"))
        assert (found.status, found.reason) == ("False", "Unschedulable")
        await at.world.until_event("FailedScheduling", "no room")


async def test_the_same_again_is_no_news(tmp_path: Path) -> None:
    """However often a pod is refused for the same reason, it is written once."""
    async with desk(tmp_path) as at:
        at.reporter.refuse(await at.pod("p"), UNSCHEDULABLE, lambda: "no room")
        pod = await at.told("p", "no room")
        for _ in range(50):
            at.reporter.refuse(pod, UNSCHEDULABLE, lambda: "no room")
        await at.untouched(pod)


async def test_a_storm_becomes_one_write(tmp_path: Path) -> None:
    """Of many refusals in a moment only the last is written."""
    async with desk(tmp_path) as at:
        pod = await at.pod("p")
        for number in range(50):
            at.reporter.refuse(pod, UNSCHEDULABLE, partial(str.format, "attempt {}", number))
        await at.told("p", "attempt 49")
        await at.world.until_event("FailedScheduling", "attempt 49")
        assert [note for _, _, note in await at.world.events()] == ["attempt 49"]


async def test_another_reason_is_news_but_no_transition(tmp_path: Path) -> None:
    """The text changes; the time since which the pod waits does not."""
    async with desk(tmp_path) as at:
        at.reporter.refuse(await at.pod("p"), UNSCHEDULABLE, lambda: "no room")
        first = await at.told("p", "no room")
        at.reporter.refuse(first, UNSCHEDULABLE, lambda: "no devices")
        second = await at.told("p", "no devices")
        assert condition(second).last_transition_time == condition(first).last_transition_time


async def test_a_reason_that_comes_back_is_news(tmp_path: Path) -> None:
    """Also if the pod is refused before what was written last is shown: it does not say so any more."""
    async with desk(tmp_path) as at:
        at.reporter.refuse(await at.pod("p"), UNSCHEDULABLE, lambda: "no room")
        first = await at.told("p", "no room")
        at.reporter.refuse(first, UNSCHEDULABLE, lambda: "no devices")
        await at.told("p", "no devices")
        at.reporter.refuse(first, UNSCHEDULABLE, lambda: "no room")
        await at.told("p", "no room")


async def test_other_numbers_are_no_event(tmp_path: Path) -> None:
    """The condition follows the numbers; an event is recorded only where the words change."""
    async with desk(tmp_path) as at:
        at.reporter.refuse(await at.pod("p"), UNSCHEDULABLE, lambda: "7 of 8 in use")
        first = await at.told("p", "7 of 8 in use")
        at.reporter.refuse(first, UNSCHEDULABLE, lambda: "8 of 8 in use")
        second = await at.told("p", "8 of 8 in use")
        at.reporter.refuse(second, UNSCHEDULABLE, lambda: "8 of 8 tainted")
        await at.told("p", "8 of 8 tainted")
        await at.world.until_event("FailedScheduling", "8 of 8 tainted")
        notes = {note for _, _, note in await at.world.events()}
        assert notes == {"7 of 8 in use", "8 of 8 tainted"}


async def test_a_pod_that_cannot_be_explained_does_not_silence_the_others(tmp_path: Path) -> None:
    """What goes wrong with one explanation is logged, and the rest is written."""

    def broken() -> str:
        raise ValueError("a bug")

    async with desk(tmp_path) as at:
        pod, other = await at.pod("p"), await at.pod("other")
        at.reporter.refuse(pod, UNSCHEDULABLE, broken)
        at.reporter.refuse(other, UNSCHEDULABLE, lambda: "no room")
        await at.told("other", "no room")
        await at.untouched(pod)


async def test_copies_are_told_after_the_one_that_was_tried(tmp_path: Path) -> None:
    """When the reason changes for the pod that is tried for all its copies, those that were told the old one get the new one."""
    async with desk(tmp_path) as at:
        for name in ("p", "copy"):
            at.reporter.refuse(await at.pod(name), UNSCHEDULABLE, lambda: "in use")
        tried, copy = await at.told("p", "in use"), await at.told("copy", "in use")
        silent = await at.pod("silent")
        at.reporter.refuse(
            tried,
            UNSCHEDULABLE,
            lambda: "tainted",
            copies=lambda: ((pod, lambda: "tainted as well") for pod in (copy, silent)),
        )
        await at.told("p", "tainted")
        await at.told("copy", "tainted as well")
        await at.untouched(silent)


async def test_who_no_longer_waits_is_not_told(tmp_path: Path) -> None:
    """A pod that found a node in the same moment is left alone, and so is one that is forgotten."""
    async with desk(tmp_path) as at:
        pods = [await at.pod(name) for name in ("settled", "forgotten", "bound")]
        for pod in pods:
            at.reporter.refuse(pod, UNSCHEDULABLE, lambda: "no room")
        at.settled.add(pods[0].metadata.uid)
        at.reporter.forget(pods[1].metadata.uid)
        at.reporter.bound(pods[2], "node")
        last = await at.pod("last")
        at.reporter.refuse(last, UNSCHEDULABLE, lambda: "no room")
        await at.told("last", "no room")
        for pod in pods:
            assert await at.world.get_pod(pod.metadata.name) == pod


async def test_patience(tmp_path: Path) -> None:
    """What is usually on its way is not told at once."""
    async with desk(tmp_path) as at:
        patient, other = await at.pod("patient"), await at.pod("other")
        at.reporter.refuse(patient, UNSCHEDULABLE, lambda: "no claim", patience_s=3600)
        at.reporter.refuse(other, UNSCHEDULABLE, lambda: "no room")
        await at.told("other", "no room")
        await at.untouched(patient)


async def test_a_pod_that_is_gone_does_not_silence_the_others(tmp_path: Path) -> None:
    """Reports are written together; one that cannot be written does not keep the rest from being."""
    async with desk(tmp_path) as at:
        gone, here = await at.pod("gone"), await at.pod("here")
        await at.world.remove(POD_VALUES, "gone")
        at.reporter.refuse(gone, UNSCHEDULABLE, lambda: "no room")
        at.reporter.refuse(here, UNSCHEDULABLE, lambda: "no room")
        await at.told("here", "no room")


async def test_another_pod_of_the_name_is_not_told(tmp_path: Path) -> None:
    """A report belongs to a uid."""
    async with desk(tmp_path) as at:
        old = await at.pod("p")
        await at.world.remove(POD_VALUES, "p")
        new, other = await at.pod("p"), await at.pod("other")
        at.reporter.refuse(old, UNSCHEDULABLE, lambda: "no room")
        at.reporter.refuse(other, UNSCHEDULABLE, lambda: "no room")
        await at.told("other", "no room")
        await at.untouched(new)


async def test_copies_are_looked_at_once_for_pods_of_one_shape(tmp_path: Path) -> None:
    """A thousand pods that are refused together must not each go through the thousand that wait with them."""
    async with desk(tmp_path) as at:
        looked: list[str] = []

        def copies(name: str) -> tuple[()]:
            looked.append(name)
            return ()

        pods = [await at.pod(f"p{number}") for number in range(20)]
        for number, pod in enumerate(pods):
            shape = "odd" if number % 2 else "even"
            at.reporter.refuse(
                pod, UNSCHEDULABLE, lambda: "no room", copies=partial(copies, shape), shape=shape
            )
        for pod in pods:
            await at.told(pod.metadata.name, "no room")
        assert sorted(looked) == ["even", "odd"]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda each: type(each).__name__)
async def test_what_could_not_be_written_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: ClusterError
) -> None:
    """Nobody refuses the pod again, and there is one event about it."""
    soon(monkeypatch)
    async with desk(tmp_path, Wire(failure, 2)) as at:
        at.reporter.refuse(await at.pod("p"), UNSCHEDULABLE, lambda: "no room")
        await at.told("p", "no room")
        await at.world.until_event("FailedScheduling", "no room")
        assert [note for _, _, note in await at.world.events()] == ["no room"]
        events = await at.world.client.list(EVENTS, NAMESPACE)
        assert all("series" not in each for each in events.items)


async def test_what_is_written_again_is_the_last_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal while a report is being written that will fail takes its place."""
    soon(monkeypatch)
    wire = Wire(AWAY, 1)
    async with desk(tmp_path, wire) as at:
        pod = await at.pod("p")

        async def refuse_again() -> None:
            at.reporter.refuse(pod, UNSCHEDULABLE, lambda: "no devices")

        wire.meanwhile = refuse_again
        at.reporter.refuse(pod, UNSCHEDULABLE, lambda: "no room")
        await at.told("p", "no devices")
        await at.untouched(await at.told("p", "no devices"))


async def test_a_pod_that_is_placed_meanwhile_is_not_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is forgotten while a report about it is being written that will fail."""
    soon(monkeypatch)
    wire = Wire(AWAY, 1)
    async with desk(tmp_path, wire) as at:
        pod, last = await at.pod("p"), await at.pod("last")

        async def place() -> None:
            at.reporter.forget(pod.metadata.uid)

        wire.meanwhile = place
        at.reporter.refuse(pod, UNSCHEDULABLE, lambda: "no room")
        await wire.has_failed.wait()
        at.reporter.refuse(last, UNSCHEDULABLE, lambda: "no room")
        await at.told("last", "no room")
        await at.untouched(pod)


async def test_what_is_refused_for_good_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until there is another reason."""
    soon(monkeypatch)
    async with desk(tmp_path, Wire(InvalidError(Status(code=422)), 1)) as at:
        pod = await at.pod("p")
        at.reporter.refuse(pod, UNSCHEDULABLE, lambda: "no room")
        await at.world.until_event("FailedScheduling", "no room")
        await at.untouched(pod)
        at.reporter.refuse(pod, UNSCHEDULABLE, lambda: "no devices")
        await at.told("p", "no devices")


async def test_a_reason_comes_back_before_the_other_is_shown(tmp_path: Path) -> None:
    """What the server shows is older than what was written last."""
    async with desk(tmp_path) as at:
        at.reporter.refuse(await at.pod("p"), UNSCHEDULABLE, lambda: "no room")
        first = await at.told("p", "no room")
        at.reporter.refuse(first, UNSCHEDULABLE, lambda: "no devices")
        await at.told("p", "no devices")
        at.shown[first.metadata.uid] = first
        at.reporter.refuse(first, UNSCHEDULABLE, lambda: "no room")
        await at.told("p", "no room")
