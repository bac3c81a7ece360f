"""The group of devices: resource.k8s.io."""

from __future__ import annotations

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
from drayman.api.validation import SelectorChecker
from drayman.apiserver.kinds import pool_status
from drayman.apiserver.kinds.dra import (
    DeviceKindConversion,
    DeviceKindStatusStrategy,
    DeviceKindStrategy,
)
from drayman.apiserver.kinds.reading import items_at, text_at
from drayman.apiserver.kinds.tables import (
    AGE,
    NAME,
    NAME_AND_AGE,
    column,
    number,
    since,
    text,
)
from drayman.apiserver.served.acting import Acting, Part, by, nobody
from drayman.apiserver.served.resources import ApiResource, Column, Subresource
from drayman.apiserver.served.strategy import Object

VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
RULE_VERSIONS: Final = ("v1beta2", "v1alpha3")
REQUEST_VERSIONS: Final = ("v1alpha3",)
_LAST: Final = {
    "v1beta1": ("1.35", "1.38"),
    "v1beta2": ("1.36", "1.39"),
    "v1alpha3": ("1.36", "1.39"),
}
"""Since when a version is deprecated, and when it will be gone."""


def _deprecations(kind: str, *versions: str) -> dict[str, str]:
    return {
        version: f"{GROUP}/{version} {kind} is deprecated in v{since_}+, unavailable in v{until}+"
        for version in versions
        for since_, until in (_LAST[version],)
    }


def _claim_state(obj: Object, _now: datetime) -> str:
    return claim_state(convert(ResourceClaim, obj))


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
    plural: str,
    selectors: SelectorChecker,
    *,
    acting: Acting,
    namespaced: bool,
    columns: tuple[Column, ...],
    has_generation: bool = False,
    has_status: bool = False,
) -> ApiResource:
    kind = type_.__name__
    rule = type_ is DeviceTaintRule
    status = Subresource(name="status", strategy=DeviceKindStatusStrategy(type_))
    return ApiResource(
        group=GROUP,
        versions=RULE_VERSIONS if rule else VERSIONS,
        kind=kind,
        plural=plural,
        namespaced=namespaced,
        acting=acting,
        strategy=DeviceKindStrategy(type_, selectors),
        conversion=DeviceKindConversion(kind),
        columns=columns,
        has_generation=has_generation,
        answers_with_deleted_object=True,
        subresources=(status,) if has_status else (),
        deprecations=_deprecations(kind, "v1alpha3")
        if rule
        else _deprecations(kind, "v1beta1", "v1beta2"),
        selectable=_SLICE_FIELDS if type_ is ResourceSlice else {},
    )


_SLICE_FIELDS: Final = {
    "spec.nodeName": lambda obj: text_at(obj, "spec", "nodeName"),
    "spec.driver": lambda obj: text_at(obj, "spec", "driver"),
}


def _total(name: str, member: str) -> Column:
    return column(name, lambda obj, _now: pool_status.total_of(obj, member))


POOL_STATUS_REQUESTS: Final = ApiResource(
    group=GROUP,
    versions=REQUEST_VERSIONS,
    kind="ResourcePoolStatusRequest",
    plural="resourcepoolstatusrequests",
    acting=nobody("no controller answers it here: its status stays empty"),
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
)


def device_resources(selectors: SelectorChecker) -> tuple[ApiResource, ...]:
    """All of the group. `selectors` says what is wrong with a CEL expression."""
    return (
        _resource(
            DeviceClass,
            "deviceclasses",
            selectors,
            acting=by(Part.SCHEDULER, effect="devices are chosen by it"),
            namespaced=False,
            columns=NAME_AND_AGE,
            has_generation=True,
        ),
        _resource(
            ResourceClaim,
            "resourceclaims",
            selectors,
            acting=by(
                Part.SCHEDULER,
                Part.CONTROLLERS,
                Part.NODES,
                effect="devices are allocated, reserved, prepared in name only, and released",
            ),
            namespaced=True,
            columns=(
                NAME,
                column("State", _claim_state),
                AGE,
                column("Node", _claim_nodes, wide=True),
                column("Devices", _claim_devices, wide=True),
            ),
            has_status=True,
        ),
        _resource(
            ResourceClaimTemplate,
            "resourceclaimtemplates",
            selectors,
            acting=by(
                Part.SCHEDULER, Part.CONTROLLERS, effect="the claims of pods are made from it"
            ),
            namespaced=True,
            columns=NAME_AND_AGE,
        ),
        _resource(
            ResourceSlice,
            "resourceslices",
            selectors,
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
        ),
        _resource(
            DeviceTaintRule,
            "devicetaintrules",
            selectors,
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
        POOL_STATUS_REQUESTS,
    )
