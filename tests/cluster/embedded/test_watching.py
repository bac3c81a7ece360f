"""Watches: from any retained revision, in order, once each, bounded."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from drayman.cluster.embedded import (
    Delete,
    EventType,
    Key,
    Put,
    Retention,
    Store,
    StoreError,
    Subscription,
    TooOldError,
)
from drayman.cluster.embedded.watching import WOKEN_AT_ONCE


def key(name: str, namespace: str = "default", resource: str = "pods") -> Key:
    return Key(resource, namespace, name)


def encode(revision: int) -> bytes:
    return b'{"revision":%d}' % revision


async def create(store: Store, *keys: Key) -> None:
    await store.write([Put(k, encode, 0) for k in keys])


async def take(subscription: Subscription, count: int) -> list[int]:
    """The revisions of the next events, exactly so many."""
    revisions: list[int] = []
    async with asyncio.timeout(
        30
    ):  # an event that was lost is a failure, not a test that never ends
        while len(revisions) < count:
            revisions += [event.revision for event in await anext(subscription)]
    assert len(revisions) == count
    return revisions


def test_a_watch_begins_after_the_revision_it_names(open_store):
    """What happened since comes first, then what happens."""

    async def scenario(store: Store) -> None:
        await create(store, key("a"), key("b"), key("c"))
        subscription = store.watch("pods", since=1)
        assert await take(subscription, 2) == [2, 3]
        await store.write([Delete(key("a"), encode)])
        (event,) = await anext(subscription)
        assert (event.type, event.revision, event.stored.revision) == (EventType.DELETED, 4, 4)
        assert event.previous is not None
        assert event.previous.revision == 1

    asyncio.run(scenario(open_store()))


def test_a_watch_sees_its_resource_and_namespace_only(open_store):
    """Events elsewhere neither appear nor wake."""

    async def scenario(store: Store) -> None:
        here = store.watch("pods", "here", since=0)
        everywhere = store.watch("pods", since=0)
        await create(
            store, key("a", "there"), key("b", "here"), key("c", "here", "jobs"), key("d", "")
        )
        assert await take(here, 1) == [2]
        assert await take(everywhere, 3) == [1, 2, 4]

    asyncio.run(scenario(open_store()))


def test_a_sleeping_watch_is_not_left_behind_by_others(open_store):
    """However much happens elsewhere, a watch that waits is up to date, and its revision says so."""

    async def scenario(store: Store) -> None:
        quiet = store.watch("pods", "quiet", since=0)
        reader = asyncio.ensure_future(anext(quiet))
        await asyncio.sleep(0)
        for n in range(20):
            await create(store, key(str(n), "busy"))
        assert quiet.revision == 20
        assert store.oldest > 0
        await create(store, key("a", "quiet"))
        assert [event.revision for event in await reader] == [21]
        assert quiet.revision == 21

    asyncio.run(scenario(open_store(Retention(changes=5))))


def test_a_read_that_times_out_is_empty_and_loses_nothing(open_store):
    """After it the watch is up to date, and the next event is seen once."""

    async def scenario(store: Store) -> None:
        subscription = store.watch("pods", "here", since=0)
        await create(store, key("a", "there"))
        assert await subscription.next(timeout=0) == ()
        assert subscription.revision == 1
        await create(store, key("b", "here"))
        assert await take(subscription, 1) == [2]
        assert await subscription.next(timeout=0) == ()

    asyncio.run(scenario(open_store()))


def test_a_cancelled_read_loses_nothing(open_store):
    """The event that came with the cancellation is in the next batch."""

    async def scenario(store: Store) -> None:
        subscription = store.watch("pods", since=0)
        reader = asyncio.ensure_future(anext(subscription))
        await asyncio.sleep(0)
        write = asyncio.ensure_future(create(store, key("a")))
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        await write
        assert reader.cancelled()
        assert await take(subscription, 1) == [1]

    asyncio.run(scenario(open_store()))


def test_a_cancelled_read_leaves_a_quiet_watch_up_to_date(open_store):
    """While it slept, history moved on elsewhere: nothing was missed, so nothing is too old."""

    async def scenario(store: Store) -> None:
        quiet = store.watch("pods", "quiet", since=0)
        reader = asyncio.ensure_future(anext(quiet))
        await asyncio.sleep(0)
        for n in range(20):
            await create(store, key(str(n), "busy"))
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        await create(store, key("a", "quiet"))
        assert await take(quiet, 1) == [21]

    asyncio.run(scenario(open_store(Retention(changes=5))))


def test_watches_at_one_place_that_read_at_different_times_miss_nothing(open_store):
    """What the first was given is not what the second needs."""

    async def scenario(store: Store) -> None:
        first, second = store.watch("pods", since=0), store.watch("pods", since=0)
        await create(store, key("a"))
        assert await take(first, 1) == [1]
        await create(store, key("b"))
        assert await take(second, 2) == [1, 2]
        assert await take(first, 1) == [2]

    asyncio.run(scenario(open_store()))


def test_a_watch_that_falls_behind_ends_with_too_old(open_store):
    """Its place is no longer in history; the subscription is over."""

    async def scenario(store: Store) -> None:
        subscription = store.watch("pods", since=0)
        await create(store, key("first"))
        assert await take(subscription, 1) == [1]
        for n in range(10):
            await create(store, key(str(n)))
        with pytest.raises(TooOldError) as caught:
            await anext(subscription)
        assert caught.value.asked == 1
        assert caught.value.oldest == store.oldest == 6
        with pytest.raises(StopAsyncIteration):
            await anext(subscription)
        assert store.watchers == 0

    asyncio.run(scenario(open_store(Retention(changes=5))))


def test_a_watch_from_forgotten_history_is_refused_at_once(open_store):
    """TooOldError comes from `watch` itself, so that an answer can still be an error."""

    async def scenario(store: Store) -> None:
        await create(store, key("a"), key("b"))
        store.compact(1)
        with pytest.raises(TooOldError):
            store.watch("pods", since=0)
        assert await take(store.watch("pods", since=1), 1) == [2]

    asyncio.run(scenario(open_store()))


def test_a_watch_from_a_revision_to_come_waits_for_it(open_store):
    """Events up to that revision are not shown."""

    async def scenario(store: Store) -> None:
        subscription = store.watch("pods", since=2)
        reader = asyncio.ensure_future(anext(subscription))
        for name in "abc":
            await create(store, key(name))
        assert [event.revision for event in await reader] == [3]

    asyncio.run(scenario(open_store()))


def test_watchers_share_the_batch_they_are_woken_with(open_store):
    """A thousand watchers of one namespace get the same tuple, so that it can be encoded once."""

    async def scenario(store: Store) -> None:
        readers = [
            asyncio.ensure_future(anext(store.watch("pods", "x", since=0))) for _ in range(50)
        ]
        await asyncio.sleep(0)
        await create(store, key("a", "x"), key("b", "x"))
        batches = await asyncio.gather(*readers)
        assert [event.revision for event in batches[0]] == [1, 2]
        assert all(batch is batches[0] for batch in batches)

    asyncio.run(scenario(open_store()))


def test_closing_ends_watches(open_store):
    """A closed subscription wakes its reader and stops; closing the store closes all and opens no more."""

    async def scenario(store: Store) -> None:
        one, other = store.watch("pods", since=0), store.watch("jobs", since=0)
        readers = [asyncio.ensure_future(anext(s, None)) for s in (one, other)]
        await asyncio.sleep(0)
        one.close()
        assert await readers[0] is None
        assert store.watchers == 1
        store.close()
        assert await readers[1] is None
        assert store.watchers == 0
        with pytest.raises(StoreError, match="closed"):
            store.watch("pods", since=0)

    asyncio.run(scenario(open_store()))


@pytest.mark.parametrize(
    ("retention", "kept"),
    [
        pytest.param(Retention(changes=4), 4, id="by-count"),
        pytest.param(Retention(bytes=1000), 10, id="by-bytes"),
        pytest.param(Retention(seconds=4.5), 5, id="by-age"),
    ],
)
def test_history_is_bounded(open_store, retention, kept):
    """Each bound alone limits what is kept: here, changes of 100 bytes, one a second."""
    seconds = iter(range(1_000_000))

    async def scenario(store: Store) -> None:
        # The first change of each object holds no earlier form, so only updates count by bytes.
        for _ in range(50):
            await store.write([Put(key("a"), lambda revision: b"%0100d" % revision)])
        assert store.revision - store.oldest == kept
        assert len(store.watch("pods", since=store.oldest).pending()) == kept

    clock = lambda: next(seconds) / 2  # noqa: E731 a write looks at the clock twice
    asyncio.run(scenario(open_store(retention, clock)))


def test_a_watch_of_everything_has_one_order(open_store):
    """Changes of all resources come in the order of their revisions, also of resources that had no objects before."""

    async def scenario(store: Store) -> None:
        await create(store, key("a"), key("b", "", "nodes"))
        subscription = store.watch_all(since=1)
        assert await take(subscription, 1) == [2]
        await create(store, key("a", resource="configmaps"))
        await create(store, key("c"), key("d", "", "nodes"))
        assert await take(subscription, 3) == [3, 4, 5]
        assert {stored.revision for stored in store.list_all()} == {1, 2, 3, 4, 5}
        store.close()
        assert subscription.closed

    asyncio.run(scenario(open_store()))


def test_very_many_watches_are_woken_a_few_at_a_time(open_store):
    """Everything else that is ready goes on in between, and none of them misses the change or sees it twice."""

    async def main() -> tuple[list[int], list[list[int]]]:
        store = open_store()
        seen: list[list[int]] = []

        async def read() -> None:
            seen.append(await take(store.watch("pods", since=0), 1))

        readers = [asyncio.create_task(read()) for _ in range(5 * WOKEN_AT_ONCE)]
        await asyncio.sleep(0)
        await create(store, key("a"))
        steps = [len(seen)]
        while len(seen) < len(readers):
            await asyncio.sleep(0)
            steps.append(len(seen))
        await asyncio.gather(*readers)
        return steps, seen

    steps, seen = asyncio.run(main())
    assert seen == [[1]] * 5 * WOKEN_AT_ONCE
    assert max(after - before for before, after in pairwise(steps)) <= WOKEN_AT_ONCE
