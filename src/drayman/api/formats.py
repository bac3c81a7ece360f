"""The text formats of Kubernetes names, as functions that say what is wrong with a text.

The words are those of the API server, because clients and tests compare them. Lengths are counted in bytes, as the API server
counts them, although it calls them characters in the names of most objects.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from typing import Final

LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253

_LABEL: Final = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_LABEL_NAME: Final = re.compile("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE: Final = re.compile(f"({_LABEL_NAME.pattern})?")
_C_IDENTIFIER: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_CONDITION_REASON: Final = re.compile("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_HTTP_PATH_RULE: Final = f"Invalid path (regex used for validation is '{_HTTP_PATH.pattern}')"
_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ANY_CASE_UUID: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BARE_UUID: Final = re.compile("[0-9a-fA-F]{32}")
_URN_PREFIX: Final = "urn:uuid:"


def pattern_rule(text: str, pattern: re.Pattern[str], *examples: str) -> str:
    """A rule with examples and the pattern behind it. The odd commas are upstream's."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern.pattern}')"


_LABEL_RULE: Final = pattern_rule(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an"
    " alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_RULE: Final = pattern_rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with"
    " an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_CASELESS_SUBDOMAIN_RULE: Final = pattern_rule(
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric"
    " character",
    _SUBDOMAIN,
    "Example.com",
)
_LABEL_NAME_RULE: Final = pattern_rule(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _LABEL_NAME,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_RULE: Final = pattern_rule(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with"
    " an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_C_IDENTIFIER_RULE: Final = pattern_rule(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
    _C_IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
_CONDITION_REASON_RULE: Final = pattern_rule(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or"
    " '_,:', and must end with an alphanumeric character or '_'",
    _CONDITION_REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)
_INTERFACE_RULE: Final = (
    "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
)
_NO_DOTS: Final = "must not contain dots"
_EMPTY: Final = "must be non-empty"
_BAD_UUID: Final = "invalid UUID format"
_UUID_RULE: Final = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"

_NAMES_KEPT: Final = 1 << 12

Problems = tuple[str, ...]
_FINE: Final[Problems] = ()


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def too_long(text: str, limit: int, unit: str) -> Problems:
    return (f"must be no more than {limit} {unit}",) if byte_length(text) > limit else _FINE


def _mismatch(text: str, pattern: re.Pattern[str], rule: str) -> Problems:
    return _FINE if pattern.fullmatch(text) else (rule,)


def _remembered(problems: Callable[[str], Problems]) -> Callable[[str], Problems]:
    """The same checks with recent answers kept: names come up again and again. Not for long texts, which may be anything."""
    known = lru_cache(maxsize=_NAMES_KEPT)(problems)

    @wraps(problems)
    def check(text: str) -> Problems:
        return known(text) if len(text) <= SUBDOMAIN_LENGTH else problems(text)

    return check


@_remembered
def dns_label_problems(text: str) -> Problems:
    """Why a text is not an RFC 1123 label."""
    problems = too_long(text, LABEL_LENGTH, "characters")
    if _LABEL.fullmatch(text):
        return problems
    return (*problems, _NO_DOTS if _SUBDOMAIN.fullmatch(text) else _LABEL_RULE)


def dns_subdomain_problems(text: str, *, unit: str = "characters") -> Problems:
    """Why a text is not an RFC 1123 subdomain. `unit` is what the message counts in; either way it means bytes."""
    if unit == "characters":
        return _subdomain_problems(text)
    return too_long(text, SUBDOMAIN_LENGTH, unit) + _mismatch(text, _SUBDOMAIN, _SUBDOMAIN_RULE)


@_remembered
def _subdomain_problems(text: str) -> Problems:
    length = too_long(text, SUBDOMAIN_LENGTH, "characters")
    return length + _mismatch(text, _SUBDOMAIN, _SUBDOMAIN_RULE)


@_remembered
def long_name_problems(text: str) -> Problems:
    """Why a text is not an RFC 1123 subdomain, in the words of the newer, declared rules."""
    return dns_subdomain_problems(text, unit="bytes")


def caseless_long_name_problems(text: str) -> Problems:
    """Why a text is not an RFC 1123 subdomain where upper case is accepted, in the words of the declared rules."""
    # Go folds case by Unicode, so that a long s and a kelvin sign pass for letters; lower() only knows the latter.
    folded = text.lower().replace("\u017f", "s")
    return too_long(text, SUBDOMAIN_LENGTH, "bytes") + _mismatch(
        folded, _SUBDOMAIN, _CASELESS_SUBDOMAIN_RULE
    )


@_remembered
def label_value_problems(text: str) -> Problems:
    """Why a text cannot be the value of a label."""
    return too_long(text, LABEL_LENGTH, "bytes") + _mismatch(text, _LABEL_VALUE, _LABEL_VALUE_RULE)


@_remembered
def label_key_problems(text: str) -> Problems:
    """Why a text cannot be the key of a label: a name, or a DNS subdomain and a name with a slash between."""
    prefix, slash, name = text.partition("/")
    if "/" in name:
        return (
            f"a valid label key {_LABEL_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    if not slash:
        return _prefixed("name part", _label_name_problems(text))
    before = long_name_problems(prefix) if prefix else (_EMPTY,)
    return _prefixed("prefix part", before) + _prefixed("name part", _label_name_problems(name))


def _label_name_problems(name: str) -> Problems:
    length = too_long(name, LABEL_LENGTH, "bytes") if name else (_EMPTY,)
    return length + _mismatch(name, _LABEL_NAME, _LABEL_NAME_RULE)


def _prefixed(prefix: str, problems: Iterable[str]) -> Problems:
    return tuple(f"{prefix} {problem}" for problem in problems)


def c_identifier_problems(text: str) -> Problems:
    """Why a text is not a C identifier."""
    return _mismatch(text, _C_IDENTIFIER, _C_IDENTIFIER_RULE)


def uuid_problems(text: str) -> Problems:
    """Why a text is not a lower-case RFC 4122 identifier."""
    if _UUID.fullmatch(text):
        return _FINE
    if problem := _uuid_syntax_problem(text):
        return (f"error validating uid: {problem}",)
    return (_UUID_RULE,)


def _uuid_syntax_problem(text: str) -> str:
    """What a parser that accepts all forms of a UUID says; empty if it accepts the text."""
    digits = text
    match byte_length(text):
        case 32:
            return "" if _BARE_UUID.fullmatch(text) else _BAD_UUID
        case 36:
            pass
        case 38:
            if not (text.startswith("{") and text.endswith("}")):
                return "invalid bracketed UUID format"
            digits = text[1:-1]
        case 45:
            prefix, digits = text[: len(_URN_PREFIX)], text[len(_URN_PREFIX) :]
            if prefix.lower() != _URN_PREFIX:
                return f"invalid urn prefix: {json.dumps(prefix, ensure_ascii=False)}"
        case length:
            return f"invalid UUID length: {length}"
    return "" if _ANY_CASE_UUID.fullmatch(digits) else _BAD_UUID


def condition_reason_problems(text: str) -> Problems:
    """Why a text cannot be the reason of a condition."""
    return _mismatch(text, _CONDITION_REASON, _CONDITION_REASON_RULE)


def http_path_problems(text: str) -> Problems:
    """Why a text cannot be part of a URL's path."""
    return _mismatch(text, _HTTP_PATH, _HTTP_PATH_RULE)


def path_segment_problems(text: str) -> Problems:
    """Why a text cannot be one part of a path."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{character}'" for character in "/%" if character in text)


def interface_address_problems(text: str) -> Problems:
    """Why a text is not an address with a prefix length in its canonical form, such as 10.9.8.7/24."""
    try:
        interface = ipaddress.ip_interface(_without_leading_zeros(text))
    except ValueError:
        return (_INTERFACE_RULE,)
    canonical = _canonical_interface(interface)
    return _FINE if text == canonical else (f'must be in canonical form ("{canonical}")',)


def _without_leading_zeros(text: str) -> str:
    """IPv4 octets without leading zeros, which upstream tolerates before it asks for the canonical form."""
    address, slash, prefix = text.partition("/")
    if not slash or not prefix.isascii() or not prefix.isdigit():
        raise ValueError(text)
    head, colon, octets = address.rpartition(":")
    if "." in octets:
        octets = ".".join(octet.lstrip("0") or "0" if octet else "" for octet in octets.split("."))
    return f"{head}{colon}{octets}/{prefix}"


def _canonical_interface(interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface) -> str:
    length = interface.network.prefixlen
    if isinstance(interface, ipaddress.IPv6Interface) and interface.ip.ipv4_mapped:
        return f"{interface.ip.ipv4_mapped}/{length - 96 if length > 32 else length}"
    return f"{interface.ip.compressed}/{length}"
