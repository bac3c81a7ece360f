"""Bodies in protobuf become what the same object in JSON becomes."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.schema import wire
from api.schema.recorded import transcripts, vectors
from drayman.api.errors import BodyError, UnrecognizedError
from drayman.api.schema import Message, decode_strict, message_named, schema_for
from drayman.api.schema.protobuf import decode_protobuf, read_envelope


def kind(name: str, group: str = "", version: str = "v1") -> Message:
    found = schema_for(group, version, name)
    assert found is not None
    return found


def without_type(value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name not in ("kind", "apiVersion")}


def test_envelope() -> None:
    """An envelope tells the kind and holds the object."""
    body = wire.envelope("apps/v1", "Deployment", b"raw")
    assert read_envelope(body) == ("apps/v1", "Deployment", b"raw")


def test_bad_magic() -> None:
    """A body without the magic bytes is not recognised."""
    with pytest.raises(UnrecognizedError, match=r"expected prefix \[107 56 115 0\]"):
        read_envelope(b"{}")


POD = {
    "metadata": {
        "name": "p",
        "labels": {"a": "b", "c": ""},
        "creationTimestamp": "2024-05-01T10:00:00Z",
    },
    "spec": {
        "volumes": [
            {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "w", "configMap": {"name": "c"}},
        ],
        "containers": [
            {
                "name": "c",
                "resources": {"requests": {"cpu": "500m"}, "claims": [{"name": "gpu"}]},
                "readinessProbe": {"httpGet": {"port": "http"}},
                "livenessProbe": {"tcpSocket": {"port": 80}, "terminationGracePeriodSeconds": -1},
                "securityContext": {"privileged": False},
            }
        ],
        "priority": -5,
        "terminationGracePeriodSeconds": 0,
    },
}


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (kind("Pod"), POD),
        (kind("Secret"), {"data": {"a": "Yg==", "b": ""}, "immutable": False}),
        (
            kind("Lease", "coordination.k8s.io"),
            {"spec": {"renewTime": "2024-05-01T10:00:00.000005Z"}},
        ),
        (
            kind("SubjectAccessReview", "authorization.k8s.io"),
            {"spec": {"user": "u", "extra": {"a": ["x", "y"], "b": []}}},
        ),
        (
            kind("ResourceClaim", "resource.k8s.io"),
            {
                "spec": {
                    "devices": {
                        "config": [
                            {"opaque": {"driver": "d", "parameters": {"a": [1, {"b": None}]}}}
                        ]
                    }
                }
            },
        ),
        (
            kind("ResourceSlice", "resource.k8s.io"),
            {
                "spec": {
                    "devices": [
                        {
                            "attributes": {
                                "a": {"int": -1},
                                "b": {"ints": [1, 2]},
                                "c": {"bool": False},
                            }
                        }
                    ]
                }
            },
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Message) else "",
)
def test_round_trip(message: Message, value: dict[str, Any]) -> None:
    """What a client encodes is decoded again; the zeros it writes are left out."""
    assert decode_protobuf(message, wire.encode(message, value)) == value


def test_every_recorded_object() -> None:
    """Every object that was recorded decodes from protobuf as it does from JSON."""
    compared = 0
    for vector in vectors():
        for step in vector["steps"]:
            body = step.get("body")
            if not isinstance(body, dict) or not isinstance(body.get("apiVersion"), str):
                continue
            group, _, version = body["apiVersion"].rpartition("/")
            message = schema_for(group, version, str(body.get("kind")))
            if message is None or message.package == "apiextensions/v1":
                continue
            try:
                value, problems = decode_strict(message, body)
            except BodyError:
                continue
            if not problems and not _has_nothing(value):
                compared += 1
                value = without_type(value)
                assert decode_protobuf(message, wire.encode(message, value)) == value, vector[
                    "name"
                ]
    assert compared > 1000


def _has_nothing(value: Any) -> bool:
    """Whether an empty list, map or null is in it, which protobuf cannot tell from an absent one."""
    if value in ([], None):
        return True
    children = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    return any(_has_nothing(child) or child == {} for child in children)


def test_recorded_bodies() -> None:
    """What kubectl sends in protobuf is decoded into what it asked for."""
    decoded = {}
    for exchange in transcripts():
        body = exchange.get("request_body")
        if isinstance(body, dict) and "base64" in body:
            envelope = read_envelope(base64.b64decode(body["base64"]))
            group, _, version = envelope.api_version.rpartition("/")
            value = decode_protobuf(kind(envelope.kind, group, version), envelope.raw)
            decoded[envelope.kind, value.get("metadata", {}).get("name")] = value
    assert decoded["Job", "j2"]["spec"] == {
        "template": {
            "spec": {
                "containers": [{"name": "j2", "image": "busybox", "command": ["true"]}],
                "restartPolicy": "Never",
            }
        }
    }
    assert decoded["ResourceQuota", "q2"] == {
        "metadata": {"name": "q2"},
        "spec": {"hard": {"pods": "99"}},
    }
    assert decoded["PodDisruptionBudget", "pdb2"]["spec"]["minAvailable"] == 1
    assert decoded["PriorityClass", "pc2"]["preemptionPolicy"] == "PreemptLowerPriority"


def test_json_schemas() -> None:
    """The places of a schema that take a schema or something else are decoded as what they hold."""
    schema = message_named("apiextensions/v1.JSONSchemaProps")
    inner = wire.bytes_record(5, b"string")
    raw = b"".join(
        (
            wire.bytes_record(24, wire.bytes_record(1, inner)),
            wire.bytes_record(30, wire.number_record(1, 0)),
            wire.bytes_record(33, wire.number_record(1, 1) + wire.bytes_record(2, inner)),
            wire.bytes_record(
                32, wire.bytes_record(1, b"k") + wire.bytes_record(2, wire.bytes_record(2, b"x"))
            ),
            wire.bytes_record(8, wire.bytes_record(1, b'{"a":1}')),
        )
    )
    assert decode_protobuf(schema, raw) == {
        "items": {"type": "string"},
        "additionalProperties": False,
        "additionalItems": {"type": "string"},
        "dependencies": {"k": ["x"]},
        "default": {"a": 1},
    }


def test_packed_lists_and_unknown_numbers() -> None:
    """Numbers may come packed, and fields that no table knows are skipped."""
    message = kind("Pod")
    groups = wire.bytes_record(4, wire.varint(5) + wire.varint(6))
    raw = wire.bytes_record(2, wire.bytes_record(14, groups)) + wire.bytes_record(999, b"x")
    assert decode_protobuf(message, raw) == {
        "spec": {"securityContext": {"supplementalGroups": [5, 6]}}
    }


def test_nesting_is_bounded() -> None:
    """A schema inside a schema without end is refused."""
    raw = b""
    for _ in range(1000):
        raw = wire.bytes_record(28, raw)
    with pytest.raises(BodyError, match="recursion depth"):
        decode_protobuf(message_named("apiextensions/v1.JSONSchemaProps"), raw)


@given(st.binary(max_size=60), st.sampled_from(["Pod", "Secret", "Service"]))
def test_any_bytes_are_decoded_or_refused(raw: bytes, name: str) -> None:
    """No bytes make decoding fail in any other way than with a reason for the client."""
    attempts = (partial(read_envelope, b"k8s\x00" + raw), partial(decode_protobuf, kind(name), raw))
    for decode in attempts:
        reason = "none"
        try:
            decode()
        except BodyError as error:
            reason = str(error)
        assert reason
