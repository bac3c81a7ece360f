"""When a pod has to leave its devices, and why.

A device is tainted in its ResourceSlice or by a DeviceTaintRule, and a pod leaves at the earliest time at which a taint with effect
NoExecute on a device of one of its claims is no longer tolerated. Three things differ from Kubernetes 1.36.4, which has them wrong: a
toleration without effect tolerates NoExecute too, as it does when the scheduler places the pod; pods that got their devices as extended
resources leave like all others; and a rule without a selector selects no device, here and in the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from drayman.api.claim_generation import is_made_for
from drayman.api.core import Pod
from drayman.api.pods import entry_claims, is_active
from drayman.api.resource import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
)
from drayman.api.times import moment_of
from drayman.controllers.taint_eviction.pools import Pools
from drayman.inventory.taints import selects, tolerates
from drayman.placement.claims import is_reserved_for

NO_EXECUTE: Final = "NoExecute"
_AT_ONCE: Final = datetime.min.replace(tzinfo=UTC)

FindClaim = Callable[[str, str], ResourceClaim | None]
"""By namespace and name."""


@dataclass(frozen=True, slots=True, order=True)
class EvictingTaint:
    """A taint that drives pods away: of a rule, or else of a device in its slice. In the order in which they are reported."""

    is_of_device: bool
    place: tuple[str, str, str, int]
    """The rule; or driver, pool, device and the position of the taint there."""
    taint: str
    rule_uid: str = ""

    def __str__(self) -> str:
        if not self.is_of_device:
            return f"DeviceTaintRule {self.place[0]} ({self.taint})"
        driver, pool, device, _ = self.place
        return f"device {driver}/{pool}/{device} ({self.taint})"


@dataclass(frozen=True, slots=True)
class Eviction:
    """That a pod has to go, from when, and why."""

    when: datetime
    reasons: tuple[EvictingTaint, ...]

    def joined(self, other: Eviction) -> Eviction:
        return Eviction(min(self.when, other.when), tuple(sorted({*self.reasons, *other.reasons})))

    def rule_uids(self) -> set[str]:
        return {reason.rule_uid for reason in self.reasons if reason.rule_uid}


@dataclass(frozen=True, slots=True)
class Tainted:
    """All taints: of devices in slices, and of rules with the effect NoExecute."""

    pools: Pools
    rules: Mapping[str, DeviceTaintRule]

    def __bool__(self) -> bool:
        return bool(self.rules) or self.pools.has_taints

    def on(
        self, result: DeviceRequestAllocationResult
    ) -> Iterator[tuple[EvictingTaint, DeviceTaint]]:
        """The taints of an allocated device. Rules hit it even if it is no longer published."""
        for rule in self.rules.values():
            if selects(rule, result.driver, result.pool, result.device):
                place = (rule.metadata.name, "", "", 0)
                taint = rule.spec.taint
                yield EvictingTaint(False, place, _text(taint), rule.metadata.uid), taint
        for index, taint in self.pools.taints_of(result.driver, result.pool, result.device):
            place = (result.driver, result.pool, result.device, index)
            yield EvictingTaint(True, place, _text(taint)), taint


def pod_eviction(pod: Pod, find: FindClaim, tainted: Tainted) -> Eviction | None:
    """When and why a pod has to go; None if it may stay, is not on a node, or is going anyway."""
    if not pod.spec.node_name or not is_active(pod):
        return None
    eviction: Eviction | None = None
    for claim in _claims_in_use(pod, find):
        found = claim_eviction(claim, tainted)
        if found is not None:
            eviction = found if eviction is None else eviction.joined(found)
    return eviction


def claim_eviction(claim: ResourceClaim, tainted: Tainted) -> Eviction | None:
    """When and why the users of a claim have to go."""
    if claim.status.allocation is None:
        return None
    when: datetime | None = None
    reasons: set[EvictingTaint] = set()
    for result in claim.status.allocation.devices.results:
        for reason, taint in tainted.on(result):
            moment = _end_of_toleration(taint, result.tolerations)
            if moment is not None:
                when = moment if when is None else min(when, moment)
                reasons.add(reason)
    return None if when is None else Eviction(when, tuple(sorted(reasons)))


def _end_of_toleration(
    taint: DeviceTaint, tolerations: Iterable[DeviceToleration]
) -> datetime | None:
    """When a taint begins to drive a pod away; None for never. The shortest of several tolerations counts."""
    seconds: list[int] = []
    for toleration in tolerations:
        if not tolerates(toleration, (taint.key, taint.value, taint.effect)):
            continue
        # The API gives a meaning to the seconds only where the toleration is about NoExecute and nothing else.
        if toleration.toleration_seconds is None or toleration.effect != NO_EXECUTE:
            return None
        seconds.append(max(toleration.toleration_seconds, 0))
    if taint.time_added is None:
        return _AT_ONCE
    return moment_of(taint.time_added) + timedelta(seconds=min(seconds, default=0))


def _claims_in_use(pod: Pod, find: FindClaim) -> Iterator[ResourceClaim]:
    """The claims that a pod uses, not just names: reserved for it and, where they are generated, made for it."""
    for entry, name in entry_claims(pod):
        claim = find(pod.metadata.namespace, name) if name else None
        if claim is None or not is_reserved_for(claim, pod):
            continue
        if entry.resource_claim_template_name is None or is_made_for(claim, pod):
            yield claim
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        claim = find(pod.metadata.namespace, extended.resource_claim_name)
        if claim is not None and is_made_for(claim, pod) and is_reserved_for(claim, pod):
            yield claim


def _text(taint: DeviceTaint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
