"""The form in which objects are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.schema.recorded import vectors
from drayman.api.schema import Message, decode_strict, message_named, normalise, schema_for


def kind(name: str, group: str = "", version: str = "v1") -> Message:
    found = schema_for(group, version, name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("message", "value", "written"),
    [
        pytest.param(kind("ConfigMap"), {}, {"metadata": {}}, id="metadata shows"),
        pytest.param(
            kind("Pod"),
            {"spec": {"containers": [{"name": "c", "args": []}]}},
            {
                "metadata": {},
                "spec": {"containers": [{"name": "c", "resources": {}}]},
                "status": {},
            },
            id="structs show, empty lists do not",
        ),
        pytest.param(
            kind("ClusterRole", "rbac.authorization.k8s.io"),
            {},
            {"metadata": {}, "rules": None},
            id="a list that always shows is null",
        ),
        pytest.param(
            kind("ClusterRole", "rbac.authorization.k8s.io"),
            {"rules": []},
            {"metadata": {}, "rules": []},
            id="or empty",
        ),
        pytest.param(
            message_named("core/v1.PodCondition"),
            {"type": "Ready"},
            {"type": "Ready", "status": "", "lastProbeTime": None, "lastTransitionTime": None},
            id="texts and times that always show",
        ),
        pytest.param(message_named("meta/v1.ObjectMeta"), {}, {}, id="creation time does not"),
        pytest.param(
            message_named("core/v1.SecurityContext"),
            {"privileged": False, "runAsUser": 0},
            {"privileged": False, "runAsUser": 0},
            id="pointers to zero show",
        ),
        pytest.param(message_named("resource/v1.Counter"), {}, {"value": "0"}, id="quantity"),
        pytest.param(
            message_named("resource/v1.OpaqueDeviceConfiguration"),
            {"driver": "d"},
            {"driver": "d", "parameters": None},
            id="opaque",
        ),
        pytest.param(
            message_named("core/v1.ServicePort"),
            {"port": 80},
            {"port": 80, "targetPort": 0},
            id="int or string",
        ),
        pytest.param(
            message_named("apiextensions/v1.JSONSchemaProps"),
            {
                "items": {"type": "string", "required": []},
                "additionalProperties": False,
                "enum": [1, None],
            },
            {"items": {"type": "string"}, "additionalProperties": False, "enum": [1, None]},
            id="JSON schema",
        ),
    ],
)
def test_writing(message: Message, value: dict[str, Any], written: dict[str, Any]) -> None:
    """Empty fields are left out or shown as their message says."""
    assert normalise(message, value) == written


def test_order() -> None:
    """Fields come in the order of their message, map keys in alphabetical order, unknown fields not at all."""
    value = {
        "data": {"b": "1", "a": "2"},
        "x": 1,
        "metadata": {"namespace": "n", "name": "m"},
        "kind": "ConfigMap",
    }
    written = json.dumps(normalise(kind("ConfigMap"), value))
    expected = '{"kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}, "data": {"a": "2", "b": "1"}}'
    assert written == expected


def recorded_objects() -> Iterator[tuple[str, Message, dict[str, Any]]]:
    """Every object of a built-in kind that the API server was recorded to answer with."""
    for vector in vectors():
        waiting = [step["expect"].get("body") for step in vector["steps"]]
        while waiting:
            item = waiting.pop()
            if isinstance(item, list):
                waiting.extend(item)
            elif isinstance(item, dict):
                message = _message_of(item)
                if message is None:
                    waiting.extend(item.values())
                else:
                    text = json.dumps(item).replace("<time>", "2024-05-01T10:00:00Z")
                    yield vector["name"], message, json.loads(text)


def _message_of(item: dict[str, Any]) -> Message | None:
    api_version, name = item.get("apiVersion"), item.get("kind")
    if not isinstance(api_version, str) or not isinstance(name, str):
        return None
    group, _, version = api_version.rpartition("/")
    return schema_for(group, version, name)


def test_recorded_objects_stay_as_they_are() -> None:
    """What the API server writes is decoded without a problem and written again without a change."""
    compared = 0
    for name, message, value in recorded_objects():
        decoded = decode_strict(message, value)
        assert decoded.problems == (), name
        assert normalise(message, decoded.value) == value, name
        compared += 1
    assert compared > 1000
