"""Values against schemas, pruning, defaults, paths and columns, each on their own."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.extensions.columns import cell_value
from drayman.apiserver.extensions.correlation import Correlation
from drayman.apiserver.extensions.defaulting import set_defaults
from drayman.apiserver.extensions.identifiers import identifier
from drayman.apiserver.extensions.list_types import list_type_errors
from drayman.apiserver.extensions.paths import JsonPathError, parse_json_path
from drayman.apiserver.extensions.pruning import prune
from drayman.apiserver.extensions.scalar_checks import go_number
from drayman.apiserver.extensions.text_formats import text_format
from drayman.apiserver.extensions.value_checks import value_errors
from drayman.cel.libraries.formats import FORMATS as NAMED_FORMATS
from drayman.cel.libraries.formats import validate
from drayman.cel.values import NONE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STRING = {"type": "string"}
CHECKED = {
    "too long": ("abc", {"type": "string", "maxLength": 2}, ["FieldValueTooLong"]),
    "characters, not bytes": ("äöü", {"type": "string", "maxLength": 3}, []),
    "too short": ("", {"type": "string", "minLength": 1}, ["FieldValueInvalid"]),
    "too few items": ([], {"type": "array", "minItems": 1}, ["FieldValueInvalid"]),
    "too many properties": (
        {"a": 1},
        {"type": "object", "maxProperties": 0},
        ["FieldValueTooMany"],
    ),
    "exclusive maximum": (
        5,
        {"type": "integer", "maximum": 5, "exclusiveMaximum": True},
        ["FieldValueInvalid"],
    ),
    "whole number written as a fraction": (2.0, {"type": "integer"}, []),
    "integer as number": (2, {"type": "number"}, []),
    "beyond int32": (2**31, {"type": "integer", "format": "int32"}, ["FieldValueInvalid"]),
    "true is no 1": (True, {"enum": [1]}, ["FieldValueNotSupported"]),
    "null where allowed": (None, {"type": "string", "nullable": True}, []),
    "null where not": (None, STRING, ["FieldValueTypeInvalid"]),
    "forbidden member": (
        {"a": 1},
        {"type": "object", "additionalProperties": False},
        ["FieldValueInvalid"],
    ),
    "not": ("a", {"type": "string", "not": {"enum": ["a"]}}, ["FieldValueInvalid"]),
    "any of": (
        5,
        {"type": "integer", "anyOf": [{"maximum": 1}, {"minimum": 4}]},
        [],
    ),
    "one of two that both fit": (
        5,
        {"type": "integer", "oneOf": [{"minimum": 1}, {"minimum": 4}]},
        ["FieldValueInvalid"],
    ),
}


@pytest.mark.parametrize("case", CHECKED)
def test_value_against_schema(case):
    """The reasons of the errors of a value."""
    value, schema, reasons = CHECKED[case]
    assert [error.reason for error in value_errors(value, schema)] == reasons


FORMATS = {
    "date-time": ("2024-01-02T03:04:05Z", "2024-13-02T03:04:05Z"),
    "date": ("2024-01-02", "2024-1-2"),
    "duration": ("1h30m", "soon"),
    "ipv4": ("10.0.0.1", "10.0.0"),
    "ipv6": ("::1", "1.2.3.4"),
    "cidr": ("10.0.0.0/8", "10.0.0.0"),
    "mac": ("00:11:22:33:44:55", "00:11"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123"),
    "uuid4": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
    "email": ("a@example.com", "example.com"),
    "uri": ("https://example.com/a", "not a uri"),
    "hostname": ("a.example.com", "-a"),
    "byte": ("aGk=", "a"),
    "isbn10": ("0321751043", "0321751044"),
    "isbn13": ("978-0321751041", "978-0321751042"),
    "creditcard": ("4111 1111 1111 1111", "4111 1111 1111 1112"),
    "hexcolor": ("#ffffff", "#ff"),
    "rgbcolor": ("rgb(255, 0,1)", "rgb(256,0,0)"),
    "k8s-short-name": ("a-b", "A"),
    "k8s-long-name": ("a.b", "a_b"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_text_formats(name):
    """Each format takes what it is for and refuses something near it."""
    test = text_format(name)
    good, bad = FORMATS[name]
    assert test is not None
    assert (test(good), test(bad)) == (True, False)


EDGES = {
    "a day of a week is no date": ("date", "2006-W01-1", False),
    "an ordinal day is no date": ("date", "2006-001", False),
    "a year 0": ("date", "0000-01-01", True),
    "a leap day in the year 0": ("date", "0000-02-29", True),
    "a day that the month lacks": ("date", "1900-02-29", False),
    "a leap second": ("date-time", "2016-12-31T23:59:60Z", False),
    "a year 0 with a time": ("date-time", "0000-01-01T00:00:00Z", True),
    "a day of a week with a time": ("date-time", "2006-W01-1T00:00:00Z", False),
    "a zone of an address": ("ipv6", "fe80::1%eth0", False),
    "an address of both families": ("ipv4", "::ffff:1.2.3.4", True),
    "an address of both families, again": ("ipv6", "::ffff:1.2.3.4", True),
    "a mask": ("cidr", "10.0.0.0/255.0.0.0", False),
    "an address within its network": ("cidr", "10.1.2.3/8", True),
    "seven octets": ("mac", "00:11:22:33:44:55:66", False),
    "eight octets with dots": ("mac", "0011.2233.4455.6677", True),
    "a path with a bad escape": ("uri", "/a%zz", False),
    "a path with a space": ("uri", "/a b", True),
    "a relative path": ("uri", "a/b", False),
    "two dashes in a single label": ("hostname", "a-b-c", False),
    "letters of another script": ("hostname", "bücher.example", True),
    "a last label of one letter": ("hostname", "a.b", False),
    "no bytes": ("byte", "", False),
}


@pytest.mark.parametrize("case", EDGES)
def test_text_formats_at_their_edges(case):
    """Texts that Python's own readers of a format and upstream's judge differently are judged as upstream does."""
    name, text, is_one = EDGES[case]
    test = text_format(name)
    assert test is not None
    assert test(text) is is_one


@given(
    name=st.sampled_from([("uri", "uri"), ("uuid", "uuid"), ("byte", "byte")])
    | st.sampled_from([("date", "date"), ("date-time", "datetime")]),
    text=st.from_regex(r"[0-9]{4}-[0-9W]{2}-[0-9]{1,2}([tT ][0-9]{2}:[0-9]{2}:[0-9]{2}[zZ]?)?")
    | st.text("0123456789-:TZWa/%=", max_size=40),
)
def test_a_format_of_schemas_is_the_one_of_expressions(name, text):
    """A text has a format in a schema if and only if an expression that names the format finds nothing wrong with it."""
    of_schemas, of_expressions = name
    test = text_format(of_schemas)
    assert test is not None
    assert test(text) == (validate(NAMED_FORMATS[of_expressions], text) is NONE)


def test_list_maps_and_sets_have_nothing_twice():
    """A repeated item or key is told once, at its second place."""
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object"},
    }
    found = list(list_type_errors([{"k": 1}, {"k": 2}, {"k": 1}, {"k": 1}], keyed, "l"))
    assert [str(error) for error in found] == ['l[2]: Duplicate value: {"k":1}']
    found = list(list_type_errors(["a", "a"], {"x-kubernetes-list-type": "set"}, "s"))
    assert [error.path for error in found] == ["s[1]"]


def test_correlation_follows_keys_not_positions():
    """A list that is a map is unchanged in another order; any other list is not."""
    items = {"type": "object", "properties": {"k": {"type": "integer"}}}
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": items,
    }
    one, other = [{"k": 1}, {"k": 2}], [{"k": 2}, {"k": 1}]
    assert Correlation(one, other, keyed).unchanged
    assert not Correlation(one, other, {"type": "array", "items": items}).unchanged


PATHS = {
    ".a.b": [1],
    ".a['b']": [1],
    ".list[0].n": ["x"],
    ".list[-1].n": ["y"],
    ".list[*].n": ["x", "y"],
    '.list[?(@.n=="y")].v': [2],
    ".list[?(@.v>1)].n": ["y"],
    ".missing.path": [],
    "..n": ["x", "y"],
}


@pytest.mark.parametrize("path", PATHS)
def test_json_paths(path):
    """What a JSONPath finds in an object."""
    obj = {"a": {"b": 1}, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}]}
    assert parse_json_path(path).find(obj) == PATHS[path]


def test_a_json_path_that_is_none():
    """Unfinished filters and brackets are refused."""
    with pytest.raises(JsonPathError):
        parse_json_path(".a[?(@.b")


def test_cells():
    """A value that is not of the column's type is not shown."""
    assert cell_value(4, "integer", NOW) == 4
    assert cell_value("4", "integer", NOW) is None
    assert cell_value("2025-12-31T23:59:00Z", "date", NOW) == "60s"
    assert cell_value("x", "date", NOW) == "<invalid>"
    assert cell_value({"a": 1}, "string", NOW) == '{"a":1}'


