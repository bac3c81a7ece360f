"""Objects of every kind with wrong, extreme and unlikely values anywhere in them, and patches that bring such values in.

Whatever is sent is answered with the object or with a Status that says what is wrong, never with an error of the server. What is accepted
can be read, listed, written back unchanged, patched with nothing and deleted.

Kinds, versions and fields come from the table of resources and their schemas; each object starts as one that the server accepts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from robustness import widgets
from robustness.hostile import (
    APPLY,
    DEFINITIONS,
    IS_LONG,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC,
    Target,
    hostile_target,
)

from drayman.api.schema import ListOf, MapOf, Message, ScalarKind, Type
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.serving.assembly import make_server
from drayman.cluster.embedded.model import Delete
from drayman.cluster.embedded.store import Store
from growth.documents import ITEM, message_of, skeleton, value
from patience import PATIENCE_S

EXAMPLES = 500 if IS_LONG else 14
"""Objects for each kind in each version."""
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
LONE = "\ud800"
DEEP: Any = 0
for _ in range(120):
    DEEP = [DEEP]
NASTY: tuple[Any, ...] = (
    None, 0, 1, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 10**400, 0.5, -0.0, 1e308, 1e-308,
    True, False, "", " ", "a", "A", "-", ".", "..", "/", "a/b", "a/b/c", "0", "-1", "1", "1e400", "1Ei", "-0", "NaN", "10%", "-5%",
    "101%", "0x10", "\0", LONE, "\u202e\u0000x", "\u2028", "\ufeff", "é" * 40, "a" * 64, "a" * 254, "a" * 5000, "kubernetes.io/x",
    "example.com/x", "*", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00.123456Z",
    "10.0.0.1", "::1", "10.0.0.0/33", "fe80::1%eth0", "YQ==", "YQ", "true", "has(", "device.x == 1", [], [None], [[]], [{}], ["a", "a"],
    [{}, {}], [1, "a"], {}, {"": ""}, {"a": None}, {"a": {}}, {"a": "b"}, {"a/b/c": "d"}, {"$patch": "delete"}, DEEP,
)  # fmt: skip
UNCHECKED = (b"metadata.generateName", b"status.storedVersions")
"""What can be written with a status and is looked at only when the object is written, as in Kubernetes."""
UNKNOWN = ("zz", "", "Metadata", "apiVersion ", "$patch", "$setElementOrder/containers", "\0", "é")


@dataclass(frozen=True, slots=True)
class Served:
    """A kind in a version."""

    resource: ApiResource
    version: str

    def __str__(self) -> str:
        return f"{self.resource.qualified}/{self.version}"

    @property
    def message(self) -> Message:
        if self.resource.group == widgets.GROUP:
            return widgets.MESSAGE
        return message_of(self.resource, self.version)

    def sample(self) -> dict[str, Any]:
        """An object that the server accepts."""
        if self.resource.group == widgets.GROUP:
            return widgets.widget()
        return skeleton(self.resource, self.version)

    @property
    def path(self) -> str:
        group = f"apis/{self.resource.group}" if self.resource.group else "api"
        where = "namespaces/default/" if self.resource.namespaced else ""
        return f"/{group}/{self.version}/{where}{self.resource.plural}"


def all_served() -> Iterator[Served]:
    """Every kind that a server serves, in every version."""
    store = Store.open(None)
    for resource in make_server(store).core.resources:
        for version in resource.versions:
            yield Served(resource, version)
    store.close()


GROUPS: dict[str, list[Served]] = {}
for _one in all_served():
    GROUPS.setdefault(f"{_one.resource.group or 'core'}/{_one.version}", []).append(_one)


FITTING: dict[str, tuple[Any, ...]] = {
    "number": tuple(v for v in NASTY if isinstance(v, int) and abs(v) < 2**63 and v is not True and v is not False),
    "text": tuple(v for v in NASTY if isinstance(v, str)),
    "bool": (True, False),
    "list": tuple(v for v in NASTY if isinstance(v, list)),
    "object": tuple(v for v in NASTY if isinstance(v, dict)),
}  # fmt: skip
"""Values of the right type, which get as far as validation."""
_NUMBERS = (ScalarKind.INT32, ScalarKind.INT64, ScalarKind.DOUBLE)


def fitting(type_: Type) -> tuple[Any, ...]:
    if isinstance(type_, ListOf):
        return FITTING["list"]
    if isinstance(type_, Message | MapOf):
        return FITTING["object"]
    if type_.kind in _NUMBERS:
        return FITTING["number"]
    return FITTING["bool"] if type_.kind is ScalarKind.BOOL else FITTING["text"]


Place = tuple[tuple[str, ...], Type]
"""The path of a field, and its type."""


@cache
def field_paths(message: Message) -> tuple[Place, ...]:
    """All fields, at any depth."""
    found: list[Place] = []

    def walk(type_: Type, path: tuple[str, ...], above: frozenset[Message]) -> None:
        while isinstance(type_, ListOf | MapOf):
            type_ = type_.item if isinstance(type_, ListOf) else type_.value
            path = (*path, ITEM)
            found.append((path, type_))
        if isinstance(type_, Message) and type_ not in above:
            for name, field in type_.fields.items():
                found.append(((*path, name), field.type))
                walk(field.type, (*path, name), above | {type_})

    walk(message, (), frozenset())
    return tuple(found)


def put(obj: Any, message: Message, path: tuple[str, ...], wrong: Any) -> None:
    """Set what is at a path, making what is missing on the way there. Nothing happens where something wrong is in the way."""
    type_: Type = message
    for name in path[:-1]:
        if name == ITEM:
            assert isinstance(type_, ListOf | MapOf)
            type_ = type_.item if isinstance(type_, ListOf) else type_.value
        else:
            assert isinstance(type_, Message)
            type_ = type_.fields[name].type
        obj = _member(obj, type_, name)
        if not isinstance(obj, dict | list):
            return
    if path[-1] != ITEM:
        if isinstance(obj, dict):
            obj[path[-1]] = wrong
    elif isinstance(obj, list):
        obj.append(wrong)
    else:
        obj["k"] = wrong


def pointer(path: tuple[str, ...]) -> str:
    """A path as JSON patches write it. Lists may have an item, or get one."""
    return "".join(f"/{0 if name == ITEM else name.replace('/', '~1')}" for name in path)


def _member(obj: Any, type_: Type, name: str) -> Any:
    if isinstance(obj, list):
        if name == ITEM and not obj:
            obj.append(value(type_, None, 0, "distinct"))
        return obj[0] if name == ITEM else None
    key = next(iter(obj), "k") if name == ITEM else name
    if obj.get(key) is None:
        obj[key] = value(type_, None, 0, "distinct")
    return obj[key]


WRONGS = st.one_of(
    st.sampled_from(NASTY),
    st.integers(),
    st.text(max_size=20),
    st.lists(st.sampled_from(NASTY[:60]), max_size=3),
)
Change = tuple[int, int | None, Any]
PLACES = st.integers(0, 10**6)
CHANGES = st.lists(st.tuples(PLACES, st.none() | PLACES, WRONGS), min_size=1, max_size=3)
"""Which field, and which of the values of its type it gets or else which value."""
EXTRAS = st.lists(st.tuples(st.sampled_from(UNKNOWN), st.sampled_from(NASTY)), max_size=1)
OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
WAYS = ("operations", "create", "update", "part", MERGE_PATCH, STRATEGIC, JSON_PATCH, APPLY)


@dataclass(slots=True)
class Attempt:
    """One kind, sent to a server in one wrong way after the other."""

    target: Target
    served: Served
    before: set[str] = field(init=False)
    """The names of the objects that are not ours."""

    def __post_init__(self) -> None:
        self.before = self._names()

    async def send(
        self, method: str, path: str, body: Any, media: str = JSON, query: str = ""
    ) -> int:
        # Text that is not Unicode is sent as an escape, as a client can send it.
        return await self.target.send(method, path, json.dumps(body).encode(), media, query)

    async def run(self, way: str, changes: list[Change], extras: list[tuple[str, Any]]) -> None:
        resource, message = self.served.resource, self.served.message
        paths = field_paths(message)
        good = self.served.sample()
        bad: Any = self.served.sample()
        name = good["metadata"]["name"]
        for number, fit, wrong in changes:
            path, type_ = paths[number % len(paths)]
            values = fitting(type_)
            put(bad, message, path, deepcopy(wrong if fit is None else values[fit % len(values)]))
        bad.update(deepcopy(extras))
        if way == "operations":
            bad = [
                {
                    "op": OPERATIONS[number % len(OPERATIONS)],
                    "path": pointer(paths[number % len(paths)][0]),
                    "from": pointer(paths[(fit or 0) % len(paths)][0]),
                    "value": wrong,
                }
                for number, fit, wrong in changes
            ]
        await self._write(way, good, bad, f"{self.served.path}/{name}")
        if "update" in resource.verbs:
            await self._look_at_all()

    async def _write(self, way: str, good: Any, bad: Any, path: str) -> None:
        """Send something wrong, in one of the ways to send something."""
        resource = self.served.resource
        if way == "create" or "update" not in resource.verbs:
            await self.send("POST", self.served.path, bad)
            return
        if way != APPLY:
            assert await self.send("POST", self.served.path, good) == 201, good
        if way == "update":
            await self.send("PUT", path, bad)
        elif way == "part":
            for part in resource.subresources:
                if "update" in part.verbs and part.kind is None:
                    await self.send("PUT", f"{path}/{part.name}", bad)
                    await self.send("PATCH", f"{path}/{part.name}", bad, MERGE_PATCH)
        elif way == "operations":
            await self.send("PATCH", path, bad, JSON_PATCH)
        elif way == JSON_PATCH:
            operations = [{"op": "add", "path": f"/{name}", "value": bad[name]} for name in bad]
            await self.send("PATCH", path, operations, way)
        else:
            query = "fieldManager=m&force=true" if way == APPLY else ""
            await self.send("PATCH", path, bad, way, query)

    async def _look_at_all(self) -> None:
        """Whatever was accepted can be used like any other object; then it is removed."""
        answer = await self.target.exchange("GET", self.served.path)
        assert answer.status == 200
        table = await self.target.exchange("GET", self.served.path, headers={"accept": TABLE})
        assert json.loads(table.body)["kind"] == "Table"
        for item in json.loads(answer.body)["items"]:
            if item["metadata"]["name"] not in self.before:
                await self._look_at(item)
        await self._clear()

    def _names(self) -> set[str]:
        stored = self.target.server.core.store.list(self.served.resource.storage_name)
        return {one.key.name for one in stored}

    async def _clear(self) -> None:
        """Remove what is left: a namespace, for example, only ends."""
        store = self.target.server.core.store
        for one in store.list(self.served.resource.storage_name):
            if one.key.name not in self.before:
                await store.write(
                    [Delete(one.key, lambda _, one=one: one.data, expected=one.revision)]
                )

    async def _look_at(self, item: Any) -> None:
        path = f"{self.served.path}/{item['metadata']['name']}"
        answer = await self.target.exchange("GET", path)
        assert answer.status == 200, path
        stored = json.loads(answer.body)
        version = stored["metadata"]["resourceVersion"]
        for method, media, body in (("PUT", JSON, stored), ("PATCH", MERGE_PATCH, {})):
            again = await self.target.exchange(method, path, json.dumps(body).encode(), media)
            if again.status == 422 and any(name in again.body for name in UNCHECKED):
                continue
            assert again.status == 200, (method, stored, again.body)
            after = json.loads(again.body)
            if (
                self.served.resource.kind != "CustomResourceDefinition"
            ):  # It gets its status meanwhile.
                assert after["metadata"]["resourceVersion"] == version, stored
        if stored["metadata"].get("finalizers"):
            freed = {"metadata": {"finalizers": None}}
            assert await self.send("PATCH", path, freed, MERGE_PATCH) == 200, stored
        assert await self.target.send("DELETE", path, query="gracePeriodSeconds=0") in (200, 202)


def fuzz(attempt: Attempt, runner: asyncio.Runner, examples: int = EXAMPLES) -> None:
    @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(WAYS), CHANGES, EXTRAS)
    def run(way: str, changes: list[Change], extras: list[tuple[str, Any]]) -> None:
        runner.run(attempt.run(way, changes, extras))

    run()


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_documents_of_every_kind(group: str) -> None:
    """Whatever an object or a patch contains, it is refused with a reason, or it is an object like any other."""
    with asyncio.Runner() as runner:
        context = hostile_target()
        target = runner.run(context.__aenter__())
        for served in GROUPS[group]:
            fuzz(Attempt(target, served), runner)
        runner.run(context.__aexit__(None, None, None))


def test_documents_of_a_custom_kind() -> None:
    """So are objects of a kind that a user defines, with everything that its schema can say."""
    with asyncio.Runner() as runner:
        context = hostile_target()
        target = runner.run(context.__aenter__())
        served = runner.run(define(target))
        fuzz(Attempt(target, served), runner, examples=8 * EXAMPLES)
        runner.run(context.__aexit__(None, None, None))


async def define(target: Target) -> Served:
    """Have a server serve widgets."""
    assert await target.send("POST", DEFINITIONS, widgets.definition()) == 201
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = target.server.core.resources.find(widgets.GROUP, "v1", "widgets")
            if found is not None:
                return Served(found, "v1")
            await asyncio.sleep(0.01)


async def test_every_kind_begins_as_an_object_that_is_accepted() -> None:
    """What is made wrong is right to begin with."""
    async with hostile_target() as target:
        for served in all_served():
            status = await target.send("POST", served.path, served.sample(), query="dryRun=All")
            assert status == (404 if served.resource.kind == "Binding" else 201), str(served)
