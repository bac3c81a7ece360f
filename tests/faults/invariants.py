"""What must hold in a cluster whatever happens to it, judged by nothing but what its API shows.

`broken_promises` may be asked at any moment, also while everything is on its way: a violation that lasts for one revision is one.
`unsettled` is for a cluster that was left alone for a while: nothing has leaked, and all that can run does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from faults.queue_invariants import is_held, queue_of, runs_without_admission, unsettled_queues
from faults.snapshot import (
    DeviceKey,
    Object,
    Snapshot,
    amount,
    claim_names,
    consumers_of,
    device_of,
    has_condition,
    is_finished,
    name_of,
    owning_pod,
    results_of,
)
from faults.units import GANG_NAME, GANG_SIZE
from faults.volumes import broken_volumes, leaked_volumes

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
Counters = dict[tuple[str, str, str, str], Fraction]
"""Of driver, pool, counter set and counter."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What there is, as slices and nodes tell."""

    nodes: dict[str, Object]
    devices: dict[DeviceKey, Object]
    homes: dict[DeviceKey, str]
    """The nodes of devices that belong to one."""
    counters: Counters

    @classmethod
    def of(cls, now: Snapshot) -> Hardware:
        devices: dict[DeviceKey, Object] = {}
        homes: dict[DeviceKey, str] = {}
        counters: Counters = {}
        for spec in (item["spec"] for item in now.slices):
            driver, pool = spec["driver"], spec["pool"]["name"]
            for device in spec.get("devices") or ():
                devices[driver, pool, device["name"]] = device
                if spec.get("nodeName"):
                    homes[driver, pool, device["name"]] = spec["nodeName"]
            for group in spec.get("sharedCounters") or ():
                for name, counter in group["counters"].items():
                    counters[driver, pool, group["name"], name] = amount(counter["value"])
        nodes = {node["metadata"]["name"]: node for node in now.nodes}
        return cls(nodes, devices, homes, counters)


def broken_promises(now: Snapshot, hardware: Hardware | None = None) -> list[str]:
    """What may never be seen, not even for a moment. With the hardware of another moment, where that is all the same."""
    there = hardware or Hardware.of(now)
    found = [
        *_held_twice(now),
        *_capacity_overcommitted(now, there),
        *_counters_overcommitted(now, there),
    ]
    for claim in now.claims:
        found += _claim_contradictions(claim)
    claims = now.claims_by_name()
    for pod in now.pods:
        if pod["spec"].get("nodeName") and not is_finished(pod):
            found += _bound_against_claims(pod, claims, there)
    found += broken_volumes(now)
    found += runs_without_admission(now)
    return found


def unsettled(now: Snapshot) -> list[str]:
    """What is not over yet, or never will be: leaks, and pods and workloads that do not get on."""
    pods = now.pods_by_uid()
    claims = now.claims_by_name()
    found: list[str] = []
    for claim in now.claims:
        found += _leaks(claim, pods)
    gangs = _gangs(now)
    found += _partly_started(gangs)
    for pod in now.pods:
        if not _lacks_members(pod, gangs) and not is_held(pod):
            found += _not_running(pod, claims)
    for job in now.jobs:
        if not queue_of(job) and not has_condition(job, "Complete"):
            found.append(f"job {name_of(job)} is not complete")
    found += leaked_volumes(now)
    found += unsettled_queues(now)
    for namespace in now.namespaces:
        if namespace["metadata"].get("deletionTimestamp"):
            found.append(f"namespace {namespace['metadata']['name']} is deleted and stays")
    for item in (*now.deployments, *now.sets):
        wanted, ready = item["spec"]["replicas"], _ready(item)
        if wanted != ready:
            found.append(f"{name_of(item)} has {ready} of {wanted} replicas")
    return found


# --- Gangs ----------------------------------------------------------------------------------------


def _gang_of(pod: Object) -> str:
    name: str = pod["metadata"].get("annotations", {}).get(GANG_NAME, "")
    return name


def _gangs(now: Snapshot) -> dict[str, list[Object]]:
    """The members that are to stay, by gang."""
    found: dict[str, list[Object]] = defaultdict(list)
    for pod in now.pods:
        if _gang_of(pod) and not pod["metadata"].get("deletionTimestamp"):
            found[_gang_of(pod)].append(pod)
    return found


