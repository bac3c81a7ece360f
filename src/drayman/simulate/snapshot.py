"""A cluster in a file, without anything that is nobody's business.

Kept is what has a say in where pods go. Secrets are never read; environment variables, commands and what else is in containers is left
out, as are annotations that do not belong to Kubernetes or to Drayman: people keep all kinds of things in them.

Objects of the same kinds from elsewhere, such as `kubectl get nodes,resourceslices,... -o yaml`, are read too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from drayman.api import codec, versions
from drayman.api.core import Container, Namespace, Node, Pod, PodSpec
from drayman.api.documents import Document, read_documents
from drayman.api.errors import ApiError, ConversionError, DecodeError, DocumentError
from drayman.api.jobs import Job
from drayman.api.loading import Finding, Severity, found
from drayman.api.meta import ObjectMeta
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import (
    GROUP,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from drayman.api.struct import ApiStruct, Json, always
from drayman.simulate.world import Objects, World

SNAPSHOT_KIND: Final = "Snapshot"
_OWN_GROUP: Final = "drayman.dev"
_TYPES: Final[Mapping[str, type[ApiStruct]]] = {
    "nodes": Node,
    "slices": ResourceSlice,
    "classes": DeviceClass,
    "taint_rules": DeviceTaintRule,
    "claims": ResourceClaim,
    "templates": ResourceClaimTemplate,
    "pods": Pod,
    "pod_groups": PodGroup,
    "namespaces": Namespace,
    "volumes": PersistentVolume,
    "volume_claims": PersistentVolumeClaim,
    "storage_classes": StorageClass,
    "jobs": Job,
}
"""What each member of `Objects` holds."""
_RULES: Final = frozenset({"PriorityClass", "RuntimeClass", "LimitRange"})
_PUBLIC_DOMAINS: Final = ("kubernetes.io", "k8s.io", _OWN_GROUP)
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Holds the object as it was applied, environment and all."""
_MOST_FINDINGS: Final = 50


class Taken(ApiStruct):
    """The head of a snapshot: when it was taken, and of what."""

    api_version: str = always(f"{_OWN_GROUP}/v1")
    kind: str = always(SNAPSHOT_KIND)
    taken: float = 0.0
    """In seconds since the epoch."""
    versions: Mapping[str, str] = {}
    unseen: tuple[str, ...] = ()


