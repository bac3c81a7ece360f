"""Room for a gang that was refused: which others have to go so that it starts.

Trying every victim with a search for the whole gang would take minutes. So it is done in the large first. What everybody who might go holds
is counted by node, and the nodes of a place in which the gang could be are ordered by what it costs to clear them. The fewest of them that
are enough by counting are cleared in a trial, and the gang is decided about as always; if it does not fit, more are cleared. Then the gang
has its seats, and those who are not in the way of a seat are spared, node by node, the most important first. In the end the gang is decided
about once more in a trial without the victims alone: nobody goes for a gang that would not fit.

Budgets and priorities come first: those who are protected by a budget, or more important than others, are not considered at all where the
gang fits without them. Victims are parties, so gangs go as gangs.

Queues permit some sets of victims and not others (`permitted`). Then the set that goes first by their order is tried like this. If the gang
does not fit without it, other sets are (`victim_sets`), whole nodes first.

A search ends with an answer. When it has reached its number of decisions, it decides once more, without all that may be evicted: if the
gang fits then, these are the victims that are spared as above, and otherwise none is evicted.

Where members depend on each other, or on pods elsewhere, nodes do not stand for themselves. Then, and where there are few victims, each of
them is spared by a decision about the whole gang; beyond `MOST_SPARED` of them, all stay victims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.inventory.allowance import UnfinishedError
from drayman.placement.demand import Demand
from drayman.placement.domains.rooms import Amounts
from drayman.placement.joint.clearing_counts import Counts, Level, by_node
from drayman.placement.joint.gangs import GangDecider, NoRoom, Starting
from drayman.placement.joint.seating import Seating, Seats
from drayman.placement.nodes import NodeState
from drayman.placement.parties import (
    MembersApart,
    Occupant,
    Party,
    in_order_of_going,
    in_order_of_return,
    leave,
)
from drayman.placement.pauses import Pauses, never
from drayman.placement.preemption import CHANGED, Changed, Violating
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial
from drayman.placement.victim_sets import Permitted, VictimSets

MOST_DECISIONS: Final = 48
"""Decisions about a whole gang in a search for victims, before all that may be evicted are tried together."""
MOST_SPARED: Final = 16
"""How many victims are spared by deciding about the whole gang without each of them."""


class Present(Struct, frozen=True):
    """Who is there besides the gang."""

    parties: tuple[Party, ...]
    """Those that may be evicted for it."""
    leaving: tuple[Party, ...] = ()
    unused: tuple[ResourceClaim, ...] = ()
    """Claims that are about to give back their devices because no pod uses them any more."""


class Cleared(Struct, frozen=True, eq=False):
    """Who has to go for a gang, and where it then starts."""

    starting: Starting
    victims: tuple[Party, ...]
    leaving: tuple[Pod, ...]
    """Pods that leave anyway and whose room it takes."""
    freed: tuple[ResourceClaim, ...]
    """The claims that give back their devices when all of them are gone."""

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods to evict."""
        return tuple(pod for party in self.victims for pod in party.pods)


ClearingSearch = Generator[None, None, Cleared | Changed | None]
"""Yields where a break is due; the state is then as it was. `Changed`: it makes sense to search again."""
Listing = Callable[[Callable[[Occupant], bool]], Present]
"""Who is there now. The argument says of which members of a gang it is better that they go."""


_Found = tuple[Collection[str], Starting]


