"""Claims that pods share as a group, for groups that do not exist yet.

The controller makes them from the templates that the group names, and writes into the status of the group, and of its pods, what they are
called. A plan has to do the same: otherwise each pod would seem to ask for devices of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as changed

from msgspec.structs import replace

from drayman.api.claim_generation import make_claim
from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import statuses_with, unmade_entries
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate
from drayman.placement.groups import Groups
from drayman.placement.world import Objects

_SUFFIX = "group"


def with_group_claims(objects: Objects) -> Objects:
    """The objects with the claims that their groups lack. Groups whose template is missing stay as they are."""
    templates = {(t.metadata.namespace, t.metadata.name): t for t in objects.templates}
    groups: list[PodGroup] = []
    claims: list[ResourceClaim] = []
    for group in objects.pod_groups:
        made = dict(_lacking(group, templates))
        claims.extend(made.values())
        groups.append(_noted(group, made) if made else group)
    if not claims:
        return objects
    return changed(objects, pod_groups=tuple(groups), claims=(*objects.claims, *claims))


def with_claims_of_group(pod: Pod, groups: Groups) -> Pod:
    """The pod with the entries of its status that its group gives it."""
    group = groups.of(pod)
    if group is None:
        return pod
    shared = {entry.name for entry in unmade_entries(pod) if entry in group.spec.resource_claims}
    given = {
        status.name: status.resource_claim_name
        for status in group.status.resource_claim_statuses
        if status.name in shared
    }
    if not given:
        return pod
    statuses = statuses_with(pod, given)
    return replace(pod, status=replace(pod.status, resource_claim_statuses=statuses))


def _lacking(
    group: PodGroup, templates: dict[tuple[str, str], ResourceClaimTemplate]
) -> Iterator[tuple[str, ResourceClaim]]:
    for entry in unmade_entries(group):
        name = entry.resource_claim_template_name or ""
        template = templates.get((group.metadata.namespace, name))
        if template is None:
            continue
        claim = make_claim(group, entry, template, _SUFFIX)
        uid = f"{group.metadata.uid}-{entry.name}"
        yield entry.name, replace(claim, metadata=replace(claim.metadata, uid=uid))


def _noted(group: PodGroup, made: dict[str, ResourceClaim]) -> PodGroup:
    names = {entry: claim.metadata.name for entry, claim in made.items()}
    statuses = statuses_with(group, names)
    return replace(group, status=replace(group.status, resource_claim_statuses=statuses))
