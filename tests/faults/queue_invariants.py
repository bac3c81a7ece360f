"""What must hold of queued work, judged by the objects of queues, Workloads and what they are made for.

At any moment: nothing runs that was not admitted. At rest: each queued object has one Workload and each Workload an owner, queues show
the sums of their Workloads, no more is held than there is, and nothing waits that could be admitted.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

from faults.charges import charge_of
from faults.quota_tree import FlavorResource, Tree, Usage, quotas_of
from faults.snapshot import Object, Snapshot, amount, has_condition, is_finished, name_of

QUEUE: Final = "kueue.x-k8s.io/queue-name"
MANAGED: Final = "kueue.x-k8s.io/managed"
GATE: Final = "kueue.x-k8s.io/admission"
GROUP: Final = "kueue.x-k8s.io/pod-group-name"
GROUP_SIZE: Final = "kueue.x-k8s.io/pod-group-total-count"
ROOM: Final = "drayman.dev/room"
RUN_FOR: Final = "drayman.dev/run-for"


# --- What objects say -----------------------------------------------------------------------------


def queue_of(item: Object) -> str:
    """The local queue that something waits in; empty if it does not."""
    found: str = item["metadata"].get("labels", {}).get(QUEUE, "")
    return found


def is_held(pod: Object) -> bool:
    """Whether a pod waits for its Workload to be admitted."""
    gates = {gate["name"] for gate in pod["spec"].get("schedulingGates") or ()}
    return GATE in gates and not pod["metadata"].get("deletionTimestamp")


def is_leaving(item: Object) -> bool:
    return bool(item["metadata"].get("deletionTimestamp"))


def holds_quota(workload: Object) -> bool:
    return (
        has_condition(workload, "QuotaReserved")
        and not has_condition(workload, "Finished")
        and bool(workload["status"].get("admission"))
    )


def queue_held(workload: Object) -> str:
    """The cluster queue whose quota a Workload holds."""
    found: str = workload["status"]["admission"]["clusterQueue"]
    return found


def held_by(workload: Object) -> dict[FlavorResource, Fraction]:
    """What a Workload holds, without what its ended pods have given back."""
    ended = _ended_pods(workload)
    found: dict[FlavorResource, Fraction] = defaultdict(Fraction)
    for each in workload["status"]["admission"]["podSetAssignments"]:
        count = each["count"]
        left = Fraction(max(0, count - ended.get(each["name"], 0)), count)
        for resource, flavor in each["flavors"].items():
            found[flavor, resource] += amount(each["resourceUsage"][resource]) * left
    return dict(found)


def used_by_queue(workloads: Iterable[Object]) -> dict[str, Counter[FlavorResource]]:
    """What Workloads hold of each cluster queue."""
    used: dict[str, Counter[FlavorResource]] = defaultdict(Counter)
    for workload in workloads:
        if holds_quota(workload):
            used[queue_held(workload)].update(held_by(workload))  # type: ignore[arg-type]
    return used


def _ended_pods(workload: Object) -> dict[str, int]:
    pods = workload.get("status", {}).get("reclaimablePods") or ()
    return {each["name"]: each["count"] for each in pods}


def _owners(item: Object) -> list[str]:
    return [owner["uid"] for owner in item["metadata"].get("ownerReferences", ())]


def _by_owner(workloads: Iterable[Object]) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = defaultdict(list)
    for workload in workloads:
        for uid in _owners(workload):
            found[uid].append(workload)
    return found


# --- At any moment --------------------------------------------------------------------------------


def runs_without_admission(now: Snapshot) -> Iterator[str]:
    """Pods of queued work that have a node while no Workload of theirs is admitted."""
    workloads = _by_owner(now.workloads)
    queued = {job["metadata"]["uid"] for job in now.jobs if queue_of(job) and not is_leaving(job)}
    for pod in now.pods:
        if not pod["spec"].get("nodeName") or is_finished(pod) or is_leaving(pod):
            continue
        owners = [uid for uid in _owners(pod) if uid in queued]
        if MANAGED in pod["metadata"].get("labels", {}):
            owners.append(pod["metadata"]["uid"])
        for uid in owners:
            if not any(has_condition(each, "Admitted") for each in workloads.get(uid, ())):
                yield f"pod {name_of(pod)} has a node, and no Workload of it is admitted"


# --- At rest --------------------------------------------------------------------------------------


def unsettled_queues(now: Snapshot) -> Iterator[str]:
    """What of queued work is lost, left over, or does not get on."""
    yield from _lost_and_left(now)
    for workload in now.workloads:
        if holds_quota(workload):
            yield from _half_admitted(workload, now)
    yield from Tree.of(now.cluster_queues, now.cohorts).exceeded(used_by_queue(now.workloads))
    yield from _status_contradictions(now)
    yield from _waits_for_nothing(now)
    workloads = _by_owner(now.workloads)
    for job in now.jobs:
        if queue_of(job):
            yield from _job_stalls(job, workloads.get(job["metadata"]["uid"], ()), now)


def _lost_and_left(now: Snapshot) -> Iterator[str]:
    workloads = _by_owner(now.workloads)
    groups: dict[str, list[Object]] = defaultdict(list)
    # One that is complete does not get another Workload when somebody deletes its own.
    expected = [
        ("job", job) for job in now.jobs if queue_of(job) and not has_condition(job, "Complete")
    ]
    for pod in now.pods:
        labels = pod["metadata"].get("labels", {})
        if MANAGED in labels and labels.get(GROUP):
            groups[labels[GROUP]].append(pod)
        elif MANAGED in labels and not is_finished(pod):
            expected.append(("pod", pod))
    for members in groups.values():
        wanted = int(members[0]["metadata"]["annotations"][GROUP_SIZE])
        if len(members) == wanted and not any(is_finished(each) for each in members):
            expected += [("pod", each) for each in members]
    for kind, item in expected:
        number = len(workloads.get(item["metadata"]["uid"], ()))
        if number != 1:
            yield f"queued {kind} {name_of(item)} has {number} Workloads"
    there = {item["metadata"]["uid"] for item in (*now.jobs, *now.pods)}
    for workload in now.workloads:
        if there.isdisjoint(_owners(workload)):
            yield f"Workload {name_of(workload)} is left of what is gone"
        if is_leaving(workload):
            yield f"Workload {name_of(workload)} is deleted and stays"


def _half_admitted(workload: Object, now: Snapshot) -> Iterator[str]:
    """Steps that were begun and not ended, and promises that mean nothing."""
    name = f"Workload {name_of(workload)}"
    if has_condition(workload, "Evicted"):
        yield f"{name} is evicted and keeps its quota"
    if not has_condition(workload, "Admitted"):
        yield f"{name} has quota and is not admitted"
    sets = {each["name"]: each for each in workload["spec"]["podSets"]}
    for each in workload["status"]["admission"]["podSetAssignments"]:
        charged = {resource: amount(value) for resource, value in each["resourceUsage"].items()}
        right = charge_of(sets[each["name"]], each["count"])
        if charged != right:
            yield f"{name} is charged {_shown(charged)} for {_shown(right)}"
    nodes = {node["metadata"]["name"] for node in now.nodes}
    text = workload["metadata"].get("annotations", {}).get(ROOM)
    if text is None:
        yield f"{name} is admitted without room"
        return
    for place in json.loads(text).get("places") or ():
        if place["node"] not in nodes:
            yield f"{name} has room on node {place['node']}, which is gone"


def _shown(amounts: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{value} {name}" for name, value in sorted(amounts.items())) or "nothing"


def _job_stalls(job: Object, workloads: Sequence[Object], now: Snapshot) -> Iterator[str]:
    name = f"queued job {name_of(job)}"
    if has_condition(job, "Complete"):
        if not all(has_condition(each, "Finished") for each in workloads):
            yield f"{name} is complete, and its Workload is not finished"
        return
    pods = [
        pod for pod in now.pods if job["metadata"]["uid"] in _owners(pod) and not is_finished(pod)
    ]
    if not any(has_condition(each, "Admitted") for each in workloads):
        if not job["spec"].get("suspend"):
            yield f"{name} is not suspended, and no Workload of it is admitted"
        if pods:
            yield f"{name} has {len(pods)} pods, and no Workload of it is admitted"
    elif RUN_FOR in job["spec"]["template"]["metadata"].get("annotations", {}):
        yield f"{name} is admitted and not complete"
    elif len(pods) != job["spec"]["parallelism"]:
        yield f"{name} is admitted and has {len(pods)} of {job['spec']['parallelism']} pods"


# --- What queues show -----------------------------------------------------------------------------


def _status_contradictions(now: Snapshot) -> Iterator[str]:
    clusters = {
        (item["metadata"]["namespace"], item["metadata"]["name"]): item["spec"]["clusterQueue"]
        for item in now.local_queues
    }
    by_queue: dict[str, list[Object]] = defaultdict(list)
    by_local: dict[str, list[Object]] = defaultdict(list)
    for workload in now.workloads:
        if has_condition(workload, "Finished"):
            continue
        local = (workload["metadata"]["namespace"], workload["spec"]["queueName"])
        by_local["/".join(local)].append(workload)
        queue = queue_held(workload) if holds_quota(workload) else clusters.get(local, "")
        by_queue[queue].append(workload)
    for queue in now.cluster_queues:
        name = queue["metadata"]["name"]
        yield from _miscounted(f"ClusterQueue {name}", queue, by_queue[name])
    for local_queue in now.local_queues:
        name = name_of(local_queue)
        yield from _miscounted(f"LocalQueue {name}", local_queue, by_local[name])


def _miscounted(name: str, queue: Object, workloads: Sequence[Object]) -> Iterator[str]:
    status = queue.get("status", {})
    holding = [each for each in workloads if holds_quota(each)]
    admitted = [each for each in holding if has_condition(each, "Admitted")]
    for field, number in (
        ("pendingWorkloads", len(workloads) - len(holding)),
        ("reservingWorkloads", len(holding)),
        ("admittedWorkloads", len(admitted)),
    ):
        if status.get(field, 0) != number:
            yield f"{name} shows {status.get(field, 0)} {field}, and there are {number}"
    for field, counted in (("flavorsReservation", holding), ("flavorsUsage", admitted)):
        shown = {
            (flavor["name"], resource["name"]): amount(resource["total"])
            for flavor in status.get(field) or ()
            for resource in flavor["resources"]
        }
        real: Counter[FlavorResource] = Counter()
        for each in counted:
            real.update(held_by(each))  # type: ignore[arg-type]
        for key in sorted(shown.keys() | real.keys()):
            if shown.get(key, 0) != real[key]:
                yield f"{name} shows {shown.get(key, 0)} {field} of {'/'.join(key)}, and {real[key]} are held"


# --- What waits -----------------------------------------------------------------------------------


def _waits_for_nothing(now: Snapshot) -> Iterator[str]:
    """Workloads that wait although there is quota, or although they could have it of those that matter less."""
    used = used_by_queue(now.workloads)
    tree = Tree.of(now.cluster_queues, now.cohorts)
    queues = {queue["metadata"]["name"]: queue for queue in now.cluster_queues}
    for name, waiting in _waiting(now).items():
        queue = queues[name]
        asked = {each["metadata"]["uid"]: _asked(each, queue) for each in waiting}
        fits = [each for each in waiting if _fits(tree, used, name, asked[each["metadata"]["uid"]])]
        if queue["spec"].get("queueingStrategy") == "StrictFIFO":
            # Whoever is not first has to wait; if all fit, then also the first one.
            fits = fits if len(fits) == len(waiting) else []
            entitled: list[Object] = []
        else:
            entitled = [
                each
                for each in waiting
                if each not in fits
                and _is_entitled(each, queue, asked[each["metadata"]["uid"]], now.workloads)
            ]
        for workload in fits:
            yield f"Workload {name_of(workload)} waits, and there is quota for it{_why(workload)}"
        for workload in entitled:
            yield f"Workload {name_of(workload)} waits for what is lent or matters less{_why(workload)}"


def _waiting(now: Snapshot) -> dict[str, list[Object]]:
    """Who waits, by the cluster queue that would have to admit it."""
    clusters = {
        name_of(item): item["spec"]["clusterQueue"]
        for item in now.local_queues
        if item["spec"].get("stopPolicy", "None") == "None"
    }
    active = {
        item["metadata"]["name"]
        for item in now.cluster_queues
        if item["spec"].get("stopPolicy", "None") == "None"
    }
    found: dict[str, list[Object]] = defaultdict(list)
    for workload in now.workloads:
        local = f"{workload['metadata']['namespace']}/{workload['spec']['queueName']}"
        over = holds_quota(workload) or has_condition(workload, "Finished")
        if not over and not is_leaving(workload) and clusters.get(local) in active:
            found[clusters[local]].append(workload)
    return found


def _asked(workload: Object, queue: Object) -> dict[FlavorResource, Fraction]:
    """What a Workload would hold of a queue, in which each resource has one flavor."""
    flavors = {resource: flavor for flavor, resource in quotas_of(queue)}
    ended = _ended_pods(workload)
    found: dict[FlavorResource, Fraction] = defaultdict(Fraction)
    for pod_set in workload["spec"]["podSets"]:
        left = pod_set["count"] - ended.get(pod_set["name"], 0)
        for resource, value in charge_of(pod_set, left).items():
            found[flavors[resource], resource] += value
    return dict(found)


def _fits(tree: Tree, used: Mapping[str, Usage], queue: str, asked: Usage) -> bool:
    own: Counter[FlavorResource] = Counter(used.get(queue, {}))  # type: ignore[arg-type]
    own.update(asked)  # type: ignore[arg-type]
    return not list(tree.exceeded({**used, queue: own}))


def _is_entitled(
    workload: Object, queue: Object, asked: Usage, workloads: Iterable[Object]
) -> bool:
    """Whether a queue's own quota suffices for a Workload and all in it that matter as much: the rest can be taken back."""
    name = queue["metadata"]["name"]
    total: Counter[FlavorResource] = Counter(asked)  # type: ignore[arg-type]
    for other in workloads:
        if (
            holds_quota(other)
            and queue_held(other) == name
            and _priority(other) >= _priority(workload)
        ):
            total.update(held_by(other))  # type: ignore[arg-type]
    quotas = quotas_of(queue)
    return all(value <= quotas[key].nominal for key, value in total.items())


def _priority(workload: Object) -> int:
    return int(workload["spec"].get("priority") or 0)


def _why(workload: Object) -> str:
    for condition in workload.get("status", {}).get("conditions") or ():
        if condition["type"] == "QuotaReserved":
            return f": {condition.get('message')}"
    return ": nobody says why"
