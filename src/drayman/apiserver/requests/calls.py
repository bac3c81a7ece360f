"""A request to a resource, resolved and decoded: its target, version, user, body and options.

Both ways into the server end here: HTTP, which decodes bytes and encodes the result, and the client in the same process, which
does neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec

from drayman.api.struct import Json
from drayman.apiserver.protocol.access import ADMIN, User
from drayman.apiserver.protocol.errors import Subject, not_found
from drayman.apiserver.protocol.exchange import Request
from drayman.apiserver.protocol.options import DeleteOptions, ListOptions
from drayman.apiserver.served.resources import ApiResource, GroupVersionKind, Subresource
from drayman.apiserver.served.strategy import Context, Object, Strategy
from drayman.cluster.embedded.model import Key, Stored
from drayman.cluster.options import WriteOptions

if TYPE_CHECKING:
    from drayman.apiserver.verbs.core import Core

NO_WRITE_OPTIONS: Final = WriteOptions()
NO_DELETE_OPTIONS: Final = DeleteOptions()
NO_LIST_OPTIONS: Final = ListOptions()


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch as it was sent: its media type and its content, decoded."""

    media_type: str
    change: Json
    duplicates: tuple[str, ...] = ()
    """Members that occur twice, as in `duplicate field "data.a"`."""


@dataclass(slots=True)
class Call:
    """One request to one resource, filled in step by step while it is read.

    `warnings` collects the warnings sent to the client, whatever the outcome.
    """

    core: Core
    resource: ApiResource
    version: str
    verb: str
    namespace: str = ""
    name: str = ""
    subresource: Subresource | None = None
    user: User = ADMIN
    body: Object | None = None
    """The object sent, in the version of the request, as its schema defines it. None if there is none."""
    patch: Patch | None = None
    write: WriteOptions = NO_WRITE_OPTIONS
    delete: DeleteOptions = NO_DELETE_OPTIONS
    selection: ListOptions = NO_LIST_OPTIONS
    size: int = 0
    """The length of the body, for requests that have one."""
    request: Request | None = None
    """The request itself, where it came by HTTP: for streams and upgrades."""
    warnings: list[str] = field(default_factory=list)

    @property
    def kind(self) -> GroupVersionKind:
        """The kind of the body and of the answer."""
        if self.subresource is not None and self.subresource.kind is not None:
            return self.subresource.kind
        return self.resource.kind_in(self.version)

    @property
    def key(self) -> Key:
        return Key(self.resource.storage_name, self.namespace, self.name)

    @property
    def subject(self) -> Subject:
        return self.resource.subject(self.name)

    @property
    def strategy(self) -> Strategy:
        if self.subresource is not None and self.subresource.strategy is not None:
            return self.subresource.strategy
        return self.resource.strategy

    @property
    def dry_run(self) -> bool:
        return self.delete.dry_run if self.verb.startswith("delete") else self.write.dry_run

    @property
    def context(self) -> Context:
        return Context(
            objects=self.core.objects,
            moment=self.core.clock.now(),
            ids=self.core.ids,
            version=self.version,
            namespace=self.namespace,
            user=self.user,
            dry_run=self.dry_run,
            warnings=self.warnings,
            annotations=self.request.annotations if self.request is not None else {},
        )

    def existing(self) -> Stored:
        """The object that the request is about, as of the latest write. Raises StatusError 404."""
        stored = self.core.store.latest(self.key)
        if stored is None:
            raise not_found(self.subject)
        return stored

    def about(self, name: str) -> Call:
        """The same request about another object of the collection."""
        return replace(self, name=name)


def own_call(core: Core, resource: ApiResource, verb: str, key: Key) -> Call:
    """A call that the server itself makes about an object, in the version that is stored."""
    return Call(core, resource, resource.hub_kind.version, verb, key.namespace, key.name)


class Result(msgspec.Struct, frozen=True):
    """The result of a call: an object of the store, or a value that is sent as it is (a Status, a Scale, a review)."""

    stored: Stored | None = None
    value: Json = None
    status: int = 200


def success(subject: Subject, status: int = 200) -> Result:
    """A Status that only reports success; that of a deletion has details, that of a creation has a code."""
    value: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if status == 201:
        value["code"] = status
    else:
        value["details"] = subject.to_json()
    return Result(value=value, status=status)
