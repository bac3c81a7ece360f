"""Workloads in queues, and what is to be said about each: one case for every reason that quota has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drayman.reasons.reason import Reason
from explain.hall import Hall, moment
from oracle.nodes import JsonObject


@dataclass(frozen=True, slots=True)
class Case:
    """A hall in which workload `w` waits, or not."""

    name: str
    """The story in one line."""
    hall: Callable[[], Hall]
    reason: Reason
    says: str
    """Words of the sentence."""
    remedies: tuple[str, ...] = ()
    """The beginnings of their sentences, in their order."""
    position: int | None = None


def one_queue() -> Hall:
    return Hall().flavor("f").queue("q", f=4)


def cohort_of_two() -> Hall:
    return Hall().flavor("f").queue("a", "all", f=4).queue("b", "all", f=4)


def strict() -> Hall:
    more = {"queueingStrategy": "StrictFIFO"}
    hall = Hall().flavor("f").queue("q", f=4, more=more).workload("runs", "q", 2, has="f")
    return hall.workload("large", "q", 3).workload("w", "q", 1)


def stopped(policy: str) -> Hall:
    return Hall().flavor("f").queue("q", f=4, more={"stopPolicy": policy}).workload("w", "q", 1)


def preempting() -> Hall:
    more = {"preemption": {"withinClusterQueue": "LowerPriority"}}
    hall = Hall().flavor("f").queue("q", f=4, more=more).workload("low", "q", 3, has="f")
    return hall.workload("w", "q", 3, priority=10)


def behind_a_preemptor() -> Hall:
    hall = preempting()
    hall.objects["queued_workloads"].pop()
    return hall.workload("first", "q", 3, priority=10).workload("w", "q", 1, priority=5)


def unknown_resource() -> Hall:
    """A workload that asks for memory in a queue of processors."""
    hall = one_queue().workload("w", "q", 1)
    spec = hall.objects["queued_workloads"][0]["spec"]["podSets"][0]["template"]["spec"]
    spec["containers"][0]["resources"]["requests"]["memory"] = "1Gi"
    return hall


def gpu_flavor() -> Hall:
    labels = {"nodeLabels": {"pool": "gpu"}}
    hall = Hall().flavor("f", **labels).queue("q", f=4).workload("w", "q", 1)
    spec = hall.objects["queued_workloads"][0]["spec"]["podSets"][0]["template"]["spec"]
    spec["nodeSelector"] = {"pool": "cpu"}
    return hall


def scattered() -> Hall:
    """Two racks with a cpu each, for two pods that have to be in one of them."""
    hall = Hall().flavor("f", nodeLabels={"pool": "x"}, topologyName="racks").queue("q", f=4)
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    hall.objects["kueue_topologies"] = [{"metadata": {"name": "racks"}, "spec": {"levels": levels}}]
    hall.objects["nodes"] = [
        {
            "metadata": {
                "name": name,
                "labels": {"pool": "x", "rack": name, "kubernetes.io/hostname": name},
            },
            "status": {
                "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for name in ("a", "b")
    ]
    hall.workload("w", "q", 1, count=2)
    pod_set = hall.objects["queued_workloads"][0]["spec"]["podSets"][0]
    pod_set["topologyRequest"] = {"required": "rack"}
    return hall


def small_node() -> Hall:
    """Quota for two cpu, and a node with one."""
    hall = one_queue().workload("w", "q", 2)
    ready = [{"type": "Ready", "status": "True"}]
    allocatable = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    status = {"allocatable": allocatable, "conditions": ready}
    hall.objects["nodes"] = [{"metadata": {"name": "n"}, "status": status}]
    return hall


def room_of_another() -> Hall:
    """A node with two cpu, and a workload of less importance that has one of them."""
    more = {"preemption": {"withinClusterQueue": "LowerPriority"}}
    hall = Hall().flavor("f").queue("q", f=4, more=more)
    hall.workload("low", "q", 1, has="f").workload("w", "q", 2, priority=1)
    ready = [{"type": "Ready", "status": "True"}]
    allocatable = {"cpu": "2", "memory": "1Gi", "pods": "10"}
    status = {"allocatable": allocatable, "conditions": ready}
    hall.objects["nodes"] = [{"metadata": {"name": "n"}, "status": status}]
    labels = {"kueue.x-k8s.io/pod-group-name": "low"}
    metadata = {"name": "low-0", "namespace": "default", "uid": "low-0", "labels": labels}
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    spec = {"nodeName": "n", "containers": [container]}
    hall.objects["pods"] = [{"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}]
    return hall


def lent_for_a_moment() -> Hall:
    """A queue that lends what it does not use, and takes it back: its second workload comes when its quota has been lent to `w`."""
    more = {"preemption": {"reclaimWithinCohort": "Any"}}
    hall = Hall().flavor("f").queue("a", "all", f=4, more=more).queue("b", "all", f=0)
    return hall.workload("h0", "a", 1).workload("h1", "a", 3).workload("w", "b", 3)


def device_of_another() -> Hall:
    """A topology with one node and one device, which a job of less importance uses."""
    quotas = [{"name": name, "nominalQuota": 1} for name in ("cpu", "gpus")]
    flavor = {"name": "f", "resources": quotas}
    more = {
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu", "gpus"], "flavors": [flavor]}],
    }
    hall = Hall().flavor("f", nodeLabels={"pool": "x"}, topologyName="hosts").queue("q", more=more)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "low", "uid": "job-low"}
    hall.workload("low", "q", 1, has="f", owner={**owner, "controller": True}, runs="2h")
    hall.workload("w", "q", 1, priority=10)
    hall.objects |= _one_device()
    for workload in hall.objects["queued_workloads"]:
        spec = workload["spec"]["podSets"][0]["template"]["spec"]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    low = hall.objects["queued_workloads"][0]
    (assigned,) = low["status"]["admission"]["podSetAssignments"]
    assigned["flavors"]["gpus"], assigned["resourceUsage"]["gpus"] = "f", "1"
    assigned["topologyAssignment"] = {
        "levels": ["kubernetes.io/hostname"],
        "domains": [{"values": ["n"], "count": 1}],
    }
    hall.configuration = {
        "resources": {"deviceClassMappings": [{"name": "gpus", "deviceClassNames": ["gpu"]}]}
    }
    return hall


def _one_device() -> dict[str, list[JsonObject]]:
    """A node in a topology, with a device and a pod of a job that has it."""
    hostname = "kubernetes.io/hostname"
    node = {
        "metadata": {"name": "n", "labels": {"pool": "x", hostname: "n"}},
        "status": {
            "allocatable": {"cpu": "8", "memory": "1Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    slice_ = {"driver": "d", "nodeName": "n", "pool": pool, "devices": [{"name": "gpu-0"}]}
    one = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    request = {"name": "r", "exactly": one}
    asked = {"devices": {"requests": [request]}}
    result = {"request": "r", "driver": "d", "pool": "n", "device": "gpu-0"}
    user = {"resource": "pods", "name": "low-0", "uid": "low-0"}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
    of_pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "low-0",
        "uid": "low-0",
        "controller": True,
    }
    of_job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "low",
        "uid": "job-low",
        "controller": True,
    }
    resources = {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}
    pod = {
        "metadata": {
            "name": "low-0",
            "namespace": "default",
            "uid": "low-0",
            "labels": {"kueue.x-k8s.io/podset": "main"},
            "annotations": {"drayman.dev/runtime": "2h"},
            "ownerReferences": [of_job],
        },
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "resources": resources}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        },
        "status": {
            "phase": "Running",
            "startTime": moment(-3600),
            "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "low-0-gpu"}],
        },
    }
    claim = {"name": "low-0-gpu", "namespace": "default", "uid": "low-0-gpu"}
    levels = {"levels": [{"nodeLabel": hostname}]}
    return {
        "nodes": [node],
        "kueue_topologies": [{"metadata": {"name": "hosts"}, "spec": levels}],
        "slices": [{"metadata": {"name": "n"}, "spec": slice_}],
        "classes": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "templates": [
            {"metadata": {"name": "gpu", "namespace": "default"}, "spec": {"spec": asked}}
        ],
        "claims": [
            {"metadata": {**claim, "ownerReferences": [of_pod]}, "spec": asked, "status": status}
        ],
        "pods": [pod],
    }


def preempting_in_vain() -> Hall:
    """Quota would be free if a workload of less importance went, but the only node is too small."""
    hall = preempting()
    ready = [{"type": "Ready", "status": "True"}]
    allocatable = {"cpu": "2", "memory": "1Gi", "pods": "10"}
    status = {"allocatable": allocatable, "conditions": ready}
    hall.objects["nodes"] = [{"metadata": {"name": "n"}, "status": status}]
    return hall


def with_condition(type_: str, **more: object) -> Hall:
    hall = one_queue().workload("w", "q", 1, has="f", admitted=False)
    status = hall.objects["queued_workloads"][0]["status"]
    status["conditions"].append(
        {"type": type_, "status": "True", "lastTransitionTime": moment(0), **more}
    )
    return hall


def with_check(*checks: JsonObject) -> Hall:
    """A queue with the check `budget`, and the checks that there are."""
    more = {"admissionChecksStrategy": {"admissionChecks": [{"name": "budget"}]}}
    hall = Hall().flavor("f").queue("q", f=4, more=more).workload("w", "q", 2)
    hall.objects["admission_checks"] = list(checks)
    return hall


def check(name: str, *, active: bool, controller: str = "example.com/budget") -> JsonObject:
    condition = {"type": "Active", "status": str(active), "reason": "x", "message": ""}
    return {
        "metadata": {"name": name},
        "spec": {"controllerName": controller},
        "status": {"conditions": [condition]},
    }


def sent_elsewhere() -> Hall:
    """A queue whose workloads run in other clusters, and a node that is too small."""
    hall = with_check(check("budget", active=True, controller="kueue.x-k8s.io/multikueue"))
    hall.objects["nodes"] = small_node().objects["nodes"]
    return hall


def checked() -> Hall:
    hall = one_queue().workload("w", "q", 1, has="f", admitted=False)
    checks = [{"name": "provisioning", "state": "Pending"}, {"name": "budget", "state": "Ready"}]
    hall.objects["queued_workloads"][0]["status"]["admissionChecks"] = checks
    return hall


def backing_off() -> Hall:
    status = {"requeueState": {"count": 1, "requeueAt": moment(300)}}
    return one_queue().workload("w", "q", 1, status=status)


def unpriced() -> Hall:
    hall = one_queue().workload("w", "q", 1)
    spec = hall.objects["queued_workloads"][0]["spec"]["podSets"][0]["template"]["spec"]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "none"}]
    return hall


CASES = (
    Case(
        "quota is free",
        lambda: one_queue().workload("w", "q", 4),
        Reason.FITS,
        "ClusterQueue q has quota for it",
        position=1,
    ),
    Case(
        "it is admitted",
        lambda: one_queue().workload("w", "q", 4, has="f"),
        Reason.RUNS,
        "it has quota of ClusterQueue q, of flavor f",
    ),
    Case(
        "another holds too much of the queue",
        lambda: one_queue().workload("other", "q", 3, has="f").workload("w", "q", 2),
        Reason.QUOTA_IN_USE,
        "of flavor f 2 cpu wanted, 1 free",
        (
            "Wait until workload default/other has ended",
            "Raise the quota of ClusterQueue q in flavor f by 1 cpu",
        ),
        position=1,
    ),
    Case(
        "two have to end",
        lambda: (
            one_queue()
            .workload("x", "q", 2, has="f")
            .workload("y", "q", 2, has="f")
            .workload("w", "q", 4)
        ),
        Reason.QUOTA_IN_USE,
        "4 cpu wanted, 0 free",
        ("Wait until workloads default/x and default/y have ended", "Raise the quota"),
        position=1,
    ),
    Case(
        "another queue has borrowed it",
        lambda: cohort_of_two().workload("guest", "b", 8, has="f").workload("w", "a", 1),
        Reason.QUOTA_IN_USE,
        "ClusterQueue a has too little unused quota: of flavor f 1 cpu wanted, 0 free",
        (
            "Wait until workload default/guest has ended",
            "Raise the quota of ClusterQueue a in flavor f by 1 cpu",
        ),
        position=1,
    ),
    Case(
        "the borrowing limit is in the way",
        lambda: (
            Hall()
            .flavor("f")
            .queue("a", "all", f={"nominal": 2, "borrow": 1})
            .queue("b", "all", f=8)
            .workload("mine", "a", 1, has="f")
            .workload("w", "a", 3)
        ),
        Reason.QUOTA_IN_USE,
        "3 cpu wanted, 2 free",
        (
            "Wait until workload default/mine has ended",
            "Raise the borrowing limit of ClusterQueue a in flavor f by 1 cpu",
            "Raise the quota of ClusterQueue a in flavor f by 1 cpu",
        ),
        position=1,
    ),
    Case(
        "more than the queue could ever give",
        lambda: cohort_of_two().workload("w", "a", 9),
        Reason.QUOTA_TOO_SMALL,
        "9 cpu wanted, at most 8 in flavor f",
        ("Raise the quota of ClusterQueue a in flavor f by 1 cpu",),
        position=1,
    ),
    Case(
        "quota was taken away from who has it",
        lambda: one_queue().workload("other", "q", 6, has="f").workload("w", "q", 2),
        Reason.QUOTA_IN_USE,
        "of flavor f 2 cpu wanted, 0 free",
        (
            "Wait until workload default/other has ended",
            "Raise the quota of ClusterQueue q in flavor f by 4 cpu",
        ),
        position=1,
    ),
    Case(
        "its queue has nothing of what it asks for",
        unknown_resource,
        Reason.FLAVOR_MISMATCH,
        "ClusterQueue q has no quota of memory, only of cpu.",
        position=1,
    ),
    Case(
        "the cohorts of its queue form a circle",
        lambda: (
            Hall()
            .flavor("f")
            .cohort("x", "y")
            .cohort("y", "x")
            .queue("q", "x", f=4)
            .workload("w", "q", 1)
        ),
        Reason.QUEUE_INACTIVE,
        "ClusterQueue q is inactive: its cohorts form a circle, beginning with x.",
        position=1,
    ),
    Case(
        "its pods cannot use the only flavor",
        gpu_flavor,
        Reason.FLAVOR_MISMATCH,
        "Flavor f doesn't match node selector pool=cpu",
        position=1,
    ),
    Case(
        "there is quota, and another one in its place",
        room_of_another,
        Reason.QUOTA_WITHOUT_ROOM,
        "To make room, workload default/low would be preempted.",
        position=1,
    ),
    Case(
        "a less important one gives up its quota and its device",
        device_of_another,
        Reason.QUOTA_PREEMPTING,
        "workload default/low gives it up",
        ("Wait until workload default/low has ended",),
        position=1,
    ),
    Case(
        "another could go for its quota, and there is no node for its pod",
        preempting_in_vain,
        Reason.QUOTA_IN_USE,
        "3 cpu wanted, 1 free; others could be preempted for quota, but there would be no room",
        (
            "Wait until workload default/low has ended",
            "Raise the quota of ClusterQueue q in flavor f by 2 cpu",
        ),
        position=1,
    ),
    Case(
        "there is quota, and no node for its pod",
        small_node,
        Reason.QUOTA_WITHOUT_ROOM,
        "ClusterQueue q has quota for it, but there is no room for all of its pods",
        position=1,
    ),
    Case(
        "no rack holds all of its pods",
        scattered,
        Reason.QUOTA_SCATTERED,
        "allows to fit only 1 out of 2 pods",
        position=1,
    ),
    Case(
        "the first of a strict queue gets no quota",
        strict,
        Reason.BEHIND_IN_QUEUE,
        "nothing starts before workload default/large",
        (
            "Deactivate workload default/large",
            "Raise the priority of the workload from 0 to 1",
        ),
        position=2,
    ),
    Case(
        "others come first for which quota is made free",
        behind_a_preemptor,
        Reason.BEHIND_IN_QUEUE,
        "workload default/first comes first",
        ("Raise the priority of the workload from 5 to 11",),
        position=2,
    ),
    Case(
        "it gets quota that its owner takes back at once",
        lent_for_a_moment,
        Reason.BEHIND_IN_QUEUE,
        "be preempted for workload default/h1 at once",
        ("Raise the quota of ClusterQueue b in flavor f by 3 cpu",),
        position=1,
    ),
    Case(
        "a less important one gives up its quota",
        preempting,
        Reason.QUOTA_PREEMPTING,
        "workload default/low gives it up",
        (
            "Wait until workload default/low has ended",
            "Raise the quota of ClusterQueue q in flavor f by 2 cpu",
        ),
        position=1,
    ),
    Case(
        "the cluster queue is stopped",
        lambda: stopped("Hold"),
        Reason.QUEUE_INACTIVE,
        "ClusterQueue q is inactive: it is stopped (stopPolicy Hold)",
        ("Let ClusterQueue q go on",),
        position=1,
    ),
    Case(
        "the local queue is stopped",
        lambda: (
            Hall()
            .flavor("f")
            .queue("q", f=4, local=False)
            .local("lq-q", "q", stopPolicy="Hold")
            .workload("w", "q", 1)
        ),
        Reason.QUEUE_INACTIVE,
        "LocalQueue lq-q is inactive",
        ("Let LocalQueue lq-q go on",),
    ),
    Case(
        "a flavor of the queue does not exist",
        lambda: Hall().queue("q", f=4).workload("w", "q", 1),
        Reason.QUEUE_INACTIVE,
        "there is no ResourceFlavor f",
        position=1,
    ),
    Case(
        "an admission check of the queue does not exist",
        lambda: with_check(check("other", active=True)),
        Reason.QUEUE_INACTIVE,
        "there is no AdmissionCheck budget",
        position=1,
    ),
    Case(
        "an admission check of the queue is not active",
        lambda: with_check(check("budget", active=False)),
        Reason.QUEUE_INACTIVE,
        "AdmissionCheck budget is not active",
        position=1,
    ),
    Case(
        "the admission check of the queue is active",
        lambda: with_check(check("budget", active=True)),
        Reason.FITS,
        "ClusterQueue q has quota for it",
        position=1,
    ),
    Case(
        "it runs in another cluster, and there is no room in this one",
        sent_elsewhere,
        Reason.FITS,
        "ClusterQueue q has quota for it",
        position=1,
    ),
    Case(
        "the local queue is misspelt",
        lambda: one_queue().workload("w", "lq-p", 1),
        Reason.QUEUE_MISSING,
        "There is no LocalQueue lq-p in namespace default; did you mean lq-q?",
    ),
    Case(
        "the local queue leads nowhere",
        lambda: Hall().local("lq-q", "none").workload("w", "lq-q", 1),
        Reason.QUEUE_MISSING,
        "ClusterQueue none doesn't exist",
    ),
    Case(
        "the queue does not serve the namespace",
        lambda: (
            Hall()
            .flavor("f")
            .queue("q", f=4, more={"namespaceSelector": {"matchLabels": {"team": "x"}}})
            .workload("w", "q", 1)
        ),
        Reason.QUEUE_MISSING,
        "Workload namespace doesn't match ClusterQueue selector",
        position=1,
    ),
    Case(
        "it is deactivated",
        lambda: one_queue().workload("w", "q", 1, active=False),
        Reason.WORKLOAD_INACTIVE,
        "it waits when spec.active is set to true",
        ("Activate the workload",),
    ),
    Case(
        "it was evicted and has to wait for some time",
        backing_off,
        Reason.QUOTA_BACK_OFF,
        "not tried again before",
        position=1,
    ),
    Case(
        "it has quota and waits for a check",
        checked,
        Reason.CHECKS_PENDING,
        "waits for admission checks: provisioning (Pending)",
    ),
    Case(
        "it has been told to give up its quota",
        lambda: with_condition("Evicted", reason="Preempted", message="Preempted for another."),
        Reason.QUOTA_EVICTED,
        "told to give up its quota (Preempted): Preempted for another.",
    ),
    Case(
        "what it asks for has no price",
        unpriced,
        Reason.NO_PRICE,
        "there is no ResourceClaimTemplate none in namespace default",
    ),
)
