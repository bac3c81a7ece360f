"""What is promised to a gang: to all members together, out of reach of others, and taken back as one."""

from __future__ import annotations

from drayman.placement.gangs.gang import GangKey
from drayman.placement.joint.gangs import Starting
from drayman.placement.nominations import Nomination, Nominations
from placement.joint.test_clearing import Low, Town


class Promised:
    """A gang of two, to which the devices of two less important pods on two nodes are promised."""

    def __init__(self) -> None:
        self.town = Town({"a": 1, "b": 1}, [Low("p", "a", [0]), Low("q", "b", [0])], members=2)
        found = self.town.cleared()
        assert found is not None
        self.key = self.town.state.gangs.key_of(self.town.waiting[0])
        assert isinstance(self.key, GangKey)
        self.before = self.town.seen()
        self.nominations = Nominations(self.town.state)
        seats = [(s.demand.needs, s.demand.pod, s.found) for s in found.starting.seats]
        self.made: tuple[Nomination, ...] = self.nominations.promise_gang(
            self.key, 10, seats, found.pods, found.freed
        )

    def let_go(self) -> None:
        """The victims are gone, and their claims have given back their devices."""
        for low in self.town.lows:
            self.town.state.delete_pod(low.pod)
            assert low.claim is not None
            self.town.state.remove_claim(low.claim)

    @property
    def starts(self) -> bool:
        return isinstance(self.town.decide(), Starting)


def test_every_member_has_its_own_seat_and_all_wait_for_the_same() -> None:
    promised = Promised()
    assert sorted(each.node for each in promised.made) == ["a", "b"]
    assert len({id(each.departing) for each in promised.made}) == 1
    assert {pod.metadata.name for pod in promised.made[0].departing} == {"p", "q"}
    assert all(promised.nominations.expects_to_go(uid) for uid in ("p", "q"))


def test_room_is_out_of_reach_of_everybody_but_the_gang() -> None:
    """Each member sees what is kept for all of them as free; others, and nobody in particular, do not."""
    promised = Promised()
    promised.let_go()
    assert not promised.starts
    for member in promised.town.waiting:
        with promised.nominations.as_seen_by(member):
            assert promised.starts
    with promised.nominations.as_seen_by(promised.town.lows[0].pod):
        assert not promised.starts


def test_a_claim_that_is_given_back_for_the_gang_is_kept_from_others_alone() -> None:
    promised = Promised()
    low = promised.town.lows[0]
    assert low.claim is not None
    assert promised.nominations.keeps(low.claim, low.pod) is not None
    assert promised.nominations.keeps(low.claim, promised.town.waiting[1]) is None


def test_the_promise_is_taken_back_as_one() -> None:
    promised = Promised()
    assert promised.key is not None
    assert {pod.metadata.name for pod in promised.nominations.withdraw_gang(promised.key)} == {
        "x0",
        "x1",
    }
    assert promised.nominations.of_gang(promised.key) is None
    assert not promised.nominations
    assert promised.town.seen() == promised.before


def test_one_member_that_goes_leaves_the_others_what_is_theirs() -> None:
    """It may be replaced, and the rest of the room is still wanted then."""
    promised = Promised()
    assert promised.key is not None
    promised.nominations.withdraw("x0")
    left = promised.nominations.of_gang(promised.key)
    assert left is not None
    assert left.uid == "x1"
    promised.nominations.withdraw("x1")
    assert promised.town.seen() == promised.before
