"""Object metadata and label selectors, shared by every kind."""

from __future__ import annotations

from msgspec import field

from drayman.api.struct import ApiStruct, Int64, Json, Timestamp


class OwnerReference(ApiStruct, merge_key=("uid",)):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(ApiStruct):
    """Metadata of an object. Timestamps stay RFC 3339 text, as they came."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner that manages an object, if it has one."""
    for owner in metadata.owner_references:
        if owner.controller:
            return owner
    return None


class TemplateMeta(ObjectMeta):
    """Metadata for objects made from a template. Declares what templates must not set, so that it can be refused."""

    managed_fields: tuple[Json, ...] = ()
    self_link: str = ""


class Condition(ApiStruct, merge_key=("type",)):
    type_: str = field(name="type", default="")
    status: str = ""
    observed_generation: Int64 = 0
    last_transition_time: Timestamp | None = None
    reason: str = ""
    message: str = ""


class LabelSelectorRequirement(ApiStruct):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(ApiStruct):
    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
