"""Shares by direct computation, to compare with what queues come to one workload at a time. Exact, and without the code under test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple


class Taker(NamedTuple):
    """Somebody who takes part in a division."""

    own: Fraction
    """What is its own, if it wants it."""
    wanted: Fraction
    """What it could use at most."""
    weight: Fraction
    """How fast it takes of what is left."""


def filled(total: Fraction, takers: Mapping[str, Taker]) -> dict[str, Fraction]:
    """Everybody gets its own; the rest rises like water, in vessels as wide as their weights, until they are full.

    Between two moments at which a vessel is filled the level rises evenly, so there are only so many steps.
    """
    got = {name: min(each.own, each.wanted) for name, each in takers.items()}
    left = total - sum(got.values(), Fraction(0))
    while left > 0:
        open_ = {n: t for n, t in takers.items() if got[n] < t.wanted and t.weight > 0}
        width = sum((each.weight for each in open_.values()), Fraction(0))
        if not open_:
            break
        rise = min((t.wanted - got[n]) / t.weight for n, t in open_.items())
        rise = min(rise, left / width)
        for name, each in open_.items():
            got[name] += rise * each.weight
        left -= rise * width
    return got


def dominant(
    pools: Mapping[str, int],
    asks: Mapping[str, Mapping[str, int]],
    weights: Mapping[str, Fraction],
    numbers: Mapping[str, int],
) -> dict[str, Fraction]:
    """How many workloads each gets, in fractions, if dominant shares over weights rise together until something is used up.

    `asks` is what a workload of each takes of each pool, `numbers` how many there are.
    """
    speed = {
        name: weights[name] / max(Fraction(ask[pool], pools[pool]) for pool in ask if pools[pool])
        for name, ask in asks.items()
    }
    got = dict.fromkeys(asks, Fraction(0))
    left = {pool: Fraction(amount) for pool, amount in pools.items()}
    while True:
        open_ = [
            name
            for name, ask in asks.items()
            if got[name] < numbers[name] and all(left[pool] > 0 for pool in ask if ask[pool])
        ]
        if not open_:
            return got
        use = {pool: _sum(speed[name] * asks[name].get(pool, 0) for name in open_) for pool in left}
        ends = [left[pool] / rate for pool, rate in use.items() if rate]
        ends += [(numbers[name] - got[name]) / speed[name] for name in open_]
        rise = min(ends)
        for name in open_:
            got[name] += rise * speed[name]
        for pool, rate in use.items():
            left[pool] -= rise * rate


def _sum(amounts: object) -> Fraction:
    return sum(amounts, Fraction(0))  # type: ignore[call-overload, no-any-return]


def widest(weights: Sequence[Fraction]) -> Fraction:
    """The slack of whoever has the smallest weight: with one workload it rises by so much more than others."""
    return 1 / min(weights)
