"""The kinds that Drayman has types for: what they are called and where they are served.

Everything that handles such objects by kind (files, clients, what placement follows) uses this table instead of lists of its own.
"""

from __future__ import annotations

from typing import Any, Final, cast

from msgspec import Struct

from drayman.api.certificates import CertificateSigningRequest
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
    MultiKueueCluster,
    MultiKueueConfig,
    ProvisioningRequestConfig,
    ResourceFlavor,
    WorkloadPriorityClass,
)
from drayman.api.kueue_workload import Workload as QueuedWorkload
from drayman.api.pod_groups import PodGroup, Workload
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
from drayman.api.versions import VERSIONS
from drayman.api.workloads import (
    ControllerRevision,
    DaemonSet,
    Deployment,
    Lease,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    ServiceAccount,
    StatefulSet,
)


class Kind(Struct, frozen=True):
    """One kind of object. Its type gives its name, and the group and version of its objects.

    Several groups have kinds of the same name, so a name alone does not identify a kind.
    """

    type: type[ApiStruct]
    plural: str
    namespaced: bool = True
    complete: bool = False
    """Whether the type declares every field that Kubernetes has."""
    loaded: bool = False
    """Whether files of it are read as this type and checked. Other kinds are handed on as they are."""
    served_as: str = ""
    """The version in which servers have it, where that is not the version of the type."""
    optional: bool = False
    """Whether some clusters do not serve it. A client that follows it finds none there."""
    other_versions: tuple[str, ...] = ()
    """Versions with the same fields, newest first, for clusters that do not serve the one of the type."""

    @property
    def name(self) -> str:
        return str(cast(Any, self.type()).kind)

    @property
    def api_version(self) -> str:
        return str(cast(Any, self.type()).api_version)

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version in which it is asked for."""
        return self.served_as or self.api_version.rpartition("/")[2]

    @property
    def same_versions(self) -> tuple[str, ...]:
        """The apiVersion of each version that has the form of the type."""
        return (self.api_version, *(f"{self.group}/{each}" for each in self.other_versions))

    @property
    def api_versions(self) -> tuple[str, ...]:
        """The apiVersion of each version that can be read, the preferred one first."""
        group = self.group
        if self.name not in VERSIONS:
            return (self.api_version,)
        return tuple(f"{group}/{version}" for version in VERSIONS[self.name])


KINDS: Final = (
    Kind(DeviceClass, "deviceclasses", namespaced=False, complete=True, loaded=True),
    Kind(ResourceSlice, "resourceslices", namespaced=False, complete=True, loaded=True),
    Kind(ResourceClaim, "resourceclaims", complete=True, loaded=True),
    Kind(ResourceClaimTemplate, "resourceclaimtemplates", complete=True, loaded=True),
    Kind(
        DeviceTaintRule,
        "devicetaintrules",
        namespaced=False,
        complete=True,
        loaded=True,
        served_as="v1beta2",
        optional=True,
    ),
    Kind(Node, "nodes", namespaced=False, loaded=True),
    Kind(Pod, "pods", loaded=True),
    Kind(Namespace, "namespaces", namespaced=False, loaded=True),
    Kind(PodGroup, "podgroups", optional=True),
    Kind(Workload, "workloads", optional=True),
    Kind(PluginPodGroup, "podgroups", optional=True),
    Kind(KaiPodGroup, "podgroups", optional=True),
    Kind(KaiQueue, "queues", namespaced=False, optional=True),
    Kind(KaiTopology, "topologies", namespaced=False, optional=True),
    Kind(
        KueueTopology,
        "topologies",
        namespaced=False,
        optional=True,
        other_versions=("v1beta1", "v1alpha1"),
    ),
    Kind(ResourceFlavor, "resourceflavors", namespaced=False, optional=True),
    Kind(ClusterQueue, "clusterqueues", namespaced=False, optional=True),
    Kind(Cohort, "cohorts", namespaced=False, optional=True),
    Kind(LocalQueue, "localqueues", optional=True),
    Kind(QueuedWorkload, "workloads", optional=True),
    Kind(WorkloadPriorityClass, "workloadpriorityclasses", namespaced=False, optional=True),
    Kind(AdmissionCheck, "admissionchecks", namespaced=False, optional=True),
    Kind(ProvisioningRequestConfig, "provisioningrequestconfigs", namespaced=False, optional=True),
    Kind(MultiKueueConfig, "multikueueconfigs", namespaced=False, optional=True),
    Kind(MultiKueueCluster, "multikueueclusters", namespaced=False, optional=True),
    Kind(PersistentVolume, "persistentvolumes", namespaced=False),
    Kind(PersistentVolumeClaim, "persistentvolumeclaims"),
    Kind(StorageClass, "storageclasses", namespaced=False),
    Kind(CSIDriver, "csidrivers", namespaced=False),
    Kind(CSIStorageCapacity, "csistoragecapacities"),
    Kind(Job, "jobs"),
    Kind(Deployment, "deployments"),
    Kind(ReplicaSet, "replicasets"),
    Kind(ReplicationController, "replicationcontrollers"),
    Kind(StatefulSet, "statefulsets"),
    Kind(DaemonSet, "daemonsets"),
    Kind(ControllerRevision, "controllerrevisions"),
    Kind(PodDisruptionBudget, "poddisruptionbudgets"),
    Kind(ServiceAccount, "serviceaccounts"),
    Kind(Lease, "leases"),
    Kind(CertificateSigningRequest, "certificatesigningrequests", namespaced=False),
)

_LOADED: Final = {
    (api_version, kind.name): kind
    for kind in KINDS
    if kind.loaded
    for api_version in kind.api_versions
}
_BY_TYPE: Final = {kind.type: kind for kind in KINDS}


def kind_of(api_version: str, kind: str) -> Kind | None:
    """The kind that an object in a file claims to be, in any version, if files of it are read as a type."""
    return _LOADED.get((api_version, kind))


def kind_of_type(type_: type[ApiStruct]) -> Kind:
    """The kind whose objects are of this type."""
    return _BY_TYPE[type_]
