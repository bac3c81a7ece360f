"""Defaults and rules against what a Kubernetes 1.36.4 API server did with the same objects, without a server around them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from apiserver.kinds.circumstances import (
    RESOURCES,
    Objects,
    created,
    make_context,
    refusals,
)
from drayman.api.schema import decode_strict
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.served.conversion import from_hub, to_hub
from drayman.apiserver.served.shaping import message_of
from drayman.apiserver.served.strategy import Object

FOLDER = Path(__file__).parents[4] / "shared" / "conformance" / "api"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
SERVER_OWNED = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace", "name")
FORBIDDEN = 403
VALIDATED = ("pod/", "workload/", "poolstatus/")


def records(name: str) -> list[dict[str, Any]]:
    path = FOLDER / f"{name}.jsonl"
    if not path.exists():
        return []
    with path.open() as lines:
        return [json.loads(line.replace("{u}", "abcdefgh")) for line in lines]


def kind_of(body: dict[str, Any]) -> tuple[str, str, str]:
    group, _, version = body["apiVersion"].rpartition("/")
    return group, version, body["kind"]


def in_hub(body: dict[str, Any]) -> Object:
    """A body as the server reads it, in the version its kind is kept in."""
    group, version, kind = kind_of(body)
    resource = RESOURCES[group, kind]
    value, _ = decode_strict(message_of(resource.kind_in(version)), body)
    return to_hub(resource, value, version)


def is_served(record: dict[str, Any]) -> bool:
    group, version, kind = kind_of(record["steps"][0]["body"])
    resource = RESOURCES.get((group, kind))
    return resource is not None and version in resource.versions


def comparable(value: Any) -> Any:
    """A value without what depends on the moment: times, and the addresses of services."""
    if isinstance(value, dict):
        return {name: comparable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, str) and TIME.fullmatch(value) and not value.startswith("2024"):
        return "<time>"
    return value


DEFAULTS = [record for record in records("defaults") if is_served(record)]
VALIDATIONS = [
    record
    for record in records("validation")
    if record["name"].startswith(VALIDATED) and len(record["steps"]) == 1
]
NEEDS_RECORDS = pytest.mark.skipif(
    not FOLDER.exists(), reason="the recorded requests are not beside the repository"
)


@NEEDS_RECORDS
@pytest.mark.parametrize("record", DEFAULTS, ids=lambda record: record["name"])
def test_new_objects_are_filled_in_as_recorded(record: dict[str, Any]) -> None:
    """Defaults, admission and preparation give the object that the recorded server answered with."""
    step = record["steps"][0]
    group, version, kind = kind_of(step["body"])
    resource = RESOURCES[group, kind]
    context = make_context(version=version)
    stored = created(resource, in_hub(step["body"]), context)
    found = comparable(from_hub(resource, stored, version))
    expected = step["expect"]["body"]
    for name in SERVER_OWNED:
        found["metadata"].pop(name, None)
        expected["metadata"].pop(name, None)
    assert found == expected


@NEEDS_RECORDS
@pytest.mark.parametrize("record", VALIDATIONS, ids=lambda record: record["name"])
def test_new_objects_are_refused_as_recorded(record: dict[str, Any]) -> None:
    """The same objects are refused, for the same fields and reasons."""
    step = record["steps"][0]
    group, version, kind = kind_of(step["body"])
    resource = RESOURCES[group, kind]
    context = make_context(Objects(), version)
    expected = step["expect"]
    if expected["status"] == FORBIDDEN:
        with pytest.raises(StatusError) as refusal:
            created(resource, in_hub(step["body"]), context)
        assert refusal.value.message == expected["message"]
        return
    obj = created(resource, in_hub(step["body"]), context)
    causes = {
        (cause["field"], cause["reason"].removeprefix("FieldValue"))
        for cause in expected.get("causes", [])
    }
    assert refusals(resource.strategy.validate(obj, context)) == causes
