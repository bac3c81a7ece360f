"""Looks at every revision of a cluster that a client could have seen, and writes down what may never be seen.

Pods, claims and what concerns queues are followed by a watch each and brought into one order by their revisions. Where a crash cuts the
watches short, they go on from the last revision that all are sure to have told, so that no revision is left out. Only if the server has
forgotten its history by then, as after a leap of its clock, is everything read again: that is a gap.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from typing import Final

from apiserver.e2e.writing import Connection
from faults.cluster import Cluster
from faults.invariants import Hardware, broken_promises
from faults.queue_watching import QuotaWatch
from faults.snapshot import PATHS, Object, Snapshot, take
from faults.threads import meanwhile
from patience import PATIENCE_S

FOLLOWED: Final = ("pods", "claims", "jobs", "workloads", "cluster_queues", "cohorts")
_PAUSE_S: Final = 0.1
_DELIVERY_S: Final = 0.5
"""How long the event of a deletion may take from the server to here."""
_GONE: Final = (OSError, http.client.HTTPException)


class _Stream:
    """The events of one kind, read by a thread of its own until the server goes away."""

    def __init__(self, connection: Connection, kind: str, version: int) -> None:
        self.events: list[tuple[int, str, Object]] = []
        self.latest = version
        self.is_too_old = False
        """Whether the server has forgotten what happened after that version."""
        self._connection = connection
        self._path = f"{PATHS[kind]}?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        try:
            for event in self._connection.lines(self._path):
                told = event.get("object", event)
                if told.get("kind") == "Status":
                    self.is_too_old = told["code"] == 410
                    return
                version = int(told["metadata"]["resourceVersion"])
                if event["type"] != "BOOKMARK":
                    self.events.append((version, event["type"], told))
                self.latest = version
        except (*_GONE, ValueError):  # a line that was cut short is no JSON
            return
        finally:
            self._connection.close()

    def cut(self) -> None:
        self._connection.cut()
        self.thread.join()

    def until(self, version: int) -> Iterator[tuple[int, str, Object]]:
        """Takes out the events up to a revision."""
        while self.events and self.events[0][0] <= version:
            yield self.events.pop(0)


class Watchman:
    """Follows a cluster through all its crashes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ends = threading.Event()
        self._lock = threading.Lock()
        self._streams: dict[str, _Stream] = {}
        self._objects: dict[str, dict[str, Object]] = {kind: {} for kind in FOLLOWED}
        self._slices: dict[str, Object] = {}
        self._nodes: dict[str, Object] = {}
        self._hardware = Hardware.of(Snapshot())
        self._version = 0
        """Up to which revision all is known; 0 for nothing yet."""
        self.quota = QuotaWatch()
        self.seen: dict[str, None] = {}
        self.deleted: set[str] = set()
        """The uids of what was seen to be deleted."""
        self.revisions = 0
        self.gaps = 0

    def on_duty(self) -> AbstractContextManager[None]:
        return meanwhile(self._watch, self._ends)

    def seen_until(self, now: Snapshot) -> list[str]:
        """What was seen up to a moment at which the cluster is at rest."""
        newest = {
            kind: max(
                (int(item["metadata"]["resourceVersion"]) for item in getattr(now, kind)), default=0
            )
            for kind in FOLLOWED
        }
        deadline = time.monotonic() + PATIENCE_S
        while not self._has_heard(newest):
            if time.monotonic() > deadline:
                return [f"the watches do not get to {newest}"]
            time.sleep(_PAUSE_S)
        time.sleep(_DELIVERY_S)
        with self._lock:
            self._judge_until(now.version)
        return list(self.seen)

    def cut(self) -> None:
        """End the watches, as a crash does. They begin again by themselves."""
        for stream in tuple(self._streams.values()):
            stream.cut()

    def _has_heard(self, newest: dict[str, int]) -> bool:
        with self._lock:
            return all(
                kind in self._streams
                and self._streams[kind].thread.is_alive()
                and max(self._streams[kind].latest, self._version) >= version
                for kind, version in newest.items()
            )

    def _watch(self) -> None:
        while not self._ends.is_set():
            try:
                with closing(self._cluster.connect()) as connection:
                    self._begin(connection)
            except _GONE:
                self._ends.wait(_PAUSE_S)
                continue
            while not self._ends.wait(_PAUSE_S):
                if not all(stream.thread.is_alive() for stream in self._streams.values()):
                    break
            with self._lock:
                self._judge_until(min(stream.latest for stream in self._streams.values()))
                if any(stream.is_too_old for stream in self._streams.values()):
                    self.gaps += 1
                    self._version = 0

    def _begin(self, connection: Connection) -> None:
        """Read how things are, or go on where the watches ended."""
        now = take(connection, (*FOLLOWED, "nodes", "slices"))
        with self._lock:
            # What hardware offers does not change, and what a node had that was deleted is still held by claims.
            self._slices.update((item["metadata"]["name"], item) for item in now.slices)
            self._nodes.update((item["metadata"]["name"], item) for item in now.nodes)
            known = tuple(self._nodes.values()), tuple(self._slices.values())
            self._hardware = Hardware.of(Snapshot(nodes=known[0], slices=known[1]))
            if now.version < self._version:
                self.seen[f"revision {self._version} was seen, and now there is {now.version}"] = (
                    None
                )
            if not self._version:
                for kind in FOLLOWED:
                    found = getattr(now, kind)
                    self._objects[kind] = {item["metadata"]["uid"]: item for item in found}
                self._version = now.version
                self.quota.start_over(now.workloads, now.cluster_queues, now.cohorts)
                self._judge(now.version)
            for kind in FOLLOWED:
                self._streams[kind] = _Stream(self._cluster.connect(), kind, self._version)

    def _judge_until(self, version: int) -> None:
        events = [
            (*event, kind)
            for kind, stream in self._streams.items()
            for event in stream.until(version)
        ]
        for revision, type_, item, kind in sorted(events, key=lambda event: event[0]):
            if type_ == "DELETED":
                self._objects[kind].pop(item["metadata"]["uid"], None)
                self.deleted.add(item["metadata"]["uid"])
            else:
                self._objects[kind][item["metadata"]["uid"]] = item
            self._judge(revision)
        self._version = max(self._version, version)

    def _judge(self, revision: int) -> None:
        now = Snapshot(**{kind: tuple(self._objects[kind].values()) for kind in FOLLOWED})
        found = broken_promises(now, self._hardware)
        found += self.quota.judge(revision, now.workloads, now.cluster_queues, now.cohorts)
        self.seen.update(dict.fromkeys(f"revision {revision}: {each}" for each in found))
        self.revisions += 1
