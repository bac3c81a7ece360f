"""The table of kinds."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api import codec
from drayman.api.catalog import KINDS, Kind, kind_named, kind_of
from drayman.api.resource import ResourceClaim


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_kinds_are_found(kind: Kind) -> None:
    """A kind is found by every version it is served in and by every name people use."""
    assert kind.type.__name__ == kind.name
    for api_version in kind.api_versions:
        assert kind_of(api_version, kind.name) is kind
    for name in (kind.plural, kind.singular, kind.name, *kind.short_names):
        assert kind_named(name) is kind


def test_unknown_kinds_are_none() -> None:
    """What is not in the table is not an error."""
    assert kind_of("apps/v1", "Deployment") is None
    assert kind_of("resource.k8s.io/v1alpha3", "ResourceClaim") is None
    assert kind_named("deployments") is None


ALLOCATED = {"allocation": {}}
STATES: dict[str, tuple[dict[str, Any], str]] = {
    "new": ({}, "pending"),
    "allocated": ({"status": ALLOCATED}, "allocated"),
    "reserved": ({"status": {**ALLOCATED, "reservedFor": [{"uid": "u"}]}}, "allocated,reserved"),
    "going": (
        {"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}, "status": ALLOCATED},
        "deleted,allocated",
    ),
    "gone": ({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}}, "deleted"),
}


@pytest.mark.parametrize(("value", "state"), STATES.values(), ids=STATES)
def test_state_of_a_claim(value: dict[str, Any], state: str) -> None:
    """The state column says what a claim is, in the words of kubectl."""
    kind = kind_named("resourceclaim")
    assert kind is not None
    (column,) = (column for column in kind.columns if column.name == "State")
    assert column.cell(codec.convert(ResourceClaim, value)) == state


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_columns_of_an_empty_object(kind: Kind) -> None:
    """Every column has a text for an object without any field, and the last one is its age."""
    assert all(isinstance(column.cell(kind.type()), str) for column in kind.columns)
    assert kind.columns[-1].name == "Age"
