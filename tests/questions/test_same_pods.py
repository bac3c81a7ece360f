"""A plan has the pods and claims that the controllers make of the same manifests: on an empty cluster, and on one that has some already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from controllers.claims.test_groups import GROUP_VALUES, claims_of_group
from controllers.workloads.stage import Stage, stage
from controllers.world import POD_VALUES, from_template
from controllers.world import pod as pod_in_group
from controllers.world import world as claims_world
from drayman.api.codec import convert
from drayman.api.core import Pod, Volume
from drayman.api.meta import ObjectMeta, OwnerReference, controller_of
from drayman.api.resource import ResourceClaim
from drayman.api.storage import PersistentVolumeClaim
from drayman.cluster import Client
from drayman.cluster.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    JsonObject,
    Resource,
)
from drayman.controllers.claims.controller import ClaimController
from drayman.controllers.volumes.ephemeral import EphemeralVolumeController
from drayman.controllers.workloads import CONTROLLERS
from drayman.controllers.workloads.jobs import JobController
from drayman.placement.world import World
from drayman.questions.manifests import read_manifests
from drayman.questions.worlds import read_with_rules
from drayman.simulate.copying import Wanted
from drayman.simulate.expanding import Expansion
from drayman.simulate.group_claims import GroupClaims
from drayman.workloads.jobs.failures import BackoffTimes
from drayman.workloads.jobs.pods import INDEX
from drayman.workloads.stateful_sets.identity import NAME_LABEL
from drayman.workloads.volumes.ephemeral import claims_for

PROMPT = (
    partial(JobController, backoff=BackoffTimes(first=0.0)),
    *(each for each in CONTROLLERS if each is not JobController),
)
"""The controllers, of which none waits before it tries again."""
APP = {"app": "x"}
NAME = "some"
RESOURCES: dict[str, Resource[Any]] = {
    "Job": JOBS,
    "Deployment": DEPLOYMENTS,
    "ReplicaSet": REPLICA_SETS,
    "ReplicationController": REPLICATION_CONTROLLERS,
    "StatefulSet": STATEFUL_SETS,
    "DaemonSet": DAEMON_SETS,
}
COUNTS: dict[str, Callable[[Any], int]] = {
    "Job": lambda job: int(job.status.active),
    "DaemonSet": lambda daemon_set: int(daemon_set.status.current_number_scheduled),
}
"""How many pods a workload says that it has, where that is not `status.replicas`."""
TROUBLE = "node.kubernetes.io/not-ready"
VOLUME = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
OWN_CLAIM = {"metadata": {"labels": {"of": "pod"}}, "spec": VOLUME}
OWN = {"name": "own", "ephemeral": {"volumeClaimTemplate": OWN_CLAIM}}


@dataclass(frozen=True)
class Case:
    """A workload, and what it is changed to when its pods are there."""

    kind: str
    spec: dict[str, Any] = field(default_factory=dict)
    pods: dict[str, Any] = field(default_factory=dict)
    """What the spec of its pods has besides a container."""
    then: dict[str, Any] = field(default_factory=dict)

    def manifest(self, **changes: Any) -> JsonObject:
        container = {"name": "main", "image": "example.com/image:1"}
        metadata = {"labels": APP, "annotations": {"example.com/note": "kept"}}
        template = {"metadata": metadata, "spec": {"containers": [container], **self.pods}}
        spec = {"template": template, **self.spec, **changes}
        if self.kind == "ReplicationController":
            spec["selector"] = APP
        elif self.kind != "Job":
            spec["selector"] = {"matchLabels": APP}
        api_version = RESOURCES[self.kind].api_version
        return {
            "apiVersion": api_version,
            "kind": self.kind,
            "metadata": {"name": NAME},
            "spec": spec,
        }


NEVER = {"restartPolicy": "Never"}
CLAIMS = {
    "resourceClaims": [
        {"name": "own", "resourceClaimTemplateName": "t"},
        {"name": "named", "resourceClaimName": "c"},
    ]
}
INDEXED = {"completionMode": "Indexed", "completions": 3, "parallelism": 2}
POLICY = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
CASES = {
    "a job": Case("Job", {"parallelism": 2, "completions": 5}, NEVER, {"parallelism": 4}),
    "a job without a number of completions": Case("Job", {"parallelism": 2}, NEVER),
    "a job whose pods have claims": Case("Job", {"parallelism": 2}, {**NEVER, **CLAIMS}),
    "a suspended job": Case("Job", {"suspend": True}, NEVER, {"suspend": False}),
    "a job that others run": Case("Job", {"managedBy": "example.com/other"}, NEVER),
    "a job with indexes": Case("Job", INDEXED, NEVER),
    "a job that counts failures by index": Case(
        "Job", {**INDEXED, "backoffLimitPerIndex": 1, "podFailurePolicy": POLICY}, NEVER
    ),
    "a deployment": Case("Deployment", {"replicas": 2}, CLAIMS, {"replicas": 3}),
    "a paused deployment": Case("Deployment", {"replicas": 2, "paused": True}),
    "a replica set": Case("ReplicaSet", {"replicas": 2}, CLAIMS, {"replicas": 4}),
    "a replication controller": Case("ReplicationController", {"replicas": 2}, CLAIMS),
    "an ordered set with a service": Case(
        "StatefulSet", {"replicas": 2, "serviceName": "db"}, CLAIMS, {"replicas": 3}
    ),
    "a set that begins elsewhere, with volumes": Case(
        "StatefulSet",
        {
            "replicas": 2,
            "ordinals": {"start": 3},
            "podManagementPolicy": "Parallel",
            "volumeClaimTemplates": [
                {"metadata": {"name": "data", "labels": {"of": "set"}}, "spec": VOLUME}
            ],
            "persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": "Delete",
                "whenScaled": "Retain",
            },
        },
        {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "other", "emptyDir": {}}, OWN]},
        {"replicas": 3},
    ),
    "daemons": Case("DaemonSet", {}, CLAIMS),
    "daemons on the network of their nodes": Case("DaemonSet", {}, {"hostNetwork": True}),
    "daemons of some nodes": Case("DaemonSet", {}, {"nodeSelector": {"gpu": "true"}}),
    "daemons that bear a taint": Case(
        "DaemonSet", {}, {"tolerations": [{"key": "k", "operator": "Exists"}]}
    ),
    "daemons that say how long they bear a trouble": Case(
        "DaemonSet",
        {},
        {
            "tolerations": [
                {
                    "key": TROUBLE,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 9,
                }
            ]
        },
    ),
}


@pytest.mark.parametrize("title", CASES)
async def test_a_plan_has_the_pods_that_controllers_make(title: str) -> None:
    """Names but for their random ends, labels, annotations, owners, finalizers, specs and volume claims, now and after a change."""
    case = CASES[title]
    async with stage(*CONTROLLERS, EphemeralVolumeController) as place:
        await _add_nodes(place)
        planned, claims = await _planned(place.client, case.manifest())
        await place.create(RESOURCES[case.kind], case.manifest())
        made = await _settled(place, case, len(planned))
        assert _described(made) == _described(planned)
        assert await _claims_of(place, len(claims)) == _volume_claims(claims)
        if not case.then:
            return
        more, added = await _planned(place.client, case.manifest(**case.then))
        assert more
        await place.patch(RESOURCES[case.kind], NAME, {"spec": case.then})
        before = {pod.metadata.uid for pod in made}
        now = await _settled(place, case, len(planned) + len(more))
        later = [pod for pod in now if pod.metadata.uid not in before]
        assert _described(later) == _described(more)
        expected = _volume_claims((*claims, *added))
        assert await _claims_of(place, len(expected)) == expected


ENDED = {
    "a job that goes on": (
        Case("Job", {"parallelism": 2, "completions": 3}, NEVER),
        "Succeeded",
        1,
    ),
    "a job of which one success is enough": (
        Case("Job", {"parallelism": 2}, NEVER),
        "Succeeded",
        0,
    ),
    "a job that tries again": (
        Case("Job", {"parallelism": 2, "completions": 2}, NEVER),
        "Failed",
        1,
    ),
    "a job that may not fail": (
        Case("Job", {"parallelism": 2, "completions": 2, "backoffLimit": 0}, NEVER),
        "Failed",
        0,
    ),
    "the next index": (Case("Job", INDEXED, NEVER), "Succeeded", 1),
    "the same index": (Case("Job", INDEXED, NEVER), "Failed", 1),
    "the same index, with its failures": (
        Case("Job", {**INDEXED, "backoffLimitPerIndex": 1}, NEVER),
        "Failed",
        1,
    ),
    "another replica": (Case("ReplicaSet", {"replicas": 2}), "Failed", 1),
    "another replica of a deployment": (Case("Deployment", {"replicas": 2}), "Failed", 1),
    "the same ordinal": (Case("StatefulSet", {"replicas": 2}), "Failed", 1),
    "a daemon for the same node": (Case("DaemonSet"), "Succeeded", 1),
}
"""A workload, how one of its pods ends, and how many are made then."""


@pytest.mark.parametrize("title", ENDED)
async def test_a_plan_replaces_what_has_ended_as_controllers_do(title: str) -> None:
    """One pod ends while no controller looks. What they make when they are back is what a plan has in between."""
    case, phase, count = ENDED[title]
    async with stage(*PROMPT) as place:
        await _add_nodes(place)
        planned, _ = await _planned(place.client, case.manifest())
        await place.create(RESOURCES[case.kind], case.manifest())
        before = await _settled(place, case, len(planned))
        await place.crash()
        await place.set_phase(before[0], phase, exit_code=0 if phase == "Succeeded" else 1)
        more, _ = await _planned(place.client, case.manifest())
        await place.start(*PROMPT)
        known = {pod.metadata.uid for pod in before}

        def fresh(pods: list[Pod]) -> list[Pod]:
            return [pod for pod in pods if pod.metadata.uid not in known]

        await place.until(PODS, lambda pods: len(fresh(pods)) >= count)
        await place.until_one(RESOURCES[case.kind], NAME, lambda w: _is_at_rest(case, w, phase))
        assert _described(fresh(await place.pods())) == _described(more)


def _is_at_rest(case: Case, workload: Any, phase: str) -> bool:
    """Whether the controllers have taken in that a pod has ended, and done what is to be done."""
    status = workload.status
    if case.kind == "Job":
        counted = status.succeeded if phase == "Succeeded" else status.failed
        uncounted = status.uncounted_terminated_pods
        is_open = uncounted is not None and (uncounted.succeeded or uncounted.failed)
        return counted > 0 and not is_open
    if case.kind == "DaemonSet":
        return bool(status.number_ready == status.desired_number_scheduled - 1)
    return bool(status.ready_replicas == status.replicas - 1 and status.replicas == 2)


async def test_a_plan_has_the_claims_that_groups_get(tmp_path: Path) -> None:
    """Those of the group, what they are called in its status, and what its pods say of them."""
    entries = [from_template("s"), from_template("r", "other")]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": entries}
    group = {"metadata": {"name": "g"}, "spec": spec}
    member = pod_in_group("p", entries[0], schedulingGroup={"podGroupName": "g"})
    headers = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    async with claims_world(tmp_path, ClaimController) as w:
        await w.template("t", labels={"team": "a"})
        await w.template("other", annotations={"note": "b"})
        world = await read_with_rules(w.client, None)
        pod = {"apiVersion": "v1", "kind": "Pod", **member}
        wanted = await _read(world, {**headers, **group}, pod)
        groups = GroupClaims(world.objects.joined(wanted.objects))
        (sharing,) = [groups.shared_with(workload.template) for workload in wanted.workloads]
        planned = {claim.metadata.name: claim for claim in groups.objects.claims}

        await w.create(GROUP_VALUES, group)
        await w.create(POD_VALUES, member)
        names, own = await claims_of_group(w, 2), await w.generated("p")
        made = {claim.metadata.name: claim for claim in await w.claims()}
        (noted,) = groups.objects.pod_groups
        expected = {s.name: s.resource_claim_name for s in noted.status.resource_claim_statuses}
        assert names.keys() == expected.keys() == {"s", "r"}
        for entry, name in names.items():
            assert _claim(made[name or ""]) == _claim(planned[expected[entry] or ""])
        (status,) = sharing.status.resource_claim_statuses
        assert own == {"s": names["s"]}
        assert (status.name, status.resource_claim_name) == ("s", expected["s"])


async def _add_nodes(place: Stage) -> None:
    labels = {"gpu-1": {"gpu": "true"}, "plain": {}, "tainted": {}, "cordoned": {}}
    tainted = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    specs = {"tainted": tainted, "cordoned": {"unschedulable": True, "taints": None}}
    for name, given in labels.items():
        await place.create(NODES, {"metadata": {"name": name, "labels": given}})
        await place.patch(NODES, name, {"spec": specs.get(name, {"taints": None})})


async def _read(world: World, *manifests: JsonObject) -> Wanted:
    text = yaml.safe_dump_all(manifests).encode()
    return (await read_manifests([("f.yaml", text)], world)).wanted


async def _planned(
    client: Client, manifest: JsonObject
) -> tuple[list[Pod], tuple[PersistentVolumeClaim, ...]]:
    """The pods and volume claims that a plan would add to the cluster."""
    world = await read_with_rules(client, None)
    wanted = await _read(world, manifest)
    expansion = Expansion(world)
    pods = [made.pod for workload in wanted.workloads for made in expansion.of(workload)]
    own = [convert(PersistentVolumeClaim, body) for pod in pods for body in claims_for(pod)]
    return pods, (*wanted.objects.volume_claims, *own)


async def _settled(place: Stage, case: Case, count: int) -> list[Pod]:
    """The pods once there are so many and their workload says so. They run, since some wait for one another."""
    for number in range(count + 1):
        for pod in await place.until(PODS, lambda pods, least=number: len(pods) >= least):
            if pod.status.phase != "Running":
                await place.run_pod(pod)
    says = COUNTS.get(case.kind, lambda workload: int(workload.status.replicas))
    if case.spec.get("managedBy") is None:
        await place.until_one(RESOURCES[case.kind], NAME, lambda w: _is_told(w, says, count))
    return await place.pods()


def _is_told(workload: Any, says: Callable[[Any], int], count: int) -> bool:
    observed = getattr(workload.status, "observed_generation", None)
    if observed is not None and observed < workload.metadata.generation:
        return False
    return says(workload) == count


async def _claims_of(place: Stage, least: int) -> dict[str, tuple[Any, ...]]:
    """The volume claims of the cluster, once there are so many."""
    return _volume_claims(await place.until(VOLUME_CLAIMS, lambda claims: len(claims) >= least))


def _described(pods: list[Pod]) -> list[tuple[Any, ...]]:
    """All that a pod is, but for what no two runs have in common, in an order that does not depend on names."""
    return sorted((_description(pod) for pod in pods), key=repr)


def _description(pod: Pod) -> tuple[Any, ...]:
    metadata, spec = pod.metadata, pod.spec
    owner = controller_of(metadata)
    assert owner is not None
    labels = {k: "its owner" if v == owner.uid else v for k, v in metadata.labels.items()}
    plain = replace(spec, node_name="", tolerations=(), volumes=tuple(_own_volumes(pod)))
    return (
        _stem(pod, owner),
        sorted(labels.items()),
        sorted(metadata.annotations.items()),
        _owners(metadata),
        metadata.finalizers,
        sorted(spec.tolerations, key=repr),
        plain,
    )


def _stem(pod: Pod, owner: OwnerReference) -> str:
    """The name of a pod that has one of its own, without a random end; that of its owner for all others."""
    metadata = pod.metadata
    if INDEX in metadata.labels:
        return metadata.generate_name.removesuffix("-") or metadata.name
    return metadata.name if NAME_LABEL in metadata.labels else owner.name


def _own_volumes(pod: Pod) -> list[Volume]:
    return [v for v in pod.spec.volumes if not v.name.startswith("kube-api-access-")]


def _owners(metadata: ObjectMeta) -> tuple[OwnerReference, ...]:
    return tuple(replace(owner, uid="") for owner in metadata.owner_references)


def _volume_claims(claims: Any) -> dict[str, tuple[Any, ...]]:
    return {
        claim.metadata.name: (
            claim.metadata.labels,
            claim.metadata.annotations,
            _owners(claim.metadata),
            claim.spec.access_modes,
            claim.spec.resources,
        )
        for claim in claims
    }


def _claim(claim: ResourceClaim) -> tuple[Any, ...]:
    metadata = claim.metadata
    return (
        metadata.generate_name,
        metadata.labels,
        metadata.annotations,
        _owners(metadata),
        claim.spec,
    )
