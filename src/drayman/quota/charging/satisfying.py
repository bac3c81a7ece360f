"""Whether a node could ever have what the claims of a pod ask for together, if nobody used it.

Prices count devices; constraints say that these have to agree or differ in something, and that is for the search to decide. It is asked
about an unused cluster: a pod that would not even fit there is told so, rather than given quota that it can never use. Whether there is
room now is another question, which admission asks. A search that reaches its limit says nothing either way.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from drayman.allocator import Exhausted, Fault, Plan, Policy, Question, search, signature
from drayman.api.meta import ObjectMeta
from drayman.api.resource import ResourceClaim, ResourceClaimSpec
from drayman.placement.state import ClusterState

_MOST_STEPS: Final = 20_000
"""Of all searches together: many times what a pod takes on a node that has room for it."""
_MOST_KINDS: Final = 64
"""Kinds of nodes that are asked. A cluster has a few; one with more is left to admission."""


def may_be_satisfied(
    claims: Sequence[ResourceClaimSpec], state: ClusterState, labels: Mapping[str, str] | None
) -> bool:
    """Whether any node, of those with the labels, could have the devices of these claims at once. Without nodes, nothing is known."""
    if not any(spec.devices.constraints for spec in claims) or not state.nodes:
        return True
    question = Question(
        [
            ResourceClaim(metadata=ObjectMeta(name=f"claim-{number}", uid=f"{number}"), spec=spec)
            for number, spec in enumerate(claims)
        ]
    )
    empty = state.emptied()
    asked: set[Hashable] = set()
    left = _MOST_STEPS
    for known in empty.nodes.values():
        if labels and not known.node.metadata.labels.items() >= labels.items():
            continue
        view = empty.view(known)
        kind = signature(view, question)
        if kind in asked:
            continue
        asked.add(kind)
        if len(asked) > _MOST_KINDS:
            return True
        found = search(view, question, policy=Policy.FIRST_FIT, max_steps=left)
        if isinstance(found, Plan | Exhausted | Fault):
            return True
        left -= found.steps
        if left <= 0:
            return True
    return not asked
