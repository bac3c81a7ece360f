"""A server in memory, and a definition to change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from drayman.apiserver.protocol.exchange import Query, Request, Response
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.server import ApiServer
from drayman.cluster.embedded.store import Store

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "color": {"type": "string", "default": "red"},
                "replicas": {"type": "integer"},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any
    warnings: tuple[str, ...]

    @property
    def causes(self) -> set[tuple[str, str]]:
        found = self.body["details"].get("causes", [])
        return {(cause["field"], cause["reason"]) for cause in found}


class Api:
    """Sends requests to a server without sockets."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        content: str = "application/json",
        **query: str,
    ) -> Answer:
        data = b"" if body is None else msgspec.json.encode(body)
        headers = {"content-type": content} if body is not None else {}
        response = await self.server.handle(
            Request(method, path, Query(tuple(query.items())), headers, data)
        )
        assert isinstance(response, Response)
        is_json = response.content_type.startswith("application/json")
        value = msgspec.json.decode(response.body) if is_json else response.body
        return Answer(response.status, value, response.warnings)


Scenario = Callable[[Api], Awaitable[None]]


@pytest.fixture
def play() -> Callable[[Scenario], None]:
    """Runs a scenario against a new server that has the namespace `default`."""

    def run(scenario: Scenario) -> None:
        async def main() -> None:
            with Store.open(None) as store:
                api = Api(make_server(store))
                namespace = {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": "default"},
                }
                await api("POST", "/api/v1/namespaces", namespace)
                await scenario(api)

        asyncio.run(main())

    return run


@pytest.fixture
def definition() -> dict[str, Any]:
    """The definition of widgets, to be changed at will."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": deepcopy(SCHEMA)},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                }
            ],
        },
    }


@pytest.fixture
def widget() -> Callable[..., dict[str, Any]]:
    def make(name: str = "w", version: str = "v1", **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": f"example.com/{version}",
            "kind": "Widget",
            "metadata": {"name": name},
            "spec": spec,
        }

    return make


@pytest.fixture
def paths() -> tuple[str, str]:
    """Where definitions and widgets are."""
    return DEFINITIONS, WIDGETS
