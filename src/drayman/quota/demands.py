"""What a workload asks for, set by set, and the two questions about it that others answer.

Quota itself only counts numbers. What devices cost is the business of a `Pricing` (`quota/charging`), where pods could go in a topology
that of a `TopologyPlacer` (`quota/topology`). Both are given to the engine, which asks them and keeps the answers; neither knows of queues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from drayman.api.core import NodeSelector, Pod, Toleration
from drayman.api.kueue import PodTemplate
from drayman.api.kueue_workload import TopologyRequest
from drayman.quota.amounts import Amounts, plus, times
from drayman.quota.claims.prices import ClaimPrice, together


class PodSetDemand(Struct, frozen=True):
    """What the pods of one set ask for. All pods of a set are alike."""

    name: str
    count: int
    min_count: int | None
    """The least that the workload can do with; None: all or nothing."""
    per_pod: Amounts
    """After transformations, exclusions and the price of devices, never negative."""
    claims: tuple[ClaimPrice, ...]
    """What the set costs however many pods it has: claims that its pods name. Who pays for them is known when quota is reserved."""
    of_nodes: Amounts
    """What a pod asks of the node it runs on, as its containers say it."""
    node_selector: Mapping[str, str]
    affinity: NodeSelector | None
    """What node affinity requires."""
    tolerations: tuple[Toleration, ...]
    topology: TopologyRequest | None
    sample: Pod | None = None
    """One of the pods, if they may ask for devices."""
    devices: Amounts = {}
    """What the devices of a pod cost, which is part of `per_pod`."""
    priced: PodSetRequest | None = None
    """What was priced, if it may cost otherwise in a flavor."""
    admin_devices: int = 0
    """Devices that each pod looks at with admin access, at no cost."""

    @property
    def once(self) -> Amounts:
        """What the set costs as a whole if nobody else uses its claims."""
        return together(self.claims)

    @property
    def alone(self) -> dict[str, int]:
        """What all pods of the set cost if nobody else uses its claims. What they ask for beside others: `flavors.asking.asked_of`."""
        return plus(times(self.per_pod, self.count), self.once)


# The price of devices.


class PodSetRequest(Struct, frozen=True):
    """A pod set that is to be priced."""

    name: str
    count: int
    template: PodTemplate
    min_count: int | None = None
    """With how few pods the workload can start: there need be devices for no more than these."""
    runs_elsewhere: bool = False
    """Whether its pods run in another cluster: devices are charged by their class, even if this cluster has none."""

    @property
    def may_ask_for_devices(self) -> bool:
        """Whether pods have claims, or a container asks for a resource that devices may stand behind."""
        spec = self.template.spec
        return bool(spec.resource_claims) or any(
            "/" in name
            for container in (*spec.init_containers, *spec.containers)
            for name in {**container.resources.requests, **container.resources.limits}
        )


class Charged(Struct, frozen=True):
    """What the devices of one pod cost."""

    charges: Amounts
    """To be added to what a pod of the set asks for, by the name of the quota resource."""
    replaced: frozenset[str] = frozenset()
    """Resources of the pod's own requests that the charges stand for. They are not counted as such."""
    claims: tuple[ClaimPrice, ...] = ()
    """The claims that the pods name: what each costs all of its users, however many pods the set has."""
    varies: bool = False
    """Whether it depends on the devices that there are: those on the nodes of a flavor may cost otherwise."""
    admin_devices: int = 0
    """Devices that a pod looks at with admin access: they cost nothing."""

    @property
    def once(self) -> Amounts:
        """What the set costs as a whole if nobody else uses its claims."""
        return together(self.claims)


class Unpriced(Struct, frozen=True):
    """Why the devices of a workload cannot be priced, so that it gets no quota."""

    message: str
    """With the path of the field, the class, and how many devices match and are wanted."""
    retryable: bool
    """Whether it may pass without a change of the workload: the template or the class is missing, too few devices match."""
    reason: str = "Misconfigured"


class Pricing(Protocol):
    """Prices workloads from the claims, claim templates, classes and slices that it knows.

    A price depends on nothing else: whoever changes those objects has the engine price the waiting workloads again
    (`QuotaState.devices_changed`, `set_workload`).
    """

    def price_workload(
        self,
        namespace: str,
        pod_sets: Sequence[PodSetRequest],
        *,
        workload: str = "",
        flavor: Mapping[str, str] | None = None,
    ) -> Mapping[str, Charged] | Unpriced:
        """What one pod of each set costs, by the name of the set. A template without devices is `Charged({})`.

        All sets at once, because they may share claims and compete for devices. `workload` is the key of the workload. With the node
        labels of a `flavor`, only devices on its nodes are there.
        """
        ...


# Places in a topology.

Domain = tuple[str, ...]
"""The values of all levels of a topology, from wide to narrow, that identify a lowest domain: the last is a host name, as a rule."""


class Placement(Struct, frozen=True):
    """Where the pods of a set go."""

    levels: tuple[str, ...]
    domains: tuple[tuple[Domain, int], ...]
    """The lowest domains and the number of pods in each, in ascending order of their values."""


class NotPlaced(Struct, frozen=True):
    """Pods for which the topology has no place."""

    message: str


class TopologyDemand(Struct, frozen=True):
    """Pods of one set that need places: all of its pods, or as many as partial admission leaves."""

    pod_set: str
    count: int
    per_pod: Amounts
    """What the pod asks of a node, without the price of devices. A pod's slot (`pods`) is counted by whoever places it."""
    node_selector: Mapping[str, str]
    affinity: NodeSelector | None
    tolerations: tuple[Toleration, ...]
    """Those of the pod and those of the flavor."""
    request: TopologyRequest
    sample: Pod | None = None
    """One of the pods, if they may ask for devices: what nodes hold of them then depends on those, too."""
    served: frozenset[str] = frozenset()
    """Extended resources with a DeviceClass. On nodes that do not offer them, only devices count for them."""


class TopologyPlacer(Protocol):
    """The nodes of one flavor, ordered by the levels of its topology."""

    def place(
        self, demands: Sequence[TopologyDemand], used: Mapping[Domain, Amounts]
    ) -> Mapping[str, Placement] | NotPlaced:
        """Places for pod sets that are placed as one (a single set, or those of a group), by the name of the set.

        `used` is what workloads hold in each lowest domain, `pods` included. Empty: as if nobody else were there.
        """
        ...