def _lacks_members(pod: Object, gangs: dict[str, list[Object]]) -> bool:
    """Whether a pod waits, rightly, for others that are gone."""
    members = gangs.get(_gang_of(pod), [])
    return pod in members and not pod["spec"].get("nodeName") and len(members) < GANG_SIZE


def _partly_started(gangs: dict[str, list[Object]]) -> Iterator[str]:
    """Some members run while others wait, although all of them start together."""
    for name, members in gangs.items():
        bound = sum(bool(pod["spec"].get("nodeName")) for pod in members)
        if 0 < bound < min(GANG_SIZE, len(members)):
            yield f"of gang {name}, {bound} of {len(members)} members have a node"


# --- Devices --------------------------------------------------------------------------------------


def _held_twice(now: Snapshot) -> Iterator[str]:
    holders: dict[DeviceKey, list[tuple[str, str | None]]] = defaultdict(list)
    for claim in now.claims:
        for result in results_of(claim):
            if not result.get("adminAccess"):
                holders[device_of(result)].append((name_of(claim), result.get("shareID")))
    for device, entries in holders.items():
        shares = [share for _, share in entries]
        if len(entries) > 1 and (None in shares or len(set(shares)) < len(shares)):
            names = ", ".join(sorted(name for name, _ in entries))
            yield f"device {'/'.join(device)} is held by several: {names}"


def _capacity_overcommitted(now: Snapshot, there: Hardware) -> Iterator[str]:
    taken: dict[tuple[DeviceKey, str], Fraction] = defaultdict(Fraction)
    for claim in now.claims:
        for result in results_of(claim):
            for name, value in (result.get("consumedCapacity") or {}).items():
                taken[device_of(result), name] += amount(value)
    devices = there.devices
    for (key, name), total in taken.items():
        capacity = (devices[key].get("capacity") or {}).get(name) if key in devices else None
        if capacity is not None and total > amount(capacity["value"]):
            yield f"device {'/'.join(key)}: {total} of {name} is taken, of {capacity['value']}"


def _counters_overcommitted(now: Snapshot, there: Hardware) -> Iterator[str]:
    held = {
        device_of(result)
        for claim in now.claims
        for result in results_of(claim)
        if not result.get("adminAccess")
    }
    taken: Counters = defaultdict(Fraction)
    for key in held & there.devices.keys():
        for consumption in there.devices[key].get("consumesCounters") or ():
            for name, counter in consumption["counters"].items():
                taken[*key[:2], consumption["counterSet"], name] += amount(counter["value"])
    offered = there.counters
    for counter_key, total in taken.items():
        if counter_key in offered and total > offered[counter_key]:
            path = "/".join(counter_key)
            yield f"counter {path}: {total} is taken, of {offered[counter_key]}"


# --- Claims ---------------------------------------------------------------------------------------


def _claim_contradictions(claim: Object) -> Iterator[str]:
    status = claim.get("status", {})
    is_allocated = status.get("allocation") is not None
    consumers = consumers_of(claim)
    if consumers and not is_allocated:
        yield f"claim {name_of(claim)} is reserved but not allocated"
    if is_allocated and FINALIZER not in claim["metadata"].get("finalizers", ()):
        yield f"claim {name_of(claim)} is allocated and can be deleted all the same"
    if len({consumer["uid"] for consumer in consumers}) < len(consumers):
        yield f"claim {name_of(claim)} is reserved twice for the same"
    if status.get("devices") and not is_allocated:
        yield f"claim {name_of(claim)} has the status of devices, but no devices"


def _leaks(claim: Object, pods: dict[str, Object]) -> Iterator[str]:
    name = name_of(claim)
    consumers = consumers_of(claim)
    for consumer in consumers:
        pod = pods.get(consumer["uid"])
        if pod is None:
            yield f"claim {name} is reserved for pod {consumer['name']}, which is gone"
        elif is_finished(pod):
            yield f"claim {name} is reserved for pod {consumer['name']}, which has ended"
    if not consumers and results_of(claim):
        yield f"claim {name} holds devices for nobody"
    if not consumers and claim["metadata"].get("deletionTimestamp"):
        yield f"claim {name} is deleted and stays"
    owner = owning_pod(claim)
    if owner is None:
        return
    pod = pods.get(owner["uid"])
    if pod is None or is_finished(pod):
        yield f"claim {name} was made for pod {owner['name']}, which needs it no more"
    elif claim["metadata"]["name"] not in {made for _, made in claim_names(pod)}:
        yield f"claim {name} was made for pod {owner['name']}, which does not know it"


