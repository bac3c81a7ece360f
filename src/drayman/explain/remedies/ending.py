"""Jobs that hold what is needed, and will give it back when they end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.api.meta import controller_of
from drayman.api.times import seconds_of, timestamp_at
from drayman.explain.answer import Operation, Remedy
from drayman.explain.remedies.case import Case, remedy
from drayman.explain.remedies.commands import wait_command
from drayman.explain.remedies.linked_pods import LinkedPods
from drayman.explain.remedies.rooms import Room
from drayman.explain.remedies.trying import Fit
from drayman.placement.nodes import NodeState
from drayman.placement.runs.declaring import JobTerms, expected, terms_of
from drayman.reasons.wording import named

_MOST_JOBS: Final = 8
_FAR: Final = float("inf")


class _Ending(Struct, frozen=True):
    """A job, what is freed with it, and when that will be at the latest."""

    job: Job
    linked: tuple[LinkedPods, ...]
    end: float

    @property
    def name(self) -> str:
        metadata = self.job.metadata
        return f"{metadata.namespace}/{metadata.name}"

    def nodes(self, case: Case) -> list[NodeState]:
        names = {pod.spec.node_name: None for linked in self.linked for pod in linked.pods}
        return [case.state.nodes[name] for name in names if name in case.state.nodes]


def ended_jobs(case: Case, found: Sequence[Room]) -> Iterator[Remedy]:
    """Jobs after whose end the pod fits: single ones, the first to end first, or else those that fill the cheapest room."""
    endings = _endings(case, found)
    helped = False
    for ending in sorted(endings.values(), key=lambda each: (each.end, each.name))[:_MOST_JOBS]:
        fit = _fit_after(case, [ending])
        if fit is not None:
            helped = True
            yield _waiting([ending], fit)
    if helped:
        return
    for room in found:
        names = [_job_of(pod) for linked in room.victims for pod in linked.pods]
        jobs = {uid: endings[uid] for uid in names if uid in endings}
        if len(jobs) > 1 and None not in names and len(jobs) == len(set(names)):
            fit = _fit_after(case, list(jobs.values()))
            if fit is not None:
                yield _waiting(list(jobs.values()), fit)
                return


def _endings(case: Case, found: Sequence[Room]) -> dict[str, _Ending]:
    """The jobs with pods on the nodes where room was found, by uid."""
    jobs = {job.metadata.uid: job for job in case.world.objects.jobs}
    endings: dict[str, _Ending] = {}
    for room in found:
        for pod in case.pods.on(room.node.facts.name):
            uid = _job_of(pod)
            if uid is None or uid in endings or uid not in jobs:
                continue
            pods = case.pods.owned_by("Job", uid)
            going = case.pods.linked_to_any(pods)
            # What the pods share with others is not given back when the job ends.
            if all(_job_of(each) == uid for linked in going for each in linked.pods):
                endings[uid] = _Ending(jobs[uid], tuple(going), _end(jobs[uid], pods))
    return endings


def _fit_after(case: Case, endings: Sequence[_Ending]) -> Fit | None:
    with case.state.trial() as trial:
        for linked in (linked for ending in endings for linked in ending.linked):
            linked.leave(trial)
        nodes = [node for ending in endings for node in ending.nodes(case)]
        return case.trials.first_fit(case.demand, nodes)


def _waiting(endings: Sequence[_Ending], fit: Fit) -> Remedy:
    end = max(ending.end for ending in endings)
    when = "" if end == _FAR else f", which is at {timestamp_at(end)} at the latest"
    jobs = named("job", [ending.name for ending in endings])
    metadata = [ending.job.metadata for ending in endings]
    operations = tuple(
        Operation(verb="wait", kind="Job", name=m.name, namespace=m.namespace) for m in metadata
    )
    commands = tuple(
        wait_command("Job", m.name, m.namespace, "condition=complete") for m in metadata
    )
    return remedy(f"wait for the end of {jobs}{when}", operations, fit, commands)


def _job_of(pod: Pod) -> str | None:
    owner = controller_of(pod.metadata)
    return owner.uid if owner is not None and owner.kind == "Job" else None


def _end(job: Job, pods: Sequence[Pod]) -> float:
    """When the pods that run now will have ended, as far as that is declared."""
    terms = terms_of(job)
    deadline = None if terms is None else terms.deadline
    latest = _FAR if deadline is None else deadline
    if (job.spec.completions or 0) > job.status.succeeded + len(pods):
        return latest  # others will follow those
    return min(latest, max((_end_of_pod(pod, terms) for pod in pods), default=_FAR))


def _end_of_pod(pod: Pod, terms: JobTerms | None) -> float:
    begun, seconds = seconds_of(pod.status.start_time), expected(pod, terms)
    return _FAR if begun is None or seconds is None else begun + seconds
