"""Field ownership agrees with what a Kubernetes server answered, step by step.

Each step starts from the object as the server had answered it before, so that nothing but ownership and merging is on trial: for
an update the object to record is the one that was answered, with its defaults; for an apply, what it leaves to the server to fill
in may be missing from the result, but nothing may be there that the server did not answer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from drayman.api.schema import schema_for
from drayman.api.versions import VERSIONS, from_v1, to_v1
from drayman.apiserver.patching import (
    FieldManager,
    ScaleOwnership,
    builtin_field_manager,
    custom_resource_shape,
    field_manager,
)
from drayman.apiserver.patching.field_set import named_path
from drayman.apiserver.protocol.errors import StatusError

RECORDS = Path(__file__).parents[4] / "shared" / "conformance" / "api" / "scenarios.jsonl"
NOW = "<time>"
DRA = "resource.k8s.io"
STATUS_RESETS = {"Pod": (("spec",), ("metadata", "deletionTimestamp"))}
DRA_STATUS_RESETS = (("spec",), ("metadata",))
SERVER_METADATA = {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"}
SET_BY_ADMISSION = ("priority", "preemptionPolicy", "tolerations")
KINDS = {
    "configmaps": "ConfigMap",
    "deployments": "Deployment",
    "devicetaintrules": "DeviceTaintRule",
    "nodes": "Node",
    "pods": "Pod",
    "resourceclaims": "ResourceClaim",
    "resourceslices": "ResourceSlice",
    "services": "Service",
    "widgets": "Widget",
}
OTHER_CHECKS = {"no-manager", "manager-unprintable", "force-on-merge-patch", "to-collection"} | {
    "json-content",
    "cbor-content",
    "stale-version",
    "uid-mismatch",
    "uid-on-missing",
    "name-mismatch",
    "no-name",
    "claim-status-on-missing",
    "apply-invalid",
    "manager-129",
    "no-body",
    "deployment-missing-merge-key",
    "claim-spec-immutable",
}
"""Cases whose refusal comes from elsewhere: options, media types, names, preconditions, validation."""


def vectors() -> list[dict[str, Any]]:
    if not RECORDS.exists():
        return []
    with RECORDS.open() as lines:
        found = [json.loads(line) for line in lines]
    return [vector for vector in found if vector.get("managed_fields")]


class Endpoint:
    """What a request path says, and the field manager for it."""

    def __init__(self, path: str, kind: str, definition: dict[str, Any] | None) -> None:
        parts = path.strip("/").split("/")
        group, rest = ("", parts[1:]) if parts[0] == "api" else (parts[1], parts[2:])
        version, rest = rest[0], rest[1:]
        if rest[0] == "namespaces" and len(rest) > 2:
            rest = rest[2:]
        self.resource, self.subresource = rest[0], "/".join(rest[2:])
        self.api_version = f"{group}/{version}" if group else version
        self.manager = self._manager(group, version, kind, definition)

    def _manager(
        self, group: str, version: str, kind: str, definition: dict[str, Any] | None
    ) -> FieldManager:
        resets: tuple[tuple[str, ...], ...] = (("status",),)
        if definition is not None:
            schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            shapes = {self.api_version: custom_resource_shape(schema)}
            return field_manager(self.api_version, kind, shapes, reset_fields=resets)
        if self.subresource == "status":
            resets = DRA_STATUS_RESETS if group == DRA else STATUS_RESETS.get(kind, (("spec",),))
        versions = VERSIONS[kind] if group == DRA else (version,)
        messages = {}
        for name in versions:
            message = schema_for(group, name, kind)
            if message is not None:
                messages[f"{group}/{name}" if group else name] = message
        return builtin_field_manager(
            self.api_version, kind, messages, convert=convert, reset_fields=resets
        )


def convert(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    return from_v1(to_v1(obj).value, api_version.partition("/")[2])


def body_of(step: dict[str, Any]) -> Any:
    if "raw" in step:
        documents = step["raw"].split("\n---\n")
        return yaml.safe_load(documents[0]) or {}
    return step.get("body")


def applies(step: dict[str, Any]) -> bool:
    return step.get("headers", {}).get("Content-Type") == "application/apply-patch+yaml"


@pytest.mark.skipif(
    not RECORDS.exists(), reason="the recorded answers are not beside this checkout"
)
@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector["name"])
def test_recorded_ownership(vector: dict[str, Any]) -> None:
    """Every write leaves the owners, and every refused apply gives the reasons, that were recorded."""
    live: dict[str, dict[str, Any]] = {}
    definition = None
    for step in vector["steps"]:
        expected, answer = step["expect"], step["expect"].get("body")
        if "customresourcedefinitions" in step["path"]:
            definition = step["body"]
            continue
        if step["method"] in ("GET", "DELETE"):
            continue
        if expected["status"] >= 400 and vector["name"].split("/")[1] in OTHER_CHECKS:
            continue
        if step["path"].endswith("/scale"):
            scale(live, step)
            continue
        check(step, live, definition)
        if expected["status"] < 300 and "dryRun" not in step.get("query", {}):
            live[name_of(step, answer)] = answer


def scale(live: dict[str, dict[str, Any]], step: dict[str, Any]) -> None:
    """Write through the scale subresource; what comes of it shows in the steps after."""
    parent = live[name_of({**step, "path": step["path"].removesuffix("/scale")}, {})]
    ways = ScaleOwnership("apps/v1", {"apps/v1": named_path("spec", "replicas")})
    message = schema_for("autoscaling", "v1", "Scale")
    assert message is not None
    manager = builtin_field_manager("autoscaling/v1", "Scale", {"autoscaling/v1": message})
    entries = ways.to_scale(managed(parent))
    new = {**step["expect"]["body"], "metadata": {"uid": "u"}}
    old = {**new, "metadata": {"uid": "u", "managedFields": entries}}
    old["spec"] = {"replicas": parent["spec"]["replicas"]}
    written = manager.update(old, new, step["query"]["fieldManager"], NOW, "scale")
    parent["metadata"]["managedFields"] = ways.to_parent(managed(parent), managed(written))
    parent["spec"]["replicas"] = new["spec"]["replicas"]


def name_of(step: dict[str, Any], answer: dict[str, Any]) -> str:
    path = step["path"].removesuffix("/status")
    if step["method"] == "POST":
        path = f"{path}/{answer['metadata']['name']}"
    return f"{path.split('/')[-2]}/{path.split('/')[-1]}"


def check(
    step: dict[str, Any], live: dict[str, dict[str, Any]], definition: dict[str, Any] | None
) -> None:
    expected, answer = step["expect"], step["expect"].get("body")
    key = name_of(step, answer or {})
    before = live.get(key)
    endpoint = Endpoint(step["path"], KINDS[key.split("/")[0]], definition)
    try:
        result = write(endpoint, step, before)
    except StatusError as error:
        check_refusal(error, expected)
        return
    assert expected["status"] < 300, f"expected {expected}, got an object"
    assert managed(result) == managed(answer)
    if applies(step):
        check_contents(endpoint, result, answer)


def write(
    endpoint: Endpoint, step: dict[str, Any], before: dict[str, Any] | None
) -> dict[str, Any]:
    query = step.get("query", {})
    manager = query.get("fieldManager", "conformance")
    if applies(step):
        return endpoint.manager.apply(
            before,
            body_of(step),
            manager,
            force=query.get("force") == "true",
            now=NOW,
            subresource=endpoint.subresource,
        )
    answer = json.loads(json.dumps(step["expect"]["body"]))
    sent = (body_of(step) or {}).get("metadata", {})
    answer["metadata"].pop("managedFields", None)
    if answer["kind"] == "Pod":
        for name in SET_BY_ADMISSION:
            answer["spec"].pop(name, None)
    if "managedFields" in sent:
        answer["metadata"]["managedFields"] = sent["managedFields"]
    if before is None:
        return endpoint.manager.create(answer, manager, NOW, endpoint.subresource)
    return endpoint.manager.update(before, answer, manager, NOW, endpoint.subresource)


def check_refusal(error: StatusError, expected: dict[str, Any]) -> None:
    assert (error.code, error.reason) == (expected["status"], expected["reason"])
    causes = [{"reason": c.reason, "field": c.field, "message": c.message} for c in error.causes]
    assert sorted(causes, key=repr) == sorted(expected.get("causes") or [], key=repr)
    if "message" in expected:
        assert error.message == expected["message"]


def managed(obj: dict[str, Any]) -> Any:
    return obj["metadata"].get("managedFields") or []


def check_contents(endpoint: Endpoint, result: dict[str, Any], answer: dict[str, Any]) -> None:
    if result["apiVersion"] != answer["apiVersion"]:
        result = convert(result, answer["apiVersion"])
    if endpoint.subresource:
        result, answer = result.get("status", {}), answer.get("status", {})
    else:
        result = {name: member for name, member in result.items() if name != "status"}
    metadata = result.get("metadata", {})
    for name in SERVER_METADATA & metadata.keys():
        del metadata[name]
    assert is_part(result, answer), f"{result} is not part of {answer}"


def is_part(part: Any, whole: Any) -> bool:
    """Whether a value is what is left of another without the fields and list items that a server fills in."""
    if part in (None, {}, []):
        return True
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(is_part(part[k], whole.get(k)) for k in part)
    if isinstance(part, list):
        items = iter(whole or [])
        return all(any(is_part(wanted, item) for item in items) for wanted in part)
    return bool(part == whole)
