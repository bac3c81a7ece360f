"""What a DeviceTaintRule's condition EvictionInProgress says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from drayman.api.meta import Condition
from drayman.api.resource import DeviceTaintRule
from drayman.api.times import moment_of, timestamp
from drayman.cluster.patches import Patch, apply_patch
from drayman.cluster.resources import DEVICE_TAINT_RULES

CONDITION: Final = "EvictionInProgress"
PERIOD: Final = timedelta(seconds=10)
"""Between two updates of the condition for one generation of a rule."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a rule does, or would do."""

    pending_pods: int = 0
    pending_namespaces: int = 0
    evicted_pods: int = 0
    """Since the controller started."""
    published_devices: int = 0
    allocated_devices: int = 0


def wait_before_update(rule: DeviceTaintRule, now: datetime) -> timedelta:
    """How long the condition has to be left as it is. Any change of the rule may be reported at once."""
    condition = current_condition(rule)
    if condition is None or condition.observed_generation != rule.metadata.generation:
        return timedelta(0)
    if condition.last_transition_time is None:
        return timedelta(0)
    return max(moment_of(condition.last_transition_time) + PERIOD - now, timedelta(0))


def current_condition(rule: DeviceTaintRule) -> Condition | None:
    for condition in rule.status.conditions:
        if condition.type_ == CONDITION:
            return condition
    return None


def new_condition(rule: DeviceTaintRule, counts: Counts, now: datetime) -> Condition | None:
    """The condition as it should be; None if it says so already."""
    status, reason, message = _verdict(rule, counts)
    if counts.evicted_pods:
        evicted = f"{_pods(counts.evicted_pods)} evicted since starting the controller."
        message = f"{message} {evicted}" if message else evicted
    said = current_condition(rule)
    if said is not None and (
        (said.status, said.reason, said.message, said.observed_generation)
        == (status, reason, message, rule.metadata.generation)
    ):
        return None
    return Condition(
        type_=CONDITION,
        status=status,
        reason=reason,
        message=message,
        observed_generation=rule.metadata.generation,
        last_transition_time=timestamp(now),
    )


def condition_patch(rule: DeviceTaintRule, condition: Condition) -> Patch:
    """Applies to this rule only, not to a later one of the same name."""
    return apply_patch(
        {
            "apiVersion": DEVICE_TAINT_RULES.api_version,
            "kind": DEVICE_TAINT_RULES.kind,
            "metadata": {"name": rule.metadata.name, "uid": rule.metadata.uid},
            "status": {
                "conditions": [
                    {
                        "type": condition.type_,
                        "status": condition.status,
                        "reason": condition.reason,
                        "message": condition.message,
                        "observedGeneration": condition.observed_generation,
                        "lastTransitionTime": condition.last_transition_time,
                    }
                ]
            },
        }
    )


def _verdict(rule: DeviceTaintRule, counts: Counts) -> tuple[str, str, str]:
    """Status, reason and message."""
    effect = rule.spec.taint.effect
    if effect == "None":
        return "False", "NoEffect", _dry_run(counts)
    if effect != "NoExecute":
        return "False", "OtherEffect", "Eviction only happens for the NoExecute effect."
    if counts.pending_pods:
        verb = "needs" if counts.pending_pods == 1 else "need"
        where = _namespaces(counts.pending_namespaces)
        return (
            "True",
            "PodsPendingEviction",
            f"{_pods(counts.pending_pods)} {verb} to be evicted in {where}.",
        )
    return "False", "Completed" if counts.evicted_pods else "NotStarted", ""


def _dry_run(counts: Counts) -> str:
    return (
        f"{_devices(counts.published_devices, 'published')} selected."
        f" {_devices(counts.allocated_devices, 'allocated')} selected."
        f" {_pods(counts.pending_pods)} would be evicted in {_namespaces(counts.pending_namespaces)}"
        " if the effect was NoExecute. This is not counted again until the rule changes."
    )


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


def _namespaces(number: int) -> str:
    return "1 namespace" if number == 1 else f"{number} different namespaces"


def _devices(number: int, sort: str) -> str:
    return f"1 {sort} device" if number == 1 else f"{number} {sort} devices"
