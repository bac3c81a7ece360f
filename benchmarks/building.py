"""Building blocks of generated problems: devices, slices, requests, claims, in the JSON form of the API.

They keep to the API's limits: 32 devices and 32 requests per claim, 128 devices per slice.
"""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]

DRIVER = "gpu.example.com"
NICS = "nic.example.com"
ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"
NODE = "node-1"
_PER_CLAIM = 32
_PER_SLICE = 128
_FEATURES = (
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRAListTypeAttributes",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
)


def device(name: str, /, **attributes: str | int) -> JsonObject:
    """A device; `root` and `numa` are the standard attributes, the rest belongs to the driver."""
    names = {"root": ROOT, "numa": NUMA}
    return {
        "name": name,
        "attributes": {
            names.get(key, key): {"int" if isinstance(value, int) else "string": value}
            for key, value in attributes.items()
        },
    }


def slices(devices: list[JsonObject], driver: str = DRIVER, pool: str = NODE) -> list[JsonObject]:
    """One pool on the node, cut into slices of the permitted size."""
    parts = [devices[i : i + _PER_SLICE] for i in range(0, len(devices), _PER_SLICE)]
    return [
        _slice(f"{pool}-{number:03}", driver, pool, len(parts), devices=part)
        for number, part in enumerate(parts)
    ]


def card(pool: str, units: int, partitions: list[tuple[str, int]]) -> list[JsonObject]:
    """A pool with one counter set and the partitions that consume it; 8 units of memory for 7 of compute."""
    counters = {"units": {"value": str(units)}, "memory": {"value": str(units + 1)}}
    made = []
    for name, size in partitions:
        memory = {3: 4, 7: 8}.get(size, size)
        amounts = {"units": {"value": str(size)}, "memory": {"value": str(memory)}}
        content = device(name, profile=f"{size}g")
        content["consumesCounters"] = [{"counterSet": "card", "counters": amounts}]
        made.append(content)
    shared = [{"name": "card", "counters": counters}]
    return [
        _slice(f"{pool}-0", DRIVER, pool, 2, sharedCounters=shared),
        _slice(f"{pool}-1", DRIVER, pool, 2, devices=made),
    ]


def _slice(name: str, driver: str, pool: str, total: int, **content: Any) -> JsonObject:
    declared = {"name": pool, "generation": 1, "resourceSliceCount": total}
    spec = {"driver": driver, "pool": declared, "nodeName": NODE, **content}
    return {"metadata": {"name": f"{driver}-{name}"}, "spec": spec}


def request(name: str, count: int = 1, cls: str = "gpu", **fields: Any) -> JsonObject:
    """A request for a number of devices; `where` is a CEL expression, `memory` a capacity."""
    return {"name": name, "exactly": _wants(count, cls, fields)}


def either(name: str, *subrequests: JsonObject) -> JsonObject:
    subs = [{"name": sub["name"], **sub["exactly"]} for sub in subrequests]
    return {"name": name, "firstAvailable": subs}


def _wants(count: int, cls: str, fields: JsonObject) -> JsonObject:
    made: JsonObject = {"deviceClassName": cls, "allocationMode": "ExactCount", "count": count}
    if where := fields.get("where"):
        made["selectors"] = [{"cel": {"expression": where}}]
    if memory := fields.get("memory"):
        made["capacity"] = {"requests": {"memory": str(memory)}}
    return made


def attribute_is(name: str, value: str) -> str:
    return f'device.attributes["{DRIVER}"].{name} == "{value}"'


def claim(*requests: JsonObject, match: str = "", distinct: tuple[str, ...] = ()) -> JsonObject:
    constraints = [{"matchAttribute": match}] if match else []
    constraints += [{"distinctAttribute": attribute} for attribute in distinct]
    devices: JsonObject = {"requests": list(requests)}
    if constraints:
        devices["constraints"] = constraints
    return {"spec": {"devices": devices}}


def claims_of(requests: list[JsonObject]) -> list[JsonObject]:
    """Requests in order, in as few claims as the limits allow."""
    made: list[list[JsonObject]] = [[]]
    used = 0
    for item in requests:
        subrequests = item.get("firstAvailable") or [item["exactly"]]
        most = max(int(sub["count"]) for sub in subrequests)
        if used + most > _PER_CLAIM or len(made[-1]) == _PER_CLAIM:
            made.append([])
            used = 0
        made[-1].append(item)
        used += most
    return [claim(*part) for part in made]


def problem(pieces: list[JsonObject], claims: list[JsonObject]) -> JsonObject:
    by_driver = [("gpu", DRIVER), ("nic", NICS)]
    return {
        "name": "generated",
        "features": list(_FEATURES),
        "node": {"metadata": {"name": NODE, "labels": {}}},
        "classes": [
            {
                "metadata": {"name": name},
                "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
            }
            for name, driver in by_driver
        ],
        "slices": pieces,
        "claims": [
            {"metadata": {"name": f"claim-{n}", "namespace": "default"}, **item}
            for n, item in enumerate(claims)
        ],
        "allocated": {"devices": [], "sharedDevices": [], "aggregatedCapacity": []},
    }
