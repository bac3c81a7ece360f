"""What a rule says about a pod on a node: that it fits, or why not.

A cycle asks thousands of times and mostly gets the same few answers, so refusals are interned and "fits" is one object: the common path
allocates nothing, and a cache of verdicts is a cache of references. The reasons are in kube-scheduler's words, since people and dashboards
search for those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

UNSCHEDULABLE: Final = "node(s) were unschedulable"
OTHER_NODE_NAME: Final = "node(s) didn't match the requested node name"
UNTOLERATED_TAINT: Final = "node(s) had untolerated taint(s)"
NODE_AFFINITY: Final = "node(s) didn't match Pod's node affinity/selector"
NO_FREE_PORTS: Final = "node(s) didn't have free ports for the requested pod ports"
TOO_MANY_PODS: Final = "Too many pods"
POD_AFFINITY: Final = "node(s) didn't match pod affinity rules"
POD_ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD: Final = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL: Final = f"{SPREAD} (missing required label)"

NO_NODES: Final = "no nodes available to schedule pods."

_REFUSALS: Final = 1 << 12


class Cause(IntEnum):
    """The rule that refuses. In the order in which the rules are evaluated: the higher, the more rules the node has passed."""

    NOTHING = 0
    CORDONED = 1
    NODE_NAME = 2
    NODE_TAINT = 3
    NODE_AFFINITY = 4
    SPOT = 5
    PORTS = 6
    RESOURCES = 7
    VOLUME_UNBOUND = 8
    VOLUME_IN_USE = 9
    VOLUME_ELSEWHERE = 10
    VOLUME_LACKING = 11
    """There is no volume for a claim there, and none can be made."""
    SPREAD = 12
    POD_AFFINITY = 13
    POD_ANTI_AFFINITY = 14
    CLASS_MISSING = 15
    CLAIM_LEFT_BEHIND = 16
    DEVICES = 17
    DEVICE_RESOURCES = 18
    """What the devices take of the node's own resources."""
    CLAIM_ELSEWHERE = 19
    SEARCH_LIMIT = 20


class Verdict(Struct, frozen=True, eq=False):
    """Fits, or the reasons why not. Make refusals with `Verdict.refusal`: equal ones are then the same object."""

    fits: bool
    cause: Cause = Cause.NOTHING
    reasons: tuple[str, ...] = ()
    resolvable: bool = False
    """Whether the pod could fit if other pods left the node."""

    @staticmethod
    def refusal(cause: Cause, *reasons: str, resolvable: bool = False) -> Verdict:
        return _refusal(cause, reasons, resolvable)


FITS: Final = Verdict(fits=True)


@lru_cache(maxsize=_REFUSALS)
def _refusal(cause: Cause, reasons: tuple[str, ...], resolvable: bool) -> Verdict:
    return Verdict(False, cause, reasons, resolvable)


def insufficient(resource: str) -> str:
    return f"Insufficient {resource}"


def unschedulable_message(total: int, verdicts: Iterable[Verdict]) -> str:
    """Why no node will do, as kube-scheduler puts it: how many nodes for each reason, in the order of the texts.

    `verdicts` are those of all nodes, or a single one that holds for the pod on any node: that is reported without a number.
    """
    if not total:
        return NO_NODES
    counted: Counter[str] = Counter()
    # There are thousands of nodes and a few verdicts, which are distinguished by identity.
    for verdict, nodes in Counter(verdicts).items():
        for reason in verdict.reasons:
            counted[reason] += nodes
    reasons = sorted(f"{count} {reason}" for reason, count in counted.items())
    return _available(total, reasons)


def refused_everywhere(total: int, verdict: Verdict) -> str:
    """The same for a reason that is due to the pod and not to any node."""
    return _available(total, [", ".join(verdict.reasons)]) if total else NO_NODES


def _available(total: int, reasons: list[str]) -> str:
    head = f"0/{total} nodes are available:"
    return f"{head} {', '.join(reasons)}." if reasons else head
