"""Compaction: the file holds what somebody can still ask for, and little else."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from drayman.cluster.embedded import Delete, Key, Put, Retention, Store, TooOldError

A = Key("pods", "default", "a")


def encode(revision: int) -> bytes:
    return b'{"revision":%d,"pad":"%0500d"}' % (revision, revision)


def rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM log").fetchone()
    connection.close()
    return int(count)


async def update(store: Store, times: int) -> None:
    """Update ten objects many times, with more writes waiting than a commit can take."""
    keys = [Key("pods", "default", str(n)) for n in range(10)]
    for begin in range(0, times, 2_000):
        numbers = range(begin, min(begin + 2_000, times))
        await asyncio.gather(*(store.write([Put(keys[n % 10], encode)]) for n in numbers))


def test_the_file_does_not_grow_with_the_number_of_writes(tmp_path):
    """Under constant load as well, it holds little more than the objects and the retained history."""
    path = tmp_path / "store.db"
    times = 60_000
    written = times * len(encode(1))
    with Store.open(path, retention=Retention(changes=100)) as store:
        asyncio.run(update(store, times))
        while_open = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert rows(path) == 10 + 100
    # The write-ahead log and the changes that wait to be forgotten come to less than 10 MB, whatever was written.
    assert while_open < written / 2
    assert path.stat().st_size < written / 8


def test_history_that_was_compacted_stays_gone_after_reopening(tmp_path):
    """And what is left of it can be watched."""
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        asyncio.run(update(store, 100))
        store.compact(60)
        wanted = store.list_at("pods", None, 70)
    assert rows(path) == 10 + 40
    with Store.open(path) as store:
        assert (store.oldest, store.revision) == (60, 100)
        assert store.list_at("pods", None, 70) == wanted
        assert [e.revision for e in store.watch("pods", since=60).pending()] == list(range(61, 101))
        with pytest.raises(TooOldError):
            store.watch("pods", since=59)


def test_no_revision_is_given_out_twice(tmp_path):
    """Not even when the last change was a deletion of which nothing is left."""
    path = tmp_path / "store.db"

    async def scenario(store: Store) -> None:
        await store.write([Put(A, encode)])
        await store.write([Delete(A, encode)])
        store.compact(2)

    with Store.open(path) as store:
        asyncio.run(scenario(store))
    assert rows(path) == 0
    with Store.open(path) as store:
        assert (store.revision, store.oldest) == (2, 2)
        (stored,) = asyncio.run(store.write([Put(A, encode)]))
        assert stored.revision == 3


def test_a_store_that_was_emptied_gives_its_space_back(tmp_path):
    """Once the history of large objects is gone, the file is small again without a restart."""
    path = tmp_path / "store.db"

    async def scenario(store: Store) -> None:
        keys = [Key("secrets", "default", str(n)) for n in range(1_000)]
        for key in keys:
            await store.write([Put(key, lambda revision: b"%020000d" % revision)])
        await store.write([Delete(key, encode) for key in keys])
        store.compact(store.revision)

    with Store.open(path) as store:
        asyncio.run(scenario(store))
    assert path.stat().st_size < 20_000_000 / 2


def test_a_smaller_retention_takes_effect_when_a_store_is_opened(tmp_path):
    """History beyond the bounds goes from memory at once and from disk soon."""
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        asyncio.run(update(store, 1_000))
    assert rows(path) == 1_000
    with Store.open(path, retention=Retention(changes=20)) as store:
        assert store.oldest == 980
    assert rows(path) == 10 + 20
