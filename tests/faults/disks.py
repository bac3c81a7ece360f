"""A disk that takes nothing more: writes are refused and say why, reads go on, and once it is mended so do writes, in the same process."""

from __future__ import annotations

import http.client
import random
import time
from contextlib import closing
from typing import Final

from apiserver.e2e.writing import Connection
from faults.cluster import Api, Cluster, unclean
from patience import PATIENCE_S

_PROBES: Final = "/api/v1/namespaces/default/configmaps"
_MOST_REFUSALS: Final = 5
"""Of requests of one client, before the disk is mended for it."""
_SHARE_MENDED_BEFORE_START: Final = 0.5
_SIZE: Final = 30_000
"""Of a probe: more than what is free in a file that is full."""
_POLL_S: Final = 0.05
_START_ON_BAD_DISK_S: Final = 8.0


class DiskFaults:
    """Breaks and mends the disk of a cluster, and looks at how its server bears it."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self._probes = 0
        self._left = 0
        """Refusals until the disk is mended."""
        self.refusals = 0

    def break_down(self, how: str, api: Api) -> str:
        """Break it, and leave it broken until something mends it."""
        self.mend()
        api.get("/api/v1/namespaces/default")  # the server runs
        process = self._cluster.server_pid
        if process is None:
            return "the server has gone before its disk did"
        self._left = self._rng.randint(1, _MOST_REFUSALS)
        self._break(how, process)
        with closing(self._cluster.connect()) as connection:
            while not self._is_refused(connection):
                self._break(how, process)
            self._check_reads(connection)
        return f"the disk is {how}"

    def relieve(self) -> None:
        """A request was refused: the disk is mended now, or after a few more."""
        self._left -= 1
        if self._left <= 0:
            self.mend()
        else:
            time.sleep(_POLL_S)

    def mend(self) -> None:
        """The disk is well again, and the server too, without being started again."""
        if not self._cluster.disk.problem:
            return
        process = self._cluster.server_pid
        self._cluster.disk.mend(process, self._cluster.server_belief)
        if process is None:
            return
        try:
            with closing(self._cluster.connect()) as connection:
                refused = self._is_refused(connection)
                assert not refused, "writes are refused on a disk that is well again"
                self._wait_until_ready(connection)
        except (OSError, http.client.HTTPException):
            if not self._cluster.was_killed():  # as another fault may do meanwhile
                raise

    def start(self) -> None:
        """Start the server. On a disk that is broken it may refuse, with a sentence; on one that is mended it must not."""
        if self._cluster.disk.problem and self._rng.random() >= _SHARE_MENDED_BEFORE_START:
            if self._cluster.disk.problem == "read-only":
                self._cluster.disk.turn_read_only()
            if self._cluster.try_start(_START_ON_BAD_DISK_S):
                return
            self._cluster.disk.mend(self._cluster.server_pid, self._cluster.server_belief)
            if self._cluster.wait_until_serving(PATIENCE_S):  # it has waited for the disk
                self._cluster.supervise()
                return
            said = self._cluster.last_words()
            assert not self._cluster.is_up(), (
                f"a server does not start after its disk was mended: {said}"
            )
            assert "error: cannot" in said, said
            assert "Traceback" not in said, said
        if self._cluster.disk.problem:
            self._cluster.disk.mend(None, self._cluster.server_belief)
        self._cluster.start()

    def _break(self, how: str, process: int) -> None:
        if how == "full":
            self._cluster.disk.fill(process)
        else:
            self._cluster.disk.make_read_only(process, self._cluster.server_belief)

    def _is_refused(self, connection: Connection) -> bool:
        """Write something. A refusal has to say why."""
        self._probes += 1
        name = f"probe-{self._probes}"
        problem = self._cluster.disk.problem
        body = {"metadata": {"name": name}, "data": {"text": "x" * _SIZE}}
        status, answer = connection.request("POST", _PROBES, body)
        if status == 201:
            connection.request("DELETE", f"{_PROBES}/{name}")
            return False
        wrong = unclean(status, answer, problem, "POST")
        assert not wrong, wrong
        self.refusals += 1
        return True

    def _check_reads(self, connection: Connection) -> None:
        status, answer = connection.request("GET", "/api/v1/pods")
        assert status == 200, answer
        status, said = connection.ask("GET", "/readyz")
        assert status == 500, said
        assert b"store failed: cannot write to" in said, said

    def _wait_until_ready(self, connection: Connection) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            status, said = connection.ask("GET", "/readyz")
            if status == 200:
                return
            assert time.monotonic() < deadline, said
            time.sleep(_POLL_S)
