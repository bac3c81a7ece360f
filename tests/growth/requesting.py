"""What clients do with one object: every kind of write, and every form of reading it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from drayman.api.schema import decode_strict
from drayman.apiserver.holdings.exclusive import ExclusiveDevices
from drayman.apiserver.holdings.in_use import ClaimsInUse
from drayman.apiserver.instance.access import secure
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.protocol.exchange import LongResponse, Query, Request, Response
from drayman.apiserver.security.owner_references import OwnerPermissions
from drayman.apiserver.security.tokens import TokenIssuer, new_signing_key
from drayman.apiserver.served.conversion import to_hub
from drayman.apiserver.served.encoding import stored_form
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.shaping import message_of, normalised
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.server import ApiServer
from drayman.cluster.embedded.model import Delete, Key, Put
from drayman.cluster.embedded.store import Store
from growth.documents import ITEM, Object, Place

TOKEN: Final = "admin"
JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
_META: Final = "g=meta.k8s.io;v=v1"
FORMS: Final = (
    JSON,
    "application/yaml",
    f"application/json;as=Table;{_META}",
    f"application/json;as=PartialObjectMetadata;{_META}",
)
Step = tuple[str, str, str, Any, dict[str, str]]
"""What it is called, method, path, body, and the query; the media type is in the query as `type`."""


@dataclass(slots=True)
class Served:
    """A server in process, with everything that judges requests."""

    server: ApiServer
    store: Store

    async def send(
        self,
        method: str,
        path: str,
        body: Any = b"",
        media: str = JSON,
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> Response:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        given = {
            "content-type": media,
            "accept": accept,
            "user-agent": "growth/1",
            "authorization": f"Bearer {TOKEN}",
            **(headers or {}),
        }
        answer = await self.server.handle(
            Request(method, path, Query(tuple(query.items())), given, data)
        )
        if isinstance(answer, LongResponse):
            answer = answer.whole()
        assert isinstance(answer, Response), path
        return answer

    async def keep(self, resource: ApiResource, version: str, obj: Object) -> None:
        """Store an object as it is, whatever rules it breaks: as if it had been written before there were these rules."""
        body, _ = decode_strict(message_of(resource.kind_in(version)), msgspec.json.encode(obj))
        metadata = {**body["metadata"], "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
        hub = to_hub(resource, {**body, "metadata": metadata}, version)
        hub = normalised(resource, hub)
        key = self.key(resource, obj)
        await self.store.write([Put(key, stored_form(hub, resource.hub_kind), expected=0)])

    async def drop(self, resource: ApiResource, obj: Object) -> None:
        """Remove an object from the store, if it is there."""
        key = self.key(resource, obj)
        if (stored := self.store.latest(key)) is not None:
            await self.store.write([Delete(key, lambda _: stored.data, expected=stored.revision)])

    def key(self, resource: ApiResource, obj: Object) -> Key:
        metadata = obj["metadata"]
        return Key(resource.storage_name, metadata.get("namespace", ""), metadata["name"])


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    store = Store.open(None)
    server = make_server(store)
    core = server.core
    secure(server, TOKEN, TokenIssuer(new_signing_key()))
    core.admission.plugins.append(OwnerPermissions(core.authorizer, core.resources))
    store.constrain(ExclusiveDevices(store))
    core.admission.plugins.append(ClaimsInUse())
    try:
        await create_first_objects(core)
        target = Served(server, store)
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await target.send("POST", accounts, {"metadata": {"name": "default"}})
        yield target
    finally:
        store.close()


def collection(resource: ApiResource, version: str) -> str:
    """The path of the objects of a kind."""
    root = f"/apis/{resource.group}" if resource.group else "/api"
    where = "/namespaces/default" if resource.namespaced else ""
    return f"{root}/{version}{where}/{resource.plural}"


def writes(group: Sequence[Place], obj: Object) -> Iterator[Step]:
    """Every way to write an object whose lists or maps at some places are long, once it is there."""
    place = group[0]
    path = f"{collection(place.resource, place.version)}/{obj['metadata']['name']}"
    turned, half = _changed(obj, group, _turned), _changed(obj, group, _half)
    yield "update in another order", "PUT", path, turned, {}
    yield "update of half", "PUT", path, half, {}
    for part in place.resource.subresources:
        if part.kind is None and "update" in part.verbs:
            yield f"update of {part.name}", "PUT", f"{path}/{part.name}", turned, {}
    yield "merge patch", "PATCH", path, _alone(turned, group), {"type": MERGE}
    if not place.resource.custom:
        yield "strategic merge patch", "PATCH", path, _alone(turned, group), {"type": STRATEGIC}
    if len(group) == 1:
        whole = at(obj, place.path)
        yield from _directed(place, path, turned, whole)
        yield "JSON patch", "PATCH", path, list(_operations(place, whole)), {"type": JSON_PATCH}
    yield from applies(path, obj, turned, half)


def applies(path: str, obj: Object, turned: Object, half: Object) -> Iterator[Step]:
    """Applying by two managers, of whom one changes the order and one gives up half."""
    for name, value, manager in (
        ("apply", obj, "a"),
        ("apply again", obj, "a"),
        ("apply in another order", turned, "a"),
        ("apply as another manager", turned, "b"),
        ("apply of half", half, "a"),
    ):
        query = {"type": APPLY, "fieldManager": manager, "force": "true"}
        yield name, "PATCH", path, value, query
    yield "apply with conflicts", "PATCH", path, obj, {"type": APPLY, "fieldManager": "c"}


def _directed(place: Place, path: str, turned: Object, whole: Any) -> Iterator[Step]:
    """Strategic merge patches with an order, and with deletions."""
    key = place.field.merge_key
    if not isinstance(whole, list) or "merge" not in place.field.merge_strategies:
        return
    name = place.path[-1]
    query = {"type": STRATEGIC}
    ordered = _alone(turned, [place])
    order = [{key: item.get(key)} for item in whole] if key else whole
    at(ordered, place.path[:-1])[f"$setElementOrder/{name}"] = order
    yield "strategic merge patch with an order", "PATCH", path, ordered, query
    gone = _copy(_alone(turned, [place]))
    holder = at(gone, place.path[:-1])
    if key:
        holder[name] = [{"$patch": "delete", key: item.get(key)} for item in whole]
    else:
        del holder[name]
        holder[f"$deleteFromPrimitiveList/{name}"] = whole
    yield "strategic merge patch that deletes", "PATCH", path, gone, query


def _operations(place: Place, whole: Any) -> Iterator[Object]:
    """As many operations as there are items."""
    pointer = "".join(f"/{_pointed(name)}" for name in place.path)
    names = list(whole) if isinstance(whole, dict) else range(len(whole))
    yield {"op": "test", "path": pointer, "value": whole}
    for name in names:
        yield {"op": "copy", "from": f"{pointer}/{name}", "path": "/metadata/annotations"}
        yield {"op": "replace", "path": f"{pointer}/{name}", "value": whole[name]}
        yield {"op": "test", "path": f"{pointer}/{name}", "value": whole[name]}
        if isinstance(whole, list):
            yield {"op": "move", "from": f"{pointer}/{name}", "path": f"{pointer}/-"}
    for name in reversed(names):
        yield {"op": "remove", "path": f"{pointer}/{name}"}
        yield {"op": "add", "path": f"{pointer}/{name}", "value": whole[name]}
    yield {"op": "remove", "path": "/metadata/annotations"}


def _pointed(name: str) -> str:
    return "0" if name == ITEM else name.replace("/", "~1")


def at(obj: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if name == ITEM:
            obj = obj[0] if isinstance(obj, list) else next(iter(obj.values()))
        else:
            obj = obj[name]
    return obj


def _copy(obj: Object) -> Object:
    copied: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return copied


def _changed(obj: Object, group: Sequence[Place], change: Callable[[Any], Any]) -> Object:
    """A copy of an object with the lists and maps at some places changed."""
    copied = _copy(obj)
    for place in sorted(group, key=lambda one: -len(one.path)):
        holder, name = at(copied, place.path[:-1]), place.path[-1]
        holder[name] = change(holder[name])
    return copied


def _alone(obj: Object, group: Sequence[Place]) -> Object:
    """The parts of an object that lead to some places."""
    return {name: obj[name] for name in {place.path[0]: None for place in group}}


def _turned(whole: Any) -> Any:
    if isinstance(whole, dict):
        return dict(reversed(whole.items()))
    return whole[::-1]


def _half(whole: Any) -> Any:
    if isinstance(whole, dict):
        return {name: whole[name] for name in list(whole)[: len(whole) // 2]}
    return whole[: len(whole) // 2]
