"""A cluster in processes of its own, which can be killed at any moment and started again on what they left behind."""

from __future__ import annotations

import http.client
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from apiserver.e2e.driving import DRAYMAN, PATIENCE_S
from apiserver.e2e.writing import Connection
from faults.snapshot import Object

HARDWARE: Final = {
    "example": 2,
    "example-shared": 1,
    "example-binding-conditions": 1,
    "dgx-h100": 1,
    "dgx-h100-mig": 1,
}
"""Nodes by profile: whole devices, devices shared by capacity, devices made ready before binding, NICs, partitions."""
NODES: Final = tuple(
    f"{profile}-{number}" for profile, count in HARDWARE.items() for number in range(count)
)
_POLL_S: Final = 0.05


class Cluster:
    """`drayman up` on a data directory, with its own scheduler or one beside it. The address stays the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self._port = _free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def has_own_scheduler(self) -> bool:
        return self._scheduler is None

    def start(self, *, scheduler_beside: bool) -> None:
        """Start the server, and a scheduler beside it or inside."""
        self._starts += 1
        hardware = ",".join(f"{profile}={count}" for profile, count in HARDWARE.items())
        words = ["up", "--data-dir", str(self._folder / "data"), "--port", str(self._port)]
        words += ["--kubeconfig", str(self.kubeconfig), "--profile", hardware]
        words += ["--pod-max-backoff", "1"]
        if scheduler_beside:
            words.append("--no-scheduler")
        else:
            self.kill_scheduler()  # before the server has one: two that do not elect a leader get in each other's way
        self._server, log = self._spawn("server", words)
        self._wait_for("Kubernetes API", self._server, log)
        if scheduler_beside and self._scheduler is None:
            self.start_scheduler()
        self.supervise()

    def start_scheduler(self) -> None:
        words = ["scheduler", "--kubeconfig", str(self.kubeconfig), "--pod-max-backoff", "1"]
        words += ["--scheduler-name", "default-scheduler", "--no-leader-elect"]
        self._starts += 1
        self._scheduler, _ = self._spawn("scheduler", words)

    def supervise(self) -> None:
        """Start a scheduler again that has ended because it found no server when it was started."""
        if self._scheduler is not None and self._scheduler.poll() is not None:
            self.start_scheduler()

    def kill(self) -> None:
        """End the server without any warning."""
        if self._server is not None:
            _kill(self._server)

    def kill_scheduler(self) -> None:
        """The same for the scheduler that runs beside the server, if one does."""
        if self._scheduler is not None:
            _kill(self._scheduler)
            self._scheduler = None

    def end(self) -> None:
        self.kill_scheduler()
        self.kill()

    def is_up(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def connect(self) -> Connection:
        return Connection(self.kubeconfig)

    def complaints(self) -> list[str]:
        """What the processes said that no fault excuses."""
        return [
            f"{path.name}: {text[text.index('Traceback') :][:2000]}"
            for path in sorted(self._folder.glob("*.log"))
            if "Traceback" in (text := path.read_text())
        ]

    def _spawn(self, name: str, words: list[str]) -> tuple[subprocess.Popen[bytes], Path]:
        log = self._folder / f"{name}-{self._starts}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*DRAYMAN, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        return process, log

    def _wait_for(self, words: str, process: subprocess.Popen[bytes], log: Path) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and process.poll() is None:
            if words in log.read_text():
                return
            time.sleep(_POLL_S)
        _kill(process)
        pytest.fail(f"the server did not start: {log.read_text()}")


class Api:
    """Requests that outlive crashes: one without an answer is made again once the cluster is back."""

    def __init__(self, cluster: Cluster, revive: Callable[[], None]) -> None:
        self._cluster = cluster
        self._revive = revive
        self._connection: Connection | None = None
        self.crashes = 0

    def request(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        """Status and body of the answer."""
        for _ in range(10):
            try:
                if self._connection is None:
                    self._connection = self._cluster.connect()
                return self._connection.request(method, path, body)
            except (OSError, http.client.HTTPException):
                self.crashes += 1
                self.close()
                self._revive()
        pytest.fail(f"{method} {path} gets no answer")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, path: str) -> Object | None:
        status, found = self.request("GET", path)
        assert status in (200, 404), found
        return found if status == 200 else None

    def create(self, path: str, body: Object) -> Object:
        """Create an object. One of that name that is on its way out is waited for; one that stays is ours, from a lost request."""
        deadline = time.monotonic() + PATIENCE_S
        crashes = self.crashes
        while time.monotonic() < deadline:
            status, made = self.request("POST", path, body)
            if status == 201:
                return made
            assert status == 409, made
            known = self.get(f"{path}/{body['metadata']['name']}")
            if known is not None and "deletionTimestamp" not in known["metadata"]:
                assert self.crashes > crashes, f"{path} has had {body['metadata']['name']} before"
                return known
            time.sleep(_POLL_S)
        pytest.fail(f"{path}: {body['metadata']['name']} is deleted and does not go away")

    def delete(self, path: str, *, at_once: bool = False) -> None:
        """Delete an object, if it is there."""
        body: Object = {"propagationPolicy": "Background"}
        if at_once:
            body["gracePeriodSeconds"] = 0
        status, answer = self.request("DELETE", path, body)
        assert status in (200, 202, 404), answer

    def annotate(self, path: str, annotations: dict[str, str | None]) -> None:
        """Change annotations by a merge of what is there, with the object's version as condition."""
        while (found := self.get(path)) is not None:
            kept = {**found["metadata"].get("annotations", {}), **annotations}
            found["metadata"]["annotations"] = {k: v for k, v in kept.items() if v is not None}
            status, answer = self.request("PUT", path, found)
            if status == 200:
                return
            assert status == 409, answer


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port
