"""Types, strings and numbers against a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import FieldError, invalid, too_long
from drayman.apiserver.extensions.findings import type_invalid
from drayman.apiserver.extensions.schemas import INT_OR_STRING, Schema
from drayman.apiserver.extensions.text_formats import NUMBER_FORMATS, text_format
from drayman.cel.regex import matches

_TYPE_NAMES: Final = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_BITS: Final = {"int32": 32, "int64": 64}
_LARGEST_PLAIN: Final = 1e21
_SMALLEST_PLAIN: Final = 1e-4
_LARGEST_FLOAT: Final = 3.4028234663852886e38


def type_of(value: Json) -> str:
    """The name of a value's type in schemas."""
    return _TYPE_NAMES[type(value)]


def expected_types(schema: Schema) -> tuple[str, ...]:
    if schema.get(INT_OR_STRING):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def type_error(value: Json, schema: Schema, path: str) -> tuple[str, str] | None:
    """What an error shows and says if a value has the wrong type."""
    expected = expected_types(schema)
    if not expected:
        return None
    found = type_of(value)
    if found in expected or (found == "null" and schema.get("nullable")):
        return None
    if found == "integer" and "number" in expected:
        return None
    if isinstance(value, float) and value.is_integer() and "integer" in expected:
        return None
    return found, f'{path} in body must be of type {",".join(expected)}: "{found}"'


def string_errors(value: str, schema: Schema, path: str, field: str) -> Iterator[FieldError]:
    most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if most is not None and len(value) > most:
        yield too_long(field, most)
    elif least is not None and len(value) < least:
        yield invalid(field, value, f"{path} in body should be at least {least} chars long")
    elif pattern and not matches(value, pattern):
        yield invalid(field, value, f"{path} in body should match '{pattern}'")
    name = schema.get("format")
    if not name or schema.get("type", "string") != "string":
        return
    test = text_format(name)
    if test is not None and not test(value):
        yield type_invalid(field, value, f'{path} in body must be of type {name}: "{value}"')


def number_errors(
    value: float, schema: Schema, path: str, field: str, nowhere: str
) -> Iterator[FieldError]:
    yield from _range_errors(value, schema, "Checked", path, nowhere)
    factor = schema.get("multipleOf")
    if factor is not None and not is_multiple(value, factor):
        text = f"{path} in body should be a multiple of {go_number(factor)}"
        yield invalid(field, value, text)
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        yield from _range_errors(least, schema, "Minimum boundary", path, nowhere)
        exclusive = schema.get("exclusiveMinimum")
        if value < least or (exclusive and value == least):
            word = "greater than" if exclusive else "greater than or equal to"
            yield invalid(field, value, f"{path} in body should be {word} {go_number(least)}")
    if most is not None:
        yield from _range_errors(most, schema, "Maximum boundary", path, nowhere)
        exclusive = schema.get("exclusiveMaximum")
        if value > most or (exclusive and value == most):
            word = "less than" if exclusive else "less than or equal to"
            yield invalid(field, value, f"{path} in body should be {word} {go_number(most)}")


def go_number(value: float) -> str:
    """A number as Go prints it in messages: in the shortest form that reads back the same; large and tiny ones with an exponent."""
    if isinstance(value, int) and abs(value) < _LARGEST_PLAIN:
        return str(value)
    number = float(value)
    if number == 0 or _SMALLEST_PLAIN <= abs(number) < _LARGEST_PLAIN:
        return str(int(number)) if number.is_integer() else repr(number)
    mantissa, _, exponent = repr(number).partition("e")
    if not exponent:
        mantissa, _, exponent = f"{number:e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
    sign, digits = exponent[0], exponent.lstrip("+-").lstrip("0")
    return f"{mantissa.removesuffix('.0')}e{'-' if sign == '-' else '+'}{digits.zfill(2)}"


def is_multiple(value: float, factor: float) -> bool:
    """In floating point, as upstream: small factors are inverted first."""
    if factor <= 0:
        return False
    quotient = 1 / factor * value if factor < 1 else value / factor
    return float(quotient).is_integer()


def _range_errors(
    number: float, schema: Schema, what: str, path: str, nowhere: str
) -> Iterator[FieldError]:
    """A number must fit the type and format of its schema, and so must its limits."""
    if schema.get(INT_OR_STRING):
        return
    type_name, name = schema.get("type", ""), schema.get("format", "")
    known = name if name in NUMBER_FORMATS.get(type_name, ()) else ""
    if type_name == "integer":
        bits = _BITS.get(known, 64)
        whole = float(number).is_integer()
        fits = whole and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
    else:
        fits = known != "float" or abs(number) <= _LARGEST_FLOAT
    if not fits:
        form = f"with format {known}" if known else "(default format)"
        kind = type_name or "number"
        text = f"{what} value must be of type {kind} {form} in {path}"
        yield invalid(nowhere, "", text)
