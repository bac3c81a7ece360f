"""`kill -9` at any moment loses nothing that was acknowledged and leaves nothing half done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

from drayman.cluster.embedded import Key, Store

WRITER = Path(__file__).with_name("crash_writer.py")
ROUNDS = 500 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 10
MOST_ACKNOWLEDGED = 400
"""A process is killed after at most so many acknowledgements."""

Acknowledged = dict[int, int]


def crash(path: Path, seed: int, rng: Random) -> list[tuple[int, int, int]]:
    """Let a process write, kill it without warning, and return what it acknowledged: writer, number, number removed."""
    child = subprocess.Popen(
        [sys.executable, str(WRITER), str(path), str(seed)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(rng.randrange(1, MOST_ACKNOWLEDGED))]
        child.kill()
        lines += child.stdout.readlines()
    assert child.returncode == -9
    return [tuple(map(int, line.split())) for line in lines if line.endswith(b"\n")]


def check(store: Store, acknowledged: Acknowledged, removed: set[tuple[int, int]]) -> None:
    """Everything acknowledged is there; at most one write per writer beyond it, and that one whole."""
    lefts = {stored.key.name: stored.value["number"] for stored in store.list("lefts")}
    rights = {stored.key.name: stored.value["number"] for stored in store.list("rights")}
    assert lefts == rights
    for writer, number in acknowledged.items():
        counter = store.get(Key("counters", "crash", str(writer)))
        assert counter is not None
        reached = counter.value["number"]
        assert reached in {number, number + 1}
        present = {n for name, n in lefts.items() if name.startswith(f"{writer}-")}
        gone = set(range(1, reached + 1)) - present
        known_gone = {n for w, n in removed if w == writer}
        assert known_gone <= gone
        # A write that was not acknowledged may have removed one pair more.
        assert len(gone - known_gone) <= reached - number
        assert present <= set(range(1, reached + 1))


def check_history(store: Store) -> None:
    """History ends in the present: undoing it and doing it again gives the objects, each naming its own revision."""
    revisions = []
    for resource in ("counters", "lefts", "rights"):
        state = {stored.key: stored for stored in store.list_at(resource, None, store.oldest)}
        for event in store.watch(resource, since=store.oldest).pending():
            assert state.get(event.key) == event.previous
            assert event.stored.value["resourceVersion"] == str(event.revision)
            revisions.append(event.revision)
            state[event.key] = event.stored
            if event.type == "DELETED":
                del state[event.key]
        assert tuple(state[key] for key in sorted(state)) == store.list(resource)
    assert sorted(revisions) == list(range(store.oldest + 1, store.revision + 1))


def test_kill_minus_nine(tmp_path):
    """One store goes through crash after crash, with compaction under way."""
    path = tmp_path / "store.db"
    rng = Random(9)
    acknowledged: Acknowledged = {}
    removed: set[tuple[int, int]] = set()
    for seed in range(ROUNDS):
        for writer, number, victim in crash(path, seed, rng):
            assert number > acknowledged.get(writer, 0)
            acknowledged[writer] = number
            if victim:
                removed.add((writer, victim))
        with Store.open(path) as store:
            check(store, acknowledged, removed)
            check_history(store)
            for writer in acknowledged:
                recover_ledger(store, writer, acknowledged, removed)
    assert len(acknowledged) == 8


def recover_ledger(
    store: Store, writer: int, acknowledged: Acknowledged, removed: set[tuple[int, int]]
) -> None:
    """Take a write that came through without being acknowledged as done: the next round builds on it."""
    counter = store.get(Key("counters", "crash", str(writer)))
    assert counter is not None
    acknowledged[writer] = counter.value["number"]
    present = {
        stored.value["number"]
        for stored in store.list("lefts")
        if stored.key.name.startswith(f"{writer}-")
    }
    removed.update((writer, n) for n in range(1, acknowledged[writer] + 1) if n not in present)
