"""Manifests for a plan: from files to workloads and objects, as the cluster would take them, or what is wrong with them and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from drayman.api import codec, versions
from drayman.api.catalog import kind_of_type
from drayman.api.core import Pod
from drayman.api.documents import Document, read_documents
from drayman.api.errors import DocumentError
from drayman.api.jobs import Job
from drayman.api.kueue_workload import Workload as QueuedWorkload
from drayman.api.loading import LoadFinding, Severity, found, title_of
from drayman.api.resource import (
    GROUP,
    ResourceClaim,
)
from drayman.api.schema import schema_for
from drayman.api.storage import PersistentVolumeClaim
from drayman.api.struct import ApiStruct
from drayman.api.workloads import (
    DaemonSet,
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.strategy import Object
from drayman.driver_configs.advice import advice_about
from drayman.placement.followed import HELD, Followed, Read
from drayman.placement.world import Objects, World
from drayman.questions.errors import ManifestsError
from drayman.questions.intake import Intake, RefusedError
from drayman.reasons.refused_configs import Asking, title_of_asking
from drayman.simulate.copying import Wanted
from drayman.simulate.expanding import Owner, Workload, volume_claims_of
from drayman.simulate.redaction import clean_claim_spec
from drayman.workloads.pod_bodies import pod_body

_JOINING: Final[Mapping[tuple[str, str], tuple[str, type[ApiStruct]]]] = {
    (kind_of_type(kind.type).group, kind_of_type(kind.type).name): (kind.member, kind.type)
    for kind in HELD
    if (
        isinstance(kind, Followed)
        and kind.type not in (Pod, Job)
        and kind.read is not Read.FOR_VOLUMES
    )
    or (kind.read is Read.FOR_QUEUES and kind.type is not QueuedWorkload)
}
"""Objects that join the cluster, and where they belong there."""

_KEPT: Final = frozenset({"claims", "volumes", "volume_claims", "pod_groups"})
"""Of these, what the cluster already has stays unchanged: it has been given devices or volumes."""

_OWNERS: Final[Mapping[tuple[str, str], type[Owner]]] = {
    ("batch", "Job"): Job,
    ("apps", "Deployment"): Deployment,
    ("apps", "ReplicaSet"): ReplicaSet,
    ("", "ReplicationController"): ReplicationController,
    ("apps", "StatefulSet"): StatefulSet,
    ("apps", "DaemonSet"): DaemonSet,
}
_LATER: Final = ("CronJob",)
"""Their pods are made at times of their own."""
_OUTDATED: Final = (f"{GROUP}/v1alpha2", f"{GROUP}/v1alpha3")
_TEMPLATE: Final = "spec.template"
_MOST_FINDINGS: Final = 50
_POD: Final = {"apiVersion": "v1", "kind": "Pod"}


@dataclass(frozen=True, slots=True)
class Advised:
    """Something that will turn out to be wrong."""

    namespace: str
    """Of the object; empty if it is in none."""
    owner: str
    """The object, as explanations of pods call it."""
    finding: LoadFinding


@dataclass(frozen=True, slots=True)
class Manifests:
    """What files hold."""

    wanted: Wanted
    ignored: tuple[str, ...] = ()
    """Kinds of objects that may result in pods, but not now, or not in a way that is known here."""
    warnings: tuple[Advised, ...] = ()
    """What drivers will refuse of what the files say, which the cluster takes."""


async def read_manifests(
    inputs: Iterable[tuple[str, bytes]], world: World, namespace: str = "default"
) -> Manifests:
    """The objects of files, given as names and bytes, for this cluster. Raises ManifestsError.

    Objects that name no namespace go into the one given.
    """
    reader = _Reader(await Intake.of(world), world.objects, namespace)
    for file, data in inputs:
        try:
            for document in read_documents(file, data):
                await reader.read(document)
        except DocumentError as error:
            reader.findings.append(
                found(Severity.ERROR, error.file, error.line, "", "", error.message)
            )
    return reader.result()


@dataclass(slots=True, eq=False)
class _Reader:
    intake: Intake
    known: Objects
    namespace: str
    findings: list[LoadFinding] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    objects: dict[str, list[Any]] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)
    advised: list[Advised] = field(default_factory=list)

    def result(self) -> Manifests:
        if self.findings:
            raise ManifestsError(tuple(self.findings[:_MOST_FINDINGS]))
        objects = Objects(**{name: tuple(values) for name, values in self.objects.items()})
        wanted = Wanted(tuple(self.workloads), objects)
        return Manifests(wanted, tuple(self.ignored), tuple(self.advised))

    async def read(self, document: Document) -> None:
        value = document.value
        for name in ("apiVersion", "kind"):
            if not isinstance(value.get(name), str) or not value[name]:
                self._object_to(document, name, "a text is required")
                return
        resource = self.intake.resource_of(value) or await self._defined(value)
        if resource is None:
            self._unknown(document)
        elif resource.create_handler is None:  # a review of something is answered, not kept
            await self._take(document, resource)

    async def _defined(self, value: Object) -> ApiResource | None:
        """For objects that join the cluster though their kind is not one of Kubernetes' own."""
        key = (value["apiVersion"].rpartition("/")[0], value["kind"])
        if key not in _JOINING:
            return None
        kind = kind_of_type(_JOINING[key][1])
        await self.intake.define(kind.plural, kind.group)
        return self.intake.resource_of(value)

    def _unknown(self, document: Document) -> None:
        """Custom resources do not concern us, but a kind that does not exist in a group we know is a mistake."""
        api_version, kind = document.value["apiVersion"], document.value["kind"]
        if api_version in _OUTDATED:
            said = f"{kind} of {api_version} is not served any more; `drayman migrate` rewrites it"
            self._object_to(document, "apiVersion", said)
        elif self.intake.serves(api_version) and not _exists(api_version, kind):
            self._object_to(document, "kind", f"there is no kind {kind} in {api_version}")
        else:
            self.ignored[kind] = None

    async def _take(self, document: Document, resource: ApiResource) -> None:
        value = document.value
        metadata = value.get("metadata")
        given = metadata.get("namespace") if isinstance(metadata, dict) else None
        namespace = (given or self.namespace) if resource.namespaced else ""
        try:
            stored = await self.intake.take(resource, value, str(namespace))
        except RefusedError as error:
            for refusal in error.refusals:
                self._object_to(document, refusal.path, refusal.message)
            return
        self._sort(document, resource, stored, str(namespace))

    def _sort(
        self, document: Document, resource: ApiResource, stored: Object, namespace: str
    ) -> None:
        key = (resource.group, resource.kind)
        if key == ("", "Pod"):
            self.workloads.append(Workload(codec.convert(Pod, stored)))
        elif key in _OWNERS:
            self._add_workload(document, codec.convert(_OWNERS[key], stored), namespace)
        elif key in _JOINING:
            name, type_ = _JOINING[key]
            self._join(document, name, codec.convert(type_, stored))
        elif resource.kind in _LATER:
            self.ignored[resource.kind] = None

    def _add_workload(self, document: Document, owner: Owner, namespace: str) -> None:
        pod = {**_POD, **pod_body(owner, owner.spec.template)}
        resource = self.intake.resource_of(_POD)
        assert resource is not None
        try:
            admitted = self.intake.tried(resource, pod, namespace)
        except RefusedError as error:
            for refusal in error.refusals:
                path = f"{_TEMPLATE}.{refusal.path}" if refusal.path else _TEMPLATE
                self._object_to(document, path, refusal.message)
            return
        self.workloads.append(Workload(codec.convert(Pod, admitted), owner))
        if isinstance(owner, StatefulSet):
            self._add_volume_claims(document, owner)

    def _add_volume_claims(self, document: Document, stateful_set: StatefulSet) -> None:
        for body in volume_claims_of(stateful_set):
            self._join(document, "volume_claims", codec.convert(PersistentVolumeClaim, body))

    def _join(self, document: Document, name: str, value: ApiStruct) -> None:
        if isinstance(value, Asking):
            for path, message in advice_about(value):
                advice = self._finding(Severity.WARNING, document, path, message)
                namespace = value.metadata.namespace
                self.advised.append(Advised(namespace, title_of_asking(value), advice))
        known = _same(getattr(self.known, name), value) if name in _KEPT else None
        if known is None:
            self.objects.setdefault(name, []).append(value)
        elif isinstance(value, ResourceClaim) and _differ(known, value):
            self._object_to(document, "spec", "the cluster has this claim with another spec")

    def _object_to(self, document: Document, path: str, message: str) -> None:
        self.findings.append(self._finding(Severity.ERROR, document, path, message))

    def _finding(
        self, severity: Severity, document: Document, path: str, message: str
    ) -> LoadFinding:
        value = document.value
        group, _, version = str(value.get("apiVersion")).rpartition("/")
        kind = str(value.get("kind"))
        source = versions.source_path(kind, version, path) if group == GROUP else path
        line = document.line_of(source)
        return found(severity, document.file, line, title_of(value), path, message)


def _exists(api_version: str, kind: str) -> bool:
    """Whether Kubernetes has a kind, served here or not."""
    group, _, version = api_version.rpartition("/")
    return schema_for(group, version, kind) is not None


def _differ(known: ResourceClaim, given: ResourceClaim) -> bool:
    """Whether they ask for different things. Opaque driver parameters are not in a snapshot."""
    return clean_claim_spec(known.spec) != clean_claim_spec(given.spec)


def _same(values: Iterable[Any], value: Any) -> Any:
    """The object with the same namespace and name."""
    namesakes = (known for known in values if known.metadata.name == value.metadata.name)
    namespace = value.metadata.namespace
    return next((known for known in namesakes if known.metadata.namespace == namespace), None)
