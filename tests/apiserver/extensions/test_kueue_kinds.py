"""Kueue's kinds beyond their definitions: the versions and what is refused, each with the field."""

from __future__ import annotations

from copy import deepcopy

import pytest

from drayman.apiserver.instance.first_objects import create_builtin_definitions

MERGE = "application/merge-patch+json"
GROUP = "/apis/kueue.x-k8s.io"


def kueue(kind, spec, name="x", version="v1beta2", **rest):
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
        **rest,
    }


def quota(resource="cpu", flavor="f", **amounts):
    amounts = {"nominalQuota": "1", **amounts}
    return {
        "coveredResources": [resource],
        "flavors": [{"name": flavor, "resources": [{"name": resource, **amounts}]}],
    }


def queue(*groups, **spec):
    return kueue("ClusterQueue", {"resourceGroups": list(groups), **spec})


def template(**metadata):
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def workload(*pod_sets, **spec):
    return kueue("Workload", {"podSets": list(pod_sets), **spec})


PATHS = {
    "ResourceFlavor": "resourceflavors",
    "ClusterQueue": "clusterqueues",
    "Cohort": "cohorts",
    "LocalQueue": "namespaces/default/localqueues",
    "Workload": "namespaces/default/workloads",
    "AdmissionCheck": "admissionchecks",
    "Topology": "topologies",
    "MultiKueueCluster": "multikueueclusters",
    "MultiKueueConfig": "multikueueconfigs",
    "ProvisioningRequestConfig": "provisioningrequestconfigs",
}


def path_of(obj):
    version = obj["apiVersion"].rpartition("/")[2]
    return f"{GROUP}/{version}/{PATHS[obj['kind']]}"


FIRST = "spec.resourceGroups[0].flavors[0]"
REFUSED = {
    "a negative quota": (queue(quota(nominalQuota="-1")), f"{FIRST}.resources[0].nominalQuota"),
    "a quota that is no quantity": (
        queue(quota(nominalQuota="lots")),
        f"{FIRST}.resources[0].nominalQuota",
    ),
    "a quota beyond 64 bits": (
        queue(quota("example.com/gpu", nominalQuota="9223372036854775808")),
        f"{FIRST}.resources[0].nominalQuota",
    ),
    "CPUs beyond 64 bits in thousandths": (
        queue(quota(nominalQuota="10P")),
        f"{FIRST}.resources[0].nominalQuota",
    ),
    "a borrowing limit without a cohort": (
        queue(quota(borrowingLimit="1")),
        f"{FIRST}.resources[0].borrowingLimit",
    ),
    "a lending limit without a cohort": (
        queue(quota(lendingLimit="1")),
        f"{FIRST}.resources[0].lendingLimit",
    ),
    "a queue that lends more than it has": (
        queue(quota(lendingLimit="2"), cohortName="all"),
        f"{FIRST}.resources[0].lendingLimit",
    ),
    "a flavor that lacks a covered resource": (
        queue({**quota(), "coveredResources": ["cpu", "memory"]}),
        f"{FIRST}.resources",
    ),
    "resources of a flavor in another order": (
        queue({**quota("memory"), "coveredResources": ["cpu"]}),
        f"{FIRST}.resources[0].name",
    ),
    "a resource in two groups": (
        queue(quota(), quota(flavor="g")),
        "spec.resourceGroups[1].coveredResources[0]",
    ),
    "a flavor in two groups": (
        queue(quota(), quota("memory")),
        "spec.resourceGroups[1].flavors[0].name",
    ),
    "a word that the strategy does not have": (
        queue(quota(), queueingStrategy="LIFO"),
        "spec.queueingStrategy",
    ),
    "a word that the stop policy does not have": (queue(stopPolicy="Halt"), "spec.stopPolicy"),
    "borrowing by preemption without reclaiming": (
        queue(preemption={"borrowWithinCohort": {"policy": "LowerPriority"}}),
        "spec.preemption",
    ),
    "a preference while the search may stop": (
        queue(flavorFungibility={"preference": "PreemptionOverBorrowing"}),
        "spec.flavorFungibility",
    ),
    "a negative weight": (queue(fairSharing={"weight": "-1"}), "spec.fairSharing.weight"),
    "a weight too small to divide by": (
        queue(fairSharing={"weight": "1n"}),
        "spec.fairSharing.weight",
    ),
    "a selector of namespaces that makes no sense": (
        queue(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]}),
        "spec.namespaceSelector.matchExpressions[0].operator",
    ),
    "a check for a flavor that the queue does not have": (
        queue(quota(), admissionChecksStrategy={"admissionChecks": [{"name": "c", "onFlavors": ["g"]}]}),
        "spec.admissionChecksStrategy.admissionChecks[0].onFlavors[0]",
    ),
    "the former name of the cohort": (queue(cohort="all"), "spec.cohort"),
    "limits of a cohort without a parent": (
        kueue("Cohort", {"resourceGroups": [quota(borrowingLimit="1")]}),
        f"{FIRST}.resources[0].borrowingLimit",
    ),
    "a flavor with a topology and no label": (
        kueue("ResourceFlavor", {"topologyName": "t"}),
        "spec",
    ),
    "a label that is none": (
        kueue("ResourceFlavor", {"nodeLabels": {"a b": "c"}}),
        "spec.nodeLabels",
    ),
    "a taint twice": (
        kueue("ResourceFlavor", {"nodeTaints": [{"key": "a", "effect": "NoSchedule"}] * 2}),
        "spec.nodeTaints[1]",
    ),
    "a toleration of everything that names a value": (
        kueue("ResourceFlavor", {"tolerations": [{"value": "v", "operator": "Equal"}]}),
        "spec.tolerations[0].operator",
    ),
    "no pod sets": (workload(), "spec.podSets"),
    "a smallest count above the count": (
        workload({"template": template(), "count": 2, "minCount": 3}),
        "spec.podSets[0]",
    ),
    "smallest counts of two pod sets": (
        workload(
            {"name": "a", "template": template(), "count": 2, "minCount": 1},
            {"name": "b", "template": template(), "count": 2, "minCount": 1},
        ),
        "spec.podSets",
    ),
    "a template with a name": (
        workload({"template": template(name="n")}),
        "spec.podSets[0].template.metadata.name",
    ),
    "a cluster without a source": (kueue("MultiKueueCluster", {}), "spec.clusterSource"),
    "a cluster with two sources": (
        kueue(
            "MultiKueueCluster",
            {"clusterSource": {"kubeConfig": {"location": "a"}, "clusterProfileRef": {"name": "b"}}},
        ),
        "spec.clusterSource",
    ),
    "no clusters": (kueue("MultiKueueConfig", {"clusters": []}), "spec.clusters"),
    "the host above another level": (
        kueue("Topology", {"levels": [{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "a"}]}),
        "spec.levels",
    ),
}  # fmt: skip


