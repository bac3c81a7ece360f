"""The rules of the API server for objects that are not submitted: defaults, admission and validation, without a cluster.

An API server in memory knows the part of the cluster that those rules look at: its namespaces, priority classes, runtime classes and limit
ranges. What is put in comes out as the cluster would store it, or is refused in the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from drayman.api import codec
from drayman.api.struct import Json
from drayman.apiserver.extensions.serving import install_extensions
from drayman.apiserver.instance.first_objects import create_builtin_definitions
from drayman.apiserver.kinds import admission_plugins, builtin_resources
from drayman.apiserver.kinds.admission import TaintNewNodes
from drayman.apiserver.lifecycle.admission import NamespaceLifecycle
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.requests.bodies import read_value
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.served.encoding import stored_form
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.core import Core
from drayman.apiserver.verbs.creating import plan_creation
from drayman.cluster.embedded.model import Delete, Key, Put
from drayman.cluster.embedded.store import Store
from drayman.placement.world import World

_DUPLICATE_FIELD: Final = re.compile(r'(?:unknown|duplicate) field "(?P<path>.*)"')
_PREAMBLE: Final = re.compile(r"^.* cannot be handled as an? \w+: ")
_WRONG_TYPE: Final = re.compile(r" field \w+\.(?P<path>\S+) of type ")


@dataclass(frozen=True, slots=True)
class ServerRefusal:
    """Why the server refuses an object. The path is that of a field in the stored form."""

    path: str
    message: str


class RefusedError(Exception):
    """The server would not take an object."""

    def __init__(self, refusals: Iterable[ServerRefusal]) -> None:
        super().__init__("the object is refused")
        self.refusals = tuple(refusals)


class _FixedClock:
    def __init__(self, now: float) -> None:
        self._now = datetime.fromtimestamp(now, UTC)

    def now(self) -> datetime:
        return self._now


class _CountedIds:
    """Ids that are the same in every run."""

    def __init__(self) -> None:
        self._count = 0

    def uid(self) -> str:
        self._count += 1
        return str(UUID(int=self._count))  # in a form that allows arithmetic, as addresses do

    def suffix(self) -> str:
        self._count += 1
        return f"{self._count:05}"


class Intake:
    """Takes objects as the cluster's API server would. Made by `Intake.of`."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._of_cluster: set[Key] = set()

    @classmethod
    async def of(cls, world: World) -> Intake:
        core = Core(Store.open(None), clock=_FixedClock(world.now), ids=_CountedIds())
        for resource in builtin_resources():
            core.resources.add(resource)
        install_extensions(core)
        # A node in a plan is one that is up; one that has just been made would take no pods yet.
        plugins = [p for p in admission_plugins() if not isinstance(p, TaintNewNodes)]
        if world.objects.namespaces:  # otherwise it is not known which exist
            core.admission.plugins.append(NamespaceLifecycle())
        core.admission.plugins.extend(plugins)
        intake = cls(core)
        await intake._seed(world)
        return intake

    async def _seed(self, world: World) -> None:
        namespaces = [codec.to_dict(namespace) for namespace in world.objects.namespaces]
        for value in (*namespaces, *world.objects.rules):
            resource = self.resource_of(value)
            if resource is not None:
                await self._put(resource, value)

    async def _put(self, resource: ApiResource, value: Object) -> None:
        metadata = value["metadata"]
        key = Key(resource.storage_name, metadata.get("namespace", ""), metadata["name"])
        await self._core.store.write([Put(key, stored_form(value, resource.hub_kind), expected=0)])
        self._of_cluster.add(key)

    def resource_of(self, value: dict[str, Json]) -> ApiResource | None:
        """The resource of an object, by its own API version and kind; None for a kind that is not served."""
        group, _, version = str(value.get("apiVersion")).rpartition("/")
        return self._core.resources.find_kind(group, version, str(value.get("kind")))

    async def define(self, plural: str, group: str) -> None:
        """Serve a kind that clusters have by a definition, if the embedded one has it. Done on demand: it takes a moment."""
        await create_builtin_definitions(self._core, f"{plural}.{group}")

    def serves(self, api_version: str) -> bool:
        group, _, version = api_version.rpartition("/")
        return self._core.resources.serves(group, version)

    async def take(self, resource: ApiResource, value: dict[str, Json], namespace: str) -> Object:
        """The object as it would be stored. Others can then refer to it. Raises RefusedError."""
        call = self._call(resource, value, namespace)
        await self._remove_existing(Key(resource.storage_name, namespace, _name_in(call)))
        try:
            stored, operation = plan_creation(call, dict(call.body or {}))
        except StatusError as error:
            raise RefusedError(_refusals(error)) from error
        await self._core.store.write([operation])
        return stored

    async def _remove_existing(self, key: Key) -> None:
        """What the cluster has may be applied again. The same object twice in a file is a mistake."""
        if key in self._of_cluster:
            self._of_cluster.remove(key)
            latest = self._core.store.latest(key)
            assert latest is not None
            await self._core.store.write([Delete(key, lambda _: latest.data)])

    def tried(self, resource: ApiResource, value: dict[str, Json], namespace: str) -> Object:
        """The same for an object that a controller would make. Nothing is kept. Raises RefusedError."""
        call = self._call(resource, value, namespace)
        try:
            return plan_creation(call, dict(call.body or {}))[0]
        except StatusError as error:
            raise RefusedError(_refusals(error)) from error

    def _call(self, resource: ApiResource, value: dict[str, Json], namespace: str) -> Call:
        version = str(value.get("apiVersion")).rpartition("/")[2]
        call = Call(self._core, resource, version, "create", namespace)
        try:
            body = read_value(call, value, strict="Warn")
        except StatusError as error:
            raise RefusedError(_refusals(error)) from error
        if call.warnings:  # kubectl asks for strict validation, to which these are errors
            raise RefusedError(map(_field_problem, call.warnings))
        body["metadata"] = dict(body.get("metadata") or {})
        call.body = body
        return call


def _name_in(call: Call) -> str:
    name: Json = (call.body or {}).get("metadata", {}).get("name")
    return name if isinstance(name, str) else ""


def _field_problem(text: str) -> ServerRefusal:
    found = _DUPLICATE_FIELD.fullmatch(text)
    return (
        ServerRefusal("", text)
        if found is None
        else ServerRefusal(found["path"], text.partition(' "')[0])
    )


def _refusals(error: StatusError) -> Iterable[ServerRefusal]:
    """The causes one by one, where there are any."""
    if error.reason == "Invalid" and error.causes:
        return [ServerRefusal(cause.field, cause.message) for cause in error.causes]
    found = _WRONG_TYPE.search(error.message)
    if found is None:
        return [ServerRefusal("", error.message)]
    return [ServerRefusal(found["path"], _PREAMBLE.sub("", error.message))]
