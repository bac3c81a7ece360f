"""Where the state of a cluster differs from the recorded one, in what other programs can rely on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from conformance.records import JsonObject
from conformance.scheduling.scenarios import Expected
from conformance.scheduling.state import Objects, State
from oracle.quantities import amount

DeviceName = tuple[str, str, str]
Comparing = Callable[[JsonObject, JsonObject], Iterator[str]]
_FREE: Final = "$free"
_ONE_OF: Final = "$in"
_SAME_REASON: Final = {"SchedulerError": "Unschedulable"}


class Twins:
    """Devices of a pool that differ in nothing but the name stand for each other."""

    def __init__(self) -> None:
        self._kinds: dict[DeviceName, str] = {}

    def meet(self, slices: list[JsonObject]) -> None:
        for published in slices:
            spec = published["spec"]
            for device in spec.get("devices") or ():
                content = {name: value for name, value in device.items() if name != "name"}
                name = (spec["driver"], spec["pool"]["name"], device["name"])
                self._kinds[name] = json.dumps(content, sort_keys=True)

    def kind(self, driver: str, pool: str, device: str) -> str:
        """What a device and its twins have in common; its name where it was never published."""
        return self._kinds.get((driver, pool, device), device)


class Comparison:
    """Compares states with the checkpoints of one scenario."""

    def __init__(self, *, free_devices: bool) -> None:
        self.twins = Twins()
        self._free_devices = free_devices

    def differences(self, expect: Expected, state: State) -> Iterator[str]:
        """What differs."""
        if expect.pods is not None:
            yield from _by_key(expect.pods, state.pods, _pod_differences)
        if expect.claims is not None:
            yield from _by_key(expect.claims, state.claims, self._claim_differences)
        if expect.pod_groups is not None:
            yield from _by_key(expect.pod_groups, state.pod_groups, _pod_differences)
        for event in expect.events or ():
            wanted = (event["kind"], event["name"], event["type"], event["reason"])
            if wanted not in state.events:
                yield f"no event {' '.join(wanted)}"
        if expect.counts is not None and expect.counts != state.counts:
            yield f"counts are {state.counts} instead of {expect.counts}"
        for pod, words in expect.mention.items():
            message = (state.pods.get(pod, {}).get("scheduled") or {}).get("message", "")
            for word in words:
                if word not in message:
                    yield f"{pod} does not mention {word}: {message}"

    def _claim_differences(self, expected: JsonObject, found: JsonObject) -> Iterator[str]:
        for name in {**expected, **found}:
            if name == "allocation":
                wanted, given = map(self._comparable, (expected[name], found[name]))
            else:
                wanted, given = expected.get(name), found.get(name)
            yield from _unless_matching(name, wanted, given)

    def _comparable(self, allocation: JsonObject | None) -> JsonObject | None:
        """An allocation in which equal devices are equal and the order of results does not matter."""
        if allocation is None:
            return None
        entries = sorted(map(self._comparable_entry, allocation["results"]))
        return {**allocation, "results": entries}

    def _comparable_entry(self, entry: JsonObject) -> str:
        made = {name: value for name, value in entry.items() if name != "shareID"}
        device = entry["device"]
        if isinstance(device, dict):  # one of several, which are twins
            device = device[_ONE_OF][0]
        made["device"] = self.twins.kind(entry["driver"], entry["pool"], device)
        if self._free_devices:
            made |= {"driver": "", "pool": "", "device": ""}
        consumed = entry.get("consumedCapacity", {})
        made["consumedCapacity"] = {name: str(amount(value)) for name, value in consumed.items()}
        made["shared"] = "shareID" in entry
        return json.dumps(made, sort_keys=True)


def _by_key(expected: JsonObject, found: JsonObject, compare: Comparing) -> Iterator[str]:
    for key in expected.keys() - found.keys():
        yield f"there is no {key}"
    for key in found.keys() - expected.keys():
        yield f"there is {key}"
    for key in sorted(expected.keys() & found.keys()):
        if _FREE not in expected[key]:
            yield from (f"{key}: {text}" for text in compare(expected[key], found[key]))


def _pod_differences(expected: JsonObject, found: JsonObject) -> Iterator[str]:
    for name in {**expected, **found}:
        wanted, given = expected.get(name), found.get(name)
        if name == "nominatedNodeName":
            continue
        if name in ("scheduled", "disruption"):
            if name == "scheduled" and wanted is None and not found.get("nodeName"):
                continue  # a pod that waits may say so where upstream's says nothing yet
            wanted, given = _status_and_reason(wanted), _status_and_reason(given)
        yield from _unless_matching(name, wanted, given)


def _status_and_reason(condition: JsonObject | None) -> Any:
    if condition is None or _FREE in condition:
        return condition
    reason = condition["reason"]
    return {"status": condition["status"], "reason": _SAME_REASON.get(reason, reason)}


def _unless_matching(name: str, expected: Any, found: Any) -> Iterator[str]:
    if isinstance(expected, dict) and _FREE in expected:
        return
    if isinstance(expected, dict) and _ONE_OF in expected:
        if found in expected[_ONE_OF]:
            return
    elif found == expected:
        return
    yield f"{name} is {found} instead of {expected}"


def missing(partial: Any, found: Any, path: str = "") -> Iterator[str]:
    """The parts of a state that are named and not there. Null stands for what is absent or empty."""
    if isinstance(partial, dict):
        for name, value in partial.items():
            inner = found.get(name) if isinstance(found, dict) else None
            yield from missing(value, inner, f"{path}/{name}")
    elif (partial is None and found) or (partial is not None and partial != found):
        yield f"{path} is {found} instead of {partial}"


def held_twice(objects: Objects) -> list[str]:
    """Devices that two claims have, neither as a share nor for administration: never right."""
    holders: Counter[DeviceName] = Counter()
    for claim in objects.claims:
        allocation = claim.get("status", {}).get("allocation") or {}
        holders.update(
            {
                (entry["driver"], entry["pool"], entry["device"])
                for entry in allocation.get("devices", {}).get("results") or ()
                if not entry.get("shareID") and not entry.get("adminAccess")
            }
        )
    return [f"{'/'.join(name)} is held by {n} claims" for name, n in holders.items() if n > 1]
