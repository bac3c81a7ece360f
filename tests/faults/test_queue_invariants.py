"""The checker of queues itself: a state in which all is well, and the same state spoiled in one place at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from typing import Any, Final

import pytest

from faults.charges import GPUS
from faults.invariants import broken_promises, unsettled
from faults.queue_invariants import GATE, GROUP, GROUP_SIZE, MANAGED, QUEUE, ROOM, RUN_FOR
from faults.queue_watching import HEARING, QuotaWatch
from faults.quota_tree import Tree
from faults.snapshot import PATHS, Object, Snapshot

State = dict[str, list[Object]]


def metadata(name: str, **more: Any) -> Object:
    return {"name": name, "namespace": "default", "uid": f"uid-of-{name}", **more}


def owner(name: str) -> Object:
    return {"kind": "Job", "name": name, "uid": f"uid-of-{name}", "controller": True}


def conditions(*types: str) -> list[Object]:
    return [{"type": each, "status": "True"} for each in types]


def queue(name: str, cpu: int, cohort: str = "all", **limits: int) -> Object:
    resources = [{"name": what, "nominalQuota": cpu, **limits} for what in ("cpu", GPUS)]
    groups = [{"flavors": [{"name": "standard", "resources": resources}]}]
    return {
        "metadata": {"name": name, "uid": f"uid-of-queue-{name}"},
        "spec": {"cohortName": cohort, "resourceGroups": groups, "stopPolicy": "None"},
    }


def counted(item: Object, pending: int, holding: int, cpu: int, gpus: int) -> Object:
    usage = [
        {"name": "standard", "resources": [{"name": "cpu", "total": str(cpu)}, {"name": GPUS, "total": str(gpus)}]}
    ]  # fmt: skip
    item["status"] = {
        "pendingWorkloads": pending,
        "reservingWorkloads": holding,
        "admittedWorkloads": holding,
        "flavorsReservation": usage,
        "flavorsUsage": deepcopy(usage),
    }
    return item


def pod_set(claim: str = "", count: int = 1) -> Object:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    claims = [{"name": "devices", "resourceClaimTemplateName": claim}] if claim else []
    spec = {"containers": [container], "resourceClaims": claims}
    return {"name": "main", "count": count, "template": {"spec": spec}}


def workload(name: str, local: str, claim: str = "", priority: int = 0) -> Object:
    """One that waits."""
    return {
        "metadata": metadata(f"workload-of-{name}", ownerReferences=[owner(name)]),
        "spec": {"queueName": local, "priority": priority, "podSets": [pod_set(claim)]},
        "status": {},
    }


def admitted(waiting: Object, queue_name: str, **usage: str) -> Object:
    usage = {"cpu": "1", **usage}
    given = {
        "name": "main",
        "count": 1,
        "flavors": dict.fromkeys(usage, "standard"),
        "resourceUsage": usage,
    }
    waiting["metadata"]["annotations"] = {ROOM: json.dumps({"places": [{"node": "node"}]})}
    waiting["status"] = {
        "conditions": conditions("QuotaReserved", "Admitted"),
        "admission": {"clusterQueue": queue_name, "podSetAssignments": [given]},
    }
    return waiting


def job(name: str, local: str, *, suspended: bool = False) -> Object:
    template: Object = {"metadata": {}, "spec": {}}
    return {
        "metadata": metadata(name, labels={QUEUE: local}),
        "spec": {"suspend": suspended, "parallelism": 1, "template": template},
    }


def pod(name: str, of: str) -> Object:
    return {
        "metadata": metadata(name, ownerReferences=[owner(of)]),
        "spec": {"nodeName": "node", "containers": []},
        "status": {"phase": "Running"},
    }


def good() -> State:
    """Two queues of a cohort: one lends a CPU to the other, in which a Job runs and another one has to wait, and so has a pod."""
    held = pod("held", "nobody")
    held["metadata"] = metadata("held", labels={QUEUE: "b", MANAGED: "true"})
    held["spec"] = {"schedulingGates": [{"name": GATE}], "containers": []}
    return {
        "nodes": [{"metadata": {"name": "node", "uid": "uid-of-node"}}],
        "cohorts": [],
        "cluster_queues": [
            counted(queue("a", 1), pending=1, holding=2, cpu=2, gpus=1),
            counted(queue("b", 1), pending=1, holding=0, cpu=0, gpus=0),
        ],
        "local_queues": [
            counted(
                {"metadata": metadata("a"), "spec": {"clusterQueue": "a"}}, 1, 2, cpu=2, gpus=1
            ),
            counted(
                {"metadata": metadata("b"), "spec": {"clusterQueue": "b"}}, 1, 0, cpu=0, gpus=0
            ),
        ],
        "jobs": [job("one", "a"), job("two", "a"), job("three", "a", suspended=True)],
        "pods": [pod("pod-of-one", "one"), pod("pod-of-two", "two"), held],
        "workloads": [
            admitted(workload("one", "a", "gpu"), "a", **{GPUS: "1"}),
            admitted(workload("two", "a", priority=5), "a"),
            workload("three", "a"),
            workload("held", "b", "two-gpus"),
        ],
    }


def snapshot(state: State) -> Snapshot:
    return Snapshot(**state)


# What is spoiled, by what is found then.


def take_workload(state: State) -> None:
    del state["workloads"][2]


def copy_workload(state: State) -> None:
    again = deepcopy(state["workloads"][2])
    again["metadata"].update(name="again", uid="again")
    state["workloads"].append(again)


def take_workload_of_pod(state: State) -> None:
    del state["workloads"][3]


def take_workload_of_group(state: State) -> None:
    state["pods"][2]["metadata"]["labels"][GROUP] = "group"
    state["pods"][2]["metadata"]["annotations"] = {GROUP_SIZE: "1"}
    del state["workloads"][3]


def take_job(state: State) -> None:
    del state["jobs"][2]


def delete_workload(state: State) -> None:
    state["workloads"][2]["metadata"]["deletionTimestamp"] = "now"


def evict(state: State) -> None:
    state["workloads"][0]["status"]["conditions"] += conditions("Evicted")


def admit_by_half(state: State) -> None:
    state["workloads"][0]["status"]["conditions"].pop()


def charge_too_little(state: State) -> None:
    given = state["workloads"][0]["status"]["admission"]["podSetAssignments"][0]
    del given["resourceUsage"][GPUS]
    del given["flavors"][GPUS]


def keep_no_room(state: State) -> None:
    del state["workloads"][0]["metadata"]["annotations"][ROOM]


def take_node(state: State) -> None:
    state["nodes"].clear()


def leave_cohort(state: State) -> None:
    state["cluster_queues"][0]["spec"]["cohortName"] = ""


def miscount_pending(state: State) -> None:
    state["cluster_queues"][1]["status"]["pendingWorkloads"] = 2


def miscount_usage(state: State) -> None:
    resources = state["cluster_queues"][0]["status"]["flavorsReservation"][0]["resources"]
    resources[0]["total"] = "3"


def miscount_local(state: State) -> None:
    state["local_queues"][0]["status"]["admittedWorkloads"] = 0


def give_more(state: State) -> None:
    for each in state["cluster_queues"]:
        for resource in each["spec"]["resourceGroups"][0]["flavors"][0]["resources"]:
            resource["nominalQuota"] = 9


def prefer_what_waits(state: State) -> None:
    """Of its own queue's one CPU, which one that matters less has, beside a borrowed one."""
    state["workloads"][2]["spec"]["priority"] = 9


