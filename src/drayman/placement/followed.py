"""The kinds of objects that affect where pods go, and the kinds that make pods: one row for each.

A scheduler follows them, a question reads them, a snapshot keeps them and a `World` holds them, all by this table. It refers to the state
only by name, so that code that just lists the kinds need not import what a search needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

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
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import (
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
from drayman.api.struct import ApiStruct
from drayman.api.workloads import (
    DaemonSet,
    Deployment,
    Lease,
    PodDisruptionBudget,
    ReplicaSet,
    StatefulSet,
)
from drayman.placement.schedulers import LEASE_NAMESPACE
from drayman.placement.wake import Wake

if TYPE_CHECKING:
    from drayman.placement.state import ClusterState


class Read(Enum):
    """When a question reads the objects of a kind."""

    NEEDED = auto()
    """Always: no answer is possible without them."""
    WANTED = auto()
    """Always, as far as the user is allowed to: they only improve answers."""
    FOR_VOLUMES = auto()
    """If a volume is still to be provisioned."""
    FOR_GANGS = auto()
    """If pods are in gangs or in queues of KAI, or the question is about objects that make pods, or about queues."""
    FOR_WORKLOADS = auto()
    """If the question is about objects that make pods."""
    FOR_MOVES = auto()
    """If the question is which pods could be moved."""
    FOR_QUEUES = auto()
    """If something waits in a queue, or the question is about queues."""


@dataclass(frozen=True, slots=True)
class Held:
    """A kind whose objects a `World` holds."""

    type: type[ApiStruct]
    member: str
    """The field of `Objects` that holds them."""
    read: Read = Read.WANTED
    namespace: str = ""
    """The only namespace whose objects matter; empty for all."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind that only the API server reads, when pods are created. Held as plain values."""

    api_version: str
    plural: str
    kind: str
    namespaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed(Held):
    """A kind whose objects the state depends on, with how they change it."""

    put: Callable[[ClusterState, Any], object]
    """Takes in an object that is new or has changed; False if this version was already known."""
    remove: Callable[[ClusterState, Any], None]
    wakes: Wake | None = None
    """What a change may improve, if the state does not report that itself."""
    for_drafts: bool = False
    """Whether only a scheduler that makes claims from templates itself needs it."""