# --- Pods -----------------------------------------------------------------------------------------


def _bound_against_claims(
    pod: Object,
    claims: dict[tuple[str, str], Object],
    there: Hardware,
) -> Iterator[str]:
    namespace, node = pod["metadata"]["namespace"], pod["spec"]["nodeName"]
    for entry, name in claim_names(pod):
        where = f"pod {name_of(pod)} on {node}, {entry}: "
        claim = None if name is None else claims.get((namespace, name))
        if claim is None:
            yield f"{where}there is no claim"
            continue
        owner = owning_pod(claim)
        if owner is not None and owner["uid"] != pod["metadata"]["uid"]:
            yield f"{where}claim {name} was made for another pod"
        if pod["metadata"]["uid"] not in {consumer["uid"] for consumer in consumers_of(claim)}:
            yield f"{where}claim {name} is not reserved for it"
        allocation = claim.get("status", {}).get("allocation")
        if allocation is None:
            yield f"{where}claim {name} has no devices"
            continue
        if node in there.nodes and not _selects(allocation.get("nodeSelector"), there.nodes[node]):
            yield f"{where}claim {name} has its devices elsewhere"
        for result in results_of(claim):
            home = there.homes.get(device_of(result), node)
            if home != node:
                yield f"{where}device {'/'.join(device_of(result))} is on {home}"
    if node in there.nodes and "extendedResourceClaimStatus" not in pod.get("status", {}):
        for resource in _not_offered(pod, there.nodes[node]):
            yield f"pod {name_of(pod)} on {node}: there is no claim for {resource}"


def _not_offered(pod: Object, node: Object) -> Iterator[str]:
    """Extended resources that a pod asks for and that its node does not have by itself."""
    offered = node.get("status", {}).get("allocatable") or {}
    for container in pod["spec"]["containers"]:
        for resource in container.get("resources", {}).get("requests") or ():
            if "/" in resource and resource not in offered:
                yield resource


def _not_running(pod: Object, claims: dict[tuple[str, str], Object]) -> Iterator[str]:
    name = name_of(pod)
    if pod["metadata"].get("deletionTimestamp"):
        yield f"pod {name} is deleted and stays"
        return
    if is_finished(pod):
        return
    phase = pod.get("status", {}).get("phase")
    if not pod["spec"].get("nodeName"):
        yield f"pod {name} has no node: {_why_not_scheduled(pod)}"
    elif phase != "Running":
        yield f"pod {name} on {pod['spec']['nodeName']} is {phase}"
    for entry, claim in claim_names(pod):
        if claim is None or (pod["metadata"]["namespace"], claim) not in claims:
            yield f"pod {name} lacks the claim of {entry}"


def _why_not_scheduled(pod: Object) -> str:
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "PodScheduled":
            return str(condition.get("message"))
    return "nobody says why"


def _selects(selector: Object | None, node: Object) -> bool:
    """Whether a node selector admits a node."""
    if selector is None:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    labels = node["metadata"].get("labels", {})
    return any(
        all(_meets(each, labels) for each in term.get("matchExpressions") or ())
        and all(_meets(each, fields) for each in term.get("matchFields") or ())
        for term in selector["nodeSelectorTerms"]
        if term.get("matchExpressions") or term.get("matchFields")
    )


def _meets(requirement: Object, values: dict[str, str]) -> bool:
    key, wanted = requirement["key"], requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return values.get(key) in wanted
        case "NotIn":
            return values.get(key) not in wanted
        case "Exists":
            return key in values
        case "DoesNotExist":
            return key not in values
    raise AssertionError(f"an allocation has a node selector with {requirement['operator']}")


# --- Workloads ------------------------------------------------------------------------------------


def _ready(item: Object) -> int:
    """The replicas of a deployment or a set that are ready, as far as its controller has seen what is wanted."""
    status = item.get("status", {})
    behind = status.get("observedGeneration", 0) < item["metadata"]["generation"]
    return 0 if behind else status.get("readyReplicas", 0)
