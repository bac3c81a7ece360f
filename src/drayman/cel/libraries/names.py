"""What Kubernetes accepts as a name, a label or a date. Each check gives the reasons why a text is not one, or nothing.

The reasons are visible to expressions (`format.dns1123Label().validate(x).value()`), so they are Kubernetes' own words. Lengths count
bytes.
"""

from __future__ import annotations

import re

from drayman.cel.libraries import uri

_MAX_LABEL, _MAX_SUBDOMAIN = 63, 253

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"

_UUID = re.compile(
    "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII
)
_BASE64 = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_ENDS = "and must start and end with an alphanumeric character"
_LABEL_RULE = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}"
)
_SUBDOMAIN_RULE = f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}"
_LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_KEY_RULE = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_VALUE_RULE = f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def _unlike(rule: str, pattern: str, *examples: str) -> str:
    quoted = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {quoted}regex used for validation is '{pattern}')"


def _too_long(text: str, limit: int, unit: str) -> list[str]:
    return [f"must be no more than {limit} {unit}"] if len(text.encode()) > limit else []


def dns1123_label(text: str) -> list[str]:
    reasons = _too_long(text, _MAX_LABEL, "characters")
    if not _matches(_LABEL, text):
        if _matches(_SUBDOMAIN, text):
            reasons.append("must not contain dots")
        else:
            reasons.append(_unlike(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return reasons


def dns1123_subdomain(text: str, unit: str = "characters") -> list[str]:
    reasons = _too_long(text, _MAX_SUBDOMAIN, unit)
    if not _matches(_SUBDOMAIN, text):
        reasons.append(_unlike(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return reasons


def dns1035_label(text: str) -> list[str]:
    reasons = _too_long(text, _MAX_LABEL, "characters")
    if not _matches(_LABEL_1035, text):
        reasons.append(_unlike(_LABEL_1035_RULE, _LABEL_1035, "my-name", "abc-123"))
    return reasons


def as_prefix(text: str) -> str:
    """A text that something will be appended to may end with a dash; this makes it pass as a whole name."""
    return f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text


def qualified_name(text: str) -> list[str]:
    """A label key: a name, optionally preceded by a domain and a slash."""
    prefix, slash, name = text.partition("/")
    if "/" in name:
        rule = _unlike(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc")
        return [
            f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    reasons: list[str] = []
    if not slash:
        name = prefix
    elif not prefix:
        reasons.append("prefix part must be non-empty")
    else:
        reasons += [f"prefix part {reason}" for reason in dns1123_subdomain(prefix, "bytes")]
    if not name:
        reasons.append("name part must be non-empty")
    reasons += [f"name part {reason}" for reason in _too_long(name, _MAX_LABEL, "bytes")]
    if not _matches(_KEY, name):
        reasons.append(f"name part {_unlike(_KEY_RULE, _KEY, 'MyName', 'my.name', '123-abc')}")
    return reasons


def label_value(text: str) -> list[str]:
    reasons = _too_long(text, _MAX_LABEL, "bytes")
    if not _matches(_VALUE, text):
        reasons.append(_unlike(_VALUE_RULE, _VALUE, "MyValue", "my_value", "12345"))
    return reasons


def request_uri(text: str) -> list[str]:
    try:
        uri.parse_request(text)
    except ValueError as error:
        return [f'parse "{text}": {error}']
    return []


def uuid(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


def base64(text: str) -> list[str]:
    return [] if _BASE64.fullmatch(text) else ["invalid base64"]


def date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def date_time(text: str) -> list[str]:
    day, separator, rest = text.lower().partition("t")
    time = _TIME.fullmatch(rest.partition("t")[0]) if separator else None
    if time is None or not _is_date(day):
        return ["invalid datetime"]
    hour, minute, second = time.group(1, 2, 3)
    return [] if hour <= "23" and minute <= "59" and second <= "59" else ["invalid datetime"]


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = (int(part) for part in match.groups())
    if not 1 <= month <= 12:
        return False
    leap_day = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _MONTH_DAYS[month - 1] + leap_day
