"""A proposal: the moves that make room for what waits in a cluster, one unit after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import priority_of
from drayman.api.resource import ResourceClaim
from drayman.inventory.identity import DeviceId
from drayman.placement.joint.seating import Seat, Seats
from drayman.placement.world import World
from drayman.simulate.moving.choosing import Obstacle
from drayman.simulate.moving.movers import Cost, Mover, Movers, cost_of, has_run
from drayman.simulate.moving.report import (
    DefragReport,
    MoveCost,
    MovedPod,
    MoveStep,
    Place,
    Room,
    SeatedPod,
)
from drayman.simulate.moving.searching import STEPS, Searching, Settled
from drayman.simulate.moving.sequence import Moves, Step
from drayman.simulate.moving.units import Deciding, Otherwise, Refused, Unit
from drayman.workloads.makers import known_as

MOST_MOVES: Final = 32
"""How many pods are moved at most for one unit, unless told otherwise."""


def propose(
    world: World, units: Sequence[Unit], *, most: int = MOST_MOVES, steps: int = STEPS
) -> DefragReport:
    """What makes room for each of the units, on top of the moves for those before it. The world is left unchanged.

    `most` is how many pods may be moved for one unit, `steps` how much is tried for it.
    """
    deciding, movers = Deciding(world), Movers(world)
    with world.state.trial():
        deciding.count_reserved()
        before = {unit: deciding.decide(unit) for unit in units}
        with world.state.trial():
            settled = Searching(deciding, movers, most, steps).make_room(units)
        rooms = [_room(world, deciding, each, before[each.unit]) for each in settled]
    moved = [
        step.mover
        for each in settled
        if isinstance(each.outcome, Moves)
        for step in each.outcome.steps
    ]
    return DefragReport(
        rooms=tuple(rooms),
        cost=_cost(cost_of(moved)),
        staying={bar.value: movers.staying[bar] for bar in sorted(movers.staying, key=str)},
        nodes=len(world.objects.nodes),
        unseen=world.unseen,
        evidence=dict(world.versions),
    )


def _room(
    world: World, deciding: Deciding, settled: Settled, now: Seats | Refused | Otherwise
) -> Room:
    unit = settled.unit
    if isinstance(now, tuple):
        waits = deciding.reserved_for_others(unit) if _is_refused(settled) else None
    else:
        waits = deciding.why(now.outcome, unit.first)
    match settled.outcome:
        case Moves(_, steps, seats):
            return Room(
                name=unit.name,
                fits=True,
                steps=tuple(_step(step, world.now) for step in steps),
                pods=tuple(map(_seated, seats)),
                waits=waits,
            )
        case Obstacle(reason, is_final):
            return Room(name=unit.name, fits=False, waits=waits, obstacle=reason, is_final=is_final)
        case Otherwise():
            obstacle = "it waits for something other than room"
            return Room(name=unit.name, fits=False, waits=waits, obstacle=obstacle)


def _is_refused(settled: Settled) -> bool:
    return not isinstance(settled.outcome, Moves)


def _step(step: Step, now: float) -> MoveStep:
    by_name = {seat.demand.pod.metadata.name: seat for seat in step.seats}
    mover = step.mover
    return MoveStep(
        number=step.number,
        pods=tuple(_moved(pod, mover, by_name[pod.metadata.name], now) for pod in mover.pods),
    )


def _moved(pod: Pod, mover: Mover, seat: Seat, now: float) -> MovedPod:
    metadata = pod.metadata
    own = [claim for claim in mover.claims if _is_used_by(claim, pod)]
    held = [str(DeviceId.of(result)) for claim in own for result in claim.status.results]
    return MovedPod(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        owner=str(known_as(pod)),
        before=Place(node=pod.spec.node_name, devices=tuple(held)),
        after=_place(seat),
        gang="" if mover.gang is None else str(mover.gang),
        priority=priority_of(pod),
        lost_seconds=round(has_run(pod, now), 3),
    )


def _is_used_by(claim: ResourceClaim, pod: Pod) -> bool:
    return any(user.uid == pod.metadata.uid for user in claim.status.reserved_for)


def _seated(seat: Seat) -> SeatedPod:
    metadata = seat.demand.pod.metadata
    return SeatedPod(
        name=metadata.name, namespace=metadata.namespace, uid=metadata.uid, after=_place(seat)
    )


def _place(seat: Seat) -> Place:
    return Place(node=seat.found.node.facts.name, devices=tuple(_devices(seat)))


def _devices(seat: Seat) -> Iterator[str]:
    for claim in seat.demand.held:
        yield from (str(DeviceId.of(result)) for result in claim.status.results)
    for item in () if seat.found.plan is None else seat.found.plan.claims:
        for result in item.allocation.devices.results:
            yield str(DeviceId.of(result))


def _cost(cost: Cost) -> MoveCost:
    return MoveCost(pods=cost.pods, gangs=cost.gangs, lost_device_seconds=round(cost.lost_s, 3))
