"""Which names that exist may have been meant by one that does not: names with a domain, such as labels, attributes and annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_MOST_SIMILAR: Final = 3
_FAR: Final = 1 << 10


def similar(name: str, known: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Names that this one may be a misspelling of, nearest first, each with the number of those that have it."""
    ranked = sorted((_remoteness(name, other), other) for other in known)
    near = [other for far, other in ranked if far < _FAR]
    return tuple((other, known[other]) for other in near[:_MOST_SIMILAR])


def _remoteness(name: str, other: str) -> int:
    """How many typing errors lie between two names, domain and name counted separately; `_FAR` if it cannot be a slip."""
    domain, _, own = name.rpartition("/")
    other_domain, _, its = other.rpartition("/")
    slips = edits(own.lower(), its.lower())
    if slips > _tolerable(own):
        return _FAR
    if domain == other_domain:
        return slips
    # The right name in another domain is a common mistake, however different the domains are.
    strangeness = edits(domain, other_domain)
    if strangeness <= _tolerable(domain):
        return slips + strangeness
    return _FAR if slips else _tolerable(own) + _tolerable(domain)


def _tolerable(name: str) -> int:
    return 1 + len(name) // 4


def edits(first: str, second: str) -> int:
    """How many letters have to be changed, inserted, removed or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        last, before, row = before, row, [i] + [0] * len(second)
        for j, other in enumerate(second, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            swapped = i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other
            row[j] = min(best, last[j - 2] + 1) if swapped else best
    return row[-1]
