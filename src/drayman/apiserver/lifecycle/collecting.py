"""Garbage collection: dependents are deleted with their owners, owners wait for dependents, or dependents are orphaned.

An object whose owners are all gone is deleted. An object deleted in the foreground stays until the dependents that block it are gone;
one deleted with orphaning first releases its dependents. The rules are those of Kubernetes.

Which owners an object has, and whether they are gone, is read from the store, by the name, kind and uid of the reference: the graph says
what to look at, never that something does not exist. Only an owner whose removal was observed needs no second look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from drayman.apiserver.lifecycle.graph import DependentObject, Graph, OwnerLink, node_of
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.protocol.options import DeleteOptions
from drayman.apiserver.requests.calls import Call, own_call
from drayman.apiserver.served.encoding import decode
from drayman.apiserver.served.resources import ApiResource, Resources
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.core import Core
from drayman.apiserver.verbs.deleting import FOREGROUND, ORPHAN, delete
from drayman.apiserver.verbs.updating import update
from drayman.cluster.embedded.model import Key
from drayman.cluster.options import WriteOptions

_MANAGER: Final = "garbage-collector"
_NOT_FOUND: Final = 404


class UnknownOwnerError(Exception):
    """It is unknown whether an owner exists, because its kind is not served."""

    def __init__(self, node: DependentObject, owner: OwnerLink) -> None:
        super().__init__(f"{node.key} is owned by a {owner.kind} of {owner.api_version}")


class StoredResources:
    """The resources that serve objects, by storage name. It follows the table of resources, custom ones too."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._places: dict[str, tuple[str, str, str]] = {}

    def find(self, storage: str) -> ApiResource | None:
        """The resource whose objects have this storage name, as it is served now."""
        found = self._served(storage)
        if found is None:
            # If two resources show the same objects, either will do.
            self._places = {
                resource.storage_name: (resource.group, resource.versions[0], resource.plural)
                for resource in reversed(list(self._resources))
            }
            found = self._served(storage)
        return found

    def _served(self, storage: str) -> ApiResource | None:
        place = self._places.get(storage)
        return None if place is None else self._resources.find(*place)


class Collector:
    """Decides about one object at a time. `core` is what it reads and writes: a batch, or the server itself."""

    def __init__(self, graph: Graph, resources: StoredResources) -> None:
        self._graph = graph
        self._resources = resources

    async def attend(self, core: Core, uid: str) -> None:
        """Do what is due for an object.

        Raises StatusError if the server refuses, or UnknownOwnerError; trying again later may help.
        """
        node = self._graph.get(uid)
        stored = None if node is None else core.store.latest(node.key)
        if stored is None:
            return
        # As it is now: while decisions before this one were made in another thread, it may have got an owner that exists.
        node = node_of(stored)
        if node.uid != uid:
            return
        if node.owners:
            await self._attend_dependent(core, node)
        if node.frees and not self._graph.has_dependents(uid):
            await self._change(core, node, lambda obj: _without_finalizer(obj, ORPHAN))
        elif node.waits and not self._graph.is_blocked(uid):
            await self._change(core, node, lambda obj: _without_finalizer(obj, FOREGROUND))

    async def _attend_dependent(self, core: Core, node: DependentObject) -> None:
        freeing = {owner.uid for owner in node.owners if self._frees(owner.uid)}
        if freeing:
            await self._change(core, node, lambda obj: _without_owners(obj, freeing))
        elif not node.is_deleted:
            await self._delete_if_unowned(core, node)

    async def _delete_if_unowned(self, core: Core, node: DependentObject) -> None:
        gone = {owner.uid for owner in node.owners if not self._exists(core, owner, node)}
        waiting = {o.uid for o in node.owners if o.uid not in gone and self._waits(o.uid)}
        if len(gone) + len(waiting) < len({owner.uid for owner in node.owners}):
            if gone or waiting:
                await self._change(core, node, lambda obj: _without_owners(obj, gone | waiting))
            return
        dependents = self._graph.dependents(node.uid) if waiting else ()
        if any(dependent.waits for dependent in dependents):
            # They own each other, and would wait for each other forever.
            await self._change(core, node, _unblocked)
        await self._delete(core, node, "Foreground" if dependents else _own_policy(node))

    def _frees(self, uid: str) -> bool:
        owner = self._graph.get(uid)
        return owner is not None and owner.frees

    def _waits(self, uid: str) -> bool:
        owner = self._graph.get(uid)
        return owner is not None and owner.waits

    def _exists(self, core: Core, owner: OwnerLink, node: DependentObject) -> bool:
        """Whether an owner exists: in the namespace of its dependent or, if its kind is cluster-scoped, in none."""
        if self._graph.is_gone(owner.uid, node.key):
            return False
        group, _, version = owner.api_version.rpartition("/")
        resource = core.resources.find_kind(group, version, owner.kind)
        if resource is None:
            raise UnknownOwnerError(node, owner)
        if resource.namespaced and not node.key.namespace:
            return True  # There is no namespace to look in. Such a reference is invalid, and nothing is deleted because of it.
        namespace = node.key.namespace if resource.namespaced else ""
        found = core.store.latest(Key(resource.storage_name, namespace, owner.name))
        return found is not None and node_of(found).uid == owner.uid

    async def _delete(self, core: Core, node: DependentObject, policy: str) -> None:
        call = self._call(core, node.key, "delete")
        if call is not None:
            call.delete = DeleteOptions(propagation=policy, uid=node.uid)
            await unless_gone(delete, call)

    async def _change(
        self, core: Core, node: DependentObject, change: Callable[[Object], bool]
    ) -> None:
        """Rewrite an object, if it still exists and the change has an effect."""
        call, stored = self._call(core, node.key, "update"), core.store.latest(node.key)
        if call is None or stored is None:
            return
        obj = decode(stored.data)
        if obj["metadata"]["uid"] == node.uid and change(obj):
            call.body, call.write = obj, WriteOptions(field_manager=_MANAGER)
            await unless_gone(update, call)

    def _call(self, core: Core, key: Key, verb: str) -> Call | None:
        resource = self._resources.find(key.resource)
        return None if resource is None else own_call(core, resource, verb, key)


async def unless_gone(act: Callable[[Call], Awaitable[object]], call: Call) -> None:
    """Act on an object; if it no longer exists, nothing had to be done."""
    try:
        await act(call)
    except StatusError as error:
        if error.code != _NOT_FOUND:
            raise


def _own_policy(node: DependentObject) -> str:
    """What happens to the dependents of an object that is deleted for lack of owners: its finalizers decide."""
    if ORPHAN in node.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in node.finalizers else "Background"


def _without_owners(obj: Object, uids: set[str]) -> bool:
    metadata = obj["metadata"]
    before = metadata.get("ownerReferences") or []
    metadata["ownerReferences"] = [r for r in before if r.get("uid") not in uids]
    return len(metadata["ownerReferences"]) < len(before)


def _without_finalizer(obj: Object, finalizer: str) -> bool:
    metadata = obj["metadata"]
    before = metadata.get("finalizers") or []
    metadata["finalizers"] = [name for name in before if name != finalizer]
    return len(metadata["finalizers"]) < len(before)


def _unblocked(obj: Object) -> bool:
    """The object with owners that need not wait for it."""
    owners = obj["metadata"].get("ownerReferences") or []
    blocking = [owner for owner in owners if owner.get("blockOwnerDeletion")]
    for owner in blocking:
        owner["blockOwnerDeletion"] = False
    return bool(blocking)
