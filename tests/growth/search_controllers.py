"""Looks for control loops whose work grows faster than what they look after. For a process of its own.

    search_controllers.py

A whole cluster runs in this process: server, garbage collection, controllers, scheduler and simulated nodes. Prints a line for each place
that grows too fast, and then how many scenes were played.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from growth.metering import meter_package

METER = meter_package("drayman")

from drayman.apiserver.instance.control_plane import ControlPlane, running  # noqa: E402
from drayman.apiserver.instance.first_objects import (  # noqa: E402
    create_builtin_definitions,
    create_standard_class,
)
from drayman.apiserver.lifecycle.running import Lifecycle  # noqa: E402
from drayman.apiserver.security.aggregation import RoleAggregation  # noqa: E402
from drayman.drivers.profiles import parse_profiles, simulate  # noqa: E402
from drayman.quota.shares.reach import Reaching  # noqa: E402
from drayman.scheduler.running import ROUND  # noqa: E402
from growth.comparing import QUADRATIC, Growth, steep  # noqa: E402
from growth.requesting import Served, served  # noqa: E402
from scheduler.queue_yard import Yard  # noqa: E402

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
ITEMS = 12 if IS_LONG else 6
PATIENCE_S = 120.0
PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/namespaces/default/resourceclaims"
TEMPLATES = f"{DRA}/namespaces/default/resourceclaimtemplates"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
WORKLOADS = f"{KUEUE}/namespaces/default/workloads"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LABELS = {"app": "x"}
SPEC = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": SPEC}
SELECTOR = {"matchLabels": LABELS}
GPU = "gpu.nvidia.com"
DEVICES = {"requests": [{"name": "r", "exactly": {"deviceClassName": GPU}}]}

Object = dict[str, Any]
Scene = Callable[["Town", int], Awaitable[None]]


class Town:
    """A cluster and what clients do with it."""

    def __init__(self, target: Served) -> None:
        self._target = target

    async def make(self, path: str, name: str, /, **members: Any) -> Object:
        metadata = {"name": name, **members.pop("metadata", {})}
        answer = await self._target.send("POST", path, {"metadata": metadata, **members})
        assert answer.status == 201, answer.body
        return msgspec.json.decode(answer.body)

    async def change(self, path: str, **members: Any) -> None:
        media = "application/merge-patch+json"
        answer = await self._target.send("PATCH", path, members, media)
        assert answer.status == 200, answer.body

    async def remove(self, path: str, **query: str) -> None:
        answer = await self._target.send("DELETE", path, **query)
        assert answer.status in (200, 202), answer.body

    async def all(self, path: str) -> list[Object]:
        answer = await self._target.send("GET", path)
        return msgspec.json.decode(answer.body)["items"]

    async def until(self, path: str, wanted: Callable[[list[Object]], bool]) -> None:
        """Wait until the objects of a kind are as wanted. Looking at them is not counted."""
        storage = _storage_name(path)
        where = path.partition("/namespaces/")[2].partition("/")[0] or None
        async with asyncio.timeout(PATIENCE_S):
            while not wanted(self._look(storage, where)):
                await asyncio.sleep(0.02)

    def _look(self, storage: str, where: str | None) -> list[Object]:
        counted = METER.work[:]
        # Decoded here: a stored object keeps what it was decoded to, and others would not have to do it.
        found = [msgspec.json.decode(one.data) for one in self._target.store.list(storage, where)]
        METER.work[:] = counted
        return found

    async def running(self, count: int) -> None:
        await self.until(PODS, lambda pods: _phases(pods).count("Running") == count)

    async def gone(self, *paths: str) -> None:
        for path in paths:
            await self.until(path, lambda found: not found)


def _storage_name(path: str) -> str:
    parts = path.strip("/").split("/")
    return parts[-1] if parts[0] == "api" else f"{parts[-1]}.{parts[1]}"


def _phases(pods: list[Object]) -> list[str]:
    return [pod["status"].get("phase", "") for pod in pods]


@asynccontextmanager
async def town() -> AsyncIterator[Town]:
    async with served() as target:
        core = target.server.core
        await create_standard_class(core)
        await create_builtin_definitions(core)
        lifecycle, aggregation = Lifecycle(core), RoleAggregation(core)
        lifecycle.start()
        aggregation.start()
        parts = ControlPlane(hardware=simulate(parse_profiles("dgx-h100=2,cpu=2")))
        try:
            async with running(core, parts):
                yield Town(target)
        finally:
            await aggregation.stop()
            await lifecycle.stop()


async def pods(place: Town, count: int) -> None:
    for number in range(count):
        await place.make(PODS, f"p{number}", metadata={"labels": LABELS}, spec=SPEC)
    await place.running(count)
    await place.remove(PODS)
    await place.gone(PODS)


async def pods_that_wait(place: Town, count: int) -> None:
    spec = {**SPEC, "nodeSelector": {"wanted": "yes"}}
    for number in range(count):
        await place.make(PODS, f"p{number}", spec=spec)
    await place.until(PODS, lambda found: all("conditions" in pod["status"] for pod in found))
    nodes = await place.all("/api/v1/nodes")
    await place.change(
        f"/api/v1/nodes/{nodes[0]['metadata']['name']}", metadata={"labels": {"wanted": "yes"}}
    )
    await place.running(count)


async def pods_apart(place: Town, count: int) -> None:
    """Pods that look at each other: all but a few wait."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": SELECTOR}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for number in range(count):
        labels = {"labels": LABELS}
        await place.make(PODS, f"p{number}", metadata=labels, spec={**SPEC, "affinity": apart})
    await place.until(PODS, lambda found: all("conditions" in pod["status"] for pod in found))


