"""How errors read, and who may ask for them."""

from __future__ import annotations

import pytest

from api.objects import fussy
from drayman.api import validation
from drayman.api.core import Namespace
from drayman.api.quantity import Quantity
from drayman.api.resource import ResourceSlice
from drayman.api.validation import ErrorKind, FieldError
from drayman.api.validation.containers import shortened

RENDERED = {
    'x: Invalid value: "a\\"b": no': FieldError(ErrorKind.INVALID, "x", 'a"b', "no"),
    "x: Invalid value: 5: no": FieldError(ErrorKind.INVALID, "x", 5, "no"),
    'x: Invalid value: "1500m": no': FieldError(
        ErrorKind.INVALID, "x", Quantity.parse("1.5"), "no"
    ),
    "x: Required value": FieldError(ErrorKind.REQUIRED, "x"),
    "x: Too long: short": FieldError(ErrorKind.TOO_LONG, "x", "y" * 99, "short"),
    'x: Duplicate value: ["a","b"]': FieldError(ErrorKind.DUPLICATE, "x", ("a", "b")),
}


@pytest.mark.parametrize(("text", "error"), RENDERED.items())
def test_rendering(text: str, error: FieldError) -> None:
    """Errors read like those of the API server."""
    assert str(error) == text


def test_rendering_is_bounded() -> None:
    """An absurd value does not flood the terminal."""
    assert len(str(FieldError(ErrorKind.INVALID, "x", "y" * 10_000, "no"))) < 300


def test_long_keys_are_shortened_in_the_middle() -> None:
    """The path of a value under a long key shows both ends of it."""
    assert shortened("a" * 20 + "b" * 20, 20) == "a" * 9 + "..." + "b" * 8
    assert shortened("short", 3) == "short"


@pytest.mark.parametrize("function", ["validate", "validate_update", "validate_status"])
def test_kinds_without_rules(function: str) -> None:
    """Asking for rules that do not exist is a mistake of the caller."""
    arguments = {
        "validate": (Namespace(), fussy),
        "validate_update": (Namespace(), ResourceSlice(), fussy),
        "validate_status": (Namespace(), Namespace()),
    }
    with pytest.raises(TypeError):
        getattr(validation, function)(*arguments[function])
