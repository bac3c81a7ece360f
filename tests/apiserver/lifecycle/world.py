"""A server in memory with its lifecycle running, objects that own each other, and waits that end."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.lifecycle.running import Lifecycle
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.apiserver.verbs.core import Core
from drayman.cluster.backend import Target
from drayman.cluster.embedded import Key, Store
from drayman.cluster.errors import NotFoundError
from drayman.cluster.options import DeleteOptions, GetOptions, WriteOptions
from patience import PATIENCE_S

Object = dict[str, Any]
CONFIG: Final = Target("", "v1", "configmaps", "default")
CLASS: Final = Target("scheduling.k8s.io", "v1", "priorityclasses")
NAMESPACE: Final = Target("", "v1", "namespaces")
DEFINITION: Final = Target("apiextensions.k8s.io", "v1", "customresourcedefinitions")
WIDGET: Final = Target("example.com", "v1", "widgets", "default")
KINDS: Final = {
    "configmaps": ("v1", "ConfigMap"),
    "pods": ("v1", "Pod"),
    "resourceclaims": ("resource.k8s.io/v1", "ResourceClaim"),
    "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "namespaces": ("v1", "Namespace"),
    "widgets": ("example.com/v1", "Widget"),
}


def owner(obj: Object, **changes: Any) -> Object:
    """A reference to an object as an owner."""
    named = {name: obj["metadata"][name] for name in ("name", "uid")}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **named, **changes}


def blocking(obj: Object) -> Object:
    """A reference to an owner that has to wait."""
    return owner(obj, blockOwnerDeletion=True)


def widgets_definition() -> Object:
    """A custom resource of the simplest kind."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


@dataclass(slots=True)
class World:
    """A store, the server over it and what keeps it tidy."""

    store: Store
    core: Core
    backend: ServerBackend
    lifecycle: Lifecycle
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    async def create(
        self,
        target: Target,
        name: str,
        *owners: Object,
        finalizers: tuple[str, ...] = (),
        **members: Any,
    ) -> Object:
        """Create an object with these owners."""
        api_version, kind = KINDS[target.resource]
        metadata = {
            "name": name,
            "ownerReferences": list(owners),
            "finalizers": list(finalizers),
        }
        body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **members}
        if target.resource == "priorityclasses":
            body["value"] = 1
        return dict((await self.backend.create(target, body, WriteOptions())).value)

    async def config(self, name: str, *owners: Object, **options: Any) -> Object:
        """Create a ConfigMap with these owners."""
        return await self.create(CONFIG, name, *owners, **options)

    async def delete(self, target: Target, name: str, propagation: str = "") -> None:
        await self.backend.delete(
            target._replace(name=name), DeleteOptions(propagation=propagation)
        )

    async def get(self, target: Target, name: str) -> Object | None:
        try:
            found = await self.backend.get(target._replace(name=name), GetOptions())
        except NotFoundError:
            return None
        return dict(found.value)

    async def change(self, target: Target, name: str, change: Callable[[Object], None]) -> None:
        """Rewrite an object's metadata."""
        found = await self.get(target, name)
        assert found is not None, f"{name} is not there"
        metadata = dict(found["metadata"])
        change(metadata)
        body = {**found, "metadata": metadata}
        await self.backend.update(target._replace(name=name), body, WriteOptions())

    async def names(self, target: Target = CONFIG) -> set[str]:
        storage = f"{target.resource}.{target.group}" if target.group else target.resource
        return {stored.key.name for stored in self.store.list(storage, target.namespace or None)}

    async def until_gone(self, target: Target, *names: str) -> None:
        """Wait until none of these objects is left."""
        await self.until(lambda: self._left(target, names), f"{', '.join(names)} to be gone")

    def _left(self, target: Target, names: tuple[str, ...]) -> bool:
        storage = f"{target.resource}.{target.group}" if target.group else target.resource
        return all(self.store.get(Key(storage, target.namespace, n)) is None for n in names)

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something to become true."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_S
        while not condition():
            assert loop.time() < deadline, f"waited {PATIENCE_S:.0f} s for {what}"
            await asyncio.sleep(0.002)

    async def quiet(self) -> None:
        """Wait until everything that is due by now has been looked at.

        Two objects whose owner never was are collected one after the other, and each only after what was due before it.
        """
        for _ in range(2):
            name = f"sentinel-{next(self._numbers)}"
            nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "none"}
            await self.config(name, nobody)
            await self.until_gone(CONFIG, name)


@asynccontextmanager
async def world(store: Store | None = None, *, running: bool = True) -> AsyncIterator[World]:
    """A world for the time of a test."""
    store = Store.open(None) if store is None else store
    server = make_server(store)
    await create_first_objects(server.core)
    made = World(store, server.core, ServerBackend(server.core), Lifecycle(server.core))
    if running:
        made.lifecycle.start()
    try:
        yield made
    finally:
        await made.lifecycle.stop()
        store.close()
