"""The end of a namespace: everything in it is deleted, and when nothing is left, the namespace itself goes."""

from __future__ import annotations

from dataclasses import replace

from drayman.apiserver.calls import Call
from drayman.apiserver.core import Core
from drayman.apiserver.deleting import delete
from drayman.apiserver.encoding import decode
from drayman.apiserver.errors import StatusError
from drayman.apiserver.options import DeleteOptions, WriteOptions
from drayman.apiserver.updating import update
from drayman.cluster.embedded.model import Key

FINALIZER = "kubernetes"
_MANAGER = "namespace-controller"


class NamespaceEnder:
    """Empties namespaces that are being deleted."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def attend(self, name: str) -> bool:
        """Do what is due for a namespace. False if something in it still has to go first."""
        stored = self._core.store.latest(Key("namespaces", "", name))
        if stored is None or "deletionTimestamp" not in stored.value["metadata"]:
            return True
        if await self._empty(name):
            return False
        await self._finalize(name)
        return True

    async def _empty(self, name: str) -> int:
        """Ask everything in the namespace to go; how many objects are still there."""
        left = 0
        for resource in list(self._core.resources):
            if not resource.namespaced or "delete" not in resource.verbs:
                continue
            for stored in self._core.store.list(resource.storage_name, name):
                if "deletionTimestamp" not in stored.value["metadata"]:
                    call = Call(
                        self._core,
                        resource,
                        resource.hub_kind.version,
                        "delete",
                        name,
                        stored.key.name,
                        delete=DeleteOptions(propagation="Background"),
                    )
                    await _delete(call)
            left += len(self._core.store.list(resource.storage_name, name))
        return left

    async def _finalize(self, name: str) -> None:
        resource = self._core.resources.named("", "namespaces")
        stored = self._core.store.latest(Key("namespaces", "", name))
        if resource is None or stored is None:
            return
        obj = decode(stored.data)
        finalizers = (obj.get("spec") or {}).get("finalizers") or []
        obj["spec"] = {**(obj.get("spec") or {})}
        obj["spec"]["finalizers"] = [item for item in finalizers if item != FINALIZER]
        call = Call(
            self._core,
            resource,
            "v1",
            "update",
            name=name,
            subresource=resource.subresource("finalize"),
            body=obj,
            write=WriteOptions(manager=_MANAGER),
        )
        try:
            await update(replace(call))
        except StatusError as error:
            if error.code not in (404, 409):
                raise


async def _delete(call: Call) -> None:
    try:
        await delete(call)
    except StatusError as error:
        if error.code != 404:
            raise
