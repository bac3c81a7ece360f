"""Reservations stand for units that wait for room, and for nobody else: what ends them, and who is asked how often."""

from __future__ import annotations

import pytest

from drayman.placement.reservations.reservation import Reservation
from drayman.scheduler.reserving import DOUBT_S, LONGEST_REST_S, Withdrawal
from scheduler.laws.yard import NAMESPACE, Work, Yard

FOREVER = 100_000


def yard_with_a_reservation(pods: int = 1, least: int = 0) -> tuple[Yard, Reservation]:
    """A node for each pod of a unit that waits for the end of one that runs for 100 seconds."""
    yard = Yard([(1, 8)] * max(least or pods, 1))
    yard.arrive(Work("first", 0, 1, 1, 1, 100))
    yard.decide()
    yard.arrive(Work("next", 0, pods, 1, 1, 50, least=least))
    yard.decide()
    (reservation,) = yard.reservations()
    return yard, reservation


def test_it_ends_when_as_many_members_have_started_as_have_to() -> None:
    """Members that may join a gang later have nothing reserved, also if the gang had before it started."""

    def check(yard: Yard) -> None:
        for each in yard.reservations():
            entry = yard.queue.unit(each.key)
            assert entry is not None
            name = entry.pod.metadata.name.rpartition("-")[0]
            assert yard.outcomes[name].started is None, f"{name} has started"

    yard = Yard([(1, 8)] * 4, check=check)
    unknown = [Work(name, 0, 1, 1, 1, 500, declares=False) for name in ("x", "y")]
    known = [Work("a", 0, 1, 1, 1, 100), Work("b", 0, 1, 1, 1, 200)]
    yard.replay([*unknown, *known, Work("gang", 1, 4, 1, 1, 2000, least=2)])
    assert yard.outcomes["gang"].started is not None


def test_it_ends_when_a_gang_lacks_a_member() -> None:
    """A gang that waits for members does not wait for room."""
    yard, _ = yard_with_a_reservation(pods=2)
    gone = yard.pod(yard.waiting["next"], 1)
    yard.state.delete_pod(gone)
    yard.queue.remove(gone.metadata.uid)
    yard.decide()
    assert yard.reservations() == []


def test_it_ends_when_a_pod_lacks_its_claim() -> None:
    """A pod that waits for a claim does not wait for room."""
    yard, _ = yard_with_a_reservation()
    claim = yard.state.find_claim(NAMESPACE, "next-0")
    assert claim is not None
    yard.state.remove_claim(claim)
    yard.queue.wake_pods(["next-0"])
    yard.decide()
    assert yard.reservations() == []


def test_it_ends_when_nothing_is_known_to_end_any_more() -> None:
    """If the pod on whose end it rests is gone, and so is its node, nothing is held back after a moment, and the reason is stated."""
    yard, _ = yard_with_a_reservation()
    pod, node, *_ = yard.running["first-0"]
    yard.state.delete_pod(pod)
    yard.state.remove_node(yard.state.nodes[node].facts.name)
    yard.queue.wake_pods(["next-0"])
    yard.decide()
    yard.settle(within_s=2 * DOUBT_S)
    assert yard.reservations() == []
    assert [why for *_, why in yard.withdrawn] == [Withdrawal.UNKNOWN]


def test_it_stays_while_a_pod_that_has_ended_still_has_its_devices() -> None:
    """A gang waits for three nodes, and a short pod runs ahead of it on the fourth. Between the end of that pod and of its claim nothing is
    known about its devices. A pod that waits for room that is not reserved does not start, and the gang starts when it was to."""
    yard = Yard([(8, 64)] * 4, lingering_s=0.3)
    begun = yard.now
    base = [Work(f"base{number}", 0, 1, 8, 1, 90) for number in range(3)]
    gang = Work("gang", 1, 4, 8, 1, 100, declares=False, priority=10)
    short = Work("short", 2, 1, 4, 1, 20)
    endless = Work("endless", 3, 1, 4, 1, 500, declares=False, priority=-10)
    yard.replay([*base, gang, short, endless])
    started = {name: (each.started or 0) - begun for name, each in yard.outcomes.items()}
    assert started["short"] == 2
    assert started["gang"] < 92
    assert started["endless"] > started["gang"]


def test_it_ends_when_room_is_promised() -> None:
    """A unit for which room is kept has that, and no other room besides."""
    yard, reservation = yard_with_a_reservation()
    yard.nominations.keep(yard.pod(yard.waiting["next"], 0), "n0", reservation.places[0].devices)
    yard.queue.wake_pods(["next-0"])
    yard.decide()
    assert yard.reservations() == []


def test_a_promise_comes_before_a_reservation() -> None:
    """A unit for which room was made gets it, though it is reserved for a unit that comes before."""
    yard, reservation = yard_with_a_reservation(pods=2)
    (free,) = {"n0", "n1"} - {node for _, node, *_ in yard.running.values()}
    devices = next(place.devices for place in reservation.places if place.node == free)
    late = Work("late", 0, 1, 1, 1, FOREVER)
    yard.arrive(late)
    yard.decide()
    assert "RoomReserved" in yard.messages["late-0"]
    yard.nominations.keep(yard.pod(late, 0), free, devices)
    yard.queue.wake_pods(["late-0"])
    yard.decide()
    assert yard.outcomes["late"].started is not None


@pytest.mark.parametrize("number", [10, 40])
def test_units_take_turns(number: int) -> None:
    """However many units find no room of which it is known when it will be there, each is tried a few times and not in every pause."""
    yard = Yard([(1, 64), (0, 64)])
    yard.arrive(Work("endless", 0, 1, 1, 1, FOREVER, declares=False))
    yard.arrive(Work("known", 0, 1, 0, 1, FOREVER))
    yard.decide()
    for each in range(number):
        yard.arrive(Work(f"w{each}", 0, 2, 1, 1, each + 1))
        yard.decide()
    while (due := yard.queue.next_due()) is not None and due < yard.now + FOREVER / 2:
        yard.now = max(yard.now, due)
        yard.decide()
    entries = [yard.queue.get(f"w{each}-0") for each in range(number)]
    assert max(entry.attempts for entry in entries if entry is not None) <= 4


def test_a_refusal_during_the_search_is_not_lost() -> None:
    """A search goes by what was running when it began. If the unit is refused again meanwhile, others run by then."""
    yard = Yard([(2, 8)])
    yard.arrive(Work("known", 0, 1, 1, 1, 100))
    yard.arrive(Work("endless", 0, 1, 1, 1, FOREVER, declares=False))
    yard.decide()
    yard.arrive(Work("next", 0, 1, 2, 1, 50))
    yard.look_s = 0.1  # so that the search takes longer than a round
    yard.cycle.decide(64)
    assert yard.cycle.reserving.is_searching
    yard.look_s = 0.0
    yard.end("endless-0")
    yard.arrive(Work("urgent", 0, 1, 1, 1, 60, priority=1))
    yard.decide()
    assert yard.outcomes["urgent"].started is not None
    assert yard.outcomes["next"].started is None
    yard.settle(within_s=LONGEST_REST_S)
    (reservation,) = yard.reservations()
    assert reservation.title.endswith("next-0")
    known = yard.running["known-0"][3]
    assert reservation.at == known
