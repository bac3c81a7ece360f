"""Everything that waits, in a namespace or in the whole cluster: by reason, and within a reason by owner.

Only reasons are given here: what would help is found by searches, which would take long for hundreds of pods. For that, explain one of
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.api.pods import is_finished
from drayman.explain.answer import Explanation
from drayman.explain.claim import explain_claim, used_claims
from drayman.explain.pod import PodHeadlines, devices_refused
from drayman.explain.promised import reserved_in
from drayman.explain.queues.explaining import QueuedHeadlines, waits_in_queue
from drayman.explain.workload import Replicated, state_of_job, state_without_pods, why_no_pods
from drayman.placement.gangs.gang import Flaw, FlawKind, GangKey
from drayman.placement.world import World
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.refused_configs import refused_configs
from drayman.reasons.wording import and_list, counted
from drayman.workloads.makers import Maker, known_as, maker_of


def explain_namespace(world: World, name: str) -> Explanation:
    """What waits in a namespace."""
    return _overview(world, "Namespace", name, name)


def explain_all(world: World) -> Explanation:
    """What waits in the cluster."""
    return _overview(world, "Cluster", "", None)


def _overview(world: World, kind: str, name: str, namespace: str | None) -> Explanation:
    pods = [
        pod
        for pod in world.objects.pods
        if not is_finished(pod) and namespace in (None, pod.metadata.namespace)
    ]
    parts = [*waiting_pods(world, pods), *_others(world, namespace)]
    totals: Counter[Reason] = Counter()
    for part in parts:
        totals[part.headline.reason] += part.count
    parts.sort(key=lambda part: _order(part, totals))
    where = f"namespace {name}" if name else "the cluster"
    return Explanation(
        kind=kind,
        name=name,
        headline=_headline(parts, totals, len(pods), where),
        nodes=len(world.state.nodes),
        parts=tuple(parts),
        unseen=world.unseen,
        evidence=dict(world.versions),
    )


def waiting_pods(world: World, pods: Iterable[Pod]) -> list[Explanation]:
    """Pods that wait: one part for each reason of each workload, of each gang, and for each pod that is on its own."""
    groups: dict[tuple[Reason, str, Maker | GangKey], list[tuple[Pod, Headline]]] = {}
    with reserved_in(world) as reserved:
        headlines = PodHeadlines(world, reserved)
        for pod in pods:
            headline = headlines.of(pod)
            if headline.reason.kind is not None:
                # Members of a gang that nothing makes wait for the same reason, which is reported once.
                together = maker_of(pod) or world.state.gangs.key_of(pod) or known_as(pod)
                key = (headline.reason, pod.metadata.namespace, together)
                groups.setdefault(key, []).append((pod, headline))
    found = []
    for (_, namespace, together), members in groups.items():
        first, headline = members[0]
        whose = _known_as(world, together, first)
        # The node often says only that containers are being created. Where the cause is known, it belongs here too.
        is_stuck = headline.reason is Reason.NOT_STARTED and first.status.phase == "Pending"
        found.append(
            Explanation(
                kind=whose.kind,
                name=whose.name,
                namespace=namespace,
                headline=headline,
                refused_configs=refused_configs(world, first) if is_stuck else (),
                refused_devices=devices_refused(world, first) if is_stuck else (),
                count=len(members),
            )
        )
    return found


def _known_as(world: World, together: Maker | GangKey, first: Pod) -> Maker:
    """What can be explained in full: the object of a gang if there is one, or else one of its pods."""
    if isinstance(together, Maker):
        return together
    gang = world.state.gangs.gang(together)
    is_missing = isinstance(gang, Flaw) and gang.kind is FlawKind.MISSING
    if together.has_object and not is_missing:
        return Maker("PodGroup", together.name)
    return known_as(first)


def _others(world: World, namespace: str | None) -> Iterator[Explanation]:
    """Workloads all of whose pods have ended or are yet to be made, and claims that no pod is to use."""
    objects = world.objects
    queued = QueuedHeadlines(world)
    makers = {
        (pod.metadata.namespace, maker_of(pod)) for pod in objects.pods if not is_finished(pod)
    }
    for job in objects.jobs:
        own = job.metadata
        if (own.namespace, Maker("Job", own.name)) not in makers:
            headline = state_of_job(job) or Headline.of(Reason.NO_PODS, why_no_pods(job))
            is_open = headline.reason in (Reason.SUSPENDED, Reason.NO_PODS)
            if is_open and waits_in_queue(world, job):
                headline = queued.of_job(job)
            yield from _waiting(namespace, "Job", own, headline)
    bare = [each for each in objects.replica_sets if not each.metadata.owner_references]
    replicated: list[Replicated] = [*objects.deployments, *bare]
    replicated += [*objects.stateful_sets, *objects.daemon_sets]
    for workload in replicated:
        own = workload.metadata
        if (own.namespace, Maker(workload.kind, own.name)) not in makers:
            yield from _waiting(namespace, workload.kind, own, state_without_pods(workload))
    in_use = used_claims(world)
    for claim in objects.claims:
        own = claim.metadata
        # What was made for a pod is reported with the pod.
        if not own.owner_references and (own.namespace, own.name) not in in_use:
            headline = explain_claim(world, claim).headline
            yield from _waiting(namespace, "ResourceClaim", own, headline)


def _waiting(
    namespace: str | None, kind: str, metadata: ObjectMeta, headline: Headline
) -> Iterator[Explanation]:
    if headline.reason.kind is not None and namespace in (None, metadata.namespace):
        yield Explanation(
            kind=kind, name=metadata.name, namespace=metadata.namespace, headline=headline
        )


def _order(part: Explanation, totals: Counter[Reason]) -> tuple[object, ...]:
    """By reason, those with the most objects first, then by how many each stands for."""
    reason = part.headline.reason
    return -totals[reason], reason.value, -part.count, part.namespace, part.kind, part.name


def _headline(parts: list[Explanation], totals: Counter[Reason], pods: int, where: str) -> Headline:
    if not parts:
        text = f"Nothing waits in {where}; {counted(pods, 'pod')} {'runs' if pods == 1 else 'run'}."
        return Headline.of(Reason.RUNS, text)
    ordered = dict.fromkeys(part.headline.reason for part in parts)
    reasons = and_list([f"{totals[reason]:,} {reason.value}" for reason in ordered], 6)
    total = totals.total()
    verb = "waits" if total == 1 else "wait"
    by_reason = f": {reasons}" if len(ordered) > 1 else ""  # the only one is the word before it
    text = f"{counted(total, 'object')} {verb} in {where}{by_reason}."
    return Headline.of(parts[0].headline.reason, text)
