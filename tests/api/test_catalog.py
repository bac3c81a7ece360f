"""The table of kinds."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api import codec
from drayman.api.catalog import KINDS, Kind, kind_of, kind_of_type
from drayman.api.resource import ResourceClaim, claim_state


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_kinds_are_found(kind: Kind) -> None:
    """A kind is found by its type, and one that files are read as by every version it can be read in."""
    assert kind_of_type(kind.type) is kind
    assert {kind_of(each, kind.name) for each in kind.api_versions} == {
        kind if kind.loaded else None
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_types_say_what_they_are(kind: Kind) -> None:
    """An object of a type without any field says its kind, and the version that it is written in."""
    value = codec.to_dict(kind.type())
    assert (value["apiVersion"], value["kind"]) == (kind.api_version, kind.name)
    assert kind.api_version == kind.api_versions[0]


def test_every_kind_is_there_once() -> None:
    """No two rows are about one kind of a group, or one plural."""
    assert len({(kind.group, kind.name) for kind in KINDS}) == len(KINDS)
    assert len({(kind.group, kind.plural) for kind in KINDS}) == len(KINDS)


def test_unknown_kinds_are_none() -> None:
    """What is not in the table is not an error, nor is a kind of which files are handed on as they are."""
    assert kind_of("apps/v1", "Deployment") is None
    assert kind_of("resource.k8s.io/v1alpha3", "ResourceClaim") is None
    assert kind_of("example.com/v1", "Thing") is None


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
    """The state says what a claim is, in the words of kubectl."""
    assert claim_state(codec.convert(ResourceClaim, value)) == state