def test_what_is_refused_names_its_field(play):
    """As Kueue's definitions and webhooks refuse it."""

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        for case, (body, field) in REFUSED.items():
            refused = await api("POST", path_of(body), body)
            assert refused.status == 422, (case, refused.body)
            assert field in {path for path, _ in refused.causes}, (case, refused.causes)

    play(scenario)


OLD_AND_NEW = {
    "a cohort, checks and the policy of a queue": (
        kueue(
            "ClusterQueue",
            {
                "cohort": "all",
                "admissionChecks": ["a", "b"],
                "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
            },
            version="v1beta1",
        ),
        {
            "cohortName": "all",
            "admissionChecksStrategy": {"admissionChecks": [{"name": "a"}, {"name": "b"}]},
            "flavorFungibility": {
                "whenCanBorrow": "MayStopSearch",
                "whenCanPreempt": "MayStopSearch",
            },
        },
        {
            "cohort": "all",
            "admissionChecksStrategy": {"admissionChecks": [{"name": "a"}, {"name": "b"}]},
            "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
        },
    ),
    "the parent of a cohort": (
        kueue("Cohort", {"parent": "root"}, version="v1beta1"),
        {"parentName": "root"},
        {"parentName": "root"},
    ),
    "the class of a workload": (
        kueue(
            "Workload",
            {
                "podSets": [{"template": template()}],
                "priorityClassName": "high",
                "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
            },
            version="v1beta1",
        ),
        {
            "priorityClassRef": {
                "group": "kueue.x-k8s.io",
                "kind": "WorkloadPriorityClass",
                "name": "high",
            }
        },
        {
            "priorityClassName": "high",
            "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
        },
    ),
    "how a cluster is reached": (
        kueue("MultiKueueCluster", {"kubeConfig": {"location": "secret"}}, version="v1beta1"),
        {"clusterSource": {"kubeConfig": {"location": "secret", "locationType": "Secret"}}},
        {"kubeConfig": {"location": "secret", "locationType": "Secret"}},
    ),
}


@pytest.mark.parametrize("case", OLD_AND_NEW)
def test_both_versions_say_the_same(play, case):
    """What is written in v1beta1 is shown in v1beta2 under its new names, and in v1beta1 as it was."""
    body, new, old = OLD_AND_NEW[case]

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        made = await api("POST", path_of(body), deepcopy(body))
        assert made.status == 201, made.body
        for version, wanted in (("v1beta2", new), ("v1beta1", old)):
            found = await api("GET", f"{GROUP}/{version}/{PATHS[body['kind']]}/x")
            spec = found.body["spec"]
            assert {name: spec.get(name) for name in wanted} == wanted
            former = (set(new) ^ set(old)) - set(wanted)
            assert not former & set(spec)

    play(scenario)


