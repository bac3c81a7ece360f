"""What nodes see, kept between views: each part once for all nodes that see the same of it."""

from __future__ import annotations

from weakref import WeakKeyDictionary, ref

from drayman.api.core import Node
from drayman.inventory.composition import Composition
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import PoolId
from drayman.inventory.ledger import Ledger
from drayman.inventory.pool import ResolvedPool
from drayman.inventory.usage import Usage, UsageTracker, nothing_held


class VisiblePools:
    """Some pools, and what is held of them: the same for all nodes that see the same slices of them."""

    __slots__ = ("__weakref__", "_first", "_others", "hardware", "pools")

    def __init__(self, hardware: NodeHardware, pools: frozenset[PoolId]) -> None:
        self.hardware = hardware
        self.pools = pools  # whether they are usable or not
        # There is one ledger, except for trials; its tracker has to be found at once.
        self._first: tuple[ref[Ledger], UsageTracker] | None = None
        self._others: WeakKeyDictionary[Ledger, UsageTracker] | None = None

    def usage(self, ledger: Ledger) -> Usage:
        if not ledger.clock:
            return self.hardware.derived(nothing_held)
        first = self._first
        if first is None or first[0]() is None:
            first = self._first = (ref(ledger), UsageTracker(self.hardware))
        tracker = first[1] if first[0]() is ledger else self._other_tracker(ledger)
        return tracker.usage(ledger)

    def _other_tracker(self, ledger: Ledger) -> UsageTracker:
        if self._others is None:
            self._others = WeakKeyDictionary()
        found = self._others.get(ledger)
        if found is None:
            found = self._others[ledger] = UsageTracker(self.hardware)
        return found


class VisibleDevices:
    """All that one node sees: its own devices, and those that it sees together with other nodes."""

    __slots__ = ("_composition", "_latest", "_node", "groups", "parts", "problems")

    def __init__(self, node: Node, groups: tuple[VisiblePools, ...]) -> None:
        self._node = node
        self.groups = groups
        # A group without devices is not a part to choose from. If none has any, there is still a view of nothing.
        self.parts = tuple([g for g in groups if g.hardware.records]) or groups[:1]
        problems = [problem for group in groups for problem in group.hardware.problems]
        problems.sort(key=lambda pool: pool.id)
        self.problems: tuple[ResolvedPool, ...] = tuple(problems)
        self._composition: Composition | None = None
        self._latest: tuple[tuple[Usage, ...], Usage] | None = None

    def sees(self, pool: PoolId) -> bool:
        """Whether something of the pool is for this node."""
        return any(pool in group.pools for group in self.groups)

    def together(self, usages: tuple[Usage, ...]) -> Usage:
        """What is held of all the parts, if this is held of each. The same object if asked again."""
        if len(usages) == 1:
            return usages[0]
        if self._latest is None or self._latest[0] != usages:
            self._latest = (usages, self._composed().usage(usages))
        return self._latest[1]

    def _composed(self) -> Composition:
        if self._composition is None:
            first, *others = [part.hardware for part in self.parts]
            whole = first.joined_with(others, self._node)
            self._composition = Composition([first, *others], whole)
        return self._composition
