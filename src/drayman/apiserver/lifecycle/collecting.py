"""Garbage collection: dependents go with their owners, owners wait for dependents, or dependents are set free.

An object whose owners are all gone is deleted. One that is deleted in the foreground stays until the dependents that block it are gone; one
that is deleted as an orphan lets its dependents go first. The rules are Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from drayman.apiserver.calls import Call
from drayman.apiserver.core import Core
from drayman.apiserver.deleting import FOREGROUND, ORPHAN, delete
from drayman.apiserver.encoding import decode
from drayman.apiserver.errors import StatusError
from drayman.apiserver.lifecycle.graph import Graph, Node, Owner
from drayman.apiserver.options import DeleteOptions, WriteOptions
from drayman.apiserver.resources import Resource
from drayman.apiserver.strategy import Object
from drayman.apiserver.updating import update
from drayman.cluster.embedded.model import Key

_MANAGER = "garbage-collector"


class Collector:
    """Decides about one object at a time."""

    def __init__(self, core: Core, graph: Graph) -> None:
        self._core = core
        self._graph = graph

    async def attend(self, uid: str) -> None:
        """Do what is due for an object. Raises StatusError where the server refuses; trying again later may help."""
        node = self._graph.get(uid)
        if node is None:
            return
        if node.deleting and ORPHAN in node.finalizers:
            await self._set_free(node)
        elif node.deleting and FOREGROUND in node.finalizers:
            await self._finish_foreground(node)
        elif not node.deleting:
            await self._delete_if_unowned(node)

    async def _set_free(self, node: Node) -> None:
        for dependent in self._graph.dependents(node.uid):
            await self._change(dependent.key, lambda obj: _without_owners(obj, {node.uid}))
        await self._change(node.key, lambda obj: _without_finalizer(obj, ORPHAN))

    async def _finish_foreground(self, node: Node) -> None:
        dependents = list(self._graph.dependents(node.uid))
        for dependent in dependents:
            if not dependent.deleting:
                await self._delete_if_unowned(dependent)
        blocking = (d for d in dependents if any(o.uid == node.uid and o.blocks for o in d.owners))
        if not any(self._graph.get(d.uid) for d in blocking):
            await self._change(node.key, lambda obj: _without_finalizer(obj, FOREGROUND))

    async def _delete_if_unowned(self, node: Node) -> None:
        if not node.owners:
            return
        gone = {owner.uid for owner in node.owners if not self._exists(owner, node.key)}
        waiting = {o.uid for o in node.owners if o.uid not in gone and self._waits(o.uid)}
        if len(gone) + len(waiting) < len({owner.uid for owner in node.owners}):
            if gone or waiting:
                await self._change(node.key, lambda obj: _without_owners(obj, gone | waiting))
            return
        has_dependents = any(self._graph.dependents(node.uid))
        policy = "Foreground" if waiting and has_dependents else "Background"
        await self._delete(node, policy)

    def _waits(self, uid: str) -> bool:
        owner = self._graph.get(uid)
        return owner is not None and owner.deleting and FOREGROUND in owner.finalizers

    def _exists(self, owner: Owner, dependent: Key) -> bool:
        """Whether an owner is there. One of a kind that is not served counts as there: nobody can tell."""
        group, _, version = owner.api_version.rpartition("/")
        resource = self._core.resources.find_kind(group, version, owner.kind)
        if resource is None:
            return True
        namespace = dependent.namespace if resource.namespaced else ""
        found = self._core.store.latest(Key(resource.storage_name, namespace, owner.name))
        return found is not None and found.value["metadata"]["uid"] == owner.uid

    async def _delete(self, node: Node, policy: str) -> None:
        call = self._call(node.key, "delete")
        if call is not None:
            options = DeleteOptions(propagation=policy, uid=node.uid)
            await _unless_gone(delete, replace(call, delete=options))

    async def _change(self, key: Key, change: Callable[[Object], bool]) -> None:
        """Rewrite an object, if it is still there and the change does anything."""
        call, stored = self._call(key, "update"), self._core.store.latest(key)
        if call is None or stored is None:
            return
        obj = decode(stored.data)
        if change(obj):
            options = WriteOptions(manager=_MANAGER)
            await _unless_gone(update, replace(call, body=obj, write=options))

    def _call(self, key: Key, verb: str) -> Call | None:
        resource = resource_stored_as(self._core, key.resource)
        if resource is None:
            return None
        version = resource.hub_kind.version
        return Call(self._core, resource, version, verb, key.namespace, key.name)


def resource_stored_as(core: Core, storage: str) -> Resource | None:
    """The resource whose objects have this name in the store."""
    return next((r for r in core.resources if r.storage_name == storage), None)


async def _unless_gone(act: Callable[[Call], Awaitable[object]], call: Call) -> None:
    try:
        await act(call)
    except StatusError as error:
        if error.code != 404:
            raise


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
