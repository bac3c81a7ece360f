"""Room that is kept for what waits because others make way for it: pods say so themselves, in `status.nominatedNodeName`."""

from __future__ import annotations

from collections.abc import Iterable

from drayman.api.core import Pod
from drayman.api.pods import is_terminating
from drayman.placement.world import World
from drayman.reasons.reason import Headline
from drayman.reasons.wording import and_list, counted


def with_room_kept(world: World, first: Headline, waiting: Iterable[Pod]) -> Headline:
    """What there is to say about pods without a node, with where room is kept for them and how many pods have yet to go there."""
    nodes = {pod.status.nominated_node_name for pod in waiting if not pod.spec.node_name} - {""}
    if not nodes:
        return first
    leaving = sum(pod.spec.node_name in nodes and is_terminating(pod) for pod in world.objects.pods)
    named = f"node {min(nodes)}" if len(nodes) == 1 else f"nodes {and_list(sorted(nodes))}"
    going = f": {counted(leaving, 'pod')} there {_have(leaving)} yet to go" if leaving else ""
    return Headline.of(first.reason, f"{first.sentence} Room is kept for it on {named}{going}.")


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
