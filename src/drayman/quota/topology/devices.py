"""Devices as a part of what a domain holds.

The resources of a node do not tell how many pods with claims it holds: that depends on which of its devices are free, fit together, and are
not tainted. The allocator knows. Its counts (`placement/domains/copies.py`) limit those by resources, node by node, so that the same search
for domains runs over what nodes really hold. Extended resources with a DeviceClass are counted by the devices alone on nodes that do not
offer them (`TopologyDemand.served`), even when a question leaves devices out.

It is counted in a state of the cluster. What is admitted and not bound yet has to count there (`quota/fitting`), or its devices are offered
twice. Devices that several nodes reach are counted on each of them, so that a domain may seem to hold more than it does; the joint search
that follows has the last word.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from msgspec.structs import replace

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.placement.decision.deciding import Decider
from drayman.placement.demand import Demand
from drayman.placement.domains.copies import Copies, CopiesWanted, CopyCounts
from drayman.placement.joint.seating import Seating
from drayman.placement.state import ClusterState
from drayman.quota.topology.counting import NO_LEADER, Limits


class DeviceCounter:
    """Counts in one state. What it knows of nodes is kept between questions."""

    def __init__(self, state: ClusterState, policy: Policy = Policy.BEST) -> None:
        self._state = state
        self._policy = policy
        self._decider = Decider(state, policy=policy)
        self._counts = CopyCounts(state)

    def served(self, pod: Pod) -> frozenset[str]:
        """The extended resources of a pod that have a DeviceClass."""
        return frozenset(self._state.extended.resources_of(pod))

    def limits(
        self, worker: Pod, count: int, now: float, leader: Pod | None = None
    ) -> Limits | None:
        """What devices allow of so many pods like this one; None if neither it nor the leader asks for any. Raises ClaimsNotReadyError.

        The pods need not exist: their claims are drafted from the templates that the state knows.
        """
        round_ = self._decider.round(now)
        first = round_.demand(worker)
        if leader is None:
            if not first.asks_for_devices:
                return None
            return DeviceLimits(self._counts, first, count)
        leads = round_.demand(leader)
        if not (first.asks_for_devices or leads.asks_for_devices):
            return None
        others = tuple(round_.demand(_copy(worker, number)) for number in range(1, count))
        seating = Seating(round_, self._policy)
        return LedDeviceLimits(self._state, seating, self._counts, (first, *others), leads)


class DeviceLimits:
    """How many pods of a set each node holds, devices included, in a state as it is. Valid until the next change."""

    def __init__(self, counts: CopyCounts, workers: Demand, number: int) -> None:
        """`workers` is what each of so many pods asks for."""
        self._held: Mapping[str, Copies] = counts.of(CopiesWanted(workers, number))

    def on(self, node: str) -> tuple[int, int]:
        held = self._held.get(node)
        return (0 if held is None else held.at_most), NO_LEADER


class LedDeviceLimits:
    """The same for pods that have a leader, which may need devices of its own."""

    def __init__(
        self,
        state: ClusterState,
        seating: Seating,
        counts: CopyCounts,
        workers: tuple[Demand, ...],
        leader: Demand,
    ) -> None:
        self._state = state
        self._seating = seating
        self._workers = workers
        self._leader = leader
        self._held: Mapping[str, Copies] = counts.of(CopiesWanted(workers[0], len(workers)))
        self._beside: dict[Hashable, int] = {}

    def on(self, node: str) -> tuple[int, int]:
        held = self._held.get(node)
        return (0 if held is None else held.at_most), self._with_leader(node)

    def _with_leader(self, name: str) -> int:
        """How many workers the node holds beside the leader. Nodes that look alike to both are asked once."""
        node = self._state.nodes.get(name)
        if node is None:
            return NO_LEADER
        likeness = self._seating.likeness(node, [self._leader, self._workers[0]])
        known = self._beside.get(likeness)
        if known is None:
            known = NO_LEADER
            if self._seating.in_turn(node, [self._leader]):
                known = self._seating.most(node, [self._leader], self._workers)
            self._beside[likeness] = known
        return known


def _copy(pod: Pod, number: int) -> Pod:
    """Another pod like it, with claims of its own."""
    metadata = pod.metadata
    other = replace(metadata, name=f"{metadata.name}-{number}", uid=f"{metadata.uid} {number}")
    return replace(pod, metadata=other)
