"""Which objects own which, kept up to date from the changes of the store.

Most objects own nothing the graph has to know, have no owner and wait for nothing: those are not kept. Only the metadata of an object
is ever decoded, because the graph sees every change.
"""

from __future__ import annotations

from typing import Final

import msgspec

from drayman.apiserver.verbs.deleting import FOREGROUND, ORPHAN
from drayman.cluster.embedded.model import Key, Stored


class OwnerLink(msgspec.Struct, frozen=True, rename="camel"):
    """A reference from an object to one that owns it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    block_owner_deletion: bool | None = None
    """Whether the owner waits for this object when it is deleted in the foreground."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    owner_references: tuple[OwnerLink, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct, frozen=True):
    metadata: _Metadata


_heads: Final = msgspec.json.Decoder(_Head)


class DependentObject(msgspec.Struct, frozen=True):
    """The data of an object on which its dependency on others is based."""

    key: Key
    uid: str
    owners: tuple[OwnerLink, ...] = ()
    finalizers: tuple[str, ...] = ()
    is_deleted: bool = False
    """Whether its deletion was requested."""

    @property
    def waits(self) -> bool:
        """Whether it stays until its dependents are gone."""
        return self.is_deleted and FOREGROUND in self.finalizers

    @property
    def frees(self) -> bool:
        """Whether it stays until its dependents no longer name it."""
        return self.is_deleted and ORPHAN in self.finalizers


def node_of(stored: Stored) -> DependentObject:
    metadata = _heads.decode(stored.data).metadata
    return DependentObject(
        stored.key,
        metadata.uid,
        metadata.owner_references or (),
        metadata.finalizers or (),
        metadata.deletion_timestamp is not None,
    )


class Graph:
    """The objects that have owners, or that stay for their dependents."""

    def __init__(self) -> None:
        self._nodes: dict[str, DependentObject] = {}
        self._dependents: dict[str, dict[str, DependentObject]] = {}
        self._gone: dict[str, str] = {}
        """The namespace of each owner whose removal was observed while objects named it. It cannot come back: its id is unique."""

    def clear(self) -> None:
        for table in (self._nodes, self._dependents, self._gone):
            table.clear()

    def put(self, node: DependentObject) -> None:
        self.remove(node.uid)
        if not (node.owners or node.waits or node.frees):
            return
        self._nodes[node.uid] = node
        for owner in node.owners:
            self._dependents.setdefault(owner.uid, {})[node.uid] = node

    def remove(self, uid: str) -> None:
        """Forget an object, as a dependent. Objects that name it as an owner still do."""
        node = self._nodes.pop(uid, None)
        for owner in () if node is None else node.owners:
            dependents = self._dependents.get(owner.uid, {})
            dependents.pop(uid, None)
            if not dependents:
                self._dependents.pop(owner.uid, None)
                self._gone.pop(owner.uid, None)

    def note_gone(self, node: DependentObject) -> None:
        """Remember that an object is gone, as long as others name it as their owner."""
        if node.uid in self._dependents:
            self._gone[node.uid] = node.key.namespace
        self.remove(node.uid)

    def get(self, uid: str) -> DependentObject | None:
        return self._nodes.get(uid)

    def holds_on(self, uid: str) -> bool:
        """Whether an object stays for the sake of its dependents."""
        node = self._nodes.get(uid)
        return node is not None and (node.waits or node.frees)

    def is_gone(self, uid: str, dependent: Key) -> bool:
        """Whether the removal of an owner was observed. A namespaced object cannot own a cluster-scoped one, gone or not."""
        namespace = self._gone.get(uid)
        return namespace is not None and (not namespace or bool(dependent.namespace))

    def dependents(self, uid: str) -> tuple[DependentObject, ...]:
        """The objects that name this one as an owner."""
        return tuple(self._dependents.get(uid, {}).values())

    def has_dependents(self, uid: str) -> bool:
        return uid in self._dependents

    def is_blocked(self, uid: str) -> bool:
        """Whether an object has dependents that it must outlive, other than itself."""
        dependents = self._dependents.get(uid, {}).values()
        return any(blocks(node, uid) for node in dependents if node.uid != uid)


def blocks(node: DependentObject, uid: str) -> bool:
    """Whether an object keeps this owner from being removed first."""
    return any(owner.uid == uid and owner.block_owner_deletion for owner in node.owners)
