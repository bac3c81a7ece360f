"""The floor of a real cluster: pods are placed by the search that the scheduler uses, on a state that counts everything.

Of a group that has no wish for a level, pods go where the least is left of the resource that queues share, one after the other, so that
large gaps stay; of equal nodes, to the one where they were. If that finds nothing for one of them, or where there is a wish, all are
placed by the joint search (`placement.joint`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.placement.decision.deciding import Decider
from drayman.placement.demand import Demand
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.gangs.gang import Gang
from drayman.placement.joint.members import Chosen, Ready
from drayman.placement.joint.places import Ground, Places
from drayman.placement.joint.seating import Seat, Seats
from drayman.placement.nodes import NodeState
from drayman.placement.state import ClusterState
from drayman.quota.shares.groups import Group, Worker, Workers


class PlaceError(Exception):
    """A pod that is said to be on a node has no place there."""


class ClusterFloor:
    """The nodes of a cluster state. The pods of groups are those that the state knows and that have no node in it."""

    def __init__(
        self, state: ClusterState, pods: Mapping[str, Pod], resource: str, now: float
    ) -> None:
        """`pods` are those of all groups, by the names that workers have."""
        self._state = state
        self._resource = resource
        self._round = Decider(state).round(now)
        self._ground = Ground(self._round, Domains(state), CopyCounts(state), Policy.BEST)
        self._seating = self._ground.seating
        self._pods = pods
        self._demands: dict[str, Demand] = {}
        self._homes: dict[str, str] = {}

    def capacity(self) -> int:
        return sum(
            node.facts.shape.extended.get(self._resource, 0) for node in self._state.nodes.values()
        )

    def node_of(self, worker: str) -> str | None:
        return self._state.node_of(self._pods[worker].metadata.uid)

    def put(self, worker: Worker, node: str) -> None:
        """Raises PlaceError."""
        target = self._state.nodes.get(node)
        seats = () if target is None else self._seating.in_turn(target, [self._demand(worker.name)])
        if not seats:
            raise PlaceError(f"pod {worker.name} does not fit on node {node}")
        self._seating.take(seats[0])

    def lift(self, worker: str) -> None:
        node = self.node_of(worker)
        if node is not None:
            self._homes[worker] = node
        self._state.trial().evict(self._pods[worker].metadata.uid)

    @contextmanager
    def trial(self) -> Iterator[None]:
        with self._state.trial():
            yield

    def seat(self, group: Group, workers: Workers) -> Mapping[str, str] | None:
        if group.gang is None or not self._could_hold(workers):
            return None
        seats = None if _has_wish(group.gang) else self._packed(workers)
        if seats is None:
            seats = self._together(group.gang, workers)
        if seats is None:
            return None
        for each in seats:
            self._seating.take(each)
        return {each.demand.pod.metadata.name: each.found.node.facts.name for each in seats}

    def _packed(self, workers: Workers) -> Seats | None:
        """Seats on the nodes that have the least left, one pod after the other."""
        seats: list[Seat] = []
        with self._state.trial():
            for each in workers:
                seat = next(self._tightest(each), None)
                if seat is None:
                    return None
                self._seating.take(seat)
                seats.append(seat)
        return tuple(seats)

    def _tightest(self, worker: Worker) -> Iterator[Seat]:
        demand, home = self._demand(worker.name), self._homes.get(worker.name)

        def rank(node: NodeState) -> tuple[int, bool, int]:
            return self._left(node), node.facts.name != home, node.index

        nodes = sorted(self._state.nodes.values(), key=rank)
        for node in nodes:
            if self._left(node) >= worker.amount:
                yield from self._seating.in_turn(node, [demand])

    def _together(self, gang: Gang, workers: Workers) -> Seats | None:
        """Seats for all of them at once, as near to each other as the gang wishes."""
        members = self._state.gangs.waiting(gang.key)
        uids = {each.name: self._pods[each.name].metadata.uid for each in workers}
        ready = tuple(Ready(members[uids[w.name]], self._demand(w.name)) for w in workers)
        return Places(self._ground, gang, Chosen(ready, {})).search()

    def _could_hold(self, workers: Workers) -> bool:
        """Whether there is enough left by counting alone, which saves most searches."""
        left = [self._left(node) for node in self._state.nodes.values()]
        for size in {each.amount for each in workers} - {0}:
            number = sum(each.amount >= size for each in workers)
            if sum(max(0, amount) // size for amount in left) < number:
                return False
        return True

    def _left(self, node: NodeState) -> int:
        name = self._resource
        return node.facts.shape.extended.get(name, 0) - node.usage.extended.get(name, 0)

    def _demand(self, worker: str) -> Demand:
        known = self._demands.get(worker)
        if known is None:
            known = self._demands[worker] = self._round.demand(self._pods[worker])
        return known


def _has_wish(gang: Gang) -> bool:
    return bool(gang.wish) or any(each.wish for each in gang.subgroups)
