"""What a headline is made from: a reason, and the nodes that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from drayman.placement.fit import Verdict
from drayman.placement.refusing import DevicesVerdict, Shortage
from drayman.reasons.reason import Reason

ELIGIBLE: Final = "that the pod may go to"
"""Said of nodes where others, which the pod is kept from, have what these lack."""


class Group(Struct, frozen=True):
    """Nodes that say the same."""

    verdict: Verdict
    nodes: tuple[str, ...]
    """In the order of arrival."""

    @property
    def number(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a pod waits."""

    reason: Reason
    groups: tuple[Group, ...] = ()
    """The nodes that came furthest."""
    shortage: Shortage | None = None
    """The request that is at fault, on the first of them."""
    detail: str = ""

    @property
    def nodes(self) -> list[str]:
        return [name for group in self.groups for name in group.nodes]


def grouped(verdicts: Mapping[str, Verdict], nodes: Iterable[str]) -> list[Group]:
    """Nodes grouped by what they say. Equal verdicts are the same object, so this costs one look at each node."""
    found: dict[Verdict, list[str]] = {}
    for name in nodes:
        verdict = verdicts.get(name)
        if verdict is not None:
            known = found.get(verdict)
            if known is None:
                found[verdict] = [name]
            else:
                known.append(name)
    return [Group(verdict, tuple(names)) for verdict, names in found.items()]


def furthest(groups: Iterable[Group]) -> list[Group]:
    """The groups whose nodes came furthest, the largest first."""
    found = list(groups)
    best = max((group.verdict.cause for group in found), default=None)
    kept = [group for group in found if group.verdict.cause == best]
    return sorted(kept, key=lambda group: (-group.number, group.verdict.reasons))


def shortages_of(group: Group) -> tuple[Shortage, ...]:
    verdict = group.verdict
    return verdict.shortages if isinstance(verdict, DevicesVerdict) else ()
