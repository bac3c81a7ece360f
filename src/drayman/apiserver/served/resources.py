"""The table of what is served: each resource with its names, versions, verbs, rules and columns.

Built-in resources are there from the start; custom ones come and go. Discovery, routing, OpenAPI and tables all use this
table, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from drayman.api.struct import Json
from drayman.apiserver.protocol.errors import Subject
from drayman.apiserver.served.acting import UNKNOWN, Acting
from drayman.apiserver.served.strategy import Object, Strategy

if TYPE_CHECKING:
    from drayman.apiserver.patching.shapes import Shape
    from drayman.apiserver.protocol.exchange import Answer
    from drayman.apiserver.requests.calls import Call, Result

ALL_VERBS: Final = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)
_KINDS_KEPT: Final = 1024
STATUS_VERBS: Final = ("get", "patch", "update")
Propagation = Literal["Background", "Foreground", "Orphan", "Unsupported"]
Handler = Callable[["Call"], Awaitable["Result | Answer"]]
Guard = Callable[["Call", Object, Object | None], None]
"""Judges a write by the rights of its sender, given the object as it will be and as it was. Raises StatusError 403."""


class GroupVersionKind(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


@lru_cache(maxsize=_KINDS_KEPT)
def _kind(group: str, version: str, kind: str) -> GroupVersionKind:
    return GroupVersionKind(group, version, kind)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `cell` gets the object in its hub version and the present time. Priority 1 is for `-o wide`."""

    name: str
    cell: Callable[[Object, datetime], Json]
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


class Conversion:
    """How a kind is converted from one of its versions to another. This one is for kinds whose versions differ in name only."""

    def to_hub(self, obj: Object, version: str) -> Object:
        """The object in the hub version. It has been decoded by the schema of `version`; apiVersion is set by the caller."""
        return obj

    def from_hub(self, obj: Object, version: str) -> Object:
        """A copy of the object in another version; apiVersion is set by the caller."""
        return dict(obj)


class Codec(Protocol):
    """The form of a kind that is not in the schema tables."""

    def decode(self, body: bytes | Json, version: str) -> tuple[Object, Sequence[str]]:
        """A body, as JSON text or as a value, in the form of a version, and its unknown or duplicate fields, as in
        `unknown field "spec.x"`. Raises BodyError of `drayman.api.schema`."""

    def normalise(self, obj: Object) -> Object:
        """An object of the hub version as it is kept."""

    def shape(self, version: str) -> Shape:
        """The shape that patches and field ownership use."""

    def openapi(self, version: str) -> Json:
        """The schema of a version, as it appears in OpenAPI documents."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subresource:
    """A path below an object. With a `strategy` it reads and updates the object itself under other rules (status, resize,
    finalize); with `handlers`, one per verb, it has its own behaviour (binding, eviction, log)."""

    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    kind: GroupVersionKind | None = None
    """Kind of the body where it is not the parent's."""
    strategy: Strategy | None = None
    handlers: Mapping[str, Handler] = field(default_factory=dict)


