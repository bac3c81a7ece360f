"""Faults: processes that die or freeze, disks that fill up, clocks that leap, logs that end in rubbish, nodes that fall silent or
disappear, devices that break. Each can be undone.

They are dealt from a deck, so that each comes up before one of them does again.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final

from faults.cluster import NODES, Api, Cluster
from faults.disks import DiskFaults
from faults.load import Load
from faults.snapshot import PATHS
from faults.tail import damage

_NODES: Final = "/api/v1/nodes"
_RULES: Final = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
_FAILED: Final = "drayman.dev/failed"
LATEST_KILL_S: Final = 0.4
"""A kill comes at a random moment of what happens next, within so many seconds."""
GIVEN_UP_S: Final = 45.0
"""Longer than a node may be silent, and than its pods are kept when it is gone."""
FREEZE_S: Final = 5.0
LONG_FREEZE_S: Final = (30.0, 120.0)
_LEAPS: Final = (-86_400, -7_200, -300, -20, -2, 0, 2, 20, 300, 7_200, 86_400)
"""How far a clock is from the right time, in seconds. The limits are those of the server's certificate."""
OLD_AUTHORITY_S: Final = -2 * 86_400
"""The clock of the first start, so that certificates are older than any leap goes back."""


class Faults:
    """Breaks a cluster, and makes it whole again."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self._disk = DiskFaults(cluster, rng)
        self._api = Api(cluster, self.revive, self._disk.relieve)
        self.load = Load(self._api, rng)
        self._timer: threading.Timer | None = None
        self._rules: list[str] = []
        self._failed: set[str] = set()
        self._deleted: set[str] = set()
        self._deck: list[Callable[[], str]] = []
        self.counts: dict[str, int] = {}

    def strike(self) -> str:
        """Something goes wrong."""
        if not self._deck:
            self._deck = self._all()
            self._rng.shuffle(self._deck)
        fault = self._deck.pop()
        told = fault()
        name = fault.__name__.lstrip("_")
        self.counts[name] = self.counts.get(name, 0) + 1
        return told

    def _all(self) -> list[Callable[[], str]]:
        return [
            *[self._kill_everything] * 3,
            *[self._kill_scheduler] * 3,
            self._freeze,
            self._freeze_scheduler,
            *[self._damage_tail] * 2,
            *[self._fill_disk] * 2,
            *[self._make_disk_read_only] * 2,
            *[self._leap] * 3,
            *[self._fail_node] * 2,
            self._recover_node,
            self._delete_node,
            *[self._taint_device] * 2,
            self._untaint_device,
        ]

    def missing(self) -> set[str]:
        """The faults that have not come up yet."""
        return {fault.__name__.lstrip("_") for fault in self._all()} - self.counts.keys()

    @property
    def refusals(self) -> int:
        """Requests that a disk was the reason to refuse."""
        return self._api.refusals + self._disk.refusals

    def begin(self) -> None:
        """Start a cluster that nothing is wrong with yet."""
        self._cluster.server_belief.seconds_ahead = OLD_AUTHORITY_S
        self._cluster.start()
        self._cluster.server_belief.seconds_ahead = 0

    def mend(self) -> None:
        """Undo what lasts: the nodes are back, no device is tainted, queues are as they were, everything runs. Clocks stay as they are."""
        self._disarm()
        if not self._cluster.is_up():
            self.revive()
        self._disk.mend()
        while self._rules:
            self._untaint_device()
        for name in sorted(self._failed):
            self._api.annotate(f"{_NODES}/{name}", {_FAILED: None})
        self._failed.clear()
        if self._deleted:  # a node registers when it starts
            self._cluster.kill()
            self.revive()
        self.load.nodes_down = False
        self.load.queues.restore()

    def revive(self) -> None:
        """Start again what was killed."""
        self._disarm()
        self._cluster.kill()
        self._disk.start()
        self._deleted.clear()

    def end(self) -> None:
        """Nothing runs any more."""
        self._disarm()
        self._api.close()
        self._cluster.end()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._timer = None
        self._cluster.thaw()

    def _arm(self, act: Callable[[], None], after: float) -> str:
        self._timer = threading.Timer(after, act)
        self._timer.start()
        return f"in {after:.2f} s"

    def _soon(self) -> float:
        return self._rng.uniform(0.0, LATEST_KILL_S)

    # --- Processes --------------------------------------------------------------------------------

    def _kill_everything(self) -> str:
        self._disarm()
        return f"kill the server {self._arm(self._cluster.kill, self._soon())}"

    def _kill_scheduler(self) -> str:
        def kill() -> None:
            self._cluster.kill_scheduler()
            self._cluster.start_scheduler()

        self._disarm()
        return f"kill the scheduler {self._arm(kill, self._soon())}"

    def _freeze(self, seconds: float = FREEZE_S) -> str:
        self._disarm()
        self._cluster.freeze()
        return f"freeze the server, to go on {self._arm(self._cluster.thaw, seconds)}"

    def _freeze_scheduler(self, seconds: float = FREEZE_S) -> str:
        self._disarm()
        self._cluster.freeze_scheduler()
        return f"freeze the scheduler, to go on {self._arm(self._cluster.thaw, seconds)}"

    def freeze_for_long(self) -> str:
        """Longer than leases last, and than nodes may be silent."""
        self.counts["freeze_for_long"] = self.counts.get("freeze_for_long", 0) + 1
        freeze = self._rng.choice((self._freeze, self._freeze_scheduler, None))
        if freeze is None:
            return self._freeze_leader()
        seconds = self._rng.uniform(*LONG_FREEZE_S)
        told = freeze(seconds)
        time.sleep(seconds)
        return told

    def _freeze_leader(self) -> str:
        """Of two schedulers of one name the leader is frozen until its lease is lost, while pods come and go."""
        self.mend()
        told = []
        with self._cluster.frozen_leader():
            told += [self.load.create() for _ in range(4)]
        return f"freeze the leader of two schedulers, {', '.join(told)}"

    # --- What processes rely on -------------------------------------------------------------------

    def _damage_tail(self) -> str:
        """The machine goes down with the server."""
        self._disarm()
        time.sleep(self._soon())
        self._cluster.kill()
        self._disk.mend()  # or there is no room for the damage
        done = damage(self._cluster.store, self._cluster.audit_log, self._rng)
        return f"kill the server, and {done}"

    def _fill_disk(self) -> str:
        self._disarm()
        return self._disk.break_down("full", self._api)

    def _make_disk_read_only(self) -> str:
        self._disarm()
        return self._disk.break_down("read-only", self._api)

    def _leap(self) -> str:
        """A clock is set to another time, of the server, the scheduler or both."""
        seconds = self._rng.choice(_LEAPS)
        beliefs = {
            "server": (self._cluster.server_belief,),
            "scheduler": (self._cluster.scheduler_belief,),
            "machine": (self._cluster.server_belief, self._cluster.scheduler_belief),
        }
        whose = self._rng.choice(tuple(beliefs))
        before = [belief.seconds_ahead for belief in beliefs[whose]]
        for belief in beliefs[whose]:
            belief.seconds_ahead = seconds
        return f"set the clock of the {whose} from {before} to {seconds} s"

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
        self.load.nodes_down = True
        self._api.delete(f"{_NODES}/{name}")
        # Only now: the server may have been started again meanwhile, and that was before the node was deleted.
        self._deleted.add(name)
        return f"delete {name}"

    def lose_node(self) -> str:
        """A node is silent, or gone, for so long that the cluster gives it up."""
        told = self._rng.choice((self._fail_node, self._delete_node))()
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
        self._rules.append(name)
        spec = {"deviceSelector": selector, "taint": taint}
        self._api.create(_RULES, {"metadata": {"name": name}, "spec": spec})
        return f"taint {result['pool']}/{result['device']}"

    def _untaint_device(self) -> str:
        if not self._rules:
            return "no taint to remove"
        self._api.delete(f"{_RULES}/{self._rules.pop()}")
        return "remove a taint"
