"""A pod that has lost its node or its devices: another in its place.

Deleting it gives back what only it uses. Its controller makes another, which is placed as if the first had never existed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import started_at
from drayman.explain.answer import Operation, Remedy
from drayman.explain.choice import as_if_new
from drayman.explain.remedies.case import remedy
from drayman.explain.remedies.commands import delete_commands
from drayman.explain.remedies.nearness import nearest_first
from drayman.explain.remedies.trying import MOST_SEARCHES, Trials
from drayman.placement.world import World
from drayman.reasons.reason import Reason
from drayman.workloads.makers import maker_of

_AT_ONCE: Final = ("Deployment", "ReplicaSet", "Job")
"""What makes another pod while the first is still being deleted. A node that does not answer keeps it there."""


def replaced_pod(world: World, pod: Pod, reason: Reason) -> Iterator[Remedy]:
    """The pod deleted, and another made. One that names its node itself has to be made otherwise."""
    maker = maker_of(pod)
    names_its_node = reason is Reason.CLAIM_UNALLOCATED or started_at(pod) is None
    if names_its_node and maker is not None:
        return  # the next one would name it too
    if reason is Reason.NODE_NOT_READY and (maker is None or maker.kind not in _AT_ONCE):
        return
    with as_if_new(world, pod) as demand:
        if demand is None:
            return
        trials = Trials(world.state, world.now, nearest_first(world.state, {}), MOST_SEARCHES)
        fit = trials.first_fit(demand)
    if fit is None:
        return
    metadata = pod.metadata
    next_step = (
        f"and create it again{' without nodeName' if names_its_node else ''}"
        if maker is None
        else f"so that {maker.kind.lower()}/{maker.name} makes another"
    )
    sentence = f"delete pod {metadata.namespace}/{metadata.name} {next_step}"
    operation = Operation(
        verb="delete", kind=pod.kind, name=metadata.name, namespace=metadata.namespace
    )
    yield remedy(sentence, (operation,), fit, tuple(delete_commands([pod])))
