"""What workloads hold, as their status says it, and back: the one place that reads and writes `status.admission`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from drayman.api.kueue_workload import Admission, PodSetAssignment, ReclaimablePods
from drayman.api.quantity import Quantity
from drayman.quota.amounts import (
    Amounts,
    FlavorResource,
    amount_of,
    plus,
    quantity_of,
    saturated,
)
from drayman.quota.claims.prices import ObjectKey
from drayman.quota.claims.users import ClaimUse
from drayman.quota.demands import Placement, PodSetDemand, Unpriced
from drayman.quota.entries import Holding
from drayman.quota.flavors.assignment import Assignment
from drayman.quota.topology.assignments import assignment_of, placement_of
from drayman.quota.tree.ledger import Usage

_NOTHING: Final = Quantity(0)


def admission_of(cluster_queue: str, assignment: Assignment) -> Admission:
    """What a workload is given, as its status has it."""
    return Admission(
        cluster_queue=cluster_queue,
        pod_set_assignments=tuple(
            PodSetAssignment(
                name=pods.demand.name,
                flavors={name: choice.flavor for name, choice in sorted(pods.choices.items())},
                resource_usage={
                    name: quantity_of(name, pods.requests[name]) for name in sorted(pods.choices)
                },
                count=pods.count,
                topology_assignment=None
                if pods.placement is None
                else assignment_of(pods.placement),
            )
            for pods in assignment.pod_sets
        ),
    )


def uses_of_claims(assignment: Assignment) -> tuple[ClaimUse, ...]:
    """The claims that a workload is given quota with; in which turn it uses them is not known yet."""
    return tuple(
        ClaimUse(price, pods.demand.name, paid=paid)
        for pods in assignment.pod_sets
        for price, paid in pods.claims
    )


def holding_of(
    admission: Admission,
    reserved_at: float,
    demands: tuple[PodSetDemand, ...] | Unpriced,
    reclaimable: Iterable[ReclaimablePods] = (),
    claims: tuple[ClaimUse, ...] = (),
) -> Holding:
    """What counts of an admission. Pods that are reclaimable count no longer; claims count as long as the workload uses them."""
    done = {each.name: each.count for each in reclaimable}
    of_nodes: dict[str, Amounts] = {}
    if not isinstance(demands, Unpriced):
        of_nodes = {demand.name: demand.of_nodes for demand in demands}
    places: list[tuple[Placement, Amounts]] = []
    own: dict[FlavorResource, int] = {}
    quota = own if not claims else dict[FlavorResource, int]()
    uses: set[FlavorResource] = set()
    for each in admission.pod_set_assignments:
        left = _left(each, done)
        if each.topology_assignment is not None:
            places.append((placement_of(each.topology_assignment), of_nodes.get(each.name, {})))
        paid = _paid(claims, each.name) if claims else {}
        for resource, flavor in each.flavors.items():
            what = FlavorResource(flavor, resource)
            uses.add(what)
            if resource in each.resource_usage:
                amount = amount_of(resource, each.resource_usage[resource])
                shared = min(amount, paid.get(resource, 0))
                own[what] = own.get(what, 0) + _scaled(amount - shared, left)
                if claims:
                    quota[what] = own[what] + shared
    return Holding(
        admission.cluster_queue,
        admission,
        Usage(quota, tuple(places)),
        own,
        frozenset(uses),
        reserved_at,
        claims,
    )


def shrunk(admission: Admission, pod_set: str, count: int, claims: Iterable[ClaimUse]) -> Admission:
    """An admission with fewer pods of a set, and as much less of everything but what is paid for claims; parts are rounded up."""
    paid = _paid(claims, pod_set)
    return replace(
        admission,
        pod_set_assignments=tuple(
            _with_fewer(each, count, paid) if each.name == pod_set else each
            for each in admission.pod_set_assignments
        ),
    )


def _with_fewer(assigned: PodSetAssignment, count: int, paid: Amounts) -> PodSetAssignment:
    before = assigned.count or 0
    if before <= count:
        return assigned
    usage = {}
    for name, quantity in assigned.resource_usage.items():
        amount = amount_of(name, quantity)
        shared = min(amount, paid.get(name, 0))
        usage[name] = quantity_of(name, shared - (-(amount - shared) * count // before))
    return replace(assigned, count=count, resource_usage=usage)


def risen(
    admission: Admission, demands: Iterable[PodSetDemand], claims: Iterable[ClaimUse]
) -> tuple[Admission, dict[FlavorResource, int]] | None:
    """An admission with what its pods cost by now where that is more, and the difference. None where pods cost no more, or something of
    which the admission has no flavor."""
    asked = {demand.name: demand for demand in demands}
    uses = tuple(claims)
    changes: dict[str, dict[str, int]] = {}
    more: dict[FlavorResource, int] = {}
    for each in admission.pod_set_assignments:
        demand, paid = asked.get(each.name), _paid(uses, each.name)
        for name, amount in {} if demand is None else demand.per_pod.items():
            wanted = saturated(amount * (each.count or 0))
            if name not in each.flavors:
                continue
            has = amount_of(name, each.resource_usage.get(name, _NOTHING)) - paid.get(name, 0)
            if wanted > has:
                changes.setdefault(each.name, {})[name] = wanted - has
                what = FlavorResource(each.flavors[name], name)
                more[what] = more.get(what, 0) + wanted - has
    return (_changed(admission, changes), more) if more else None


def with_paid(
    admission: Admission, uses: Iterable[ClaimUse], parts: Mapping[ObjectKey, Amounts]
) -> tuple[Admission, tuple[ClaimUse, ...]]:
    """An admission, and how claims are used, once other parts of their prices are paid."""
    flavors = {each.name: each.flavors for each in admission.pod_set_assignments}
    changes: dict[str, dict[str, int]] = {}
    found = []
    for use in uses:
        counted = flavors.get(use.pod_set, {})
        paid = {n: amount for n, amount in parts[use.claim].items() if amount and n in counted}
        change = changes.setdefault(use.pod_set, {})
        for name in {**use.paid, **paid}:
            difference = paid.get(name, 0) - use.paid.get(name, 0)
            change[name] = change.get(name, 0) + difference
        found.append(replace(use, paid=paid))
    return _changed(admission, changes), tuple(found)


def _changed(admission: Admission, changes: Mapping[str, Amounts]) -> Admission:
    if not any(amount for change in changes.values() for amount in change.values()):
        return admission
    assignments = []
    for each in admission.pod_set_assignments:
        usage = dict(each.resource_usage)
        for name, change in changes.get(each.name, {}).items():
            if change:
                amount = amount_of(name, usage[name]) if name in usage else 0
                usage[name] = quantity_of(name, max(0, amount + change))
        assignments.append(replace(each, resource_usage=usage))
    return replace(admission, pod_set_assignments=tuple(assignments))


def _paid(claims: Iterable[ClaimUse], pod_set: str) -> Amounts:
    """What a pod set pays for claims, as the workload's object has it."""
    total: Amounts = {}
    for use in claims:
        if use.pod_set == pod_set:
            total = plus(total, use.paid)
    return total


def by_resource(holding: Holding) -> dict[str, int]:
    """What a workload holds, all flavors together."""
    total: dict[str, int] = {}
    for what, amount in holding.usage.quota.items():
        total[what.resource] = total.get(what.resource, 0) + amount
    return total


def _left(assigned: PodSetAssignment, done: Mapping[str, int]) -> tuple[int, int]:
    """How many pods count, of how many."""
    count = assigned.count or 0
    return max(0, count - done.get(assigned.name, 0)), count


def _scaled(amount: int, left: tuple[int, int]) -> int:
    counting, count = left
    return amount if counting == count or count == 0 else amount * counting // count
