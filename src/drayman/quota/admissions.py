"""What workloads hold, as their status says it, and back: the one place that reads and writes `status.admission`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from drayman.api.kueue_workload import Admission, PodSetAssignment, ReclaimablePods
from drayman.quota.amounts import Amounts, FlavorResource, amount_of, quantity_of
from drayman.quota.demands import Placement, PodSetDemand, Unpriced
from drayman.quota.entries import Holding
from drayman.quota.flavors.assignment import Assignment
from drayman.quota.topology.assignments import assignment_of, placement_of
from drayman.quota.tree.ledger import Usage


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


def holding_of(
    admission: Admission,
    reserved_at: float,
    demands: tuple[PodSetDemand, ...] | Unpriced,
    reclaimable: Iterable[ReclaimablePods] = (),
) -> Holding:
    """What counts of an admission. Pods that are reclaimable count no longer."""
    done = {each.name: each.count for each in reclaimable}
    of_nodes: dict[str, Amounts] = {}
    if not isinstance(demands, Unpriced):
        of_nodes = {demand.name: demand.of_nodes for demand in demands}
    places: list[tuple[Placement, Amounts]] = []
    quota: dict[FlavorResource, int] = {}
    uses: set[FlavorResource] = set()
    for each in admission.pod_set_assignments:
        left = _left(each, done)
        if each.topology_assignment is not None:
            places.append((placement_of(each.topology_assignment), of_nodes.get(each.name, {})))
        for resource, flavor in each.flavors.items():
            what = FlavorResource(flavor, resource)
            uses.add(what)
            if resource in each.resource_usage:
                amount = amount_of(resource, each.resource_usage[resource])
                quota[what] = quota.get(what, 0) + _scaled(amount, left)
    return Holding(
        admission.cluster_queue,
        admission,
        Usage(quota, tuple(places)),
        frozenset(uses),
        reserved_at,
    )


def shrunk(admission: Admission, pod_set: str, count: int) -> Admission:
    """An admission with fewer pods of a set, and as much less of everything; parts are rounded up."""
    return replace(
        admission,
        pod_set_assignments=tuple(
            _with_fewer(each, count) if each.name == pod_set else each
            for each in admission.pod_set_assignments
        ),
    )


def _with_fewer(assigned: PodSetAssignment, count: int) -> PodSetAssignment:
    before = assigned.count or 0
    if before <= count:
        return assigned
    usage = {
        name: quantity_of(name, -(-amount_of(name, quantity) * count // before))
        for name, quantity in assigned.resource_usage.items()
    }
    return replace(assigned, count=count, resource_usage=usage)


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
