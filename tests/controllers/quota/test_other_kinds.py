"""Kinds that come with definitions of their own, in queues: a set of Jobs, as its own controller would see it."""

from __future__ import annotations

from typing import Any

from controllers.quota.waiting_room import QUEUE, admitted, has, job, waiting, waiting_room
from controllers.workloads.stage import NAMESPACE
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import generic

DEFINITIONS = generic(
    "apiextensions.k8s.io/v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
JOB_SETS = generic("jobset.x-k8s.io/v1alpha2", "jobsets", "JobSet")
DEFINITION = {
    "metadata": {
        "name": "jobsets.jobset.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/jobset"},
    },
    "spec": {
        "group": "jobset.x-k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "JobSet", "plural": "jobsets", "singular": "jobset"},
        "versions": [
            {
                "name": "v1alpha2",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def job_set(name: str, workers: int) -> dict[str, Any]:
    template = {"spec": job("x")["spec"]}
    jobs = [
        {"name": "leader", "replicas": 1, "template": template},
        {"name": "workers", "replicas": workers, "template": template},
    ]
    return {
        "metadata": {"name": name, "labels": {QUEUE: "q"}},
        "spec": {"replicatedJobs": jobs},
    }


async def test_a_set_of_jobs_is_suspended_started_and_finished() -> None:
    """Its pod sets are admitted together; the definition may come after the cluster has started."""
    async with waiting_room() as room:
        client = room.place.client
        await client.create(DEFINITIONS, DEFINITION)
        await room.restart()
        await room.queue(cpu=3)
        await client.create(JOB_SETS, job_set("small", 2), NAMESPACE)
        await client.create(JOB_SETS, job_set("large", 5), NAMESPACE)
        await room.workload(waiting("ExceedsMaxQuota"), "large")
        assert (await client.get(JOB_SETS, "large", NAMESPACE))["spec"]["suspend"] is True
        found = await room.workload(admitted, "small")
        counts = {each.name: each.count for each in found.spec.pod_sets}
        assert counts == {"leader": 1, "workers": 2}
        ended = {"type": "Completed", "status": "True", "reason": "Done", "message": "all done"}
        while (await client.get(JOB_SETS, "small", NAMESPACE))["spec"]["suspend"]:
            await room.touch(found)
        started = await client.get(JOB_SETS, "small", NAMESPACE)
        labels = started["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["metadata"][
            "labels"
        ]
        assert labels["kueue.x-k8s.io/podset"] == "workers"
        change = merge_patch({"status": {"conditions": [ended]}})
        await client.patch(JOB_SETS, "small", change, NAMESPACE, subresource="status")
        await room.workload(has("Finished", "True", "Succeeded"), "small")
