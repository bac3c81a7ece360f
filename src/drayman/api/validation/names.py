"""The names that resource.k8s.io uses in several kinds: drivers, pools, devices, attributes, requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drayman.api import formats
from drayman.api.codec import encode_json
from drayman.api.struct import Json
from drayman.api.validation.containers import Errors
from drayman.api.validation.field_errors import invalid, invalid_each, required, too_long

DRIVER_LENGTH: Final = 63
POOL_LENGTH: Final = 253
IDENTIFIER_LENGTH: Final = 32
QUALIFIED_LENGTH: Final = DRIVER_LENGTH + 1 + IDENTIFIER_LENGTH
OPAQUE_LENGTH: Final = 10 * 1024


def _format(problems: Callable[[str], formats.Problems]) -> Callable[[str, str], Errors]:
    """The check of a text and its path: an error for each of the problems of the text."""
    return lambda text, path: iter(invalid_each(path, text, problems(text)))


dns_label: Final = _format(formats.dns_label_problems)
dns_subdomain: Final = _format(formats.dns_subdomain_problems)
label_key: Final = _format(formats.label_key_problems)
label_value: Final = _format(formats.label_value_problems)
share_id: Final = _format(formats.uuid_problems)
interface_address: Final = _format(formats.interface_address_problems)
path_segment: Final = _format(formats.path_segment_problems)


def required_dns_label(name: str, path: str) -> Errors:
    if name:
        yield from dns_label(name, path)
    else:
        yield required(path)


def domain_prefixed_path(name: str, path: str) -> Errors:
    """A domain, a slash and a path, such as `acme.io/foo`."""
    domain, _, place = name.partition("/")
    if not name:
        yield required(path)
    elif not (domain and place):
        yield invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from dns_subdomain(domain, path)
        yield from invalid_each(path, place, formats.http_path_problems(place))


def driver_name(name: str, path: str) -> Errors:
    """A DNS subdomain of at most 63 bytes. Upper case is accepted, as upstream does."""
    if not name:
        yield required(path)
        return
    if formats.byte_length(name) > DRIVER_LENGTH:
        yield too_long(path, DRIVER_LENGTH)
    yield from invalid_each(path, name, formats.dns_subdomain_problems(name.lower()))


def pool_name(name: str, path: str) -> Errors:
    """DNS subdomains with slashes between."""
    if not name:
        yield required(path)
        return
    if formats.byte_length(name) > POOL_LENGTH:
        yield too_long(path, POOL_LENGTH)
    for part in name.split("/"):
        yield from dns_subdomain(part, path)


def device_class_name(name: str, path: str) -> Errors:
    if name:
        yield from dns_subdomain(name, path)
    else:
        yield required(path)


def qualified_name(name: str, path: str) -> Errors:
    """An identifier, or a domain and an identifier. Names with more slashes are accepted unseen, as upstream does."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        yield from _identifier(name, path)
        return
    if "/" in identifier:
        return
    if domain:
        yield from driver_name(domain, path)
    else:
        yield invalid(path, "", "the domain must not be empty")
    if identifier:
        yield from _identifier(identifier, path)
    else:
        yield invalid(path, "", "the name must not be empty")


def fully_qualified_name(name: str, path: str) -> Errors:
    """A qualified name with its domain."""
    yield from qualified_name(name, path)
    if "/" not in name:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid(path, name, detail)


def _identifier(name: str, path: str) -> Errors:
    if formats.byte_length(name) > IDENTIFIER_LENGTH:
        yield too_long(path, IDENTIFIER_LENGTH)
    yield from invalid_each(path, name, formats.c_identifier_problems(name))


def opaque_object(value: Json, path: str, *, stored: bool) -> Errors:
    """A JSON object of limited size. What is stored already may be larger: the limit is newer than the field."""
    if value is None:
        yield required(path)
    elif not stored and len(encode_json(value)) > OPAQUE_LENGTH:
        yield too_long(path, OPAQUE_LENGTH)
    elif not isinstance(value, dict):
        yield invalid(path, "<value omitted>", "must be a valid JSON object")
