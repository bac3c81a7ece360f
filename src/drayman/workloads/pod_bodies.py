"""Pods made from templates, as they are sent to the API server."""

from __future__ import annotations

from typing import Final, Protocol

from drayman.api import codec
from drayman.api.meta import ObjectMeta, OwnerReference
from drayman.api.struct import Json

MOST_PER_ROUND: Final = 500
"""Pods made or deleted for one object before others have their turn."""


class Owning(Protocol):
    """An object that makes others."""

    @property
    def api_version(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def metadata(self) -> ObjectMeta: ...


def owner_reference(owner: Owning) -> OwnerReference:
    """How what an object makes says that the object manages it."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def pod_body(
    owner: Owning, template: dict[str, Json], *, name: str = "", generate_name: str = ""
) -> dict[str, Json]:
    """A pod to be created from a template. Metadata and spec are the caller's to change, what is below is the template's."""
    given = template.get("metadata") or {}
    metadata: dict[str, Json] = {
        "namespace": owner.metadata.namespace,
        "labels": dict(given.get("labels") or {}),
        "annotations": dict(given.get("annotations") or {}),
        "ownerReferences": [codec.to_dict(owner_reference(owner))],
    }
    if given.get("finalizers"):
        metadata["finalizers"] = list(given["finalizers"])
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = generate_name or f"{owner.metadata.name}-"
    return {"metadata": metadata, "spec": dict(template.get("spec") or {})}
