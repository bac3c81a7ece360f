"""Room for a group that does not fit: who would have to go, or to move, so that it starts.

Victims are added party by party, in the order of `Order.victims`. For each pod of the group in turn, those on one node have to suffice: a
pod needs a single node. Only where a limit is what keeps the group out, victims anywhere count. Then those that were taken away come
back where they can, each as its queue's turn comes: before the group, if they are entitled to more. So nobody goes for a group that would
not get the room, and who finds another place is moved.

Whether a way is acceptable is decided by those who ask (`Judgement`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from drayman.placement.queueing.queues import Amount
from drayman.quota.shares.accounts import Accounts, amount
from drayman.quota.shares.groups import Strength, Worker, Workers, next_to_return, strength_of
from drayman.quota.shares.order import Order


class MadeRoom(Struct, frozen=True):
    """A way to make room for a group."""

    group: str
    seats: Mapping[str, str]
    """Where its pods go."""
    gone: Workers
    """Those that lose their places."""
    moved: Mapping[str, str]
    """Those that go elsewhere, and where."""

    @property
    def evicted(self) -> tuple[str, ...]:
        """Everybody who has to stop."""
        return (*(each.name for each in self.gone), *self.moved)


Judgement: TypeAlias = Callable[[Workers, Sequence[Workers], Sequence[Workers]], bool]
"""Whether a way is acceptable: the pods that start, the parties that would not be where they were, and those of them that have no place.

