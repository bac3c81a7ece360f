"""Places for pods that need them at the same time, among given nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from drayman.allocator import Policy
from drayman.placement.decision.deciding import Round
from drayman.placement.demand import Demand
from drayman.placement.domains.budget import OutOfSteps
from drayman.placement.joint.packing import Load, pack
from drayman.placement.joint.seating import Seat, Seating, Seats
from drayman.placement.joint.stepwise import Stepwise
from drayman.placement.nodes import NodeState


class Arranger:
    """Finds places for several pods in one round. Changes nothing."""

    def __init__(self, round_: Round, policy: Policy) -> None:
        self._round = round_
        self._state = round_.decider.state
        self._seating = Seating(round_, policy)
        self.gave_up = False
        """Whether a search has ended without an answer: then that there is no place does not mean that there is none."""

    def arrange(
        self, demands: Sequence[Demand], least: int, nodes: Sequence[NodeState]
    ) -> Seats | None:
        """Seats for the pods on the nodes, of which the first are preferred; None if fewer than `least` find one."""
        if len(demands) < least:
            return None
        try:
            if self.are_apart(demands):
                found = self._packed(demands, least, nodes)
                if found is None or not self.share_devices(found):
                    return found
            return self._stepwise(demands, least, nodes)
        except OutOfSteps:
            self.gave_up = True
            return None
        finally:
            self.gave_up |= self._seating.gave_up

    def are_apart(self, demands: Sequence[Demand]) -> bool:
        """Whether where one of the pods goes matters to another only if it goes to the same node."""
        shared: set[str] = set()
        for demand in demands:
            needs = demand.needs
            if needs.shape.volumes or self._state.neighbourhood.concerns(needs):
                return False
            for claim in demand.open:
                uid = claim.metadata.uid
                if uid and uid in shared:
                    return False
                shared.add(uid)
        return True

    def share_devices(self, seats: Seats) -> bool:
        """Whether they take devices that more than one node can use."""
        return any(
            self._state.is_floating((result.driver, result.pool))
            for seat in seats
            if seat.found.plan is not None
            for item in seat.found.plan.claims
            for result in item.allocation.devices.results
        )

    def _packed(
        self, demands: Sequence[Demand], least: int, nodes: Sequence[NodeState]
    ) -> Seats | None:
        crowd = _Crowd.of(self._seating, demands, nodes)
        packing = pack(crowd.wanted, len(demands) - least, crowd.likenesses, crowd.most)
        if packing is None:
            return None
        taken = [0] * len(crowd.kinds)
        seats: list[Seat] = []
        for position, load in sorted(packing.loads.items()):
            here: list[Demand] = []
            for kind, number in enumerate(load):
                here += crowd.kinds[kind][taken[kind] : taken[kind] + number]
                taken[kind] += number
            found = self._seating.seats(nodes[position], here)
            if found is None:
                # Nodes that looked alike were not: that is an error of ours, but the pods can still be placed.
                return self._stepwise(demands, least, nodes)
            seats += found
        return tuple(seats)

    def _stepwise(
        self, demands: Sequence[Demand], least: int, nodes: Sequence[NodeState]
    ) -> Seats | None:
        allowed = {node.facts.name for node in nodes}
        search = Stepwise(
            self._round,
            self._seating,
            demands,
            lambda node: node.facts.name in allowed,
            len(demands) - least,
        )
        return search.search()


@dataclass(slots=True)
class _Crowd:
    """Pods by kind, and how many of each kind nodes hold."""

    seating: Seating
    kinds: list[list[Demand]]
    nodes: Sequence[NodeState]
    likenesses: list[Hashable]
    _known: dict[tuple[Hashable, Load, int], int] = field(default_factory=dict)

    @staticmethod
    def of(seating: Seating, demands: Sequence[Demand], nodes: Sequence[NodeState]) -> _Crowd:
        by_key: dict[Hashable, list[Demand]] = {}
        for demand in demands:
            by_key.setdefault(demand.key, []).append(demand)
        kinds = list(by_key.values())
        first = [kind[0] for kind in kinds]
        likenesses = [seating.likeness(node, first) for node in nodes]
        crowd = _Crowd(seating, kinds, nodes, likenesses)
        crowd._hardest_first()
        return crowd

    @property
    def wanted(self) -> Load:
        return tuple(len(kind) for kind in self.kinds)

    def most(self, position: int, load: Load, kind: int) -> int:
        """How many more pods of a kind a node holds beside a load."""
        key = (self.likenesses[position], load, kind)
        known = self._known.get(key)
        if known is None:
            beside = [d for each, number in enumerate(load) for d in self.kinds[each][:number]]
            known = self._known[key] = self.seating.most(
                self.nodes[position], beside, self.kinds[kind][load[kind] :]
            )
        return known

    def _hardest_first(self) -> None:
        """The pods for which there is the least room, measured by how many there are, choose first."""
        empty = (0,) * len(self.kinds)
        rooms = [
            sum(self.most(position, empty, kind) for position in range(len(self.nodes)))
            for kind in range(len(self.kinds))
        ]
        order = sorted(range(len(self.kinds)), key=lambda kind: rooms[kind] / len(self.kinds[kind]))
        self.kinds = [self.kinds[kind] for kind in order]
        self._known.clear()
