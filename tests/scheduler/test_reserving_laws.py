"""What holds for any work on any small cluster, in virtual time: backfilled work delays nobody, and nothing is held back needlessly."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drayman.placement.joint.gangs import Starting
from drayman.placement.reservations.reservation import Reservation
from drayman.scheduler.cycle import LONGEST_REST_S
from drayman.scheduler.reserving import Withdrawal
from rounds import rounds
from scheduler.laws.yard import Work, Yard

SLACK_S = 1.0
"""How long a search may rest before it goes on. Nothing else takes time here."""
MOST_ROUNDS = 4
NODES = st.lists(st.tuples(st.integers(0, 4), st.integers(2, 6)), min_size=1, max_size=4)


@st.composite
def works(draw: st.DrawFn, *, all_declare: bool = True, latest: int = 0) -> list[Work]:
    number = draw(st.integers(2, 12))
    return [
        Work(
            f"w{n}",
            arrives=draw(st.integers(0, 60)),
            pods=draw(st.sampled_from((1, 1, 1, 2, 3))),
            devices=draw(st.integers(0, 3)),
            cpu=draw(st.integers(1, 3)),
            runs=draw(st.integers(1, 90)),
            declares=all_declare or draw(st.booleans()),
            late=draw(st.integers(0, latest)),
        )
        for n in range(number)
    ]


@st.composite
def alike(draw: st.DrawFn) -> list[Work]:
    """Gangs of one size, and pods that are in their way. Nobody says how long they run."""
    pods, devices = draw(st.sampled_from(((2, 1), (2, 2), (3, 1))))
    whens = st.tuples(st.integers(0, 6), st.integers(1, 20))
    alone = [(1, 1, *when) for when in draw(st.lists(whens, max_size=4))]
    gangs = [(pods, devices, *when) for when in draw(st.lists(whens, min_size=2, max_size=5))]
    return [
        Work(f"w{n}", arrives, many, each, 1, runs, declares=False)
        for n, (many, each, arrives, runs) in enumerate((*alone, *gangs))
    ]


@settings(max_examples=rounds(150))
@given(NODES, works())
def test_what_is_reserved_is_kept(nodes: list[tuple[int, int]], given: list[Work]) -> None:
    """A unit that comes first starts no later than at the moment that was first reserved for it."""
    _assert_kept(nodes, given)


@settings(max_examples=rounds(150))
@given(NODES, works(all_declare=False))
def test_work_of_unknown_length_delays_nobody(
    nodes: list[tuple[int, int]], given: list[Work]
) -> None:
    """Pods that do not say how long they run get only room that is not reserved."""
    _assert_kept(nodes, given)


@settings(max_examples=rounds(150))
@given(NODES, works(all_declare=False))
def test_nothing_is_held_back_needlessly(nodes: list[tuple[int, int]], given: list[Work]) -> None:
    """A pod that is held back fits on no node beside what is reserved: not now, or not at the moments of the reservations."""
    Yard(nodes, check=_nothing_is_idle).replay(given)


@settings(max_examples=rounds(60))
@given(NODES, works(all_declare=False), st.sampled_from((0.2, 2.0)))
def test_a_reservation_does_not_lapse_while_it_is_renewed(
    nodes: list[tuple[int, int]], given: list[Work], lingering_s: float
) -> None:
    """Devices of a pod that has ended are free a while after it. A reservation stays in force in between: it is replaced by another one, or
    withdrawn for a reason, so that a unit that comes first starts as soon as was reserved for it."""
    standing: dict[str, float] = {}

    def is_accounted_for(yard: Yard) -> None:
        reasons = {each.key: why for _, each, why in yard.withdrawn}
        current = {each.key: each.at for each in yard.reservations()}
        for key in standing.keys() - current.keys():
            assert key in reasons, key
            assert (reasons[key] is Withdrawal.ENDED) == (yard.queue.unit(key) is None), key
        standing.clear()
        standing.update(current)
        yard.withdrawn.clear()

    yard = Yard(nodes, check=is_accounted_for, lingering_s=lingering_s)
    yard.replay(given)
    lingered = lingering_s * sum(each.pods for each in given)
    for name, outcome in yard.outcomes.items():
        if outcome.reserved is not None:
            assert outcome.started is not None, name
            assert outcome.started <= outcome.reserved + SLACK_S + lingered, name


@settings(max_examples=rounds(100))
@given(NODES, works(all_declare=False, latest=1000))
def test_all_work_that_fits_is_done(nodes: list[tuple[int, int]], given: list[Work]) -> None:
    """Run times may be wrong: whatever can start on the empty cluster starts some time, and nothing is tried over and over meanwhile."""
    yard = Yard(nodes)
    yard.replay(given)
    assert yard.rounds <= MOST_ROUNDS * (1 + len(given)) ** 2
    for name in yard.waiting:
        assert not _fits_when_empty(yard, yard.waiting[name])


@settings(max_examples=rounds(150))
@given(NODES, alike())
def test_no_gang_waits_for_room_that_is_there(
    nodes: list[tuple[int, int]], given: list[Work]
) -> None:
    """Even if the gangs that room has come for have just been refused, and rest."""
    Yard(nodes, check=_no_gang_can_start, look_s=0.1).replay(given)


def _no_gang_can_start(yard: Yard) -> None:
    yard.settle(within_s=2 * LONGEST_REST_S)
    for entry in yard.queue.gangs():
        assert entry.gang is not None
        decider = yard.cycle.gangs.deciding(yard.now)
        outcome = decider.decide_about(entry.gang, tuple(entry.pods.values()))
        assert not isinstance(outcome, Starting), entry


def _assert_kept(nodes: list[tuple[int, int]], given: list[Work]) -> None:
    yard = Yard(nodes)
    yard.replay(given)
    for name, outcome in yard.outcomes.items():
        if outcome.reserved is not None:
            assert outcome.started is not None, name
            assert outcome.started <= outcome.reserved + SLACK_S, name


def _nothing_is_idle(yard: Yard) -> None:
    for work in yard.waiting.values():
        if work.pods > 1 or "RoomReserved" not in yard.messages.get(f"{work.name}-0", ""):
            continue
        entry = yard.queue.get(f"{work.name}-0")
        assert entry is not None
        before = [each for each in yard.reservations() if each.rank < entry.rank]
        end = yard.now + work.runs if work.declares else float("inf")
        binding = [each for each in before if end > each.at]
        assert binding, f"{work.name} is held back by nothing"
        for number in range(len(yard.nodes)):
            assert not _has_room(yard, f"n{number}", work, binding), (work, number)


def _has_room(yard: Yard, node: str, work: Work, reservations: list[Reservation]) -> bool:
    """Whether a node has room for a pod now, and still has it when the reserved units start."""
    devices, cpu = yard.nodes[int(node[1:])]
    here = [(each, end) for _, where, each, end in yard.running.values() if where == node]
    reserved = {
        result.device
        for each in reservations
        for place in each.places
        if place.node == node
        for allocation in place.devices
        for result in allocation.devices.results
    }
    taken = {
        result.device
        for claim in yard.state.allocated_claims()
        for result in claim.status.results
        if result.pool == node
    }
    if work.devices > devices - len(reserved | taken):
        return False
    if sum(each.cpu for each, _ in here) + work.cpu > cpu:
        return False
    for moment in reservations:
        then = Counter[str]()
        then["cpu"] = sum(
            each.cpu for each, end in here if not (each.declares and end <= moment.at)
        )
        for each in reservations:
            if each.at <= moment.at and (each.until is None or each.until > moment.at):
                places = [place for place in each.places if place.node == node]
                then["cpu"] += sum(place.needs.shape.cpu // 1000 for place in places)
        if then["cpu"] + work.cpu > cpu:
            return False
    return True


def _fits_when_empty(yard: Yard, work: Work) -> bool:
    room = 0
    for devices, cpu in yard.nodes:
        copies = cpu // work.cpu
        room += min(copies, devices // work.devices) if work.devices else copies
    return room >= work.pods


def test_a_short_pod_runs_ahead_and_a_long_one_does_not() -> None:
    """The textbook case: a gang waits for a whole cluster of which half is free."""
    yard = Yard([(2, 8), (2, 8)])
    begun = yard.now
    yard.replay(
        [
            Work("first", 0, 1, 2, 1, 100),
            Work("gang", 1, 2, 2, 1, 50),
            Work("long", 2, 1, 2, 1, 500),
            Work("short", 3, 1, 2, 1, 60),
            Work("idle", 4, 1, 0, 1, 1000),
        ]
    )
    started = {name: (each.started or 0) - begun for name, each in yard.outcomes.items()}
    assert started == pytest.approx(
        {"first": 0, "gang": 100, "long": 150, "short": 3, "idle": 4}, abs=SLACK_S
    )


def test_what_others_leave_counts_for_the_reserved_unit() -> None:
    """A pod that wants none of the reserved devices runs where the node has enough for both at any time."""
    yard = Yard([(1, 4)])
    begun = yard.now
    yard.replay(
        [
            Work("first", 0, 1, 1, 3, 100),
            Work("next", 1, 1, 1, 3, 50),
            Work("beside", 2, 1, 0, 1, 900),
        ]
    )
    assert yard.outcomes["beside"].started == begun + 2
    assert yard.outcomes["next"].started == begun + 100


def test_a_higher_priority_is_not_held_back() -> None:
    """Room is reserved against those that come after, and a pod of a higher priority comes first whenever it arrives."""
    yard = Yard([(2, 8), (2, 8)])
    begun = yard.now
    gang = Work("gang", 1, 2, 2, 1, 50)
    urgent = Work("urgent", 2, 1, 2, 1, 500, priority=10)
    yard.replay([Work("first", 0, 1, 2, 1, 100), gang, urgent])
    assert yard.outcomes["urgent"].started == begun + 2
    assert yard.outcomes["gang"].started == begun + 502
