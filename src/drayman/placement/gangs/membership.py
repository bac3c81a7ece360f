"""Which gang a pod is in.

A pod may have marks of several dialects: Kueue admits it, a plugin schedules it, a user adds an annotation. One of them counts. What names
an object comes before what only states a number, Kubernetes' own object before those of others, and what the pod itself says before what
its owner says:

1. `spec.schedulingGroup`
2. the label of the coscheduling plugin
3. KAI's annotation `pod-group-name`
4. the label of Kueue's pod groups
5. annotations of `drayman.dev`, of the pod or its Job
6. KAI's annotations from which it makes groups, of the pod or its Job
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.api.meta import OwnerReference, controller_of
from drayman.placement.gangs.declaring import Declaration
from drayman.placement.gangs.dialects import kai, kubernetes, kueue, own, plugin
from drayman.placement.gangs.gang import Dialect, Flaw, GangKey, InvalidGangError, Membership
from drayman.placement.gangs.ranks import rank_of
from drayman.placement.gangs.statements import Statements
from drayman.placement.min_runtime import MIN_RUNTIME

OF_OWNERS: Final = own.STATED | kai.STATED | {MIN_RUNTIME}
"""The annotations of a Job that count for its pods. Its label with a queue does too."""
STATING_GANGS: Final = OF_OWNERS | kueue.STATED | {kai.POD_GROUP}
"""All annotations of pods that say something about gangs."""
_STATING: Final = own.STATING | kai.STATING
_COUNTING: Final = _STATING | {MIN_RUNTIME}


class Reading(Struct, frozen=True):
    """What a pod says about the gang that it is in."""

    membership: Membership
    stated: Declaration | Flaw | None = None
    """None if the object of the gang says everything. A flaw is one of the pod."""


JobStatements = Mapping[str, Mapping[str, str]]
"""By the uid of a Job: what its annotations state for its pods."""


def statements_of(job: Job) -> Mapping[str, str] | None:
    """What a Job states for its pods, in annotations and by its queue; None if nothing."""
    given, queue = job.metadata.annotations, job.metadata.labels.get(kai.QUEUE)
    counts = bool(given) and not given.keys().isdisjoint(_COUNTING)
    if not counts:
        return None if queue is None else {kai.QUEUE: queue}
    stated = {name: text for name, text in given.items() if name in OF_OWNERS}
    return stated if queue is None else {**stated, kai.QUEUE: queue}


def job_of(pod: Pod) -> OwnerReference | None:
    """The Job whose pod it is."""
    if not pod.metadata.owner_references:
        return None
    owner = controller_of(pod.metadata)
    return owner if owner is not None and owner.kind == "Job" else None


def reading_of(pod: Pod, jobs: JobStatements) -> Reading | None:
    """None for a pod that is on its own. Most are, so this looks at what is empty first."""
    metadata = pod.metadata
    if pod.spec.scheduling_group is not None:
        membership = kubernetes.membership_of(pod)
        if membership is not None:
            return Reading(membership)
    if metadata.labels:
        membership = plugin.membership_of(pod)
        if membership is not None:
            return Reading(membership)
    if metadata.annotations:
        membership = kai.membership_of(pod)
        if membership is not None:
            return Reading(membership)
    if metadata.labels:
        found = kueue.membership_of(pod)
        if found is not None:
            return Reading(*found)
    job = job_of(pod) if jobs else None
    stated = None if job is None else jobs.get(job.uid)
    if stated is None and metadata.annotations.keys().isdisjoint(_STATING):
        return None
    title = "" if job is None else f"job {metadata.namespace}/{job.name}"
    return _stated(pod, Statements.of(pod, title, stated))


def _stated(pod: Pod, statements: Statements) -> Reading | None:
    owner = controller_of(pod.metadata)
    if any(statements.text(name) for name in own.STATING):
        key = own.key_of(pod, owner, statements)
        if key is None:
            found = own.alone(pod, statements)
            return None if found is None else Reading(Membership(found[0]), found[1])
        return _reading(pod, key, statements)
    if owner is None or not any(statements.text(name) for name in kai.STATING):
        return None  # KAI's annotations mean nothing without an owner
    return _reading(pod, own.owned(Dialect.KAI, pod, owner), statements)


def _reading(pod: Pod, key: GangKey, statements: Statements) -> Reading:
    of_kai = key.dialect is Dialect.KAI
    try:
        rank = rank_of(pod, statements.text(kai.INDEX_LABEL) if of_kai else "")
        declared = kai.declared_by(statements) if of_kai else own.declared_by(statements)
    except InvalidGangError as error:
        return Reading(Membership(key), statements.flaw(key, error))
    return Reading(Membership(key, rank=rank), declared)
