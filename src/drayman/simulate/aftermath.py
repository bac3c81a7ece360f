"""The cluster as a plan leaves it, as objects: for questions that come after the plan, such as which pods hold what another lacks."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from drayman.api.core import Pod, PodResourceClaimStatus
from drayman.api.resource import ResourceClaim
from drayman.placement.decision.drafting import statuses_of_made
from drayman.placement.decision.placements import Placement
from drayman.placement.world import Objects, World
from drayman.simulate.plan_turn import Turn


def afterwards(world: World, turns: Iterable[Turn]) -> World:
    """The world with the pods of these turns, which have been decided, and with their claims."""
    pods: list[Pod] = []
    claims: dict[tuple[str, str], ResourceClaim] = {}
    for turn in turns:
        pod, own = _placed(turn.placement) if turn.placement is not None else _waiting(turn)
        pods.append(pod)
        # If several pods use a claim, the last has the result of all of them.
        claims.update(((c.metadata.namespace, c.metadata.name), c) for c in own)
    return world.with_objects(
        world.objects.joined(Objects(pods=tuple(pods), claims=tuple(claims.values())))
    )


def _placed(placement: Placement) -> tuple[Pod, list[ResourceClaim]]:
    """A pod on its node, and the claims that were changed or made for it."""
    pod = _using(placement.pod, placement.generated)
    pod = replace(pod, spec=replace(pod.spec, node_name=placement.node))
    made = [_existing(item.claim, pod) for item in placement.made]
    return pod, [*placement.claims, *made]


def _waiting(turn: Turn) -> tuple[Pod, list[ResourceClaim]]:
    """A pod without a node. Its claims are made nevertheless."""
    drafts = [] if turn.demand is None else [c for c in turn.demand.open if not c.metadata.uid]
    pod = _using(turn.pod, statuses_of_made(turn.pod, drafts))
    return pod, [_existing(draft, pod) for draft in drafts]


def _existing(draft: ResourceClaim, pod: Pod) -> ResourceClaim:
    uid = f"{pod.metadata.uid} {draft.metadata.name}"
    return replace(draft, metadata=replace(draft.metadata, uid=uid))


def _using(pod: Pod, statuses: tuple[PodResourceClaimStatus, ...]) -> Pod:
    """The pod with what its status says about claims that were made for it."""
    if not statuses:
        return pod
    return replace(pod, status=replace(pod.status, resource_claim_statuses=statuses))
