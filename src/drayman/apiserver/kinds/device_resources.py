"""The group of devices: resource.k8s.io."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from drayman.api.codec import convert
from drayman.api.resource import (
    GROUP,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    claim_state,
)
from drayman.api.struct import ApiStruct
from drayman.apiserver.kinds import pool_status
from drayman.apiserver.kinds.dra import (
    DeviceKindConversion,
    DeviceKindStatusStrategy,
    DeviceKindStrategy,
)
from drayman.apiserver.kinds.reading import items_at, text_at, text_reader
from drayman.apiserver.kinds.tables import AGE, NAME, NAME_AND_AGE, column, number, since, text
from drayman.apiserver.served.acting import Acting, Part, by, nothing_acts
from drayman.apiserver.served.resources import ApiResource, Column, Subresource
from drayman.apiserver.served.strategy import Object

_LAST: Final = {
    "v1beta1": ("1.35", "1.38"),
    "v1beta2": ("1.36", "1.39"),
    "v1alpha3": ("1.36", "1.39"),
}
"""Since when a version is deprecated, and when it will be gone."""


def _deprecations(kind: str, versions: tuple[str, ...]) -> dict[str, str]:
    return {
        version: f"{GROUP}/{version} {kind} is deprecated in v{first}+, unavailable in v{gone}+"
        for version in versions
        for first, gone in (_LAST[version],)
    }


def _claim_nodes(obj: Object, _now: datetime) -> str:
    """Where the allocated devices are, as far as the allocation names nodes."""
    names = [
        value
        for term in items_at(obj, "status", "allocation", "nodeSelector", "nodeSelectorTerms")
        for field in (*items_at(term, "matchFields"), *items_at(term, "matchExpressions"))
        if text_at(field, "operator") == "In"
        for value in items_at(field, "values")
    ]
    return ",".join(names)


def _claim_devices(obj: Object, _now: datetime) -> str:
    results = items_at(obj, "status", "allocation", "devices", "results")
    return ",".join(
        "/".join(text_at(result, name) for name in ("driver", "pool", "device"))
        for result in results
    )


def _resource(
    type_: type[ApiStruct],
    *,
    acting: Acting,
    namespaced: bool = True,
    columns: tuple[Column, ...] = NAME_AND_AGE,
    has_generation: bool = False,
    has_status: bool = False,
    versions: tuple[str, ...] = ("v1", "v1beta2", "v1beta1"),
    selectable: Mapping[str, Callable[[Object], str]] | None = None,
) -> ApiResource:
    """A kind with typed rules. Every version but the first is deprecated."""
    kind = type_.__name__
    status = Subresource(name="status", strategy=DeviceKindStatusStrategy(type_))
    return ApiResource(
        group=GROUP,
        versions=versions,
        kind=kind,
        namespaced=namespaced,
        acting=acting,
        strategy=DeviceKindStrategy(type_),
        conversion=DeviceKindConversion(kind),
        columns=columns,
        has_generation=has_generation,
        answers_with_deleted_object=True,
        subresources=(status,) if has_status else (),
        deprecations=_deprecations(kind, versions[1:]),
        selectable=selectable or {},
    )


def _total(name: str, member: str) -> Column:
    return column(name, lambda obj, _now: pool_status.total_of(obj, member))


RESOURCES: Final = (
    _resource(
        DeviceClass,
        acting=by(Part.SCHEDULER, effect="devices are chosen by it"),
        namespaced=False,
        has_generation=True,
    ),
    _resource(
        ResourceClaim,
        acting=by(
            Part.SCHEDULER,
            Part.CONTROLLERS,
            Part.NODES,
            effect="devices are allocated, reserved, prepared in name only, and released",
        ),
        columns=(
            NAME,
            column("State", lambda obj, _now: claim_state(convert(ResourceClaim, obj))),
            AGE,
            column("Node", _claim_nodes, wide=True),
            column("Devices", _claim_devices, wide=True),
        ),
        has_status=True,
    ),
    _resource(
        ResourceClaimTemplate,
        acting=by(Part.SCHEDULER, Part.CONTROLLERS, effect="the claims of pods are made from it"),
    ),
    _resource(
        ResourceSlice,
        acting=by(
            Part.SCHEDULER,
            Part.NODES,
            effect="its devices are allocated; simulated hardware publishes its own",
        ),
        namespaced=False,
        columns=(
            NAME,
            column("Node", text("spec", "nodeName")),
            column("Driver", text("spec", "driver")),
            column("Pool", text("spec", "pool", "name")),
            AGE,
        ),
        has_generation=True,
        selectable={
            "spec.nodeName": text_reader("spec", "nodeName"),
            "spec.driver": text_reader("spec", "driver"),
        },
    ),
    _resource(
        DeviceTaintRule,
        versions=("v1beta2", "v1alpha3"),
        acting=by(
            Part.SCHEDULER,
            Part.CONTROLLERS,
            effect="tainted devices are avoided, and pods evicted from them",
        ),
        namespaced=False,
        columns=(
            NAME,
            column("Key", text("spec", "taint", "key")),
            column("Value", text("spec", "taint", "value")),
            column("Effect", text("spec", "taint", "effect")),
            column("TimeAdded", since("spec", "taint", "timeAdded")),
            AGE,
        ),
        has_generation=True,
        has_status=True,
    ),
    ApiResource(
        group=GROUP,
        versions=("v1alpha3",),
        kind="ResourcePoolStatusRequest",
        acting=nothing_acts("no controller answers it here: its status stays empty"),
        namespaced=False,
        strategy=pool_status.REQUEST,
        answers_with_deleted_object=True,
        requires_version_on_update=True,
        columns=(
            NAME,
            column("Driver", text("spec", "driver")),
            _total("Total", "totalDevices"),
            _total("Available", "availableDevices"),
            _total("Allocated", "allocatedDevices"),
            _total("Unavailable", "unavailableDevices"),
            column("Errors", lambda obj, _now: pool_status.problem_count(obj)),
            column("Pools", number("status", "poolCount"), "integer"),
            column("Status", pool_status.status_of),
            column("Completed", pool_status.completed),
        ),
        subresources=(Subresource(name="status", strategy=pool_status.STATUS),),
    ),
)
