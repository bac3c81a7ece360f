"""Everything about an object that makes pods: its own state, and one pod for each reason its pods have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.api.meta import ObjectMeta, controller_of
from drayman.api.pods import is_finished, is_leaving
from drayman.api.workloads import DaemonSet, Deployment, ReplicaSet, StatefulSet
from drayman.explain.answer import Explanation
from drayman.explain.pod import PodHeadlines, explain_pod, explained
from drayman.explain.promised import reserved_in
from drayman.explain.queues.explaining import explain_queued_job, waits_in_queue
from drayman.explain.remedies import remedies_for_job
from drayman.placement.world import World
from drayman.reasons.lost import IN_TROUBLE
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import counted
from drayman.workloads.jobs.census import end_of, is_ours, wanted_at_once
from drayman.workloads.makers import Maker, maker_of

_ENDED: Final = {
    "Complete": (Reason.RUNS, "is complete"),
    "Failed": (Reason.FAILED, "has failed"),
}
_FAILURE: Final = "ReplicaFailure"

Replicated: TypeAlias = Deployment | ReplicaSet | StatefulSet | DaemonSet
_NOUNS: Final = {
    Deployment: "deployment",
    ReplicaSet: "replica set",
    StatefulSet: "stateful set",
    DaemonSet: "daemon set",
}


class Whole(Struct, frozen=True):
    """Something that makes pods, in the words of its kind."""

    kind: str
    noun: str
    metadata: ObjectMeta
    wanted: int | None = None
    """How many pods it is to have; None if that is not a fixed number."""


def explain_job(world: World, job: Job) -> Explanation:
    """Why the job makes no progress, by the reason of most of its waiting pods."""
    whole = Whole("Job", "job", job.metadata)
    own = state_of_job(job)
    if (own is None or own.reason is Reason.SUSPENDED) and waits_in_queue(world, job):
        return explain_queued_job(world, job)
    if own is not None and own.reason is Reason.SUSPENDED:
        help_ = remedies_for_job(world, job)
        base = explained(world, whole.kind, whole.metadata, own)
        return msgspec.structs.replace(base, remedies=help_.remedies, untried=help_.untried)
    if own is not None:
        return explained(world, whole.kind, whole.metadata, own)
    pods = pods_of(world, job.metadata)
    whole = msgspec.structs.replace(whole, wanted=_wanted_by_job(world, job))
    if not pods:
        return explained(
            world, whole.kind, whole.metadata, Headline.of(Reason.NO_PODS, why_no_pods(job))
        )
    return explain_pods(world, whole, pods)


def explain_workload(world: World, workload: Replicated) -> Explanation:
    """How many pods of a deployment, replica set, stateful set or daemon set run, and what the others wait for."""
    noun, metadata = _NOUNS[type(workload)], workload.metadata
    whole = Whole(workload.kind, noun, metadata, wanted_by(workload))
    if metadata.deletion_timestamp is not None:
        text = f"The {noun} is being deleted."
        return explained(world, whole.kind, whole.metadata, Headline.of(Reason.TERMINATING, text))
    pods = pods_of_workload(world, workload)
    if not pods:
        return explained(world, whole.kind, whole.metadata, state_without_pods(workload))
    return explain_pods(world, whole, pods)


def _wanted_by_job(world: World, job: Job) -> int | None:
    """How many pods it is to have now. Where each index has its own retries, some may be given up: then there is no telling."""
    if job.spec.backoff_limit_per_index is not None:
        return None
    done = sum(
        pod.status.phase == "Succeeded" and _controller_uid(pod) == job.metadata.uid
        for pod in world.objects.pods
    )
    return wanted_at_once(job, max(done, job.status.succeeded))


def state_of_job(job: Job) -> Headline | None:
    """What is known of a job without looking at pods."""
    if job.metadata.deletion_timestamp is not None:
        return Headline.of(Reason.TERMINATING, "The job is being deleted.")
    end = end_of(job)
    if end is not None:
        why = f": {end.message.rstrip('.')}" if end.message else ""
        reason, how = _ENDED[end.type_]
        return Headline.of(reason, f"The job {how}{why}.")
    if job.spec.suspend:
        text = "The job is suspended; it gets pods when spec.suspend is set to false."
        return Headline.of(Reason.SUSPENDED, text)
    return None


def why_no_pods(job: Job) -> str:
    if not job.spec.parallelism:
        return "The job gets no pods while spec.parallelism is 0."
    if not is_ours(job):
        return f"The job is left to {job.spec.managed_by}, which has not created any pods for it."
    if job.status.failed:
        failed = f"{counted(job.status.failed, 'pod')} of the job {_have(job.status.failed)} failed"
        return f"{failed}, and the job controller has not created another yet: it waits longer after each failure."
    return "The job controller has not created any pods for the job."


def state_without_pods(workload: Replicated) -> Headline:
    """What there is to say about a workload that has no pods."""
    noun = _NOUNS[type(workload)]
    if wanted_by(workload) == 0:
        why = (
            "no node is eligible for its pods"
            if isinstance(workload, DaemonSet)
            else "it wants none"
        )
        return Headline.of(Reason.RUNS, f"The {noun} has no pods: {why}.")
    failure = _failure(workload)
    if failure:
        return Headline.of(Reason.NO_PODS, f"No pods can be created for the {noun}: {failure}.")
    if isinstance(workload, Deployment) and workload.spec.paused:
        text = "The deployment is paused; it gets pods when spec.paused is set to false."
        return Headline.of(Reason.SUSPENDED, text)
    return Headline.of(Reason.NO_PODS, f"No pods have been created for the {noun}.")


def wanted_by(workload: Replicated) -> int:
    """How many pods a workload is to have."""
    if isinstance(workload, DaemonSet):
        return workload.status.desired_number_scheduled
    return workload.spec.replicas


def pods_of(world: World, owner: ObjectMeta) -> list[Pod]:
    """The pods that something has made and that have not ended."""
    return _living(world, owner.namespace, lambda pod: _controller_uid(pod) == owner.uid)


def pods_of_workload(world: World, workload: Replicated) -> list[Pod]:
    """The same for a workload. Those of a deployment belong to replica sets that it has made."""
    if not isinstance(workload, Deployment):
        return pods_of(world, workload.metadata)
    own = Maker("Deployment", workload.metadata.name)
    return _living(world, workload.metadata.namespace, lambda pod: maker_of(pod) == own)


def _living(world: World, namespace: str, belongs: Callable[[Pod], bool]) -> list[Pod]:
    return [
        pod
        for pod in world.objects.pods
        if pod.metadata.namespace == namespace and not is_finished(pod) and belongs(pod)
    ]


def _controller_uid(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return "" if owner is None else owner.uid


def _failure(workload: Replicated) -> str:
    """What keeps the controller from making pods, such as a quota."""
    for condition in workload.status.conditions:
        if condition.type_ == _FAILURE and condition.status == "True":
            return condition.message.rstrip(".")
    return ""


def explain_pods(world: World, whole: Whole, pods: Sequence[Pod]) -> Explanation:
    """The state of the pods. Those being deleted have been replaced, or are about to be."""
    staying = [pod for pod in pods if not is_leaving(pod)]
    leaving = len(pods) - len(staying)
    counted_pods = staying or pods
    parts = _parts(world, counted_pods)
    wanted = max(len(counted_pods), whole.wanted or 0)
    headline = _summary(parts, len(counted_pods), wanted, whole.noun)
    if staying and leaving:
        more = f" {counted(leaving, 'more pod')} {_are(leaving)} being deleted."
        headline = msgspec.structs.replace(headline, sentence=f"{headline.sentence}{more}")
        parts += _parts(world, [p for p in pods if is_leaving(p)])
    first = parts[0]
    return msgspec.structs.replace(
        explained(world, whole.kind, whole.metadata, headline),
        parts=parts,
        remedies=first.remedies,
        untried=first.untried,
    )


def _parts(world: World, pods: Sequence[Pod]) -> tuple[Explanation, ...]:
    """One pod for each reason, those that wait first, then by how many it stands for."""
    groups: dict[Reason, list[Pod]] = {}
    with reserved_in(world) as reserved:
        headlines = PodHeadlines(world, reserved)
        for pod in pods:
            groups.setdefault(headlines.of(pod).reason, []).append(pod)
    ordered = sorted(
        groups.items(), key=lambda item: (item[0].kind is None, -len(item[1]), item[0].value)
    )
    return tuple(
        msgspec.structs.replace(explain_pod(world, members[0]), count=len(members))
        for _, members in ordered
    )


def _summary(parts: Sequence[Explanation], total: int, wanted: int, noun: str) -> Headline:
    first = parts[0].headline
    missing = wanted - total
    to_come = (
        f" {counted(missing, 'more pod')} {_are(missing)} still to be created." if missing else ""
    )
    if first.reason.kind is None and len(parts) == 1:
        runs = first.reason is Reason.RUNS
        sentence = (
            f"All {total} pods of the {noun} {'have their nodes' if runs else 'can be placed'}."
        )
        if total == 1:
            sentence = f"The {noun}'s only pod {'has its node' if runs else 'can be placed'}."
        return msgspec.structs.replace(first, sentence=f"{sentence}{to_come}")
    if first.reason.kind is None:
        fit = sum(part.count for part in parts if part.headline.reason is Reason.FITS)
        sentence = f"Of {counted(total, 'pod')} of the {noun}, {fit:,} can be placed."
        return msgspec.structs.replace(first, sentence=f"{sentence}{to_come}")
    waiting = sum(part.count for part in parts if part.headline.reason.kind is not None)
    verb = "waits" if waiting == 1 else "wait"
    if parts[0].node and first.reason in IN_TROUBLE:
        verb = f"{_are(waiting)} in trouble"
    elif first.reason is Reason.NOT_STARTED:
        verb = "does not run" if waiting == 1 else "do not run"
    those = "" if waiting == parts[0].count else f", {parts[0].count:,} of them for this reason"
    sentence = f"{waiting:,} of {counted(total, 'pod')} {verb}{those}: {first.sentence}"
    return msgspec.structs.replace(first, sentence=f"{sentence}{to_come}")


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
