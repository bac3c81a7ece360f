"""How much of a cluster's devices is taken: every device once, in exactly one state.

Counting devices is easy to get wrong. A partition that is held blocks its GPU and the partitions that overlap it; a whole GPU that is held
blocks all its partitions; a shared device is neither free nor used up; admin access takes nothing; slices of an old generation do not
count; a device that many nodes reach is still one device. So the count never disagrees with the allocator: states are read from the views
that it searches, and a device is FREE exactly if no claim holds it, a request for it alone would get it, and a node that can use it takes
pods.

If several states apply, the first in `State` counts: a device that is used and tainted is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from drayman.api.core import Node
from drayman.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.inventory.counters import exceeds
from drayman.inventory.device import Amount, DeviceRecord
from drayman.inventory.features import Features
from drayman.inventory.identity import DeviceId
from drayman.inventory.inventory import Inventory
from drayman.inventory.ledger import Holding, Ledger
from drayman.inventory.pool import ResolvedPool
from drayman.inventory.published import PublishedPool, published
from drayman.inventory.taints import Taints
from drayman.inventory.units import UnitId, units
from drayman.inventory.usage import Usage
from drayman.placement.fit.readiness import Closed, closed_by

NO_NODE: Final = "no node can use it"
DRAWN: Final = "what it needs is used by devices that overlap it"
OVERDRAWN: Final = "more of its pool's counters is used than there is"


class State(StrEnum):
    """What a device is counted as."""

    USED = "used"
    """A claim holds all of it."""
    SHARED = "shared"
    """A claim holds a share of it. There may be room for more."""
    PARTITIONED = "partitioned"
    """No claim holds it as a whole, and none can, because parts of it are held."""
    TAINTED = "tainted"
    """No claim holds it, and only requests that tolerate its taints can get it."""
    UNAVAILABLE = "unavailable"
    """No claim holds it, and none can get it."""
    FREE = "free"
    """No claim holds it, and any request for it gets it."""
    UNKNOWN = "unknown"
    """Free, unless it is held by a claim that the user may not see."""


@dataclass(frozen=True, slots=True)
class DeviceStanding:
    """A device and what it is counted as."""

    record: DeviceRecord
    state: State
    unit: UnitId
    taints: tuple[tuple[str, str, str], ...] = ()
    """Key, value and effect of those that keep requests away, whatever the state."""
    remaining: tuple[Amount, ...] = ()
    """What is left of each capacity, for a device that can be shared."""
    why: str = ""
    """Why it is unavailable."""
    closed: tuple[Closed, ...] = ()
    """Why no node that can use it takes pods, whatever the state."""

    @property
    def id(self) -> DeviceId:
        return self.record.id

    @property
    def node(self) -> str:
        """The node it belongs to; empty if several nodes may reach it."""
        return self.record.node_name or ""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """All devices of a cluster."""

    devices: Mapping[DeviceId, DeviceStanding]
    """By driver and pool, and within a pool in the order of its slices."""
    pools: tuple[PublishedPool, ...]
    inventory: Inventory
    ledger: Ledger


def occupancy(
    nodes: Iterable[Node],
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
    rules: Iterable[DeviceTaintRule] = (),
    *,
    all_claims: bool = True,
    features: Features | None = None,
) -> Occupancy:
    """Count the devices. `all_claims`: whether these are all the claims, so that devices none of them holds are free.

    Raises SelectorError if a slice selects nodes in a way that cannot be read.
    """
    inventory, ledger = Inventory(features), Ledger()
    slices, rules = tuple(slices), tuple(rules)
    for slice_ in slices:
        inventory.apply_slice(slice_)
    for rule in rules:
        inventory.apply_taint_rule(rule)
    for claim in claims:
        ledger.observe_claim(claim)
    counted = count(inventory, ledger, nodes, slices, rules)
    if all_claims:
        return counted
    devices = {device: doubted(standing) for device, standing in counted.devices.items()}
    return replace(counted, devices=devices)


def doubted(standing: DeviceStanding) -> DeviceStanding:
    """The same for a user who may not see all claims: what looks free may not be."""
    return replace(standing, state=State.UNKNOWN) if standing.state is State.FREE else standing


def count(
    inventory: Inventory,
    ledger: Ledger,
    nodes: Iterable[Node],
    slices: Iterable[ResourceSlice],
    rules: tuple[DeviceTaintRule, ...] = (),
) -> Occupancy:
    """Count the devices of an inventory that has these slices and taint rules. Raises SelectorError."""
    seen, problems = _seen(inventory, ledger, nodes)
    pools = published(slices, problems)
    features = inventory.features
    found: dict[DeviceId, DeviceStanding] = {}
    for pool in pools:
        for device, (slice_, published_as) in pool.devices.items():
            if device in seen:
                found[device] = seen.pop(device)
            else:
                record = DeviceRecord(slice_, published_as, sharing=features.consumable_capacity)
                found[device] = _unseen(record, pool, rules, features, ledger.held(device))
    found |= seen  # with older generations still in use, where a node has no newer one
    return Occupancy(found, pools, inventory, ledger)


def tally(standings: Iterable[DeviceStanding]) -> Counter[State]:
    """How many devices are in each state."""
    return Counter(standing.state for standing in standings)


# --- Devices that some node sees ------------------------------------------------------------------


def _seen(
    inventory: Inventory, ledger: Ledger, nodes: Iterable[Node]
) -> tuple[dict[DeviceId, DeviceStanding], dict[tuple[str, str], ResolvedPool]]:
    """The devices in the nodes' views, each shared view read once, and the pools with problems.

    A device that an open node can use is not closed, so nodes that take pods come first.
    """
    found: dict[DeviceId, DeviceStanding] = {}
    problems: dict[tuple[str, str], ResolvedPool] = {}
    looked_at: set[Usage] = set()
    for node, closed in sorted(
        ((node, closed_by(node)) for node in nodes), key=lambda e: bool(e[1])
    ):
        view = inventory.view(node, ledger)
        problems |= {problem.id: problem for problem in view.problems}
        for part, taints in zip(view.parts, view.taints, strict=True):
            if part in looked_at:
                continue
            looked_at.add(part)
            for standing in _standings(part, taints):
                known = found.get(standing.id)
                # Nodes agree on what is held. One node may be able to use what another cannot reach.
                if known is None or known.state is State.UNAVAILABLE:
                    found[standing.id] = _closed(standing, closed) if closed else standing
    return found, problems


def _closed(standing: DeviceStanding, closed: tuple[Closed, ...]) -> DeviceStanding:
    """A device of nodes that take no pods: no pod can get it there."""
    if standing.state is not State.FREE:
        return replace(standing, closed=closed)
    whose = "its node is" if standing.node else "the nodes that can use it are"
    why = f"{whose} {' and '.join(each.words for each in closed)}"
    return replace(standing, closed=closed, state=State.UNAVAILABLE, why=why)


def _standings(usage: Usage, taints: Taints) -> Iterator[DeviceStanding]:
    hardware = usage.hardware
    tolerated = taints.tolerated(()) if hardware.features.device_taints else hardware.everything
    free = obtainable(usage, tolerated) & ~usage.shared
    partitioned = _partitioned(usage) & ~free
    layout = hardware.derived(units)
    for position, record in enumerate(hardware.records):
        bit = 1 << position
        why = ""
        if usage.in_use & bit:
            state = State.USED
        elif usage.shared & bit:
            state = State.SHARED
        elif partitioned & bit:
            state = State.PARTITIONED
        elif ~tolerated & bit:
            state = State.TAINTED
        elif free & bit:
            state = State.FREE
        else:
            state, why = State.UNAVAILABLE, _obstacle(usage, bit)
        yield DeviceStanding(
            record,
            state,
            layout.of_device[position],
            () if tolerated & bit else taints.blocking(record),
            usage.remaining(position) if record.shareable else (),
            why,
        )


def obtainable(usage: Usage, tolerated: int) -> int:
    """The devices that a request for a single one would get, among those whose taints it tolerates."""
    hardware = usage.hardware
    features = hardware.features
    devices = hardware.selects_node & tolerated & ~usage.in_use & ~usage.overcommitted
    devices &= ~(usage.counter_blocked & ~usage.paid)
    if not features.partitionable_devices:
        devices &= ~hardware.consumers
    if not features.binding_conditions:
        devices &= ~hardware.binding
    if features.consumable_capacity:
        charges = hardware.charges(())
        for kind, left, members in usage.capacity_groups:
            if exceeds(charges[kind], left):
                devices &= ~members
    return devices


def _partitioned(usage: Usage) -> int:
    """Whole devices of which some part is taken, including by devices on other nodes."""
    hardware = usage.hardware
    found = 0
    for position in hardware.derived(units).wholes:
        for index, _ in hardware.consumption[position]:
            if usage.counters[index] != hardware.counter_sets[index].limits:
                found |= 1 << position
    return found


def _obstacle(usage: Usage, bit: int) -> str:
    if not usage.hardware.selects_node & bit:
        return NO_NODE
    if usage.overcommitted & bit:
        return OVERDRAWN
    if usage.counter_blocked & ~usage.paid & bit:
        return DRAWN
    return "its capacities cannot be had as they are published"


# --- Devices that no node sees --------------------------------------------------------------------


def _unseen(
    record: DeviceRecord,
    pool: PublishedPool,
    rules: tuple[DeviceTaintRule, ...],
    features: Features,
    held: Iterable[Holding],
) -> DeviceStanding:
    """A device of a pool that is not usable, or for nodes that do not exist. A claim that holds it still does."""
    taints = Taints((record,), rules).blocking(record) if features.device_taints else ()
    whole = [not features.consumable_capacity or holding.share_id is None for holding in held]
    why = ""
    if whole:
        state = State.USED if any(whole) else State.SHARED
    elif taints:
        state = State.TAINTED
    else:
        state, why = State.UNAVAILABLE, pool.reason or NO_NODE
    return DeviceStanding(record, state, UnitId(*record.id), taints, (), why)
