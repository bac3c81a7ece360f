"""Everything about a Workload of a queue: what the queue says of it and, once it is admitted, what has become of its pods.

Quota is not all that pods need: those of an admitted workload may wait for nodes, or be on nodes and not start. So a workload is only
said to run if what it was made for is.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.kueue_workload import Workload
from drayman.api.meta import controller_of
from drayman.api.pods import is_finished
from drayman.explain.answer import Explanation
from drayman.explain.queues.explaining import explain_queued
from drayman.explain.workload import Whole, explain_job, explain_pods
from drayman.placement.world import World
from drayman.reasons.reason import Reason


def explain_queued_workload(world: World, workload: Workload) -> Explanation:
    """Why a workload waits for quota; or, if it has it, what its pods wait for."""
    found = explain_queued(world, workload)
    if found.headline.reason is not Reason.RUNS:
        return found
    started = _started(world, workload)
    if started is None or started.headline.reason.is_well:
        return found
    first = started.headline
    said = replace(first, sentence=f"{found.headline.sentence} {first.sentence}")
    return replace(
        found,
        headline=said,
        parts=started.parts,
        remedies=started.remedies,
        untried=started.untried,
    )


def _started(world: World, workload: Workload) -> Explanation | None:
    """What there is to say about what a workload was made for; None if it has no pods, or they are not to be found."""
    owners = {owner.uid for owner in workload.metadata.owner_references}
    for job in world.objects.jobs:
        if job.metadata.uid in owners:
            return explain_job(world, job)
    pods = list(_pods_of(world, workload.metadata.namespace, owners))
    whole = Whole(workload.kind, "workload", workload.metadata)
    return explain_pods(world, whole, pods) if pods else None


def _pods_of(world: World, namespace: str, owners: set[str]) -> Iterator[Pod]:
    """The pods that a workload was made for, those that its owners have made, and those of Jobs that they have made."""
    makers = owners | {
        job.metadata.uid
        for job in world.objects.jobs
        if any(owner.uid in owners for owner in job.metadata.owner_references)
    }
    for pod in world.objects.pods:
        if pod.metadata.namespace != namespace or is_finished(pod):
            continue
        maker = controller_of(pod.metadata)
        if pod.metadata.uid in owners or (maker is not None and maker.uid in makers):
            yield pod
