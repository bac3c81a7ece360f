"""JSON, merge and strategic merge patches agree with what a Kubernetes server answered.

A patch is applied to the object as the server had answered it before. What the server then adds of its own (defaults, versions,
times) may be missing from the result; nothing may be there that the server did not answer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drayman.api.schema import schema_for
from drayman.apiserver.patching import (
    apply_json_patch,
    apply_merge_patch,
    apply_strategic_merge,
)
from drayman.apiserver.protocol.errors import StatusError

RECORDS = Path(__file__).parents[4] / "shared" / "conformance" / "api" / "scenarios.jsonl"
AREAS = ("json-patch", "merge-patch", "strategic")
DECIDED_LATER = {
    "json-patch/no-value": "decoding makes an empty string of null",
    "json-patch/result-unknown-field": "decoding drops what it does not know",
    "merge-patch/case-differs": "decoding drops what it does not know",
    "merge-patch/empty-body": "there is no patch to apply",
    "merge-patch/through-status-metadata-ignored": "the status path restores the metadata",
    "merge-patch/status-ignored-on-main": "the main path restores the status",
    "strategic/secret-string-data": "the server folds stringData into data",
}
"""Cases in which the server changes the patched object, and what of it."""
SERVER_METADATA = {"resourceVersion", "generation", "managedFields"}


def vectors() -> list[dict[str, Any]]:
    if not RECORDS.exists():
        return []
    with RECORDS.open() as lines:
        found = [json.loads(line) for line in lines]
    return [
        vector
        for vector in found
        if vector["name"].split("/")[0] in AREAS and vector["name"] not in DECIDED_LATER
    ]


def patched(step: dict[str, Any], obj: dict[str, Any]) -> dict[str, Any]:
    patch = json.loads(step["raw"]) if "raw" in step else step["body"]
    media_type = step["headers"]["Content-Type"]
    if media_type == "application/json-patch+json":
        return apply_json_patch(obj, patch)
    if media_type == "application/merge-patch+json":
        return apply_merge_patch(obj, patch)
    group, _, version = obj["apiVersion"].rpartition("/")
    message = schema_for(group, version, obj["kind"])
    assert message is not None, obj["kind"]
    return apply_strategic_merge(message, obj, patch)


@pytest.mark.skipif(
    not RECORDS.exists(), reason="the recorded answers are not beside this checkout"
)
@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector["name"])
def test_recorded_patches(vector: dict[str, Any]) -> None:
    """Every patch makes of an object what was recorded, or is refused as it was."""
    live: dict[str, Any] = {}
    for step in vector["steps"]:
        expected = step["expect"]
        if step["method"] == "PATCH" and live:
            check(step, live)
        if expected["status"] < 300 and "metadata" in (expected.get("body") or {}):
            live = expected["body"]


def check(step: dict[str, Any], live: dict[str, Any]) -> None:
    expected = step["expect"]
    before = json.dumps(live)
    try:
        result = patched(step, live)
    except StatusError as error:
        check_refusal(error, expected)
        return
    assert json.dumps(live) == before, "the object handed in was changed"
    if expected["status"] >= 300:
        message = expected.get("message", "")
        assert "error in our request" not in message, "a failed patch succeeded"
        assert "merge key" not in message, "a failed patch succeeded"
        return
    for name in SERVER_METADATA:
        result["metadata"].pop(name, None)
    if "/status" not in step["path"]:
        result.pop("status", None)
    assert is_part(result, expected["body"]), f"{result} is not part of {expected['body']}"
    for name in ("spec", "data"):
        assert (expected["body"].get(name) is None) == (result.get(name) in (None, {})), name


def check_refusal(error: StatusError, expected: dict[str, Any]) -> None:
    assert (error.code, error.reason) == (expected["status"], expected["reason"])
    assert error.message == expected["message"]


def is_part(part: Any, whole: Any) -> bool:
    """Whether a value is what is left of another without the fields that a server fills in."""
    if part in (None, {}, []):
        return True
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(is_part(part[k], whole.get(k)) for k in part)
    if isinstance(part, list):
        return len(part) == len(whole or []) and all(map(is_part, part, whole))
    return bool(part == whole)
