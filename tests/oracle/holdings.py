"""Is anything held twice? Reads the slices and the allocations that were committed, nothing else."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from oracle.model import Model, device_id
from oracle.nodes import JsonObject
from oracle.quantities import amount


def given_twice(problem: JsonObject, held: list[JsonObject]) -> list[str]:
    """What is given to more than one holder, in words; `held` are the AllocationResults in force.

    Admin access holds nothing. What the problem itself has in use counts too, and a pool that is over-committed by that alone
    says nothing about the commits.
    """
    model = Model(problem)
    entries = [
        entry
        for result in held
        for entry in result["devices"].get("results") or []
        if not entry.get("adminAccess")
    ]
    return [
        *_devices(model, entries),
        *_shares(problem, entries),
        *_capacities(model, entries),
        *_counters(model, entries),
    ]


def _devices(model: Model, entries: list[JsonObject]) -> list[str]:
    whole = Counter(device_id(entry) for entry in entries if not entry.get("shareID"))
    whole.update(model.exclusive)
    shared = {device_id(entry) for entry in entries if entry.get("shareID")}
    found = [f"{device} is held {times} times" for device, times in whole.items() if times > 1]
    return found + [f"{device} is held whole and shared" for device in shared & set(whole)]


def _shares(problem: JsonObject, entries: list[JsonObject]) -> list[str]:
    before = problem["allocated"].get("sharedDevices") or []
    ids = Counter(entry["shareID"] for entry in [*before, *entries] if entry.get("shareID"))
    return [f"share {share} is held {times} times" for share, times in ids.items() if times > 1]


def _capacities(model: Model, entries: list[JsonObject]) -> list[str]:
    found = []
    for device in model.devices:
        mine = [e for e in entries if device_id(e) == device.id and e.get("shareID")]
        for name, capacity in (device.spec.get("capacity") or {}).items():
            taken = sum((amount(e["consumedCapacity"][name]) for e in mine), Fraction(0))
            if mine and taken + model.aggregated_of(device, name) > amount(capacity["value"]):
                found.append(f"{device.id} has given away {taken} of {name}")
    return found


def _counters(model: Model, entries: list[JsonObject]) -> list[str]:
    found = []
    holding = {device_id(entry) for entry in entries}
    for pool in model.pools:
        left = model.counters_left(pool)
        if any(value < 0 for value in left.values()):
            continue
        for consumer in holding - model.in_use:
            for key, value in pool.consumers.get(consumer, {}).items():
                left[key] -= value
        found += [f"{pool.id} has given away too much of {k}" for k, v in left.items() if v < 0]
    return found
