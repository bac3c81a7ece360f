"""Laws of jobs: every pod that ends is counted once, wherever the controller crashes; index sets are sets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.workloads.stage import NAMESPACE, Stage, stage, template
from drayman.api.core import Pod
from drayman.api.pods import is_active
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import InProcessClient
from drayman.cluster.informers import Informers
from drayman.cluster.resources import JOBS, PODS, JsonObject
from drayman.cluster.writes import Write
from drayman.controllers.workloads.jobs import BackoffTimes, JobController
from drayman.workloads.jobs.indexes import IndexSet
from patience import PATIENCE_S
from rounds import rounds

BACKOFF = BackoffTimes(first=0.0)


class MortalClient(InProcessClient):
    """Carries out so many writes; the next one never returns, whether it was carried out or not."""

    def __init__(self, backend: ServerBackend, writes: int, *, last_counts: bool) -> None:
        super().__init__(backend)
        self._left = writes
        self._last_counts = last_counts
        self.died = asyncio.Event()

    async def write_many(
        self, writes: Sequence[Write], *, answers: int | None = None
    ) -> tuple[object, ...]:
        return await self._dying(super().write_many(writes, answers=answers))

    async def _patch(self, *arguments: Any) -> Any:
        return await self._dying(super()._patch(*arguments))

    async def _dying(self, write: Any) -> Any:
        if self._left > 0:
            self._left -= 1
            return await write
        if self._last_counts and not self.died.is_set():
            await write
        else:
            write.close()
        self.died.set()
        await asyncio.Event().wait()
        return None


@dataclass(frozen=True)
class Life:
    """One run of the controller: how many writes it lives, and what happens to pods meanwhile."""

    writes: int
    last_counts: bool
    fates: tuple[str, ...]


@dataclass
class Ends:
    """What really happened to pods, by uid."""

    succeeded: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    async def meet(self, place: Stage, pod: Pod, fate: str) -> None:
        """Lets a pod end. One that is deleted before it ran has failed."""
        if fate == "Deleted":
            await place.client.delete(PODS, pod.metadata.name, NAMESPACE)
        else:
            await place.set_phase(pod, fate)
        ended = self.succeeded if fate == "Succeeded" else self.failed
        ended.add(pod.metadata.uid)


LIVES = st.lists(
    st.builds(
        Life,
        st.integers(0, 6),
        st.booleans(),
        st.lists(st.sampled_from(["Succeeded", "Failed", "Deleted"]), max_size=3).map(tuple),
    ),
    max_size=4,
)


def job(completions: int, parallelism: int, mode: str) -> JsonObject:
    body = template(app="work")
    body["spec"]["restartPolicy"] = "Never"
    spec = {
        "completions": completions,
        "parallelism": parallelism,
        "backoffLimit": 1000,
        "completionMode": mode,
        "template": body,
    }
    return {"metadata": {"name": "work"}, "spec": spec}


async def live(place: Stage, life: Life, ends: Ends) -> None:
    """Runs a controller until it dies or has nothing more to write, while pods meet their fates."""
    client = MortalClient(ServerBackend(place.core), life.writes, last_counts=life.last_counts)
    informers = Informers(client)
    controller = JobController(client, informers, clock=place.clock, backoff=BACKOFF)
    await informers.start()
    await informers.wait_synced()
    running = asyncio.create_task(controller.run())
    try:
        for fate in life.fates:
            active = [pod for pod in await place.pods() if is_active(pod)]
            if active:
                await ends.meet(place, active[0], fate)
            await asyncio.sleep(0)
        try:
            await asyncio.wait_for(client.died.wait(), 0.02)
        except TimeoutError:
            return
    finally:
        running.cancel()
        await asyncio.wait((running,))
        await informers.stop()


async def count(completions: int, parallelism: int, mode: str, lives: Sequence[Life]) -> None:
    async with stage() as place:
        await place.create(JOBS, job(completions, parallelism, mode))
        ends = Ends()
        made: set[str] = set()
        follower = await place._follow(PODS)
        follower.add_handler(lambda notice: made.add(notice.object.metadata.uid))
        for life in lives:
            await live(place, life, ends)
        await place.start(partial(JobController, backoff=BACKOFF))
        while (await place.get(JOBS, "work")).status.completion_time is None:
            pods = await place.until(PODS, lambda pods: True)
            for pod in filter(is_active, pods):
                if pod.metadata.uid not in ends.succeeded | ends.failed:
                    await ends.meet(place, pod, "Succeeded")
            await asyncio.sleep(0.001)
        status = (await place.get(JOBS, "work")).status
        assert status.failed == len(ends.failed)
        assert status.succeeded == completions
        assert len(ends.succeeded) == completions
        assert made == ends.succeeded | ends.failed
        assert status.active == 0


@settings(deadline=None, max_examples=rounds(40))
@given(st.integers(1, 5), st.integers(1, 4), st.sampled_from(["NonIndexed", "Indexed"]), LIVES)
def test_each_pod_is_counted_once_wherever_the_controller_crashes(
    completions: int, parallelism: int, mode: str, lives: list[Life]
) -> None:
    """Through any row of crashes the job makes no pod too many, and counts each that ended as what it was."""
    asyncio.run(asyncio.wait_for(count(completions, parallelism, mode, lives), PATIENCE_S))


INDEXES = st.sets(st.integers(0, 30))


@given(INDEXES, INDEXES)
def test_index_sets_are_sets(first: set[int], second: set[int]) -> None:
    """Union, size, membership and overlap are those of sets of numbers, and the text form is read back."""
    one, other = IndexSet().with_indexes(first), IndexSet().with_indexes(second)
    both = one | other
    assert len(both) == len(first | second)
    assert {n for n in range(40) if n in both} == first | second
    assert one.overlap(other) == len(first & second)
    assert IndexSet.parse(str(one), 31) == one


@given(INDEXES, st.integers(0, 10), st.integers(1, 31))
def test_absent_indexes_are_the_first_that_are_missing(
    present: set[int], wanted: int, completions: int
) -> None:
    """So many of those below the completions that the set does not have, in order."""
    expected = [n for n in range(completions) if n not in present][:wanted]
    assert IndexSet().with_indexes(present).absent(wanted, completions) == expected


def test_intervals_are_written_as_kubernetes_writes_them() -> None:
    """Two neighbours are named both, more become an interval."""
    assert str(IndexSet().with_indexes([1, 3, 4, 6, 7, 8])) == "1,3,4,6-8"
