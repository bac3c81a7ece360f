"""The annotation in which client-side apply keeps what it applied, and how server-side apply by kubectl uses it.

A client that switches from one to the other would conflict with its own earlier writes. Fields that still are as the annotation
says were set by it, so kubectl may take them without force; and the annotation is kept up to date for switching back.
"""

from __future__ import annotations

from typing import Final

import msgspec

from drayman.api.errors import BodyError
from drayman.api.struct import Json
from drayman.api.syntax.json_text import parse_embedded
from drayman.apiserver.patching.checking import misfits
from drayman.apiserver.patching.field_set import EMPTY, FieldSet
from drayman.apiserver.patching.shapes import Shape
from drayman.apiserver.patching.tracing import compare, fields_of
from drayman.apiserver.patching.versions import Object

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL: Final = "kubectl"
"""The field manager of kubectl's server-side apply, the only one that uses the annotation."""


def last_applied_of(obj: Object) -> str:
    """The annotation of an object; empty if it has none."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    value = annotations.get(ANNOTATION)
    return value if isinstance(value, str) else ""


def unchanged_since_applied(shape: Shape, live: Object) -> FieldSet:
    """The fields that the annotation of a live object set and that still have those values."""
    text = last_applied_of(live)
    if not text:
        return EMPTY
    try:
        applied = parse_embedded(text.encode())
    except BodyError:
        # An annotation is text that any client may write: an unreadable one allows nothing.
        return EMPTY
    if not isinstance(applied, dict) or applied.get("apiVersion") != live.get("apiVersion"):
        return EMPTY
    if misfits(shape, applied):
        return EMPTY
    comparison = compare(shape, applied, live)
    return fields_of(shape, applied) - comparison.changed - comparison.removed


def with_last_applied(obj: Object, applied: Object) -> Object:
    """An object whose annotation says what has just been applied."""
    text = msgspec.json.encode(_without_annotation(applied), order="sorted").decode() + "\n"
    metadata = obj["metadata"]
    annotations = {**(metadata.get("annotations") or {}), ANNOTATION: text}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _without_annotation(applied: Object) -> dict[str, Json]:
    metadata = dict(applied.get("metadata") or {})
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != ANNOTATION}
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    return {**applied, "metadata": metadata}