FOLLOWED: Final = (
    Followed(
        type=Namespace,
        member="namespaces",
        put=lambda state, it: state.set_namespace(it),
        remove=lambda state, it: state.remove_namespace(it.metadata.name),
    ),
    Followed(
        type=Node,
        member="nodes",
        read=Read.NEEDED,
        put=lambda state, it: state.set_node(it),
        remove=lambda state, it: state.remove_node(it.metadata.name),
    ),
    Followed(
        type=DeviceClass,
        member="classes",
        read=Read.NEEDED,
        put=lambda state, it: state.set_class(it),
        remove=lambda state, it: state.remove_class(it),
    ),
    Followed(
        type=DeviceTaintRule,
        member="taint_rules",
        put=lambda state, it: state.set_taint_rule(it),
        remove=lambda state, it: state.remove_taint_rule(it),
    ),
    Followed(
        type=ResourceClaimTemplate,
        member="templates",
        put=lambda state, it: state.set_template(it),
        remove=lambda state, it: state.remove_template(it),
        for_drafts=True,
    ),
    Followed(
        type=ResourceSlice,
        member="slices",
        read=Read.NEEDED,
        put=lambda state, it: state.set_slice(it),
        remove=lambda state, it: state.remove_slice(it),
    ),
    Followed(
        type=StorageClass,
        member="storage_classes",
        put=lambda state, it: state.volumes.set_class(it),
        remove=lambda state, it: state.volumes.remove_class(it),
        wakes=Wake.VOLUMES,
    ),
    Followed(
        type=CSIDriver,
        member="storage_drivers",
        read=Read.FOR_VOLUMES,
        put=lambda state, it: state.volumes.set_driver(it),
        remove=lambda state, it: state.volumes.remove_driver(it),
        wakes=Wake.VOLUMES,
    ),
    Followed(
        type=CSIStorageCapacity,
        member="storage_capacities",
        read=Read.FOR_VOLUMES,
        put=lambda state, it: state.volumes.set_capacity(it),
        remove=lambda state, it: state.volumes.remove_capacity(it),
        wakes=Wake.VOLUMES,
    ),
    Followed(
        type=PersistentVolume,
        member="volumes",
        put=lambda state, it: state.volumes.set_volume(it),
        remove=lambda state, it: state.volumes.remove_volume(it),
    ),
    Followed(
        type=PersistentVolumeClaim,
        member="volume_claims",
        put=lambda state, it: state.volumes.set_claim(it),
        remove=lambda state, it: state.volumes.remove_claim(it),
    ),
    Followed(
        type=PodGroup,
        member="pod_groups",
        put=lambda state, it: state.set_group(it),
        remove=lambda state, it: state.remove_group(it),
    ),
    Followed(
        type=PluginPodGroup,
        member="plugin_pod_groups",
        read=Read.FOR_GANGS,
        put=lambda state, it: state.set_group(it),
        remove=lambda state, it: state.remove_group(it),
    ),
    Followed(
        type=KaiPodGroup,
        member="kai_pod_groups",
        read=Read.FOR_GANGS,
        put=lambda state, it: state.set_group(it),
        remove=lambda state, it: state.remove_group(it),
    ),
    Followed(
        type=KaiQueue,
        member="kai_queues",
        read=Read.FOR_GANGS,
        put=lambda state, it: state.set_queue(it),
        remove=lambda state, it: state.remove_queue(it),
    ),
    Followed(
        type=KaiTopology,
        member="kai_topologies",
        read=Read.FOR_GANGS,
        put=lambda state, it: state.topologies.set(it),
        remove=lambda state, it: state.topologies.remove(it),
    ),
    Followed(
        type=KueueTopology,
        member="kueue_topologies",
        read=Read.FOR_GANGS,
        put=lambda state, it: state.topologies.set(it),
        remove=lambda state, it: state.topologies.remove(it),
    ),
    # Its annotations may make its pods a gang, and say how long they run. It also matters to questions when Jobs end.
    Followed(
        type=Job,
        member="jobs",
        put=lambda state, it: state.set_job(it),
        remove=lambda state, it: state.remove_job(it),
    ),
    Followed(
        type=ResourceClaim,
        member="claims",
        read=Read.NEEDED,
        put=lambda state, it: state.set_claim(it),
        remove=lambda state, it: state.remove_claim(it),
    ),
    Followed(
        type=Pod,
        member="pods",
        read=Read.NEEDED,
        put=lambda state, it: state.set_pod(it),
        remove=lambda state, it: state.delete_pod(it),
    ),
)

HELD: Final[tuple[Held, ...]] = (
    *FOLLOWED,
    # These make pods, and are only read for questions.
    Held(Deployment, "deployments", Read.FOR_WORKLOADS),
    Held(ReplicaSet, "replica_sets", Read.FOR_WORKLOADS),
    Held(StatefulSet, "stateful_sets", Read.FOR_WORKLOADS),
    Held(DaemonSet, "daemon_sets", Read.FOR_WORKLOADS),
    # These say which pods may be evicted.
    Held(PodDisruptionBudget, "disruption_budgets", Read.FOR_MOVES),
    # These say who has quota and who waits for it.
    Held(ResourceFlavor, "flavors", Read.FOR_QUEUES),
    Held(Cohort, "cohorts", Read.FOR_QUEUES),
    Held(ClusterQueue, "cluster_queues", Read.FOR_QUEUES),
    Held(LocalQueue, "local_queues", Read.FOR_QUEUES),
    Held(AdmissionCheck, "admission_checks", Read.FOR_QUEUES),
    Held(WorkloadPriorityClass, "workload_classes", Read.FOR_QUEUES),
    Held(QueuedWorkload, "queued_workloads", Read.FOR_QUEUES),
    # These say whether a scheduler runs.
    Held(Lease, "leases", namespace=LEASE_NAMESPACE),
)

RULES: Final = (
    Rule("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass"),
    Rule("node.k8s.io/v1", "runtimeclasses", "RuntimeClass"),
    Rule("v1", "limitranges", "LimitRange", namespaced=True),
)
