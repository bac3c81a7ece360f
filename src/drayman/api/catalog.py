"""The kinds Drayman knows: how they are called, where they are served, how they are listed.

Everything that handles objects by kind (reading files, serving, printing) goes by this table instead of lists of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from drayman.api.core import Namespace, Node, Pod
from drayman.api.resource import (
    GROUP,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.api.struct import ApiStruct
from drayman.api.versions import VERSIONS


class Column(Struct, frozen=True):
    """A column of a table of objects. The cell of an age column is a time; how long ago that is, is for the printer."""

    name: str
    cell: Callable[[Any], str]
    is_age: bool = False


class Kind(Struct, frozen=True):
    """One kind of object. `complete` tells whether its type declares every field Kubernetes has."""

    name: str
    type: type[ApiStruct]
    group: str
    versions: tuple[str, ...]
    plural: str
    namespaced: bool
    columns: tuple[Column, ...]
    short_names: tuple[str, ...] = ()
    has_status: bool = False
    complete: bool = True

    @property
    def singular(self) -> str:
        return self.name.lower()

    @property
    def api_versions(self) -> tuple[str, ...]:
        """The apiVersion of each version, the preferred one first."""
        return tuple(
            f"{self.group}/{version}" if self.group else version for version in self.versions
        )


def claim_state(claim: ResourceClaim) -> str:
    """The state of a claim as a list of words: deleted, pending, allocated, reserved."""
    words = ["deleted"] if claim.metadata.deletion_timestamp is not None else []
    if claim.status.allocation is not None:
        words.append("allocated")
        if claim.status.reserved_for:
            words.append("reserved")
    elif not words:
        words.append("pending")
    return ",".join(words)


_NAME: Final = Column("Name", lambda value: str(value.metadata.name))
_AGE: Final = Column("Age", lambda value: value.metadata.creation_timestamp or "", is_age=True)
_NAME_AND_AGE: Final = (_NAME, _AGE)

KINDS: Final = (
    Kind(
        "DeviceClass",
        DeviceClass,
        GROUP,
        VERSIONS["DeviceClass"],
        "deviceclasses",
        namespaced=False,
        columns=_NAME_AND_AGE,
    ),
    Kind(
        "ResourceSlice",
        ResourceSlice,
        GROUP,
        VERSIONS["ResourceSlice"],
        "resourceslices",
        namespaced=False,
        columns=(
            _NAME,
            Column("Node", lambda value: value.spec.node_name or ""),
            Column("Driver", lambda value: str(value.spec.driver)),
            Column("Pool", lambda value: str(value.spec.pool.name)),
            _AGE,
        ),
    ),
    Kind(
        "ResourceClaim",
        ResourceClaim,
        GROUP,
        VERSIONS["ResourceClaim"],
        "resourceclaims",
        namespaced=True,
        columns=(_NAME, Column("State", claim_state), _AGE),
        has_status=True,
    ),
    Kind(
        "ResourceClaimTemplate",
        ResourceClaimTemplate,
        GROUP,
        VERSIONS["ResourceClaimTemplate"],
        "resourceclaimtemplates",
        namespaced=True,
        columns=_NAME_AND_AGE,
    ),
    Kind(
        "DeviceTaintRule",
        DeviceTaintRule,
        GROUP,
        VERSIONS["DeviceTaintRule"],
        "devicetaintrules",
        namespaced=False,
        columns=(
            _NAME,
            Column("Key", lambda value: str(value.spec.taint.key)),
            Column("Value", lambda value: str(value.spec.taint.value)),
            Column("Effect", lambda value: str(value.spec.taint.effect)),
            Column("TimeAdded", lambda value: value.spec.taint.time_added or "", is_age=True),
            _AGE,
        ),
        has_status=True,
    ),
    Kind(
        "Node",
        Node,
        "",
        ("v1",),
        "nodes",
        namespaced=False,
        columns=_NAME_AND_AGE,
        short_names=("no",),
        has_status=True,
        complete=False,
    ),
    Kind(
        "Pod",
        Pod,
        "",
        ("v1",),
        "pods",
        namespaced=True,
        columns=_NAME_AND_AGE,
        short_names=("po",),
        has_status=True,
        complete=False,
    ),
    Kind(
        "Namespace",
        Namespace,
        "",
        ("v1",),
        "namespaces",
        namespaced=False,
        columns=_NAME_AND_AGE,
        short_names=("ns",),
        has_status=True,
        complete=False,
    ),
)

_BY_API: Final = {
    (api_version, kind.name): kind for kind in KINDS for api_version in kind.api_versions
}
_BY_NAME: Final = {
    name: kind for kind in KINDS for name in (kind.plural, kind.singular, *kind.short_names)
}


def kind_of(api_version: str, kind: str) -> Kind | None:
    """The kind an object says it is of, in any served version."""
    return _BY_API.get((api_version, kind))


def kind_named(name: str) -> Kind | None:
    """The kind a user means by a plural, singular or short name, in any case."""
    return _BY_NAME.get(name.lower())
