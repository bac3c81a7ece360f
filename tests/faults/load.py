"""A random workload that fits the hardware: what is created, what of it may be deleted, what has to be there in the end.

Half of the devices at most are asked for, so that everything can run although a claim may keep devices of a node for itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from faults.cluster import Api
from faults.probing import kept_for_nobody
from faults.queued_units import QUEUED, QueuedMaker
from faults.queues import QueueHand
from faults.snapshot import Object, Snapshot
from faults.units import (
    CLAIMS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    SETS,
    SPECS,
    TEMPLATES,
    Maker,
    Unit,
    as_object,
)

BUDGET: Final = {"gpu.example.com": 14, "gpu.nvidia.com": 8, QUEUED: 18}
"""Devices, and pods in queues, that may be asked for at the same time."""


class Load:
    """Creates and deletes units over the API."""

    def __init__(self, api: Api, rng: random.Random) -> None:
        self._api = api
        self._rng = rng
        self._maker = Maker(rng)
        queued = QueuedMaker(rng)
        self._queued = (
            queued.queued_job,
            queued.queued_short,
            queued.queued_pod,
            queued.queued_group,
        )
        self.queues = QueueHand(api, rng)
        self.units: list[Unit] = []
        self._acknowledged: dict[str, int] = {}
        """The version of each object, by uid, that an answer has promised."""
        self.nodes_down = False
        """Whether pods may have to wait for their node before they end."""

    def prepare(self) -> None:
        for name, (spec, _) in SPECS.items():
            self._api.create(TEMPLATES, as_object(name, {"spec": spec}))
        self.queues.prepare()

    # --- Creating ---------------------------------------------------------------------------------

    def create(self) -> str:
        """Create a unit of a random sort. If there is no room for it, delete another one instead."""
        unit = self._maker.make(self._queued)
        for resource, most in BUDGET.items():
            taken = sum(each.cost.get(resource, 0) for each in self.units)
            if taken + unit.cost.get(resource, 0) > most:
                return self._delete_unit(self._rng.choice(self.units))
        self.units.append(unit)
        self._make(unit)
        return f"create {unit.name}"

    def _make(self, unit: Unit) -> None:
        for collection, body in unit.objects:
            made = self._api.create(collection, body)
            meta = made["metadata"]
            path = f"{collection}/{meta['name']}"
            unit.uids[path] = meta["uid"]
            self._acknowledged[meta["uid"]] = int(meta["resourceVersion"])

    # --- Deleting ---------------------------------------------------------------------------------

    def delete(self) -> str:
        """Delete a unit, or disturb one."""
        if not self.units:
            return "nothing to delete"
        unit = self._rng.choice(self.units)
        if QUEUED in unit.cost and self._rng.random() < 0.25:
            return self.queues.delete_workload(set(unit.uids.values()))
        act: Callable[[Unit], str] = self._rng.choice(
            (self._delete_unit, self._delete_unit, self._delete_pods, self._delete_claims, self._recreate)
        )  # fmt: skip
        return act(unit)

    def _delete_unit(self, unit: Unit) -> str:
        at_once = self._rng.random() < 0.4
        self._delete_all(unit, at_once=at_once)
        self.units.remove(unit)
        return f"delete {unit.name}{' at once' if at_once else ''}"

    def delete_everything(self) -> None:
        """Delete all units."""
        while self.units:
            self._delete_unit(self.units[0])

    def kept_for_nobody(self) -> list[str]:
        """What the cluster does not give although nothing is left in it."""
        return kept_for_nobody(self._api)

    def _delete_all(self, unit: Unit, *, at_once: bool) -> None:
        """Delete what a unit consists of, in any order. What is in a namespace of its own goes with that."""
        own_namespace = f"{NAMESPACES}/{unit.name}"
        paths = [own_namespace] if own_namespace in unit.uids else unit.paths()
        self._rng.shuffle(paths)
        unit.uids.clear()  # before, because a request without an answer may have been done
        for path in paths:
            self._api.delete(path, at_once=at_once and _is_pod(path))

    def _delete_pods(self, unit: Unit) -> str:
        """Delete pods of a unit. Deployments and sets make others."""
        at_once = self._rng.random() < 0.5
        if unit.paths(JOBS):  # its pods would count as failures
            return f"leave {unit.name} alone"
        for pod in self._pods_of(unit):
            path = f"{PODS}/{pod['metadata']['name']}"
            unit.uids.pop(path, None)
            self._api.delete(path, at_once=at_once)
        return f"delete pods of {unit.name}{' at once' if at_once else ''}"

    def _delete_claims(self, unit: Unit) -> str:
        """Delete the claims that were generated for a unit's pods: those in use stay until they are not, others come back."""
        for pod in self._pods_of(unit):
            for status in pod.get("status", {}).get("resourceClaimStatuses", ()):
                if status.get("resourceClaimName"):
                    self._api.delete(f"{CLAIMS}/{status['resourceClaimName']}")
        return f"delete generated claims of {unit.name}"

    def _recreate(self, unit: Unit) -> str:
        """Delete a unit's pods and claims and create them again under the same names."""
        is_slow = self.nodes_down and f"{NAMESPACES}/{unit.name}" in unit.uids
        if is_slow or unit.paths(JOBS) or unit.paths(DEPLOYMENTS) or unit.paths(SETS):
            return self._delete_pods(unit)
        at_once = self._rng.random() < 0.5 or self.nodes_down
        self._delete_all(unit, at_once=at_once)
        self._make(unit)
        return f"delete {unit.name} and create it again{' at once' if at_once else ''}"

    def _pods_of(self, unit: Unit) -> list[Object]:
        found = self._api.get(PODS)
        assert found is not None
        return [
            pod
            for pod in found["items"]
            if pod["metadata"].get("labels", {}).get("app") == unit.name
            or f"{PODS}/{pod['metadata']['name']}" in unit.uids
        ]

    # --- Judging ----------------------------------------------------------------------------------

    def lost(self, now: Snapshot, deleted: Collection[str], *, has_gap: bool) -> list[str]:
        """What was acknowledged and is not there, or is older than that."""
        if now.version < self._api.newest:
            return [
                f"revision {self._api.newest} was acknowledged, and there is only {now.version}"
            ]
        return lost(self.units, self._acknowledged, now.versions(), deleted, has_gap=has_gap)


def lost(
    units: Sequence[Unit],
    acknowledged: Mapping[str, int],
    versions: Mapping[str, int],
    deleted: Collection[str],
    *,
    has_gap: bool,
) -> list[str]:
    """What of the units is not at the version that was acknowledged, or later. All by uid; what is gone is taken out of its unit.

    Pods may have been evicted: then they are among `deleted`, those that were seen to be. In a gap of what was seen one cannot know.
    """
    found: list[str] = []
    for unit in units:
        for path, uid in tuple(unit.uids.items()):
            if uid not in versions:
                del unit.uids[path]
                if not (_is_pod(path) and (has_gap or uid in deleted)):
                    found.append(f"{path} is lost")
            elif versions[uid] < acknowledged[uid]:
                found.append(f"{path} is as it was before revision {acknowledged[uid]}")
    return found


def _is_pod(path: str) -> bool:
    return "/pods/" in path
