"""Everything there is to say about a Job: its own state, and one pod for each reason that its pods have to be as they are."""

from __future__ import annotations

from typing import Final

import msgspec

from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.explain.answer import Explanation, Headline
from drayman.explain.pod import Reasons, explain_pod
from drayman.explain.reasons import Reason
from drayman.explain.remedies import remedies_for_job
from drayman.explain.wording import counted
from drayman.placement.state import FINISHED
from drayman.simulate.world import World

JOB_CONTROLLER: Final = "kubernetes.io/job-controller"
_ENDED: Final = {"Complete": "is complete", "Failed": "has failed"}


def explain_job(world: World, job: Job) -> Explanation:
    """Why the job does not get on, by the reason of most of its pods that wait."""
    if job.metadata.deletion_timestamp is not None:
        return _base(world, job, Headline.of(Reason.TERMINATING, "The job is being deleted."))
    for condition in job.status.conditions:
        if condition.type_ in _ENDED and condition.status == "True":
            why = f": {condition.message.rstrip('.')}" if condition.message else ""
            told = f"The job {_ENDED[condition.type_]}{why}."
            return _base(world, job, Headline.of(Reason.RUNS, told))
    if job.spec.suspend:
        text = "The job is suspended; it gets pods when spec.suspend is set to false."
        help_ = remedies_for_job(world, job)
        base = _base(world, job, Headline.of(Reason.SUSPENDED, text))
        return msgspec.structs.replace(base, remedies=help_.remedies, untried=help_.untried)
    pods = pods_of(world, job)
    if not pods:
        return _base(world, job, Headline.of(Reason.NO_PODS, _why_no_pods(job)))
    parts = _parts(world, pods)
    return msgspec.structs.replace(
        _base(world, job, _summary(parts, len(pods))), parts=parts, count=1
    )


def pods_of(world: World, job: Job) -> list[Pod]:
    """The pods that the job has made and that have not ended."""
    return [
        pod
        for pod in world.objects.pods
        if pod.metadata.namespace == job.metadata.namespace
        and pod.status.phase not in FINISHED
        and any(o.controller and o.uid == job.metadata.uid for o in pod.metadata.owner_references)
    ]


def _why_no_pods(job: Job) -> str:
    if not job.spec.parallelism:
        return "The job gets no pods while spec.parallelism is 0."
    if job.spec.managed_by not in (None, JOB_CONTROLLER):
        return f"The job is left to {job.spec.managed_by}, which has not made any pods for it."
    return "The job controller has not made any pods for the job."


def _parts(world: World, pods: list[Pod]) -> tuple[Explanation, ...]:
    """One pod for each reason, those that wait first, then by how many it stands for."""
    groups: dict[Reason, list[Pod]] = {}
    reasons = Reasons(world)
    for pod in pods:
        groups.setdefault(reasons.of(pod), []).append(pod)
    ordered = sorted(
        groups.items(), key=lambda item: (item[0].kind is None, -len(item[1]), item[0].value)
    )
    return tuple(
        msgspec.structs.replace(explain_pod(world, members[0]), count=len(members))
        for _, members in ordered
    )


def _summary(parts: tuple[Explanation, ...], total: int) -> Headline:
    first = parts[0]
    if first.headline.reason.kind is None and len(parts) == 1:
        runs = first.headline.reason is Reason.RUNS
        sentence = f"All {total} pods of the job {'have their nodes' if runs else 'can be placed'}."
        if total == 1:
            sentence = f"The job's only pod {'has its node' if runs else 'can be placed'}."
        return msgspec.structs.replace(first.headline, sentence=sentence)
    sentence = f"{first.count:,} of {counted(total, 'pod')}: {first.headline.sentence}"
    return msgspec.structs.replace(first.headline, sentence=sentence)


def _base(world: World, job: Job, headline: Headline) -> Explanation:
    versions = dict(world.versions)
    versions["job"] = job.metadata.resource_version
    return Explanation(
        kind="Job",
        name=job.metadata.name,
        namespace=job.metadata.namespace,
        headline=headline,
        nodes=len(world.state.nodes),
        unseen=world.unseen,
        evidence=versions,
    )
