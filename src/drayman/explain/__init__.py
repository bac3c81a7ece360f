"""Why a pod waits, what would help, and why a running pod is where it is.

Every sentence is derived from what the placement itself recorded, and every remedy has been tried by a search before it is named.
Pure, like all it builds on: objects in, an `Explanation` out. For use as a library: `explain_pod(world, pod)` and its siblings, with a
`drayman.placement.world.World` that holds the objects of a cluster.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drayman.explain.answer import Explanation
    from drayman.explain.claim import explain_claim
    from drayman.explain.group import explain_group
    from drayman.explain.node import explain_node
    from drayman.explain.overview import explain_all, explain_namespace
    from drayman.explain.pod import explain_pod
    from drayman.explain.workload import explain_job, explain_workload
    from drayman.reasons.reason import Outlook, Reason

__all__ = [
    "Explanation",
    "Outlook",
    "Reason",
    "explain_all",
    "explain_claim",
    "explain_group",
    "explain_job",
    "explain_namespace",
    "explain_node",
    "explain_pod",
    "explain_workload",
]

_HOMES = {
    "Explanation": "drayman.explain.answer",
    "Outlook": "drayman.reasons.reason",
    "Reason": "drayman.reasons.reason",
    "explain_all": "drayman.explain.overview",
    "explain_claim": "drayman.explain.claim",
    "explain_group": "drayman.explain.group",
    "explain_job": "drayman.explain.workload",
    "explain_namespace": "drayman.explain.overview",
    "explain_node": "drayman.explain.node",
    "explain_pod": "drayman.explain.pod",
    "explain_workload": "drayman.explain.workload",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used: a question needs only what answers it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'drayman.explain' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
