"""The tables of messages: what they say, and that all of them can be read."""

from __future__ import annotations

import importlib.resources

import pytest

from drayman.api.schema import (
    ListOf,
    MapOf,
    Message,
    Omit,
    Scalar,
    ScalarKind,
    message_named,
    schema_for,
)
from drayman.api.schema.tables import package_messages

PACKAGES = sorted(
    entry.name.removesuffix(".txt").replace("_", "/")
    for entry in (importlib.resources.files("drayman.api.schema") / "data").iterdir()
    if entry.name.endswith(".txt")
)


def kind(group: str, version: str, name: str) -> Message:
    found = schema_for(group, version, name)
    assert found is not None
    return found


def child(message: Message, *names: str) -> Message:
    """The message that a path of fields leads to, through lists and maps."""
    for name in names:
        type_ = message.fields[name].type
        while isinstance(type_, ListOf | MapOf):
            type_ = type_.item if isinstance(type_, ListOf) else type_.value
        assert isinstance(type_, Message)
        message = type_
    return message


@pytest.mark.parametrize("package", PACKAGES)
def test_every_table_is_well_formed(package: str) -> None:
    """Every message of every package resolves, and no protobuf number is used twice in one."""
    messages = package_messages(package)
    assert messages
    for message in messages.values():
        numbers = [f.number for f in message.by_number.values()] + list(message.inlined)
        assert len(numbers) == len(set(numbers)), message
        for field in message.fields.values():
            assert field.type.native
            if field.list_keys:
                assert set(field.list_keys) <= child(message, field.name).fields.keys(), field


def test_unknown_kinds_have_no_schema() -> None:
    """Neither an unknown group version nor an unknown kind, nor a message that is no kind, is found."""
    assert schema_for("nope.example", "v1", "Thing") is None
    assert schema_for("", "v1", "Thing") is None
    assert schema_for("", "v1", "PodSpec") is None


def test_kinds_have_their_type_first() -> None:
    """Objects are written with kind and apiVersion before everything else."""
    assert list(kind("", "v1", "Pod").fields) == [
        "kind",
        "apiVersion",
        "metadata",
        "spec",
        "status",
    ]


def test_field_facts() -> None:
    """A field tells how it is encoded, merged, owned and written."""
    ports = child(kind("", "v1", "Pod"), "spec", "containers").fields["ports"]
    assert (ports.number, ports.list_type, ports.list_keys) == (
        6,
        "map",
        ("containerPort", "protocol"),
    )
    assert (ports.merge_key, ports.merge_strategies) == ("containerPort", {"merge"})
    assert child(kind("", "v1", "Service"), "spec", "ports").fields["protocol"].default == "TCP"
    volumes = child(kind("", "v1", "Pod"), "spec").fields["volumes"]
    assert volumes.merge_strategies == {"merge", "retainKeys"}
    pool = child(kind("resource.k8s.io", "v1", "ResourceSlice"), "spec", "pool")
    assert pool.fields["generation"].omit is Omit.NEVER
    assert message_named("meta/v1.LabelSelector").is_atomic
    assert child(kind("", "v1", "Service"), "spec").fields["selector"].is_atomic


def test_inlined_fields_belong_to_the_message() -> None:
    """The fields of an inlined message appear in JSON, and only its number in protobuf."""
    volume = child(kind("", "v1", "Pod"), "spec", "volumes")
    assert "emptyDir" in volume.fields
    assert volume.inlined[2].name == "VolumeSource"
    assert [field.name for field in volume.by_number.values()] == ["name"]


@pytest.mark.parametrize(
    ("message", "field", "native"),
    [
        ("meta/v1.ObjectMeta", "labels", "map[string]string"),
        ("meta/v1.ObjectMeta", "uid", "types.UID"),
        ("core/v1.PodSpec", "containers", "[]v1.Container"),
        ("core/v1.PodSpec", "restartPolicy", "v1.RestartPolicy"),
        ("core/v1.ResourceRequirements", "limits", "v1.ResourceList"),
        (
            "resource/v1beta1.BasicDevice",
            "capacity",
            "map[v1beta1.QualifiedName]v1beta1.DeviceCapacity",
        ),
        ("core/v1.Secret", "data", "map[string][]uint8"),
    ],
)
def test_native_type_names(message: str, field: str, native: str) -> None:
    """Types have the names that error messages use."""
    assert message_named(message).fields[field].type.native == native


def test_messages_may_contain_themselves() -> None:
    """A JSON schema holds JSON schemas."""
    schema = message_named("apiextensions/v1.JSONSchemaProps")
    assert child(schema, "properties") is schema
    assert schema.fields["items"].type == Scalar(
        ScalarKind.SCHEMA_OR_ARRAY, "v1.JSONSchemaPropsOrArray"
    )
