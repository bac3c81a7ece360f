"""The formats that strings in schemas can have. Unknown names are ignored, as upstream."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from typing import Final

from drayman.api.formats import dns_label_problems, dns_subdomain_problems
from drayman.cel.times import Duration

_UUID: Final = r"[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
_HOST_PART: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_HOSTNAME: Final = rf"{_HOST_PART}(?:\.{_HOST_PART})*"
_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[tT](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[zZ]|[+-]\d{2}:\d{2})"
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


def is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == len("2006-01-02")


def is_date_time(text: str) -> bool:
    match = _DATE_TIME.fullmatch(text)
    if match is None or not is_date(match[1]):
        return False
    hour, minute, second = (int(part) for part in match.groups()[1:4])
    return hour < 24 and minute < 60 and second < 61


def is_duration(text: str) -> bool:
    """Go's form, or numbers with words such as `2 weeks`."""
    try:
        Duration.parse(text)
    except ValueError:
        words = [match[1].lower() for match in _LONG_DURATION.finditer(text)]
        return any(word in _DURATION_WORDS or word.startswith(_DURATION_STEMS) for word in words)
    return True


def _is_ip(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(text).version == version
    except ValueError:
        return False


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


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
    "uri": _matches(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*:[^\s%]*(?:%[0-9a-fA-F]{2}[^\s%]*)*|/[^\s]*)"),
    "email": _matches(r"(?:[^<>]*<)?[^\s@<>,;:]+@[^\s@<>,;:]+>?"),
    "hostname": _matches(rf"(?!.{{256}}){_HOSTNAME}"),
    "ipv4": lambda text: _is_ip(text, 4),
    "ipv6": lambda text: _is_ip(text, 6),
    "cidr": _is_cidr,
    "mac": _matches(
        r"(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1){4,18}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.){2,9}[0-9a-fA-F]{4}"
    ),
    "uuid": _matches(_UUID % ("[0-9a-f]", "[0-9a-f]"), re.IGNORECASE),
    "uuid3": _matches(_UUID % ("3", "[0-9a-f]"), re.IGNORECASE),
    "uuid4": _matches(_UUID % ("4", "[89ab]"), re.IGNORECASE),
    "uuid5": _matches(_UUID % ("5", "[89ab]"), re.IGNORECASE),
    "isbn": lambda text: is_isbn10(text) or is_isbn13(text),
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "creditcard": is_credit_card,
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_COLOR_PART},{_COLOR_PART},{_COLOR_PART}\)"),
    "byte": _matches(
        "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
    ),
    "password": lambda _: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": lambda text: not dns_label_problems(text),
    "k8slongname": lambda text: not dns_subdomain_problems(text),
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
