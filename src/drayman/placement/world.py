"""A cluster as it was at one moment: its objects, and the state in which pods can be placed on it.

Read from an API server, or from a snapshot in a file. It is not watched and nothing is written back, so questions can be tried out on it:
`explain` and the planner ask what a scheduler with this state would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Final

from drayman.api.core import Namespace, Node, Pod
from drayman.api.custom_groups import (
    KaiPodGroup,
    KaiQueue,
    KaiTopology,
    KueueTopology,
    PluginPodGroup,
)
from drayman.api.jobs import Job
from drayman.api.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    WorkloadPriorityClass,
)
from drayman.api.kueue_workload import Workload as QueuedWorkload
from drayman.api.meta import ObjectMeta
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import (
    Device,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from drayman.api.struct import Json
from drayman.api.volume_binding import default_class, with_class
from drayman.api.workloads import (
    DaemonSet,
    Deployment,
    Lease,
    PodDisruptionBudget,
    ReplicaSet,
    StatefulSet,
)
from drayman.inventory.features import Features
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.pool import PoolState
from drayman.inventory.published import published
from drayman.placement.followed import FOLLOWED
from drayman.placement.hints import Change
from drayman.placement.prices import NO_PRICES, PriceTable
from drayman.placement.schedulers import AbsentScheduler, Schedulers
from drayman.placement.state import ClusterState

_LEASES: Final = "leases"
"""The name under which the version of their list is kept, if it could be read."""


# Neither class has a generated repr: asyncio formats task results into unused strings, and formatting a cluster takes seconds.
@dataclass(frozen=True, slots=True, repr=False)
class Objects:
    """The objects that affect where pods go, and their owners: a member for each row of `HELD`."""

    nodes: tuple[Node, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    templates: tuple[ResourceClaimTemplate, ...] = ()
    pods: tuple[Pod, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    plugin_pod_groups: tuple[PluginPodGroup, ...] = ()
    kai_pod_groups: tuple[KaiPodGroup, ...] = ()
    kai_queues: tuple[KaiQueue, ...] = ()
    kai_topologies: tuple[KaiTopology, ...] = ()
    kueue_topologies: tuple[KueueTopology, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    storage_drivers: tuple[CSIDriver, ...] = ()
    storage_capacities: tuple[CSIStorageCapacity, ...] = ()
    jobs: tuple[Job, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    replica_sets: tuple[ReplicaSet, ...] = ()
    stateful_sets: tuple[StatefulSet, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    flavors: tuple[ResourceFlavor, ...] = ()
    cohorts: tuple[Cohort, ...] = ()
    cluster_queues: tuple[ClusterQueue, ...] = ()
    local_queues: tuple[LocalQueue, ...] = ()
    admission_checks: tuple[AdmissionCheck, ...] = ()
    workload_classes: tuple[WorkloadPriorityClass, ...] = ()
    queued_workloads: tuple[QueuedWorkload, ...] = ()
    leases: tuple[Lease, ...] = ()
    rules: tuple[dict[str, Json], ...] = ()
    """What the API server uses when pods are created: priority classes, runtime classes, limit ranges. Only the server reads them."""

    def joined(self, others: Objects) -> Objects:
        """These and others, which replace those of the same name."""
        return Objects(
            **{
                field.name: tuple(
                    {
                        _identity(value): value
                        for value in (*getattr(self, field.name), *getattr(others, field.name))
                    }.values()
                )
                for field in fields(self)
                if getattr(others, field.name) or getattr(self, field.name)
            }
        )


@dataclass(slots=True, eq=False, repr=False)
class World:
    """A cluster to ask questions about.

    `unseen` lists what could not be read for lack of permission, in the words of the API (`pods in namespace x`): answers must say so.
    `versions` are the resource versions of the lists, by plural name, with the group where another kind has that name.
    """

    objects: Objects
    now: float
    """When it was read, in seconds since the epoch."""
    unseen: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    features: Features = field(default_factory=Features)
    prices: PriceTable = NO_PRICES
    queue_configuration: Json = None
    """Kueue's Configuration, if one is known: how devices are charged, and how quota is shared."""
    _state: ClusterState | None = None
    _schedulers: Schedulers | None = None
    _slices: dict[PoolId, list[ResourceSlice]] | None = None
    _pools: dict[PoolId, Mapping[DeviceId, tuple[ResourceSlice, Device]]] = field(
        default_factory=dict
    )

    @property
    def state(self) -> ClusterState:
        """The state for placing pods. Make hypothetical changes to it only in a trial."""
        if self._state is None:
            self._state = state_of(self.objects, self.features, self.prices)
        return self._state

    def with_objects(self, objects: Objects) -> World:
        return World(
            objects,
            self.now,
            self.unseen,
            self.versions,
            self.features,
            self.prices,
            self.queue_configuration,
        )

    def with_prices(self, prices: PriceTable) -> World:
        world = self.with_objects(self.objects)
        world.prices = prices
        return world

    def with_queue_configuration(self, configuration: Json) -> World:
        world = self.with_objects(self.objects)
        world.queue_configuration = configuration
        return world

    def pod(self, namespace: str, name: str) -> Pod | None:
        found = (p for p in self.objects.pods if p.metadata.name == name)
        return next((p for p in found if p.metadata.namespace == namespace), None)

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return self.state.find_claim(namespace, name)

    def published(self, device: DeviceId) -> tuple[ResourceSlice, Device] | None:
        """A device as in the newest generation of its pool, whether or not the pool is usable.

        While a driver is still publishing a generation, the previous one counts too.
        """
        pool = device.pool_id
        if pool not in self._pools:
            if self._slices is None:
                self._slices = {}
                for slice_ in self.objects.slices:
                    key = PoolId(slice_.spec.driver, slice_.spec.pool.name)
                    self._slices.setdefault(key, []).append(slice_)
            self._pools[pool] = _devices_of(self._slices.get(pool, []))
        return self._pools[pool].get(device)

    def absent_scheduler(self, pod: Pod) -> AbsentScheduler | None:
        """The scheduler that is responsible for a pod and does not run; None if one runs, or that is not known."""
        if _LEASES not in self.versions:
            return None
        if self._schedulers is None:
            self._schedulers = Schedulers(self.objects.leases, self.objects.pods, self.now)
        return self._schedulers.absent_for(pod)

    def template(self, namespace: str, name: str) -> ResourceClaimTemplate | None:
        return self.state.find_template(namespace, name)


