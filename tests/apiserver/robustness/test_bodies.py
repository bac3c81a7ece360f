"""Bodies that are broken, too deep, too wide or of another kind than they say."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robustness.hostile import (
    APPLY,
    CLAIMS,
    CONFIG_MAP,
    CONFIG_MAPS,
    DEFINITIONS,
    IS_LONG,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    POD,
    PODS,
    PROTOBUF,
    STRATEGIC,
    YAML,
    attack,
    hostile_target,
)

NUMBERS = (
    "1e400",
    "-1e400",
    "1e308",
    "9" * 23,
    "9" * 5000,
    "-0",
    "1.5",
    "1e-400",
    "NaN",
    "Infinity",
)
TEMPLATES = (
    '{"metadata":{"name":"n","generation":%s}}',
    '{"metadata":{"name":"n"},"data":{"a":%s}}',
    '{"metadata":{"name":"n"},"spec":{"priority":%s}}',
)
DEPTHS = (100, 190, 208, 215, 219, 240, 246, 250, 254, 500, 990, 5_000, 100_000)
BROKEN = {
    "no UTF-8": b"\xff\xfe",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "null": b"null",
    "a list": b"[]",
    "half an object": b'{"a"',
    "a kind that is a number": b'{"kind":1}',
    "a version with two slashes": b'{"apiVersion":"a/b/c","kind":"x"}',
    "half a character": b'{"metadata":{"name":"\\ud800"}}',
    "an alias of itself": b"a: &a [*a]\n",
    "an alias of nothing": b"*x",
    "a tag for Python": b"!!python/object:os.system x",
    "a list as a key": b"? [a]\n: b\n",
    "a long hexadecimal number": b"{a: 0x" + b"f" * 5000 + b"}",
    "a number in base sixty": b"a: 1:" + b"59:" * 2000 + b"1",
    "a date that is none": b"a: 2020-99-99T00:00:00Z",
    "a NUL": b"a: \x00",
    "many open brackets": b"[" * 5000,
    "aliases that multiply": b"a: &a [x,x,x,x,x,x,x,x]\n"
    + b"".join(
        b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 8)) for c in range(98, 107)
    ),
    "a chain of aliases": b"x0: &x0 [a]\n"
    + b"".join(b"x%d: &x%d [*x%d]\n" % (i, i, i - 1) for i in range(1, 400)),
    "many members of one name": b"{" + b",".join([b'"k":""'] * 5000) + b"}",
    "many backslashes": b'"' + b"\\" * 50_000,
}


def everywhere(body: bytes) -> Iterator[tuple[str, ...]]:
    """A body sent to whatever reads one."""
    for media in (JSON, YAML, PROTOBUF, "", ";", "text/plain"):
        yield "POST", CONFIG_MAPS, body, media, "dryRun=All"  # type: ignore[misc]
        yield "PUT", POD, body, media, "dryRun=All&fieldValidation=Strict"  # type: ignore[misc]
        yield "DELETE", f"{CONFIG_MAPS}/absent", body, media  # type: ignore[misc]
        yield "POST", f"{POD}/eviction", body, media, "dryRun=All"  # type: ignore[misc]
        yield "POST", f"{POD}/binding", body, media, "dryRun=All"  # type: ignore[misc]
        yield "POST", "/apis/authentication.k8s.io/v1/tokenreviews", body, media  # type: ignore[misc]
    for media in (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY):
        for path in (CONFIG_MAP, POD):
            yield "PATCH", path, body, media, "dryRun=All&fieldManager=m"  # type: ignore[misc]


@pytest.mark.parametrize("name", BROKEN)
def test_broken_bodies_are_refused(name: str) -> None:
    """No body is too broken for a proper answer."""
    attack(everywhere(BROKEN[name]))


def test_numbers_beyond_any_type_are_refused() -> None:
    """Numbers that fit no type are an error of the client wherever they stand."""
    attack(
        request
        for number in NUMBERS
        for template in TEMPLATES
        for request in everywhere((template % number).encode())
    )


@pytest.mark.parametrize(
    ("opening", "closing"), [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"]
)
def test_depth_is_bounded(opening: str, closing: str) -> None:
    """Nesting is refused before it can exhaust the interpreter, also where any value may stand."""
    requests: list[tuple[object, ...]] = []
    for depth in DEPTHS:
        nest = opening * depth + '"x"' + closing * depth
        bodies = (
            nest,
            f'{{"metadata":{{"name":"n"}},"zz":{nest}}}',
            f'{{"metadata":{{"name":"n","managedFields":[{{"manager":"m","operation":"Update","apiVersion":"v1",'
            f'"fieldsType":"FieldsV1","fieldsV1":{{"f:data":{nest}}}}}]}}}}',
        )
        for body in bodies:
            medias = (MERGE_PATCH, STRATEGIC, JSON_PATCH, *((APPLY,) if depth < 1000 else ()))
            requests += [("POST", CONFIG_MAPS, body.encode(), JSON, "dryRun=All")]
            requests += [("PATCH", CONFIG_MAP, body.encode(), m, "fieldManager=m") for m in medias]
        claim = (
            f'{{"metadata":{{"name":"d{depth}"}},"spec":{{"devices":{{"requests":[{{"name":"a","exactly":'
            f'{{"deviceClassName":"x"}}}}],"config":[{{"opaque":{{"driver":"d.io","parameters":{nest}}}}}]}}}}}}'
        ).encode()
        label = b'{"metadata":{"labels":{"a":"b"}}}'
        requests += [("POST", CLAIMS, claim)]
        requests += [("PATCH", f"{CLAIMS}/d{depth}", label, m) for m in (MERGE_PATCH, STRATEGIC)]
    attack(requests)


def test_depth_is_bounded_in_texts_too() -> None:
    """JSON inside of an annotation or of the data of a secret is read by the same rules as a body."""
    annotation = "kubectl.kubernetes.io/last-applied-configuration"
    requests: list[tuple[object, ...]] = []
    for depth in DEPTHS:
        nest = '{"a":' * depth + "1" + "}" * depth
        metadata = {"name": f"n{depth}", "annotations": {annotation: nest}}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
        applied = {**config, "metadata": {"name": f"n{depth}"}, "data": {"a": "c"}}
        path = f"{CONFIG_MAPS}/n{depth}"
        secret = {
            "metadata": {"name": f"n{depth}"},
            "type": "kubernetes.io/dockercfg",
            "data": {".dockercfg": base64.b64encode(nest.encode()).decode()},
        }
        requests += [
            ("POST", CONFIG_MAPS, config),
            ("PATCH", path, json.dumps(applied).encode(), APPLY, "fieldManager=kubectl"),
            ("POST", CONFIG_MAPS.replace("configmaps", "secrets"), secret),
        ]
    attack(requests)


def varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def record(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(raw: bytes, kind: str = "ConfigMap", version: str = "v1") -> bytes:
    return (
        b"k8s\0"
        + record(1, record(1, version.encode()) + record(2, kind.encode()))
        + record(2, raw)
    )


NAMED = record(1, record(1, b"n"))
KINDS = (
    (CONFIG_MAPS, "ConfigMap", "v1"),
    (PODS, "Pod", "v1"),
    (CLAIMS, "ResourceClaim", "resource.k8s.io/v1"),
    (DEFINITIONS, "CustomResourceDefinition", "apiextensions.k8s.io/v1"),
)
LEAVES = (b"", b"n", b"\xff\xfe", b'{"a":1e400}', b"[" * 400 + b"]" * 400, b"9" * 5000, b"\0")
SCALARS = st.one_of(
    st.sampled_from([0, 1, 2**31, 2**63, 2**64 - 1, 2**70]).map(lambda n: (0, varint(n))),
    st.sampled_from([0.0, 1.5, float("nan"), float("inf"), 1e308]).map(
        lambda n: (1, struct.pack("<d", n))
    ),
    st.sampled_from([(5, b"abcd"), (3, b""), (4, b""), (6, b""), (7, b""), (1, b"abc")]),
    st.sampled_from(LEAVES).map(lambda data: (2, varint(len(data)) + data)),
)


def joined(records: list[tuple[int, tuple[int, bytes]]]) -> bytes:
    return b"".join(varint(number << 3 | wire) + data for number, (wire, data) in records)


MESSAGES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(st.tuples(st.integers(0, 14), inner), max_size=4)
        .map(joined)
        .map(lambda data: (2, varint(len(data)) + data))
    ),
    max_leaves=20,
)


@settings(max_examples=2_000 if IS_LONG else 150)
@given(
    st.lists(st.tuples(st.integers(0, 20), MESSAGES), max_size=5).map(joined), st.integers(0, 400)
)
def test_any_bytes_in_protobuf_are_answered(raw: bytes, cut: int) -> None:
    """Wrong wire types, lengths beyond the end and nonsense inside are errors of the client."""
    whole = NAMED + raw
    bodies = (whole, whole[:cut], b"\x0a\xff\xff\xff\xff\x0f", b"\xff" * 20)
    requests = [
        ("POST", path, envelope(body, kind, version), PROTOBUF, "dryRun=All")
        for path, kind, version in KINDS
        for body in bodies
    ]
    asyncio.run(_shared(requests))


async def _shared(requests: list[tuple[str, str, bytes, str, str]]) -> None:
    async with hostile_target() as target:
        for request in requests:
            await target.send(*request)


def test_envelopes_cut_or_changed_anywhere_are_answered() -> None:
    """Every prefix of a body and every changed byte of it gets an answer."""
    body = envelope(NAMED + record(2, record(1, b"k") + record(2, b"v")))
    changed = (
        body[:at] + bytes([value]) + body[at + 1 :]
        for at in range(len(body))
        for value in (0, 1, 0x7F, 0x80, 0xFF)
    )
    cut = (body[:at] for at in range(len(body)))
    attack(("POST", CONFIG_MAPS, b, PROTOBUF, "dryRun=All") for s in (changed, cut) for b in s)
