"""Why a workload has no quota, as a reason and a sentence. What is said comes from what the engine decided and from what it counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from drayman.explain.queue_answer import Need
from drayman.quota.reasons import (
    EXCEEDS_MAX_QUOTA,
    MISCONFIGURED,
    NO_MATCHING_FLAVOR,
    PENDING_EVALUATION,
    SUSPENDED,
    TOPOLOGY_PLACEMENT_FAILED,
    WAITING_FOR_PODS_READY,
    WAITING_FOR_PREEMPTED,
    WAITING_FOR_QUOTA,
    WAITING_FOR_ROOM,
)
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import and_list, named

_REASONS: Final[Mapping[str, Reason]] = {
    WAITING_FOR_QUOTA: Reason.QUOTA_IN_USE,
    EXCEEDS_MAX_QUOTA: Reason.QUOTA_TOO_SMALL,
    NO_MATCHING_FLAVOR: Reason.FLAVOR_MISMATCH,
    TOPOLOGY_PLACEMENT_FAILED: Reason.QUOTA_SCATTERED,
    WAITING_FOR_PREEMPTED: Reason.QUOTA_PREEMPTING,
    WAITING_FOR_PODS_READY: Reason.QUOTA_PREEMPTING,
    MISCONFIGURED: Reason.QUEUE_MISSING,
    SUSPENDED: Reason.QUEUE_INACTIVE,
    PENDING_EVALUATION: Reason.CHECKS_PENDING,
}


def refused(
    reason: str, message: str, queue: str, needs: Sequence[Need], victims: Sequence[str]
) -> Headline:
    """Why the engine gives no quota."""
    found = _REASONS.get(reason, Reason.QUOTA_IN_USE)
    if found is Reason.QUOTA_IN_USE and (short := _short(needs)):
        more = f"; {message.rstrip('.')}" if reason == WAITING_FOR_ROOM else ""
        return Headline.of(
            found, f"ClusterQueue {queue} has too little unused quota: {short}{more}."
        )
    if found is Reason.QUOTA_TOO_SMALL and (short := _never(needs)):
        return Headline.of(
            found,
            f"ClusterQueue {queue} cannot give it so much, even if nobody else used any: {short}.",
        )
    if found is Reason.QUOTA_PREEMPTING and victims:
        has = "gives" if len(victims) == 1 else "give"
        text = f"Quota is being made free: {named('workload', victims)} {has} it up."
        return Headline.of(found, text)
    return Headline.of(found, sentence(message))


def uncovered(queue: str, resources: Sequence[str], covered: Sequence[str]) -> Headline:
    """For what asks for something that a queue knows nothing of."""
    has = and_list(covered) if covered else "nothing"
    text = f"ClusterQueue {queue} has no quota of {and_list(resources)}, only of {has}."
    return Headline.of(Reason.FLAVOR_MISMATCH, text)


def sentence(message: str) -> str:
    text = message.strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def behind(queue: str, head: str, position: int) -> Headline:
    """For those behind the head of a strict queue."""
    text = (
        f"ClusterQueue {queue} is strict (StrictFIFO): nothing starts before workload {head}, which is"
        f" first and gets no quota. This one is number {position}."
    )
    return Headline.of(Reason.BEHIND_IN_QUEUE, text)


def fits(queue: str) -> Headline:
    text = f"ClusterQueue {queue} has quota for it; it starts as soon as it is its turn."
    return Headline.of(Reason.FITS, text)


def lost(queue: str, by: str) -> Headline:
    """For what would get quota and keep it for a moment only."""
    text = f"It would get quota of ClusterQueue {queue} and be preempted for workload {by} at once."
    return Headline.of(Reason.BEHIND_IN_QUEUE, text)


def without_room(queue: str, message: str, victims: Sequence[str] = ()) -> Headline:
    text = f"ClusterQueue {queue} has quota for it, but there is no room for all of its pods: {message.rstrip('.')}."
    if victims:
        text += f" To make room, {named('workload', victims)} would be preempted."
    return Headline.of(Reason.QUOTA_WITHOUT_ROOM, text)


def _short(needs: Sequence[Need]) -> str:
    """What is lacking in each flavor that would do: one of them is enough."""
    ways: dict[str, list[str]] = {}
    for need in needs:
        if need.may_become_free:
            said = f"{need.wanted} {need.resource} wanted, {need.free} free"
            ways.setdefault(need.flavor, []).append(said)
    return "; ".join(f"of flavor {flavor} {and_list(said)}" for flavor, said in ways.items())


def _never(needs: Sequence[Need]) -> str:
    found = [
        f"{need.wanted} {need.resource} wanted, at most {need.most} in flavor {need.flavor}"
        for need in needs
        if not need.mismatch and need.wanted.amount > need.most.amount
    ]
    return "; ".join(found)


def ahead_of(position: int, waiting: int, queue: str, ahead: Sequence[str]) -> str:
    """Where something is in its queue."""
    if position == 1:
        rest = f" of {waiting}" if waiting > 1 else ""
        return f"first{rest} in ClusterQueue {queue}"
    more = position - 1 - len(ahead)
    said = f"{', '.join(ahead)} and {more:,} more" if more else and_list(ahead, most=len(ahead))
    return f"number {position:,} of {waiting:,} in ClusterQueue {queue}, behind {said}"


def ends(workloads: Sequence[str]) -> str:
    """If these workloads end."""
    verb = "ends" if len(workloads) == 1 else "end"
    return f"{named('workload', workloads)} {verb}"
