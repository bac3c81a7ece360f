"""How many pods and slices each domain of a topology holds.

The room of a domain is counted in units (`Wish.grain`): slices of the outermost layer down to the level of that layer, slices of the next
layer below it, single pods at last. A unit of a wide level consists of units of the next finer one, and what is left over in a domain in
which slices have to be complete does not count above it.

With a leader (one pod of another kind that has to be in the same domain) there is a second number: what is left for the others if the
leader is there as well. Only one of the domains has the leader, so the sum above loses what the cheapest of them loses.

Counts are kept as long as pods ask for the same, and only the domains are counted again that changed, with those above them: the cost of a
placement does not depend on how many workloads there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from drayman.api.core import Toleration
from drayman.placement.fit.node_choice import NodeChoice
from drayman.quota.amounts import Amounts
from drayman.quota.demands import Domain
from drayman.quota.topology.capacity import Capacity, Host
from drayman.quota.topology.usage import DomainUsage
from drayman.quota.topology.wishes import Wish
from drayman.topology import Path

NO_LEADER: Final = -1
_NOTHING: Final[Amounts] = {}


class Held(NamedTuple):
    """What a domain holds."""

    units: int
    with_leader: int
    """Units beside the leader; NO_LEADER if it has no room for the leader."""
    pods: int


class PodKind(Struct, frozen=True, eq=False):
    """What pods ask of a node. `pods`, their slot, is included."""

    amounts: tuple[tuple[str, int], ...]
    choice: NodeChoice
    tolerations: tuple[Toleration, ...]
    served: frozenset[str] = frozenset()
    """Extended resources that devices serve on nodes that do not offer them."""

    def of_node(self, host: Host) -> Sequence[tuple[str, int]]:
        """What the pods ask of a node itself."""
        if not self.served:
            return self.amounts
        return [each for each in self.amounts if each[0] not in self.served or host.offers(each[0])]


class Limits(Protocol):
    """What else limits how many pods a node holds: devices."""

    def on(self, node: str) -> tuple[int, int]:
        """How many pods of the set a node holds, and how many beside the leader (NO_LEADER if none)."""
        ...


class Counts:
    """What the domains of a topology hold of one kind of pods, in the slices that they ask for."""

    def __init__(
        self,
        capacity: Capacity,
        wish: Wish,
        workers: PodKind,
        leader: PodKind | None,
    ) -> None:
        self._capacity = capacity
        self._wish = wish
        self._workers = workers
        self._leader = leader
        self._held: dict[Path, Held] = {}
        self._limits: dict[Path, str] = {}
        self._shape = -1
        self._read_nodes = 0
        self._usage: Mapping[Domain, Amounts] = {}
        self._read_usage = 0
        self._seen: dict[Domain, dict[str, int]] = {}

    def renew(self, used: Mapping[Domain, Amounts], limits: Limits | None = None) -> None:
        """Count again what changed, if so much is used of each lowest domain. With limits, everything: they follow from elsewhere."""
        capacity = self._capacity
        stale = self._stale(used)
        if limits is not None or stale is None or self._shape != capacity.shape:
            self._shape = capacity.shape
            self._limits.clear()
            self._held.clear()
            stale = dict.fromkeys(capacity.domains(capacity.lowest))
        for leaf in stale:
            self._held[leaf] = self._count(leaf, used.get(capacity.domain(leaf), _NOTHING), limits)
        level: Iterable[Path] = stale
        for length in range(capacity.lowest, 0, -1):
            level = dict.fromkeys([path[:length] for path in level])
            for path in level:
                self._held[path] = self._sum(path)

    def of(self, domain: Path) -> Held:
        return self._held[domain]

    def limited_by(self) -> Counter[str]:
        """How many lowest domains are limited by what: a resource, or why their nodes take none of the pods."""
        return Counter(self._limits.values())

    def _stale(self, used: Mapping[Domain, Amounts]) -> dict[Path, None] | None:
        """The lowest domains that may have changed; None if it may be any of them."""
        capacity = self._capacity
        changed = capacity.changed.since(self._read_nodes)
        self._read_nodes = capacity.changed.position
        domains = self._changed(used)
        if changed is None or domains is None:
            return None
        found = dict.fromkeys(changed)
        for domain in domains:
            found.update(dict.fromkeys(capacity.leaves(domain)))
        return found

    def _changed(self, used: Mapping[Domain, Amounts]) -> Sequence[Domain] | None:
        before, self._usage = self._usage, used
        if isinstance(used, DomainUsage):
            read, self._read_usage = self._read_usage, used.notes.position
            return used.notes.since(read) if used is before else None
        if isinstance(before, DomainUsage):
            self._seen = {domain: dict(held) for domain, held in used.items()}
            return None
        seen = self._seen
        changed = [domain for domain, held in used.items() if seen.get(domain, _NOTHING) != held]
        gone = [domain for domain in seen if domain not in used]
        # Copied: whoever keeps the amounts may go on to change them.
        seen.update({domain: dict(used[domain]) for domain in changed})
        for domain in gone:
            del seen[domain]
        return [*changed, *gone]

    def _count(self, leaf: Path, used: Amounts, limits: Limits | None) -> Held:
        hosts = self._capacity.hosts(leaf)
        if len(hosts) == 1:
            pods, beside, limit = self._on(hosts[0], used, limits)
        else:
            pods, beside, limit = self._on_several(hosts, used, limits)
        self._limits[leaf] = limit
        size = self._wish.grain(self._capacity.lowest)
        return Held(pods // size, beside // size if beside > 0 else beside, pods)

    def _on(self, host: Host, used: Amounts, limits: Limits | None) -> tuple[int, int, str]:
        """How many pods a node holds if so much of it is used, how many beside the leader, and what limits that."""
        workers, leader = self._workers, self._leader
        refusal = host.refusal(workers.choice, workers.tolerations)
        asked = workers.of_node(host)
        pods, limit = (0, refusal) if refusal else _most(host.left, used, asked)
        beside = NO_LEADER
        if leader is not None and not host.refusal(leader.choice, leader.tolerations):
            its_own = leader.of_node(host)
            if _most(host.left, used, its_own)[0]:
                with_it = Counter(used)
                with_it.update(dict(its_own))
                beside = 0 if refusal else _most(host.left, with_it, asked)[0]
        if limits is None:
            return pods, beside, limit
        most, most_beside = limits.on(host.facts.name)
        return min(pods, most), min(beside, most_beside), "devices" if most < pods else limit

    def _on_several(
        self, hosts: Sequence[Host], used: Amounts, limits: Limits | None
    ) -> tuple[int, int, str]:
        """The same of nodes that the topology does not tell apart, of which only the sum of what is used is known.

        The pods have to fit into the sum, and whatever is used, no node holds more than when it is empty.
        """
        each = [self._on(host, _NOTHING, limits) for host in hosts]
        limit = Counter(each_limit for _, _, each_limit in each).most_common(1)[0][0]
        pods = sum(number for number, _, _ in each)
        losses = [number - beside for number, beside, _ in each if beside != NO_LEADER]
        together: Counter[str] = Counter()
        for host in hosts:
            if not host.refusal(self._workers.choice, self._workers.tolerations):
                together.update(host.left)
        # What none of them has was counted node by node.
        asked = [each for each in self._workers.amounts if together.get(each[0])]
        of_sum, by_sum = _most(together, used, asked)
        if of_sum < pods:
            pods, limit = of_sum, by_sum
        if not losses or self._leader is None:
            return pods, NO_LEADER, limit
        its_own = [each for each in self._leader.amounts if together.get(each[0])]
        if not _most(together, used, its_own)[0]:
            return pods, NO_LEADER, limit
        with_it = Counter(used)
        with_it.update(dict(its_own))
        beside = min(pods - min(losses), _most(together, with_it, asked)[0])
        return pods, max(0, beside), limit

    def _sum(self, path: Path) -> Held:
        """What a domain holds, by what those within it hold."""
        held = self._held
        units = pods = 0
        least_loss = -1
        for child in self._capacity.tree.children(path):
            within = held[child]
            units += within.units
            pods += within.pods
            if within.with_leader != NO_LEADER:
                loss = within.units - within.with_leader
                if least_loss < 0 or loss < least_loss:
                    least_loss = loss
        with_leader = NO_LEADER if least_loss < 0 else units - least_loss
        level = len(path) - 1
        wide, narrow = self._wish.grain(level), self._wish.grain(level + 1)
        if wide == narrow:
            return Held(units, with_leader, pods)
        if with_leader != NO_LEADER:
            with_leader = with_leader * narrow // wide
        return Held(units * narrow // wide, with_leader, pods)


def _most(
    left: Mapping[str, int], used: Amounts, asked: Sequence[tuple[str, int]]
) -> tuple[int, str]:
    """How many pods fit, and of what there is the least."""
    most, limit = -1, ""
    for name, amount in asked:
        number = (left.get(name, 0) - used.get(name, 0)) // amount
        if most < 0 or number < most:
            if number <= 0:
                return 0, name
            most, limit = number, name
    return most, limit
