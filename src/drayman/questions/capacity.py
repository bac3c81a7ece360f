"""How often a claim fits into a cluster."""

from __future__ import annotations

from dataclasses import replace

from drayman.api.resource import ResourceClaim
from drayman.placement.world import World
from drayman.questions.errors import QuestionError
from drayman.questions.manifests import read_manifests
from drayman.simulate.capacity import Capacity
from drayman.simulate.capacity import capacity as capacity_of


async def capacity(world: World, name: str, data: bytes, namespace: str) -> Capacity:
    """How often the only ResourceClaim or ResourceClaimTemplate of a file fits; `name` is what errors call it. Raises QuestionError."""
    world, claim = await _joined(world, name, data, namespace)
    return capacity_of(world, claim)


async def _joined(
    world: World, name: str, data: bytes, namespace: str
) -> tuple[World, ResourceClaim]:
    """The cluster with what else is in the file, and the claim."""
    # The cluster may have a claim of that name. The question is about another one like it.
    unclaimed = world.with_objects(replace(world.objects, claims=()))
    objects = (await read_manifests([(name, data)], unclaimed, namespace)).wanted.objects
    made = (ResourceClaim(metadata=t.metadata, spec=t.spec.spec) for t in objects.templates)
    claims = (*objects.claims, *made)
    if len(claims) != 1:
        raise QuestionError(
            f"{name}: has {len(claims)} ResourceClaims and ResourceClaimTemplates; expected one"
        )
    joining = replace(objects, claims=(), templates=())
    return world.with_objects(world.objects.joined(joining)), claims[0]
