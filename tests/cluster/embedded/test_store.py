"""Reads and writes: conditions, transactions, order, visibility."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from drayman.cluster.embedded import (
    ConflictError,
    Delete,
    EventType,
    Key,
    Put,
    Store,
    StoreError,
    TooOldError,
)

A = Key("pods", "default", "a")
B = Key("pods", "default", "b")


def encode(text: str = "") -> Callable[[int], bytes]:
    return lambda revision: b'{"revision":%d,"text":"%s"}' % (revision, text.encode())


def put(key: Key, text: str = "", expected: int | None = None) -> Put:
    return Put(key, encode(text), expected)


def test_a_write_gets_the_next_revision_and_is_encoded_with_it(open_store):
    """The bytes of an object name the revision that it has."""

    async def scenario(store: Store) -> None:
        (first,) = await store.write([put(A)])
        (second,) = await store.write([put(A)])
        assert (first.revision, second.revision) == (1, 2)
        assert second.data == b'{"revision":2,"text":""}'
        assert second.value == {"revision": 2, "text": ""}
        assert store.get(A) == second
        assert store.revision == 2

    asyncio.run(scenario(open_store()))


@pytest.mark.parametrize(
    ("existing", "operation", "found"),
    [
        pytest.param([A], put(A, expected=0), 1, id="create-of-what-exists"),
        pytest.param([A], put(A, expected=2), 1, id="update-of-another-revision"),
        pytest.param([], put(A, expected=1), None, id="update-of-what-is-gone"),
        pytest.param([], Delete(A, encode()), None, id="delete-of-nothing"),
        pytest.param([], Delete(A, encode(), 0), None, id="delete-of-nothing-expected-absent"),
        pytest.param([A], Delete(A, encode(), 7), 1, id="delete-of-another-revision"),
        pytest.param([A], Delete(A, encode(), 0), 1, id="delete-of-what-should-not-exist"),
    ],
)
def test_a_write_with_a_wrong_expectation_is_a_conflict(open_store, existing, operation, found):
    """The error carries the object as it is, and nothing changes."""

    async def scenario(store: Store) -> None:
        for key in existing:
            await store.write([put(key)])
        before = store.revision, store.list("pods")
        with pytest.raises(ConflictError) as caught:
            await store.write([operation])
        assert caught.value.key == A
        assert (caught.value.found and caught.value.found.revision) == found
        assert (store.revision, store.list("pods")) == before
        assert store.latest(A) == store.get(A)

    asyncio.run(scenario(open_store()))


def test_a_transaction_with_one_conflict_does_nothing(open_store):
    """All operations of a write happen, or none; revisions of a refused one are given to the next."""

    async def scenario(store: Store) -> None:
        await store.write([put(A, "old")])
        with pytest.raises(ConflictError):
            await store.write([put(B, expected=0), put(A, "new", expected=9)])
        assert store.get(B) is None
        assert store.get(A).value["text"] == "old"
        (stored,) = await store.write([put(B, expected=0)])
        assert stored.revision == 2

    asyncio.run(scenario(open_store()))


def test_operations_of_a_transaction_see_each_other(open_store):
    """Each has a revision of its own, and expects what the one before it left."""

    async def scenario(store: Store) -> None:
        created, deleted, again = await store.write(
            [put(A, expected=0), Delete(A, encode(), 1), put(A, "again", expected=0)]
        )
        assert [created.revision, deleted.revision, again.revision] == [1, 2, 3]
        assert store.list("pods") == (again,)
        (events,) = [await store.watch("pods", since=0).next()]
        assert [e.type for e in events] == [EventType.ADDED, EventType.DELETED, EventType.ADDED]
        assert [e.previous for e in events] == [None, created, None]

    asyncio.run(scenario(open_store()))


def test_an_encoder_that_fails_leaves_no_trace(open_store):
    """Its exception goes to the caller of write."""

    def refuse(revision: int) -> bytes:
        raise ZeroDivisionError(revision)

    async def scenario(store: Store) -> None:
        with pytest.raises(ZeroDivisionError):
            await store.write([put(A), Put(B, refuse)])
        assert store.latest(A) is None
        (stored,) = await store.write([put(B)])
        assert stored.revision == 1

    asyncio.run(scenario(open_store()))


def test_an_empty_transaction_takes_no_revision(open_store):
    """Writing nothing is allowed and changes nothing."""
    store = open_store()
    assert asyncio.run(store.write([])) == ()
    assert store.revision == 0


def test_a_list_is_sorted_and_kept_to_its_namespace(open_store):
    """Order is by namespace, then name; a namespace that begins like another is another."""
    names = [("b", "x"), ("a", "z"), ("a-b", "y"), ("a", "b"), ("", "node"), ("a.b", "c")]

    async def scenario(store: Store) -> None:
        for namespace, name in names:
            await store.write(
                [put(Key("pods", namespace, name)), put(Key("jobs", namespace, name))]
            )
        listed = [(s.key.namespace, s.key.name) for s in store.list("pods")]
        assert listed == sorted(names)
        assert [s.key.name for s in store.list("pods", "a")] == ["b", "z"]
        assert [s.key.name for s in store.list("pods", "")] == ["node"]
        assert store.list("pods", "missing") == store.list("nothing") == ()
        assert (store.count("pods"), store.count("nothing")) == (len(names), 0)

    asyncio.run(scenario(open_store()))


def test_a_list_at_an_earlier_revision_is_as_it_was(open_store):
    """Objects that were changed, deleted, and created since are seen as they were."""

    async def scenario(store: Store) -> None:
        await store.write([put(A, "1"), put(B, "2")])
        then = store.list("pods")
        await store.write([put(A, "3"), Delete(B, encode()), put(Key("pods", "default", "c"))])
        await store.write([put(Key("pods", "other", "d")), put(B, "4")])
        assert store.list_at("pods", None, 2) == then
        assert store.list_at("pods", "default", 2) == then
        assert store.list_at("pods", "other", 2) == ()
        assert [s.key.name for s in store.list_at("pods", None, 5)] == ["a", "c"]
        assert store.list_at("pods", None, 7) == store.list("pods")
        assert store.list_at("pods", None, 0) == ()

    asyncio.run(scenario(open_store()))


def test_a_list_at_a_revision_that_is_gone_or_to_come_is_refused(open_store):
    """The first is TooOldError with the bounds of history in it."""

    async def scenario(store: Store) -> None:
        for _ in range(3):
            await store.write([put(A)])
        store.compact(2)
        assert store.oldest == 2
        with pytest.raises(TooOldError) as caught:
            store.list_at("pods", None, 1)
        assert (caught.value.asked, caught.value.oldest) == (1, 2)
        assert [s.revision for s in store.list_at("pods", None, 2)] == [2]
        with pytest.raises(ValueError, match="still to come"):
            store.list_at("pods", None, 4)

    asyncio.run(scenario(open_store()))


def test_concurrent_creates_of_one_object_have_one_winner(open_store):
    """Whoever comes first wins, before anything is on disk."""

    async def scenario(store: Store) -> None:
        tries = [store.write([put(A, str(n), expected=0)]) for n in range(20)]
        results = await asyncio.gather(*tries, return_exceptions=True)
        assert [isinstance(r, ConflictError) for r in results] == [False] + [True] * 19
        assert store.get(A).value["text"] == "0"

    asyncio.run(scenario(open_store()))


def test_writes_under_way_are_latest_but_not_yet_visible(tmp_path):
    """`get`, `list` and `revision` speak of what is on disk; `latest` is what the next write meets."""

    async def scenario(store: Store) -> None:
        await store.write([put(A, "old"), put(B)])
        writes = [
            asyncio.ensure_future(store.write([operation]))
            for operation in (
                put(A, "new"),
                Delete(B, encode()),
                put(B, expected=0),
                Delete(B, encode()),
            )
        ]
        await asyncio.sleep(0)  # each has been decided; none can have been reported
        assert store.latest(A).value["text"] == "new"
        assert store.latest(B) is None
        assert store.get(A).value["text"] == "old"
        assert store.get(B) is not None
        assert store.revision == 2
        await asyncio.gather(*writes)
        assert (store.get(A), store.get(B)) == (store.latest(A), None)
        assert store.get(A).value["text"] == "new"
        assert store.revision == 6

    with Store.open(tmp_path / "store.db") as store:
        asyncio.run(scenario(store))


def test_latest_never_goes_back(tmp_path):
    """Commits come in while later writes of the same object are under way: the next write still builds on the newest."""

    async def scenario(store: Store) -> None:
        writes = []
        for number in range(1, 301):
            known = store.latest(A)
            writes.append(
                asyncio.ensure_future(
                    store.write([put(A, expected=known.revision if known else 0)])
                )
            )
            await asyncio.sleep(0)
            if number > 3:
                await writes[number - 3]
            assert store.latest(A).revision == number
        results = await asyncio.gather(*writes)
        assert [stored.revision for (stored,) in results] == list(range(1, 301))

    with Store.open(tmp_path / "store.db") as store:
        asyncio.run(scenario(store))


def test_a_cancelled_caller_does_not_take_its_write_back(tmp_path):
    """Once decided, a write happens: others may have built on it."""

    async def scenario(store: Store) -> None:
        write = asyncio.ensure_future(store.write([put(A)]))
        await asyncio.sleep(0)
        write.cancel()
        await store.write([put(B)])
        assert write.cancelled()
        assert [s.key for s in store.list("pods")] == [A, B]

    with Store.open(tmp_path / "store.db") as store:
        asyncio.run(scenario(store))


def test_closing_commits_what_is_under_way(tmp_path):
    """Callers hear of it, the file has it, and later writes are refused."""

    async def scenario() -> None:
        store = Store.open(tmp_path / "store.db")
        writes = [
            asyncio.ensure_future(store.write([put(Key("pods", "d", str(n)))])) for n in range(5)
        ]
        await asyncio.sleep(0)
        store.close()
        store.close()
        assert [r[0].revision for r in await asyncio.gather(*writes)] == [1, 2, 3, 4, 5]
        with pytest.raises(StoreError, match="closed"):
            await store.write([put(A)])

    asyncio.run(scenario())
    with Store.open(tmp_path / "store.db") as store:
        assert len(store.list("pods")) == 5


def test_a_store_serves_one_event_loop_after_another(tmp_path):
    """A loop that closes while a commit is under way does not lose the write."""
    with Store.open(tmp_path / "store.db") as store:

        async def begin() -> None:
            asyncio.ensure_future(store.write([put(A)]))  # noqa: RUF006 the loop ends before it does
            await asyncio.sleep(0)

        asyncio.run(begin())
        asyncio.run(store.write([put(B)]))
        assert [s.key for s in store.list("pods")] == [A, B]
        assert store.latest(A) == store.get(A)


def test_what_was_written_is_there_after_reopening(tmp_path):
    """Objects, revisions and history survive; the next revision follows."""

    async def scenario(store: Store) -> None:
        await store.write([put(A, "1"), put(B, "ü\\u0000")])
        await store.write([put(A, "2")])
        await store.write([Delete(B, encode("last"))])

    with Store.open(tmp_path / "store.db") as store:
        asyncio.run(scenario(store))
        wanted = store.list("pods"), store.watch("pods", since=0).pending()
    with Store.open(tmp_path / "store.db") as store:
        assert (store.list("pods"), store.watch("pods", since=0).pending()) == wanted
        assert (store.revision, store.oldest) == (4, 0)
        (stored,) = asyncio.run(store.write([put(B)]))
        assert stored.revision == 5


def test_decoded_objects_are_shared_and_bounded(open_store):
    """`value` decodes once; only so many bytes stay decoded, and what was forgotten is decoded again."""

    async def scenario(store: Store) -> None:
        (stored,) = await store.write([put(A)])
        first = stored.value
        assert stored.value is first
        (huge,) = await store.write([put(B, "x" * 40 * 2**20)])
        assert len(huge.value["text"]) == 40 * 2**20
        assert stored.value is not first
        assert stored.value == first

    asyncio.run(scenario(open_store()))
