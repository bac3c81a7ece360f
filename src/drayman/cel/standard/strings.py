"""The string functions of the language itself: substrings and regular expressions."""

from __future__ import annotations

import math
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
from drayman.cel.functions import Function, Library, Overload
from drayman.cel.regex import matches
from drayman.cel.types import BOOL, STRING


def _affix_estimate(args: Sequence[CostNode]) -> CallEstimate:
    return CallEstimate(args[1].size.cost(STRING_TRAVERSAL))


def _affix_cost(args: Sequence[object], result: object) -> int:
    return traversal(args[0])


def _contains_estimate(args: Sequence[CostNode]) -> CallEstimate:
    return CallEstimate(args[0].size.cost(STRING_TRAVERSAL) * args[1].size.cost(STRING_TRAVERSAL))


def _contains_cost(args: Sequence[object], result: object) -> int:
    return traversal(args[0]) * traversal(args[1])


def _matches_estimate(args: Sequence[CostNode]) -> CallEstimate:
    text = (args[0].size + fixed_size(1)).cost(STRING_TRAVERSAL)
    return CallEstimate(text * args[1].size.cost(REGEX_LENGTH))


def _matches_cost(args: Sequence[object], result: object) -> int:
    text = math.ceil((1 + actual_size(args[0])) * STRING_TRAVERSAL)
    return text * math.ceil(actual_size(args[1]) * REGEX_LENGTH)


_TEXTS = (STRING, STRING)

STRINGS = Library(
    "strings",
    (
        Function(
            "contains",
            (
                Overload(
                    "contains_string",
                    _TEXTS,
                    BOOL,
                    lambda text, part: part in text,
                    member=True,
                    estimate=_contains_estimate,
                    cost=_contains_cost,
                ),
            ),
        ),
        Function(
            "endsWith",
            (
                Overload(
                    "ends_with_string",
                    _TEXTS,
                    BOOL,
                    str.endswith,
                    member=True,
                    estimate=_affix_estimate,
                    cost=_affix_cost,
                ),
            ),
        ),
        Function(
            "startsWith",
            (
                Overload(
                    "starts_with_string",
                    _TEXTS,
                    BOOL,
                    str.startswith,
                    member=True,
                    estimate=_affix_estimate,
                    cost=_affix_cost,
                ),
            ),
        ),
        Function(
            "matches",
            (
                Overload("matches", _TEXTS, BOOL, matches, pattern=1),
                Overload(
                    "matches_string",
                    _TEXTS,
                    BOOL,
                    matches,
                    member=True,
                    pattern=1,
                    estimate=_matches_estimate,
                    cost=_matches_cost,
                ),
            ),
        ),
    ),
)