def take_back(state: State) -> None:
    """What waits in the queue that lends, asks for its own."""
    state["workloads"][3]["spec"]["podSets"] = [pod_set()]


def suspend_nothing(state: State) -> None:
    state["jobs"][2]["spec"]["suspend"] = False


def run_what_waits(state: State) -> None:
    state["pods"].append({**pod("early", "three"), "spec": {"containers": []}})


def end_pod(state: State) -> None:
    del state["pods"][0]


def be_short(state: State) -> None:
    template = state["jobs"][0]["spec"]["template"]
    template["metadata"]["annotations"] = {RUN_FOR: "200ms"}


def complete(state: State) -> None:
    state["jobs"][0]["status"] = {"conditions": conditions("Complete")}


SPOILED: Final[dict[str, tuple[Callable[[State], None], str]]] = {
    "a job whose Workload is lost": (take_workload, "queued job default/three has 0 Workloads"),
    "a job with two": (copy_workload, "queued job default/three has 2 Workloads"),
    "a pod without one": (take_workload_of_pod, "queued pod default/held has 0 Workloads"),
    "a group without one": (take_workload_of_group, "queued pod default/held has 0 Workloads"),
    "a Workload without an owner": (
        take_job,
        "Workload default/workload-of-three is left of what is gone",
    ),
    "a Workload that does not go": (
        delete_workload,
        "Workload default/workload-of-three is deleted and stays",
    ),
    "quota of what is evicted": (
        evict,
        "Workload default/workload-of-one is evicted and keeps its quota",
    ),
    "quota without admission": (
        admit_by_half,
        "Workload default/workload-of-one has quota and is not admitted",
    ),
    "devices that are not charged": (
        charge_too_little,
        f"Workload default/workload-of-one is charged 1 cpu for 1 cpu, 1 {GPUS}",
    ),
    "admitted without room": (
        keep_no_room,
        "Workload default/workload-of-one is admitted without room",
    ),
    "room on a node that is gone": (
        take_node,
        "Workload default/workload-of-one has room on node node, which is gone",
    ),
    "more than there is": (
        leave_cohort,
        "ClusterQueue a uses 2 of standard/cpu, and has 1",
    ),
    "a queue that counts those that wait wrongly": (
        miscount_pending,
        "ClusterQueue b shows 2 pendingWorkloads, and there are 1",
    ),
    "a queue that counts quota wrongly": (
        miscount_usage,
        "ClusterQueue a shows 3 flavorsReservation of standard/cpu, and 2 are held",
    ),
    "a local queue that counts wrongly": (
        miscount_local,
        "LocalQueue default/a shows 0 admittedWorkloads, and there are 2",
    ),
    "one that waits while there is quota": (
        give_more,
        "Workload default/workload-of-three waits, and there is quota for it: nobody says why",
    ),
    "one that waits for those that matter less": (
        prefer_what_waits,
        "Workload default/workload-of-three waits for what is lent or matters less: nobody says why",
    ),
    "one that waits for what its queue has lent": (
        take_back,
        "Workload default/workload-of-held waits for what is lent or matters less: nobody says why",
    ),
    "a job that may run and must not": (
        suspend_nothing,
        "queued job default/three is not suspended, and no Workload of it is admitted",
    ),
    "pods of a job that must not run": (
        run_what_waits,
        "queued job default/three has 1 pods, and no Workload of it is admitted",
    ),
    "a job that lacks pods": (end_pod, "queued job default/one is admitted and has 0 of 1 pods"),
    "a job that should have ended": (be_short, "queued job default/one is admitted and not complete"),
    "a job that has ended and holds quota": (
        complete,
        "queued job default/one is complete, and its Workload is not finished",
    ),
}  # fmt: skip


