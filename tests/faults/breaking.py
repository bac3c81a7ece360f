"""Faults: processes that die, nodes that fall silent or disappear, devices that break. Each can be undone."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final

from faults.cluster import NODES, Api, Cluster
from faults.load import Load
from faults.snapshot import PATHS

_NODES: Final = "/api/v1/nodes"
_RULES: Final = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
_FAILED: Final = "drayman.dev/failed"
LATEST_KILL_S: Final = 0.4
"""A kill comes at a random moment of what happens next, within so many seconds."""
_BESIDE: Final = 0.5
GIVEN_UP_S: Final = 45.0
"""Longer than a node may be silent, and than its pods are kept when it is gone."""


class Faults:
    """Breaks a cluster, and makes it whole again."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self._api = Api(cluster, self.revive)
        self.load = Load(self._api, rng)
        self._killer: threading.Timer | None = None
        self._rules: list[str] = []
        self._failed: set[str] = set()
        self._deleted: set[str] = set()
        self.counts: dict[str, int] = {}

    def strike(self) -> str:
        """Something goes wrong."""
        fault: Callable[[], str] = self._rng.choice(
            (
                self._kill_everything,
                self._kill_everything,
                self._kill_scheduler,
                self._kill_scheduler,
                self._fail_node,
                self._recover_node,
                self._delete_node,
                self._taint_device,
                self._untaint_device,
            )
        )
        told = fault()
        name = fault.__name__.lstrip("_")
        self.counts[name] = self.counts.get(name, 0) + 1
        return told

    def mend(self) -> None:
        """Undo what lasts: the nodes are back, no device is tainted, everything runs."""
        self._disarm()
        if not self._cluster.is_up():
            self.revive()
        while self._rules:
            self._untaint_device()
        for name in sorted(self._failed):
            self._api.annotate(f"{_NODES}/{name}", {_FAILED: None})
        self._failed.clear()
        if self._deleted:  # a node registers when it starts
            self._cluster.kill()
            self.revive()
        self.load.nodes_down = False

    def revive(self) -> None:
        """Start again what was killed."""
        self._disarm()
        self._cluster.kill()
        self._cluster.start(scheduler_beside=self._rng.random() < _BESIDE)
        self._deleted.clear()

    def end(self) -> None:
        """Nothing runs any more."""
        self._disarm()
        self._api.close()
        self._cluster.end()

    def _disarm(self) -> None:
        if self._killer is not None:
            self._killer.cancel()
            self._killer.join()
            self._killer = None

    def _arm(self, kill: Callable[[], None]) -> str:
        self._disarm()
        after = self._rng.uniform(0.0, LATEST_KILL_S)
        self._killer = threading.Timer(after, kill)
        self._killer.start()
        return f"in {after:.2f} s"

    # --- Processes --------------------------------------------------------------------------------

    def _kill_everything(self) -> str:
        return f"kill the server {self._arm(self._cluster.kill)}"

    def _kill_scheduler(self) -> str:
        if self._cluster.has_own_scheduler:
            return self._kill_everything()

        def kill() -> None:
            self._cluster.kill_scheduler()
            self._cluster.start_scheduler()

        return f"kill the scheduler {self._arm(kill)}"

    # --- Nodes ------------------------------------------------------------------------------------

    def _fail_node(self) -> str:
        name = self._rng.choice(NODES)
        self._failed.add(name)
        self.load.nodes_down = True
        self._api.annotate(f"{_NODES}/{name}", {_FAILED: "true"})
        return f"fail {name}"

    def _recover_node(self) -> str:
        if not self._failed:
            return self._fail_node()
        name = self._rng.choice(sorted(self._failed))
        self._failed.discard(name)
        self._api.annotate(f"{_NODES}/{name}", {_FAILED: None})
        return f"recover {name}"

    def _delete_node(self) -> str:
        name = self._rng.choice(NODES)
        self._failed.discard(name)
        self.load.nodes_down = self.load.evictions = True
        self._api.delete(f"{_NODES}/{name}")
        # Only now: the server may have been started again meanwhile, and that was before the node was deleted.
        self._deleted.add(name)
        return f"delete {name}"

    def lose_node(self) -> str:
        """A node is silent, or gone, for so long that the cluster gives it up."""
        told = self._rng.choice((self._fail_node, self._delete_node))()
        self.load.evictions = True
        time.sleep(GIVEN_UP_S)
        return f"{told} for {GIVEN_UP_S} s"

    # --- Devices ----------------------------------------------------------------------------------

    def _taint_device(self) -> str:
        """Devices in use are preferred: their pods have to go."""
        found = self._api.get(PATHS["claims"])
        assert found is not None
        results = [
            result
            for claim in found["items"]
            for result in (claim.get("status", {}).get("allocation") or {})
            .get("devices", {})
            .get("results", ())
        ]
        if not results:
            return "no device to taint"
        result = self._rng.choice(results)
        selector = {key: result[key] for key in ("driver", "pool", "device")}
        taint = {"key": "example.com/broken", "effect": "NoExecute"}
        name = f"broken-{len(self._rules)}-{self._rng.getrandbits(32):08x}"
        self.load.evictions = True
        self._rules.append(name)
        spec = {"deviceSelector": selector, "taint": taint}
        self._api.create(_RULES, {"metadata": {"name": name}, "spec": spec})
        return f"taint {result['pool']}/{result['device']}"

    def _untaint_device(self) -> str:
        if not self._rules:
            return "no taint to remove"
        self._api.delete(f"{_RULES}/{self._rules.pop()}")
        return "remove a taint"
