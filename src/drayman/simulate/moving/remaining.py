"""What is left of a proposal, in the cluster as it is now: whether it still works, and which steps come next.

While moves are carried out, other things happen. A pod may end by itself, one that was evicted may come back in another place than was
foreseen, and so may others that nobody asked about. None of that matters as long as the rest of the proposal works: the pods that are
still to be moved have other places, and then what waits has room. That is found out as it was for the proposal, with the same movers.

What the scheduler has been asked to keep for a unit stays with it, though another place may have become better meanwhile: the scheduler
gives a unit its room as soon as that is free, so whoever shuffles promises at that time gives the same room to two of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.pods import is_finished, is_leaving
from drayman.placement.kept_room import KeptRoom
from drayman.placement.world import World
from drayman.simulate.moving.movers import Mover, Movers
from drayman.simulate.moving.report import Room
from drayman.simulate.moving.sequence import (
    NOTHING_PROMISED,
    Intent,
    Moves,
    Step,
    Stuck,
    carried_out,
)
from drayman.simulate.moving.units import Deciding, Unit, waiting_units


class Rest(Struct, frozen=True, eq=False):
    """What is left to do."""

    moves: tuple[Moves, ...]
    """For each unit that still waits."""
    next: tuple[Step, ...]
    """The steps that can be made now, at the same time."""


class Changed(Struct, frozen=True):
    """The cluster has changed, so that the proposal does not hold any more."""

    reason: str


def remaining(
    world: World,
    rooms: Sequence[Room],
    at_once: int,
    promised: Mapping[str, KeptRoom] = NOTHING_PROMISED,
) -> Rest | Changed:
    """The rest of a proposal. No more than `at_once` pods are moved at the same time; `promised` is what is kept for pods, by uid."""
    pods = {pod.metadata.uid: pod for pod in world.objects.pods}
    deciding, movers = Deciding(world), Movers(world)
    intents: list[Intent] = []
    for room in rooms:
        unit = _unit(world, room, pods)
        if isinstance(unit, Changed):
            return unit
        if unit is None:
            continue
        left = _left(room, pods, movers)
        if isinstance(left, Changed):
            return left
        intents.append(Intent(unit, tuple(left)))
    keys = {deciding.key_of(intent.unit) for intent in intents}
    deciding.reserve(each for key, each in deciding.reservations().items() if key not in keys)
    with world.state.trial():
        deciding.count_reserved()
        with world.state.trial():
            moves = carried_out(deciding, intents, promised=promised)
        if isinstance(moves, Stuck) and promised:
            with world.state.trial():
                moves = carried_out(deciding, intents)
    if isinstance(moves, Stuck):
        return _stuck(intents[moves.intent].unit, moves.mover)
    steps = sorted((step for each in moves for step in each.steps), key=lambda step: step.number)
    return Rest(tuple(moves), tuple(_first(steps, movers, at_once)))


def _unit(world: World, room: Room, pods: dict[str, Pod]) -> Unit | Changed | None:
    """What waits of a unit; None if it has what it waited for."""
    seated = [(each.name, pods.get(each.uid)) for each in room.pods]
    waiting: list[Pod] = []
    for name, pod in seated:
        if pod is None or is_finished(pod) or is_leaving(pod):
            return Changed(f"pod {name}, for which room is made, is gone")
        if not pod.spec.node_name:
            waiting.append(pod)
    if not waiting:
        return None
    return waiting_units(world, waiting[:1])[0]


def _left(room: Room, pods: dict[str, Pod], movers: Movers) -> list[Mover] | Changed:
    """What is still to be moved: pods that have gone are not."""
    found: dict[str, Mover] = {}
    for step in room.steps:
        for each in step.pods:
            pod = pods.get(each.uid)
            if pod is None or is_finished(pod) or is_leaving(pod):
                continue
            mover = movers.find(each.uid)
            if mover is None:
                return Changed(f"pod {each.namespace}/{each.name} can no longer be moved")
            found[mover.key] = mover
    return list(found.values())


def _stuck(unit: Unit, mover: Mover | None) -> Changed:
    if mover is None:
        return Changed(f"{unit.name} would have no room after the moves")
    metadata = mover.pods[0].metadata
    return Changed(f"there is no other place for pod {metadata.namespace}/{metadata.name}")


def _first(steps: Sequence[Step], movers: Movers, at_once: int) -> list[Step]:
    """The first steps, as far as none of them needs what another one leaves, and budgets allow all of them."""
    chosen: list[Step] = []
    left: set[str] = set()
    number = 0
    for step in steps:
        number += len(step.mover.pods)
        targets = {seat.found.node.facts.name for seat in step.seats}
        together = [each.mover for each in chosen] + [step.mover]
        if chosen and (number > at_once or targets & left or not movers.may_go_together(together)):
            break
        chosen.append(step)
        left |= {pod.spec.node_name for pod in step.mover.pods}
    return chosen
