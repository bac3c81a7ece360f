"""Literals of well-known messages."""

from __future__ import annotations

import pytest

from cel.environments import LANGUAGE, LIMIT, device, evaluate
from drayman.cel.device import compile_selector
from drayman.cel.errors import CompileError
from drayman.cel.times import Duration, Timestamp
from drayman.cel.values import MapValue, UInt


@pytest.mark.parametrize(
    ("literal", "want"),
    [
        ("BoolValue{value: true}", True),
        ("BytesValue{value: b'a'}", b"a"),
        ("DoubleValue{value: 0.1}", 0.1),
        ("FloatValue{value: 0.1}", 0.10000000149011612),
        ("FloatValue{value: -1e300}", float("-inf")),
        ("Int32Value{value: 7}", 7),
        ("Int64Value{}", 0),
        ("Int64Value{value: 1, value: 2}", 2),
        ("Int64Value{?value: optional.none()}", 0),
        ("StringValue{value: text}", "abc"),
        ("UInt64Value{value: 3u}", UInt(3)),
        ("Timestamp{seconds: 5, nanos: 7}", Timestamp(5_000_000_007)),
        ("Duration{seconds: -1}", Duration(-1_000_000_000)),
        (
            "Struct{fields: {'a': dyn(1), 'b': dyn([dyn(b'a'), dyn(null)])}}",
            {"a": 1.0, "b": ["YQ==", None]},
        ),
        ("ListValue{values: [duration('1s')]}", ["1s"]),
        ("Value{}", None),
        ("Value{string_value: 'a', bool_value: true}", True),
        ("NullValue.NULL_VALUE", 0),
    ],
)
def test_values(literal: str, want: object) -> None:
    """A message is the plain value that it stands for."""
    found = evaluate(f"google.protobuf.{literal}", text="abc")
    assert found == want
    assert isinstance(found, MapValue) == isinstance(want, dict)


@pytest.mark.parametrize(
    "literal",
    [
        "Int64Value{value: dyn('a')}",
        "Int32Value{value: 2147483648}",
        "UInt32Value{value: 4294967296u}",
        "Timestamp{nanos: 3000000000}",
        "Struct{fields: {dyn(1): 1}}",
        "ListValue{values: [type(1)]}",
        "Any{}",
        "Int64Value{value: 1 / 0}",
        "Int64Value{?value: dyn(1)}",
    ],
)
def test_failures(literal: str) -> None:
    """Fields of the wrong type or size make the literal an error, which costs as much as the message."""
    found = LANGUAGE.compile(f"google.protobuf.{literal}").evaluate({}, LIMIT)
    assert found.error is not None
    assert found.cost >= 40


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("google.protobuf.Int64Value{val: 1} == 1", "undefined field 'val'"),
        (
            "google.protobuf.Int64Value{value: 'a'} == 1",
            "expected type of field 'value' is 'int' but provided type is 'string'",
        ),
        ("google.protobuf.Int64Value{} == 1u", "applied to '\\(wrapper\\(int\\), uint\\)'"),
        ("google.protobuf.Int64Value{}.value == 1", "does not support field selection"),
        ("google.protobuf.Int64Value == int", "reference to undefined type"),
        ("google.protobuf.BoolValue{}", "must evaluate to bool or the unknown type"),
        ("google.protobuf.FieldMask{} == 1", "undeclared reference"),
        ("int{} == 1", "'int' is not a message type"),
        ("device{} == 1", "is not a type"),
        ("kubernetes.DRADevice{driver: 1} == device", "expected type of field 'driver'"),
    ],
)
def test_compile_errors(expression: str, message: str) -> None:
    """Messages are checked like everything else."""
    with pytest.raises(CompileError, match=message):
        compile_selector(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "google.protobuf.Int64Value{value: 1} + 1 == 2",
        "[google.protobuf.Int64Value{value: 1}, 1] == [1, 1]",
        "google.protobuf.Int64Value{} != null",
        "true ? true : google.protobuf.BoolValue{}",
        "google.protobuf.StringValue{value: 'a'}.startsWith('a')",
        "google.protobuf.Value{bool_value: true}",
    ],
)
def test_wrappers_fit(expression: str) -> None:
    """A wrapper goes wherever the wrapped type goes, and can be compared with null."""
    assert compile_selector(expression).matches("gpu.example.com", device())


def test_objects_cannot_be_built() -> None:
    """The type of a device can be written as a literal, but there is no such value."""
    found = compile_selector("kubernetes.DRADevice{} == device").evaluate("d", device())
    assert str(found.error) == "unknown type"