def test_an_update_in_the_old_version_keeps_the_status_of_the_new_one(play):
    """Assignments to domains, times and conditions are converted for reading, and come back unharmed."""
    body = workload({"template": template(), "count": 3})
    assignment = {
        "levels": ["block", "kubernetes.io/hostname"],
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [
                    {"universal": "b1"},
                    {"individual": {"prefix": "node-", "roots": ["1", "2"]}},
                ],
                "podCounts": {"individual": [1, 2]},
            }
        ],
    }
    status = {
        "admission": {
            "clusterQueue": "q",
            "podSetAssignments": [{"name": "main", "count": 3, "topologyAssignment": assignment}],
        },
        "accumulatedPastExecutionTimeSeconds": 7,
    }

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        await api("POST", path_of(body), deepcopy(body))
        path = f"{path_of(body)}/x"
        written = await api("PATCH", f"{path}/status", {"status": status}, MERGE)
        assert written.status == 200, written.body
        old = path.replace("v1beta2", "v1beta1")
        shown = (await api("GET", old)).body["status"]
        (one,) = shown["admission"]["podSetAssignments"]
        assert one["topologyAssignment"]["domains"] == [
            {"values": ["b1", "node-1"], "count": 1},
            {"values": ["b1", "node-2"], "count": 2},
        ]
        assert shown["accumulatedPastExexcutionTimeSeconds"] == 7
        changed = await api("PATCH", old, {"spec": {"active": False}}, MERGE)
        assert changed.status == 200, changed.body
        again = await api("PATCH", f"{old}/status", {"status": {"clusterName": "w"}}, MERGE)
        assert again.status == 200, again.body
        after = (await api("GET", path)).body
        assert after["spec"]["active"] is False
        assert after["status"]["accumulatedPastExecutionTimeSeconds"] == 7
        (one,) = after["status"]["admission"]["podSetAssignments"]
        (part,) = one["topologyAssignment"]["slices"]
        assert (part["domainCount"], part["podCounts"]) == (2, {"individual": [1, 2]})

    play(scenario)


def test_a_workload_with_quota_keeps_what_quota_was_reserved_for(play):
    """Pod sets and queue stay while quota is reserved, the queue that it is reserved in too, and pods that ended do not come back."""
    body = workload({"template": template(), "count": 3}, queueName="a")
    reserved = {
        "type": "QuotaReserved",
        "status": "True",
        "reason": "QuotaReserved",
        "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    status = {
        "conditions": [reserved],
        "admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "count": 3}]},
        "reclaimablePods": [{"name": "main", "count": 1}],
    }

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        await api("POST", path_of(body), deepcopy(body))
        path = f"{path_of(body)}/x"
        assert (await api("PATCH", path, {"spec": {"queueName": "b"}}, MERGE)).status == 200
        assert (await api("PATCH", f"{path}/status", {"status": status}, MERGE)).status == 200
        for change, field in (
            ({"spec": {"queueName": "a"}}, "spec.queueName"),
            ({"spec": {"podSets": [{"name": "main", "template": template(), "count": 2}]}}, "spec.podSets"),
        ):  # fmt: skip
            refused = await api("PATCH", path, change, MERGE)
            assert field in {where for where, _ in refused.causes}, refused.body
        for change, field in (
            ({"admission": {"clusterQueue": "p"}}, "status.admission.clusterQueue"),
            ({"reclaimablePods": [{"name": "main", "count": 0}]}, "status.reclaimablePods"),
            ({"reclaimablePods": [{"name": "other", "count": 1}]}, "status.reclaimablePods[0].name"),
        ):  # fmt: skip
            refused = await api("PATCH", f"{path}/status", {"status": change}, MERGE)
            assert field in {where for where, _ in refused.causes}, refused.body
        freed = {"conditions": [{**reserved, "status": "False"}], "admission": None}
        assert (await api("PATCH", f"{path}/status", {"status": freed}, MERGE)).status == 200
        assert (await api("PATCH", path, {"spec": {"queueName": "a"}}, MERGE)).status == 200

    play(scenario)


def test_levels_may_change_below_a_host(play):
    """A topology whose lowest level is the host, before and after."""
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    body = kueue("Topology", {"levels": levels})

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        await api("POST", path_of(body), deepcopy(body))
        path = f"{path_of(body)}/x"
        more = {"spec": {"levels": [{"nodeLabel": "block"}, *levels]}}
        assert (await api("PATCH", path, more, MERGE)).status == 200
        refused = await api("PATCH", path, {"spec": {"levels": levels[:1]}}, MERGE)
        assert refused.causes == {("spec.levels", "FieldValueInvalid")}

    play(scenario)
