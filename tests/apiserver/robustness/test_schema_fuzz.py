"""Requests made up from the OpenAPI documents that the server serves: whatever they say may be sent, and what is just beside it.

Paths name things that are there, and half of the bodies leave out what they are, so that more of them get as far as validation.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from robustness.hostile import CONFIG_MAPS, IS_LONG, check_answer, config_map, is_as_the_real_one
from robustness.raw import PATIENCE_S, Listening, listening
from schemathesis import Case, GenerationMode

from drayman.apiserver.protocol.exchange import Query, Request, Response

EXAMPLES = 60 if IS_LONG else 3
"""Requests for each operation, as many again that are wrong in some way."""
STRIDE = 1 if IS_LONG else 7
"""Of some five hundred operations one in so many is tried. No multiple of the number of methods: all of these have their turn."""
GROUPS = (
    "api/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/apps/v1",
    "apis/autoscaling/v1",
    "apis/autoscaling/v2",
    "apis/batch/v1",
    "apis/certificates.k8s.io/v1",
    "apis/coordination.k8s.io/v1",
    "apis/discovery.k8s.io/v1",
    "apis/events.k8s.io/v1",
    "apis/networking.k8s.io/v1",
    "apis/node.k8s.io/v1",
    "apis/policy/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/resource.k8s.io/v1",
    "apis/resource.k8s.io/v1alpha3",
    "apis/resource.k8s.io/v1beta1",
    "apis/resource.k8s.io/v1beta2",
    "apis/scheduling.k8s.io/v1",
    "apis/scheduling.k8s.io/v1alpha2",
    "apis/storage.k8s.io/v1",
)
PLACES = {"namespace": ["default"], "name": ["n", "p"]}
NO_AGENT = "no agent runs on node"
"""Logs are answered with 503 as long as no agent runs on the node of a pod."""


async def fetch(server: Listening, path: str) -> Any:
    """A document as the server serves it."""
    path, _, query = path.partition("?")
    headers = {"accept": "application/json"}
    pairs = tuple(tuple(pair.split("=", 1)) for pair in query.split("&") if pair)
    answer = await server.target.server.handle(Request("GET", path, Query(pairs), headers))  # type: ignore[arg-type]
    assert isinstance(answer, Response)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


def aimed(document: dict[str, Any]) -> dict[str, Any]:
    """A document whose paths name what is there. It has no watches, which would not end, and JSON where any type may be sent."""
    for path in document["paths"].values():
        operations = [value for value in path.values() if isinstance(value, dict)]
        for owner in (path, *operations):
            found = [p for p in owner.get("parameters", []) if p["name"] not in ("watch", "follow")]
            owner["parameters"] = [
                {**p, "schema": {"type": "string", "enum": PLACES[p["name"]]}}
                if p["in"] == "path" and p["name"] in PLACES
                else p
                for p in found
            ]
        for operation in operations:
            content = operation.get("requestBody", {}).get("content", {})
            if "*/*" in content:
                content["application/json"] = content.pop("*/*")
    return document


def anonymous(body: Any, name: str) -> Any:
    """A body that does not say what it is, of a name that can be."""
    if not isinstance(body, dict):
        return body
    rest = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
    return {**rest, "metadata": {"name": name}}


def send(case: Case, session: requests.Session, url: str) -> None:
    """Send a request and check its answer."""
    answer = case.call(base_url=url, session=session, timeout=PATIENCE_S)
    about = f"{case.method} {case.formatted_path} {case.query} {case.media_type} {case.body!r:.400}"
    media = answer.headers.get("content-type", [""])[0]
    if answer.status_code == 503 and NO_AGENT in answer.content.decode():
        return
    check_answer(Response(answer.status_code, answer.content or b"", media), about)


def fuzz(document: dict[str, Any], url: str) -> None:
    schema = schemathesis.openapi.from_dict(document)
    with requests.Session() as session:
        for found in list(schema.get_all_operations())[::STRIDE]:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                fuzz_operation(found.ok(), mode, session, url)


def fuzz_operation(
    operation: Any, mode: GenerationMode, session: requests.Session, url: str
) -> None:
    names = st.sampled_from(PLACES["name"])

    @settings(max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(mode), st.booleans(), names)
    def run(case: Case, is_anonymous: bool, name: str) -> None:
        if is_anonymous:
            case.body = anonymous(case.body, name)
        send(case, session, url)

    try:
        run()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, operation.label  # Nothing about it can be wrong.


@pytest.mark.parametrize("group", GROUPS)
def test_whatever_the_documents_allow_is_answered(group: str) -> None:
    """No 5xx that the real server does not give, no traceback, and whatever is stored then is valid."""

    async def attack() -> None:
        async with listening() as server:
            index = await fetch(server, "/openapi/v3")
            document = await fetch(server, index["paths"][group]["serverRelativeURL"])
            await asyncio.to_thread(fuzz, aimed(document), server.running.url)
            await server.target.send("POST", CONFIG_MAPS, config_map("a"))

    asyncio.run(attack())


async def test_every_document_is_tried() -> None:
    """The list above is what the server serves."""
    async with listening() as server:
        assert sorted((await fetch(server, "/openapi/v3"))["paths"]) == sorted(GROUPS)


def test_an_error_of_the_server_is_noticed() -> None:
    """A 500 fails the test, unless it is one of those that the real server gives."""
    status = {"kind": "Status", "code": 500, "message": "boom"}
    with pytest.raises(AssertionError, match="boom"):
        check_answer(Response(500, json.dumps(status).encode()), "a request")
    assert not is_as_the_real_one(500, "boom")
