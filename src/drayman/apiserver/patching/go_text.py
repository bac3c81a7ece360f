"""JSON values as the real server prints them in error messages, which is how Go prints them."""

from __future__ import annotations

from typing import Final

import msgspec

from drayman.api.struct import Json

_TYPE_NAMES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    type(None): "<nil>",
}


def plain(value: Json) -> str:
    """A value in its plain form: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{plain(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(plain, value))}]"
    if value is None:
        return "<nil>"
    return _number_or_bool(value) if not isinstance(value, str) else value


def literal(value: Json) -> str:
    """A value as source code would write it: `map[string]interface {}{"a":1}`."""
    if isinstance(value, dict):
        members = ", ".join(f"{quoted(name)}:{literal(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(literal, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return quoted(value) if isinstance(value, str) else _number_or_bool(value)


def type_name(value: Json) -> str:
    """The Go type of a decoded value."""
    return _TYPE_NAMES[type(value)]


def quoted(text: str) -> str:
    """A text in double quotes. The escapes are those of JSON, which differ only for unprintable characters."""
    return msgspec.json.encode(text).decode()


def _number_or_bool(value: bool | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else f"{value:g}"