async def terms_of_a_pod(place: Town, count: int) -> None:
    term = {"topologyKey": "kubernetes.io/hostname"}
    terms = [{**term, "labelSelector": {"matchLabels": {"a": f"v{n}"}}} for n in range(count)]
    spread = [
        {"topologyKey": f"t{n}", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
        for n in range(count)
    ]
    node = [
        {"matchExpressions": [{"key": "k", "operator": "In", "values": [f"v{n}"]}]}
        for n in range(count)
    ]
    preferred = [{"weight": 1, "preference": one} for one in node]
    affinity = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms},
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred},
    }
    tolerations = [{"key": f"k{n}", "operator": "Exists"} for n in range(count)]
    spec = {
        **SPEC, "affinity": affinity, "tolerations": tolerations, "topologySpreadConstraints": spread,
        "containers": [{"name": f"c{n}", "image": "i"} for n in range(count)],
        "volumes": [{"name": f"v{n}", "emptyDir": {}} for n in range(count)],
    }  # fmt: skip
    await place.make(PODS, "p", spec=spec)
    await place.running(1)
    await place.remove(f"{PODS}/p")
    await place.gone(PODS)


async def deployment(place: Town, count: int) -> None:
    spec = {"replicas": count, "selector": SELECTOR, "template": TEMPLATE}
    path = f"{APPS}/deployments"
    await place.make(path, "d", spec=spec)
    await place.running(count)
    changed = {"metadata": {"labels": {**LABELS, "new": "yes"}}}
    await place.change(f"{path}/d", spec={"template": changed})
    await place.until(
        PODS,
        lambda found: len(found) == count and all("new" in p["metadata"]["labels"] for p in found),
    )
    await place.remove(f"{path}/d")
    await place.gone(PODS, f"{APPS}/replicasets")


async def stateful_set(place: Town, count: int) -> None:
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    spec = {
        "replicas": count, "selector": SELECTOR, "template": TEMPLATE, "podManagementPolicy": "Parallel", "serviceName": "s",
        "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": storage}],
    }  # fmt: skip
    await place.make(f"{APPS}/statefulsets", "s", spec=spec)
    await place.running(count)
    await place.remove(f"{APPS}/statefulsets/s")
    await place.gone(PODS)


async def daemon_set(place: Town, count: int) -> None:
    for number in range(count):
        await place.make(
            "/api/v1/nodes", f"extra{number}", status={"capacity": {"cpu": "1", "pods": "9"}}
        )
    spec = {**SPEC, "tolerations": [{"operator": "Exists"}]}
    template = {**TEMPLATE, "spec": spec}
    await place.make(f"{APPS}/daemonsets", "d", spec={"selector": SELECTOR, "template": template})
    await place.until(PODS, lambda found: len(found) == count + 4)


