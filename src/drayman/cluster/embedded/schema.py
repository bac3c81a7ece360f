"""The tables of a store file, and how files of earlier versions become files of this one.

A file carries two numbers in its header: whose it is (`application_id`) and the version of its tables (`user_version`). Version n is
what the first n steps below make of an empty file. Steps are never edited once released; a change is one more step. All steps that a
file needs run in one transaction, so a crash leaves the old version or the new one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from drayman.cluster.embedded.errors import StoreError

APPLICATION_ID = 0x44524159  # "DRAY"

# A step is the statements that lead from one version to the next.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        # Every form of every object that can still be requested: the present ones, and those that history needs. Deletions are forms too.
        # The checksum is over all of a row: what was damaged on disk must not be taken for an object.
        """
        CREATE TABLE log (
            revision INTEGER PRIMARY KEY,
            resource TEXT NOT NULL,
            namespace TEXT NOT NULL,
            name TEXT NOT NULL,
            deleted INTEGER NOT NULL,
            committed REAL NOT NULL,
            checksum INTEGER NOT NULL,
            data BLOB NOT NULL
        ) STRICT
        """,
        # At most one row: the revision up to which history is gone. It also keeps a revision from being assigned twice when the last
        # change was a deletion that has since been forgotten.
        "CREATE TABLE compaction (oldest INTEGER NOT NULL, checksum INTEGER NOT NULL) STRICT",
    ),
)


def migrate(
    connection: sqlite3.Connection, path: Path, steps: Sequence[Sequence[str]] = STEPS
) -> None:
    """Bring an open file to the version of `steps`. Raises StoreError if it is not a store or is newer."""
    version = _version_of(connection, path)
    if version > len(steps):
        raise StoreError(
            f"{path} was written by a newer Drayman (format {version}, this one knows up to {len(steps)}): use that version"
        )
    if version == 0:
        # Only takes effect while a file is empty, and outside a transaction.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    if version < len(steps):
        _run(connection, steps[version:], len(steps))


def _version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The version of a file; 0 for one that is still empty."""
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if owner == APPLICATION_ID:
        return int(version)
    if tables or version or owner:
        raise StoreError(f"{path} is a database of another program, not a Drayman store")
    return 0


def _run(connection: sqlite3.Connection, steps: Sequence[Sequence[str]], version: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in (statement for step in steps for statement in step):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
