"""Opening a store file: who may, what is refused and in which words, and what it leaves on disk."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from drayman.cluster.embedded import Key, Put, Retention, Store, StoreError
from drayman.cluster.embedded.schema import STEPS, migrate

_HOLDER = "import sys; from drayman.cluster.embedded import Store; s = Store.open(sys.argv[1]); print('open', flush=True); input()"


def fill(store: Store, count: int = 200) -> None:
    """Some objects with some history."""

    async def scenario() -> None:
        for n in range(count):
            key = Key("pods", "default", f"pod-{n % (count // 2)}")
            await store.write(
                [
                    Put(
                        key,
                        lambda revision: b'{"revision":%d,"pad":"%0300d"}' % (revision, revision),
                    )
                ]
            )

    asyncio.run(scenario())


def test_a_second_process_is_told_who_has_the_store(tmp_path):
    """The lock goes with the process that holds it, however that ends."""
    path = tmp_path / "store.db"
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(StoreError) as caught:
            Store.open(path)
        assert str(caught.value) == f"{path} is in use by process {holder.pid}"
        holder.send_signal(signal.SIGKILL)
    Store.open(path).close()


def test_one_process_cannot_open_a_store_twice_at_a_time(tmp_path):
    """After it is closed, it can be opened again."""
    path = tmp_path / "store.db"
    with Store.open(path), pytest.raises(StoreError, match=f"in use by process {os.getpid()}"):
        Store.open(path)
    Store.open(path).close()


def foreign_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()


def newer_store(path: Path) -> None:
    Store.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    connection.close()


def truncated_store(path: Path) -> None:
    with Store.open(path) as store:
        fill(store)
    os.truncate(path, path.stat().st_size // 2)


def row_changed_by_hand(path: Path) -> None:
    with Store.open(path) as store:
        fill(store)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE log SET name = 'other' WHERE revision = 150")
    connection.close()


def inside_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("")


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda p: p.write_bytes(b"not a database" * 100), "not a Drayman store: it is some other file"),
        (foreign_database, "is a database of another program, not a Drayman store"),
        (newer_store, f"was written by a newer Drayman (format {len(STEPS) + 1}, this one knows up to {len(STEPS)})"),
        (truncated_store, "is damaged ("),
        (row_changed_by_hand, "is damaged (revision 150 is not what was written)"),
        (lambda p: p.mkdir(), "cannot open {path}: Is a directory"),
        (inside_a_file, "cannot open {path}: File exists"),
    ],
    ids=["other-file", "other-database", "newer", "truncated", "changed", "folder", "inside-a-file"],
)  # fmt: skip
def test_what_cannot_be_opened_is_refused_in_one_sentence(tmp_path, make, wanted):
    """The sentence names the file; trying again gives the same, so no lock stays behind."""
    path = tmp_path / "data" / "store.db"
    path.parent.mkdir()
    make(path)
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            Store.open(path)
        message = str(caught.value)
        assert wanted.format(path=path) in message
        assert str(path) in message
        assert "\n" not in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("target", ["folder", "file"])
def test_what_is_not_writable_is_refused(tmp_path, target):
    """A store that could not be written is not opened at all."""
    path = tmp_path / "data" / "store.db"
    Store.open(path).close()
    (path if target == "file" else path.with_name("store.db.lock")).chmod(0o400)
    with pytest.raises(StoreError, match="Permission denied"):
        Store.open(path)


def test_an_empty_file_becomes_a_store(tmp_path):
    """As after a crash at the very first moment."""
    path = tmp_path / "store.db"
    path.touch()
    with Store.open(path) as store:
        fill(store)
    with Store.open(path) as store:
        assert store.revision == 200


def test_files_are_private(tmp_path):
    """They hold Secrets: their owner alone can read them, and the folder that was made for them."""
    path = tmp_path / "new" / "folder" / "store.db"
    with Store.open(path) as store:
        fill(store, 2)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    names = ["store.db", "store.db-shm", "store.db-wal", "store.db.lock"]
    assert modes == dict.fromkeys(names, 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_commits_wait_for_the_disk(tmp_path):
    """The file is in WAL mode; a closed store leaves no log beside it."""
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        fill(store, 2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["store.db", "store.db.lock"]
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_migration_keeps_what_is_there(tmp_path):
    """A file of the present version goes through a later step with its objects, once."""
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        fill(store)
    later = (*STEPS, ("CREATE TABLE later (made TEXT) STRICT", "INSERT INTO later VALUES ('once')"))
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, path, later)
    migrate(connection, path, later)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(later),)
    assert connection.execute("SELECT made FROM later").fetchall() == [("once",)]
    assert connection.execute("SELECT count(*) FROM log").fetchone() == (200,)
    connection.close()


def test_a_migration_that_fails_changes_nothing(tmp_path):
    """All steps are one transaction."""
    path = tmp_path / "store.db"
    Store.open(path).close()
    broken = (*STEPS, ("CREATE TABLE later (made TEXT) STRICT", "INSERT INTO missing VALUES (1)"))
    connection = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="missing"):
        migrate(connection, path, broken)
    connection.close()
    with Store.open(path) as store:
        assert store.revision == 0


def test_damage_is_found_or_harmless(tmp_path):
    """Whatever bytes of the file are overwritten, it opens with the same content, or is refused in one sentence."""
    path = tmp_path / "store.db"
    with Store.open(path, retention=Retention(changes=50)) as store:
        fill(store)
        wanted = content(store)
    intact = path.read_bytes()
    rng = Random(36)
    refusals = []
    for _ in range(300):
        path.write_bytes(overwritten(intact, rng))
        try:
            with Store.open(path, retention=Retention(changes=50)) as store:
                assert content(store) == wanted
        except StoreError as error:
            refusals.append(str(error))
    assert len(refusals) > 150
    assert all(re.fullmatch(rf"[^\n]*{re.escape(str(path))}[^\n]*", r) for r in refusals)


def content(store: Store) -> object:
    return store.list("pods"), store.watch("pods", since=store.oldest).pending(), store.revision


def overwritten(intact: bytes, rng: Random) -> bytes:
    """Random bytes at a random place, or at the beginning of a page, where its structure is."""
    damaged = bytearray(intact)
    begin = rng.choice([rng.randrange(len(intact)), 4096 * rng.randrange(len(intact) // 4096)])
    end = min(begin + rng.choice([1, 8, 100, 5000]), len(intact))
    damaged[begin:end] = rng.randbytes(end - begin)
    return bytes(damaged)