def test_identifiers():
    """Names of fields as rules write them."""
    written = {
        "a": "a",
        "if": "__if__",
        "a-b": "a__dash__b",
        "a__b": "a__underscores__b",
        "1": None,
    }
    assert {name: identifier(name) for name in written} == written


def test_numbers_as_go_prints_them():
    """Whole, fractional, large and small."""
    numbers = {10: "10", 0.5: "0.5", 1e21: "1e+21", 1e-7: "1e-07", 2.0: "2", -3: "-3"}
    assert {number: go_number(number) for number in numbers} == numbers


names = st.sampled_from("abc")
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.text("xy", max_size=2)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)
)
schemas = st.recursive(
    st.builds(
        lambda kind, default, nullable: {"type": kind, "default": default, "nullable": nullable},
        st.sampled_from(["string", "integer", "boolean"]),
        scalars,
        st.booleans(),
    ),
    lambda inner: (
        st.builds(lambda p: {"type": "object", "properties": p}, st.dictionaries(names, inner))
        | st.builds(lambda i: {"type": "array", "items": i}, inner)
        | st.builds(lambda a: {"type": "object", "additionalProperties": a}, inner)
        | st.just({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    ),
    max_leaves=6,
)


@given(value=values, schema=schemas)
def test_pruning_twice_is_pruning_once(value, schema):
    """What is pruned has nothing left that is unknown."""
    prune(value, schema)
    once = deepcopy(value)
    assert prune(value, schema) == []
    assert value == once


@given(value=values, schema=schemas)
def test_defaults_are_stable(value, schema):
    """Setting defaults again changes nothing, and never changes what is pruned."""
    prune(value, schema)
    set_defaults(value, schema)
    once = deepcopy(value)
    set_defaults(value, schema)
    assert value == once


@given(value=values, schema=schemas)
def test_an_unchanged_value_has_no_errors_on_update(value, schema):
    """Whatever is wrong with a value, leaving it as it is is allowed."""
    correlation = Correlation(value, deepcopy(value), schema)
    assert correlation.unchanged
    assert value_errors(value, schema, "", correlation) == []
