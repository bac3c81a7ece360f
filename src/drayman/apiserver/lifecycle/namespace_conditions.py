"""What the status of a namespace says about its deletion: what is left in it, which finalizers hold that, what could not be deleted.

There are five conditions, all present from the first look on. Two of them are about discovery, which cannot fail here: the table of
resources is in memory. They are written nevertheless, as clients wait for conditions by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from drayman.apiserver.served.strategy import Object

DISCOVERY: Final = "NamespaceDeletionDiscoveryFailure"
PARSING: Final = "NamespaceDeletionGroupVersionParsingFailure"
FAILURE: Final = "NamespaceDeletionContentFailure"
REMAINING: Final = "NamespaceContentRemaining"
FINALIZERS: Final = "NamespaceFinalizersRemaining"

_WELL: Final = {
    DISCOVERY: ("ResourcesDiscovered", "All resources successfully discovered"),
    PARSING: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    FAILURE: (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    REMAINING: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""Reason and message of each condition if there is no problem, in the order they are written."""


def deletion_conditions(
    before: Sequence[Object],
    remaining: Mapping[str, int],
    finalizers: Mapping[str, int],
    problems: Iterable[str],
    now: str,
) -> list[Object]:
    """The conditions of a namespace, from those it has, how much is left of each resource and behind each finalizer, and what failed.

    Resources are named `plural.group`, with the dot also where there is no group.
    """
    troubles = _troubles(remaining, finalizers, sorted(problems))
    conditions = [dict(condition) for condition in before]
    known = {condition["type"]: condition for condition in conditions}
    for kind, well in _WELL.items():
        reason, message = troubles.get(kind, well)
        status = "True" if kind in troubles else "False"
        condition = known.get(kind)
        if condition is None:
            condition = {"type": kind}
            conditions.append(condition)
        if condition.get("status") != status:
            condition["lastTransitionTime"] = now
        condition.update(status=status, reason=reason, message=message)
    return conditions


def _troubles(
    remaining: Mapping[str, int], finalizers: Mapping[str, int], problems: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Reason and message of the conditions that hold."""
    troubles = {}
    if remaining:
        left = sorted(f"{name} has {count} resource instances" for name, count in remaining.items())
        message = f"Some resources are remaining: {', '.join(left)}"
        troubles[REMAINING] = ("SomeResourcesRemain", message)
    if finalizers:
        held = sorted(f"{name} in {count} resource instances" for name, count in finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(held)}"
        troubles[FINALIZERS] = ("SomeFinalizersRemain", message)
    if problems:
        message = (
            f"Failed to delete all resource types, {len(problems)} remaining: {', '.join(problems)}"
        )
        troubles[FAILURE] = ("ContentDeletionFailed", message)
    return troubles


def count_finalizers(finalizers: Iterable[Sequence[str]]) -> Counter[str]:
    """The number of objects with each finalizer."""
    return Counter(name for names in finalizers for name in set(names))
