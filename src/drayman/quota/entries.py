"""What the engine knows about one workload: what its object says, what it holds, and how far it was tried."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.kueue_workload import Admission, Workload
from drayman.quota.amounts import FlavorResource
from drayman.quota.claims.prices import ClaimPrice
from drayman.quota.claims.users import ClaimUse
from drayman.quota.demands import PodSetDemand, Unpriced
from drayman.quota.tree.ledger import Usage
from drayman.quota.tree.nodes import FlavorAmounts

Positions = Mapping[tuple[str, str], int]
"""By pod set and resource, the flavor that was tried last. What was tried to the end is not in it."""


class Attempt(NamedTuple):
    """When a workload was last tried."""

    cycle: int
    changes: int
    """What had happened to its queue by then."""

    def is_outdated(self, now: Attempt) -> bool:
        """Whether it was not in the cycle before, and things have changed since."""
        return now.cycle - self.cycle > 1 and now.changes > self.changes


class Refusal(Struct, frozen=True):
    """Why a workload has no quota: the reason and the message of its condition QuotaReserved=False."""

    reason: str
    message: str


class Holding(Struct, frozen=True):
    """Quota that a workload has."""

    cluster_queue: str
    admission: Admission
    usage: Usage
    """What counts: less than what was reserved once pods are reclaimable, and with what the workload pays for claims now."""
    own: FlavorAmounts
    """What counts of quota without the claims that others may use as well."""
    uses: frozenset[FlavorResource]
    """Every flavor and resource that was assigned, also where nothing of it is used."""
    reserved_at: float
    claims: tuple[ClaimUse, ...] = ()
    """Those that others may use as well, as the workload's object has them."""
    to_others: FlavorAmounts = {}
    """What is not free when the workload gives its quota back, because others pay it then."""

    def is_same(self, other: Holding) -> bool:
        """Whether as much of the same is held, whenever that was reserved, and whoever pays for claims."""
        return (
            self.cluster_queue == other.cluster_queue
            and self.own == other.own
            and self.usage.places == other.usage.places
            and [use.identity for use in self.claims] == [use.identity for use in other.claims]
        )

    @property
    def freed(self) -> Usage:
        """What is free when the workload gives its quota back."""
        if not self.to_others:
            return self.usage
        kept = self.to_others
        quota = {what: amount - kept.get(what, 0) for what, amount in self.usage.quota.items()}
        return replace(self.usage, quota=quota)


class Facts(Struct, frozen=True):
    """What a workload's object says, as far as decisions depend on it."""

    key: str
    namespace: str
    uid: str
    queue: str
    """The key of its local queue."""
    priority: int
    created: float
    queued_since: float
    """What its place in the queue depends on: when it was created, or evicted for a reason that sends it to the back."""
    active: bool
    finished: bool
    evicted: bool
    """Whether it has been told to give up its quota."""
    evicted_for: str
    requeue_at: float
    """Not before then; 0: at any time."""
    demands: tuple[PodSetDemand, ...] | Unpriced
    failed_checks: bool
    """Whether an admission check asks for another try, or refuses."""
    gates_closed: bool
    """Whether it may not preempt anybody yet."""
    admitted: bool
    pods_ready: bool
    replaces: str = ""
    """The key of the workload whose place it takes when it gets quota: a smaller slice of the same job, with part of what it asks for."""
    owner: str = ""
    """The uid of the object that it is for; empty: nobody's."""
    runs_elsewhere: bool = False
    """Whether its pods run in another cluster, so that it costs what devices of that cluster cost."""

    def takes_the_place_of(self, other: Facts) -> bool:
        """Whether it counts instead of another one: of its own job only, since anybody might write that it replaces somebody."""
        return self.replaces == other.key and bool(self.owner) and self.owner == other.owner

    def asks_otherwise(self, later: Facts) -> bool:
        """Whether it asks for something else later on, or in another place, or with another right."""
        return (
            self.demands != later.demands
            or self.priority != later.priority
            or self.queue != later.queue
            or self.active != later.active
        )

    @property
    def order(self) -> tuple[int, float, str]:
        """Its place among the workloads of a queue: by priority, then by age."""
        return -self.priority, self.queued_since, self.uid


class Entry:
    """A workload in the engine."""

    __slots__ = (
        "assumed",
        "attempt",
        "facts",
        "holding",
        "positions",
        "refusal",
        "shape",
        "source",
        "told",
        "waits_in",
    )

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.shape = shape_of(facts)
        self.holding: Holding | None = None
        self.assumed = False
        """Whether it holds what the engine gave it and its object does not say so yet."""
        self.positions: Positions = {}
        """Where to go on with flavors. Empty: from the first."""
        self.attempt = Attempt(0, 0)
        """When these were found."""
        self.refusal: Refusal | None = None
        """Why it got nothing when all flavors had been tried."""
        self.source: Workload | None = None
        """The object that it was last read from."""
        self.told = ""
        """The reason in its condition QuotaReserved, if it has one."""
        self.waits_in = ""
        """The cluster queue that it waits in, if any."""

    def update(self, facts: Facts) -> None:
        """Follow a change of its object."""
        if facts.demands != self.facts.demands:
            self.positions, self.refusal = {}, None
        self.facts = facts
        self.shape = shape_of(facts)

    @property
    def key(self) -> str:
        return self.facts.key

    @property
    def admin_devices(self) -> int:
        """How many devices the pods that it has quota for look at with admin access. They cost nothing."""
        demands = self.facts.demands
        if self.holding is None or isinstance(demands, Unpriced):
            return 0
        pods = {e.name: e.count or 0 for e in self.holding.admission.pod_set_assignments}
        return sum(each.admin_devices * pods.get(each.name, 0) for each in demands)

    def __repr__(self) -> str:
        return f"workload {self.facts.key}"


def shape_of(facts: Facts) -> Hashable:
    """Workloads of one queue with equal shapes get the same answer: what one of them does not get now, the others do not either."""
    demands = facts.demands
    if isinstance(demands, Unpriced):
        return facts.key
    return (
        facts.priority,
        facts.replaces,
        facts.runs_elsewhere,
        tuple(map(_demand_shape, demands)),
    )


def _demand_shape(demand: PodSetDemand) -> Hashable:
    return (
        demand.name,
        demand.count,
        demand.min_count,
        frozenset(demand.per_pod.items()),
        tuple(map(_claim_shape, demand.claims)),
        frozenset(demand.of_nodes.items()),
        frozenset(demand.node_selector.items()),
        demand.affinity,
        demand.tolerations,
        demand.topology,
        _claims(demand),
    )


def _claim_shape(price: ClaimPrice) -> Hashable:
    return price.claim, frozenset(price.amounts.items()), price.share


def _claims(demand: PodSetDemand) -> Hashable:
    """What decides, besides amounts, on which nodes there are devices for the pods."""
    if demand.sample is None:
        return ()
    return demand.sample.metadata.namespace, tuple(
        (entry.resource_claim_name, entry.resource_claim_template_name)
        for entry in demand.sample.spec.resource_claims
    )
