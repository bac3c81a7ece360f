"""Another place for pods of an admitted workload that lost their node.

Those that still have theirs stay, so the others have to go where the whole is still what was asked for:

- what is missing of a slice goes where the rest of the slice is. Slices were complete before, so what is left tells how much is missing
  where, even if the lost node is not known any more;
- slices that are lost as a whole, like single pods, go where the other pods are if a level is required, and into any one domain of that
  level if no others are left; otherwise as near to the others as there is room.

If there is no such place, the workload has to be evicted (NodeFailures), which is what the refusal says. A workload that consists of a
single pod is not for this: its pod is gone with the node, and so is the workload. Nor is a second failure while the first one is being
repaired; both are decided by whoever calls this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from drayman.placement.domains.tree import WHOLE
from drayman.placement.fit.requests import PODS
from drayman.quota.amounts import Amounts
from drayman.quota.demands import Domain, NotPlaced, Placement, TopologyDemand
from drayman.quota.topology.choosing import Choice
from drayman.quota.topology.counting import Limits
from drayman.quota.topology.descending import descended
from drayman.quota.topology.flavor import FlavorTopology
from drayman.quota.topology.wishes import Layer, Mode, Senseless, Wish, wish_of
from drayman.topology import Path

_Pods: TypeAlias = Counter[Path]
"""By lowest domain."""


def replaced(
    topology: FlavorTopology,
    demand: TopologyDemand,
    placement: Placement,
    lost: Iterable[Domain],
    used: Mapping[Domain, Amounts],
    limits: Limits | None = None,
) -> Placement | NotPlaced:
    """The placement of a pod set after the loss of some lowest domains. Those that the topology does not have any more are lost anyway.

    `used` is what is held by all workloads, this one included. A node that is lost but still there must be told to the topology as not
    ready, or it may be chosen again. `limits` is what devices allow of the pods on each node.
    """
    wish = wish_of(demand.request, topology.capacity.levels, demand.count)
    if isinstance(wish, Senseless):
        return NotPlaced(f"topology {topology.topology!r}: {wish.message}")
    return _Replacing(topology, demand, wish, used, limits).replaced(placement, frozenset(lost))


class _Replacing:
    def __init__(
        self,
        topology: FlavorTopology,
        demand: TopologyDemand,
        wish: Wish,
        used: Mapping[Domain, Amounts],
        limits: Limits | None,
    ) -> None:
        self._limits = limits
        self._topology = topology
        self._capacity = topology.capacity
        self._demand = demand
        self._wish = wish
        self._used = used
        self._pods: _Pods = Counter()
        self._added: _Pods = Counter()

    def replaced(self, placement: Placement, lost: frozenset[Domain]) -> Placement | NotPlaced:
        missing = 0
        for domain, count in placement.domains:
            leaves = self._capacity.leaves(domain)
            if leaves and domain not in lost:
                self._pods[leaves[0]] += count
            else:
                missing += count
        for home, number, layers in self._incomplete():
            number = min(number, missing)
            missing -= number
            if not self._placed(number, Wish(self._wish.mode, self._wish.level, layers), home):
                return self._refused(number, self._capacity.tree.title(home))
        if missing and not self._placed(missing, self._wish, WHOLE):
            where = f"topology {self._topology.topology!r}"
            if self._wish.mode is Mode.REQUIRED and self._pods:
                leaf = min(self._pods)
                where = self._capacity.tree.title(leaf[: self._wish.level + 1])
            return self._refused(missing, where)
        # In the order of all levels, as with a new placement.
        domains = tuple((self._capacity.domain(leaf), n) for leaf, n in sorted(self._pods.items()))
        return Placement(placement.levels, domains)

    def _refused(self, number: int, where: str) -> NotPlaced:
        return NotPlaced(
            f"pod set {self._demand.pod_set!r}: {number} pods lost their node, and there is no"
            f" room for them in {where}"
        )

    def _incomplete(self) -> Iterator[tuple[Path, int, tuple[Layer, ...]]]:
        """Domains in which slices are incomplete, with what is missing there and how that is divided further; inner slices first."""
        lowest = self._capacity.lowest
        layers = self._wish.layers
        for position in range(len(layers) - 1, -1, -1):
            layer = layers[position]
            if layer.level == lowest:
                continue
            inner = layers[position + 1 :] or (Layer(lowest, 1),)
            there: _Pods = Counter()
            for leaf, count in self._pods.items():
                there[leaf[: layer.level + 1]] += count
            for path, count in sorted(there.items()):
                if count % layer.size:
                    yield path, layer.size - count % layer.size, inner

    def _placed(self, number: int, wish: Wish, home: Path) -> bool:
        """Find places for so many pods in their home, as near to the others as may be."""
        units, rest = divmod(number, wish.slices.size)
        if rest:
            return False
        counts = self._topology.counts(wish, self._demand, None, self._used_now(), self._limits)
        choice = Choice(counts, smallest_first=wish.mode is Mode.UNCONSTRAINED)
        shares = None
        if home or self._pods:
            for scope in self._scopes(wish, home):
                shares = shares or choice.several(scope, units, leads=False)
        else:
            shares = self._topology.first(wish, choice, units, leads=False)
        if shares is None:
            return False
        grain = wish.grain(self._capacity.lowest)
        for share in descended(self._capacity, wish, choice, shares):
            self._pods[share.domain] += share.units * grain
            self._added[share.domain] += share.units * grain
        return True

    def _used_now(self) -> Mapping[Domain, Amounts]:
        """What is used once those have their places that were found so far."""
        total = dict(self._used)
        for leaf, count in self._added.items():
            domain = self._capacity.domain(leaf)
            held = Counter(total.get(domain, {}))
            held.update({name: amount * count for name, amount in self._demand.per_pod.items()})
            held.update({PODS: count})
            total[domain] = held
        return total

    def _scopes(self, wish: Wish, home: Path) -> Iterator[tuple[Path, ...]]:
        """Lists of domains to choose from, the nearest to the others first."""
        if home:
            yield (home,)
            return
        if wish.mode is not Mode.UNCONSTRAINED:
            widest = wish.level if wish.mode is Mode.REQUIRED else 0
            for level in range(wish.level, widest - 1, -1):
                yield tuple(sorted({leaf[: level + 1] for leaf in self._pods}))
        if wish.mode is not Mode.REQUIRED:
            level = wish.level if wish.mode is Mode.UNCONSTRAINED else 0
            yield self._capacity.domains(level)
