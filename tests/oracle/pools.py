"""Slices to pools to devices, in the order of the search.

Follows the paragraph "Pools" word by word: relevance, the highest generation, completeness, validity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from oracle.nodes import JsonObject, selects
from oracle.quantities import amount

DeviceId = tuple[str, str, str]
PoolId = tuple[str, str]
Amounts = dict[tuple[str, str], Fraction]


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A device of a complete, valid pool in a slice relevant to the node."""

    id: DeviceId
    spec: JsonObject
    scope: JsonObject
    """Where node selection is written: the slice's spec, or the device with `perDeviceNodeSelection`."""
    on_node: bool
    shareable: bool
    spends: Amounts
    """Amount consumed by (counter set, counter)."""


@dataclass(slots=True)
class Pool:
    """A pool as this node sees it; only a `usable` one has devices."""

    id: PoolId
    state: Literal["usable", "incomplete", "invalid"]
    devices: list[Device] = field(default_factory=list)
    counters: Amounts = field(default_factory=dict)
    consumers: dict[DeviceId, Amounts] = field(default_factory=dict)
    """What every device of the pool consumes, those of other nodes included."""
    binding: bool = False


def gather_pools(problem: JsonObject) -> list[Pool]:
    """The pools of the node in the order of the search, incomplete and invalid ones included."""
    by_pool: dict[PoolId, list[JsonObject]] = {}
    for piece in problem["slices"]:
        spec = piece["spec"]
        by_pool.setdefault((spec["driver"], spec["pool"]["name"]), []).append(piece)
    found = (_gather(pool_id, slices, problem) for pool_id, slices in by_pool.items())
    return sorted((pool for pool in found if pool), key=lambda pool: (pool.binding, pool.id))


def _gather(pool_id: PoolId, slices: list[JsonObject], problem: JsonObject) -> Pool | None:
    relevant = [piece for piece in slices if _relevant(piece["spec"], problem)]
    if not relevant:
        return None
    generation = max(_generation(piece) for piece in relevant)
    relevant = [piece for piece in relevant if _generation(piece) == generation]
    declared = relevant[0]["spec"]["pool"]["resourceSliceCount"]
    peers = [piece for piece in slices if _generation(piece) == generation]
    if len(relevant) != declared:
        if any(_generation(piece) > generation for piece in slices):
            return None
        if len(peers) != declared:
            return Pool(pool_id, "incomplete")
    return _build(pool_id, relevant, peers, problem)


def _build(
    pool_id: PoolId, relevant: list[JsonObject], peers: list[JsonObject], problem: JsonObject
) -> Pool:
    relevant = sorted(relevant, key=lambda piece: str(piece["metadata"]["name"]))
    partitions = "DRAPartitionableDevices" in problem["features"]
    pool = Pool(pool_id, "usable")
    for piece in relevant:
        if not _has_counters(piece["spec"]):
            pool.devices += _devices(piece["spec"], problem)
    pool.binding = any(device.spec.get("bindingConditions") is not None for device in pool.devices)
    set_names = []
    if partitions:
        for piece in peers:
            for counter_set in piece["spec"].get("sharedCounters") or []:
                set_names.append(counter_set["name"])
                pool.counters |= _amounts(counter_set["name"], counter_set.get("counters") or {})
            for device in piece["spec"].get("devices") or []:
                pool.consumers[(*pool_id, device["name"])] = _spends(device)
    spent = {key for spends in pool.consumers.values() for key in spends}
    if (
        _repeats(device.id for device in pool.devices)
        or _repeats(set_names)
        or (partitions and not spent <= set(pool.counters))
        or (partitions and _unknown_sets(peers, set(set_names)))
    ):
        return Pool(pool_id, "invalid")
    return pool


def _devices(spec: JsonObject, problem: JsonObject) -> Iterable[Device]:
    per_device = bool(spec.get("perDeviceNodeSelection"))
    shared = "DRAConsumableCapacity" in problem["features"]
    for device in spec.get("devices") or []:
        scope = device if per_device else spec
        yield Device(
            id=(spec["driver"], spec["pool"]["name"], device["name"]),
            spec=device,
            scope=scope,
            on_node=selects(scope, problem["node"]),
            shareable=shared and bool(device.get("allowMultipleAllocations")),
            spends=_spends(device),
        )


def _relevant(spec: JsonObject, problem: JsonObject) -> bool:
    if "DRAPartitionableDevices" not in problem["features"] and (
        _has_counters(spec) or spec.get("perDeviceNodeSelection") is not None
    ):
        return False
    if _has_counters(spec) or selects(spec, problem["node"]):
        return True
    return bool(spec.get("perDeviceNodeSelection")) and any(
        selects(device, problem["node"]) for device in spec.get("devices") or []
    )


def _has_counters(spec: JsonObject) -> bool:
    return bool(spec.get("sharedCounters"))


def _generation(piece: JsonObject) -> int:
    return int(piece["spec"]["pool"].get("generation", 0))


def _amounts(set_name: str, counters: JsonObject) -> Amounts:
    return {(set_name, name): amount(counter["value"]) for name, counter in counters.items()}


def _spends(device: JsonObject) -> Amounts:
    spends: Amounts = {}
    for part in device.get("consumesCounters") or []:
        for key, value in _amounts(part["counterSet"], part.get("counters") or {}).items():
            spends[key] = spends.get(key, Fraction(0)) + value
    return spends


def _unknown_sets(peers: list[JsonObject], known: set[str]) -> bool:
    return any(
        part["counterSet"] not in known
        for piece in peers
        for device in piece["spec"].get("devices") or []
        for part in device.get("consumesCounters") or []
    )


def _repeats(names: Iterable[object]) -> bool:
    return any(count > 1 for count in Counter(names).values())
