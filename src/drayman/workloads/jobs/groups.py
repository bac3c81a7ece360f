"""Jobs whose pods start together: the Workload and the PodGroup that are made for them, and what of a job makes its pods a gang.

Kubernetes does this behind the gate `WorkloadWithJob`. The names follow from the job alone, so that a controller that was interrupted
finds what it has made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.api.meta import ObjectMeta, controller_of
from drayman.api.pod_groups import (
    ControllerReference,
    GangPolicy,
    PodGroup,
    PodGroupSpec,
    PodGroupTemplate,
    PodGroupTemplateReference,
    SchedulingPolicy,
    Workload,
    WorkloadSpec,
    WorkloadTemplateReference,
)
from drayman.api.struct import Json
from drayman.placement.gangs.membership import OF_OWNERS
from drayman.workloads.pod_bodies import owner_reference
from drayman.workloads.template_hash import template_hash

_INDEXED: Final = "Indexed"
_TEMPLATE: Final = "pods"
_LONGEST_NAME: Final = 253


def wants_group(job: Job) -> bool:
    """Whether all pods of a job run at the same time, and nothing else says with whom they start."""
    spec = job.spec
    return (
        spec.completion_mode == _INDEXED
        and spec.parallelism > 1
        and spec.completions == spec.parallelism
        and not (spec.template.get("spec") or {}).get("schedulingGroup")
        # What manages the job may have grouped its pods with others.
        and controller_of(job.metadata) is None
    )


def may_begin(job: Job, pods: Sequence[Pod]) -> bool:
    """Whether a group can still be made: pods that exist cannot join one."""
    status = job.status
    return not (pods or status.succeeded or status.failed)


def group_name(job: Job) -> str:
    """Of the Workload and of the PodGroup of a job."""
    ending = f"-{template_hash(job.metadata.uid, None)}"
    return f"{job.metadata.name[: _LONGEST_NAME - len(ending)]}{ending}"


def workload_of(job: Job) -> Workload:
    reference = ControllerReference(
        api_group=job.api_version.rpartition("/")[0], kind=job.kind, name=job.metadata.name
    )
    policy = SchedulingPolicy(gang=GangPolicy(min_count=job.spec.parallelism))
    template = PodGroupTemplate(
        name=_TEMPLATE, scheduling_policy=policy, priority_class_name=_priority_class(job)
    )
    return Workload(
        metadata=_metadata(job),
        spec=WorkloadSpec(controller_ref=reference, pod_group_templates=(template,)),
    )


def group_of(job: Job) -> PodGroup:
    workload = WorkloadTemplateReference(
        workload_name=group_name(job), pod_group_template_name=_TEMPLATE
    )
    return PodGroup(
        metadata=_metadata(job),
        spec=PodGroupSpec(
            pod_group_template_ref=PodGroupTemplateReference(workload=workload),
            scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=job.spec.parallelism)),
            priority_class_name=_priority_class(job),
        ),
    )


def _metadata(job: Job) -> ObjectMeta:
    return ObjectMeta(
        name=group_name(job),
        namespace=job.metadata.namespace,
        owner_references=(owner_reference(job),),
    )


def _priority_class(job: Job) -> str:
    """The group is as important as its pods."""
    return (job.spec.template.get("spec") or {}).get("priorityClassName") or ""


def is_of(group: PodGroup | Workload, job: Job) -> bool:
    """Whether a group was made for a job, and not for another one of its name."""
    owner = controller_of(group.metadata)
    return owner is not None and owner.uid == job.metadata.uid


def body_of(value: PodGroup | Workload) -> dict[str, Json]:
    """As it is sent to the API server."""
    body = codec.to_dict(value)
    body.pop("status", None)
    return body


def in_group(pod: dict[str, Json], group: str) -> dict[str, Json]:
    """A pod that is still to be made, in a group."""
    return {**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": group}}}


def stated_for_pods(job: Job) -> dict[str, str]:
    """Annotations of a job about the gang that its pods are. On the pods themselves they are known as soon as the pods are."""
    return {name: text for name, text in job.metadata.annotations.items() if name in OF_OWNERS}