def _devices_of(slices: list[ResourceSlice]) -> Mapping[DeviceId, tuple[ResourceSlice, Device]]:
    """What the slices of one pool publish."""
    if not slices:
        return {}
    (pool,) = published(slices, {})
    if pool.state is not PoolState.INCOMPLETE:
        return pool.devices
    older = [each for each in slices if each.spec.pool.generation < pool.generation]
    return {**_devices_of(older), **pool.devices}


def _identity(value: object) -> tuple[str, str, str]:
    """What two objects of one list must not have in common."""
    if isinstance(value, dict):
        given = value.get("metadata") or {}
        return value.get("kind", ""), given.get("namespace", ""), given.get("name", "")
    metadata: ObjectMeta = value.metadata  # type: ignore[attr-defined]
    return "", metadata.namespace, metadata.name


def state_of(
    objects: Objects, features: Features | None = None, prices: PriceTable = NO_PRICES
) -> ClusterState:
    """The state that a scheduler has after it has read these objects."""
    state = ClusterState(features or Features(), _wake_nothing, prices)
    objects = _with_default_storage(objects)
    for kind in FOLLOWED:
        for value in getattr(objects, kind.member):
            kind.put(state, value)
    return state


def _with_default_storage(objects: Objects) -> Objects:
    """Give volume claims that are still to be created the default class, as the server will."""
    usual = default_class(objects.storage_classes)
    if usual is None:
        return objects
    claims = tuple(with_class(claim, usual) for claim in objects.volume_claims)
    return replace(objects, volume_claims=claims)


def _wake_nothing(_: Change) -> None:
    """Nothing is queued here, so there is nothing to wake."""
