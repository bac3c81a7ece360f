"""A client that writes all the time and remembers, to the letter, what the server has promised it.

It has objects of its own and one request under way at a time. After every fault all of them are compared with what the server shows: each
as it was acknowledged, none too many, and only the object of the request without an answer may be as it was or as it was to become.
"""

from __future__ import annotations

import http.client
import random
import threading
from contextlib import AbstractContextManager, closing
from typing import Final

from apiserver.e2e.writing import Connection
from faults.cluster import Cluster, unclean
from faults.snapshot import Object
from faults.threads import meanwhile

_PATH: Final = "/api/v1/namespaces/default/configmaps"
_LABEL: Final = "promised"
_MOST: Final = 12
_LONGEST: Final = 20_000
_PAUSE_S: Final = 0.02
_GONE: Final = (OSError, http.client.HTTPException)
Promised = dict[str, Object]
"""Objects by name."""


class Doubt:
    """A request without a good answer: what it would have made of an object, None for nothing."""

    def __init__(self, name: str, outcome: Object | None) -> None:
        self.name = name
        self.outcome = outcome


def broken(promised: Promised, found: Promised, doubt: Doubt | None) -> list[str]:
    """What is not as it was acknowledged."""
    wrong = []
    for name in sorted({*promised, *found}):
        before, now = promised.get(name), found.get(name)
        if _is_same(before, now):
            continue
        if doubt is not None and doubt.name == name and _is_outcome(doubt.outcome, before, now):
            continue
        wrong.append(f"config map {name} was acknowledged as {_told(before)} and is {_told(now)}")
    return wrong


def _is_same(before: Object | None, now: Object | None) -> bool:
    if before is None or now is None:
        return before is now
    same = ("uid", "resourceVersion")
    return before["data"] == now["data"] and all(
        before["metadata"][key] == now["metadata"][key] for key in same
    )


def _is_outcome(wanted: Object | None, before: Object | None, now: Object | None) -> bool:
    """Whether an object is what the request would have made of it."""
    if wanted is None or now is None:
        return wanted is now
    if before is not None and before["metadata"]["uid"] != now["metadata"]["uid"]:
        return False
    return bool(wanted["data"] == now["data"])


def _told(item: Object | None) -> str:
    if item is None:
        return "absent"
    text = item["data"]["first"][:20]
    return f"{item['metadata']['uid']} at {item['metadata']['resourceVersion']} with {text}"


class Promises:
    """The writer, in a thread of its own."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self._ends = threading.Event()
        self._turn = threading.Lock()
        self._promised: Promised = {}
        self._doubt: Doubt | None = None
        self._made = 0
        self.acknowledged = 0
        self.refused = 0
        self.checks = 0
        self.wrong: list[str] = []

    def being_made(self) -> AbstractContextManager[None]:
        return meanwhile(self._run, self._ends)

    def broken(self, connection: Connection) -> list[str]:
        """What was found wrong up to now."""
        with self._turn:
            self._compare(connection)
        return self.wrong

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                with closing(self._cluster.connect()) as connection:
                    self._write_until_it_is_gone(connection)
            except _GONE:
                self._ends.wait(0.1)

    def _write_until_it_is_gone(self, connection: Connection) -> None:
        with self._turn:
            self._compare(connection)
        while not self._ends.wait(_PAUSE_S) and not self.wrong:
            with self._turn:
                if self._doubt is not None:
                    self._compare(connection)
                self._write(connection)

    def _compare(self, connection: Connection) -> None:
        """Compare, and go on from what is there."""
        status, page = connection.request("GET", f"{_PATH}?labelSelector={_LABEL}")
        if status != 200:
            self.wrong.append(f"config maps cannot be read: {status} {page}")
            return
        found = {item["metadata"]["name"]: item for item in page["items"]}
        self.wrong += broken(self._promised, found, self._doubt)
        self._promised, self._doubt = found, None
        self.checks += 1

    def _write(self, connection: Connection) -> None:
        names = sorted(self._promised)
        choice = self._rng.random()
        if not names or (choice < 0.4 and len(names) < _MOST):
            self._made += 1
            name = f"{_LABEL}-{self._made}"
            meta = {"name": name, "labels": {_LABEL: "true"}}
            self._send(
                connection, "POST", _PATH, Doubt(name, {"metadata": meta, "data": self._text()})
            )
        elif choice < 0.8:
            name = self._rng.choice(names)
            changed = {**self._promised[name], "data": self._text()}
            self._send(connection, "PUT", f"{_PATH}/{name}", Doubt(name, changed))
        else:
            name = self._rng.choice(names)
            self._send(connection, "DELETE", f"{_PATH}/{name}", Doubt(name, None))

    def _text(self) -> dict[str, str]:
        """Long enough to be torn, twice: both have to be of the same write."""
        text = str(self._rng.random()) * self._rng.randint(1, _LONGEST // 20)
        return {"first": text, "second": text}

    def _send(self, connection: Connection, method: str, path: str, doubt: Doubt) -> None:
        before = self._cluster.disk.breakdowns
        self._doubt = doubt
        status, answer = connection.request(method, path, doubt.outcome)
        if status >= 300:
            self.refused += 1
            problem = self._cluster.disk.problem_since(before)
            wrong = unclean(status, answer, problem, method)
            self.wrong += [wrong] if wrong else []
            return
        self.acknowledged += 1
        self._doubt = None
        if method == "DELETE":
            del self._promised[doubt.name]
        else:
            self._promised[doubt.name] = answer
