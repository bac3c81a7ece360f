"""Named formats, and the names, labels and dates behind them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.cel.errors import EvaluationError
from drayman.cel.libraries.formats import FORMATS, named, validate
from drayman.cel.values import NONE, OptionalValue

LONG_LABEL, LONG_SUBDOMAIN = "a" * 64, "a" * 254


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dns1123Label", "my-label"),
        ("dns1123Label", "0"),
        ("dns1123Label", "a" * 63),
        ("dns1123Subdomain", "a.b"),
        ("dns1123Subdomain", "a-1.b-2"),
        ("dns1035Label", "a-1"),
        ("qualifiedName", "name"),
        ("qualifiedName", "example.com/My_Name.1"),
        ("dns1123LabelPrefix", "my-label-"),
        ("dns1123SubdomainPrefix", "my.label-"),
        ("dns1035LabelPrefix", "a-"),
        ("labelValue", ""),
        ("labelValue", "My_Value.1"),
        ("uri", "https://example.com"),
        ("uri", "/path"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000"),
        ("uuid", "123E4567E89B12D3A456426614174000"),
        ("byte", "YQ=="),
        ("byte", "YWI="),
        ("byte", "YWJj"),
        ("date", "2024-02-29"),
        ("date", "0000-02-29"),
        ("datetime", "2024-01-02T03:04:05Z"),
        ("datetime", "2024-01-02t03:04:05.123+01:00"),
    ],
)
def test_valid(name: str, text: str) -> None:
    """A text that has the format gives no reasons."""
    assert validate(FORMATS[name], text) is NONE


@pytest.mark.parametrize(
    ("name", "text", "reasons"),
    [
        ("dns1123Label", "My_Label", ["a lowercase RFC 1123 label must consist"]),
        ("dns1123Label", "a.b", ["must not contain dots"]),
        ("dns1123Label", LONG_LABEL, ["must be no more than 63 characters"]),
        (
            "dns1123Label",
            f"{LONG_LABEL}_",
            ["must be no more than 63 characters", "a lowercase RFC 1123"],
        ),
        ("dns1123Label", "", ["a lowercase RFC 1123 label must consist"]),
        ("dns1123Label", "a\n", ["a lowercase RFC 1123 label must consist"]),
        ("dns1123Label", "-a", ["a lowercase RFC 1123 label must consist"]),
        ("dns1123Subdomain", "a..b", ["a lowercase RFC 1123 subdomain must consist"]),
        ("dns1123Subdomain", LONG_SUBDOMAIN, ["must be no more than 253 characters"]),
        ("dns1035Label", "1a", ["a DNS-1035 label must consist"]),
        ("dns1123LabelPrefix", "-", ["a lowercase RFC 1123 label must consist"]),
        ("qualifiedName", "a/b/c", ["a valid label key must consist of alphanumeric"]),
        ("qualifiedName", "/b", ["prefix part must be non-empty"]),
        ("qualifiedName", "a/", ["name part must be non-empty", "name part must consist"]),
        ("qualifiedName", "A/b", ["prefix part a lowercase RFC 1123 subdomain"]),
        ("qualifiedName", LONG_LABEL, ["name part must be no more than 63 bytes"]),
        ("qualifiedName", f"{LONG_SUBDOMAIN}/b", ["prefix part must be no more than 253 bytes"]),
        ("labelValue", "-a", ["a valid label must be an empty string or consist"]),
        ("labelValue", "é" * 32, ["must be no more than 63 bytes", "a valid label must be"]),
        ("uri", "x", ['parse "x": invalid URI for request']),
        ("uuid", "x", ["does not match the UUID format"]),
        ("byte", "", ["invalid base64"]),
        ("byte", "YQ", ["invalid base64"]),
        ("date", "2023-02-29", ["invalid date"]),
        ("date", "1900-02-29", ["invalid date"]),
        ("date", "2024-13-01", ["invalid date"]),
        ("date", "2024-1-1", ["invalid date"]),
        ("date", "2024-04-31", ["invalid date"]),
        ("date", "2024-04-00", ["invalid date"]),
        ("datetime", "2024-01-02", ["invalid datetime"]),
        ("datetime", "2024-01-02T24:00:00Z", ["invalid datetime"]),
        ("datetime", "2024-01-02T03:60:05Z", ["invalid datetime"]),
        ("datetime", "2024-01-02T03:04:05", ["invalid datetime"]),
        ("datetime", "2024-02-30T03:04:05Z", ["invalid datetime"]),
    ],
)
def test_invalid(name: str, text: str, reasons: list[str]) -> None:
    """A text that has not gives each reason, in Kubernetes' words."""
    result = validate(FORMATS[name], text)
    assert isinstance(result.value, list)
    assert len(result.value) == len(reasons)
    assert all(got.startswith(want) for got, want in zip(result.value, reasons, strict=True))


def test_reason_in_full() -> None:
    """A reason ends with examples and the pattern."""
    assert validate(FORMATS["dns1035Label"], "A").value == [
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
        "start with an alphabetic character, and end with an alphanumeric character "
        "(e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
    ]


def test_named() -> None:
    """A format is found by its name; there are thirteen."""
    assert len(FORMATS) == 13
    assert all(named(name) == OptionalValue(format) for name, format in FORMATS.items())
    assert named("nosuch") is NONE


def test_equality() -> None:
    """A format equals itself, no other format, and cannot be compared with anything else."""
    label = FORMATS["dns1123Label"]
    assert label.equals(FORMATS["dns1123Label"])
    assert not label.equals(FORMATS["uuid"])
    with pytest.raises(EvaluationError):
        label.equals("dns1123Label")


@given(st.from_regex("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True))
def test_labels_are_also_more(label: str) -> None:
    """Every label is a subdomain, a label value and a qualified name; a dash behind it makes a prefix."""
    for name in ("dns1123Label", "dns1123Subdomain", "labelValue", "qualifiedName"):
        assert validate(FORMATS[name], label) is NONE
    assert validate(FORMATS["dns1123LabelPrefix"], f"{label}-") is NONE
