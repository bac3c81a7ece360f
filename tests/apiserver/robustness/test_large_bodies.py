"""Bodies of the largest legal size, made of as many values as fit."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from robustness.hostile import (
    APPLY,
    CONFIG_MAP,
    CONFIG_MAPS,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    POD,
    PODS,
    STRATEGIC,
    YAML,
    attack,
    hostile_target,
)
from robustness.raw import PATIENCE_S, get, listening, until

from drayman.api.syntax.values import MAX_VALUES
from drayman.apiserver.kinds.pods.defaults import MOST_CLAIMS, MOST_CONTAINERS, MOST_TERMS
from drayman.apiserver.protocol.limits import BODY_LIMIT

ROOM = BODY_LIMIT - 1_000
SCALARS = b"1," * (ROOM // 2) + b"1"
TEXTS = b'"",' * (ROOM // 3) + b'""'
OBJECTS = b"{}," * (ROOM // 3) + b"{}"
LONG_LISTS = {"numbers": SCALARS, "texts": TEXTS, "objects": OBJECTS}
HALF = MAX_VALUES // 2 - 1_000


def post(path: str, media: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\nContent-Length: {len(body)}"
    )
    return head.encode() + b"\r\n\r\n" + body


async def test_others_are_answered_while_a_large_body_is_read() -> None:
    """A get that begins after the reading of the body has begun ends before it ends."""
    async with listening() as server:
        reader, writer = await server.connect()
        writer.write(post(CONFIG_MAPS, YAML, b"data:\n" + b"- 1\n" * (ROOM // 4)))
        first_line = asyncio.create_task(reader.readline())
        limits = server.target.server.limits
        await until(lambda: limits.requests.taken == 1, "the reading of the body")
        assert b" 200 " in await server.ask(get(CONFIG_MAP))
        assert not first_line.done(), "the large body was answered first"
        assert b" 400 " in await asyncio.wait_for(first_line, PATIENCE_S)


@pytest.mark.parametrize("name", LONG_LISTS)
def test_lists_of_very_many_values_are_refused(name: str) -> None:
    """Whatever they are sent as and wherever they stand."""
    values = b"[" + LONG_LISTS[name] + b"]"
    metadata = b'{"metadata":{"name":"n","finalizers":' + values + b"}}"
    unknown = b'{"metadata":{"name":"n"},"zz":' + values + b"}"
    requests = [("POST", CONFIG_MAPS, metadata, media) for media in (JSON, YAML)]
    requests += [("PATCH", CONFIG_MAP, body, m) for body in (metadata, unknown) for m in PATCHES]
    attack((*r, "dryRun=All&fieldManager=m") for r in requests)


PATCHES = (MERGE_PATCH, STRATEGIC, JSON_PATCH, APPLY)
TWICE = {str(number): "1" for number in range(HALF)}
MANY_BUT_LEGAL = {
    "keys that are there twice": (
        "POST",
        CONFIG_MAPS,
        b"metadata: {name: n}\ndata:\n" + b"".join(b' "%d": "1"\n' % n for n in range(HALF)) * 2,
        YAML,
    ),
    "a merge of very many mappings": (
        "POST",
        CONFIG_MAPS,
        b"metadata: {name: n}\nzz: &z {}\ndata:\n <<: ["
        + b",".join([b"*z"] * HALF)
        + b"]\n"
        + b"".join(b' "%d": "1"\n' % n for n in range(HALF)),
        YAML,
    ),
    "finalizers to merge": (
        "PATCH",
        CONFIG_MAP,
        json.dumps({"metadata": {"finalizers": list(TWICE)}}).encode(),
        STRATEGIC,
    ),
    "containers to merge": (
        "PATCH",
        POD,
        json.dumps({"spec": {"containers": [{"name": n} for n in TWICE]}}).encode(),
        STRATEGIC,
    ),
    "containers in order": (
        "PATCH",
        POD,
        json.dumps(
            {"spec": {"$setElementOrder/containers": [{"name": n} for n in [*TWICE, "c"]]}}
        ).encode(),
        STRATEGIC,
    ),
    "containers to delete": (
        "PATCH",
        POD,
        json.dumps(
            {"spec": {"containers": [{"name": n, "$patch": "delete"} for n in TWICE]}}
        ).encode(),
        STRATEGIC,
    ),
    "keys to retain": (
        "PATCH",
        CONFIG_MAP,
        json.dumps({"data": {"$retainKeys": list(TWICE), **TWICE}}).encode(),
        STRATEGIC,
    ),
}


@pytest.mark.parametrize("name", MANY_BUT_LEGAL)
def test_work_grows_no_faster_than_the_body(name: str) -> None:
    """Each of these would take hours if every value were compared with every other."""
    attack([(*MANY_BUT_LEGAL[name], "dryRun=All&fieldManager=m")])


def test_a_text_of_commas_is_one_value() -> None:
    """A table in a config map is not taken for a list."""
    body = {"metadata": {"name": "table"}, "data": {"table.csv": "1,2\\," * 170_000}}
    requests = [("POST", CONFIG_MAPS, body, JSON, "")]

    async def run() -> list[int]:
        async with listening() as server:
            return [await server.target.send(*request) for request in requests]

    assert asyncio.run(run()) == [201]


DEEP_WHILE_CEL_RUNS = """
import asyncio, sys
import msgspec
from drayman.apiserver.requests.large_bodies import read_beside

sys.setrecursionlimit(25_000)
for opening in (b"[", b'{"a":'):
    body = opening * 500_000
    try:
        asyncio.run(read_beside(body, lambda: msgspec.json.decode(body)))
    except RecursionError:
        print("too deep")
"""


def test_deep_bodies_do_not_exhaust_the_stack_of_the_thread() -> None:
    """Not even while the interpreter allows for the depth that CEL needs."""
    done = subprocess.run(
        [sys.executable, "-c", DEEP_WHILE_CEL_RUNS],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "too deep\n" * 2), done.stderr


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("containers", MOST_CONTAINERS),
        ("initContainers", MOST_CONTAINERS),
        ("ephemeralContainers", MOST_CONTAINERS),
        ("resourceClaims", MOST_CLAIMS),
        ("topologySpreadConstraints", MOST_TERMS),
        ("affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution", MOST_TERMS),
        ("affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution", MOST_TERMS),
    ],
)
async def test_pods_of_very_many_containers_or_claims_are_refused(name: str, most: int) -> None:
    """Before any of them is filled in; in templates and in patches too."""
    spec = {"containers": [{"name": "c", "image": "i"}]}
    first, *inner = name.split(".")
    items: Any = [{}] * (most + 1)
    for part in reversed(inner):
        items = {part: items}
    many = {"spec": {**spec, first: items}}
    pod = {"metadata": {"name": "n"}, **many}
    deployment = {"metadata": {"name": "n"}, "spec": {"template": many}}
    requests = (
        ("POST", PODS, pod, JSON),
        ("POST", "/apis/apps/v1/namespaces/default/deployments", deployment, JSON),
        ("PATCH", POD, many, MERGE_PATCH),
    )
    async with hostile_target() as target:
        for method, path, body, media in requests:
            assert await target.send(method, path, body, media) == 400, path