async def job(place: Town, count: int) -> None:
    spec = {**SPEC, "restartPolicy": "Never"}
    annotated = {"spec": spec}
    await place.make(
        JOBS, "j", spec={"completions": count, "parallelism": count, "completionMode": "Indexed", "template": annotated}
    )  # fmt: skip
    await place.running(count)
    for pod in await place.all(PODS):
        name = pod["metadata"]["name"]
        await place.change(f"{PODS}/{name}/status", status={"phase": "Succeeded"})
    await place.until(JOBS, lambda found: found[0]["status"].get("succeeded") == count)
    await place.remove(f"{JOBS}/j", propagationPolicy="Background")
    await place.gone(PODS)


async def gang_of_a_job(place: Town, count: int) -> None:
    """More pods than there can be are to start together, and each pod says so itself when its Job is gone."""
    spec = {**SPEC, "restartPolicy": "Never"}
    stated = {"annotations": {"drayman.dev/gang": "2147483647"}}
    await place.make(
        JOBS, "j", metadata=stated, spec={"parallelism": count, "template": {"spec": spec}}
    )
    await place.until(
        PODS,
        lambda found: len(found) == count and all("conditions" in p["status"] for p in found),
    )
    await place.remove(f"{JOBS}/j", propagationPolicy="Background")
    await place.gone(PODS)


async def claims(place: Town, count: int) -> None:
    """Pods with claims of their own, all of which wait for devices."""
    many = {"requests": [{"name": "r", "exactly": {"deviceClassName": GPU, "count": 9}}]}
    await place.make(TEMPLATES, "t", spec={"spec": {"devices": many}})
    entry = [{"name": "e", "resourceClaimTemplateName": "t"}]
    for number in range(count):
        await place.make(PODS, f"p{number}", spec={**SPEC, "resourceClaims": entry})
    await place.until(PODS, lambda found: all("conditions" in pod["status"] for pod in found))
    await place.remove(PODS)
    await place.gone(PODS, CLAIMS)


async def claims_of_a_pod(place: Town, count: int) -> None:
    await place.make(TEMPLATES, "t", spec={"spec": {"devices": DEVICES}})
    entries = [{"name": f"e{n}", "resourceClaimTemplateName": "t"} for n in range(count)]
    await place.make(PODS, "p", spec={**SPEC, "resourceClaims": entries})
    await place.until(PODS, lambda found: all("conditions" in pod["status"] for pod in found))
    await place.remove(f"{PODS}/p")
    await place.gone(PODS, CLAIMS)


async def consumers_of_a_claim(place: Town, count: int) -> None:
    await place.make(CLAIMS, "c", spec={"devices": DEVICES})
    entry = [{"name": "e", "resourceClaimName": "c"}]
    for number in range(count):
        await place.make(PODS, f"p{number}", spec={**SPEC, "resourceClaims": entry})
    await place.running(count)
    await place.remove(PODS)
    await place.gone(PODS)
    await place.until(CLAIMS, lambda found: "allocation" not in found[0].get("status", {}))


async def device_taints(place: Town, count: int) -> None:
    rules = f"{DRA.replace('v1', 'v1beta2')}/devicetaintrules"
    await place.make(TEMPLATES, "t", spec={"spec": {"devices": DEVICES}})
    entry = [{"name": "e", "resourceClaimTemplateName": "t"}]
    await place.make(PODS, "p", spec={**SPEC, "resourceClaims": entry})
    await place.running(1)
    for number in range(count):
        taint = {"key": f"example.com/k{number}", "effect": "None"}
        await place.make(rules, f"r{number}", spec={"taint": taint, "deviceSelector": {}})
    await place.until(
        rules, lambda found: all(one.get("status", {}).get("conditions") for one in found)
    )
    taint = {"key": "example.com/k", "effect": "NoExecute"}
    await place.make(rules, "r", spec={"taint": taint, "deviceSelector": {}})
    await place.gone(PODS)


