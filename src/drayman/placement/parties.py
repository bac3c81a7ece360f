"""Pods that go together, if they go: victims of preemption are counted in parties, not in pods.

A pod on its own is a party. Of a gang, below its quorum the rest is of no use, so members up to the quorum are one party, its core, which
takes everybody else along; those beyond it are parties of their own and go first. Which members are the core is a matter of choice: those
that are not in the way. A gang may also say that all of it goes as one, or that its members are evicted singly whatever is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.pods import priority_of
from drayman.api.resource import ResourceClaim
from drayman.api.times import seconds_of
from drayman.placement.gangs.gang import Gang, GangKey
from drayman.placement.gangs.importance import importance_of_running
from drayman.placement.gangs.quorum import Sparing
from drayman.placement.trial import Trial


class Occupant(Struct, frozen=True):
    """A pod on a node, with the claims that it uses."""

    pod: Pod
    claims: tuple[ResourceClaim, ...] = ()
    node: str = ""
    part: str = ""
    """The subgroup of its gang."""
    is_safe: bool = False
    """Whether it is not to be evicted at the moment, however unimportant it is."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid


class Party(Struct, frozen=True, eq=False):
    """Pods that go together."""

    members: tuple[Occupant, ...]
    priority: int
    is_leaving: bool = False
    """Whether they are about to go regardless of preemption."""
    gang: GangKey | None = None
    """Set if this is a gang, or as much of it as it cannot do without."""
    core: Party | None = None
    """The rest of its gang, without which there is no point in staying."""

    @staticmethod
    def alone(
        occupant: Occupant, priority: int | None = None, *, is_leaving: bool = False
    ) -> Party:
        """A pod that goes by itself."""
        own = priority_of(occupant.pod) if priority is None else priority
        return Party((occupant,), own, is_leaving)

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(each.pod for each in self.members)

    @property
    def age(self) -> tuple[float, str]:
        """Since when the first of them runs, or infinity if none has begun; then when it was created."""
        return min(
            (_start(each.pod), each.pod.metadata.creation_timestamp or "") for each in self.members
        )

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(each.uid for each in self.members)

    @property
    def is_safe(self) -> bool:
        return any(each.is_safe for each in self.members)

    def leave(self, trial: Trial) -> None:
        leave(self.members, trial)

    def come_back(self, trial: Trial) -> None:
        for each in self.members:
            if trial.has_evicted(each.uid):
                trial.restore(each.uid)


def leave(occupants: Iterable[Occupant], trial: Trial) -> None:
    """In a trial: these pods are gone."""
    for each in occupants:
        if trial.counts(each.uid):  # it may have gone during a break
            trial.evict(each.uid, each.claims)


def parties_of(
    gang: Gang,
    members: Sequence[Occupant],
    succeeded: Mapping[str, int],
    is_in_the_way: Callable[[Occupant], bool],
) -> list[Party]:
    """The members of a gang that have nodes, as parties. The core comes first, and none is returned that must stay.

    `succeeded` are those that have done their part, by subgroup: they count for the quorum.
    """
    priority = importance_of_running(gang.priority, [each.pod for each in members])
    if gang.is_preemptible is False or not members:
        return []
    if not goes_together(gang):
        return [Party.alone(each, priority) for each in members if not each.is_safe]
    if gang.goes_as_one:
        whole = Party(tuple(members), priority, gang=gang.key)
        return [] if whole.is_safe else [whole]
    core, beyond = _split(gang, members, succeeded, is_in_the_way)
    parties: list[Party] = []
    rest = Party(tuple(core), priority, gang=gang.key) if core else None
    if rest is not None and not any(each.is_safe for each in members):
        parties.append(rest)
    return [*parties, *(Party((e,), priority, core=rest) for e in beyond if not e.is_safe)]


def goes_together(gang: Gang) -> bool:
    """Whether members of a gang may take others with them."""
    has_quorum = gang.least > 0 or any(each.least for each in gang.subgroups)
    return gang.goes_as_one or (has_quorum and not gang.goes_singly)


def _split(
    gang: Gang,
    members: Sequence[Occupant],
    succeeded: Mapping[str, int],
    is_in_the_way: Callable[[Occupant], bool],
) -> tuple[list[Occupant], list[Occupant]]:
    """The members that the gang cannot do without, and those beyond: those that may go, first those in the way, then the last ones."""
    has = Counter(succeeded)
    has.update(each.part for each in members)
    last_first = list(reversed(members))
    last_first.sort(key=lambda each: (each.is_safe, not is_in_the_way(each)))
    if not gang.subgroups:
        beyond = last_first[: max(0, has.total() - gang.least)]
    else:
        sparing = Sparing(gang, has)
        beyond = [each for each in last_first if sparing.spare(each.part)]
    spare = {each.uid for each in beyond}
    return [each for each in members if each.uid not in spare], beyond


