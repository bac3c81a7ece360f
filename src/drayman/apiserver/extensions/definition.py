"""A CustomResourceDefinition as the server reads it: names, versions, and what the versions have in common.

Validation treats what all versions share as if it were written once, above the versions, as in older versions of the API. This is
why errors about the only version of a definition name `spec.validation` and not `spec.versions[0].schema`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.extensions.schemas import EMPTY, Schema
from drayman.apiserver.served.resources import GroupVersionKind
from drayman.apiserver.served.strategy import Object

GROUP: Final = "apiextensions.k8s.io"
KIND: Final = "CustomResourceDefinition"
HUB: Final = GroupVersionKind(GROUP, "v1", KIND)
STORAGE: Final = f"customresourcedefinitions.{GROUP}"
CLEANUP: Final = f"customresourcecleanup.{GROUP}"
NAMES_ACCEPTED: Final = "NamesAccepted"
ESTABLISHED: Final = "Established"
TERMINATING: Final = "Terminating"

SHARED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
SCHEMA, SUBRESOURCES, COLUMNS, SELECTABLE = SHARED


@dataclass(frozen=True)
class Definition:
    """The parts of a definition."""

    obj: Mapping[str, Json]

    @cached_property
    def spec(self) -> Mapping[str, Json]:
        found: Mapping[str, Json] = self.obj.get("spec") or {}
        return found

    @cached_property
    def names(self) -> Mapping[str, Json]:
        found: Mapping[str, Json] = self.spec.get("names") or {}
        return found

    @property
    def name(self) -> str:
        return str(self.obj["metadata"].get("name", ""))

    @property
    def group(self) -> str:
        return str(self.spec.get("group") or "")

    @property
    def plural(self) -> str:
        return str(self.names.get("plural") or "")

    @property
    def kind(self) -> str:
        return str(self.names.get("kind") or "")

    @property
    def is_namespaced(self) -> bool:
        return self.spec.get("scope") == "Namespaced"

    @cached_property
    def versions(self) -> Sequence[Mapping[str, Json]]:
        return tuple(self.spec.get("versions") or ())

    @cached_property
    def by_name(self) -> Mapping[Json, Mapping[str, Json]]:
        """The versions by their names; of several with one name, the first."""
        return {version.get("name"): version for version in reversed(self.versions)}

    @property
    def storage_version(self) -> str:
        return next((str(v.get("name") or "") for v in self.versions if v.get("storage")), "")

    @cached_property
    def shared(self) -> Mapping[str, Json]:
        """The parts that are the same in all versions, of those that may be shared."""
        if not self.versions:
            return {}
        first = self.versions[0]
        return {
            part: first[part]
            for part in SHARED
            if first.get(part) is not None
            and all(v.get(part) == first[part] for v in self.versions)
        }

    def version(self, name: str) -> Mapping[str, Json]:
        return next(version for version in self.versions if version["name"] == name)

    def schema(self, name: str) -> Schema:
        """The schema of a version. A version without one accepts any object."""
        return schema_of(self.version(name)) or EMPTY

    def is_true(self, condition: str) -> bool:
        found = self.condition(condition)
        return found is not None and found.get("status") == "True"

    def condition(self, name: str) -> Mapping[str, Json] | None:
        conditions = (self.obj.get("status") or {}).get("conditions") or ()
        return next((one for one in conditions if one.get("type") == name), None)

    @property
    def is_terminating(self) -> bool:
        return "deletionTimestamp" in self.obj["metadata"]


def schema_of(version: Mapping[str, Json]) -> Schema | None:
    """The schema in a version, or in the part shared by all versions."""
    found: Schema | None = (version.get(SCHEMA) or {}).get("openAPIV3Schema")
    return found


def condition(
    kind: str, status: str, reason: str, message: str, now: str, old: Mapping[str, Json] | None
) -> Object:
    """A condition. Its transition time changes only if its status does."""
    is_same = old is not None and old.get("status") == status
    since = old["lastTransitionTime"] if is_same and old is not None else now
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