class SnapshotError(ApiError):
    """A file is no snapshot, or a part of it is wrong."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = findings


def snapshot(world: World) -> Iterator[bytes]:
    """The objects of a snapshot as JSON texts, one by one."""
    yield codec.encode(Taken(taken=world.now, versions=world.versions, unseen=world.unseen))
    for member, clean in _CLEANERS.items():
        for value in getattr(world.objects, member):
            yield codec.encode(clean(value))
    for rule in world.objects.rules:
        yield codec.encode_json(_clean_rule(rule))


def read_snapshot(file: str, data: bytes, *, now: float) -> World:
    """The cluster in a file. `now` is when it was taken, unless the file says so. Raises SnapshotError."""
    try:
        gathered = _gather(_texts(data))
    except (ApiError, msgspec.MsgspecError, RecursionError, ValueError):
        # Whatever it is: the slow way tells what is wrong where, or finds it to be YAML.
        gathered = _gather_slowly(file, data)
    if gathered.findings:
        raise SnapshotError(tuple(gathered.findings[:_MOST_FINDINGS]))
    if gathered.head is None and not gathered.objects.get("nodes"):
        message = "is no cluster: it has no nodes; `drayman snapshot` makes such a file"
        raise SnapshotError((found(Severity.ERROR, file, 0, "", "", message),))
    return gathered.world(now)


@dataclass(slots=True)
class _Gathered:
    """What was found in a file so far."""

    head: Taken | None = None
    objects: dict[str, list[Any]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def world(self, now: float) -> World:
        objects = Objects(**{name: tuple(values) for name, values in self.objects.items()})
        if self.head is None:
            return World(objects, now)
        return World(objects, self.head.taken, self.head.unseen, dict(self.head.versions))

    def add(self, member: str, value: object) -> None:
        self.objects.setdefault(member, []).append(value)


# The quick way: JSON, as a list, or as one object a line between the lines that YAML has between documents.


class _Named(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _List(msgspec.Struct):
    kind: str = ""
    items: list[msgspec.Raw] = []


_named: Final = msgspec.json.Decoder(_Named)
_list: Final = msgspec.json.Decoder(_List)


def _texts(data: bytes) -> Iterable[bytes | msgspec.Raw]:
    """The JSON texts of the objects. Raises ValueError where they cannot be told apart at a glance."""
    if data.startswith(b"{") and b"\n---" not in data:
        decoded = _list.decode(data)
        if decoded.kind != "List":
            raise ValueError("not a list")
        return decoded.items
    lines = [line for line in data.splitlines() if line and not line.startswith((b"---", b"#"))]
    if not all(line.startswith(b"{") for line in lines):
        raise ValueError("not one object a line")
    return lines


def _gather(texts: Iterable[bytes | msgspec.Raw]) -> _Gathered:
    gathered = _Gathered()
    for text in texts:
        named = _named.decode(text)
        if named.kind == SNAPSHOT_KIND:
            gathered.head = msgspec.json.decode(text, type=Taken)
        elif named.kind in _RULES:
            gathered.add("rules", msgspec.json.decode(text))
        elif (known := _MEMBERS.get(named.kind)) is not None:
            member, type_, api_version = known
            if named.api_version != api_version:
                raise ValueError("another version")
            gathered.add(member, codec.decode(type_, bytes(text)))
    return gathered


# The slow way: anything else that is YAML or JSON, with lines for what is wrong.


def _gather_slowly(file: str, data: bytes) -> _Gathered:
    gathered = _Gathered()
    try:
        for document in read_documents(file, data):
            try:
                _add_document(gathered, document)
            except DecodeError as error:
                gathered.findings.append(_finding(document, error.path, error.message))
            except ConversionError as error:
                gathered.findings.append(_finding(document, "apiVersion", str(error)))
    except DocumentError as error:
        gathered.findings.append(
            found(Severity.ERROR, error.file, error.line, "", "", error.message)
        )
    return gathered


def _add_document(gathered: _Gathered, document: Document) -> None:
    value = document.value
    kind = value.get("kind")
    if kind == SNAPSHOT_KIND:
        gathered.head = codec.convert(Taken, value)
    elif kind in _RULES:
        gathered.add("rules", value)
    elif isinstance(kind, str) and (known := _MEMBERS.get(kind)) is not None:
        member, type_, api_version = known
        if api_version.startswith(GROUP):
            value = versions.to_v1(value).value
        elif value.get("apiVersion") != api_version:
            raise DecodeError("apiVersion", f"expected {api_version}")
        gathered.add(member, codec.convert(type_, value))


def _finding(document: Document, path: str, message: str) -> Finding:
    metadata = document.value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    title = f"{document.value.get('kind')} {name}".rstrip()
    line = document.line_of(path)
    return found(Severity.ERROR, document.file, line, title, path, message)


_MEMBERS: Final = {
    type_.__name__: (member, type_, str(type_().api_version))  # type: ignore[attr-defined]
    for member, type_ in _TYPES.items()
}


# Leaving out.


def _clean_metadata(metadata: ObjectMeta) -> ObjectMeta:
    annotations = {key: value for key, value in metadata.annotations.items() if _is_public(key)}
    if len(annotations) == len(metadata.annotations):
        return metadata
    return msgspec.structs.replace(metadata, annotations=annotations)


def _is_public(annotation: str) -> bool:
    domain = annotation.partition("/")[0]
    return annotation != _LAST_APPLIED and any(
        domain == public or domain.endswith(f".{public}") for public in _PUBLIC_DOMAINS
    )


def _clean(value: Any) -> Any:
    metadata = _clean_metadata(value.metadata)
    if metadata is value.metadata:
        return value
    return msgspec.structs.replace(value, metadata=metadata)


def _clean_pod(pod: Pod) -> Pod:
    return msgspec.structs.replace(
        pod, metadata=_clean_metadata(pod.metadata), spec=_clean_spec(pod.spec)
    )


def _clean_spec(spec: PodSpec) -> PodSpec:
    return msgspec.structs.replace(
        spec,
        init_containers=tuple(map(_clean_container, spec.init_containers)),
        containers=tuple(map(_clean_container, spec.containers)),
    )


def _clean_container(container: Container) -> Container:
    return msgspec.structs.replace(container, command=(), args=())


def _clean_job(job: Job) -> Job:
    """The template of a job is not decoded, so what we have no field for would be in it still."""
    template = job.spec.template
    pod = codec.convert(Pod, {"metadata": template.get("metadata"), "spec": template.get("spec")})
    cleaned = codec.to_dict(_clean_pod(pod))
    kept = {name: cleaned[name] for name in ("metadata", "spec") if cleaned.get(name)}
    spec = msgspec.structs.replace(job.spec, template=kept)
    return msgspec.structs.replace(job, metadata=_clean_metadata(job.metadata), spec=spec)


def _clean_rule(rule: dict[str, Json]) -> dict[str, Json]:
    given = rule.get("metadata") or {}
    metadata = {name: given[name] for name in ("name", "namespace", "uid") if given.get(name)}
    return {**rule, "metadata": metadata}


_CLEANERS: Final[Mapping[str, Callable[[Any], ApiStruct]]] = {
    **dict.fromkeys(_TYPES, _clean),
    "pods": _clean_pod,
    "jobs": _clean_job,
}
