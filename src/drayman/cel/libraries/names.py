"""What Kubernetes accepts as a name, a URI or a date, beyond what `drayman.api.formats` has.

Each check gives the reasons why a text is not one, or nothing. They are visible to expressions
(`format.dns1123Label().validate(x).value()`), so they are Kubernetes' own words.
"""

from __future__ import annotations

import re

from drayman.api.formats import LABEL_LENGTH, Problems, pattern_rule, too_long
from drayman.cel.libraries import uri

_LABEL_1035 = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_UUID = re.compile(
    "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII
)
_BASE64 = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_LABEL_1035_RULE = pattern_rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)


def dns1035_label(text: str) -> Problems:
    length = too_long(text, LABEL_LENGTH, "characters")
    return length if _LABEL_1035.fullmatch(text) else (*length, _LABEL_1035_RULE)


def as_prefix(text: str) -> str:
    """A text that something will be appended to may end with a dash; this makes it pass as a whole name."""
    return f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text


def request_uri(text: str) -> Problems:
    try:
        uri.parse_request(text)
    except ValueError as error:
        return (f'parse "{text}": {error}',)
    return ()


def uuid(text: str) -> Problems:
    return () if _UUID.fullmatch(text) else ("does not match the UUID format",)


def base64(text: str) -> Problems:
    return () if _BASE64.fullmatch(text) else ("invalid base64",)


def date(text: str) -> Problems:
    return () if _is_date(text) else ("invalid date",)


def date_time(text: str) -> Problems:
    day, separator, rest = text.lower().partition("t")
    time = _TIME.fullmatch(rest.partition("t")[0]) if separator else None
    if time is None or not _is_date(day):
        return ("invalid datetime",)
    hour, minute, second = time.group(1, 2, 3)
    return () if hour <= "23" and minute <= "59" and second <= "59" else ("invalid datetime",)


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = (int(part) for part in match.groups())
    if not 1 <= month <= 12:
        return False
    leap_day = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _MONTH_DAYS[month - 1] + leap_day
