"""Names of fields as rules write them: CEL has reserved words and fewer characters than JSON.

A field whose name is reserved is written between underscores. Except for words that have another meaning in the grammar, it may
also be written as it is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_RESERVED: Final = frozenset(
    "true false null in as break const continue else for function if import let loop package namespace return var"
    " void while".split()
)
_LITERALS_AND_OPERATORS: Final = frozenset(("true", "false", "null", "in"))
_SPECIAL: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_SPECIAL_PARTS: Final = re.compile(r"__|[.\-/]")
_ACCEPTED: Final = re.compile("[a-zA-Z_.\\-/][a-zA-Z0-9_.\\-/]*")


@lru_cache(maxsize=4096)
def identifier(name: str) -> str | None:
    """How a rule writes the name of a field; None if no rule can name it."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _ACCEPTED.fullmatch(name):
        return None
    return _SPECIAL_PARTS.sub(lambda match: _SPECIAL[match[0]], name)


def plain_keyword(written: str) -> str | None:
    """The reserved word that a field may be written as, given its form between underscores."""
    word = written.removeprefix("__").removesuffix("__")
    is_keyword = word in _RESERVED - _LITERALS_AND_OPERATORS and written == f"__{word}__"
    return word if is_keyword else None
