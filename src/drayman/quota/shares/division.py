"""The fair share of each queue: how what is there is divided, level by level.

Every queue gets what it wants up to its quota, whatever others get. What is left goes to the queues of the highest priority first. Among
equals it is divided by weight and rounded down, again and again while a queue that has enough leaves something to the others. What
rounding leaves over is handed down to the next priority. What then remains is dealt one by one: to the higher priority, the larger
remainder, the older queue. A queue of weight 0 gets nothing beyond its quota.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor

from drayman.placement.queueing.queues import Amount, Queue, QueueTree


def fair_shares(tree: QueueTree, total: int, demand: Mapping[str, Amount]) -> dict[str, Amount]:
    """The share of each queue. `demand` is what the work of each queue uses and wants, with that of the queues below it."""
    shares: dict[str, Amount] = {}

    def below(name: str, amount: Amount) -> None:
        children = tree.children(name)
        if children:
            divided = divide(children, amount, demand)
            shares.update(divided)
            for each in children:
                below(each.name, divided[each.name])

    below("", total)
    return shares


def divide(
    queues: Sequence[Queue], total: Amount, demand: Mapping[str, Amount]
) -> dict[str, Amount]:
    """What each of some sister queues gets of a total."""
    wanted = {each.name: _within(demand.get(each.name, 0), each.limit) for each in queues}
    shares = {each.name: min(wanted[each.name], _quota(each, total)) for each in queues}
    rest = total - sum(shares.values())
    remainders: dict[str, Amount] = {}
    for priority in sorted({each.priority for each in queues}, reverse=True):
        equals = [each for each in queues if each.priority == priority]
        rest = _by_weight(equals, rest, wanted, shares, remainders)
    dealt = [each for each in queues if each.name in remainders]
    dealt.sort(key=lambda each: (-each.priority, -remainders[each.name], each.created, each.name))
    for each in dealt:
        given = min(1, rest, wanted[each.name] - shares[each.name])
        if given > 0:
            shares[each.name] += given
            rest -= given
    return shares


def _by_weight(
    queues: Sequence[Queue],
    rest: Amount,
    wanted: Mapping[str, Amount],
    shares: dict[str, Amount],
    remainders: dict[str, Amount],
) -> Amount:
    """Divide what is left among queues of one priority. Returns what is left then, and notes what rounding has cost each of them."""
    while rest > 0:
        wanting = [q for q in queues if q.weight > 0 and wanted[q.name] > shares[q.name]]
        if not wanting:
            break
        weights, amount = sum(Fraction(each.weight) for each in wanting), rest
        is_any_left = False  # by a queue that wants less than it could have
        for each in wanting:
            ideal = amount * Fraction(each.weight) / weights
            lacking = wanted[each.name] - shares[each.name]
            given = lacking if lacking <= ideal else floor(ideal)
            shares[each.name] += given
            rest -= given
            is_any_left |= lacking < ideal
            if lacking <= ideal:
                remainders.pop(each.name, None)
            elif given < ideal:
                remainders[each.name] = ideal - given
        if not is_any_left:
            break
    return rest


def _within(amount: Amount, limit: Amount | None) -> Amount:
    return amount if limit is None else min(amount, limit)


def _quota(queue: Queue, total: Amount) -> Amount:
    return total if queue.quota is None else queue.quota