def test_a_good_state_passes() -> None:
    """Nothing is found where two rightly wait."""
    now = snapshot(good())
    assert (broken_promises(now), unsettled(now)) == ([], [])


def test_a_job_that_is_complete_needs_no_workload() -> None:
    """Whoever deletes it is not given another one."""
    state = good()
    state["jobs"][2]["status"] = {"conditions": conditions("Complete")}
    del state["workloads"][2]
    for shown in (state["cluster_queues"][0], state["local_queues"][0]):
        shown["status"]["pendingWorkloads"] = 0
    assert unsettled(snapshot(state)) == []


@pytest.mark.parametrize(("spoil", "finding"), SPOILED.values(), ids=SPOILED)
def test_spoiled_states_are_found(spoil: Callable[[State], None], finding: str) -> None:
    """What is wrong is named."""
    state = good()
    spoil(state)
    assert finding in unsettled(snapshot(state))


def test_pods_that_run_without_admission_are_found() -> None:
    """At any moment, of jobs and of pods with a gate of their own."""
    state = good()
    state["workloads"][0]["status"] = {}
    state["pods"][2]["spec"] = {"nodeName": "node", "containers": []}
    assert broken_promises(snapshot(state)) == [
        "pod default/pod-of-one has a node, and no Workload of it is admitted",
        "pod default/held has a node, and no Workload of it is admitted",
    ]


# --- What a tree allows ---------------------------------------------------------------------------

CPU: Final = ("standard", "cpu")


def cohort(name: str, cpu: int, parent: str = "", **limits: int) -> Object:
    made = queue(name, cpu, "", **limits)
    made["spec"]["parentName"] = parent
    return made


