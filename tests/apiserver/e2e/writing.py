"""A client that writes without pause and remembers what the server has promised it.

Each writer has objects of its own and one request under way at a time, so that after a crash there is exactly one question it cannot
answer by itself: whether that last request was done.
"""

from __future__ import annotations

import base64
import http.client
import json
import random
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from patience import PATIENCE_S

Object = dict[str, Any]
LONGEST_TEXT = 20_000
MOST_OBJECTS = 12


class Connection:
    """One connection to a server, by the word of its kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_bytes())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        address = urlsplit(cluster["server"])
        context = ssl.create_default_context(cadata=authority)
        self._http = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=context, timeout=PATIENCE_S
        )
        self._headers = {
            "Authorization": f"Bearer {config['users'][0]['user']['token']}",
            "Content-Type": "application/json",
        }

    def request(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        """Status and body of the answer. Raises OSError or HTTPException when the server goes away."""
        status, answer = self.ask(method, path, body)
        return status, json.loads(answer)

    def ask(self, method: str, path: str, body: Object | None = None) -> tuple[int, bytes]:
        """The same for an answer that need not be JSON."""
        data = None if body is None else json.dumps(body)
        self._http.request(method, path, data, self._headers)
        answer = self._http.getresponse()
        return answer.status, answer.read()

    def lines(self, path: str) -> Iterator[Object]:
        """What a stream tells, line by line, until it ends. Raises as `request` does."""
        self._http.request("GET", path, headers=self._headers)
        answer = self._http.getresponse()
        while line := answer.readline():
            yield json.loads(line)

    def close(self) -> None:
        self._http.close()

    def cut(self) -> None:
        """End the connection while another thread reads from it."""
        if self._http.sock is not None:
            self._http.sock.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class Unknown:
    """A request without an answer: what it would have made of an object, None for nothing."""

    name: str
    outcome: Object | None


@dataclass(slots=True)
class Writer:
    """Creates, replaces and deletes objects of one kind, whose names begin with its own."""

    name: str
    plural: str
    random: random.Random
    promised: dict[str, Object] = field(default_factory=dict)
    unknown: Unknown | None = None
    newest: int = 0
    writes: int = 0
    _made: int = 0

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/default/{self.plural}"

    def run(self, connection: Connection, acknowledged: Callable[[], None]) -> None:
        """Write until the server goes away."""
        try:
            while True:
                self._write(connection)
                self.writes += 1
                acknowledged()
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()

    def _write(self, connection: Connection) -> None:
        names = sorted(self.promised)
        choice = self.random.random()
        if not names or (choice < 0.5 and len(names) < MOST_OBJECTS):
            self._made += 1
            self._create(connection, f"{self.name}-{self._made}")
        elif choice < 0.8:
            self._replace(connection, self.random.choice(names))
        else:
            self._delete(connection, self.random.choice(names))

    def _create(self, connection: Connection, name: str) -> None:
        body = self._filled({"metadata": {"name": name}})
        if self.plural == "pods":
            body["spec"] = {"containers": [{"name": "main", "image": "app"}]}
        self._send(connection, "POST", self.path, name, body)

    def _replace(self, connection: Connection, name: str) -> None:
        before = self.promised[name]
        metadata = {**before["metadata"]}
        body = self._filled({**before, "metadata": metadata})
        self._send(connection, "PUT", f"{self.path}/{name}", name, body)

    def _delete(self, connection: Connection, name: str) -> None:
        self.unknown = Unknown(name, None)
        status, answer = connection.request("DELETE", f"{self.path}/{name}")
        assert status == 200, answer
        del self.promised[name]
        self.unknown = None

    def _filled(self, body: Object) -> Object:
        """With a text that is long enough to be torn, twice: both have to be of the same write."""
        text = str(self.random.random()) * self.random.randint(1, LONGEST_TEXT // 20)
        body["metadata"]["annotations"] = {"first": text, "second": text}
        return body

    def _send(
        self, connection: Connection, method: str, path: str, name: str, body: Object
    ) -> None:
        self.unknown = Unknown(name, body)
        status, answer = connection.request(method, path, body)
        assert status in (200, 201), answer
        self.promised[name] = answer
        self.newest = max(self.newest, int(answer["metadata"]["resourceVersion"]))
        self.unknown = None


def write_together(
    writers: list[Writer], kubeconfig: Path, acknowledged: Callable[[], None]
) -> None:
    """Let all writers write at once, until the server goes away."""
    threads = [
        threading.Thread(target=writer.run, args=(Connection(kubeconfig), acknowledged))
        for writer in writers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
