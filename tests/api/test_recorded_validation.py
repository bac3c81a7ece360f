"""The validators against what a Kubernetes 1.36.4 API server answered.

Each record is a short sequence of requests. They are played against a store of a few lines that keeps objects and calls the
validators the way the server does; compared is the outcome of the last request and, where it is refused, the set of fields and
reasons.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from drayman.api import codec, validation, versions
from drayman.api.carrying import unknown_fields
from drayman.api.catalog import KINDS, Kind
from drayman.api.core import Namespace, Pod
from drayman.api.defaults import with_defaults
from drayman.api.errors import ApiError
from drayman.api.meta import ObjectMeta
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate
from drayman.api.struct import ApiStruct
from drayman.cel import device

RECORDS = Path(__file__).parents[3] / "shared" / "conformance" / "api" / "validation.jsonl"
TOKEN = "abcdefgh"
NOW = "2024-05-01T00:00:00Z"
POD_FIELDS = re.compile(
    r"^\[\]$|resourceClaims|resources\.claims|resourceClaimStatuses|extendedResourceClaimStatus"
)
AREAS = {"claim", "claim-status", "class", "slice", "taintrule", "taintrule-status", "template"}
PATH = re.compile(
    r"/apis/resource\.k8s\.io/(?P<version>[^/]+)/(?:namespaces/[^/]+/)?(?P<plural>[^/]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<subresource>status))?$"
)
Causes = set[tuple[str, str]]


@dataclass
class Server:
    """As much of an API server as the records need: objects by name, and the order of a write's steps."""

    namespace_labels: dict[str, str]
    objects: dict[tuple[str, str], ApiStruct] = field(default_factory=dict)

    def handle(self, step: dict[str, Any]) -> Causes:
        """The causes for refusing a request; none for accepting it. Raises ApiError where it cannot be decoded."""
        target = PATH.match(step["path"])
        assert target is not None, step["path"]
        kind = next(kind for kind in KINDS if kind.plural == target["plural"])
        if step["method"] == "DELETE":
            return self._delete(kind, target["name"])
        body = step["body"]
        if step["method"] == "PATCH":
            body = self._patched(kind, target["name"], target["version"], body)
        new = decode(kind, body, strict=step.get("query", {}).get("fieldValidation") == "Strict")
        if step["method"] == "POST":
            errors = self._create(new)
        else:
            old = self.objects[kind.name, target["name"]]
            new, errors = self._update(new, old, status=bool(target["subresource"]))
        if not errors:
            self.objects[kind.name, name_of(new)] = new
        return {(error.path, error.reason) for error in errors}

    def _create(self, new: ApiStruct) -> list[validation.FieldError]:
        errors = validation.validate(new, check_selector)
        if isinstance(new, ResourceClaim | ResourceClaimTemplate):
            errors += validation.check_admin_access(new, self._namespace())
        return errors

    def _update(
        self, new: Any, old: Any, *, status: bool
    ) -> tuple[ApiStruct, list[validation.FieldError]]:
        if not status:
            if hasattr(new, "status"):
                new = replace(new, status=old.status)
            return new, validation.validate_update(new, old, check_selector)
        new = replace(new, metadata=old.metadata, spec=old.spec)
        if isinstance(new, ResourceClaim):
            new = validation.without_stale_device_status(new, old)
        errors = validation.validate_status(new, old)
        if isinstance(new, ResourceClaim):
            errors += validation.check_admin_access_status(new, old, self._namespace())
        return new, errors

    def _delete(self, kind: Kind, name: str) -> Causes:
        old: Any = self.objects.pop((kind.name, name))
        if old.metadata.finalizers:
            metadata = replace(old.metadata, deletion_timestamp=NOW)
            self.objects[kind.name, name] = replace(old, metadata=metadata)
        return set()

    def _patched(self, kind: Kind, name: str, version: str, patch: Any) -> Any:
        current = codec.to_dict(self.objects[kind.name, name])
        return merge_patch(versions.from_v1(current, version), patch)

    def _namespace(self) -> Namespace:
        return Namespace(metadata=ObjectMeta(name=f"ns-{TOKEN}", labels=self.namespace_labels))