TREES: Final = {
    "its own": ([queue("a", 2, "")], [], {"a": 2}, []),
    "more than its own": ([queue("a", 2, "")], [], {"a": 3}, ["ClusterQueue a uses 3 of standard/cpu, and has 2"]),
    "borrowed": ([queue("a", 2), queue("b", 2)], [], {"a": 4}, []),
    "more than the cohort has": (
        [queue("a", 2), queue("b", 2)], [], {"a": 3, "b": 2}, ["Cohort all uses 5 of standard/cpu, and has 4"],
    ),
    "more than may be borrowed": (
        [queue("a", 2, borrowingLimit=1), queue("b", 2)], [], {"a": 4},
        ["ClusterQueue a uses 4 of standard/cpu, and has 2 and 1 borrowed"],
    ),
    "what is lent": ([queue("a", 2), queue("b", 2, lendingLimit=1)], [], {"a": 3, "b": 1}, []),
    "more than is lent": (
        [queue("a", 2), queue("b", 2, lendingLimit=1)], [], {"a": 4}, ["Cohort all uses 4 of standard/cpu, and has 3"],
    ),
    "what a cohort has itself": ([queue("a", 2)], [cohort("all", 1)], {"a": 3}, []),
    "of a cohort beside it": (
        [queue("a", 1, "left"), queue("b", 2, "right")],
        [cohort("left", 0, "top"), cohort("right", 0, "top")], {"a": 3}, [],
    ),
    "more than a cohort may borrow": (
        [queue("a", 1, "left"), queue("b", 2, "right")],
        [cohort("left", 0, "top", borrowingLimit=1), cohort("right", 0, "top")], {"a": 3},
        ["Cohort left uses 3 of standard/cpu, and has 1 and 1 borrowed"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("queues", "cohorts", "used", "finding"), TREES.values(), ids=TREES)
def test_what_a_tree_allows(
    queues: list[Object], cohorts: list[Object], used: dict[str, int], finding: list[str]
) -> None:
    """Quota, lent and borrowed over cohorts within cohorts, and what exceeds it."""
    usage = {name: {CPU: Fraction(number)} for name, number in used.items()}
    assert list(Tree.of(queues, cohorts).exceeded(usage)) == finding


# --- Who gets quota -------------------------------------------------------------------------------


class Revisions:
    """A cluster of which each revision is judged."""

    def __init__(self) -> None:
        self.watch = QuotaWatch()
        self.queue = queue("a", 1, "")
        self.workloads: list[Object] = []
        self.watch.start_over([], [self.queue], [])
        self._revision = 1

    def pass_revisions(self, number: int = 1) -> Iterator[str]:
        self._revision += number
        return self.watch.judge(self._revision, list(self.workloads), [self.queue], [])

    def set_spec(self, **spec: Any) -> None:
        self.queue = {**self.queue, "spec": {**self.queue["spec"], **spec}}
        assert not list(self.pass_revisions())

    def admit(self, name: str) -> list[str]:
        self.workloads.append(admitted(workload(name, "a"), "a"))
        return list(self.pass_revisions())


NOTHING: Final = queue("a", 0, "")["spec"]["resourceGroups"]


def test_quota_beyond_what_there_is_is_found() -> None:
    """Whoever gets it is named."""
    now = Revisions()
    assert now.admit("one") == []
    assert now.admit("two") == [
        "default/workload-of-two got quota, and ClusterQueue a uses 2 of standard/cpu, and has 1"
    ]
    assert now.watch.gains == 2


def test_who_has_quota_keeps_it_when_there_is_less() -> None:
    """It is not given then, so nothing is wrong."""
    now = Revisions()
    now.admit("one")
    now.set_spec(resourceGroups=NOTHING)
    assert list(now.pass_revisions(2 * HEARING)) == []


def test_who_gets_quota_answers_for_no_other() -> None:
    """That another queue has less than is used of it is not the doing of who gets none of that."""
    watch, full, less = QuotaWatch(), queue("a", 1, ""), queue("a", 0, "")
    first, second = admitted(workload("one", "a"), "a"), admitted(workload("two", "b"), "b")
    watch.start_over([first], [full, queue("b", 1, "")], [])
    assert not list(watch.judge(1, [first], [less, queue("b", 1, "")], []))
    assert not list(watch.judge(2 + HEARING, [first, second], [less, queue("b", 1, "")], []))


@pytest.mark.parametrize(
    ("spec", "finding"),
    [
        (
            {"resourceGroups": NOTHING},
            "default/workload-of-one got quota, and ClusterQueue a uses 1 of standard/cpu, and has 0",
        ),
        ({"stopPolicy": "Hold"}, "default/workload-of-one got quota of a, which is stopped or gone"),
    ],
)  # fmt: skip
def test_changes_are_heard_of(spec: Object, finding: str) -> None:
    """Right after a change it may be unknown, and later not."""
    now = Revisions()
    now.set_spec(**spec)
    assert now.admit("one") == []
    now = Revisions()
    now.set_spec(**spec)
    assert not list(now.pass_revisions(HEARING))
    assert now.admit("one") == [finding]


def test_more_for_who_has_some_is_judged_too() -> None:
    """A Workload that grows gets quota as a new one does."""
    now = Revisions()
    now.admit("one")
    now.workloads = [admitted(workload("one", "a"), "a", cpu="2")]
    assert len(list(now.pass_revisions())) == 1


def test_evictions_are_counted() -> None:
    """Each once, by its reason."""
    now = Revisions()
    now.admit("one")
    evicted = {"type": "Evicted", "status": "True", "reason": "Preempted"}
    now.workloads[0]["status"]["conditions"].append(evicted)
    assert not [*now.pass_revisions(), *now.pass_revisions()]
    assert now.watch.evictions == {"Preempted": 1}


def test_ended_pods_give_back() -> None:
    """What they had is free for others."""
    now = Revisions()
    now.admit("one")
    now.workloads[0]["status"]["reclaimablePods"] = [{"name": "main", "count": 1}]
    assert now.admit("two") == []


def test_all_kinds_are_part_of_a_snapshot() -> None:
    """What is read can be judged."""
    assert good().keys() <= PATHS.keys()
