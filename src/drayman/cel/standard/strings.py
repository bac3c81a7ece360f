"""The string functions of the language itself: substrings and regular expressions."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from drayman.cel.costs import (
    REGEX_LENGTH,
    STRING_TRAVERSAL,
    CallEstimate,
    CostNode,
    actual_size,
    fixed_size,
    traversal,
)
from drayman.cel.functions import Library, Rule, member, static
from drayman.cel.regex import matches
from drayman.cel.types import BOOL, STRING


def _contains_estimate(args: Sequence[CostNode]) -> CallEstimate:
    return CallEstimate(args[0].size.cost(STRING_TRAVERSAL) * args[1].size.cost(STRING_TRAVERSAL))


def _matches_estimate(args: Sequence[CostNode]) -> CallEstimate:
    text = (args[0].size + fixed_size(1)).cost(STRING_TRAVERSAL)
    return CallEstimate(text * args[1].size.cost(REGEX_LENGTH))


def _matches_cost(args: Sequence[object], result: object) -> int:
    text = math.ceil((1 + actual_size(args[0])) * STRING_TRAVERSAL)
    return text * math.ceil(actual_size(args[1]) * REGEX_LENGTH)


_TEXTS = (STRING, STRING)
_CONTAINS = Rule(_contains_estimate, lambda args, result: traversal(args[0]) * traversal(args[1]))
_AFFIX = Rule(
    lambda args: CallEstimate(args[1].size.cost(STRING_TRAVERSAL)),
    lambda args, result: traversal(args[0]),
)
_MATCHES = Rule(_matches_estimate, _matches_cost)

STRINGS = Library(
    "strings",
    (
        member("contains", "contains_string", _TEXTS, BOOL, operator.contains, _CONTAINS),
        member("endsWith", "ends_with_string", _TEXTS, BOOL, str.endswith, _AFFIX),
        member("startsWith", "starts_with_string", _TEXTS, BOOL, str.startswith, _AFFIX),
        static("matches", "matches", _TEXTS, BOOL, matches, pattern=1),
        member("matches", "matches_string", _TEXTS, BOOL, matches, _MATCHES, pattern=1),
    ),
)
