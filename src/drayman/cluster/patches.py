"""The four kinds of patch, each with the media type by which the server knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from drayman.api import codec
from drayman.api.struct import ApiStruct, Json

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)


class Patch(Struct, frozen=True):
    """A change to an object without the rest of it. Use the functions below."""

    media_type: str
    value: Json

    def __post_init__(self) -> None:
        if self.media_type not in PATCH_TYPES:
            raise ValueError(
                f"{self.media_type!r} is not a type of patch: {', '.join(PATCH_TYPES)}"
            )

    def encode(self) -> bytes:
        return codec.encode_json(self.value)


def json_patch(operations: Sequence[dict[str, Json]]) -> Patch:
    """RFC 6902: a list of operations. `test` operations make it conditional."""
    return Patch(JSON_PATCH, list(operations))


def merge_patch(value: dict[str, Json]) -> Patch:
    """RFC 7386: members replace, null removes, lists are replaced whole."""
    return Patch(MERGE_PATCH, value)


def strategic_merge_patch(value: dict[str, Json]) -> Patch:
    """As a merge patch, but lists with a merge key are merged by it. Not for custom resources."""
    return Patch(STRATEGIC_MERGE_PATCH, value)


def pod_condition_patch(
    uid: str, condition: dict[str, Json], *, version: str = "", **status: Json
) -> Patch:
    """Sets one condition of a pod, and more of its status where given. The uid keeps it off a newer pod of the same name.

    With a version, which is that of the pod, it is refused if the pod has changed since.
    """
    metadata: dict[str, Json] = {"uid": uid}
    if version:
        metadata["resourceVersion"] = version
    return strategic_merge_patch(
        {"metadata": metadata, "status": {"conditions": [condition], **status}}
    )


def disruption_target(reason: str, message: str, when: str) -> dict[str, Json]:
    """The condition by which a pod's owner learns that the pod was not at fault."""
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": when,
    }


def apply_patch(value: ApiStruct | dict[str, Json]) -> Patch:
    """Server-side apply: the fields that the caller wants to own. apiVersion and kind are needed.

    JSON is YAML, so the body is JSON in spite of the media type, as kubectl sends it.
    """
    return Patch(APPLY_PATCH, codec.to_dict(value) if isinstance(value, ApiStruct) else value)
