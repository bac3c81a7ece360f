"""Small builders for problems: named cases read as what they are about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from oracle.alignment import ALIGN
from oracle.nodes import JsonObject
from oracle.selectors import GPU, NIC, ONLY_GPU, ONLY_NIC, cel, with_verdicts

NODE = "node-1"
ALL_FEATURES = (
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRAListTypeAttributes",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
)


def _clean(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def attribute(value: Any) -> JsonObject:
    """A typed attribute value: `v1.2.3` makes a version, lists make list attributes."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        kind = {bool: "bools", int: "ints", str: "strings"}[type(value[0])]
        return {kind: value}
    return {{bool: "bool", int: "int", str: "string"}[type(value)]: value}


def device(name: str, *, spends: JsonObject | None = None, **fields: Any) -> JsonObject:
    """A device. `attrs` are plain values, `spends` is {counter set: {counter: amount}}."""
    attrs = fields.pop("attrs", {})
    made: JsonObject = {"name": name, **_clean(fields)}
    if attrs:
        made["attributes"] = {key: attribute(value) for key, value in attrs.items()}
    if spends:
        made["consumesCounters"] = [
            {"counterSet": name, "counters": _values(counters)} for name, counters in spends.items()
        ]
    return made


def shared(name: str, capacity: JsonObject | None = None, **fields: Any) -> JsonObject:
    """A device that allows multiple allocations."""
    return device(name, capacity=capacity, allowMultipleAllocations=True, **fields)


def capacity(value: str | int, **policy: Any) -> JsonObject:
    """A capacity, with the fields of a request policy."""
    made: JsonObject = {"value": str(value)}
    if policy:
        made["requestPolicy"] = policy
    return made


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> JsonObject:
    return _clean({"key": key, "value": value or None, "effect": effect})


def toleration(key: str = "", **fields: str) -> JsonObject:
    return _clean({"key": key or None, "operator": "Exists", **fields})


def piece(
    devices: Iterable[JsonObject | str] = (),
    *,
    driver: str = GPU,
    pool: str = NODE,
    name: str = "",
    generation: int = 1,
    of: int = 1,
    counters: JsonObject | None = None,
    **scope: Any,
) -> JsonObject:
    """A ResourceSlice, on the node unless `scope` says otherwise; `counters` is {set: {counter: amount}}."""
    spec: JsonObject = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": of},
        **(scope or {"nodeName": NODE}),
    }
    if counters:
        spec["sharedCounters"] = [
            {"name": name, "counters": _values(values)} for name, values in counters.items()
        ]
    else:
        spec["devices"] = [device(d) if isinstance(d, str) else d for d in devices]
    return {"metadata": {"name": name or f"{driver}-{pool}-{generation}"}, "spec": spec}


def partitioned(
    devices: Sequence[JsonObject], counters: JsonObject, **fields: Any
) -> list[JsonObject]:
    """A pool of two slices: the counters, and the devices that consume them."""
    pool = fields.get("pool", NODE)
    return [
        piece(counters=counters, of=2, **{**fields, "name": f"{pool}-a-counters"}),
        piece(devices, of=2, **{**fields, "name": f"{pool}-b-devices"}),
    ]


def label_selector(key: str, *values: str, operator: str = "In") -> JsonObject:
    """A node selector with one term."""
    requirement = _clean({"key": key, "operator": operator, "values": list(values) or None})
    return {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}


def exactly(name: str = "req", count: int = 1, cls: str = "gpu", **fields: Any) -> JsonObject:
    """A request for a number of devices; `select` is a list of CEL expressions."""
    return {
        "name": name,
        "exactly": _wants(cls, {"allocationMode": "ExactCount", "count": count}, fields),
    }


def everything(name: str = "req", cls: str = "gpu", **fields: Any) -> JsonObject:
    """A request for all devices."""
    return {"name": name, "exactly": _wants(cls, {"allocationMode": "All"}, fields)}


def first_available(name: str, *subrequests: JsonObject) -> JsonObject:
    """Alternatives, written with `exactly` and `everything`."""
    subs = [{"name": sub["name"], **sub["exactly"]} for sub in subrequests]
    return {"name": name, "firstAvailable": subs}


