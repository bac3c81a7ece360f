"""How often a claim fits into a cluster."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from drayman.api.resource import ResourceClaim
from drayman.placement.world import Objects, World
from drayman.questions.errors import QuestionError
from drayman.questions.manifests import read_manifests
from drayman.simulate.capacity import Capacity
from drayman.simulate.capacity import capacity as capacity_of


async def capacity(world: World, name: str, data: bytes, namespace: str) -> Capacity:
    """How often the only ResourceClaim or ResourceClaimTemplate of a file fits; `name` is what errors call it. Raises QuestionError."""
    # The cluster may have a claim of that name. The question is about another one like it.
    unclaimed = world.with_objects(replace(world.objects, claims=()))
    manifests = await read_manifests([(name, data)], unclaimed, namespace)
    world, claim = _joined(world, name, manifests.wanted.objects)
    warnings = tuple(str(each.finding) for each in manifests.warnings)
    return structs.replace(capacity_of(world, claim), warnings=warnings)


def _joined(world: World, name: str, objects: Objects) -> tuple[World, ResourceClaim]:
    """The cluster with what else is in the file, and the claim."""
    made = (ResourceClaim(metadata=t.metadata, spec=t.spec.spec) for t in objects.templates)
    claims = (*objects.claims, *made)
    if len(claims) != 1:
        raise QuestionError(
            f"{name}: has {len(claims)} ResourceClaims and ResourceClaimTemplates; expected one"
        )
    joining = replace(objects, claims=(), templates=())
    return world.with_objects(world.objects.joined(joining)), claims[0]
