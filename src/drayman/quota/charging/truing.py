"""What a workload that runs is charged for its devices: less than was reserved, where those it got cost less.

At admission devices cost the most that they may turn out to. When all pods of a set are on nodes, with all of their claims allocated, the
charge of the set falls to what they got. It is not raised: a set whose devices come to cost more, because a pod was replaced or devices or
mappings have changed, is charged as before, and somebody is told. Claims that pods name have a price of their own (`quota/claims`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.kueue_workload import Admission, PodSetAssignment
from drayman.api.pods import entry_claims, is_finished
from drayman.api.resource import ResourceClaim
from drayman.placement.state import ClusterState
from drayman.quota.amounts import Amounts, amount_of, plus, quantity_of, times
from drayman.quota.charging.allocated import allocated_amounts, true_up
from drayman.quota.charging.extended import asked_names
from drayman.quota.charging.mappings import DeviceClassMappings
from drayman.quota.charging.rules import Rules
from drayman.quota.demands import PodSetDemand


class Trued(Struct, frozen=True):
    """What the devices of a workload turned out to cost."""

    admission: Admission
    released: Amounts
    """What is charged less than before."""
    excess: Amounts
    """What the devices cost more than is charged."""
    is_known: bool
    """Whether all devices of at least one pod set are known."""


class Truing:
    """Compares charges with allocations."""

    def __init__(
        self,
        state: ClusterState,
        mappings: DeviceClassMappings,
        *,
        ignores_undeclared: bool = False,
    ) -> None:
        """`ignores_undeclared`: what a queue has no quota for is not counted."""
        self._state = state
        self._mappings = mappings
        self._ignores_undeclared = ignores_undeclared

    def of_workload(
        self,
        admission: Admission,
        demands: Iterable[PodSetDemand],
        pods: Mapping[str, Sequence[Pod]],
        paid: Mapping[str, Amounts],
    ) -> Trued:
        """What pod sets should be charged. `pods` and what is `paid` for claims that they name are by the name of the set."""
        asked = {demand.name: demand for demand in demands}
        released: Amounts = {}
        excess: Amounts = {}
        is_known = False
        assignments = []
        for each in admission.pod_set_assignments:
            demand = asked.get(each.name)
            cost = None
            if demand is not None and demand.devices:
                cost = self._cost(pods.get(each.name, ()), each.count or 0)
            if demand is None or cost is None:
                assignments.append(each)
                continue
            is_known = True
            if self._ignores_undeclared:
                cost = {name: cost[name] for name in cost.keys() & each.resource_usage.keys()}
            reserved = _reserved(each, demand, paid.get(each.name, {}), cost)
            found = true_up(reserved, cost)
            released, excess = plus(released, found.released), plus(excess, found.excess)
            assignments.append(_lowered(each, found.released))
        changed = replace(admission, pod_set_assignments=tuple(assignments))
        return Trued(changed if released else admission, released, excess, is_known)

    def of_claim(self, claim: ResourceClaim) -> Amounts | None:
        """What a claim that pods name costs with the devices that it has; None if it has none, or if that cannot be said."""
        if claim.status.allocation is None:
            return None
        return allocated_amounts([claim], self._state, self._mappings)

    def _cost(self, pods: Sequence[Pod], count: int) -> Amounts | None:
        """What so many pods of a set cost; None as long as there are not as many with all their devices."""
        placed = [pod for pod in pods if _is_placed(pod)]
        if not count or len(placed) != count:
            return None
        total: Amounts = {}
        for pod in placed:
            cost = self._of_pod(pod)
            if cost is None:
                return None
            total = plus(total, cost)
        return total

    def _of_pod(self, pod: Pod) -> Amounts | None:
        named = {each.resource_claim_name for each in pod.spec.resource_claims}
        claims = [
            claim for claim in self._state.claims_used_by(pod) if claim.metadata.name not in named
        ]
        behind = {
            class_name: name
            for name in asked_names(pod.spec, Rules())
            if (class_name := self._state.extended.class_of(name)) is not None
        }
        # An entry may turn out to need no claim, which its name says by being empty.
        made = sum(e.resource_claim_name is None and n != "" for e, n in entry_claims(pod))
        if len(claims) != made + bool(behind):
            return None  # Some are not known yet, or a node has the resource without devices.
        if any(claim.status.allocation is None for claim in claims):
            return None
        return allocated_amounts(claims, self._state, self._mappings, behind)


def _is_placed(pod: Pod) -> bool:
    return (
        bool(pod.spec.node_name)
        and not is_finished(pod)
        and pod.metadata.deletion_timestamp is None
    )


def _reserved(
    assigned: PodSetAssignment, demand: PodSetDemand, paid: Amounts, cost: Amounts
) -> Amounts:
    """What of a set's usage was reserved for the devices of its pods."""
    plain = {
        name: demand.per_pod.get(name, 0) - demand.devices.get(name, 0) for name in demand.devices
    }
    others = plus(times(plain, assigned.count or 0), paid)
    found = {}
    for name in {**demand.devices, **cost}:
        if name in assigned.resource_usage:
            amount = amount_of(name, assigned.resource_usage[name])
            found[name] = max(0, amount - others.get(name, 0))
    return found


def _lowered(assigned: PodSetAssignment, released: Amounts) -> PodSetAssignment:
    usage = dict(assigned.resource_usage)
    for name, amount in released.items():
        usage[name] = quantity_of(name, amount_of(name, usage[name]) - amount)
    return replace(assigned, resource_usage=usage)