async def slices(place: Town, count: int) -> None:
    node = (await place.all("/api/v1/nodes"))[0]["metadata"]["name"]
    path = f"{DRA}/resourceslices"
    for number in range(count):
        devices = [{"name": f"d{number}"}]
        pool = {"name": f"extra{number}", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "x.example.com", "pool": pool, "nodeName": node, "devices": devices}
        await place.make(path, f"s{number}", spec=spec)
    await place.make(f"{DRA}/deviceclasses", "x", spec={})
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}
    await place.make(CLAIMS, "c", spec={"devices": devices})
    entry = [{"name": "e", "resourceClaimName": "c"}]
    await place.make(PODS, "p", spec={**SPEC, "resourceClaims": entry})
    await place.running(1)


async def devices_of_a_slice(place: Town, count: int) -> None:
    node = (await place.all("/api/v1/nodes"))[0]["metadata"]["name"]
    devices = [{"name": f"d{n}", "attributes": {"i": {"int": n}}} for n in range(count)]
    pool = {"name": "extra", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "x.example.com", "pool": pool, "nodeName": node, "devices": devices}
    await place.make(f"{DRA}/resourceslices", "s", spec=spec)
    chosen = {"cel": {"expression": 'device.driver == "x.example.com"'}}
    await place.make(f"{DRA}/deviceclasses", "x", spec={"selectors": [chosen]})
    wanted = {"deviceClassName": "x", "count": 3}
    devices_of = {"requests": [{"name": "r", "exactly": wanted}]}
    await place.make(CLAIMS, "c", spec={"devices": devices_of})
    entry = [{"name": "e", "resourceClaimName": "c"}]
    await place.make(PODS, "p", spec={**SPEC, "resourceClaims": entry})
    await place.running(1)


