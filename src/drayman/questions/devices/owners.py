"""Who holds devices, since when, and at which cost: by workload, by namespace, or by the queue that they are held in.

What is held is in claims. A claim belongs to what made the pods that it is reserved for: a Job, a Deployment, or the pods themselves; one
that no pod uses, to itself. What workloads share is listed for each, and its cost is divided equally among them.

What was paid so far is the cost of today for the time since the allocation: prices of the past are not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Final

from drayman.api.core import Pod
from drayman.api.resource import Device, ResourceClaim
from drayman.api.struct import ApiStruct
from drayman.api.times import seconds_of
from drayman.inventory import DeviceId
from drayman.placement.costs import DeviceCosts
from drayman.placement.prices import NO_PRICES, PriceTable, amount_of, offer_of
from drayman.questions.devices.reading import Reading, allocated
from drayman.topology import DeviceKind, kind
from drayman.workloads.makers import Maker, known_as

NO_QUEUE: Final = "(no queue)"
"""For what has its devices outside of queues."""
_HOUR_S: Final = 3600
_POD: Final = "pods"
_KINDS: Final = {_POD: "Pod", "podgroups": "PodGroup"}
"""Of what claims may be reserved for, by the name of the resource."""


class Grouping(StrEnum):
    """What is put together in one row."""

    WORKLOAD = "workload"
    NAMESPACE = "namespace"
    QUEUE = "queue"
    """The queue, over all namespaces: the ClusterQueue that gave quota, or the Queue of the KAI Scheduler."""


class OwnerRow(ApiStruct, kw_only=True):
    """What one workload, all of a namespace, or the workloads of one queue hold."""

    namespace: str
    """Empty for a queue."""
    owner: str = ""
    """As Kind/name; empty for a namespace."""
    claims: int
    pods: int
    devices: Mapping[str, int]
    """How many devices of each kind."""
    since: str | None = None
    """When the first of them was allocated."""
    cost_per_hour: float | None = None
    """None if no node with these devices has a price."""
    cost: float | None = None
    """What they have cost since then."""
    unpriced_devices: int = 0
    """How many of them are on nodes without a price. They are not in the costs."""


class OwnerTotal(ApiStruct, kw_only=True):
    """What all of them hold together."""

    devices: Mapping[str, int]
    cost_per_hour: float | None = None
    cost: float | None = None
    unpriced_devices: int = 0


class Owners(ApiStruct, kw_only=True):
    """Who holds what."""

    rows: tuple[OwnerRow, ...]
    total: OwnerTotal
    currency: str = ""
    """Of the costs, as in the table of prices; empty if there is none."""


@dataclass(slots=True)
class _Sum:
    """What is held by one of them, added up claim by claim."""

    claims: int = 0
    pods: set[str] = field(default_factory=set)
    devices: dict[DeviceId, DeviceKind] = field(default_factory=dict)
    unpriced: set[DeviceId] = field(default_factory=set)
    since: float | None = None
    since_text: str | None = None
    per_hour: Fraction | None = None
    so_far: Fraction | None = None

    def add(self, held: _Held, among: int, now: float) -> None:
        self.claims += 1
        self.devices.update(held.devices)
        self.unpriced |= held.unpriced
        if held.since is not None and (self.since is None or held.since < self.since):
            self.since, self.since_text = held.since, held.since_text
        if held.cost is not None:
            cost = held.cost / among
            self.per_hour = (self.per_hour or Fraction(0)) + cost
            if held.since is not None:
                hours = Fraction(max(now - held.since, 0.0)) / _HOUR_S
                self.so_far = (self.so_far or Fraction(0)) + cost * hours

    def counts(self) -> dict[str, int]:
        kinds = list(self.devices.values())
        return {each.value: kinds.count(each) for each in DeviceKind if each in kinds}


@dataclass(frozen=True, slots=True)
class _Held:
    """What one claim holds."""

    devices: Mapping[DeviceId, DeviceKind]
    unpriced: frozenset[DeviceId]
    cost: Fraction | None
    since: float | None
    since_text: str | None


def owners(
    reading: Reading,
    now: float,
    prices: PriceTable = NO_PRICES,
    *,
    by: Grouping = Grouping.WORKLOAD,
    namespace: str | None = None,
) -> Owners:
    """Who holds devices in the cluster, or in one namespace, at a time in seconds."""
    pods = {pod.metadata.uid: pod for pod in reading.pods}
    costs = _costs(reading, prices)
    sums: dict[tuple[str, str], _Sum] = {}
    total = _Sum()
    for claim in reading.claims:
        where = claim.metadata.namespace
        if namespace not in (None, where) or not claim.status.results:
            continue
        held = _held(reading, claim, pods, costs)
        if not held.devices:
            continue  # admin access holds nothing
        users = _users_by(by, claim, pods, reading.queues)
        for owner, uids in users.items():
            key = ("" if by is Grouping.QUEUE else where, owner)
            found = sums.setdefault(key, _Sum())
            found.add(held, len(users), now)
            found.pods |= uids
        total.add(held, 1, now)
    return Owners(
        rows=tuple(_row(*key, each) for key, each in sums.items()),
        total=OwnerTotal(
            devices=total.counts(),
            cost_per_hour=_amount(total.per_hour),
            cost=_amount(total.so_far),
            unpriced_devices=len(total.unpriced),
        ),
        currency=prices.currency,
    )


def _row(namespace: str, owner: str, found: _Sum) -> OwnerRow:
    return OwnerRow(
        namespace=namespace,
        owner=owner,
        claims=found.claims,
        pods=len(found.pods),
        devices=found.counts(),
        since=found.since_text,
        cost_per_hour=_amount(found.per_hour),
        cost=_amount(found.so_far),
        unpriced_devices=len(found.unpriced),
    )


def _amount(cost: Fraction | None) -> float | None:
    return None if cost is None else amount_of(round(cost))


def _users_by(
    by: Grouping, claim: ResourceClaim, pods: Mapping[str, Pod], queues: Mapping[str, str]
) -> dict[str, set[str]]:
    """Who uses a claim, with the uids of the pods of each."""
    if by is Grouping.WORKLOAD:
        return _users(claim, pods)
    if by is Grouping.NAMESPACE:
        return {"": _pods_of(claim)}
    found: dict[str, set[str]] = {}
    for consumer in claim.status.reserved_for:
        queue = queues.get(consumer.uid, NO_QUEUE)
        found.setdefault(queue, set())
        if consumer.resource == _POD:
            found[queue].add(consumer.uid)
    return found or {NO_QUEUE: set()}


def _users(claim: ResourceClaim, pods: Mapping[str, Pod]) -> dict[str, set[str]]:
    """What made the pods that a claim is reserved for, with the uids of these pods. A pod that cannot be seen is known by its name."""
    found: dict[str, set[str]] = {}
    for consumer in claim.status.reserved_for:
        pod = pods.get(consumer.uid)
        sort = _KINDS.get(consumer.resource, consumer.resource)
        maker = Maker(sort, consumer.name) if pod is None else known_as(pod)
        found.setdefault(str(maker), set())
        if consumer.resource == _POD:
            found[str(maker)].add(consumer.uid)
    return found or {f"ResourceClaim/{claim.metadata.name}": set()}


def _pods_of(claim: ResourceClaim) -> set[str]:
    return {each.uid for each in claim.status.reserved_for if each.resource == _POD}


def _held(
    reading: Reading, claim: ResourceClaim, pods: Mapping[str, Pod], costs: DeviceCosts
) -> _Held:
    devices: dict[DeviceId, DeviceKind] = {}
    unpriced: set[DeviceId] = set()
    cost: Fraction | None = None
    for device, _, result in allocated((claim,)):
        if result.admin_access:
            continue
        standing = reading.occupancy.devices.get(device)
        published = Device(name=device.device) if standing is None else standing.record.device
        devices[device] = kind(device.driver, published)
        price = None if standing is None else costs.of(standing.node, (result,))
        if price is None:
            unpriced.add(device)
        else:
            cost = (cost or Fraction(0)) + price
    text = _since(claim, pods)
    return _Held(devices, frozenset(unpriced), cost, seconds_of(text), text)


def _since(claim: ResourceClaim, pods: Mapping[str, Pod]) -> str | None:
    """When a claim got its devices. Where its scheduler did not note that, when the first pod that uses it started."""
    allocation = claim.status.allocation
    if allocation is not None and allocation.allocation_timestamp is not None:
        return allocation.allocation_timestamp
    users = (pods.get(consumer.uid) for consumer in claim.status.reserved_for)
    started = (pod.status.start_time for pod in users if pod is not None)
    return min((each for each in started if each is not None), key=seconds_of, default=None)


def _costs(reading: Reading, prices: PriceTable) -> DeviceCosts:
    nodes = {node.metadata.name: node for node in reading.nodes}
    found = {name: offer_of(node.metadata.labels, prices).price for name, node in nodes.items()}
    inventory, ledger = reading.occupancy.inventory, reading.occupancy.ledger
    return DeviceCosts(found.get, lambda name: inventory.view(nodes[name], ledger))
