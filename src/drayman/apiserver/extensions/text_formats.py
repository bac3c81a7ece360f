"""The formats that strings in schemas can have. Unknown names are ignored, as upstream.

Formats that expressions can name too (`format.date()`) are checked by the same functions, those of `drayman.cel.libraries.names`.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable
from typing import Final

from drayman.api.formats import Problems, byte_length, dns_label_problems, dns_subdomain_problems
from drayman.cel.libraries import names
from drayman.cel.times import Duration

_VERSIONED_UUID: Final = r"[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
_HOSTNAME: Final = re.compile(
    r"[a-zA-Z0-9]-?[a-zA-Z0-9]{0,62}"
    r"|(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z0-9](?:-?[a-zA-Z0-9]){1,62}"
)
"""A single label has one dash at most, and the last of several has two characters at least, as upstream."""
_LONGEST_HOSTNAME: Final = 255
_LONGEST_HOST_LABEL: Final = 63
_OCTETS: Final = r"[0-9a-fA-F]{2}(?:%s[0-9a-fA-F]{2}){%d}"
_DOTTED: Final = r"[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){%d}"
_MAC: Final = "|".join(
    pattern
    for octets in (6, 8, 20)
    for pattern in (
        _OCTETS % (":", octets - 1),
        _OCTETS % ("-", octets - 1),
        _DOTTED % (octets // 2 - 1),
    )
)
_LONG_DURATION: Final = re.compile(r"\d+\s*([A-Za-zµ]+)")
_DURATION_WORDS: Final = frozenset("ns us µs ms s m h hr d w wk".split())
_DURATION_STEMS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_CREDIT_CARD: Final = (
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}"
)
_COLOR_PART: Final = r"\s*(?:25[0-5]|2[0-4]\d|1?\d?\d)\s*"

Test = Callable[[str], bool]


def _matches(pattern: str, flags: int = 0) -> Test:
    compiled = re.compile(pattern, flags | re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _without(problems: Callable[[str], Problems]) -> Test:
    """A test of the same format from the check that says what is wrong with a text."""
    return lambda text: not problems(text)


def is_duration(text: str) -> bool:
    """Go's form, or numbers with words such as `2 weeks`."""
    try:
        Duration.parse(text)
    except ValueError:
        words = [match[1].lower() for match in _LONG_DURATION.finditer(text)]
        return any(word in _DURATION_WORDS or word.startswith(_DURATION_STEMS) for word in words)
    return True


def is_hostname(text: str) -> bool:
    """Letters and symbols of all scripts are as good as those of ASCII; lengths are counted in bytes."""
    plain = "".join("a" if unicodedata.category(each)[0] in "LS" else each for each in text)
    return (
        _HOSTNAME.fullmatch(plain) is not None
        and byte_length(text) <= _LONGEST_HOSTNAME
        and all(byte_length(label) <= _LONGEST_HOST_LABEL for label in text.split("."))
    )


def _is_ip(text: str, separator: str) -> bool:
    """An address without a zone, in the notation that has the separator: IPv4 in IPv6 is in both."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return separator in text and "%" not in text


def _is_cidr(text: str) -> bool:
    address, _, bits = text.partition("/")
    if "%" in address or not (bits.isascii() and bits.isdigit()):
        return False  # zones and masks are not upstream's notation
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _isbn_digits(text: str, length: int) -> str | None:
    digits = re.sub("[-\\s]+", "", text)
    if len(digits) != length or not re.fullmatch(r"\d+X?", digits, re.ASCII):
        return None
    return digits


def is_isbn10(text: str) -> bool:
    digits = _isbn_digits(text, 10)
    if digits is None:
        return False
    total = sum(
        (position + 1) * (10 if d == "X" else int(d)) for position, d in enumerate(digits[:9])
    )
    return (total + 10 * (10 if digits[9] == "X" else int(digits[9]))) % 11 == 0


def is_isbn13(text: str) -> bool:
    digits = _isbn_digits(text, 13)
    if digits is None or not digits.isdigit():
        return False
    total = sum((3 if position % 2 else 1) * int(d) for position, d in enumerate(digits))
    return total % 10 == 0


def is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not re.fullmatch(_CREDIT_CARD, digits, re.ASCII):
        return False
    doubled = [int(d) * (2 if position % 2 else 1) for position, d in enumerate(reversed(digits))]
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


FORMATS: Final[dict[str, Test]] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "uri": _without(names.request_uri),
    "email": _matches(r"(?:[^<>]*<)?[^\s@<>,;:]+@[^\s@<>,;:]+>?"),
    "hostname": is_hostname,
    "ipv4": lambda text: _is_ip(text, "."),
    "ipv6": lambda text: _is_ip(text, ":"),
    "cidr": _is_cidr,
    "mac": _matches(_MAC),
    "uuid": _without(names.uuid),
    "uuid3": _matches(_VERSIONED_UUID % ("3", "[0-9a-f]"), re.IGNORECASE),
    "uuid4": _matches(_VERSIONED_UUID % ("4", "[89ab]"), re.IGNORECASE),
    "uuid5": _matches(_VERSIONED_UUID % ("5", "[89ab]"), re.IGNORECASE),
    "isbn": lambda text: is_isbn10(text) or is_isbn13(text),
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "creditcard": is_credit_card,
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_COLOR_PART},{_COLOR_PART},{_COLOR_PART}\)"),
    "byte": _without(names.base64),
    "password": lambda _: True,
    "date": _without(names.date),
    "duration": is_duration,
    "datetime": _without(names.date_time),
    "k8sshortname": _without(dns_label_problems),
    "k8slongname": _without(dns_subdomain_problems),
}
"""By name without dashes."""
NUMBER_FORMATS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}


def text_format(name: str) -> Test | None:
    """The test of a format, None if the name is unknown."""
    return FORMATS.get(name.replace("-", ""))


def is_recognized(format_name: str, type_name: str) -> bool:
    """Whether a format applies to values of a type."""
    if type_name in ("", "string"):
        return text_format(format_name) is not None
    return format_name in NUMBER_FORMATS.get(type_name, ())
