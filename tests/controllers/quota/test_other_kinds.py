"""Kinds that come with definitions of their own, in queues: a set of Jobs, as its own controller would see it."""

from __future__ import annotations

import asyncio
from typing import Any

from controllers.quota.waiting_room import QUEUE, Room, admitted, has, job, waiting, waiting_room
from controllers.workloads.stage import NAMESPACE
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import JOBS, JsonObject, generic
from drayman.controllers.quota.book import Known
from patience import PATIENCE_S

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


async def resumed(room: Room, name: str, found: Known) -> JsonObject:
    """A set of Jobs, once it is not suspended any more."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            made = await room.place.client.get(JOB_SETS, name, NAMESPACE)
            if not made["spec"]["suspend"]:
                return made
            await room.touch(found)
            await asyncio.sleep(0)  # requests within the process take no break themselves


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
        started = await resumed(room, "small", found)
        labels = started["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["metadata"][
            "labels"
        ]
        assert labels["kueue.x-k8s.io/podset"] == "workers"
        change = merge_patch({"status": {"conditions": [ended]}})
        await client.patch(JOB_SETS, "small", change, NAMESPACE, subresource="status")
        await room.workload(has("Finished", "True", "Succeeded"), "small")


async def test_a_deleted_set_keeps_its_quota_until_the_pods_of_its_jobs_have_ended() -> None:
    """The set and its Job are gone before the pod, which belongs to the set only through the Job."""
    async with waiting_room() as room:
        client = room.place.client
        await client.create(DEFINITIONS, DEFINITION)
        await room.restart()
        await room.queue(cpu=1)
        one = job_set("set", 0)
        one["spec"]["replicatedJobs"].pop()
        made = await client.create(JOB_SETS, one, NAMESPACE)
        found = await room.workload(admitted, "set")
        await resumed(room, "set", found)
        owner = {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "name": "set",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
        body = job("set-leader-0", queue="")
        body["metadata"]["ownerReferences"] = [owner]
        await client.create(JOBS.as_values(), body, NAMESPACE)
        (pod,) = await room.pods(1)
        await client.bind(pod.metadata.name, NAMESPACE, "somewhere")
        await client.delete(
            JOB_SETS, "set", NAMESPACE, options=DeleteOptions(propagation="Background")
        )
        await room.pods(0)
        await room.job("next")
        await room.workload(waiting("WaitingForQuota"), "next")
        assert (await room.workload(lambda _: True, found.name)).is_leaving
        await room.place.set_phase(pod, "Succeeded")
        await room.workload(admitted, "next")
