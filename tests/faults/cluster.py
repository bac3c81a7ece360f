"""A cluster in processes of its own, which can be killed at any moment and started again on what they left behind."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from apiserver.e2e.driving import DRAYMAN, PATIENCE_S
from apiserver.e2e.writing import Connection
from drayman.testing.ports import kept_port
from faults.charges import CONFIGURATION
from faults.machine import Disk, Pretence, compiled
from faults.snapshot import Object
from faults.units import OTHER_SCHEDULER

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
_END_S: Final = 10.0
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class Cluster:
    """`drayman up` on a data directory, with a second scheduler in a process of its own. The address stays the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        library = compiled(folder)
        self.disk = Disk(folder / "data", library)
        self.audit_log = self.disk.folder / "audit.log"
        self.server_belief = Pretence(folder / "server.pretence", library, self.disk.folder)
        self.scheduler_belief = Pretence(folder / "scheduler.pretence", library, self.disk.folder)
        self.kubeconfig = folder / "kubeconfig"
        self._queue_config = folder / "queues.yaml"
        self._queue_config.write_text(json.dumps(CONFIGURATION))
        self._kept = ExitStack()
        self._port = self._kept.enter_context(kept_port())
        self._server: subprocess.Popen[bytes] | None = None
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._heard: dict[Path, int] = {}
        """How much of each log is known."""

    @property
    def store(self) -> Path:
        return self.disk.folder / "store.db"

    @property
    def server_pid(self) -> int | None:
        return self._server.pid if self._server is not None and self.is_up() else None

    def start(self) -> None:
        """Start the server, and the scheduler beside it if there is none."""
        if not self.try_start(PATIENCE_S):
            pytest.fail(f"the server did not start: {self._server_log.read_text()}")

    def try_start(self, patience_s: float) -> bool:
        """Whether the server serves before it ends, or before patience does. It may still get there then."""
        self._starts += 1
        hardware = ",".join(f"{profile}={count}" for profile, count in HARDWARE.items())
        words = ["up", "--data-dir", str(self.disk.folder), "--port", str(self._port)]
        words += ["--kubeconfig", str(self.kubeconfig), "--profile", hardware]
        words += ["--pod-max-backoff", "1", "--audit-log", str(self.audit_log)]
        words += ["--queue-config", str(self._queue_config)]
        self._server, self._server_log = self._spawn("server", words, self.server_belief)
        if not self.wait_until_serving(patience_s):
            return False
        self.supervise()
        return True

    def wait_until_serving(self, patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline and self.is_up():
            if "Kubernetes API" in self._server_log.read_text():
                return True
            time.sleep(_POLL_S)
        return False

    def last_words(self) -> str:
        """What the server has printed since it was last started."""
        return self._server_log.read_text()

    def start_scheduler(self) -> None:
        """Start it as the only one of its name, so that it need not wait for the lease of one that was killed."""
        self._scheduler = self._spawn_scheduler("--no-leader-elect")

    def _spawn_scheduler(self, election: str) -> subprocess.Popen[bytes]:
        words = ["scheduler", "--kubeconfig", str(self.kubeconfig), "--pod-max-backoff", "1"]
        words += ["--scheduler-name", OTHER_SCHEDULER, election]
        self._starts += 1
        process, _ = self._spawn("scheduler", words, self.scheduler_belief)
        return process

    def supervise(self) -> None:
        """Start the scheduler if it does not run: it ends when it finds no server at its start."""
        if self._scheduler is None or self._scheduler.poll() is not None:
            self.start_scheduler()

    def kill(self) -> None:
        """End the server without any warning."""
        if self._server is not None:
            _kill(self._server)

    def was_killed(self) -> bool:
        """Whether the server is gone, or about to be, because it was killed, and not by itself."""
        if self._server is None:
            return True
        try:
            return self._server.wait(_END_S) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False

    def kill_scheduler(self) -> None:
        """The same for the scheduler that runs beside the server."""
        if self._scheduler is not None:
            _kill(self._scheduler)
            self._scheduler = None

    def freeze(self) -> None:
        """Stop the server in the middle of what it does."""
        if self._server is not None:
            self._server.send_signal(signal.SIGSTOP)

    def freeze_scheduler(self) -> None:
        if self._scheduler is not None:
            self._scheduler.send_signal(signal.SIGSTOP)

    @contextmanager
    def frozen_leader(self) -> Iterator[None]:
        """Two schedulers elect a leader, which is frozen until the other leads. It must not go on when it is thawed."""
        self.kill_scheduler()
        self._scheduler = first = self._spawn_scheduler("--leader-elect")
        self._wait_until_leading(first)
        second = self._spawn_scheduler("--leader-elect")
        try:
            first.send_signal(signal.SIGSTOP)
            self._scheduler = second
            yield
            self._wait_until_leading(second)
            first.send_signal(signal.SIGCONT)
            try:
                assert first.wait(PATIENCE_S) == 1, "a leader that lost its lease ends with success"
            except subprocess.TimeoutExpired:
                pytest.fail("a leader that lost its lease goes on")
        finally:
            _kill(first)

    def _wait_until_leading(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        with closing(self.connect()) as connection:
            while time.monotonic() < deadline:
                status, page = connection.request("GET", _LEASES)
                assert status == 200, page
                holders = [item["spec"].get("holderIdentity") or "" for item in page["items"]]
                if any(f"_{process.pid}_" in holder for holder in holders):
                    return
                time.sleep(_POLL_S)
        pytest.fail("no scheduler leads")

    def thaw(self) -> None:
        """Let everything that was stopped go on."""
        for process in (self._server, self._scheduler):
            if process is not None:
                process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.kill_scheduler()
        self.kill()
        self.disk.end()
        self._kept.close()

    def is_up(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def connect(self) -> Connection:
        return Connection(self.kubeconfig)

    def complaints(self) -> list[str]:
        """What the processes have said since this was last asked and no fault excuses."""
        found = []
        for path in sorted(self._folder.glob("*.log")):
            if path.stat().st_size > self._heard.get(path, 0):
                text = path.read_text()
                new = text[self._heard.get(path, 0) :]
                self._heard[path] = len(text)
                if "Traceback" in new:
                    found.append(f"{path.name}: {new[new.index('Traceback') :][:2000]}")
        return found

    def _spawn(
        self, name: str, words: list[str], belief: Pretence
    ) -> tuple[subprocess.Popen[bytes], Path]:
        log = self._folder / f"{name}-{self._starts}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*DRAYMAN, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **belief.environment},
            )
        return process, log


class Api:
    """Requests that outlive faults: one without an answer, or refused by a disk that is full, is made again once the cluster is mended."""

    def __init__(
        self, cluster: Cluster, revive: Callable[[], None], relieve: Callable[[], None]
    ) -> None:
        self._cluster = cluster
        self._revive = revive
        self._relieve = relieve
        self._connection: Connection | None = None
        self.doubts = 0
        """Requests of which it is not known whether they were done."""
        self.refusals = 0
        self.newest = 0
        """The highest version of an object that an answer has shown."""

    def request(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        """Status and body of the answer."""
        for _ in range(20):
            before = self._cluster.disk.breakdowns
            try:
                if self._connection is None:
                    self._connection = self._cluster.connect()
                status, answer = self._connection.request(method, path, body)
            except (OSError, http.client.HTTPException):
                self.doubts += 1
                self.close()
                self._revive()
                continue
            if status < 500:
                self._remember(status, answer)
                return status, answer
            problem = self._cluster.disk.problem_since(before)
            wrong = unclean(status, answer, problem, method)
            assert not wrong, wrong
            self.doubts += 1
            self.refusals += 1
            self._relieve()
        pytest.fail(f"{method} {path} gets no answer")

    def _remember(self, status: int, answer: Object) -> None:
        version = answer.get("metadata", {}).get("resourceVersion", "")
        if status < 300 and version.isdecimal():
            self.newest = max(self.newest, int(version))

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
        doubts = self.doubts
        while time.monotonic() < deadline:
            status, made = self.request("POST", path, body)
            if status == 201:
                return made
            assert status == 409, made
            known = self.get(f"{path}/{body['metadata']['name']}")
            if known is not None and "deletionTimestamp" not in known["metadata"]:
                assert self.doubts > doubts, f"{path} has had {body['metadata']['name']} before"
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
        """Change annotations by a merge of what is there."""

        def annotated(found: Object) -> None:
            kept = {**found["metadata"].get("annotations", {}), **annotations}
            found["metadata"]["annotations"] = {k: v for k, v in kept.items() if v is not None}

        self.change(path, annotated)

    def change(self, path: str, change: Callable[[Object], None]) -> None:
        """Change an object, if it is there, with its version as condition."""
        while (found := self.get(path)) is not None:
            change(found)
            status, answer = self.request("PUT", path, found)
            if status == 200:
                return
            assert status == 409, answer


def unclean(status: int, answer: Object, problem: str, method: str) -> str:
    """What is wrong with a refusal that the state of the disk has to explain; empty if it is as it should be."""
    shown = f"{method} is answered with {status} {answer}"
    if not problem or method == "GET":
        return f"{shown} although the disk is {problem or 'well'}"
    wanted = {"kind": "Status", "status": "Failure", "reason": "InternalError", "code": 500}
    explains = "cannot write to" in answer.get("message", "")
    if any(answer.get(name) != value for name, value in wanted.items()) or not explains:
        return shown
    return ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
