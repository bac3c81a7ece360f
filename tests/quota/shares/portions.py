"""The division of a whole number of GPUs by hand, in whole numbers: for comparing, not for speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Sister:
    """One of several queues that divide something. Bounds below zero are none."""

    name: str
    quota: int
    limit: int
    weight: int
    priority: int
    age: float
    wants: int


def portions(sisters: Sequence[Sister], total: int) -> dict[str, int]:
    """Quotas first, then priority by priority by weight, then single units to the largest remainders."""
    most = {s.name: s.wants if s.limit < 0 else min(s.wants, s.limit) for s in sisters}
    have = {s.name: min(most[s.name], total if s.quota < 0 else s.quota) for s in sisters}
    pot = max(0, total - sum(have.values()))
    owed: dict[str, Fraction] = {}
    for priority in sorted({s.priority for s in sisters}, reverse=True):
        pot = _poured(
            {s.name: s.weight for s in sisters if s.priority == priority and s.weight},
            pot,
            most,
            have,
            owed,
        )
    by_turn = sorted(sisters, key=lambda s: (-s.priority, -owed.get(s.name, 0), -s.age, s.name))
    for each in [s for s in by_turn if s.name in owed][:pot]:
        have[each.name] += 1
    return have


def _poured(
    weights: Mapping[str, int],
    pot: int,
    most: Mapping[str, int],
    have: dict[str, int],
    owed: dict[str, Fraction],
) -> int:
    """One priority: whole units by weight, again while somebody wants less than its part. Returns what is left in the pot."""
    again = True
    while again and pot:
        again = False
        thirsty = [name for name in weights if have[name] < most[name]]
        parts, pool = sum(weights[name] for name in thirsty), pot
        for name in thirsty:
            whole, rest = divmod(pool * weights[name], parts)
            lacking = most[name] - have[name]
            if lacking < whole or (lacking == whole and rest):
                again = True
            if lacking <= whole:
                whole, rest = lacking, 0
                owed.pop(name, None)
            have[name] += whole
            pot -= whole
            if rest:
                owed[name] = Fraction(rest, parts)
    return pot
