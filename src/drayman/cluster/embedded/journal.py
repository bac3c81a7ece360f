"""The store on disk: a SQLite file to which changes are appended and from which dead forms are removed.

SQLite in WAL mode with `synchronous=FULL` gives what durability needs: an append is on disk when its commit returns, and after a crash the
file holds whole transactions only. One table in the order of revisions makes an append sequential and recovery one scan; an additional
table of current objects would double the writes and make reading no faster.

The rows of a commit go in with one statement. The interpreter's lock is released around every call into SQLite and may take milliseconds to
get back while the event loop is busy, so a commit must make few calls.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from drayman.cluster.embedded.errors import StoreError
from drayman.cluster.embedded.locking import StoreLock
from drayman.cluster.embedded.model import Key
from drayman.cluster.embedded.schema import migrate

ROWS_PER_STATEMENT = 128
_PARAMETERS = "(?,?,?,?,?,?,?,?)"
_CHECKPOINT_PAGES = 1_000
"""Pages in the write-ahead log before they go to the file: 4 MiB. The commit that triggers it waits for it, some milliseconds."""
_SHRINK_PAGES = 2_000
"""Free pages given back to the file system at one time, and the least that are worth it."""


# SQLite quotes from damaged files in its messages, and Python cannot always decode those.
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)


class Row(NamedTuple):
    """One form of one object, as stored on disk."""

    revision: int
    key: Key
    deleted: bool
    time: float
    data: bytes


class Journal:
    """An open store file. Used by one thread at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: StoreLock) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Open or make a store file, and lock it. Raises StoreError."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = StoreLock(path)
        except OSError as error:
            raise StoreError(f"cannot open {path}: {_reason(error)}") from error
        try:
            return cls(path, _connect(path), lock)
        except BaseException:
            lock.release()
            raise

    def check(self) -> None:
        """Look for damage to the file's structure that could make rows vanish. Raises StoreError."""
        try:
            (verdict,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        except _UNREADABLE as error:
            raise _unreadable(self.path, error) from error
        if verdict != "ok":
            raise damaged(self.path, _one_line(verdict))

    def oldest(self) -> int:
        """The revision up to which history is gone. Raises StoreError."""
        try:
            row = self._connection.execute("SELECT oldest, checksum FROM compaction").fetchone()
        except _UNREADABLE as error:
            raise _unreadable(self.path, error) from error
        if row is None:
            return 0
        oldest, checksum = row
        if checksum != _checksum(oldest):
            raise damaged(self.path, "where its history begins is not what was written")
        return int(oldest)

    def rows(self) -> Iterator[Row]:
        """Every form on disk, in the order of revisions. Raises StoreError if one is damaged."""
        query = (
            "SELECT revision, resource, namespace, name, deleted, committed, checksum, data"
            " FROM log ORDER BY revision"
        )
        try:
            for (
                revision,
                resource,
                namespace,
                name,
                deleted,
                time,
                checksum,
                data,
            ) in self._connection.execute(query):
                row = Row(revision, Key(resource, namespace, name), bool(deleted), time, data)
                if not isinstance(data, bytes) or checksum != _row_checksum(row):
                    raise damaged(self.path, f"revision {revision} is not what was written")
                yield row
        except _UNREADABLE as error:
            raise _unreadable(self.path, error) from error

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows and wait until they are on disk; all or none. Raises sqlite3.Error."""
        if len(rows) <= ROWS_PER_STATEMENT:
            self._connection.execute(_insert(len(rows)), _parameters(rows))
            return
        with _Transaction(self._connection):
            for begin in range(0, len(rows), ROWS_PER_STATEMENT):
                some = rows[begin : begin + ROWS_PER_STATEMENT]
                self._connection.execute(_insert(len(some)), _parameters(some))

    def remove(self, revisions: Sequence[int], oldest: int) -> None:
        """Remove forms that can no longer be requested; history now begins after `oldest`. Raises sqlite3.Error."""
        marks = ",".join("?" * len(revisions))
        with _Transaction(self._connection):
            self._connection.execute("DELETE FROM compaction")
            self._connection.execute(
                "INSERT INTO compaction VALUES (?, ?)", (oldest, _checksum(oldest))
            )
            self._connection.execute(f"DELETE FROM log WHERE revision IN ({marks})", revisions)

    def shrink(self) -> bool:
        """Give some free pages back to the file system if more than half are free; returns whether any were. Raises sqlite3.Error."""
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        if free < _SHRINK_PAGES or free * 2 < pages:
            return False
        # It gives back one page per step, and `execute` runs only one step of a statement without result columns.
        self._connection.executescript(f"PRAGMA incremental_vacuum({_SHRINK_PAGES})")
        return True

    def close(self) -> None:
        """Release the file; the write-ahead log is merged into it."""
        try:
            self._connection.close()
        finally:
            self._lock.release()


def damaged(path: Path, detail: str) -> StoreError:
    """The error for a file that cannot be trusted."""
    return StoreError(
        f"{path} is damaged ({detail}): restore it from a copy, or move it away to start empty"
    )


class _Transaction:
    """BEGIN on entry; COMMIT on exit, or ROLLBACK if there was an error."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            # After some errors SQLite has already rolled back by itself.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def _connect(path: Path) -> sqlite3.Connection:
    try:
        _make_private(path)
        # The thread that opens it is not the one that writes; they never use it at the same time.
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, cached_statements=256
        )
    except OSError as error:
        raise StoreError(f"cannot open {path}: {_reason(error)}") from error
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error
    try:
        migrate(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute("PRAGMA journal_size_limit = 0")
    except _UNREADABLE as error:
        connection.close()
        raise _unreadable(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _make_private(path: Path) -> None:
    """Make the file if there is none, readable by its owner only: it holds Secrets. SQLite's own files inherit its mode."""
    if path.exists():
        os.close(
            os.open(path, os.O_RDWR | os.O_CLOEXEC)
        )  # a clear error if it is not a file or not writable
        return
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)  # or a power cut could lose the file with all its content
    finally:
        os.close(folder)


def _unreadable(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
    if isinstance(error, UnicodeDecodeError):
        return damaged(path, "its texts are not texts")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the kind of error
    if code == sqlite3.SQLITE_NOTADB:
        return StoreError(
            f"{path} is not a Drayman store: it is some other file, or was overwritten"
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return damaged(path, _one_line(str(error)))
    return StoreError(f"cannot use {path}: {_one_line(str(error))}")


def _one_line(message: str) -> str:
    """A message that may quote from a damaged file, made printable."""
    return "".join(c if c.isprintable() else " " for c in message)


def _reason(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{reason} ({error.filename})" if error.filename else reason


@lru_cache(maxsize=ROWS_PER_STATEMENT)
def _insert(rows: int) -> str:
    return "INSERT INTO log VALUES " + ",".join([_PARAMETERS] * rows)


def _parameters(rows: Sequence[Row]) -> tuple[object, ...]:
    return tuple(
        chain.from_iterable(
            (
                row.revision,
                *row.key,
                row.deleted,
                row.time,
                _row_checksum(row),
                row.data,
            )
            for row in rows
        )
    )


def _row_checksum(row: Row) -> int:
    return zlib.crc32(row.data, _checksum(row.revision, *row.key, row.deleted, row.time))


def _checksum(*values: object) -> int:
    return zlib.crc32("\0".join(map(str, values)).encode())