def check_selector(expression: str, stored: bool) -> validation.SelectorProblem | None:
    problem = device.check_selector(expression, stored=stored)
    return (
        None if problem is None else validation.SelectorProblem(problem.kind.value, problem.detail)
    )


def merge_patch(value: Any, patch: Any) -> Any:
    """RFC 7386, which for the records' patches does what a strategic one does."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), change)
    return merged


def decode(kind: Kind, body: Any, *, strict: bool) -> ApiStruct:
    converted = versions.to_v1(body)
    unknown = [*converted.ignored, *unknown_fields(kind.type, converted.value)]
    if strict and unknown:
        raise ApiError(f"unknown field {unknown[0]}")
    value = codec.convert(kind.type, converted.value)
    return with_defaults(value, now=NOW, version=converted.version)


def name_of(value: Any) -> str:
    return str(value.metadata.name)


def prepared(step: dict[str, Any]) -> dict[str, Any]:
    """A step with its placeholders filled in."""
    step = json.loads(json.dumps(step).replace("{u}", TOKEN))
    for pointer, length in step.get("pad", {}).items():
        *parents, last = pointer.strip("/").split("/")
        target = step["body"]
        for part in parents:
            key = part.replace("~1", "/").replace("~0", "~")
            target = target[int(key) if isinstance(target, list) else key]
        target[int(last) if isinstance(target, list) else last.replace("~1", "/")] = "x" * length
    return step


def recorded(areas: set[str]) -> list[dict[str, Any]]:
    if not RECORDS.exists():
        return []
    records = map(json.loads, RECORDS.read_text().splitlines())
    return [record for record in records if record["name"].split("/")[0] in areas]


def in_scope(record: dict[str, Any]) -> bool:
    """Not about storage: resource versions, names in addresses and preconditions are no matter of validation."""
    return record["steps"][-1]["expect"]["status"] in (200, 201, 422) or (
        record["steps"][-1]["expect"]["status"] == 400 and "/rename" not in record["name"]
    )


@pytest.mark.skipif(
    not RECORDS.exists(), reason="the recorded answers are not beside this checkout"
)
@pytest.mark.parametrize(
    "record", list(filter(in_scope, recorded(AREAS))), ids=lambda record: record["name"]
)
def test_same_answer_as_the_api_server(record: dict[str, Any]) -> None:
    """The last request of a record is accepted or refused for the same fields and reasons as by the API server."""
    server = Server(record.get("namespace_labels", {}))
    *stage, question = map(prepared, copy.deepcopy(record["steps"]))
    for step in stage:
        assert server.handle(step) == set(), step["path"]
    expected = question["expect"]
    try:
        causes = server.handle(question)
    except ApiError:
        assert expected["status"] == 400
        return
    assert causes == {(cause["field"], cause["reason"]) for cause in expected.get("causes", ())}
    assert expected["status"] != 400


def about_claims(record: dict[str, Any]) -> bool:
    question = record["steps"][-1]
    return question["method"] in ("POST", "PUT") and "/core-" not in record["name"]


@pytest.mark.skipif(
    not RECORDS.exists(), reason="the recorded answers are not beside this checkout"
)
@pytest.mark.parametrize(
    "record", list(filter(about_claims, recorded({"pod"}))), ids=lambda record: record["name"]
)
def test_pods_same_answer_about_claims(record: dict[str, Any]) -> None:
    """Of a pod, the fields that concern claims are refused for the same reasons as by the API server."""
    *stage, question = map(prepared, copy.deepcopy(record["steps"]))
    pod = codec.convert(Pod, question["body"])
    if question["path"].endswith("/status"):
        stored = codec.convert(Pod, stage[-1]["body"])
        errors = validation.validate_status(replace(pod, spec=stored.spec), stored)
    else:
        errors = validation.validate(pod, validation.accept_selectors)
    wanted = {
        (cause["field"], cause["reason"])
        for cause in question["expect"].get("causes", ())
        if POD_FIELDS.search(cause["field"])
    }
    assert {(error.path, error.reason) for error in errors} == wanted
