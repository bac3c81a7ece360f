"""Laws of proposals: each works step by step in a cluster that is built anew from objects, and each moved pod has a place."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as with_

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import Fitting
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.joint.gangs import GangDecider, Starting
from drayman.placement.kept_room import KeptRoom, room_of
from drayman.placement.world import World
from drayman.simulate.moving.proposing import propose
from drayman.simulate.moving.remaining import Rest, remaining
from drayman.simulate.moving.report import DefragReport, MovedPod, Place, SeatedPod
from drayman.simulate.moving.units import Unit, waiting_units
from simulate.cluster import pod
from simulate.moving.fragments import fragmented, group, made_claim, member, running

NODES = "abcd"
ROW = "abcdefg"
SIZE = 4


def present(
    layout: list[tuple[int, int, int, bool]], nodes: str = NODES
) -> list[tuple[Pod, ResourceClaim]]:
    """Pods with devices, packed on each node from its first device."""
    used = dict.fromkeys(nodes, 0)
    found = []
    for number, (at, devices, priority, is_bare) in enumerate(layout):
        where = nodes[at]
        first = used[where]
        if first + devices > SIZE:
            continue
        used[where] += devices
        owner = "" if is_bare else "ReplicaSet"
        taken = list(range(first, first + devices))
        found.append(running(f"p{number}", where, taken, owner, priority=priority))
    return found


PRESENT = st.lists(
    st.tuples(st.integers(0, len(NODES) - 1), st.integers(1, 3), st.integers(0, 2), st.booleans()),
    max_size=10,
)
SCATTERED = st.lists(
    st.tuples(st.integers(0, len(ROW) - 1), st.just(1), st.just(0), st.just(False)), max_size=14
)
WAITING = st.lists(
    st.tuples(st.sampled_from(["two", "three", "four"]), st.integers(0, 2)), max_size=2
)
GANG = st.tuples(st.sampled_from(["two", "three", "four"]), st.integers(0, 3))


def a_world(
    layout: list[tuple[int, int, int, bool]], waiting: list[tuple[str, int]], gang: tuple[str, int]
) -> World:
    pods = [pod(f"w{n}", size, priority=rank) for n, (size, rank) in enumerate(waiting)]
    pods += [member(f"m{n}", "ring", gang[0], priority=1) for n in range(gang[1])]
    groups = (group("ring", gang[1]),) if gang[1] else ()
    sizes = dict.fromkeys(NODES, SIZE)
    return fragmented(sizes, present(layout), pods, pod_groups=groups)


def taken(world: World) -> dict[str, str]:
    """Who holds each device, by the claims."""
    return {
        f"{result.driver}/{result.pool}/{result.device}": claim.metadata.name
        for claim in world.objects.claims
        for result in claim.status.results
    }


def put(world: World, former: Pod, after: Place, *, suffix: str) -> World:
    """The world in which a pod is elsewhere, with the devices of that place. Fails if they are not free."""
    objects = world.objects
    gone = {s.resource_claim_name for s in former.status.resource_claim_statuses}
    pods = [each for each in objects.pods if each.metadata.uid != former.metadata.uid]
    claims = [each for each in objects.claims if each.metadata.name not in gone]
    bare = world.with_objects(replace(objects, pods=tuple(pods), claims=tuple(claims)))
    assert not set(after.devices) & set(taken(bare)), "its new place is free"
    numbers = [int(device.rpartition("-")[2]) for device in after.devices]
    uid, name = f"{former.metadata.uid}{suffix}", f"{former.metadata.name}-gpu{suffix}"
    status = with_(former.status, resource_claim_statuses=())
    placed = with_(
        former,
        metadata=with_(former.metadata, uid=uid),
        spec=with_(former.spec, node_name=after.node),
        status=status,
    )
    claim = made_claim(name, former.metadata.name, uid, after.node, numbers)
    return bare.with_objects(replace(bare.objects, pods=(*pods, placed), claims=(*claims, claim)))


def named(world: World, each: MovedPod | SeatedPod) -> Pod:
    found = world.pod(each.namespace, each.name)
    assert found is not None
    return found


def replayed(world: World, report: DefragReport) -> World:
    """The cluster after all steps, each carried out on objects alone."""
    for step in sorted(report.steps, key=lambda step: step.number):
        for each in step.pods:
            former = named(world, each)
            assert former.metadata.uid == each.uid
            assert former.spec.node_name == each.before.node
            world = put(world, former, each.after, suffix="-moved")
    return world


def starts(world: World, unit: Unit) -> bool:
    """Whether a unit starts in a world, by the decision about it in a state that is made anew."""
    round_ = Decider(world.state).round(world.now)
    if unit.gang is None:
        return isinstance(round_.consider(unit.first), Fitting)
    state = world.state
    decider = GangDecider(round_, Domains(state), CopyCounts(state), Policy.BEST)
    return isinstance(decider.decide_about(unit.gang, unit.pods), Starting)


@settings(deadline=None)
@given(PRESENT, WAITING, GANG)
def test_every_proposal_works_step_by_step(
    layout: list[tuple[int, int, int, bool]], waiting: list[tuple[str, int]], gang: tuple[str, int]
) -> None:
    """Each new place is free when it is its turn, only pods with a controller move, no pod moves twice, and then everything fits."""
    world = a_world(layout, waiting, gang)
    units = waiting_units(world)
    report = propose(world, units)
    assert report == propose(world.with_objects(world.objects), waiting_units(world))
    moved = [each for step in report.steps for each in step.pods]
    assert len({each.uid for each in moved}) == len(moved)
    assert all(not each.owner.startswith("Pod/") for each in moved)
    after = replayed(world, report)
    by_name = {unit.name: unit for unit in units}
    for room in report.rooms:
        if not room.fits:
            assert room.steps == ()
            assert room.obstacle
            continue
        assert starts(after, by_name[room.name])
        for each in room.pods:
            after = put(after, named(after, each), each.after, suffix="-started")


@settings(deadline=None)
@given(SCATTERED, st.data())
def test_what_is_promised_stays_promised(
    layout: list[tuple[int, int, int, bool]], data: st.DataObject
) -> None:
    """While nothing else happens, moves are carried out to the end, and each gang starts where room was kept for it from the beginning.

    The nodes are in racks, so that another place often becomes better on the way.
    """
    gangs = ("one", "other")
    waiting = [member(f"{gang}{n}", gang, "four", priority=2) for gang in gangs for n in range(2)]
    world = fragmented(
        dict.fromkeys(ROW, SIZE),
        present(layout, ROW),
        waiting,
        dict(zip(ROW, "1122334", strict=True)),
        pod_groups=tuple(group(gang, 2) for gang in gangs),
    )
    rooms = [room for room in propose(world, waiting_units(world)).rooms if room.fits]
    promised: dict[str, KeptRoom] = {}
    for _ in range(len(layout) + 1):
        rest = remaining(world, rooms, 1, promised)
        assert isinstance(rest, Rest)
        kept = {
            seat.demand.pod.metadata.uid: room_of(seat, 1.0) for m in rest.moves for seat in m.kept
        }
        assert {uid: promised[uid] for uid in kept if uid in promised} == (kept if promised else {})
        promised |= kept
        for step in rest.next:
            for former, seat in zip(step.mover.pods, step.seats, strict=True):
                world = put(world, former, place_of(room_of(seat, 1.0)), suffix="-moved")
        for moves in rest.moves:
            after = [place_of(promised[each.metadata.uid]) for each in moves.unit.pods]
            is_free = not {d for place in after for d in place.devices} & set(taken(world))
            if is_free and data.draw(st.booleans()):
                for each, place in zip(moves.unit.pods, after, strict=True):
                    world = put(world, each, place, suffix="")
    assert rest.next == ()


def place_of(room: KeptRoom) -> Place:
    devices = tuple(f"{d.driver}/{d.pool}/{d.device}" for d in room.devices)
    return Place(node=room.node, devices=devices)


def could_move(world: World) -> list[Pod]:
    unit = _w0(world)
    return [
        each
        for each in world.objects.pods
        if each.spec.node_name
        and each.metadata.owner_references
        and (each.spec.priority or 0) <= (unit.spec.priority or 0)
    ]


def fewest(world: World) -> int | None:
    """By trying all: how few pods have to move so that the pod `w0` fits, and all of them again, whatever the order."""
    candidates = could_move(world)
    for number in range(min(len(candidates), 3) + 1):
        for gone in combinations(candidates, number):
            if any(_fit_again(world, list(gone), where) for where in NODES):
                return number
    return None


def _fit_again(world: World, gone: list[Pod], where: str) -> bool:
    """Whether a node holds what `w0` asks for without these pods, and the other nodes hold those then. Devices are all alike here."""
    uids = {each.metadata.uid for each in gone}
    free = dict.fromkeys(NODES, SIZE)
    sizes: list[int] = []
    for each in world.objects.pods:
        size = {"one": 1, "two": 2, "three": 3, "four": 4}[_template(each)]
        if each.metadata.uid in uids:
            sizes.append(size)
        elif each.spec.node_name:
            free[each.spec.node_name] -= size
    wanted = {"two": 2, "three": 3, "four": 4}[_template(_w0(world))]
    if free[where] < wanted:
        return False
    free[where] -= wanted
    return _packs(sorted(sizes, reverse=True), free)


def _packs(sizes: list[int], free: dict[str, int]) -> bool:
    if not sizes:
        return True
    return any(
        _packs(sizes[1:], {**free, name: free[name] - sizes[0]})
        for name in NODES
        if free[name] >= sizes[0]
    )


def _w0(world: World) -> Pod:
    return next(p for p in world.objects.pods if p.metadata.name == "w0")


def _template(each: Pod) -> str:
    return each.spec.resource_claims[0].resource_claim_template_name or ""


@settings(deadline=None)
@given(PRESENT, st.tuples(st.sampled_from(["two", "three", "four"]), st.integers(0, 2)))
def test_no_fewer_pods_would_do(
    layout: list[tuple[int, int, int, bool]], waiting: tuple[str, int]
) -> None:
    """For a single pod, no smaller set of moves works, by trying all of them."""
    world = a_world(layout, [waiting], ("two", 0))
    report = propose(world, waiting_units(world))
    least = fewest(world)
    if report.fits:
        assert least is not None
        assert report.cost.pods == least
    elif least is not None:
        # What is given up is rare, and never because nothing was found to be in the way.
        assert report.rooms[0].obstacle == "pods that would have to move have no other place"


def test_the_replay_notices_a_place_that_is_taken() -> None:
    """What the laws rest on fails where it should."""
    world = a_world([(0, 2, 0, False), (1, 1, 0, False)], [("four", 0)], ("two", 0))
    mover = named(world, SeatedPod(name="p1", namespace="default", uid="", after=Place(node="b")))
    occupied = Place(node="a", devices=("gpu.example.com/a/gpu-0",))
    with pytest.raises(AssertionError, match="free"):
        put(world, mover, occupied, suffix="-moved")
