"""The watchman sees what lasts for one revision only, also what happened while it was away."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from apiserver.e2e.driving import running
from apiserver.e2e.writing import Connection
from faults.invariants import FINALIZER
from faults.snapshot import Object, take
from faults.units import CLAIMS
from faults.watching import FOLLOWED, Watchman
from patience import PATIENCE_S


class Place:
    """A server to which connections can be made, unless it is out of reach."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self.is_away = False

    def connect(self) -> Connection:
        if self.is_away:
            raise ConnectionRefusedError
        return Connection(self._kubeconfig)


def allocate(connection: Connection, name: str) -> Object:
    """Create a claim that has a device which is always the same."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    body: Object = {
        "metadata": {"name": name, "finalizers": [FINALIZER]},
        "spec": {"devices": {"requests": [request]}},
    }
    status, claim = connection.request("POST", CLAIMS, body)
    assert status == 201, claim
    result = {"request": "gpu", "driver": "gpus", "pool": "node", "device": "gpu-0"}
    claim["status"] = {"allocation": {"devices": {"results": [result]}}}
    status, claim = connection.request("PUT", f"{CLAIMS}/{name}/status", claim)
    assert status == 200, claim
    return claim


def give_back(connection: Connection, claim: Object) -> None:
    path = f"{CLAIMS}/{claim['metadata']['name']}"
    status, claim = connection.request("PUT", f"{path}/status", {**claim, "status": {}})
    assert status == 200, claim
    del claim["metadata"]["finalizers"]
    assert connection.request("PUT", path, claim)[0] == 200
    assert connection.request("DELETE", path)[0] == 200


def findings(watchman: Watchman, connection: Connection, gone: Object) -> list[str]:
    """What the watchman has found, once it has seen that a claim was deleted."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = watchman.seen_until(take(connection, FOLLOWED))
        if gone["metadata"]["uid"] in watchman.deleted:
            return found
    raise AssertionError(f"it is not seen to be deleted, only {found}")


def test_a_violation_of_one_revision_is_seen(tmp_path: Path) -> None:
    """A device with two holders for a moment is reported, and what was deleted is known, with the watches open or cut."""
    config = tmp_path / "kubeconfig"
    with running(config, "--ephemeral", "--no-controllers"), closing(Connection(config)) as client:
        place = Place(config)
        watchman = Watchman(place)  # type: ignore[arg-type]
        first = allocate(client, "first")
        with watchman.on_duty():
            assert watchman.seen_until(take(client, FOLLOWED)) == []
            second = allocate(client, "second")
            give_back(client, second)
            (seen,) = findings(watchman, client, second)
            version = second["metadata"]["resourceVersion"]
            claims = "default/first, default/second"
            device = "device gpus/node/gpu-0 is held by several"
            assert seen == f"revision {version}: {device}: {claims}"
            place.is_away = True
            watchman.cut()
            third = allocate(client, "third")
            give_back(client, third)
            place.is_away = False
            _, seen = findings(watchman, client, third)
            assert seen.startswith(f"revision {third['metadata']['resourceVersion']}: {device}")
            assert watchman.gaps == 0
            give_back(client, first)
