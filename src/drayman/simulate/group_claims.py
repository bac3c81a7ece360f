"""Claims that pods share as a group, for groups that do not exist yet.

The controller makes them from the templates that the group names, and writes their names into the status of the group and of its pods. A
plan has to do the same: otherwise each pod would seem to ask for devices of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as changed
from typing import Final

from msgspec.structs import replace

from drayman.api.claim_generation import POD_CLAIM_NAME
from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta, controller_of
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate
from drayman.placement.world import Objects
from drayman.workloads.claims.generating import generate, group_of, lacking

_SUFFIX: Final = "group"
_Key = tuple[str, str]


class GroupClaims:
    """The claims of groups, as the controller would make them of these objects."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._groups = {_key(group.metadata): group for group in objects.pod_groups}
        self._claims: dict[_Key, ResourceClaim] = {}
        self._templates: dict[_Key, ResourceClaimTemplate] = {}
        self._of_owner: dict[str, list[ResourceClaim]] = {}
        if not self._groups:
            return
        self._templates = {_key(template.metadata): template for template in objects.templates}
        for claim in objects.claims:
            self._add(claim)
        for group in objects.pod_groups:
            self._serve(group)

    @property
    def objects(self) -> Objects:
        """The objects with the claims that their groups lacked. Groups whose template is missing stay as they are."""
        if not self._groups:
            return self._objects
        claims, groups = tuple(self._claims.values()), tuple(self._groups.values())
        return changed(self._objects, claims=claims, pod_groups=groups)

    def shared_with(self, pod: Pod) -> Pod:
        """The pod with the entries of its status that its group gives it."""
        group = group_of(pod, self)
        if group is None:
            return pod
        entries = [e for e in lacking(pod, self) if e in group.spec.resource_claims]
        if not entries:
            return pod
        statuses = generate(pod, entries, self, _suffix).statuses
        return replace(pod, status=replace(pod.status, resource_claim_statuses=statuses))

    # --- What claims are generated from -----------------------------------------------------------

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return self._claims.get((namespace, name))

    def claims_owned_by(self, uid: str) -> Iterable[ResourceClaim]:
        return self._of_owner.get(uid, ())

    def template(self, namespace: str, name: str) -> ResourceClaimTemplate | None:
        return self._templates.get((namespace, name))

    def group(self, namespace: str, name: str) -> PodGroup | None:
        return self._groups.get((namespace, name))

    def _serve(self, group: PodGroup) -> None:
        entries = lacking(group, self)
        if not entries:
            return
        generation = generate(group, entries, self, _suffix)
        for claim in generation.claims:
            uid = f"{group.metadata.uid}-{claim.metadata.annotations[POD_CLAIM_NAME]}"
            self._add(replace(claim, metadata=replace(claim.metadata, uid=uid)))
        if generation.statuses:
            status = replace(group.status, resource_claim_statuses=generation.statuses)
            self._groups[_key(group.metadata)] = replace(group, status=status)

    def _add(self, claim: ResourceClaim) -> None:
        self._claims[_key(claim.metadata)] = claim
        owner = controller_of(claim.metadata)
        if owner is not None:
            self._of_owner.setdefault(owner.uid, []).append(claim)


def _key(metadata: ObjectMeta) -> _Key:
    return metadata.namespace, metadata.name


def _suffix() -> str:
    return _SUFFIX