def in_order_of_return(parties: Sequence[Party], protected: Iterable[str]) -> list[Party]:
    """Parties in the order in which they are spared: those that a budget protects, the most important, the core of a gang, the oldest."""
    uids = set(protected)
    of_budgets = {id(party) for party in parties if not uids.isdisjoint(party.uids)}
    # A member that stays needs the core of its gang.
    of_budgets |= {id(p.core) for p in parties if id(p) in of_budgets and p.core is not None}
    return sorted(
        parties,
        key=lambda p: (id(p) not in of_budgets, -p.priority, p.core is not None, p.age),
    )


def in_order_of_going(parties: Sequence[Party], protected: Iterable[str]) -> list[Party]:
    """Parties in the order in which they go: the least important, what gangs can do without, the newest; last those of a budget."""
    return in_order_of_return(parties, protected)[::-1]


def earliest_start(parties: Iterable[Party]) -> float:
    """Since when the oldest of the most important of some parties runs; infinity if it has not begun."""
    there = tuple(parties)
    highest = max((party.priority for party in there), default=0)
    return min((p.age[0] for p in there if p.priority == highest), default=inf)


class MembersApart:
    """Parties for a search that chooses itself which members of a gang stay: each member of one that can shrink is a candidate."""

    def __init__(
        self, parties: Sequence[Party], permitted: Callable[[Sequence[Party]], Sequence[Party]]
    ) -> None:
        """`permitted` says of parties that would go in an order which of them may."""
        self._permitted = permitted
        self._spare: dict[int, Counter[str]] = {}
        """How many members of each part a gang can do without, by `id` of its core."""
        self._cores: dict[int, Party] = {}
        self._of_core: dict[int, Party] = {}  # by `id` of each candidate
        self._members: dict[int, list[Party]] = {}
        self._whole = frozenset(map(id, parties))
        for party in parties:
            if party.core is not None:
                self._cores[id(party.core)] = party.core
                spare = self._spare.setdefault(id(party.core), Counter())
                spare[party.members[0].part] += 1
        self.candidates: list[Party] = []
        """In the order of the parties."""
        for party in parties:
            if id(party) not in self._cores:
                self._add(party, party.core)
        for core in self._cores.values():
            for each in core.members:
                if not each.is_safe:
                    self._add(Party((each,), core.priority, core=core), core)

    def _add(self, candidate: Party, core: Party | None) -> None:
        self.candidates.append(candidate)
        if core is not None:
            self._of_core[id(candidate)] = core
            self._members.setdefault(id(core), []).append(candidate)

    def permitted(self, order: Sequence[Party]) -> list[Party]:
        """Of candidates that would go in this order, those that may. Below its quorum, all of a gang goes."""
        line: list[tuple[Party, tuple[Party, ...]]] = []
        spare = {key: Counter(parts) for key, parts in self._spare.items()}
        gone: set[int] = set()

        def go_alone(candidate: Party, core: Party) -> bool:
            part = candidate.members[0].part
            if spare[id(core)][part] <= 0:
                return False
            spare[id(core)][part] -= 1
            line.append((candidate, (candidate,)))
            gone.add(id(candidate))
            return True

        for candidate in order:
            core = self._of_core.get(id(candidate))
            if core is None:
                line.append((candidate, (candidate,)))
            elif id(candidate) not in gone and not go_alone(candidate, core):
                if id(core) not in self._whole:
                    continue
                left = [each for each in self._members[id(core)] if id(each) not in gone]
                rest = tuple(e for e in left if e is candidate or not go_alone(e, core))
                gone.update(map(id, rest))
                members = tuple(member for each in rest for member in each.members)
                line.append((replace(core, members=members), rest))
        stands_for = {id(party): candidates for party, candidates in line}
        found = self._permitted([party for party, _ in line])
        return [each for party in found for each in stands_for[id(party)]]


def gangs_of(parties: Iterable[Party]) -> tuple[GangKey, ...]:
    """The gangs that go as one."""
    return tuple(party.gang for party in parties if party.gang is not None)


def _start(pod: Pod) -> float:
    return inf if pod.status.start_time is None else seconds_of(pod.status.start_time)
