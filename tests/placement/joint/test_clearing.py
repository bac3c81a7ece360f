"""Who has to go so that a whole gang starts, compared with every other choice of victims in small clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import nullcontext
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import priority_of
from drayman.api.resource import ResourceClaim
from drayman.placement.decision.deciding import Decider
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.gangs.book import ranked
from drayman.placement.gangs.gang import Gang
from drayman.placement.joint import clearing
from drayman.placement.joint.clearing import Cleared, Clearing, ClearingSearch, Present
from drayman.placement.joint.gangs import GangDecider, NoRoom, Starting
from drayman.placement.parties import Occupant, Party, parties_of
from drayman.placement.pauses import completed
from drayman.placement.preemption import Changed
from drayman.placement.victim_sets import Permitted
from drayman.placement.world import state_of
from oracle.observed import seen_in
from simulate.cluster import NOW, claim, cluster, node, pod

RACK = "topology.kubernetes.io/rack"
DRIVER = "gpu.example.com"
ONES = ("", "one", "two", "three")


class Low:
    """A pod that runs: on a node, with some of its devices."""

    def __init__(self, name: str, node: str, devices: Sequence[int], **fields: Any) -> None:
        stated = fields.pop("stated", {})
        results = [
            {"request": "gpu", "driver": DRIVER, "pool": node, "device": f"gpu-{index}"}
            for index in devices
        ]
        users = [{"resource": "pods", "name": name, "uid": name}]
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
        self.claim = claim(f"of-{name}", len(devices), status=status) if devices else None
        self.pod = pod(
            name,
            claim=f"of-{name}" if devices else "",
            nodeName=node,
            metadata={"annotations": stated},
            **fields,
        )


class Town:
    """Nodes in racks, pods that run there, and a gang `g` that waits."""

    def __init__(
        self,
        devices: dict[str, int],
        lows: Sequence[Low],
        *,
        racks: dict[str, str] | None = None,
        members: int = 2,
        least: int | None = None,
        each: int = 1,
        level: str = "",
        groups: Sequence[PodGroup] = (),
        **fields: Any,
    ) -> None:
        self.lows = lows
        self.protected: set[str] = set()
        self.safe: set[str] = set()
        self.permitted: Permitted[Party] | None = None
        fields = {"schedulingGroup": {"podGroupName": "g"}, "priority": 10, **fields}
        self.waiting = [pod(f"x{n}", ONES[each], **fields) for n in range(members)]
        spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": least or members}}}
        if level:
            spec["schedulingConstraints"] = {"topology": [{"key": level}]}
        own = convert(PodGroup, {"metadata": _named("g"), "spec": spec})
        racks = racks or {}
        world = cluster(
            devices,
            nodes=tuple(
                node(name, labels={RACK: racks[name]} if name in racks else {}) for name in devices
            ),
            pods=(*(low.pod for low in lows), *self.waiting),
            claims=tuple(low.claim for low in lows if low.claim is not None),
            pod_groups=(own, *groups),
        )
        self.state = state_of(world.objects)

    def decider(self) -> GangDecider:
        return GangDecider(
            Decider(self.state).round(NOW),
            Domains(self.state),
            CopyCounts(self.state),
            Policy.BEST,
        )

    def decide(self) -> NoRoom | Starting:
        key = self.state.gangs.key_of(self.waiting[0])
        assert key is not None
        outcome = self.decider().decide_about(key, self.waiting)
        assert isinstance(outcome, NoRoom | Starting), outcome
        return outcome

    def present(self, is_in_the_way: Callable[[Occupant], bool]) -> Present:
        """Those that may go, as a scheduler would list them."""
        book, parties = self.state.gangs, list[Party]()
        for low in self.lows:
            if self.state.node_of(low.pod.metadata.uid) and book.key_of(low.pod) is None:
                occupant = self._occupant(low.pod)
                parties += [] if occupant.is_safe else [Party.alone(occupant)]
        for key in book.all_keys():
            gang = book.gang(key)
            members = [self._occupant(m.pod) for m in ranked(book.placed(key))]
            if members and isinstance(gang, Gang):
                parties += parties_of(gang, members, Counter(), is_in_the_way)
        return Present(tuple(party for party in parties if party.priority < 10))

    def _occupant(self, each: Pod) -> Occupant:
        uid = each.metadata.uid
        claims: tuple[ResourceClaim, ...] = self.state.claims_used_by(each)
        return Occupant(each, claims, each.spec.node_name or "", is_safe=uid in self.safe)

    def violating(self, pods: Sequence[Pod]) -> Generator[None, None, set[str]]:
        yield from ()
        return {p.metadata.uid for p in pods} & self.protected

    def search(self, is_due: Callable[[], bool] = lambda: False) -> ClearingSearch:
        refused = self.decide()
        assert isinstance(refused, NoRoom)
        return Clearing(
            self.state,
            refused,
            self.waiting,
            self.decider,
            self.present,
            self.violating,
            nullcontext,
            is_due,
            permitted=self.permitted,
        ).search()

    def cleared(self) -> Cleared | None:
        found = completed(self.search())
        assert not isinstance(found, Changed)
        return found

    def starts_without(self, parties: Sequence[Party]) -> bool:
        with self.state.trial() as trial:
            for party in parties:
                party.leave(trial)
            return isinstance(self.decide(), Starting)

    def level(self, parties: Sequence[Party]) -> tuple[bool, int]:
        """How bad it is that these go: whether one of them is protected, and the most important of them."""
        protected = any(not self.protected.isdisjoint(party.uids) for party in parties)
        return protected, max((party.priority for party in parties), default=-1)

    def seen(self) -> Any:
        usage = {
            name: (each.usage.cpu, set(each.usage.pods)) for name, each in self.state.nodes.items()
        }
        return usage, seen_in(self.state.ledger)


def _named(name: str) -> dict[str, str]:
    return {"name": name, "namespace": "default", "uid": name}


def names(found: Cleared | None) -> list[str] | None:
    return None if found is None else sorted(each.metadata.name for each in found.pods)


def as_one(name: str) -> PodGroup:
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, "disruptionMode": "PodGroup"}
    return convert(PodGroup, {"metadata": _named(name), "spec": spec})


def test_the_cheapest_nodes_are_cleared() -> None:
    """Few pods instead of many, where they free as much."""
    lows = [Low(f"s{n}", "a", [n]) for n in range(2)] + [Low("l", "b", [0, 1])]
    town = Town({"a": 2, "b": 2}, lows, members=1, each=2)
    assert names(town.cleared()) == ["l"]


def test_the_least_important_go_though_they_are_more() -> None:
    lows = [Low(f"s{n}", "a", [n]) for n in range(2)] + [Low("l", "b", [0, 1], priority=5)]
    town = Town({"a": 2, "b": 2}, lows, members=1, each=2)
    assert names(town.cleared()) == ["s0", "s1"]


def test_those_that_a_budget_protects_go_last() -> None:
    lows = [Low(f"s{n}", "a", [n]) for n in range(2)] + [Low("l", "b", [0, 1], priority=5)]
    town = Town({"a": 2, "b": 2}, lows, members=1, each=2)
    town.protected = {"s0"}
    assert names(town.cleared()) == ["l"]
    town.safe = {"l"}
    assert names(town.cleared()) == ["s0", "s1"]


def test_nobody_goes_where_it_would_not_be_enough() -> None:
    town = Town({"a": 2}, [Low("l", "a", [0, 1])], members=3)
    assert town.cleared() is None


def test_those_who_are_not_in_the_way_stay() -> None:
    """A pod without devices on a node that is cleared, and one more than is needed."""
    lows = [Low("d0", "a", [0]), Low("d1", "a", [1]), Low("idle", "a", [])]
    town = Town({"a": 2}, lows, members=1)
    found = names(town.cleared())
    assert found is not None
    assert len(found) == 1
    assert "idle" not in found


def test_room_is_made_within_one_domain() -> None:
    racks = {"a0": "a", "a1": "a", "b0": "b", "b1": "b"}
    lows = [
        Low("p", "a0", [0], priority=1),
        Low("q", "a1", [0], priority=1),
        Low("r", "b0", [0]),
        Low("s", "b1", [0], priority=2),
    ]
    town = Town(dict.fromkeys(racks, 1), lows, racks=racks, level=RACK)
    assert names(town.cleared()) == ["p", "q"]


def test_a_gang_that_goes_as_one_goes_as_one() -> None:
    group = {"podGroupName": "l"}
    lows = [Low(f"m{n}", f"n{n}", [0], schedulingGroup=group) for n in range(3)]
    town = Town({f"n{n}": 1 for n in range(3)}, lows, members=1, groups=[as_one("l")])
    assert names(town.cleared()) == ["m0", "m1", "m2"]


def test_members_beyond_the_quorum_go_wherever_they_are() -> None:
    """Not those with the highest ranks, but those in the way."""
    stated = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "low"}
    lows = [Low("m0", "big", [0], stated=stated), Low("m1", "big", [1], stated=stated)]
    lows += [Low(f"m{n}", f"n{n}", [0], stated=stated) for n in (2, 3)]
    town = Town({"big": 2, "n2": 1, "n3": 1}, lows, members=1, each=2)
    assert names(town.cleared()) == ["m0", "m1"]


def test_below_the_quorum_all_of_them_go() -> None:
    stated = {"drayman.dev/gang": "3", "drayman.dev/gang-name": "low"}
    lows = [Low(f"m{n}", f"n{n}", [0], stated=stated) for n in range(4)]
    town = Town({f"n{n}": 1 for n in range(4)}, lows, members=2)
    assert names(town.cleared()) == ["m0", "m1", "m2", "m3"]


def test_a_gang_of_which_one_is_left_alone_stays_above_its_quorum() -> None:
    stated = {"drayman.dev/gang": "1", "drayman.dev/gang-name": "low"}
    lows = [Low(f"m{n}", f"n{n}", [0], stated=stated) for n in range(2)]
    town = Town({"n0": 1, "n1": 1}, lows, members=1)
    town.safe = {"m0"}
    assert names(town.cleared()) == ["m1"]
    crowded = Town({"n0": 1, "n1": 1}, lows, members=2)
    crowded.safe = {"m0"}
    assert crowded.cleared() is None


def test_what_leaves_anyway_is_waited_for() -> None:
    town = Town({"a": 1, "b": 1}, [Low("p", "a", [0]), Low("q", "b", [0])], members=1)
    listed = town.present

    def present(is_in_the_way: Callable[[Occupant], bool]) -> Present:
        leaving, staying = listed(is_in_the_way).parties
        return Present((staying,), (leaving,))

    town.present = present  # type: ignore[method-assign]
    found = town.cleared()
    assert found is not None
    assert names(found) == []
    assert [each.metadata.name for each in found.leaving] == ["p"]
    assert [each.metadata.name for each in found.freed] == ["of-p"]


def test_what_has_changed_in_a_break_is_noticed() -> None:
    """One who was about to go is taken for another, or has become a reason to search again."""
    town = Town({"a": 1, "b": 1}, [Low("p", "a", [0]), Low("q", "b", [0])], members=2)
    breaks = sum(1 for _ in town.search(lambda: True))
    search = town.search(lambda: True)
    for _ in range(breaks):
        next(search)
    town.safe = {"p"}
    assert isinstance(completed(search), Changed)


@pytest.mark.parametrize("late", ["a", "b"])
def test_of_equals_those_go_that_started_last(late: str) -> None:
    """The names of nodes decide only if start times are equal."""
    lows = [
        Low(name, node, [0], status={"startTime": f"2026-01-01T00:00:0{1 + (node == late)}Z"})
        for name, node in (("p", "a"), ("q", "b"))
    ]
    town = Town({"a": 1, "b": 1}, lows, members=1)
    assert names(town.cleared()) == ["p" if late == "a" else "q"]


def test_a_search_that_is_out_of_decisions_ends_with_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With few decisions to make, more may go than have to, but the gang starts: it is not put off for another search like this one."""
    lows = [Low(f"p{n}", f"n{n}", [0], priority=n % 4) for n in range(30)]
    for most in (0, 1, 2):
        monkeypatch.setattr(clearing, "MOST_DECISIONS", most)
        town = Town({f"n{n}": 1 for n in range(30)}, lows, members=20)
        found = names(town.cleared())
        assert found is not None
        assert len(found) >= 20
        assert Town({f"n{n}": 1 for n in range(30)}, lows, members=31).cleared() is None


