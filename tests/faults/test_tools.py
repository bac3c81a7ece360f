"""The tools of the fault rounds: what they break is broken, what they must leave alone is untouched, what they look for they find."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from faults.cluster import unclean
from faults.machine import Disk, Pretence, compiled
from faults.promises import Doubt, broken
from faults.snapshot import Object
from faults.tail import Log, damage

WRITE: Final = """
import os, sys, time
print(int(time.time()))
try:
    os.write(os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY), b"x" * 10_000)
    print("written")
except OSError as error:
    print(error.strerror)
"""


def believed(belief: Pretence, path: Path) -> list[str]:
    words = [sys.executable, "-c", WRITE, str(path)]
    done = subprocess.run(
        words, env={**belief.environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_processes_believe_what_they_are_made_to(tmp_path: Path) -> None:
    """The time of day, and whether their disk can be written, until they are made to believe otherwise."""
    library = compiled(tmp_path)
    disk = Disk(tmp_path / "data", library)
    try:
        belief = Pretence(tmp_path / "belief", library, disk.folder)
        now, outcome, _ = believed(belief, disk.folder / "a")
        assert outcome == "written"
        belief.seconds_ahead, belief.read_only = -86_400, True
        earlier, outcome, _ = believed(belief, disk.folder / "b")
        assert 86_300 < int(now) - int(earlier) <= 86_400
        assert outcome == "Read-only file system"
        belief.read_only = False
        assert believed(belief, disk.folder / "c")[1] == "written"
    finally:
        disk.end()


@pytest.mark.parametrize("seed", range(20))
def test_damage_spares_what_is_committed(tmp_path: Path, seed: int) -> None:
    """Whatever is done to the end of the log, every transaction that was committed is read back."""
    store, copy, audit = tmp_path / "store.db", tmp_path / "copy" / "store.db", tmp_path / "audit"
    copy.parent.mkdir()
    rng = random.Random(seed)
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        count = rng.randint(0, 5)
        for number in range(count):
            connection.execute("INSERT INTO t VALUES (?)", (str(number) * 9_000,))
        # As a crash leaves them: the last connection to be closed would tidy up.
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{store}{suffix}", f"{copy}{suffix}")
    audit.write_text("a line\nanother\n")
    before = Log(Path(f"{copy}-wal").read_bytes()).end
    assert damage(copy, audit, rng)
    assert Log(Path(f"{copy}-wal").read_bytes()).end == before
    with closing(sqlite3.connect(copy)) as connection:
        found = [row[0][0] for row in connection.execute("SELECT x FROM t")]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert found == [str(number) for number in range(count)]


def test_the_last_commit_is_where_it_is(tmp_path: Path) -> None:
    """A log that is cut within its last transaction has one commit less: the end of commits is really looked for."""
    store = tmp_path / "store.db"
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        one = Path(f"{store}-wal").read_bytes()
        connection.execute("INSERT INTO t VALUES (1)")
        two = Path(f"{store}-wal").read_bytes()
    assert (Log(one).end, Log(two).end) == (len(one), len(two))
    assert Log(two[:-1]).end == len(one)
    flipped = two[:-1] + bytes([two[-1] ^ 1])
    assert Log(flipped).end == len(one)
    assert Log(b"").end == Log(bytes(5_000)).end == 0


def config_map(
    uid: str = "uid", version: str = "7", text: str = "text", second: str = ""
) -> Object:
    meta = {"name": "a", "uid": uid, "resourceVersion": version}
    return {"metadata": meta, "data": {"first": text, "second": second or text}}


REQUESTED: Final = {"metadata": {"name": "a"}, "data": {"first": "new", "second": "new"}}
KEPT: Final[dict[str, tuple[Object | None, Object | None, Doubt | None]]] = {
    "as acknowledged": (config_map(), config_map(), None),
    "a creation in doubt that was done": (
        None, config_map(text="new"), Doubt("a", REQUESTED)
    ),
    "a creation in doubt that was not": (None, None, Doubt("a", REQUESTED)),
    "a change in doubt that was done": (
        config_map(), config_map(version="9", text="new"), Doubt("a", REQUESTED)
    ),
    "a deletion in doubt that was done": (config_map(), None, Doubt("a", None)),
    "a deletion in doubt that was not": (config_map(), config_map(), Doubt("a", None)),
}  # fmt: skip
LOST: Final[dict[str, tuple[Object | None, Object | None, Doubt | None]]] = {
    "a creation": (config_map(), None, None),
    "a change": (config_map(), config_map(version="5", text="old"), None),
    "a version": (config_map(), config_map(version="5"), None),
    "a deletion": (None, config_map(), None),
    "the object that was, for another of its name": (config_map(), config_map(uid="other"), None),
    "what was there before a change in doubt": (config_map(), None, Doubt("a", REQUESTED)),
    "a creation, while another is in doubt": (config_map(), None, Doubt("b", None)),
    "half of a change": (
        config_map(), config_map(version="9", text="new", second="text"), Doubt("a", REQUESTED)
    ),
}  # fmt: skip


def wrong_with(before: Object | None, now: Object | None, doubt: Doubt | None) -> list[str]:
    promised, found = ({} if item is None else {"a": item} for item in (before, now))
    return broken(promised, found, doubt)


@pytest.mark.parametrize("name", KEPT)
def test_kept_promises_pass(name: str) -> None:
    """What is as acknowledged, or as a request in doubt leaves it, is right."""
    assert wrong_with(*KEPT[name]) == []


@pytest.mark.parametrize("name", LOST)
def test_lost_writes_are_found(name: str) -> None:
    """An object that is not as it was acknowledged is named."""
    (found,) = wrong_with(*LOST[name])
    assert found.startswith("config map a was acknowledged as")


STATUS: Final[dict[str, Any]] = {
    "kind": "Status",
    "status": "Failure",
    "reason": "InternalError",
    "code": 500,
    "message": "Internal error occurred: cannot write to store.db: database or disk is full",
}


@pytest.mark.parametrize(
    ("answer", "problem", "method", "is_clean"),
    [
        (STATUS, "full", "POST", True),
        (STATUS, "", "POST", False),
        (STATUS, "full", "GET", False),
        ({**STATUS, "kind": "ConfigMap"}, "full", "POST", False),
        ({**STATUS, "message": "unexpected error, see the server's log"}, "full", "POST", False),
        ({}, "full", "POST", False),
    ],
)
def test_refusals_have_to_say_why(
    answer: dict[str, Any], problem: str, method: str, is_clean: bool
) -> None:
    """Only a Status that names the disk explains a refusal, and only while there is something wrong with the disk."""
    assert (unclean(500, answer, problem, method) == "") == is_clean
