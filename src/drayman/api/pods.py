"""Facts about a pod that follow from its own fields: whether it counts, whose it is, which claims it uses.

Every caller uses these functions, so that a pod is not finished to one and still running to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api.core import Container, Pod, PodResourceClaim, PodResourceClaimStatus
from drayman.api.pod_groups import PodGroup
from drayman.api.times import seconds_of

FAILED: Final = "Failed"
FINISHED: Final = ("Succeeded", FAILED)
"""The phases of pods that have ended, well or not."""

GroupKey = tuple[str, str]
"""Namespace and name of a pod group."""


def is_finished(pod: Pod) -> bool:
    """Whether a pod has ended: it is kept for people to read, and uses nothing any more."""
    return pod.status.phase in FINISHED


def is_leaving(pod: Pod) -> bool:
    """Whether a pod is being deleted. It may still run for a while."""
    return pod.metadata.deletion_timestamp is not None


def is_terminating(pod: Pod) -> bool:
    """Whether a pod is being deleted and has not ended yet."""
    return is_leaving(pod) and not is_finished(pod)


def is_active(pod: Pod) -> bool:
    """Whether a pod runs or will run, and is not being deleted."""
    return not is_leaving(pod) and not is_finished(pod)


def is_done(pod: Pod) -> bool:
    """Whether a pod will not run (any more), so that it needs no devices."""
    return is_finished(pod) or (is_leaving(pod) and not pod.spec.node_name)


def priority_of(pod: Pod) -> int:
    """How important a pod is. One without a priority counts as 0."""
    return pod.spec.priority or 0


def started_at(pod: Pod) -> float | None:
    """When its node started a pod, or else when it was bound, in seconds since the epoch; None if neither is known."""
    if pod.status.start_time:
        return seconds_of(pod.status.start_time)
    for condition in pod.status.conditions:
        if condition.type_ == "PodScheduled" and condition.status == "True":
            return seconds_of(condition.last_transition_time)
    return None


def group_key(pod: Pod) -> GroupKey | None:
    """The group that a pod says it is in, whether or not there is such a group."""
    group = pod.spec.scheduling_group
    if group is None or not group.pod_group_name:
        return None
    return pod.metadata.namespace, group.pod_group_name


# Containers.


def containers_of(pod: Pod) -> tuple[Container, ...]:
    """All containers of a pod, in the order in which they start."""
    return (*pod.spec.init_containers, *pod.spec.containers)


def is_sidecar(container: Container) -> bool:
    """Whether a container among those that start first goes on running beside the others."""
    return container.restart_policy == "Always"


# Claims. An entry of a pod, or of a group, names a claim or a template. In the second case the status says which claim was made.


def entry_claims(user: Pod | PodGroup) -> list[tuple[PodResourceClaim, str | None]]:
    """Each entry with the name of its claim: empty if the entry needs none, None if the claim is still to be made."""
    made = _made_claims(user)
    return [
        (
            entry,
            made.get(entry.name)
            if entry.resource_claim_name is None
            else entry.resource_claim_name,
        )
        for entry in user.spec.resource_claims
    ]


def claim_of(user: Pod | PodGroup, entry: PodResourceClaim) -> str | None:
    """The name of the claim of one of the entries, as `entry_claims` has it."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    return _made_claims(user).get(entry.name)


def _made_claims(user: Pod | PodGroup) -> dict[str, str]:
    """The claims that were made from templates, by entry."""
    return {s.name: s.resource_claim_name or "" for s in user.status.resource_claim_statuses}


def unmade_entries(user: Pod | PodGroup) -> tuple[PodResourceClaim, ...]:
    """The entries for which a claim is still to be made from a template."""
    return tuple(
        entry
        for entry, name in entry_claims(user)
        if name is None and entry.resource_claim_template_name
    )


def entries_of(pod: Pod, claim: str) -> tuple[PodResourceClaim, ...]:
    """The entries of a pod that stand for the claim of this name."""
    return tuple(entry for entry, name in entry_claims(pod) if name == claim)


def named_claims(user: Pod | PodGroup) -> list[str]:
    """The claims of the entries, as far as they have been made. They need not exist any more."""
    return [name for _, name in entry_claims(user) if name]


def used_claims(pod: Pod) -> list[str]:
    """The same, and the claim for extended resources, which the scheduler makes."""
    names = named_claims(pod)
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended.resource_claim_name:
        names.append(extended.resource_claim_name)
    return names


def requests_used(pod: Pod, container: Container) -> dict[str, set[str]]:
    """The claims that a container uses, each with the requests that it is limited to; an empty set means all."""
    entries = {entry.name: claim_of(pod, entry) for entry in pod.spec.resource_claims}
    wanted: dict[str, set[str]] = {}
    unlimited: set[str] = set()
    for use in container.resources.claims:
        claim = entries.get(use.name)
        if not claim:
            continue
        requests = wanted.setdefault(claim, set())
        if use.request:
            requests.add(use.request)
        else:
            unlimited.add(claim)
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        for mapping in extended.request_mappings:
            if mapping.container_name == container.name:
                wanted.setdefault(extended.resource_claim_name, set()).add(mapping.request_name)
    return {claim: set() if claim in unlimited else found for claim, found in wanted.items()}


def containers_with(pod: Pod, claim: str, request: str) -> int:
    """How many containers of a pod that run at the same time use the devices of a request of a claim."""

    def uses(container: Container) -> bool:
        requests = requests_used(pod, container).get(claim)
        return requests is not None and (not requests or request.partition("/")[0] in requests)

    sidecars = [each for each in pod.spec.init_containers if is_sidecar(each)]
    lasting = sum(map(uses, (*sidecars, *pod.spec.containers)))
    return lasting or int(any(map(uses, pod.spec.init_containers)))


def statuses_with(
    user: Pod | PodGroup, made: Mapping[str, str | None]
) -> tuple[PodResourceClaimStatus, ...]:
    """What the status says of claims from templates once these are made, by entry."""
    statuses = {status.name: status for status in user.status.resource_claim_statuses}
    for entry, claim in made.items():
        statuses[entry] = PodResourceClaimStatus(name=entry, resource_claim_name=claim)
    return tuple(statuses[name] for name in sorted(statuses))


def has_claims(pod: Pod) -> bool:
    """Whether a pod asks for claims, or has one for its extended resources."""
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None


def claim_keys(pod: Pod) -> list[str]:
    """`namespace/name` of each claim that a pod uses: the index by which the pods of a claim are found."""
    return [f"{pod.metadata.namespace}/{name}" for name in used_claims(pod)]
