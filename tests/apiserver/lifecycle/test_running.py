"""The task behind it: it knows everything before it decides, keeps up, tries again, and stops."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from apiserver.lifecycle.world import CONFIG, Object, World, owner, world
from drayman.apiserver.lifecycle.released_claims import LEFT_TO_CONTROLLER_S
from drayman.apiserver.lifecycle.running import Lifecycle
from drayman.apiserver.protocol.errors import forbidden
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.apiserver.verbs.patches import MERGE_PATCH
from drayman.cluster.backend import Target
from drayman.cluster.embedded import Retention, Store
from drayman.cluster.options import DeleteOptions, WriteOptions

PROTECTION = "resource.kubernetes.io/delete-protection"
HOLD = "example.com/hold"
POD = Target("", "v1", "pods", "default")
CLAIM = Target("resource.k8s.io", "v1", "resourceclaims", "default")
CLAIM_SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}


@dataclass(slots=True)
class Hand:
    """The hand of a clock that tests move."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


async def test_nothing_is_decided_before_everything_is_known() -> None:
    """An owner that was being orphaned when the server stopped frees all of its dependents after the next start."""
    count = 1_100  # more than is taken stock of at a time
    async with world(running=False) as w:
        top = await w.config("a-top")
        for number in range(count):
            await w.config(f"orphan-{number:04}", owner(top))
        await w.delete(CONFIG, "a-top", "Orphan")
        w.lifecycle.start()
        await w.until_gone(CONFIG, "a-top")
        await w.quiet()
        left = w.store.list("configmaps", "default")
        assert len(left) == count
        assert not any("ownerReferences" in stored.value["metadata"] for stored in left)


async def test_owners_that_went_while_nobody_looked() -> None:
    """What lost its owner before the start is deleted after it; what has one stays."""
    async with world(running=False) as w:
        gone, there = await w.config("gone"), await w.config("there")
        await w.config("of-gone", owner(gone))
        await w.config("of-there", owner(there))
        await w.delete(CONFIG, "gone")
        w.lifecycle.start()
        await w.until_gone(CONFIG, "of-gone")
        await w.quiet()
        assert await w.names() == {"there", "of-there"}


async def test_falling_behind_is_made_good() -> None:
    """When history is gone before it was read, everything is looked at again."""
    store = Store.open(None, retention=Retention(changes=20))
    async with world(store) as w:
        top = await w.config("top")
        await w.config("dependent", owner(top))
        await w.quiet()
        # A store in memory writes without a pause, so that nobody else runs in between.
        await w.delete(CONFIG, "top")
        for number in range(100):
            await w.config(f"other-{number}")
        assert await w.get(CONFIG, "dependent") is not None
        await w.until_gone(CONFIG, "dependent")
        assert len(await w.names()) == 100


@dataclass(slots=True)
class RefusesDeletion(AdmissionPlugin):
    """Says no to the first deletions of an object."""

    name: str
    times: int

    def admit(self, write: Admitted) -> None:
        if write.operation == "DELETE" and write.name == self.name and self.times > 0:
            self.times -= 1
            raise forbidden(write.resource.subject(write.name), "not yet")


async def test_a_refusal_is_tried_again_and_holds_up_nobody() -> None:
    """One object that cannot be deleted keeps its place in line, others due with it go."""
    async with world() as w:
        refuses = RefusesDeletion("stubborn", 2)
        w.core.admission.plugins.append(refuses)
        top = await w.config("top")
        for name in ("before", "stubborn", "later"):
            await w.config(name, owner(top))
        await w.delete(CONFIG, "top")
        await w.until_gone(CONFIG, "before", "later")
        await w.until_gone(CONFIG, "stubborn")
        assert refuses.times == 0


