"""Events go an hour after they were last written; nothing else does."""

from __future__ import annotations

from apiserver.lifecycle.test_running import Hand
from apiserver.lifecycle.world import CONFIG, World, world
from drayman.apiserver.lifecycle.expiring_events import LIFETIME_S, NOTED_EVERY_S
from drayman.apiserver.lifecycle.running import Lifecycle
from drayman.apiserver.verbs.patches import MERGE_PATCH
from drayman.cluster.backend import Target
from drayman.cluster.options import WriteOptions
from drayman.cluster.together import LARGEST

EVENT = Target("", "v1", "events", "default")


async def note(w: World, name: str) -> None:
    involved = {"kind": "Pod", "namespace": "default", "name": "p"}
    body = {"metadata": {"name": name, "namespace": "default"}, "involvedObject": involved}
    await w.backend.create(EVENT, body, WriteOptions())


def events(w: World) -> list[str]:
    return [stored.key.name for stored in w.store.list("events", "default")]


async def pass_time(w: World, hand: Hand, seconds: float) -> None:
    """Some time in which the lifecycle looks as often as it does."""
    for _ in range(int(seconds / NOTED_EVERY_S) + 1):
        hand.now += NOTED_EVERY_S
        await w.config(f"tick-{hand.now}")  # wakes it
        await w.quiet()


async def test_events_last_for_an_hour() -> None:
    """All that were not written again in that time are removed, however many there are."""
    hand = Hand()
    async with world(running=False) as w:
        w.lifecycle = Lifecycle(w.core, clock=hand)
        w.lifecycle.start()
        await w.quiet()
        for number in range(2 * LARGEST + 1):
            await note(w, f"old-{number}")
        await note(w, "again")
        await pass_time(w, hand, LIFETIME_S / 2)
        again = EVENT._replace(name="again")
        await w.backend.patch(again, MERGE_PATCH, {"count": 2}, WriteOptions())
        await note(w, "new")
        await pass_time(w, hand, LIFETIME_S / 2)
        assert events(w) == ["again", "new"]
        assert await w.get(CONFIG, "tick-160.0") is not None
        await pass_time(w, hand, LIFETIME_S / 2)
        assert events(w) == []
