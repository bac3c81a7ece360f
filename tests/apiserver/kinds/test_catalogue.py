"""The table of built-in resources as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from apiserver.kinds.circumstances import RESOURCES
from drayman.api.schema import ListOf, MapOf, Message, schema_for
from drayman.api.schema.openapi.descriptions import field_description, message_description
from drayman.apiserver.served.resources import ApiResource

NAMED = [pytest.param(resource, id=resource.qualified) for resource in RESOURCES.values()]


@pytest.mark.parametrize("resource", NAMED)
def test_every_served_version_has_a_schema(resource: ApiResource) -> None:
    """Bodies of every resource can be decoded in every version it is served in."""
    for version in resource.versions:
        assert schema_for(resource.group, version, resource.kind) is not None


@pytest.mark.parametrize("resource", NAMED)
def test_status_endpoints_leave_the_spec_alone(resource: ApiResource) -> None:
    """No status endpoint lets field owners claim anything of the spec."""
    status = resource.subresource("status")
    if status is not None:
        assert status.strategy is not None
        assert ("spec",) in status.strategy.reset_fields


@pytest.mark.parametrize("resource", NAMED)
def test_tables_name_their_objects(resource: ApiResource) -> None:
    """Every table has one column with the object's name, which clients look for by its format."""
    formats = Counter(column.format for column in resource.columns)
    if "get" in resource.verbs:
        assert formats["name"] == 1


def _inside(message: Message) -> Iterator[Message]:
    """The messages that fields of a message hold."""
    for field in message.fields.values():
        type_ = field.type
        while isinstance(type_, ListOf | MapOf):
            type_ = type_.item if isinstance(type_, ListOf) else type_.value
        if isinstance(type_, Message):
            yield type_


@pytest.mark.parametrize("resource", NAMED)
def test_everything_is_explained(resource: ApiResource) -> None:
    """`kubectl explain` has something to say about every kind and every field, down to the last, in every version."""
    waiting = [schema_for(resource.group, version, resource.kind) for version in resource.versions]
    seen: set[tuple[str, str]] = set()
    while waiting:
        message = waiting.pop()
        assert message is not None
        if (message.package, message.name) in seen:
            continue
        seen.add((message.package, message.name))
        assert message_description(message), message.name
        missing = [name for name in message.fields if not field_description(message, name)]
        assert missing == [], message.name
        waiting.extend(_inside(message))


def test_short_names_are_unambiguous() -> None:
    """A short name stands for one kind, in however many groups that kind is shown."""
    owners: dict[str, set[str]] = {}
    for resource in RESOURCES.values():
        for name in resource.short_names:
            owners.setdefault(name, set()).add(resource.kind)
    assert all(len(kinds) == 1 for kinds in owners.values())


def test_category_all_is_what_users_expect() -> None:
    """`kubectl get all` lists what runs pods, the pods, and services."""
    found = {resource.plural for resource in RESOURCES.values() if "all" in resource.categories}
    assert found == {
        "pods",
        "services",
        "daemonsets",
        "deployments",
        "replicasets",
        "replicationcontrollers",
        "statefulsets",
        "jobs",
        "cronjobs",
        "horizontalpodautoscalers",
    }
