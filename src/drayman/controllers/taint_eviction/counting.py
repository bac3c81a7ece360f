"""What a rule does, counted; or what it would do, if its effect is None."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from drayman.api.core import Pod
from drayman.api.pods import has_claims
from drayman.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.controllers.taint_eviction.pools import Pools
from drayman.controllers.taint_eviction.rule_status import Counts
from drayman.controllers.taint_eviction.taints import Tainted, pod_eviction
from drayman.inventory.pool import newest_slices
from drayman.inventory.taints import NO_EXECUTE, selects
from drayman.placement.claims import FindClaim


def count(
    rule: DeviceTaintRule,
    tainted: Tainted,
    *,
    pods: Iterable[Pod],
    find: FindClaim,
    claims: Iterable[ResourceClaim],
    slices: Iterable[ResourceSlice],
    evicted: int,
) -> Counts:
    effect = rule.spec.taint.effect
    if effect == NO_EXECUTE:
        waiting, namespaces = _pending(rule, tainted, pods, find)
        return Counts(waiting, namespaces, evicted)
    if effect != "None":
        return Counts(evicted_pods=evicted)
    supposed = Tainted(Pools(), {rule.metadata.name: _as_evicting(rule)})
    waiting, namespaces = _pending(rule, supposed, pods, find)
    return Counts(
        waiting, namespaces, evicted, _published(rule, tuple(slices)), _allocated(rule, claims)
    )


def _as_evicting(rule: DeviceTaintRule) -> DeviceTaintRule:
    taint = msgspec.structs.replace(rule.spec.taint, effect=NO_EXECUTE)
    return msgspec.structs.replace(rule, spec=msgspec.structs.replace(rule.spec, taint=taint))


def _pending(
    rule: DeviceTaintRule, tainted: Tainted, pods: Iterable[Pod], find: FindClaim
) -> tuple[int, int]:
    """The pods that have to go because of a rule, and their namespaces."""
    number = 0
    namespaces: set[str] = set()
    for pod in pods:
        eviction = pod_eviction(pod, find, tainted) if has_claims(pod) else None
        if eviction is not None and rule.metadata.uid in eviction.rule_uids():
            number += 1
            namespaces.add(pod.metadata.namespace)
    return number, len(namespaces)


def _published(rule: DeviceTaintRule, slices: tuple[ResourceSlice, ...]) -> int:
    """The devices that a rule selects, of the newest generation of each pool."""
    return sum(
        selects(rule, *pool, device.name)
        for pool, newest in newest_slices(slices).items()
        for found in newest
        for device in found.spec.devices or ()
    )


def _allocated(rule: DeviceTaintRule, claims: Iterable[ResourceClaim]) -> int:
    return sum(
        selects(rule, result.driver, result.pool, result.device)
        for claim in claims
        for result in claim.status.results
    )
