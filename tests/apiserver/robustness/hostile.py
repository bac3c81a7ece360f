"""A whole server in process, and what must hold after every request whatever it was."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import yaml

from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.protocol.exchange import LongResponse, Query, Request, Response
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.server import ApiServer
from drayman.cluster.embedded.store import Store

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIG_MAP = f"{CONFIG_MAPS}/a"
POD = f"{PODS}/p"

# What the real server answers with 500, or with 504 to a version from the future: recorded exchanges show each of these.
AS_THE_REAL_ONE = tuple(
    (code, re.compile(pattern, re.DOTALL))
    for code, pattern in (
        (500, r"resourceVersion should not be set on objects to be created"),
        (500, r'strconv\.ParseUint: parsing ".*": invalid syntax'),
        (
            500,
            r'resourceVersion: Invalid value: ".*": strconv\.ParseUint: parsing ".*": invalid syntax',
        ),
        (500, r"failed to create typed patch object \([^;]*; [^)]*\): .*"),
        (500, r"map: .* does not contain declared merge key: \w+"),
        (500, r"unknown patch type: .* in map: map\[.*\]"),
        (500, r"\[?target\.(kind: Unsupported value: .*|name: Required value)\]?"),
        (500, r"This pod has more than one PodDisruptionBudget, .*"),
        (504, r"Timeout: Too large resource version: \d+, current: \d+"),
    )
)


def is_as_the_real_one(code: int, message: str) -> bool:
    """Whether the real server answers with this 5xx too."""
    return any(c == code and pattern.fullmatch(message) for c, pattern in AS_THE_REAL_ONE)


class Tracebacks(logging.Handler):
    """Keeps every record that has one."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


@dataclass(slots=True)
class Target:
    """A server that is sent requests no client should send. Each answer is checked."""

    server: ApiServer
    tracebacks: Tracebacks = field(default_factory=Tracebacks)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = b"",
        media: str = JSON,
        query: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """The status of the answer, after the rules for answers have been checked."""
        return (await self.exchange(method, path, body, media, query, headers)).status

    async def exchange(
        self,
        method: str,
        path: str,
        body: Any = b"",
        media: str = JSON,
        query: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """The answer, after the rules for answers have been checked. Of a stream, only that it began."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        pairs = tuple(parse_qsl(query, keep_blank_values=True, errors="replace"))
        given = {"content-type": media, "user-agent": "hostile/1", **(headers or {})}
        request = Request(method, path, Query(pairs), given, data, raw_path=path)
        answer = await self.server.handle(request)
        about = f"{method} {path[:80]} {media[:60]} {query[:80]} {data[:120]!r}"
        assert not self.tracebacks.found, f"{about}: {self.tracebacks.found}"
        if isinstance(answer, LongResponse):
            answer = answer.whole()
        if not isinstance(answer, Response):
            await answer.chunks.aclose()  # type: ignore[attr-defined]
            return Response(answer.status)
        check_answer(answer, about)
        return answer

    async def still_works(self) -> None:
        """The server answers an ordinary request."""
        assert await self.send("GET", CONFIG_MAP) == 200
        assert await self.send("PUT", CONFIG_MAP, config_map("a", key="value")) == 200

    async def stored_is_valid(self) -> None:
        """Every stored object can be read, and written back as it is."""
        for resource in tuple(self.server.core.resources):
            is_own = resource.group == resource.hub_kind.group  # Events are served by two groups.
            if "update" not in resource.verbs or not is_own:
                continue
            for stored in self.server.core.store.list(resource.storage_name):
                await self._write_back(resource, stored.value)

    async def _write_back(self, resource: Any, value: Any) -> None:
        metadata = value["metadata"]
        group = f"apis/{resource.group}" if resource.group else "api"
        place = f"namespaces/{metadata['namespace']}/" if resource.namespaced else ""
        version = resource.hub_kind.version
        path = f"/{group}/{version}/{place}{resource.plural}/{metadata['name']}"
        assert await self.send("GET", path) == 200
        assert await self.send("PUT", path, value, query="dryRun=All") == 200, value


def check_answer(answer: Response, about: str) -> None:
    """No 5xx but the ones the real server gives, and every error is a Status."""
    if answer.status < 400:
        return
    if answer.content_type.startswith("text/plain"):
        assert answer.status == 404, f"{about}: {answer.body[:200]!r}"
        return
    if not answer.body:
        assert answer.status in (404, 405, 406), about
        return
    is_yaml = answer.content_type == YAML
    status = yaml.safe_load(answer.body) if is_yaml else msgspec.json.decode(answer.body)
    assert (status["kind"], status["code"]) == ("Status", answer.status), about
    if answer.status >= 500:
        message = status["message"]
        assert is_as_the_real_one(answer.status, message), f"{about}: {answer.status} {message}"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@asynccontextmanager
async def hostile_target() -> AsyncIterator[Target]:
    """A server with a config map `a` and a pod `p`. On the way out it must still work and hold nothing invalid."""
    store = Store.open(None)
    target = Target(make_server(store))
    logging.getLogger("drayman").addHandler(target.tracebacks)
    try:
        await create_first_objects(target.server.core)
        assert await target.send("POST", CONFIG_MAPS, config_map("a", key="value")) == 201
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await target.send("POST", accounts, {"metadata": {"name": "default"}})
        assert await target.send("POST", PODS, pod("p")) == 201
        yield target
        await target.still_works()
        await target.stored_is_valid()
    finally:
        logging.getLogger("drayman").removeHandler(target.tracebacks)
        store.close()


def attack(requests: Any) -> None:
    """Send requests, each the arguments of `send`, to a server of their own."""

    async def run() -> None:
        async with hostile_target() as target:
            for request in requests:
                await target.send(*request)

    asyncio.run(run())
