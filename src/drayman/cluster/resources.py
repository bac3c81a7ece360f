"""Which resource a request is about, and what its objects are in Python.

A `Resource` is a row of the API server's table: group, version, plural name, kind, scope. It also says how its objects are read and
written: as the frozen structs of `drayman.api` where the project knows the kind, or as plain decoded JSON for every other kind. The type
parameter carries that through the client, so that `client.get(PODS, ...)` is a `Pod` to the type checker.

Structs hold the fields they declare and drop others, so a struct must not be written back over an object that has more: patches keep
what is not declared.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar, cast
from urllib.parse import quote

import msgspec

from drayman.api import catalog, codec
from drayman.api.certificates import CertificateSigningRequest
from drayman.api.core import Namespace, Node, Pod
from drayman.api.errors import DecodeError
from drayman.api.jobs import Job
from drayman.api.meta import ObjectMeta
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
from drayman.api.struct import ApiStruct, Json
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
from drayman.cluster.backend import Reader, Target

T = TypeVar("T")
StructT = TypeVar("StructT", bound=ApiStruct)
JsonObject = dict[str, Json]


class Identity(NamedTuple):
    """What distinguishes one object, and one version of it, from another."""

    namespace: str
    name: str
    uid: str
    resource_version: str


class Codec(Reader[T], Protocol[T]):
    """How objects of one kind are read and written. Reading raises `drayman.api.errors.DecodeError`."""

    def decode_list(self, data: bytes) -> tuple[codec.ListMeta, tuple[T, ...]]: ...

    def to_value(self, value: T) -> JsonObject:
        """The decoded JSON of an object. The caller may change it."""
        ...

    def encode(self, value: T) -> bytes: ...

    def identity(self, value: T) -> Identity: ...


class _Meta(Protocol):
    """What every typed object has."""

    @property
    def metadata(self) -> ObjectMeta: ...


@dataclass(frozen=True, slots=True)
class StructCodec(Generic[StructT]):
    """Objects as structs. Items of a list get kind and apiVersion from their type."""

    type: type[StructT]
    is_immutable: ClassVar[bool] = True

    def decode(self, data: bytes) -> StructT:
        return codec.decode(self.type, data)

    def decode_list(self, data: bytes) -> tuple[codec.ListMeta, tuple[StructT, ...]]:
        found = codec.decode_list(self.type, data)
        return found.metadata, found.items

    def to_value(self, value: StructT) -> JsonObject:
        return codec.to_dict(value)

    def encode(self, value: StructT) -> bytes:
        return codec.encode(value)

    def identity(self, value: StructT) -> Identity:
        meta = cast(_Meta, value).metadata
        return Identity(meta.namespace, meta.name, meta.uid, meta.resource_version)


class _ValueList(msgspec.Struct):
    metadata: codec.ListMeta = codec.ListMeta()
    items: list[JsonObject] | None = None


_value_decoder: Final = msgspec.json.Decoder(JsonObject)
_value_list_decoder: Final = msgspec.json.Decoder(_ValueList)


@dataclass(frozen=True, slots=True)
class ValueCodec:
    """Objects as decoded JSON. Items of a list get the kind and apiVersion that servers leave out there."""

    api_version: str
    kind: str
    is_immutable: ClassVar[bool] = False

    def decode(self, data: bytes) -> JsonObject:
        try:
            return _value_decoder.decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise DecodeError("", f"not a JSON object: {error}") from error

    def decode_list(self, data: bytes) -> tuple[codec.ListMeta, tuple[JsonObject, ...]]:
        try:
            found = _value_list_decoder.decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise DecodeError("", f"not a list of objects: {error}") from error
        named = {"apiVersion": self.api_version, "kind": self.kind}
        return found.metadata, tuple(named | item for item in found.items or ())

    def to_value(self, value: JsonObject) -> JsonObject:
        return {"apiVersion": self.api_version, "kind": self.kind} | value

    def encode(self, value: JsonObject) -> bytes:
        return codec.encode_json(self.to_value(value))

    def identity(self, value: JsonObject) -> Identity:
        meta = value.get("metadata") or {}
        return Identity(
            meta.get("namespace", ""),
            meta.get("name", ""),
            meta.get("uid", ""),
            meta.get("resourceVersion", ""),
        )


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """One resource in one version, and how its objects are represented here."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    codec: Codec[T] = field(compare=False, repr=False)
    complete: bool = True
    """Whether T holds every field, so that an object read can be written back."""
    optional: bool = False
    """Whether some clusters do not serve it. Informers then see no objects."""
    other_versions: tuple[str, ...] = ()
    """Versions with the same fields, for clusters that do not serve this one."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`deployments.apps`, as errors name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def target(self, namespace: str | None = None, name: str = "", subresource: str = "") -> Target:
        """Where a request goes. No namespace means all of them. Raises ValueError where scope and namespace disagree."""
        if namespace and not self.namespaced:
            raise ValueError(f"{self.qualified} are not in namespaces, so not in {namespace!r}")
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.qualified} {name!r}: which namespace?")
        return Target(self.group, self.version, self.plural, namespace or "", name, subresource)

    def in_next_version(self) -> Resource[T]:
        """The same resource in another version, if there is one; after as many steps as there are versions, as it was."""
        if not self.other_versions:
            return self
        version, *rest = self.other_versions
        return replace(self, version=version, other_versions=(*rest, self.version))

    def as_values(self) -> Resource[JsonObject]:
        """The same resource with its objects as decoded JSON."""
        return generic(self.api_version, self.plural, self.kind, namespaced=self.namespaced)


def path_of(target: Target) -> str:
    """The path of a request, percent-encoded."""
    parts = ["/api" if not target.group else f"/apis/{target.group}", target.version]
    if target.namespace:
        parts += ["namespaces", quote(target.namespace, safe="")]
    parts.append(target.resource)
    if target.name:
        parts.append(quote(target.name, safe=""))
    if target.subresource:
        parts.append(target.subresource)
    return "/".join(parts)


def typed(type_: type[StructT]) -> Resource[StructT]:
    """The resource whose objects are structs of this type, as the catalog has it."""
    kind = catalog.kind_of_type(type_)
    return Resource(
        group=kind.group,
        version=kind.version,
        plural=kind.plural,
        kind=kind.name,
        namespaced=kind.namespaced,
        codec=StructCodec(type_),
        complete=kind.complete,
        optional=kind.optional,
        other_versions=kind.other_versions,
    )


def generic(
    api_version: str, plural: str, kind: str, *, namespaced: bool = True
) -> Resource[JsonObject]:
    """Any resource, its objects as decoded JSON."""
    group, _, version = api_version.rpartition("/")
    return Resource(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        codec=ValueCodec(api_version, kind),
    )


PODS: Final = typed(Pod)
NODES: Final = typed(Node)
NAMESPACES: Final = typed(Namespace)
DEVICE_CLASSES: Final = typed(DeviceClass)
RESOURCE_SLICES: Final = typed(ResourceSlice)
RESOURCE_CLAIMS: Final = typed(ResourceClaim)
RESOURCE_CLAIM_TEMPLATES: Final = typed(ResourceClaimTemplate)
DEVICE_TAINT_RULES: Final = typed(DeviceTaintRule)
JOBS: Final = typed(Job)
REPLICA_SETS: Final = typed(ReplicaSet)
REPLICATION_CONTROLLERS: Final = typed(ReplicationController)
DEPLOYMENTS: Final = typed(Deployment)
STATEFUL_SETS: Final = typed(StatefulSet)
DAEMON_SETS: Final = typed(DaemonSet)
CONTROLLER_REVISIONS: Final = typed(ControllerRevision)
VOLUME_CLAIMS: Final = typed(PersistentVolumeClaim)
SERVICE_ACCOUNTS: Final = typed(ServiceAccount)
DISRUPTION_BUDGETS: Final = typed(PodDisruptionBudget)
NODE_LEASES: Final = typed(Lease)
"""Leases as structs, for controllers that watch nodes; leader election changes them as plain values."""
SIGNING_REQUESTS: Final = typed(CertificateSigningRequest)
PERSISTENT_VOLUMES: Final = typed(PersistentVolume)
STORAGE_CLASSES: Final = typed(StorageClass)
CSI_DRIVERS: Final = typed(CSIDriver)
STORAGE_CAPACITIES: Final = typed(CSIStorageCapacity)
POD_GROUPS: Final = typed(PodGroup)
WORKLOADS: Final = typed(Workload)
"""Of Kubernetes itself; Kueue has a kind of the same name."""
CONFIG_MAPS: Final = generic("v1", "configmaps", "ConfigMap")
LEASES: Final = generic("coordination.k8s.io/v1", "leases", "Lease")
EVENTS: Final = generic("events.k8s.io/v1", "events", "Event")
