"""What acts on kinds that definitions add. Each built-in kind declares this itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.apiserver.served.acting import UNKNOWN, Acting, Gap, Part, by, nothing_acts
from drayman.apiserver.served.strategy import Object

_STARTS_TOGETHER: Final = "its pods start together or not at all"


def _names_class(group: Object) -> bool:
    spec = group.get("spec")
    return isinstance(spec, dict) and bool(spec.get("priorityClassName"))


def _has_other_quotas(queue: Object) -> bool:
    spec = queue.get("spec")
    resources = spec.get("resources") if isinstance(spec, dict) else None
    stated = (
        [resources.get(name) for name in ("cpu", "memory")] if isinstance(resources, dict) else []
    )
    return any(isinstance(each, dict) and (each.get("quota") or 0) > 0 for each in stated)


CUSTOM_ACTORS: Final[Mapping[str, Acting]] = {
    "podgroups.scheduling.x-k8s.io": by(
        Part.SCHEDULER,
        effect=f"{_STARTS_TOGETHER}; it is reported when it waits for longer than it may. Its status is not written",
    ),
    "podgroups.scheduling.run.ai": by(
        Part.SCHEDULER,
        effect=f"{_STARTS_TOGETHER}, within the limits of its queue",
        gap=Gap(
            Part.SCHEDULER,
            "its priority class is not read: the group is as important as its pods",
            concerns=_names_class,
            case="with a priority class",
        ),
    ),
    "queues.scheduling.run.ai": by(
        Part.SCHEDULER,
        effect="work starts in the order of shares, within limits at each level; what other queues have beyond their shares is reclaimed",
        gap=Gap(
            Part.SCHEDULER,
            "what it is entitled to of cpu and memory is not reclaimed from others: shares are those of GPUs",
            concerns=_has_other_quotas,
            case="with a quota of cpu or memory",
        ),
    ),
    "topologies.kai.scheduler": by(Part.SCHEDULER, effect="pod groups name its levels"),
    "computedomains.resource.nvidia.com": by(Part.NODES, effect="its claim template is made, and its status says when it is ready"),
    "resourceflavors.kueue.x-k8s.io": by(Part.CONTROLLERS, effect="its labels and tolerations are added to what is admitted with it"),
    "clusterqueues.kueue.x-k8s.io": by(Part.CONTROLLERS, effect="workloads get its quota, in its order; its status is kept"),
    "cohorts.kueue.x-k8s.io": by(Part.CONTROLLERS, effect="queues below it borrow from each other"),
    "localqueues.kueue.x-k8s.io": by(Part.CONTROLLERS, effect="what names it waits for quota; its status is kept"),
    "workloads.kueue.x-k8s.io": by(Part.CONTROLLERS, effect="it waits for quota, and what it is for is started, stopped and restored"),
    "workloadpriorityclasses.kueue.x-k8s.io": by(Part.CONTROLLERS, effect="how important workloads are in queues"),
    "admissionchecks.kueue.x-k8s.io": by(Part.CONTROLLERS, effect="workloads wait until a controller, maybe the one here, lets them start"),
    "multikueueconfigs.kueue.x-k8s.io": by(Part.CONTROLLERS, effect="checks name it: workloads run in one of its clusters"),
    "multikueueclusters.kueue.x-k8s.io": by(Part.CONTROLLERS, effect="workloads are handed to it; its status says whether it answers"),
    "topologies.kueue.x-k8s.io": by(Part.CONTROLLERS, Part.SCHEDULER, effect="workloads get places in it, and pod groups name its levels"),
}  # fmt: skip
"""Custom kinds about which something is known."""

CUSTOM_GROUPS: Final[Mapping[str, Acting]] = {
    "kueue.x-k8s.io": nothing_acts(
        "Drayman does not act on it: unless Kueue runs beside, nothing is asked for"
    ),
    "scheduling.run.ai": nothing_acts(
        "Drayman does not act on it: unless KAI Scheduler runs beside, nothing is scheduled by it",
        Part.SCHEDULER,
    ),
    "kai.scheduler": nothing_acts(
        "Drayman does not act on it: unless KAI Scheduler runs beside, nothing is placed by it",
        Part.SCHEDULER,
    ),
}
"""Whole groups of such kinds."""


def acting_on_custom(group: str, plural: str) -> Acting:
    """What acts on a kind that a definition adds; for most of them this is unknown."""
    known = CUSTOM_ACTORS.get(f"{plural}.{group}")
    return known or CUSTOM_GROUPS.get(group, UNKNOWN)
