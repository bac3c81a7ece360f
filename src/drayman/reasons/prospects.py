"""Which nodes could take a pod, if not now: what decides between the kinds of reasons.

The real cluster says where the pod does not fit. Two suppositions say what to expect: with nothing in use, and with no taints
either. Both are asked with the placer that schedules, so *not now* means that a scheduler would place the pod if everything were given
back, and *never* that it would not. Only the pods that it must be near stay, without using anything.

A scheduler asks repeatedly about pods of the same shape, so the placers are kept: they follow the cluster and look only at what has
changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.allocator import Policy
from drayman.bounded import Bounded
from drayman.placement.demand import Demand
from drayman.placement.fit import FITS, Verdict
from drayman.placement.placing import Placer
from drayman.placement.state import ClusterState
from drayman.placement.trial import Emptied

_MOST_KEPT: Final = 256


class Supposition:
    """One supposed cluster, and what its nodes say about a pod."""

    def __init__(self, cluster: Emptied, placer: Placer, demand: Demand) -> None:
        self._cluster = cluster
        self._placer = placer
        self._demand = demand

    def refusals(self) -> Mapping[str, Verdict]:
        """What the nodes that do not take the pod say; the others would take it."""
        return self._placer.refusals(self._demand)

    def takes(self, name: str) -> bool:
        """Whether one node would."""
        return self._placer.verdict_on(self._demand, self._cluster.nodes[name]) is FITS

    def devices_verdict(self, name: str) -> Verdict:
        """What the devices of a node say, regardless of the node itself."""
        return self._placer.devices_verdict(self._demand, self._cluster.nodes[name])


class Prospects:
    """Suppositions about a cluster."""

    def __init__(self, state: ClusterState, policy: Policy = Policy.BEST) -> None:
        self._state = state
        self._policy = policy
        self._clusters = {flag: state.emptied(untainted=flag) for flag in (False, True)}
        self._placers: Bounded[object, Placer] = Bounded(_MOST_KEPT)

    def emptied(self, demand: Demand) -> Supposition:
        """Nothing is in use."""
        return self._supposition(demand, untainted=False)

    def untainted(self, demand: Demand) -> Supposition:
        """Nothing is in use, nothing is tainted, and no node is cordoned."""
        # Without any taint it is the same, and usually known already.
        return self._supposition(demand, untainted=self._state.has_taints)

    def _supposition(self, demand: Demand, *, untainted: bool) -> Supposition:
        if demand.held:
            # What the pod has already stays with it, and concerns no other pod.
            own = self._state.emptied(demand.held, untainted=untainted)
            return Supposition(own, Placer(own, self._policy), demand)
        key, cluster = (untainted, demand.key), self._clusters[untainted]
        placer = self._placers.get(key)
        if placer is None:
            placer = self._placers[key] = Placer(cluster, self._policy)
        return Supposition(cluster, placer, demand)
