"""The moment that is reserved for a unit, and what is left for others."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from drayman.placement.reservations.reservation import Reservation
from rounds import rounds
from scheduler.laws.yard import BEGIN, Work, Yard

NODES = st.lists(st.tuples(st.integers(1, 4), st.integers(2, 6)), min_size=1, max_size=4)
HOLDERS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(1, 9), st.booleans()), max_size=12
)


@settings(max_examples=rounds(150))
@given(NODES, HOLDERS, st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
def test_the_moment_is_the_first_at_which_the_unit_fits(
    nodes: list[tuple[int, int]],
    holders: list[tuple[int, int, int, bool]],
    pods: int,
    devices: int,
    cpu: int,
) -> None:
    """Counting by hand what is free after each end gives the same moment, or the same lack of one."""
    works = [
        Work(f"h{n}", 0, 1, wanted, size, 10 * runs, declares)
        for n, (wanted, size, runs, declares) in enumerate(holders)
    ]
    unit = Work("unit", 0, pods, devices, cpu, 10)
    yard = Yard(nodes)
    for work in works:
        yard.arrive(work)
        yard.decide()
    # What did not fit leaves, so that only the unit waits.
    for name in [*yard.waiting]:
        yard.withdraw(name)
    yard.now += 1
    yard.arrive(unit)
    yard.decide()
    found = yard.reservations()
    if unit.name not in yard.waiting:
        assert not found
        return
    ends = sorted({end for _, _, work, end in yard.running.values() if work.declares})
    moments = [end for end in ends if _copies(yard, unit, end) >= unit.pods]
    assert [each.at for each in found] == moments[:1]


def _copies(yard: Yard, unit: Work, at: float) -> int:
    """How many pods of a unit fit when what ends by then has left."""
    total = 0
    for number, (devices, cpu) in enumerate(yard.nodes):
        for _, node, work, end in yard.running.values():
            if node == f"n{number}" and not (work.declares and end <= at):
                devices -= work.devices
                cpu -= work.cpu
        total += min(devices // unit.devices, cpu // unit.cpu)
    return total


def _only(yard: Yard) -> Reservation:
    (found,) = yard.reservations()
    return found


def test_what_comes_second_begins_when_the_first_is_done() -> None:
    """A unit that needs the room of one that has not started yet has a reservation after that, if it is known how long it runs."""
    yard = Yard([(1, 4)])
    for work in (Work("a", 0, 1, 1, 1, 100), Work("b", 0, 1, 1, 2, 50), Work("c", 0, 1, 1, 3, 7)):
        yard.arrive(work)
        yard.decide()
        yard.now += 1
    yard.settle()
    assert [each.at - BEGIN for each in yard.reservations()] == [100, 150]


def test_it_rests_on_the_pods_whose_places_it_takes() -> None:
    """Pods that end earlier on other nodes are not mentioned."""
    yard = Yard([(1, 4), (2, 4)])
    for work in (
        Work("two", 0, 1, 2, 1, 300),
        Work("one", 0, 1, 1, 1, 100),
        Work("unit", 1, 1, 2, 1, 10),
    ):
        yard.arrive(work)
        yard.decide()
    found = _only(yard)
    assert found.at == BEGIN + 300
    assert [each.pod.metadata.name for each in found.gone] == ["one-0", "two-0"]
    assert [each.pod.metadata.name for each in found.rests_on] == ["two-0"]