async def volumes(place: Town, count: int) -> None:
    path = "/api/v1/namespaces/default/persistentvolumeclaims"
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    for number in range(count):
        await place.make(path, f"c{number}", spec={**storage, "storageClassName": "none"})
    for number in range(count):
        spec = {
            "capacity": {"storage": "1Mi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
        }
        await place.make(
            "/api/v1/persistentvolumes", f"v{number}", spec={**spec, "storageClassName": "none"}
        )
    await place.until(path, lambda found: all(c["status"].get("phase") == "Bound" for c in found))
    await place.remove(path)
    await place.gone(path)


async def volumes_of_a_pod(place: Town, count: int) -> None:
    path = "/api/v1/namespaces/default/persistentvolumeclaims"
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    for number in range(count):
        await place.make(path, f"c{number}", spec=storage)
    used = [
        {"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(count)
    ]
    await place.make(PODS, "p", spec={**SPEC, "volumes": used})
    await place.running(1)
    await place.remove(f"{PODS}/p")
    await place.remove(path)
    await place.gone(PODS, path)


async def budgets(place: Town, count: int) -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    for number in range(count):
        await place.make(PODS, f"p{number}", metadata={"labels": LABELS}, spec=SPEC)
    await place.make(path, "b", spec={"minAvailable": 1, "selector": SELECTOR})
    await place.running(count)
    await place.until(path, lambda found: found[0]["status"].get("currentHealthy") == count)


async def budgets_of_a_pod(place: Town, count: int) -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    await place.make(PODS, "p", metadata={"labels": LABELS}, spec=SPEC)
    for number in range(count):
        await place.make(path, f"b{number}", spec={"minAvailable": 1, "selector": SELECTOR})
    await place.until(
        path, lambda found: all(b["status"].get("currentHealthy") == 1 for b in found)
    )


def _owner(obj: Object, **members: Any) -> Object:
    named = {name: obj["metadata"][name] for name in ("name", "uid")}
    return {"apiVersion": "v1", "kind": "ConfigMap", **named, **members}


async def dependents(place: Town, count: int) -> None:
    owner = await place.make(CONFIG_MAPS, "owner")
    references = [_owner(owner, blockOwnerDeletion=True)]
    for number in range(count):
        await place.make(CONFIG_MAPS, f"c{number}", metadata={"ownerReferences": references})
    await place.remove(f"{CONFIG_MAPS}/owner", propagationPolicy="Foreground")
    await place.gone(CONFIG_MAPS)


async def owners(place: Town, count: int) -> None:
    found = [await place.make(CONFIG_MAPS, f"c{number}") for number in range(count)]
    references = [_owner(one) for one in found]
    await place.make(CONFIG_MAPS, "all", metadata={"ownerReferences": references})
    for number in range(count):
        await place.remove(f"{CONFIG_MAPS}/c{number}")
    await place.gone(CONFIG_MAPS)


async def owners_in_a_row(place: Town, count: int) -> None:
    owner = await place.make(CONFIG_MAPS, "c0")
    for number in range(1, count):
        references = [_owner(owner, blockOwnerDeletion=True)]
        owner = await place.make(
            CONFIG_MAPS, f"c{number}", metadata={"ownerReferences": references}
        )
    await place.remove(f"{CONFIG_MAPS}/c0", propagationPolicy="Foreground")
    await place.gone(CONFIG_MAPS)


async def namespace(place: Town, count: int) -> None:
    await place.make("/api/v1/namespaces", "n")
    path = "/api/v1/namespaces/n/configmaps"
    for number in range(count):
        await place.make(path, f"c{number}")
    await place.remove("/api/v1/namespaces/n")
    await place.until("/api/v1/namespaces", lambda found: "n" not in [_name(one) for one in found])


async def namespaces(place: Town, count: int) -> None:
    for number in range(count):
        await place.make("/api/v1/namespaces", f"n{number}")
    await place.until("/api/v1/serviceaccounts", lambda found: len(found) >= count)
    for number in range(count):
        await place.remove(f"/api/v1/namespaces/n{number}")
    await place.until(
        "/api/v1/namespaces", lambda found: not any(_name(one).startswith("n") for one in found)
    )


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


async def aggregated_roles(place: Town, count: int) -> None:
    path = f"{RBAC}/clusterroles"
    labels = {"part": "yes"}
    for number in range(count):
        rules = [{"apiGroups": [""], "resources": [f"r{number}"], "verbs": ["get"]}]
        await place.make(path, f"r{number}", metadata={"labels": labels}, rules=rules)
    await place.make(
        path, "whole", aggregationRule={"clusterRoleSelectors": [{"matchLabels": labels}]}
    )
    await place.until(
        path,
        lambda found: any(
            _name(r) == "whole" and len(r.get("rules") or ()) == count for r in found
        ),
    )


async def nodes(place: Town, count: int) -> None:
    """More nodes, of which none is ready, and one pod."""
    for number in range(count):
        await place.make(
            "/api/v1/nodes", f"extra{number}", status={"capacity": {"cpu": "1", "pods": "9"}}
        )
    await place.make(PODS, "p", spec=SPEC)
    await place.running(1)


async def queue_of(place: Town, cpus: int) -> None:
    """A local queue with so many CPUs."""
    quota = [{"name": "cpu", "nominalQuota": cpus}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": quota}]}
    for path, kind, name, spec in (
        ("resourceflavors", "ResourceFlavor", "f", {}),
        (
            "clusterqueues",
            "ClusterQueue",
            "q",
            {"namespaceSelector": {}, "resourceGroups": [group]},
        ),
        ("namespaces/default/localqueues", "LocalQueue", "q", {"clusterQueue": "q"}),
    ):
        head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind}
        await place.make(f"{KUEUE}/{path}", name, **head, spec=spec)


async def without_queue(place: Town) -> None:
    await place.gone(WORKLOADS)
    for path in ("namespaces/default/localqueues", "clusterqueues", "resourceflavors"):
        await place.remove(f"{KUEUE}/{path}")


def _queued(name: str, spec: Object, **annotations: str) -> Object:
    requests = {"resources": {"requests": {"cpu": "1m"}}}
    container = {**spec["containers"][0], **requests}
    labels = {"kueue.x-k8s.io/queue-name": "q", **LABELS}
    if annotations:
        labels["kueue.x-k8s.io/pod-group-name"] = "group"
    marks = {f"kueue.x-k8s.io/{key}": value for key, value in annotations.items()}
    metadata = {"labels": labels, "annotations": marks}
    return {"metadata": metadata, "spec": {**spec, "containers": [container]}}


async def queued_jobs(place: Town, count: int) -> None:
    """Half of them wait."""
    await queue_of(place, 1)
    pod = {**SPEC, "restartPolicy": "Never"}
    for number in range(count):
        made = _queued(f"j{number}", pod)
        if number % 2:
            made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "5"}}
        body = {"template": {"spec": made["spec"]}}
        await place.make(
            JOBS, f"j{number}", metadata={"labels": made["metadata"]["labels"]}, spec=body
        )
    await place.running(count - count // 2)
    await place.remove(JOBS, propagationPolicy="Background")
    await place.gone(JOBS, PODS)
    await without_queue(place)


async def queued_group(place: Town, count: int) -> None:
    """Pods that are let go together."""
    await queue_of(place, 1)
    total = {"pod-group-total-count": str(count)}
    for number in range(count):
        made = _queued(f"p{number}", SPEC, **total)
        await place.make(PODS, f"p{number}", metadata=made["metadata"], spec=made["spec"])
    await place.running(count)
    await place.remove(PODS)
    await place.gone(PODS)
    await without_queue(place)


async def queues_in_line(_: Town, count: int) -> None:
    """Queues of KAI that all have work in line, which is given out in rounds."""
    leaves = [f"q{number}" for number in range(count)]
    yard = Yard(gpus=4 * count, queues=dict.fromkeys(leaves, 1))
    for number in range(16 * count):
        yard.add(f"p{number}", leaves[number % count])
    while yard.take(ROUND):
        pass


async def reach_of_a_queue(_: Town, count: int) -> None:
    """Work that may have to wait for others to make way, beside a queue whose work is all within its quota."""
    yard = Yard(gpus=2 * count, queues={"within": 2 * count, "beyond": 0, "new": count})
    for number in range(count):
        yard.add(f"w{number}", "within")
    yard.add("b", "beyond")
    while yard.take(ROUND):
        pass
    reaching = Reaching(yard.state, yard.shares)
    yard.add("first", "new")
    for _ in range(count):
        found, _ = reaching.of("first", 0.0)
        assert [list(each.first) for each in found] == [["b"]]


SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        pods, pods_that_wait, pods_apart, terms_of_a_pod, deployment, stateful_set, daemon_set, job, gang_of_a_job, claims, claims_of_a_pod,
        consumers_of_a_claim, device_taints, slices, devices_of_a_slice, volumes, volumes_of_a_pod, budgets, budgets_of_a_pod,
        dependents, owners, owners_in_a_row, namespace, namespaces, aggregated_roles, nodes, queued_jobs,
        queued_group, queues_in_line, reach_of_a_queue,
    )
}  # fmt: skip