It is asked while the accounts show the way as if it were carried out.
"""


@dataclass(slots=True)
class RoomMaker:
    """Looks for ways to make room. Leaves the accounts as it found them."""

    accounts: Accounts
    order: Order
    most_moved: int | None = None
    """How many pods may be taken away at most, where all of them have to find another place."""

    def clear(
        self, group: str, ahead: str | None, victims: Collection[str], judgement: Judgement
    ) -> MadeRoom | None:
        """Room for the next start of a group. `ahead` is the group with which its queue stands in line, if it is another."""
        for workers in self.accounts.starts(group):
            search = _Search(self, group, ahead, tuple(victims), judgement)
            found = search.found_for(workers)
            if found is not None:
                return found
        return None


@dataclass(slots=True)
class _Search:
    maker: RoomMaker
    group: str
    ahead: str | None
    victims: tuple[str, ...]
    judgement: Judgement

    def found_for(self, workers: Workers) -> MadeRoom | None:
        """Room for one pod, then for one more, and so on, each on top of what was taken for those before."""
        if not self._would_fit_alone(workers):
            return None
        parties: tuple[Workers, ...] = ()
        found: MadeRoom | None = None
        for number in range(1, len(workers) + 1):
            way = self._extended(workers[:number], parties)
            if way is None:
                return None
            parties, found = way
        return found

    def _would_fit_alone(self, workers: Workers) -> bool:
        """Whether the pods would fit if all victims were gone. If not, there is no need to look at them one by one."""
        accounts = self.maker.accounts
        with accounts.trial():
            for name in self.victims:
                for each in accounts.running(name):
                    accounts.lift(each.name)
            return accounts.seat(self.group, workers)

    def _extended(
        self, workers: Workers, parties: tuple[Workers, ...]
    ) -> tuple[tuple[Workers, ...], MadeRoom] | None:
        """The first way for these pods that takes these parties away, and perhaps more."""
        for more in self._additions(workers, parties):
            found = self._tried(workers, (*parties, *more))
            if found is not None:
                return (*parties, *more), found
        return None

    def _additions(
        self, workers: Workers, parties: tuple[Workers, ...]
    ) -> Iterator[tuple[Workers, ...]]:
        """Which further parties to take away. Room that is free without taking any is given out when the cycle begins."""
        if parties:
            yield ()
        taken = [worker for party in parties for worker in party]
        potential: list[Workers] = []
        by_priority = self.maker.most_moved is None
        for party in self.maker.order.victims(self.victims, taken, by_priority=by_priority):
            potential.append(party)
            is_limited = False
            for here in self._by_node(party, potential):
                yield here
                whole = self._with_the_rest(here, potential)
                if len(whole) > len(here):
                    yield whole
                if len(here) > 1:
                    yield (party,)  # those before it may not be needed, and not find back
                is_limited |= not self._is_allowed(workers, (*parties, *here))
            if is_limited and len(potential) > 1:
                yield tuple(potential)

    def _by_node(self, latest: Workers, potential: Sequence[Workers]) -> list[tuple[Workers, ...]]:
        """The parties on each node of the latest one, the fewest pods first."""
        accounts = self.maker.accounts
        found = []
        for node in dict.fromkeys(accounts.node_of(each.name) for each in latest):
            here = (u for u in potential if any(accounts.node_of(w.name) == node for w in u))
            found.append(tuple(here))
        return sorted(found, key=lambda parties: sum(map(len, parties)))

    def _with_the_rest(
        self, parties: Sequence[Workers], potential: Sequence[Workers]
    ) -> tuple[Workers, ...]:
        """The same parties, with all others of groups that could not do without them."""
        accounts = self.maker.accounts
        gone = {worker.name for party in parties for worker in party}
        broken: set[str] = set()
        for name in {party[0].group for party in parties}:
            left = [each for each in accounts.running(name) if each.name not in gone]
            if left and strength_of(accounts.groups[name], left) is Strength.BELOW:
                broken.add(name)
        chosen = {id(party) for party in parties}
        return tuple(u for u in potential if id(u) in chosen or u[0].group in broken)

    def _is_allowed(self, workers: Workers, parties: tuple[Workers, ...]) -> bool:
        """Whether limits and quotas leave room for the pods once parties are gone, wherever they are."""
        accounts = self.maker.accounts
        with accounts.trial():
            for party in parties:
                for each in party:
                    accounts.lift(each.name)
            return accounts.allows(self.group, workers)

    def _tried(self, workers: Workers, parties: tuple[Workers, ...]) -> MadeRoom | None:
        """What comes of it if parties are taken away."""
        accounts, most = self.maker.accounts, self.maker.most_moved
        if most is not None and sum(map(len, parties)) > most:
            return None
        before = {each.name: accounts.node_of(each.name) for party in parties for each in party}
        weak = {
            party[0].group
            for party in parties
            if accounts.strength(party[0].group) is Strength.BELOW
        }
        with accounts.trial():
            for name in before:
                accounts.lift(name)
            if not self._seated(workers, parties) or self._is_any_broken(parties, weak):
                return None
            changed = [
                _those(party, lambda w: accounts.node_of(w.name) != before[w.name])
                for party in parties
            ]
            lost = [_those(party, lambda w: accounts.node_of(w.name) is None) for party in parties]
            if not self.judgement(workers, list(filter(None, changed)), list(filter(None, lost))):
                return None
            moved = {
                each.name: node
                for party in changed
                for each in party
                if (node := accounts.node_of(each.name)) is not None
            }
            seats = {each.name: accounts.node_of(each.name) or "" for each in workers}
            return MadeRoom(self.group, seats, tuple(w for party in lost for w in party), moved)

    def _is_any_broken(self, parties: Sequence[Workers], weak: Collection[str]) -> bool:
        """Whether a group that had enough members would be left with too few, and not with none."""
        accounts = self.maker.accounts
        groups = {party[0].group for party in parties}
        return any(
            accounts.running(name) and accounts.strength(name) is Strength.BELOW
            for name in groups.difference(weak)
        )

    def _seated(self, workers: Workers, parties: tuple[Workers, ...]) -> bool:
        """Give out what is free now, to the group and to those that were taken away. Returns whether the group gets its part."""
        accounts = self.maker.accounts
        gone: dict[str, list[Worker]] = {}
        for party in parties:
            for each in party:
                gone.setdefault(each.group, []).append(each)

        def returning(name: str) -> Workers:
            return next_to_return(accounts.groups[name], accounts.running(name), gone[name])

        def request(name: str) -> Amount:
            if name != self.group:
                return amount(returning(name))
            return amount(workers) if self.ahead is None else accounts.request(self.ahead)

        line = self.maker.order.line(dict.fromkeys((*gone, self.group)), request)
        while line:
            name = line.take()
            if name == self.group:
                if not accounts.seat(name, workers):
                    return False
            elif back := returning(name):
                accounts.seat(name, back)
        return True


def _those(party: Workers, chosen: Callable[[Worker], bool]) -> Workers:
    return tuple(filter(chosen, party))
