"""When a pod has to leave its devices, and why.

A device is tainted in its ResourceSlice or by a DeviceTaintRule, and a pod leaves at the earliest time at which a taint with effect
NoExecute on a device of one of its claims is no longer tolerated (`inventory/taints.py`). Two more things differ from Kubernetes 1.36.4,
which has them wrong: pods that got their devices as extended resources leave like all others; and a rule without a selector selects no
device, here and in the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from drayman.api.core import Pod
from drayman.api.pods import is_active
from drayman.api.resource import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    ResourceClaim,
)
from drayman.controllers.taint_eviction.pools import Pools
from drayman.inventory.taints import eviction_time, selects
from drayman.placement.claims import FindClaim, claims_used_by


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
    for claim in claims_used_by(pod, find):
        found = claim_eviction(claim, tainted)
        if found is not None:
            eviction = found if eviction is None else eviction.joined(found)
    return eviction


def claim_eviction(claim: ResourceClaim, tainted: Tainted) -> Eviction | None:
    """When and why the users of a claim have to go."""
    when: datetime | None = None
    reasons: set[EvictingTaint] = set()
    for result in claim.status.results:
        for reason, taint in tainted.on(result):
            moment = eviction_time(taint, result.tolerations)
            if moment is not None:
                when = moment if when is None else min(when, moment)
                reasons.add(reason)
    return None if when is None else Eviction(when, tuple(sorted(reasons)))


def _text(taint: DeviceTaint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