def claim(
    *requests: JsonObject,
    match: Iterable[str | tuple[str, list[str]]] = (),
    distinct: Iterable[str | tuple[str, list[str]]] = (),
    config: list[JsonObject] | None = None,
    align: str | None = None,
) -> JsonObject:
    """A claim; a constraint is an attribute, or an attribute with the requests it applies to."""
    constraints = [_constraint("matchAttribute", item) for item in match]
    constraints += [_constraint("distinctAttribute", item) for item in distinct]
    spec = _clean(
        {"requests": list(requests), "constraints": constraints or None, "config": config}
    )
    metadata = {"name": "claim", "namespace": "default"}
    if align is not None:
        return {
            "metadata": {**metadata, "annotations": {ALIGN: align}},
            "spec": {"devices": spec},
        }
    return {"metadata": metadata, "spec": {"devices": spec}}


def device_class(name: str, *select: str, config: list[JsonObject] | None = None) -> JsonObject:
    spec = _clean({"selectors": [cel(s) for s in select] or None, "config": config})
    return {"metadata": {"name": name}, "spec": spec}


def opaque(driver: str, mode: str) -> JsonObject:
    return {"opaque": {"driver": driver, "parameters": {"mode": mode}}}


def in_use(*names: str, driver: str = GPU, pool: str = NODE) -> JsonObject:
    """`allocated` with exclusive devices."""
    return {"devices": [{"driver": driver, "pool": pool, "device": name} for name in names]}


def shares(name: str, consumed: JsonObject, driver: str = GPU, pool: str = NODE) -> JsonObject:
    """`allocated` with one share of one device."""
    key = {"driver": driver, "pool": pool, "device": name}
    return {
        "sharedDevices": [{**key, "shareID": f"held-{name}"}],
        "aggregatedCapacity": [{**key, "consumedCapacity": consumed}] if consumed else [],
    }


CLASSES = [device_class("gpu", ONLY_GPU), device_class("nic", ONLY_NIC), device_class("any")]


def problem(
    slices: Iterable[JsonObject],
    *claims: JsonObject,
    allocated: JsonObject | None = None,
    off: Iterable[str] = (),
    classes: Iterable[JsonObject] = (),
    name: str = "case",
) -> JsonObject:
    """A whole problem on a node with labels `zone: a` and `tier: 3`, verdicts filled in."""
    nothing: JsonObject = {"devices": [], "sharedDevices": [], "aggregatedCapacity": []}
    named = []
    for number, item in enumerate(claims):
        metadata = {**item["metadata"], "name": f"claim-{number}"}
        named.append({**item, "metadata": metadata})
    return with_verdicts(
        {
            "name": name,
            "features": [gate for gate in ALL_FEATURES if gate not in set(off)],
            "node": {"metadata": {"name": NODE, "labels": {"zone": "a", "tier": "3"}}},
            "classes": [*CLASSES, *classes],
            "slices": list(slices),
            "claims": named,
            "allocated": {**nothing, **(allocated or {})},
        }
    )


def _wants(cls: str, mode: JsonObject, fields: JsonObject) -> JsonObject:
    fields = dict(fields)
    made = {"deviceClassName": cls, **mode}
    if select := fields.pop("select", None):
        made["selectors"] = [cel(expression) for expression in select]
    if asked := fields.pop("asks", None):
        made["capacity"] = {"requests": {key: str(value) for key, value in asked.items()}}
    if fields.pop("admin", False):
        made["adminAccess"] = True
    if tolerates := fields.pop("tolerates", None):
        made["tolerations"] = tolerates
    return {**made, **fields}


def _constraint(kind: str, item: str | tuple[str, list[str]]) -> JsonObject:
    if isinstance(item, str):
        return {kind: item}
    return {kind: item[0], "requests": item[1]}


def _values(counters: JsonObject) -> JsonObject:
    return {name: {"value": str(value)} for name, value in counters.items()}


__all__ = [
    "GPU", "NIC", "NODE", "attribute", "capacity", "claim", "device", "device_class", "everything",
    "exactly", "first_available", "in_use", "label_selector", "opaque", "partitioned", "piece",
    "problem", "shared", "shares", "taint", "toleration",
]  # fmt: skip
