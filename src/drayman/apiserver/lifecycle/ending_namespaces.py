"""The end of a namespace: everything in it is deleted, and when nothing is left, the namespace itself goes."""

from __future__ import annotations

from typing import Final

from drayman.apiserver.calls import Call
from drayman.apiserver.core import Core
from drayman.apiserver.deleting import delete
from drayman.apiserver.encoding import decode
from drayman.apiserver.lifecycle.collecting import unless_gone
from drayman.apiserver.lifecycle.graph import node_of
from drayman.apiserver.options import DeleteOptions, WriteOptions
from drayman.apiserver.resources import Resource
from drayman.apiserver.updating import update
from drayman.cluster.embedded.model import Key, Stored

NAMESPACES: Final = "namespaces"
FINALIZER: Final = "kubernetes"
MOST_AT_ONCE: Final = 64
"""Objects deleted in one go, so that a full namespace does not hold up everybody else."""
_MANAGER: Final = "namespace-controller"


class NamespaceEnder:
    """Empties namespaces that are being deleted."""

    def __init__(self) -> None:
        self._asked: dict[str, set[Key]] = {}
        """What is known to be on its way out, by namespace: it is not looked at again while it takes its time."""

    async def attend(self, core: Core, name: str) -> bool:
        """Do what is due for a namespace. False if there is more of it at once; what waits for others says when it is gone."""
        stored = core.store.latest(Key(NAMESPACES, "", name))
        if stored is None or not node_of(stored).is_deleted:
            self._asked.pop(name, None)
            return True
        contents = _contents(core, name)
        if not contents:
            await _finalize(core, name, stored)
            return True
        return await self._empty(core, name, contents)

    async def _empty(
        self, core: Core, name: str, contents: list[tuple[Resource, tuple[Stored, ...]]]
    ) -> bool:
        """Delete some of the objects that are not being deleted. Tells whether those were all."""
        asked = self._asked.setdefault(name, set())
        left = MOST_AT_ONCE
        for resource, objects in contents:
            for stored in objects:
                if stored.key in asked:
                    continue
                if node_of(stored).is_deleted:
                    asked.add(stored.key)
                    continue
                if left == 0:
                    return False
                await unless_gone(delete, _deletion(core, resource, stored.key))
                left -= 1
        return True


def _contents(core: Core, namespace: str) -> list[tuple[Resource, tuple[Stored, ...]]]:
    """What is in a namespace, by resource. Two that show the same objects count once."""
    resources = {
        resource.storage_name: resource
        for resource in core.resources
        if resource.namespaced and "delete" in resource.verbs
    }
    found = ((r, core.store.list(storage, namespace)) for storage, r in resources.items())
    return [(resource, objects) for resource, objects in found if objects]


def _deletion(core: Core, resource: Resource, key: Key) -> Call:
    return Call(
        core,
        resource,
        resource.hub_kind.version,
        "delete",
        key.namespace,
        key.name,
        delete=DeleteOptions(propagation="Background"),
    )


async def _finalize(core: Core, name: str, stored: Stored) -> None:
    """Take the finalizer off a namespace that is empty, by way of the endpoint that is for it."""
    resource = core.resources.named("", NAMESPACES)
    if resource is None:
        return
    obj = decode(stored.data)
    spec = obj.get("spec") or {}
    kept = [item for item in spec.get("finalizers") or [] if item != FINALIZER]
    call = Call(
        core,
        resource,
        resource.hub_kind.version,
        "update",
        name=name,
        subresource=resource.subresource("finalize"),
        body={**obj, "spec": {**spec, "finalizers": kept}},
        write=WriteOptions(manager=_MANAGER),
    )
    await unless_gone(update, call)
