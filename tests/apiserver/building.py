"""A server over a store in memory, with time and ids that tests decide, and requests without sockets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from drayman.apiserver.lifecycle.admission import NamespaceLifecycle
from drayman.apiserver.protocol.exchange import Answer, LongResponse, Query, Request, Response
from drayman.apiserver.served.resources import ApiResource, Subresource
from drayman.apiserver.served.strategy import Context, Object, StatusStrategy, Strategy, restore
from drayman.apiserver.serving.server import ApiServer
from drayman.apiserver.verbs.core import Core
from drayman.apiserver.verbs.deleting_namespaces import delete_namespace
from drayman.cluster.embedded.store import Store

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass(slots=True)
class FixedClock:
    moment: datetime = START

    def now(self) -> datetime:
        return self.moment

    def pass_seconds(self, seconds: int) -> None:
        self.moment += timedelta(seconds=seconds)


@dataclass(slots=True)
class CountingIds:
    count: int = 0

    def uid(self) -> str:
        self.count += 1
        return f"00000000-0000-4000-8000-{self.count:012d}"

    def suffix(self) -> str:
        self.count += 1
        return f"x{self.count:04d}"


class PlainStrategy(Strategy):
    """Keeps the status for the status endpoint, as every kind with one does."""

    def prepare_for_create(self, obj: Object, context: Context) -> None:
        obj.pop("status", None)

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "status")


class GracefulStrategy(PlainStrategy):
    """Objects that stay for thirty seconds unless asked otherwise."""

    graceful = True

    def grace_seconds(self, obj: Object, asked: int | None, context: Context) -> int:
        return 30 if asked is None else asked


class NamespaceStrategy(Strategy):
    def prepare_for_create(self, obj: Object, context: Context) -> None:
        obj["spec"], obj["status"] = {"finalizers": ["kubernetes"]}, {"phase": "Active"}

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        for name in ("spec", "status"):
            restore(new, old, name)


class FinalizeStrategy(Strategy):
    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "status")


def resources() -> list[ApiResource]:
    """A few kinds with the simplest rules there are."""
    status = Subresource(name="status", strategy=StatusStrategy())
    finalize = Subresource(name="finalize", verbs=("update",), strategy=FinalizeStrategy())
    verbs = ("create", "delete", "get", "list", "patch", "update", "watch")
    return [
        ApiResource(
            kind="Namespace",
            namespaced=False,
            short_names=("ns",),
            verbs=verbs,
            strategy=NamespaceStrategy(),
            subresources=(finalize, status),
            delete_handler=delete_namespace,
        ),
        ApiResource(kind="ConfigMap"),
        ApiResource(
            kind="Pod",
            categories=("all",),
            has_generation=True,
            answers_with_deleted_object=True,
            strategy=GracefulStrategy(),
            subresources=(status,),
            selectable={"spec.nodeName": lambda obj: obj["spec"].get("nodeName", "")},
        ),
        ApiResource(
            group="coordination.k8s.io",
            kind="Lease",
            creates_on_update=True,
            deprecations={"v1": "leases are going out of fashion"},
        ),
    ]


@dataclass(slots=True)
class Harness:
    """A server and a way to talk to it."""

    store: Store = field(default_factory=lambda: Store.open(None))
    clock: FixedClock = field(default_factory=FixedClock)
    ids: CountingIds = field(default_factory=CountingIds)
    server: ApiServer = field(init=False)

    def __post_init__(self) -> None:
        core = Core(self.store, clock=self.clock, ids=self.ids)
        for resource in resources():
            core.resources.add(resource)
        core.admission.plugins.append(NamespaceLifecycle())
        self.server = ApiServer(core)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> Response:
        answer = await self.answer(method, path, body, headers, **query)
        if isinstance(answer, LongResponse):
            return answer.whole()
        assert isinstance(answer, Response)
        return answer

    async def answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> Answer:
        data = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        given = {"user-agent": "tests/1", **(headers or {})}
        return await self.server.handle(
            Request(method, path, Query(tuple(query.items())), given, data)
        )

    async def json(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """The decoded answer of a request that must succeed."""
        response = await self.send(method, path, body, **query)
        assert response.status < 300, response.body
        return json.loads(response.body)

    async def namespace(self, name: str = "ns") -> str:
        await self.json("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return f"/api/v1/namespaces/{name}"


def config(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def decoded(response: Response) -> Any:
    return json.loads(response.body)
