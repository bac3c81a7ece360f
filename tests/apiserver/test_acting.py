"""Objects that nobody acts on are stored with a warning, where the part that would have to act runs here."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from drayman.apiserver.instance.first_objects import create_builtin_definitions
from drayman.apiserver.protocol.exchange import Query, Request, Response
from drayman.apiserver.served.acting import Part
from drayman.apiserver.serving.assembly import make_server
from drayman.cluster.embedded.store import Store

EVERYTHING = frozenset({Part.CONTROLLERS, Part.NODES, Part.SCHEDULER})
NO_SCHEDULER = EVERYTHING - {Part.SCHEDULER}
NOTHING: frozenset[Part] = frozenset()
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
NAMESPACE = "/api/v1/namespaces/default"
CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"
CRON_JOB_WARNING = (
    "CronJob nightly is stored, but no CronJob controller runs here: it starts no Jobs"
)


class Api:
    """A server without sockets, beside which some parts of a cluster run."""

    def __init__(self, running: frozenset[Part]) -> None:
        self.server = make_server(Store.open(None))
        self.server.core.running = running

    async def send(
        self, method: str, path: str, body: Any, content: str = "application/json", **query: str
    ) -> Response:
        headers = {"content-type": content}
        answer = await self.server.handle(
            Request(method, path, Query(tuple(query.items())), headers, msgspec.json.encode(body))
        )
        assert isinstance(answer, Response)
        assert answer.status in (200, 201), answer.body
        return answer

    async def prepare(self) -> None:
        await create_builtin_definitions(self.server.core)
        await self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})


def cron_job(**metadata: str) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": "i"}], "restartPolicy": "Never"}
    spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", **metadata},
        "spec": spec,
    }


def group(policy: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": {"schedulingPolicy": policy}}


GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
QUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "x"}, "spec": {}}  # fmt: skip
PROVISIONINGS = "/apis/kueue.x-k8s.io/v1beta2/provisioningrequestconfigs"
PROVISIONING = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ProvisioningRequestConfig",
    "metadata": {"name": "x"},
    "spec": {"provisioningClassName": "queued.example.com"},
}
REMOTES = "/apis/kueue.x-k8s.io/v1beta2/multikueueconfigs"
REMOTE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "MultiKueueConfig",
    "metadata": {"name": "x"},
    "spec": {"clusters": ["a"]},
}
QUEUES = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors"
SERVICE = {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}
OLD_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
OLD_GROUP = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "x"},
    "spec": {"minMember": 2},
}
LIMITED = {"minMember": 2, "scheduleTimeoutSeconds": 9}
QUOTA = {"metadata": {"name": "x"}, "spec": {"hard": {"pods": "1"}}}
KAI_GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups"
KAI_QUEUES = "/apis/scheduling.run.ai/v2/queues"
KAI_TOPOLOGIES = "/apis/kai.scheduler/v1alpha1/topologies"
KAI_TOPOLOGY = {
    "apiVersion": "kai.scheduler/v1alpha1",
    "kind": "Topology",
    "metadata": {"name": "x"},
    "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]},
}


def kai_group(**spec: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "x"},
        "spec": {"minMember": 2, **spec},
    }


def kai_queue(**resources: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "x"},
        "spec": {"resources": resources},
    }


CASES: dict[str, tuple[str, dict[str, Any], frozenset[Part], str]] = {
    "a cron job": (CRON_JOBS, cron_job(), EVERYTHING, "it starts no Jobs"),
    "a cron job beside other controllers": (CRON_JOBS, cron_job(), NOTHING, ""),
    "a cron job beside another scheduler": (CRON_JOBS, cron_job(), NO_SCHEDULER, "it starts no Jobs"),
    "a quota": (f"{NAMESPACE}/resourcequotas", QUOTA, EVERYTHING, "it limits nothing"),
    "a service": (f"{NAMESPACE}/services", SERVICE, EVERYTHING, "it gets no EndpointSlices"),
    "a service beside other controllers": (f"{NAMESPACE}/services", SERVICE, NOTHING, ""),
    "a gang": (GROUPS, group({"gang": {"minCount": 2}}), EVERYTHING, ""),
    "a group that is no gang": (GROUPS, group({"basic": {}}), EVERYTHING, ""),
    "a group of the scheduler plugins": (OLD_GROUPS, OLD_GROUP, EVERYTHING, ""),
    "such a group with a time limit": (OLD_GROUPS, {**OLD_GROUP, "spec": LIMITED}, EVERYTHING, ""),
    "a group of the KAI Scheduler": (KAI_GROUPS, kai_group(), EVERYTHING, ""),
    "such a group with a queue": (KAI_GROUPS, kai_group(queue="ml"), EVERYTHING, ""),
    "such a group with a priority class": (KAI_GROUPS, kai_group(priorityClassName="high"), EVERYTHING, "its priority class is not read"),
    "a queue of the KAI Scheduler": (KAI_QUEUES, kai_queue(gpu={"quota": 4}, cpu={"quota": -1}), EVERYTHING, ""),
    "such a queue with a quota of memory": (KAI_QUEUES, kai_queue(memory={"quota": 4}), EVERYTHING, "shares are those of GPUs"),
    "such a group beside another scheduler": (KAI_GROUPS, kai_group(priorityClassName="high"), NO_SCHEDULER, ""),
    "a topology of the KAI Scheduler": (KAI_TOPOLOGIES, KAI_TOPOLOGY, EVERYTHING, ""),
    "a queue of Kueue": (QUEUES, QUEUE, EVERYTHING, ""),
    "what Kueue asks for nodes by": (PROVISIONINGS, PROVISIONING, EVERYTHING, "unless Kueue runs beside"),
    "what work is handed to other clusters by": (REMOTES, REMOTE, EVERYTHING, ""),
    "data": (f"{NAMESPACE}/configmaps", {"metadata": {"name": "x"}}, EVERYTHING, ""),
    "what is acted on": (f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "x"}}, EVERYTHING, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_who_is_warned(case: str) -> None:
    """What does not happen is told, unless the part that would do it is left to others."""
    path, body, running, expected = CASES[case]
    api = Api(running)
    await api.prepare()
    answer = await api.send("POST", path, body)
    if not expected:
        assert answer.warnings == ()
        return
    (warning,) = answer.warnings
    assert " is stored, but " in warning
    assert expected in warning


async def test_the_warning_comes_with_creation_only() -> None:
    """By POST, by apply and by a dry run; not with an update, a patch or an apply to what is there."""
    api = Api(EVERYTHING)
    await api.prepare()
    path, query = f"{CRON_JOBS}/nightly", {"fieldManager": "m", "force": "true"}
    tried = await api.send("POST", CRON_JOBS, cron_job(), dryRun="All")
    created = await api.send("PATCH", path, cron_job(), APPLY, **query)
    assert tried.warnings == created.warnings == (CRON_JOB_WARNING,)
    change = {"spec": {"suspend": True}}
    later = [
        await api.send("PATCH", path, cron_job(namespace="default"), APPLY, **query),
        await api.send("PATCH", path, change, MERGE),
        await api.send("PUT", path, cron_job()),
    ]
    assert [answer.warnings for answer in later] == [(), (), ()]


async def test_other_custom_resources_are_no_business_of_ours() -> None:
    """Whoever brought the definition may act on them; of the KAI Scheduler it is known that nothing here does."""
    api = Api(EVERYTHING)
    await api.prepare()
    for owner, expected in (("example.com", 0), ("scheduling.run.ai", 1)):
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object"}},
        }
        names = {"kind": "Shelf", "plural": "shelves"}
        definition = {
            "metadata": {"name": f"shelves.{owner}"},
            "spec": {"group": owner, "names": names, "scope": "Cluster", "versions": [version]},
        }
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await api.send("POST", path, definition)
        body = {"apiVersion": f"{owner}/v1", "kind": "Shelf", "metadata": {"name": "x"}}
        answer = await api.send("POST", f"/apis/{owner}/v1/shelves", body)
        assert len(answer.warnings) == expected
