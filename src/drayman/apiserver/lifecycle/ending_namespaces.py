"""The end of a namespace: everything in it is deleted, pods first, and when nothing is left, the namespace itself.

Other objects wait for the pods, as a running pod may need its secrets, claims and rights.
"""

from __future__ import annotations

from typing import Final

from drayman.api.times import timestamp
from drayman.apiserver.lifecycle.collecting import unless_gone
from drayman.apiserver.lifecycle.graph import DependentObject, node_of
from drayman.apiserver.lifecycle.namespace_conditions import count_finalizers, deletion_conditions
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.protocol.options import DeleteOptions
from drayman.apiserver.requests.calls import Call, own_call
from drayman.apiserver.served.encoding import decode
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.core import Core
from drayman.apiserver.verbs.deleting import delete
from drayman.apiserver.verbs.updating import update
from drayman.cluster.embedded.model import Key, Stored
from drayman.cluster.options import WriteOptions
from drayman.cluster.together import LARGEST

NAMESPACES: Final = "namespaces"
PODS: Final = "pods"
FINALIZER: Final = "kubernetes"
_MANAGER: Final = "namespace-controller"

Contents = dict[str, tuple[ApiResource, tuple[Stored, ...]]]
"""What is in a namespace, by storage name."""


class NamespaceEnder:
    """Empties namespaces that are being deleted."""

    def __init__(self) -> None:
        self._leaving: dict[str, dict[Key, tuple[int, DependentObject]]] = {}
        """The objects being deleted, by namespace, with their revision: they are not read again until they change."""

    async def attend(self, core: Core, name: str) -> bool:
        """Do what is due for a namespace. False if there is more to do at once; objects that wait for others trigger a new look when gone.

        Raises StatusError if something in it cannot be deleted, after everything else was.
        """
        stored = core.store.latest(Key(NAMESPACES, "", name))
        if stored is None or not node_of(stored).is_deleted:
            self._leaving.pop(name, None)
            return True
        contents = _contents(core, name)
        problems: list[StatusError] = []
        if contents:
            if not await self._empty(core, name, contents, problems):
                return False
            contents = _contents(core, name)
        await self._report(core, name, contents, problems)
        if problems:
            raise problems[0]
        if not contents:
            await _finalize(core, name)
        return True

    async def _empty(
        self, core: Core, name: str, contents: Contents, problems: list[StatusError]
    ) -> bool:
        """Delete some of the objects that are not being deleted. Returns whether those were all that can be deleted now."""
        left = LARGEST
        due = [contents[PODS]] if PODS in contents else contents.values()
        for resource, objects in due:
            for stored in objects:
                if self._look(name, stored).is_deleted:
                    continue
                if left == 0:
                    return False
                try:
                    await unless_gone(delete, _deletion(core, resource, stored.key))
                except StatusError as error:
                    problems.append(error)
                left -= 1
        return True

    def _look(self, name: str, stored: Stored) -> DependentObject:
        leaving = self._leaving.setdefault(name, {})
        known = leaving.get(stored.key)
        if known is not None and known[0] == stored.revision:
            return known[1]
        node = node_of(stored)
        if node.is_deleted:
            leaving[stored.key] = (stored.revision, node)
        return node

    async def _report(
        self, core: Core, name: str, contents: Contents, problems: list[StatusError]
    ) -> None:
        """Write what is left into the status of a namespace, if that differs."""
        stored = core.store.latest(Key(NAMESPACES, "", name))
        if stored is None:
            return
        status = stored.value.get("status") or {}
        before = status.get("conditions") or []
        remaining = {f"{r.plural}.{r.group}": len(objects) for r, objects in contents.values()}
        nodes = [self._look(name, one) for _, objects in contents.values() for one in objects]
        held = count_finalizers(node.finalizers for node in nodes if node.is_deleted)
        now = timestamp(core.clock.now())
        after = deletion_conditions(before, remaining, held, map(str, problems), now)
        if after != before:
            await _update(core, name, "status", {"status": {**status, "conditions": after}})


def _contents(core: Core, namespace: str) -> Contents:
    """What is in a namespace. Two resources that show the same objects count once."""
    resources = {
        resource.storage_name: resource
        for resource in core.resources
        if resource.namespaced and "delete" in resource.verbs
    }
    found = ((name, r, core.store.list(name, namespace)) for name, r in resources.items())
    return {name: (resource, objects) for name, resource, objects in found if objects}


def _deletion(core: Core, resource: ApiResource, key: Key) -> Call:
    call = own_call(core, resource, "delete", key)
    call.delete = DeleteOptions(propagation="Background")
    return call


async def _finalize(core: Core, name: str) -> None:
    """Take the finalizer off a namespace that is empty, through the endpoint for that."""
    stored = core.store.latest(Key(NAMESPACES, "", name))
    if stored is None:
        return
    spec = stored.value.get("spec") or {}
    kept = [item for item in spec.get("finalizers") or [] if item != FINALIZER]
    await _update(core, name, "finalize", {"spec": {**spec, "finalizers": kept}})


async def _update(core: Core, name: str, part: str, changes: Object) -> None:
    """Replace members of a namespace through one of its endpoints."""
    resource = core.resources.named("", NAMESPACES)
    stored = core.store.latest(Key(NAMESPACES, "", name))
    if resource is None or stored is None:
        return
    call = own_call(core, resource, "update", stored.key)
    call.subresource = resource.subresource(part)
    call.body = {**decode(stored.data), **changes}
    call.write = WriteOptions(field_manager=_MANAGER)
    await unless_gone(update, call)