class Clearing:
    """One search. Leaves the state as it found it."""

    def __init__(
        self,
        state: ClusterState,
        refused: NoRoom,
        candidates: Sequence[Pod],
        deciding: Callable[[], GangDecider],
        listing: Listing,
        violating: Violating,
        limited: Callable[[], AbstractContextManager[object]],
        is_due: Callable[[], bool] = never,
        reserve: Callable[[], None] = lambda: None,
        permitted: Permitted[Party] | None = None,
    ) -> None:
        """`candidates` are the members that wait; `limited` limits the work of one decision; `is_due` says whether a break is due.

        `reserve` counts, in a trial, what the gang may not have though it is free: room that is reserved for others. `permitted` says
        which of those that may be evicted may go together; None: all of them.
        """
        self._state = state
        self._refused = refused
        self._candidates = candidates
        self._deciding = deciding
        self._listing = listing
        self._violating = violating
        self._limited = limited
        self._reserve = reserve
        self._permitted = permitted
        self._decisions = 0
        self._gave_up = False
        self._order: dict[str, int] = {}
        """The order in which the victims that were found last may go."""
        self._pauses = Pauses(is_due)

    def search(self) -> ClearingSearch:
        """The cheapest way that is found."""
        try:
            found = yield from self._search()
        except UnfinishedError:
            return CHANGED
        return CHANGED if found is None and self._gave_up else found

    def _search(self) -> ClearingSearch:
        present = self._listing(lambda _: True)
        if present.leaving or present.unused:
            starting = self._decide(present, ())
            if starting is not None:
                return self._result(present, (), starting)
            yield from self._pauses.if_due()
        if not present.parties:
            return None
        levels = yield from self._levels(present.parties)
        first = present if self._permitted is None else self._first_permitted(present, levels)
        found = yield from self._in_the_large(first, levels)
        if found is None and self._permitted is not None:
            self._decisions = 0
            found = yield from self._elsewhere(present, levels, self._permitted)
        if found is None:
            return None
        gone, starting = found
        present, victims = self._with_seats(gone, starting)
        if victims is None:
            return CHANGED
        seats = {seat.found.node.facts.name for seat in starting.seats}
        protected = yield from self._pauses.noting(self._violating(_pods(victims)))
        if self._deciding().are_apart(starting.seats):
            spared = yield from self._sparedby_node(present, victims, starting, protected, seats)
        else:
            spared = victims
        return (yield from self._verified(victims, spared, protected, seats))

    # In the large: which nodes are cleared.

    def _levels(self, parties: Sequence[Party]) -> Generator[None, None, Mapping[int, Level]]:
        """How bad it is that each of the parties goes. A gang is as bad as the worst of its members."""
        cheapest_first = list(reversed(in_order_of_return(parties, ())))
        protected = yield from self._pauses.noting(self._violating(_pods(cheapest_first)))
        uids = frozenset(protected)
        levels = {id(p): (not uids.isdisjoint(p.uids), p.priority) for p in parties}
        for party in parties:
            if party.core is not None and id(party.core) in levels:
                levels[id(party.core)] = max(levels[id(party.core)], levels[id(party)])
        return levels

    def _in_the_large(
        self, present: Present, levels: Mapping[int, Level]
    ) -> Generator[None, None, _Found | None]:
        """Who goes if whole nodes are cleared, by uid, and where the gang then starts."""
        steps = sorted({levels[id(party)] for party in present.parties})
        counts = Counts(present.parties, self._homes(), lambda gone: self._amounts(present, gone))
        while steps:
            at, homes = yield from self._pauses.within(counts.first_enough(steps, levels))
            if not homes:
                return None
            yield from self._pauses.if_due()
            allowed = [party for party in present.parties if levels[id(party)] <= steps[at]]
            for home in homes:
                found = yield from self._in_home(counts, present, allowed, levels, home)
                if found is not None:
                    return found
                if self._is_out_of_decisions:
                    return self._decided(present, present.parties)
            # What counting does not know is in the way. Where there are very many steps, not each of them is tried.
            steps = steps[at + 1 :]
            steps = steps[len(steps) // 2 :] if len(steps) > MOST_DECISIONS else steps
        return None

    def _in_home(
        self,
        counts: Counts,
        present: Present,
        allowed: Sequence[Party],
        levels: Mapping[int, Level],
        home: Collection[str],
    ) -> Generator[None, None, _Found | None]:
        """The fewest nodes of a place that have to be cleared, those that cost least first."""
        order = counts.order(allowed, levels, home)
        least = counts.fewest(order, home)
        on_node = by_node(allowed)
        low, high, reach = least - 1, len(order), 0
        best: _Found | None = None
        number = least
        while low < number <= high and not self._is_out_of_decisions:
            touched = {id(p): p for name in order[:number] for p in on_node[name]}
            parties = _with_their_gangs(allowed, touched)
            found = self._decided(present, parties)
            if found is not None:
                best, high = found, number - 1
            else:
                low = number
            if best is None:
                reach = 2 * reach + 1
                number = min(low + reach, high)
            else:
                number = (low + high + 1) // 2
            yield from self._pauses.if_due()
        return best

    # Where queues permit some sets of victims only.

    def _may_go(self, parties: Sequence[Party], levels: Mapping[int, Level]) -> list[Party]:
        """Of parties, those that may go together, in the order in which they should."""
        order = _in_order(parties, levels)
        return list(order if self._permitted is None else self._permitted(order))

    def _first_permitted(self, present: Present, levels: Mapping[int, Level]) -> Present:
        """The victims that go first by the order of their queues, as many as may."""
        return replace(present, parties=tuple(self._may_go(present.parties, levels)))

    def _elsewhere(
        self, present: Present, levels: Mapping[int, Level], permitted: Permitted[Party]
    ) -> Generator[None, None, _Found | None]:
        """Other victims that may go together, by uid, and where the gang then starts: without those that budgets protect if possible."""
        counted = self._amounts(present, ())
        if counted is None:
            return None
        now, need = counted
        for is_protected in sorted({levels[id(party)][0] for party in present.parties}):
            allowed = [p for p in present.parties if levels[id(p)][0] <= is_protected]
            for home in self._homes():
                missing = tuple(
                    n - sum(now[h][i] for h in home if h in now) for i, n in enumerate(need)
                )
                sets = self._sets(present, allowed, levels, home, missing, permitted)
                for victims in sets:
                    if self._is_out_of_decisions:
                        return None
                    found = None if victims is None else self._decided(present, victims)
                    if found is not None:
                        return found
                    yield from self._pauses.if_due()
        return None

    def _sets(
        self,
        present: Present,
        allowed: Sequence[Party],
        levels: Mapping[int, Level],
        home: Collection[str],
        missing: Amounts,
        permitted: Permitted[Party],
    ) -> VictimSets[Party]:
        apart = MembersApart(_in_order(allowed, levels), permitted)
        on_node = by_node(apart.candidates)

        def held(node: str, gone: Sequence[Party]) -> Amounts:
            counted = self._amounts(present, gone)
            return (
                (0,) * len(missing)
                if counted is None
                else counted[0].get(node, (0,) * len(missing))
            )

        here = {name: on_node[name] for name in home if name in on_node}
        return VictimSets(apart.candidates, here, apart.permitted, held, missing)

    def _are_permitted(self, parties: Sequence[Party]) -> bool:
        """Whether these may go together after all: which members of a gang it can do without depends on where its others are."""
        if self._permitted is None:
            return True
        last = len(self._order)
        line = sorted(
            parties, key=lambda p: min(self._order.get(each.uid, last) for each in p.members)
        )
        return len(self._permitted(line)) == len(parties)

    # In the small: who is spared.

    def _with_seats(
        self, gone: Collection[str], starting: Starting
    ) -> tuple[Present, list[Party] | None]:
        """Who is there, with those members of gangs going first that are where the gang has its seats, and who of them goes."""
        nodes = {seat.found.node.facts.name for seat in starting.seats}
        present = self._listed(nodes, gone)
        touched = {id(p): p for p in present.parties if not p.uids.isdisjoint(gone)}
        victims = _with_their_gangs(present.parties, touched)
        still = {uid for party in victims for uid in party.uids}
        lost = [uid for uid in gone if uid not in still and self._state.node_of(uid) is not None]
        return present, None if lost else victims

    def _listed(self, nodes: Collection[str], gone: Collection[str]) -> Present:
        """Who is there. A gang does without members on these nodes; where queues permit some sets only, without those that go by them."""
        if self._permitted is None:
            return self._listing(lambda each: each.node in nodes)
        return self._listing(lambda each: each.uid in gone)

    def _sparedby_node(
        self,
        present: Present,
        victims: Sequence[Party],
        starting: Starting,
        protected: Collection[str],
        nodes: Collection[str],
    ) -> Generator[None, None, list[Party]]:
        """Those of the victims that still have to go if the gang keeps its seats."""
        table = _Table(self._deciding().seating, starting.seats)
        going = {id(party): party for party in victims}
        here = by_node(victims)
        leaving = by_node(present.leaving)
        for party in in_order_of_return(victims, protected):
            if party.core is not None and id(party.core) in going:
                continue
            stays = True
            for name in dict.fromkeys(each.node for each in party.members if each.node in nodes):
                gone = [p for p in here[name] if p is not party and id(p) in going]
                node = self._state.nodes.get(name)
                with self._state.trial() as trial, self._limited():
                    for claim in present.unused:
                        trial.free(claim)
                    for each in (*leaving.get(name, ()), *gone):
                        leave((m for m in each.members if m.node == name), trial)
                    self._reserve()
                    stays = node is not None and table.has_seats(node)
                if not stays:
                    break
            if stays:
                del going[id(party)]
            yield from self._pauses.if_due()
        return list(going.values())

    def _verified(
        self,
        victims: Sequence[Party],
        spared: Sequence[Party],
        protected: Collection[str],
        nodes: Collection[str],
    ) -> ClearingSearch:
        """The gang fits without those who are left alone, or else without all. Both is looked at in the cluster as it is by now."""
        chosen = list(spared)
        present = self._listing(lambda each: each.node in nodes)
        starting = self._decide(present, chosen) if self._are_permitted(chosen) else None
        if starting is None and len(spared) < len(victims) and self._are_permitted(victims):
            chosen = list(victims)
            starting = self._decide(present, chosen)
        if starting is None:
            return CHANGED if self._pauses.any else None
        if len(chosen) <= MOST_SPARED:
            for party in in_order_of_return(chosen, protected):
                if party.core is not None and any(party.core is each for each in chosen):
                    continue
                yield from self._pauses.if_due()
                if self._is_out_of_decisions:
                    break
                fewer = [each for each in chosen if each is not party]
                without = self._decide(present, fewer)
                if without is not None:
                    chosen, starting = fewer, without
        if not self._pauses.any:
            return self._result(present, chosen, starting)
        return self._once_more(chosen, nodes)

    def _once_more(self, chosen: Sequence[Party], nodes: Collection[str]) -> Cleared | Changed:
        """The same victims in the cluster as it is now, if they may still go and still suffice."""
        wanted = {uid for party in chosen for uid in party.uids}
        present = self._listed(nodes, wanted)
        wanted = {uid for uid in wanted if self._state.node_of(uid) is not None}
        again = [party for party in present.parties if not party.uids.isdisjoint(wanted)]
        if {uid for party in again for uid in party.uids} != wanted:
            return CHANGED
        if not self._are_permitted(again):
            return CHANGED
        starting = self._decide(present, again)
        return CHANGED if starting is None else self._result(present, again, starting)

    # Questions.

    def _decide(self, present: Present, victims: Iterable[Party]) -> Starting | None:
        """Where the gang starts without these, and without those that leave anyway."""
        self._decisions += 1
        with self._state.trial() as trial, self._limited():
            _clear(trial, present, victims)
            self._reserve()
            outcome = self._deciding().decide_about(self._refused.gang.key, self._candidates)
        self._gave_up |= isinstance(outcome, NoRoom) and outcome.gave_up
        return outcome if isinstance(outcome, Starting) else None

    def _decided(self, present: Present, victims: Sequence[Party]) -> _Found | None:
        """These, by uid, and where the gang starts without them."""
        starting = self._decide(present, victims)
        if starting is None:
            return None
        uids = [each.uid for party in victims for each in party.members]
        self._order = {uid: number for number, uid in enumerate(uids)}
        return frozenset(uids), starting

    @property
    def _is_out_of_decisions(self) -> bool:
        return self._decisions >= MOST_DECISIONS

    def _amounts(
        self, present: Present, victims: Iterable[Party]
    ) -> tuple[Mapping[str, Amounts], Amounts] | None:
        """What each node holds of the gang without these, by counting, and what is needed. None if the gang names no level that exists."""
        with self._state.trial() as trial, self._limited():
            _clear(trial, present, victims)
            self._reserve()
            counted = self._deciding().counted(self._refused)
            if counted is None:
                return None
            tree = counted.rooms.tree
            leaves = {name: tree.leaf(name) for name in self._state.nodes}
            held = {
                name: counted.rooms.of(leaf) for name, leaf in leaves.items() if leaf is not None
            }
            return held, counted.request.need

    def _homes(self) -> tuple[tuple[str, ...], ...]:
        homes = self._deciding().homes(self._refused)
        return tuple(tuple(node.facts.name for node in nodes) for nodes in homes)

    def _result(self, present: Present, victims: Iterable[Party], starting: Starting) -> Cleared:
        nodes = {seat.found.node.facts.name for seat in starting.seats}
        chosen = tuple(victims)
        leaving = [p for p in present.leaving if any(each.node in nodes for each in p.members)]
        with self._state.trial() as trial:
            _clear(trial, Present((), tuple(leaving), present.unused), chosen)
            freed = trial.freed
        return Cleared(starting, chosen, tuple(_pods(leaving)), freed)


class _Table:
    """Who sits on which node, and whether nodes still have these seats. Nodes that are alike are asked once."""

    def __init__(self, seating: Seating, seats: Seats) -> None:
        self._seating = seating
        self._demands: dict[str, list[Demand]] = {}
        for seat in seats:
            self._demands.setdefault(seat.found.node.facts.name, []).append(seat.demand)
        self._known: dict[Hashable, bool] = {}

    def has_seats(self, node: NodeState) -> bool:
        demands = self._demands[node.facts.name]
        kinds = Counter(demand.key for demand in demands)
        first = {demand.key: demand for demand in reversed(demands)}
        like = self._seating.likeness(node, [first[key] for key in kinds])
        asked = (like, tuple(kinds.items()))
        if asked not in self._known:
            self._known[asked] = self._seating.seats(node, demands) is not None
        return self._known[asked]


def _clear(trial: Trial, present: Present, victims: Iterable[Party]) -> None:
    for claim in present.unused:
        trial.free(claim)
    for party in (*present.leaving, *victims):
        party.leave(trial)


def _in_order(parties: Sequence[Party], levels: Mapping[int, Level]) -> list[Party]:
    """Parties in the order in which they go."""
    protected = [uid for party in parties if levels[id(party)][0] for uid in party.uids]
    return in_order_of_going(parties, protected)


def _with_their_gangs(parties: Iterable[Party], touched: Mapping[int, Party]) -> list[Party]:
    """Some parties, with the members of gangs that make no sense without them."""
    return [
        party
        for party in parties
        if id(party) in touched or (party.core is not None and id(party.core) in touched)
    ]


def _pods(parties: Iterable[Party]) -> list[Pod]:
    return [pod for party in parties for pod in party.pods]