def _regular_plural(noun: str) -> str:
    if noun.endswith("y"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ApiResource:
    """One resource of the API, in all its versions."""

    kind: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    """Served versions, the preferred one first."""
    plural: str = ""
    """By default the regular plural of the kind."""
    namespaced: bool = True
    singular: str = ""
    list_kind: str = ""
    hub: GroupVersionKind | None = None
    """The version objects are stored in; by default the first one served."""
    storage: str = ""
    """Name in the store, if not derived from plural and group (two resources that show the same objects)."""
    strategy: Strategy = field(default_factory=Strategy)
    conversion: Conversion = field(default_factory=Conversion)
    codec: Codec | None = None
    """How bodies are read, where `drayman.api.schema` does not know the kind (custom resources)."""
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    columns: tuple[Column, ...] = ()
    has_generation: bool = False
    creates_on_update: bool = False
    requires_version_on_update: bool = False
    answers_with_deleted_object: bool = False
    default_propagation: Propagation = "Background"
    selectable: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    """Field selectors beyond metadata.name and metadata.namespace, each with a function that reads its value."""
    deprecations: Mapping[str, str] = field(default_factory=dict)
    """Warnings sent with every answer in a version."""
    acting: Acting = UNKNOWN
    """What acts on its objects."""
    custom: bool = False
    """Defined by a CustomResourceDefinition: list items carry their kind, there are no strategic merge patches."""
    create_handler: Handler | None = None
    """Replaces creation where nothing is stored (reviews)."""
    read_handlers: Mapping[str, Handler] = field(default_factory=dict)
    """By verb, replace reading where nothing is stored (metrics). They answer requests by HTTP."""
    delete_handler: Handler | None = None
    """Replaces deletion if it does more than remove one object (namespaces)."""
    guard: Guard | None = None
    """Runs after admission and before validation, where the right to write is not enough (roles)."""
    qualified: str = field(init=False)
    storage_name: str = field(init=False)
    hub_kind: GroupVersionKind = field(init=False)

    def __post_init__(self) -> None:
        # Stored, since every write needs them many times.
        plural = self.plural or _regular_plural(self.kind.lower())
        qualified = f"{plural}.{self.group}" if self.group else plural
        hub = self.hub or GroupVersionKind(self.group, self.versions[0], self.kind)
        object.__setattr__(self, "plural", plural)
        object.__setattr__(self, "qualified", qualified)
        object.__setattr__(self, "storage_name", self.storage or qualified)
        object.__setattr__(self, "hub_kind", hub)

    def kind_in(self, version: str) -> GroupVersionKind:
        return _kind(self.group, version, self.kind)

    @property
    def singular_name(self) -> str:
        return self.singular or self.kind.lower()

    @property
    def list_kind_name(self) -> str:
        return self.list_kind or f"{self.kind}List"

    def subject(self, name: str = "") -> Subject:
        """The subject of errors that are not about the object's content: the resource."""
        return Subject(self.plural, self.group, name)

    def kind_subject(self, name: str = "") -> Subject:
        """The subject of validation errors: the kind."""
        return Subject(self.kind, self.group, name)

    def subresource(self, name: str) -> Subresource | None:
        return next((found for found in self.subresources if found.name == name), None)


@dataclass(slots=True)
class Resources:
    """Every resource served now. `generation` rises with each change, so that what is derived from the table can be kept."""

    generation: int = 0
    _by_path: dict[tuple[str, str, str], ApiResource] = field(default_factory=dict)
    _by_kind: dict[tuple[str, str, str], ApiResource] = field(default_factory=dict)
    _versions: set[tuple[str, str]] = field(default_factory=set)

    def follow(self) -> None:
        """Bring the table up to date, before each lookup. Built-in resources do not change."""

    def add(self, resource: ApiResource) -> None:
        """Serve a resource, in place of the one of the same name if there is one."""
        self.remove(resource.group, resource.plural)
        for version in resource.versions:
            self._by_path[resource.group, version, resource.plural] = resource
            self._by_kind[resource.group, version, resource.kind] = resource
            self._versions.add((resource.group, version))
        self.generation += 1

    def remove(self, group: str, plural: str) -> None:
        """Stop serving a resource; no error if it is not served."""
        for table in (self._by_path, self._by_kind):
            for key in [k for k, r in table.items() if r.group == group and r.plural == plural]:
                del table[key]
        self._versions = {(served, version) for served, version, _ in self._by_path}
        self.generation += 1

    def find(self, group: str, version: str, plural: str) -> ApiResource | None:
        self.follow()
        return self._by_path.get((group, version, plural))

    def serves(self, group: str, version: str) -> bool:
        self.follow()
        return (group, version) in self._versions

    def find_kind(self, group: str, version: str, kind: str) -> ApiResource | None:
        self.follow()
        return self._by_kind.get((group, version, kind))

    def named(self, group: str, plural: str) -> ApiResource | None:
        """A resource, whatever its version."""
        return next((r for r in self if r.group == group and r.plural == plural), None)

    def __iter__(self) -> Iterator[ApiResource]:
        """Each resource once, in the order added."""
        self.follow()
        return iter({id(resource): resource for resource in self._by_path.values()}.values())

    def groups(self) -> dict[str, list[str]]:
        """Group to its versions, the preferred one first."""
        self.follow()
        found: dict[str, set[str]] = {}
        for group, version, _ in self._by_path:
            found.setdefault(group, set()).add(version)
        return {group: sorted(versions, key=version_priority) for group, versions in found.items()}

    def in_version(self, group: str, version: str) -> list[ApiResource]:
        self.follow()
        return [r for (g, v, _), r in self._by_path.items() if (g, v) == (group, version)]


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sort key: v2 before v1 before v1beta2 before v1beta1 before v1alpha1 before any other name."""
    digits, _, rest = version.removeprefix("v").partition("beta")
    stage = 1 if rest else 0
    if not rest:
        digits, _, rest = version.removeprefix("v").partition("alpha")
        stage = 2 if rest else 0
    if not version.startswith("v") or not digits.isdigit() or (rest and not rest.isdigit()):
        return (3, 0, 0, version)
    return (stage, -int(digits), -int(rest or 0), version)