def test_sets_of_victims_that_are_not_permitted_are_left_alone() -> None:
    """Two of four may go, and both have to be on one node: whole nodes are tried after the first two."""
    lows = [Low(f"{node}{n}", node, [n]) for n in range(2) for node in ("a", "b")]
    town = Town({"a": 2, "b": 2}, lows, members=1, each=2)
    asked: list[tuple[str, ...]] = []

    def permitted(order: Sequence[Party]) -> list[Party]:
        asked.append(tuple(pod.metadata.name for party in order for pod in party.pods))
        return list(order[:2])

    town.permitted = permitted
    assert names(town.cleared()) in (["a0", "a1"], ["b0", "b1"])
    town.permitted = lambda order: list(order[:1])
    assert town.cleared() is None


@st.composite
def towns(draw: st.DrawFn) -> Town:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    devices = {f"n{number}": size for number, size in enumerate(sizes)}
    racks = {name: draw(st.sampled_from("ab")) for name in devices}
    free = [(name, index) for name, size in devices.items() for index in range(size)]
    lows: list[Low] = []
    for name, size in devices.items():
        left = list(range(size))
        while left and len(lows) < 7:
            taken = draw(st.integers(0, len(left)))
            if not taken:
                break
            fields: dict[str, Any] = {"priority": draw(st.integers(0, 2))}
            kind = draw(st.sampled_from(["alone", "alone", "as one", "quorum", "singly"]))
            match kind:
                case "as one" | "singly":
                    fields |= {"schedulingGroup": {"podGroupName": kind.replace(" ", "-")}}
                case "quorum":
                    stated = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "low"}
                    fields |= {"stated": stated}
            lows.append(Low(f"p{len(lows)}", name, left[:taken], **fields))
            left = left[taken:]
    members = draw(st.integers(1, 3))
    singly = convert(
        PodGroup,
        {"metadata": _named("singly"), "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}},
    )
    town = Town(
        devices,
        lows,
        racks=racks,
        members=members,
        least=draw(st.integers(1, members)),
        each=draw(st.integers(1, 3)),
        level=draw(st.sampled_from(["", RACK])),
        groups=[as_one("as-one"), singly],
    )
    uids = [low.pod.metadata.uid for low in lows]
    town.protected = set(draw(st.lists(st.sampled_from(uids), max_size=2)) if uids else ())
    town.safe = set(draw(st.lists(st.sampled_from(uids), max_size=1)) if uids else ())
    assert len(free) >= len(lows)
    return town


def choices(parties: Sequence[Party]) -> Iterator[tuple[Party, ...]]:
    """Every set of victims: nobody stays without the core of its gang."""
    for number in range(len(parties) + 1):
        for chosen in combinations(parties, number):
            picked = {id(party) for party in chosen}
            if all(p.core is None or id(p.core) not in picked or id(p) in picked for p in parties):
                yield chosen


@given(towns())
def test_victims_are_enough_needed_and_no_more_important_than_others_would_be(town: Town) -> None:
    """What is found is compared with all that could have been."""
    if isinstance(town.decide(), Starting):
        return
    before = town.seen()
    found = town.cleared()
    assert town.seen() == before
    nodes = (
        set() if found is None else {seat.found.node.facts.name for seat in found.starting.seats}
    )
    parties = town.present(lambda each: each.node in nodes).parties
    ways = [chosen for chosen in choices(parties) if town.starts_without(chosen)]
    if found is None:
        assert not ways
        return
    victims = {frozenset(party.uids) for party in found.victims}
    assert town.starts_without(found.victims)
    assert town.safe.isdisjoint({each.metadata.uid for each in found.pods})
    for party in found.victims:
        if any(party.core is each for each in found.victims):
            continue
        rest = [each for each in found.victims if each is not party]
        assert not town.starts_without(rest), f"{names(found)}: {party.uids} need not go"
    for key in town.state.gangs.all_keys():
        gang = town.state.gangs.gang(key)
        members = set(town.state.gangs.placed(key))
        gone = members & {each.metadata.uid for each in found.pods}
        if isinstance(gang, Gang) and not gang.goes_singly:
            left = len(members) - len(gone)
            whole = gang.goes_as_one or left < gang.least
            assert not gone or gone == members or not whole
    assert victims
    assert town.level(found.victims) == min(map(town.level, ways))
    assert all(priority_of(each) < 10 for each in found.pods)


@given(towns())
def test_breaks_change_nothing(town: Town) -> None:
    """Neither the state, in a break, nor the answer. The same snapshot has the same answer."""
    if isinstance(town.decide(), Starting):
        return
    before, wanted = town.seen(), town.cleared()
    search = town.search(lambda: True)
    while True:
        try:
            next(search)
        except StopIteration as end:
            found = end.value
            break
        assert town.seen() == before
    assert not isinstance(found, Changed)
    assert names(found) == names(wanted) == names(town.cleared())


@pytest.mark.parametrize("pods", [1, 40])
def test_few_decisions_are_enough_however_many_have_to_go(pods: int) -> None:
    """Trying every victim with a search for the whole gang would take minutes."""
    lows = [Low(f"p{n}", f"n{n}", [0]) for n in range(60)]
    town = Town({f"n{n}": 1 for n in range(60)}, lows, members=pods)
    asked = 0
    deciding = town.decider

    def counted() -> GangDecider:
        nonlocal asked
        asked += 1
        return deciding()

    town.decider = counted  # type: ignore[method-assign]
    found = names(town.cleared())
    assert found is not None
    assert len(found) == pods
    assert asked < 16