async def test_stopping_leaves_nothing_behind() -> None:
    """After stop no task is left, whatever was due; stopping twice is stopping once."""
    async with world(running=False) as w:
        tasks = asyncio.all_tasks()
        w.lifecycle.start()
        top = await w.config("top")
        for number in range(200):
            await w.config(f"dependent-{number}", owner(top))
        await w.quiet()
        await w.delete(CONFIG, "top")
        await asyncio.sleep(0)
        await w.lifecycle.stop()
        assert asyncio.all_tasks() == tasks
        assert w.store.watchers == 0
        before = await w.names()
        await asyncio.sleep(0.01)
        assert await w.names() == before
        await w.lifecycle.stop()


async def test_a_store_that_is_closed_ends_it() -> None:
    """Closing the store first is no reason to hang or to spin."""
    async with world(running=False) as w:
        tasks = asyncio.all_tasks()
        w.lifecycle.start()
        await w.quiet()
        w.store.close()
        await w.until(lambda: asyncio.all_tasks() == tasks, "the task to end")


async def test_many_dependents_at_once() -> None:
    """More dependents than one transaction takes all go with their owner."""
    async with world() as w:
        top = await w.config("top")
        for number in range(300):
            await w.config(f"dependent-{number}", owner(top))
        await w.delete(CONFIG, "top")
        await w.until(lambda: w.store.count("configmaps") == 0, "all dependents to be gone")


@pytest.mark.parametrize(
    ("finalizers", "users", "is_left"),
    [
        pytest.param((PROTECTION,), ("pod",), True, id="used by its pod"),
        pytest.param((PROTECTION,), (), True, id="used by nobody"),
        pytest.param((PROTECTION,), ("pod", "other"), False, id="used by others too"),
        pytest.param((HOLD,), ("pod",), False, id="held by somebody else"),
    ],
)
async def test_claims_are_left_to_their_controller_at_first(
    finalizers: tuple[str, ...], users: tuple[str, ...], is_left: bool
) -> None:
    """A claim that is released with its pod is marked only after a while; others are marked at once."""
    hand = Hand()
    async with world(running=False) as w:
        w.lifecycle = Lifecycle(w.core, clock=hand)
        w.lifecycle.start()
        pod = await w.create(POD, "pod", spec={"containers": [{"name": "c", "image": "i"}]})
        await w.create(CLAIM, "claim", owner(pod), finalizers=finalizers, spec=CLAIM_SPEC)
        uids = {"pod": pod["metadata"]["uid"], "other": "another"}
        consumers = [{"resource": "pods", "name": name, "uid": uids[name]} for name in users]
        await use(w, "claim", consumers)
        await w.quiet()
        await w.backend.delete(POD._replace(name="pod"), DeleteOptions(grace_period_seconds=0))
        await w.quiet()
        assert await is_marked(w, "claim") != is_left
        hand.now += LEFT_TO_CONTROLLER_S
        await w.quiet()
        assert await is_marked(w, "claim")


async def use(w: World, name: str, consumers: list[Object]) -> None:
    """Allocate a claim for somebody."""
    result = {"request": "r", "driver": "gpu.example.com", "pool": "node-a", "device": "d"}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": consumers}
    target = CLAIM._replace(name=name, subresource="status")
    await w.backend.patch(target, MERGE_PATCH, {"status": status}, WriteOptions())


async def is_marked(w: World, name: str) -> bool:
    found = await w.get(CLAIM, name)
    assert found is not None, f"{name} is gone"
    return "deletionTimestamp" in found["metadata"]


async def test_what_was_left_to_a_controller_before_a_restart() -> None:
    """Nobody remembers that it was, so it is marked with everything else that has lost its owner."""
    async with world(running=False) as w:
        pod = await w.create(POD, "pod", spec={"containers": [{"name": "c", "image": "i"}]})
        await w.create(CLAIM, "claim", owner(pod), finalizers=(PROTECTION,), spec=CLAIM_SPEC)
        await w.backend.delete(POD._replace(name="pod"), DeleteOptions(grace_period_seconds=0))
        w.lifecycle.start()
        await w.quiet()
        assert await is_marked(w, "claim")
