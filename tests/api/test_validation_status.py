"""The status of claims, and admin access."""

from __future__ import annotations

import pytest

from api.objects import (
    CLAIM,
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    RESULT,
    STATUS,
    TEMPLATE,
    TOO_LONG,
    TOO_MANY,
    Expected,
    Json,
    changed,
    decoded,
    found,
)
from drayman.api import validation
from drayman.api.core import Namespace
from drayman.api.meta import ObjectMeta
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate

UID = "12345678-1234-1234-1234-123456789abc"
CASES: dict[str, tuple[Json, Json, Expected]] = {
    "allocated": ({}, STATUS, set()),
    "deallocated": (STATUS, {}, set()),
    "reserved only": (
        {},
        {"reservedFor": STATUS["reservedFor"]},
        {("status.reservedFor", FORBIDDEN)},
    ),
    "empty reservation": (
        STATUS,
        changed(STATUS, {"reservedFor": [{}]}),
        {(f"status.reservedFor[0].{name}", REQUIRED) for name in ("resource", "name", "uid")},
    ),
    "reserved twice": (
        STATUS,
        changed(STATUS, {"reservedFor": STATUS["reservedFor"] * 2}),
        {("status.reservedFor[1]", DUPLICATE)},
    ),
    "257 reservations": (
        STATUS,
        changed(STATUS, {"reservedFor": [{"uid": str(i)} for i in range(257)]}),
        {("status.reservedFor", TOO_MANY)},
    ),
    "changed allocation": (
        STATUS,
        changed(STATUS, {"allocation/devices/results": [{**RESULT, "pool": "q"}], "devices": []}),
        {("status.allocation", INVALID)},
    ),
    "33 results": (
        {},
        changed(STATUS, {"allocation/devices/results": [RESULT] * 33}),
        {("status.allocation.devices.results", TOO_MANY)},
    ),
    "empty result": (
        {},
        changed(STATUS, {"allocation/devices/results": [{}], "devices": []}),
        {
            ("status.allocation.devices.results[0].request", INVALID),
            ("status.allocation.devices.results[0].driver", REQUIRED),
            ("status.allocation.devices.results[0].pool", REQUIRED),
            ("status.allocation.devices.results[0].device", INVALID),
        },
    ),
    "share": (
        {},
        changed(
            STATUS,
            {"allocation/devices/results": [{**RESULT, "shareID": UID.upper()}], "devices": []},
        ),
        {("status.allocation.devices.results[0].shareID", INVALID)},
    ),
    "config": (
        {},
        changed(STATUS, {"allocation/devices/config": [{"source": "Here"}, {}]}),
        {
            ("status.allocation.devices.config[0].source", NOT_SUPPORTED),
            ("status.allocation.devices.config[0].opaque", REQUIRED),
            ("status.allocation.devices.config[1].source", REQUIRED),
            ("status.allocation.devices.config[1].opaque", REQUIRED),
        },
    ),
    "no terms": (
        {},
        changed(STATUS, {"allocation/nodeSelector": {}}),
        {("status.allocation.nodeSelector.nodeSelectorTerms", REQUIRED)},
    ),
    "device that is not allocated": (
        {},
        changed(STATUS, {"devices/0/device": "gpu-9"}),
        {("status.devices[0]", INVALID)},
    ),
    "device of another share": (
        {},
        changed(STATUS, {"devices/0/shareID": UID}),
        {("status.devices[0]", INVALID)},
    ),
    "conditions": (
        {},
        changed(
            STATUS, {"devices/0/conditions": [{"type": "a b", "status": "Maybe", "reason": "!"}]}
        ),
        {
            ("status.devices[0].conditions[0].type", INVALID),
            ("status.devices[0].conditions[0].status", NOT_SUPPORTED),
            ("status.devices[0].conditions[0].lastTransitionTime", REQUIRED),
            ("status.devices[0].conditions[0].reason", INVALID),
        },
    ),
    "network": (
        {},
        changed(
            STATUS,
            {
                "devices/0/networkData": {
                    "interfaceName": "x" * 257,
                    "hardwareAddress": "x" * 129,
                    "ips": [
                        "10.0.0.1/8",
                        "10.0.0.1",
                        "2001:DB8::1/64",
                        "10.0.0.01/8",
                        "10.0.0.1/33",
                        "10.0.0.1/8",
                    ],
                }
            },
        ),
        {
            ("status.devices[0].networkData.interfaceName", TOO_LONG),
            ("status.devices[0].networkData.hardwareAddress", TOO_LONG),
            *((f"status.devices[0].networkData.ips[{index}]", INVALID) for index in (1, 2, 3, 4)),
            ("status.devices[0].networkData.ips[5]", DUPLICATE),
        },
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), CASES.values(), ids=CASES)
def test_claim_status(before: Json, after: Json, expected: Expected) -> None:
    """The status of a claim is refused for what breaks a rule; an allocation is set and removed, never changed."""
    old = decoded({**CLAIM, "status": before})
    new = decoded({**CLAIM, "status": after})
    assert isinstance(new, ResourceClaim)
    assert isinstance(old, ResourceClaim)
    kept = validation.without_stale_device_status(new, old)
    assert found(validation.validate_status(kept, old)) == expected


def test_reservations_while_deleting() -> None:
    """A claim that is being deleted gets no new users, and may lose those it has."""
    going = changed(CLAIM, {"metadata/deletionTimestamp": "2024-01-01T00:00:00Z"})
    reserved = decoded({**going, "status": STATUS})
    more = changed(
        STATUS,
        {"reservedFor": [*STATUS["reservedFor"], {"resource": "pods", "name": "q", "uid": "v"}]},
    )
    less = changed(STATUS, {"reservedFor": []})
    assert found(validation.validate_status(decoded({**going, "status": more}), reserved)) == {
        ("status.reservedFor", FORBIDDEN)
    }
    assert not validation.validate_status(decoded({**going, "status": less}), reserved)


@pytest.mark.parametrize("base", [CLAIM, TEMPLATE], ids=["claim", "template"])
def test_admin_access_needs_the_label(base: Json) -> None:
    """Admin access is refused in a namespace without the label, and an error where the namespace is not known."""
    at = "spec/devices" if base is CLAIM else "spec/spec/devices"
    value = decoded(changed(base, {f"{at}/requests/0/exactly/adminAccess": True}))
    assert isinstance(value, ResourceClaim | ResourceClaimTemplate)
    label = {"resource.kubernetes.io/admin-access": "true"}
    path = "spec.devices.requests[0].adminAccess"
    plain, labelled = Namespace(), Namespace(metadata=ObjectMeta(labels=label))
    assert found(list(validation.check_admin_access(value, plain))) == {(path, FORBIDDEN)}
    assert not list(validation.check_admin_access(value, labelled))
    assert found(list(validation.check_admin_access(value, None))) == {(path, "INTERNAL")}


def test_admin_access_that_was_granted_stays() -> None:
    """A status that already grants admin access is not questioned again."""
    granted = changed(STATUS, {"allocation/devices/results": [{**RESULT, "adminAccess": True}]})
    fresh, holder = decoded(CLAIM), decoded({**CLAIM, "status": granted})
    assert isinstance(fresh, ResourceClaim)
    assert isinstance(holder, ResourceClaim)
    path = "status.allocation.devices.results[0].adminAccess"
    assert found(list(validation.check_admin_access_status(holder, fresh, Namespace()))) == {
        (path, FORBIDDEN)
    }
    assert not list(validation.check_admin_access_status(holder, holder, Namespace()))
