"""The text formats of Kubernetes names, as functions that say what is wrong with a text.

Lengths are counted in bytes, as the API server counts them.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253

_LABEL: Final = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL: Final = re.compile(_LABEL)
_DNS_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_C_IDENTIFIER: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_UUID: Final = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CONDITION_REASON: Final = re.compile("[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")

_NAME_RULE: Final = (
    "must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit"
)

Problems = tuple[str, ...]
_FINE: Final[Problems] = ()


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _check(text: str, limit: int, pattern: re.Pattern[str], rule: str) -> Problems:
    problems = []
    if byte_length(text) > limit:
        problems.append(f"must be at most {limit} bytes long")
    if not pattern.fullmatch(text):
        problems.append(rule)
    return tuple(problems)


def dns_label_problems(text: str) -> Problems:
    """Why a text is no RFC 1123 label."""
    return _check(
        text,
        LABEL_LENGTH,
        _DNS_LABEL,
        "must consist of lower-case letters, digits and '-', and start and end with a letter or digit",
    )


def dns_subdomain_problems(text: str) -> Problems:
    """Why a text is no RFC 1123 subdomain."""
    return _check(
        text,
        SUBDOMAIN_LENGTH,
        _DNS_SUBDOMAIN,
        "must consist of lower-case letters, digits, '-' and '.', and every part between dots must"
        " start and end with a letter or digit",
    )


def label_value_problems(text: str) -> Problems:
    """Why a text cannot be the value of a label."""
    if not text:
        return _FINE
    return _check(text, LABEL_LENGTH, _LABEL_NAME, f"the value {_NAME_RULE}")


def label_key_problems(text: str) -> Problems:
    """Why a text cannot be the key of a label: a name, or a DNS subdomain and a name with a slash between."""
    prefix, slash, name = text.rpartition("/")
    if slash and not prefix:
        return ("the part before '/' must not be empty", *label_key_problems(name))
    problems: Problems = _FINE
    if slash:
        problems = tuple(
            f"the part before '/' {problem}" for problem in dns_subdomain_problems(prefix)
        )
    if not name:
        return (*problems, "the name must not be empty")
    return problems + _check(name, LABEL_LENGTH, _LABEL_NAME, f"the name {_NAME_RULE}")


def c_identifier_problems(text: str) -> Problems:
    """Why a text is no identifier of C."""
    if _C_IDENTIFIER.fullmatch(text):
        return _FINE
    return ("must consist of letters, digits and '_', and must not start with a digit",)


def uuid_problems(text: str) -> Problems:
    """Why a text is no lower-case RFC 4122 identifier."""
    if _UUID.fullmatch(text):
        return _FINE
    return ("must be of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx in lower-case hexadecimal",)


def condition_reason_problems(text: str) -> Problems:
    """Why a text cannot be the reason of a condition."""
    if _CONDITION_REASON.fullmatch(text):
        return _FINE
    return (
        "must consist of letters, digits, '_', ',' and ':', start with a letter and end with a"
        " letter, digit or '_'",
    )


def interface_address_problems(text: str) -> Problems:
    """Why a text is no address with a prefix length in its canonical form, such as 10.9.8.7/24."""
    try:
        interface = ipaddress.ip_interface(_without_leading_zeros(text))
    except ValueError:
        return ("must be an address in CIDR form, such as 10.9.8.7/24 or 2001:db8::1/64",)
    canonical = _canonical_interface(interface)
    return _FINE if text == canonical else (f"must be in the canonical form {canonical}",)


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
