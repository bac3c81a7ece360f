"""How many pods are made for one object: no more than a bound while they wait for a node.

An object may ask for two thousand million pods. Those that nodes take are bounded by the nodes; those that wait are bounded here, since
each of them costs memory, room on disk and work of the scheduler, and the last of them waits no longer for being made later. More are made
as soon as some of them have a node, so the number that was asked for is reached wherever there is room for it.

Pods that bring claims along, or that are unusually large, count for more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from drayman.api.core import Pod
from drayman.api.pods import is_active
from drayman.api.struct import Json

MOST_WAITING: Final = 5_000
"""Objects of one owner that wait: pods, and the claims that are made for them. More than any group that has to be placed together."""
USUAL_BYTES: Final = 4096
"""The JSON of a pod. Each multiple of it counts like another object."""


def weight_of(template: dict[str, Json], claims: int = 0) -> int:
    """For how many objects a pod of this template counts. `claims` are those that its owner makes for it."""
    spec = template.get("spec") or {}
    generated = sum(
        "resourceClaimTemplateName" in each for each in spec.get("resourceClaims") or ()
    )
    ephemeral = sum("ephemeral" in each for each in spec.get("volumes") or ())
    size = len(msgspec.json.encode(template))
    return 1 + generated + ephemeral + claims + size // USUAL_BYTES


def most_waiting(weight: int) -> int:
    """How many pods of this weight may wait. There is always room for one."""
    return max(1, MOST_WAITING // weight)


def room_for(pods: Iterable[Pod], weight: int) -> int:
    """How many more pods may be made for the owner of these."""
    waiting = sum(not pod.spec.node_name and is_active(pod) for pod in pods)
    return max(0, most_waiting(weight) - waiting)
