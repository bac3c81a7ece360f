"""Who owns whom, kept up to date from the changes of the store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drayman.apiserver.strategy import Object
from drayman.cluster.embedded.model import Key


@dataclass(frozen=True, slots=True)
class Owner:
    """A reference from an object to one that owns it."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool  # whether the owner waits for this object when it is deleted in the foreground


@dataclass(frozen=True, slots=True)
class Node:
    """An object, as far as its life depends on others."""

    key: Key
    uid: str
    owners: tuple[Owner, ...]
    finalizers: tuple[str, ...]
    deleting: bool


def node_of(key: Key, obj: Object) -> Node:
    metadata = obj["metadata"]
    owners = tuple(
        Owner(
            reference.get("apiVersion", ""),
            reference.get("kind", ""),
            reference.get("name", ""),
            reference.get("uid", ""),
            bool(reference.get("blockOwnerDeletion")),
        )
        for reference in metadata.get("ownerReferences") or ()
    )
    return Node(
        key,
        metadata["uid"],
        owners,
        tuple(metadata.get("finalizers") or ()),
        "deletionTimestamp" in metadata,
    )


class Graph:
    """Objects by uid, and the dependents of each owner."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, set[str]] = {}

    def put(self, node: Node) -> None:
        self.drop(node.uid)
        self._nodes[node.uid] = node
        for owner in node.owners:
            self._dependents.setdefault(owner.uid, set()).add(node.uid)

    def drop(self, uid: str) -> None:
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        for owner in node.owners:
            dependents = self._dependents.get(owner.uid)
            if dependents is not None:
                dependents.discard(uid)
                if not dependents:
                    del self._dependents[owner.uid]

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> Iterator[Node]:
        """The objects that name this one as an owner, in a stable order."""
        found = (self._nodes[dependent] for dependent in self._dependents.get(uid, ()))
        return iter(sorted(found, key=lambda node: node.key))
