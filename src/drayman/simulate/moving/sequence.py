"""Moves in an order that works: each pod leaves when its new place is free, and the room that is made is kept.

The moves are made one after the other on the state, as they would be made in the cluster: what the beneficiaries will get counts as taken
from the beginning, a pod is gone with its claims, another one waits in its place and is decided about. If there is no place for it yet, it
stays until others have moved. So what is found works step by step, and in the end the beneficiaries are decided about once more.

Room is kept for all of them from the beginning: otherwise, pods that are moved for the first would go to where the second is to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from drayman.placement.joint.seating import Seats
from drayman.placement.kept_room import KeptRoom
from drayman.placement.nominations import Nominations
from drayman.placement.state import ClusterState
from drayman.simulate.moving.movers import Mover
from drayman.simulate.moving.succession import succeed
from drayman.simulate.moving.units import Deciding, Unit

NOTHING_PROMISED: Final[Mapping[str, KeptRoom]] = MappingProxyType({})


class Intent(Struct, frozen=True, eq=False):
    """A unit, and the pods that are to be moved for it."""

    unit: Unit
    movers: tuple[Mover, ...] = ()


class Step(Struct, frozen=True, eq=False):
    """Pods that leave together, and where those in their place go, in the same order."""

    number: int
    """Its place among all steps."""
    mover: Mover
    seats: Seats


class Moves(Struct, frozen=True, eq=False):
    """Steps that make room for a unit, and what it gets then."""

    unit: Unit
    steps: tuple[Step, ...]
    seats: Seats
    kept: Seats
    """What is kept for it while others move. It may get something else then, but does not have to."""


class Stuck(Struct, frozen=True, eq=False):
    """The moves do not work."""

    intent: int
    """The position of the intent that cannot be carried out."""
    mover: Mover | None
    """One of its movers for which there is no other place; None if the unit does not fit after all of them."""


def carried_out(
    deciding: Deciding,
    intents: Sequence[Intent],
    number: int = 1,
    promised: Mapping[str, KeptRoom] = NOTHING_PROMISED,
) -> list[Moves] | Stuck:
    """In a trial: move the pods, and let the units have the room. What the state then holds is of use only if it worked.

    `number` is that of the first step. `promised` is what the scheduler keeps already for pods of the units, by uid: no unit gets what is
    promised to another.
    """
    wanted = _wanted(deciding, intents, promised)
    if isinstance(wanted, Stuck):
        return wanted
    kept = [_keep(deciding.state, seats) for seats in wanted]
    steps = _steps(deciding, intents, number)
    if isinstance(steps, Stuck):
        return steps
    moves = []
    for position, intent in enumerate(intents):
        for uid, devices in kept[position]:
            deciding.state.give_up_room(uid, devices)
        seats = deciding.decide(intent.unit)
        if not isinstance(seats, tuple):
            return Stuck(position, None)
        deciding.take(seats)
        moves.append(Moves(intent.unit, tuple(steps[position]), seats, wanted[position]))
    return moves


def _wanted(
    deciding: Deciding, intents: Sequence[Intent], promised: Mapping[str, KeptRoom]
) -> list[Seats] | Stuck:
    """What each unit gets if all movers are gone, on top of those before it."""
    found = []
    with deciding.state.trial() as trial:
        promises = Nominations(deciding.state)
        for pod in (pod for intent in intents for pod in intent.unit.pods):
            room = promised.get(pod.metadata.uid)
            if room is not None:
                promises.keep(pod, room.node, room.allocations)
        for position, intent in enumerate(intents):
            for mover in intent.movers:
                mover.leave(trial)
            with promises.as_seen_by(intent.unit.first):
                seats = deciding.decide(intent.unit)
            if not isinstance(seats, tuple):
                return Stuck(position, None)
            for pod in intent.unit.pods:
                promises.withdraw(pod.metadata.uid)
            deciding.take(seats)
            found.append(seats)
    return found


def _steps(deciding: Deciding, intents: Sequence[Intent], number: int) -> list[list[Step]] | Stuck:
    """The movers in the order in which they find a place, by intent."""
    left = [
        (position, mover)
        for position, intent in enumerate(intents)
        for mover in sorted(intent.movers, key=_hardest_first)
    ]
    found: list[list[Step]] = [[] for _ in intents]
    while left:
        waiting = []
        for position, mover in left:
            seats = _moved(deciding, mover)
            if seats is None:
                waiting.append((position, mover))
            else:
                found[position].append(Step(number, mover, seats))
                number += 1
        if len(waiting) == len(left):
            return Stuck(*waiting[0])
        left = waiting
    return found


def _moved(deciding: Deciding, mover: Mover) -> Seats | None:
    """Move pods, if there is another place for all of them now."""
    with deciding.state.trial():
        seats = deciding.seats(succeed(deciding.state, mover), mover.gang)
        if seats is None:
            return None
    # The same once more, this time to stay.
    succeed(deciding.state, mover)
    deciding.take(seats)
    return seats


def _keep(state: ClusterState, seats: Seats) -> list[tuple[str, int]]:
    """Count what a unit will get as taken, though others still have it."""
    kept = []
    for seat in seats:
        plan = seat.found.plan
        devices = () if plan is None else tuple(item.allocation for item in plan.claims)
        needs = seat.demand.needs.plus(state.mapped_devices.requests_of(devices))
        state.keep_room(needs, seat.found.node.facts.name, devices)
        kept.append((needs.uid, len(devices)))
    return kept


def _hardest_first(mover: Mover) -> tuple[int, int, str]:
    """Those that need most find a place while there are most."""
    return -mover.devices, -mover.priority, mover.key
