"""The strings extension, version 2. Positions and lengths count code points.

`reverse` for strings came with version 3 and is not here. `format` has a module of its own, `formatting`.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

from drayman.cel.costs import (
    MAX,
    NOT_LITERAL,
    PENDING,
    STRING_TRAVERSAL,
    CallEstimate,
    CostNode,
    SizeEstimate,
    actual_size,
)
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Library, Rule, member, priced, static
from drayman.cel.libraries.formatting import FORMAT, validate
from drayman.cel.libraries.rendering import ESCAPES
from drayman.cel.libraries.rules import (
    SCAN,
    TRAVERSAL,
    growth_cost,
    growth_estimate,
    traversal_rule,
)
from drayman.cel.types import INT, STRING, list_of
from drayman.cel.values import LISTS, ListValue, check_size, type_name

# Unicode's White_Space. Python's own strip() also treats the information separators U+001C to U+001F as space.
_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000"
)
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_QUOTED = str.maketrans(ESCAPES)


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def last_index_of_before(text: str, part: str, start: int) -> int:
    """The last occurrence that begins at `start` or before; -1 if `start` is past the end."""
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    if start >= len(text):
        return -1
    return text.rfind(part, 0, start + len(part))


def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


def trim(text: str) -> str:
    return text.strip(_SPACE)


def substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if position is not None and not 0 <= position <= len(text):
            raise _out_of_range(position)
    return text[start:end]


def quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """A negative limit replaces everything. The empty string occurs before every character and at the end."""
    check_size(_replaced_size(text, old, new, limit))
    return text.replace(old, new, limit)


def _replaced_size(text: str, old: str, new: str, limit: int) -> int:
    found = text.count(old)
    return len(text) + (found if limit < 0 else min(found, limit)) * (len(new) - len(old))


def split(text: str, separator: str, limit: int = -1) -> list[object]:
    """At most `limit` parts, the last of which is the rest; all parts for a negative limit, none for zero."""
    if limit == 0:
        return []
    if separator:
        return list(text.split(separator, limit - 1 if limit > 0 else -1))
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def join(items: ListValue, separator: str = "") -> str:
    parts = []
    size = 0
    for item in items:
        if not isinstance(item, str):
            raise EvaluationError(f"join: invalid input: {type_name(item)}")
        parts.append(item)
        size += len(item) + len(separator)
    check_size(size)
    return separator.join(parts)


def _replace_estimate(args: Sequence[CostNode]) -> CallEstimate:
    text, old, new = (node.size for node in args[:3])
    size = SizeEstimate(_shortest_replaced(text, old, new), _longest_replaced(text, old, new))
    cost = text.cost(2 * STRING_TRAVERSAL) + growth_estimate(size, text + new)
    return CallEstimate(cost, size)


def _longest_replaced(text: SizeEstimate, old: SizeEstimate, new: SizeEstimate) -> int:
    if old.min == 0:
        return min((text.max + 1) * new.max + text.max, MAX)
    if new.max <= old.min:
        return text.max
    return min(math.ceil(text.max / old.min) * new.max, MAX)


def _shortest_replaced(text: SizeEstimate, old: SizeEstimate, new: SizeEstimate) -> int:
    if old.max == 0:
        return min((text.min + 1) * new.min + text.min, MAX)
    if old.max <= new.min:
        return text.min
    return min(math.ceil(text.min / old.max) * new.min, MAX)


def _replace_cost(args: Sequence[object], result: object) -> int:
    text, old, new, *rest = args
    cost = math.ceil(actual_size(text) * 2 * STRING_TRAVERSAL)
    if isinstance(text, str) and isinstance(old, str) and isinstance(new, str):
        limit = rest[0] if rest and isinstance(rest[0], int) else -1
        cost += growth_cost(_replaced_size(text, old, new, limit), len(text) + len(new))
    return cost


def _split_estimate(args: Sequence[CostNode]) -> CallEstimate:
    size = args[0].size
    longest = size.max  # with the empty separator every character is a part
    if len(args) > 2 and args[2].literal is not NOT_LITERAL and type(args[2].literal) is int:
        longest = args[2].literal % (MAX + 1)
    return CallEstimate(size.cost(2 * STRING_TRAVERSAL), SizeEstimate(0, longest))


def _join_estimate(args: Sequence[CostNode]) -> CallEstimate:
    parts = args[0].size
    element = args[0].items()
    size = parts * element.size if element is not None else SizeEstimate(0, 0)
    if len(args) > 1:
        size += args[1].size * SizeEstimate(max(parts.min - 1, 0), max(parts.max - 1, 0))
    return CallEstimate(size.cost(STRING_TRAVERSAL), size)


def _join_cost(args: Sequence[object], result: object) -> int:
    size = actual_size(result)
    if result is PENDING and isinstance(args[0], LISTS):
        separator = actual_size(args[1]) if len(args) > 1 else 0
        size = sum(map(actual_size, args[0])) + separator * max(len(args[0]) - 1, 0)
    return math.ceil(size * 2 * STRING_TRAVERSAL)


def _quote_estimate(args: Sequence[CostNode]) -> CallEstimate:
    size = args[0].size
    # The upper bound wraps for unknown sizes, as upstream's does.
    result = SizeEstimate(min(size.min + 2, MAX), (size.max * 2 + 2) % (MAX + 1))
    return CallEstimate(size.cost(STRING_TRAVERSAL), result)


_STRINGS = list_of(STRING)
_PAIR = (STRING, STRING)
_THREE = (STRING, STRING, STRING)

STRINGS = Library(
    "cel.lib.ext.strings",
    functions=(
        member("charAt", "string_char_at_int", (STRING, INT), STRING, char_at),
        *priced(
            SCAN,
            member("indexOf", "string_index_of_string", _PAIR, INT, index_of),
            member("indexOf", "string_index_of_string_int", (*_PAIR, INT), INT, index_of),
            member("lastIndexOf", "string_last_index_of_string", _PAIR, INT, last_index_of),
            member(
                "lastIndexOf",
                "string_last_index_of_string_int",
                (*_PAIR, INT),
                INT,
                last_index_of_before,
            ),
        ),
        *priced(
            traversal_rule(keeps_size=True),
            member("lowerAscii", "string_lower_ascii", (STRING,), STRING, lower_ascii),
            member("upperAscii", "string_upper_ascii", (STRING,), STRING, upper_ascii),
            member("substring", "string_substring_int", (STRING, INT), STRING, substring),
            member("substring", "string_substring_int_int", (STRING, INT, INT), STRING, substring),
            member("trim", "string_trim", (STRING,), STRING, trim),
        ),
        *priced(
            Rule(_replace_estimate, _replace_cost),
            member("replace", "string_replace_string_string", _THREE, STRING, replace),
            member("replace", "string_replace_string_string_int", (*_THREE, INT), STRING, replace),
        ),
        *priced(
            Rule(_split_estimate, traversal_rule(passes=2).cost),
            member("split", "string_split_string", _PAIR, _STRINGS, split),
            member("split", "string_split_string_int", (*_PAIR, INT), _STRINGS, split),
        ),
        *priced(
            Rule(_join_estimate, _join_cost),
            member("join", "list_join", (_STRINGS,), STRING, join),
            member("join", "list_join_string", (_STRINGS, STRING), STRING, join),
        ),
        *priced(
            Rule(_quote_estimate, TRAVERSAL.cost),
            static("strings.quote", "strings_quote", (STRING,), STRING, quote),
        ),
        *FORMAT,
    ),
    validators=(validate,),
    mixes_types=frozenset({"format"}),
)
