"""Answers for users who may not see everything that is in use.

To them, what others hold looks free, and a search finds room where there is none. The scheduler sees everything, and its last word on a pod
is in the pod's condition, which takes precedence. Without one, the answer is based on what can be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from drayman.api.core import Pod
from drayman.reasons.reason import Headline, Reason

OUTSIDE: Final = " outside of namespace "
"""Between a kind and the only namespace in which its objects may be listed."""
UNTRIED: Final = "What is in the way is hidden from you."
_TAKING: Final = frozenset({"pods", "resourceclaims.resource.k8s.io"})
"""Objects that hold room and devices."""
_WAITING: Final = {f"{reason.title}: ": reason for reason in Reason if reason.kind is not None}


def hides_use(unseen: Iterable[str]) -> bool:
    """Whether what was not seen may include something that is in use."""
    return any(what.partition(" ")[0] in _TAKING for what in unseen)


def as_far_as_seen(unseen: Iterable[str], pod: Pod, fits: Headline) -> Headline:
    """What to say about a pod for which a search has found a place among what was seen."""
    if not hides_use(unseen):
        return fits
    headline = _written_by_scheduler(pod)
    if headline is None:
        return _ending(
            fits, "That is as far as you may see; you may not see everything that is in use."
        )
    return _ending(
        headline, "This is what the scheduler says; you may not see everything that is in use."
    )


def _ending(first: Headline, more: str) -> Headline:
    return msgspec.structs.replace(first, sentence=f"{first.sentence} {more}")


def _written_by_scheduler(pod: Pod) -> Headline | None:
    """The reason and sentence at the end of its condition, if the condition is one of ours."""
    for condition in pod.status.conditions:
        if condition.type_ == "PodScheduled" and condition.status == "False":
            places = ((condition.message.find(title), title) for title in _WAITING)
            at, title = min((place for place in places if place[0] >= 0), default=(-1, ""))
            if title:
                return Headline.of(_WAITING[title], condition.message[at + len(title) :])
    return None
