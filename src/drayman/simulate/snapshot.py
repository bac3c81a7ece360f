"""A cluster in a file, without anything private.

What affects where pods go is kept. Secrets are never read; `redaction` says what else is left out.

Objects of the same kinds from elsewhere, such as `kubectl get nodes,resourceslices,... -o yaml`, are read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

import msgspec

from drayman.api import codec, versions
from drayman.api.catalog import KINDS, kind_of_type
from drayman.api.documents import Document, read_documents
from drayman.api.errors import ApiError, ConversionError, DecodeError, DocumentError
from drayman.api.loading import LoadFinding, Severity, found
from drayman.api.resource import (
    GROUP,
)
from drayman.api.struct import ApiStruct, Json, always
from drayman.placement.followed import HELD, RULES, Held
from drayman.placement.world import Objects, World
from drayman.simulate.redaction import clean_configuration, clean_rule, cleaner_of

SNAPSHOT_KIND: Final = "Snapshot"
_OWN_GROUP: Final = "drayman.dev"
_RULES: Final = frozenset(rule.kind for rule in RULES)
_CONFIGURATION: Final = "config.kueue.x-k8s.io/"
"""What the version of Kueue's Configuration begins with."""
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
    """A file is not a snapshot, or a part of it is wrong."""

    def __init__(self, findings: tuple[LoadFinding, ...]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = findings


def snapshot(world: World) -> Iterator[bytes]:
    """The objects of a snapshot as JSON texts, one by one."""
    yield codec.encode(Taken(taken=world.now, versions=world.versions, unseen=world.unseen))
    for member, kind in _KINDS.items():
        clean = cleaner_of(kind.type)
        for value in getattr(world.objects, member):
            yield codec.encode(clean(value))
    for rule in world.objects.rules:
        yield codec.encode_json(clean_rule(rule))
    if world.queue_configuration is not None:
        yield codec.encode_json(clean_configuration(world.queue_configuration))


def read_snapshot(file: str, data: bytes, *, now: float) -> World:
    """The cluster in a file. `now` is when it was taken, unless the file says so. Raises SnapshotError."""
    try:
        gathered = _gather(_texts(data))
    except (ApiError, msgspec.MsgspecError, RecursionError, ValueError):
        # Whatever it is: the slow way says what is wrong and where, or finds it to be YAML.
        gathered = _gather_slowly(file, data)
    if gathered.findings:
        raise SnapshotError(tuple(gathered.findings[:_MOST_FINDINGS]))
    if gathered.head is None and not {"nodes", "cluster_queues"} & gathered.objects.keys():
        message = "is not a snapshot of a cluster: it has no nodes; `drayman snapshot` makes one"
        raise SnapshotError((found(Severity.ERROR, file, 0, "", "", message),))
    return gathered.world(now)


@dataclass(slots=True)
class _Gathered:
    """What has been found in a file so far."""

    head: Taken | None = None
    objects: dict[str, list[Any]] = field(default_factory=dict)
    configuration: Json = None
    findings: list[LoadFinding] = field(default_factory=list)

    def world(self, now: float) -> World:
        objects = Objects(**{name: tuple(values) for name, values in self.objects.items()})
        if self.head is None:
            world = World(objects, now)
        else:
            world = World(objects, self.head.taken, self.head.unseen, dict(self.head.versions))
        return world.with_queue_configuration(self.configuration)

    def add(self, member: str, value: object) -> None:
        self.objects.setdefault(member, []).append(value)


# The quick way: JSON, as a list, or as one object a line between the lines that YAML has between documents. `make bench-plan` on 3,000
# nodes that are nearly full takes 7.7 s of CPU from a snapshot without it, and 2.2 with it.


class _Named(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _List(msgspec.Struct):
    kind: str = ""
    items: list[msgspec.Raw] = []


_named: Final = msgspec.json.Decoder(_Named)
_list: Final = msgspec.json.Decoder(_List)


def _texts(data: bytes) -> Iterable[bytes | msgspec.Raw]:
    """The JSON texts of the objects. Raises ValueError where they cannot be separated by a quick scan."""
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
        elif named.api_version.startswith(_CONFIGURATION):
            gathered.configuration = msgspec.json.decode(text)
        elif (known := _known(named.api_version, named.kind)) is not None:
            if named.api_version not in kind_of_type(known.type).same_versions:
                raise ValueError("another version")
            gathered.add(known.member, codec.decode(known.type, bytes(text)))
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
    elif str(value.get("apiVersion")).startswith(_CONFIGURATION):
        gathered.configuration = value
    elif (known := _known(value.get("apiVersion"), kind)) is not None:
        named = kind_of_type(known.type)
        if named.group == GROUP:
            value = versions.to_v1(value).value
        elif value.get("apiVersion") not in named.same_versions:
            raise DecodeError("apiVersion", f"expected {named.api_version}")
        gathered.add(known.member, codec.convert(known.type, value))


def _known(api_version: Json, kind: Json) -> Held | None:
    """The row for objects that say that they are this, in whichever version.

    Where several groups have kinds of a name, the group decides. Otherwise the name does, so that a group that is wrong is noticed.
    """
    group = api_version.rpartition("/")[0] if isinstance(api_version, str) else ""
    namesakes = _NAMESAKES.get(kind, {}) if isinstance(kind, str) else {}
    if len(namesakes) == 1 and kind not in _AMBIGUOUS:
        return next(iter(namesakes.values()))
    return namesakes.get(group)


def _finding(document: Document, path: str, message: str) -> LoadFinding:
    metadata = document.value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    title = f"{document.value.get('kind')} {name}".rstrip()
    line = document.line_of(path)
    return found(Severity.ERROR, document.file, line, title, path, message)


_KINDS: Final = {
    member.name: kind for member in fields(Objects) for kind in HELD if kind.member == member.name
}
"""By the members of `Objects`, in their order."""
_NAMES: Final = [known.name for known in KINDS]
_AMBIGUOUS: Final = frozenset(name for name in _NAMES if _NAMES.count(name) > 1)
"""Kinds that several groups have, though not all of them are in snapshots."""
_NAMESAKES: Final[dict[str, dict[str, Held]]] = {}
"""By kind and group."""
for _held in HELD:
    _named_kind = kind_of_type(_held.type)
    _NAMESAKES.setdefault(_named_kind.name, {})[_named_kind.group] = _held
