"""Checks that objects of many kinds have in common. Each takes a value and its path."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from drayman.api.codec import convert
from drayman.api.integers import parse_count
from drayman.api.meta import Condition
from drayman.api.struct import Json
from drayman.api.validation.field_errors import forbidden, invalid, not_supported, required
from drayman.api.validation.metadata import IMMUTABLE, check_conditions, check_labels
from drayman.api.validation.names import label_key, label_value
from drayman.apiserver.kinds.reading import at, each_at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors, UpdateCheck

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
NOT_A_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
MAX_INT32: Final = 2**31 - 1
_LAST_PORT: Final = 65535
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_LENGTH: Final = 253
_PORT_NAME: Final = re.compile("[-a-z0-9]+")
_PORT_NAME_LENGTH: Final = 15
_PERCENT: Final = re.compile("[0-9]+%")

CheckText = Callable[[str, str], Errors]
"""Takes a text and its path, and returns what is wrong with the text."""


def one_of(value: Json, path: str, choices: Iterable[str], *, needed: bool = True) -> Errors:
    """One of a few words."""
    if not value:
        if needed:
            yield required(path)
    elif value not in choices:
        yield not_supported(path, value, choices)


def supported(value: Json, path: str, choices: Iterable[str]) -> Errors:
    """One of a few words where something is given at all."""
    if value is not None and value not in choices:
        yield not_supported(path, value, choices)


def required_name(name: str, path: str, form: CheckText, detail: str = "") -> Errors:
    """A name that must be there, and of a certain form."""
    yield from form(name, path) if name else (required(path, detail),)


def not_negative(value: Json, path: str) -> Errors:
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, NOT_NEGATIVE)


def positive(value: Json, path: str) -> Errors:
    if not isinstance(value, int) or value <= 0:
        yield invalid(path, value or 0, "must be greater than zero")


def port_number(value: Json, path: str) -> Errors:
    if not isinstance(value, int) or not 1 <= value <= _LAST_PORT:
        yield invalid(path, value, f"must be between 1 and {_LAST_PORT}, inclusive")


def port_name(value: str, path: str) -> Errors:
    """A name for a port, as in the IANA registry of services."""
    if len(value) > _PORT_NAME_LENGTH:
        yield invalid(path, value, f"must be no more than {_PORT_NAME_LENGTH} characters")
    if not _PORT_NAME.fullmatch(value):
        yield invalid(
            path, value, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
        )
    if not re.search("[a-z]", value):
        yield invalid(path, value, "must contain at least one letter (a-z)")
    if "--" in value:
        yield invalid(path, value, "must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        yield invalid(path, value, "must not begin or end with a hyphen")


def port_number_or_name(value: Json, path: str) -> Errors:
    if isinstance(value, int):
        yield from port_number(value, path)
    elif isinstance(value, str):
        yield from port_name(value, path)


def ip_address(value: Json, path: str) -> Errors:
    """An address of either family. Forms that programs read differently are refused."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        yield invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
        return
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        yield invalid(path, value, "must not be an IPv4-mapped IPv6 address")


def data_key(key: str, path: str) -> Errors:
    """A key of a ConfigMap or a Secret, which becomes the name of a file."""
    if len(key) > _KEY_LENGTH:
        yield invalid(path, key, f"must be no more than {_KEY_LENGTH} characters")
    if not _KEY.fullmatch(key):
        yield invalid(
            path,
            key,
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',"
            "  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        )
    if key == ".":
        yield invalid(path, key, "must not be '.'")
    elif key.startswith(".."):
        yield invalid(path, key, "must not be '..'" if key == ".." else "must not start with '..'")


def label_selector(selector: Json, path: str) -> Errors:
    """A label selector; an absent one is fine."""
    if not isinstance(selector, dict):
        return
    yield from check_labels(map_at(selector, "matchLabels"), f"{path}.matchLabels")
    for where, expression in each_at(selector, path, "matchExpressions"):
        yield from _selector_expression(expression, where)


def _selector_expression(expression: Mapping[str, Json], path: str) -> Errors:
    values = items_at(expression, "values")
    match operator := text_at(expression, "operator"):
        case "In" | "NotIn":
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required(f"{path}.values", detail)
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden(f"{path}.values", detail)
        case _:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    key = text_at(expression, "key")
    yield from label_key(key, f"{path}.key")
    for index, value in enumerate(values):
        yield from label_value(value, f"{path}.values[{index}]")


def unchanged(new: Json, old: Json, *path: str) -> Errors:
    """A field that may not change."""
    before, after = at(old, *path), at(new, *path)
    if before != after:
        yield invalid(".".join(path), after, IMMUTABLE)


def immutable(*path: str) -> UpdateCheck:
    """The rule that a field may not change."""
    return lambda new, old, _context: unchanged(new, old, *path)


def status_conditions(obj: Json) -> Errors:
    """The conditions in the status of an object."""
    found = tuple(convert(Condition, each) for each in items_at(obj, "status", "conditions"))
    yield from check_conditions(found, "status.conditions")


def count_or_percentage(value: Json, path: str) -> Errors:
    """A number that is not negative, or a percentage of something."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            yield invalid(
                path,
                value,
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for"
                " validation is '[0-9]+%')",
            )
    elif isinstance(value, int):
        yield from not_negative(value, path)


def at_most_whole(value: Json, path: str) -> Errors:
    """A percentage must not exceed a hundred."""
    if isinstance(value, str) and _PERCENT.fullmatch(value) and parse_count(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def is_zero(value: Json) -> bool:
    """Whether a count or percentage amounts to zero."""
    return value in (0, "0%", None)
