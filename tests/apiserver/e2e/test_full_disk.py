"""A server whose disk takes nothing more for a while."""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from apiserver.e2e.driving import DRAYMAN, running
from apiserver.e2e.writing import Connection
from patience import PATIENCE_S

CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@contextmanager
def full_disk(process: int) -> Iterator[None]:
    """No file of a process can be written."""
    _, most = resource.prlimit(process, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    yield
    resource.prlimit(process, resource.RLIMIT_FSIZE, (most, most))


def status_of(data: Path) -> str:
    command = [*DRAYMAN, "status", "--data-dir", str(data)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_health_says_why_until_anything_is_written(tmp_path: Path) -> None:
    """Reads go on, a request that stores nothing does not hide the problem, and the first write of any component ends it."""
    config = tmp_path / "kubeconfig"
    words = ("--data-dir", tmp_path / "data", "--profile", "example=1", "--audit-log", "/dev/null")
    with running(config, *words) as server, closing(Connection(config)) as connection:
        with full_disk(server.process.pid):
            body = {"metadata": {"name": "a"}}
            status, answer = connection.request("POST", CONFIG_MAPS, body)
            assert (status, answer["reason"]) == (500, "InternalError")
            assert answer["message"].endswith("store.db: disk I/O error")
            assert connection.request("GET", CONFIG_MAPS)[0] == 200
            review = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
            assert connection.request("POST", REVIEWS, review)[0] == 201
            status, said = connection.ask("GET", "/readyz")
            assert (status, b"[-]store failed: cannot write to" in said) == (500, True)
            shown = status_of(tmp_path / "data")
            assert "ready           no: store failed: cannot write to" in shown
        deadline = time.monotonic() + PATIENCE_S
        while connection.ask("GET", "/readyz")[0] != 200:  # the node's next heartbeat is stored
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert "ready           yes" in status_of(tmp_path / "data")
        assert connection.request("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})[0] == 201
