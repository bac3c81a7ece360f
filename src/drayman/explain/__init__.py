"""Why a pod waits, what would help, and why one that runs is where it is.

Every sentence is derived from what the placement itself recorded, and every remedy has been tried by a search before it is named.
Pure, like all it builds on: objects in, an `Explanation` out. For use as a library: `explain_pod(world, pod)` and its siblings, with a
`drayman.simulate.world.World` that holds the objects of a cluster.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drayman.explain.answer import Explanation
    from drayman.explain.claim import explain_claim
    from drayman.explain.node import explain_node
    from drayman.explain.overview import explain_all, explain_namespace
    from drayman.explain.pod import explain_pod
    from drayman.explain.reasons import Kind, Reason
    from drayman.explain.workload import explain_job, explain_workload

__all__ = [
    "Explanation",
    "Kind",
    "Reason",
    "explain_all",
    "explain_claim",
    "explain_job",
    "explain_namespace",
    "explain_node",
    "explain_pod",
    "explain_workload",
]

_HOMES = {
    "Explanation": "answer",
    "Kind": "reasons",
    "Reason": "reasons",
    "explain_all": "overview",
    "explain_claim": "claim",
    "explain_job": "workload",
    "explain_namespace": "overview",
    "explain_node": "node",
    "explain_pod": "pod",
    "explain_workload": "workload",
}


def __getattr__(name: str) -> object:
    """Imported when first used: a scheduler needs the headlines and nothing else."""
    if name not in _HOMES:
        raise AttributeError(f"module 'drayman.explain' has no attribute {name!r}")
    return getattr(import_module(f"drayman.explain.{_HOMES[name]}"), name)