MOST_TOGETHER = 10
"""The most that work may grow where events are looked at together, as many at a time as have come by then. By the square it would be 16."""

ONE_BY_ONE = {
    "claims_of_a_pod": "each claim that is made is a reason to look at the pod again, and a pod has at most 256",
    "consumers_of_a_claim": "each consumer is added to the list of all, which has at most 256",
    "daemon_set": "each pod is a decision that looks at all nodes",
    "device_taints": "each rule that is written is a reason to look at all rules",
    "job": "each pod that ends is a reason to look at all pods of the Job",
    "owners": "each owner that goes is taken out of the list of all",
    "pods_apart": "each pod is a decision that looks at the pods that it wants to be away from",
    "stateful_set": "each decision looks at the volumes of a class, as the volume controller does for each claim",
    "volumes": "each claim looks at the volumes of its class",
    "volumes_of_a_pod": "each volume that is bound is a reason to look at all volumes of the pod",
}
"""Scenes in which the work for one of many objects is in proportion to their number, each with the reason. Events that come fast enough
are looked at together, so how much work they are depends on how fast the machine is."""


async def played(scene: Scene, count: int) -> None:
    async with town() as place:
        METER.reset()
        await scene(place, count)


async def searched(name: str) -> list[Growth]:
    """What grows too fast in a scene. When writes are put together depends on time, so it must do so again."""
    most = QUADRATIC if name in ONE_BY_ONE else MOST_TOGETHER
    work = partial(played, SCENES[name])
    found = await steep(METER, work, ITEMS, most=most)
    if not found:
        return found
    again = {growth.place for growth in await steep(METER, work, ITEMS, most=most)}
    return [growth for growth in found if growth.place in again]


async def main(names: list[str]) -> None:
    for name in names or list(SCENES):
        for growth in await searched(name):
            sys.stdout.write(f"{name}: {growth}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(SCENES)} scenes\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
