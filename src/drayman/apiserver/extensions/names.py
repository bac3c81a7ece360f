"""Names in definitions."""

from __future__ import annotations

import re
from typing import Final

from drayman.api.formats import LABEL_LENGTH, Problems

_LABEL: Final = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def dns_1035_problems(text: str) -> Problems:
    """Why a text is not an RFC 1035 label: like a DNS label, but it begins with a letter."""
    problems: list[str] = []
    if len(text.encode()) > LABEL_LENGTH:
        problems.append(f"must be no more than {LABEL_LENGTH} characters")
    if not _LABEL.fullmatch(text):
        problems.append(_RULE)
    return tuple(problems)
