"""A random workload that fits the hardware: what is created, what of it may be deleted, what has to be there in the end.

Half of the devices at most are asked for, so that everything can run although a claim may keep devices of a node for itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from faults.cluster import Api
from faults.snapshot import Object, Snapshot

NAMESPACE: Final = "default"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS: Final = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
TEMPLATES: Final = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaimtemplates"
JOBS: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
SETS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
BUDGET: Final = {"gpu.example.com": 14, "gpu.nvidia.com": 8}
"""Devices that may be asked for at the same time."""


def _request(device_class: str, **more: object) -> Object:
    return {"deviceClassName": device_class, **more}


def _spec(*exactly: Object) -> Object:
    named = [{"name": f"request-{at}", "exactly": each} for at, each in enumerate(exactly)]
    return {"devices": {"requests": named}}


def _mig(profile: str) -> list[Object]:
    expression = f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"
    return [{"cel": {"expression": expression}}]


_ALIGNED: Final = {
    **_spec(_request("gpu.nvidia.com"), _request("rdma")),
}
_ALIGNED["devices"]["constraints"] = [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]
_EITHER: Final = {
    "devices": {
        "requests": [
            {
                "name": "either",
                "firstAvailable": [
                    {"name": "part", "deviceClassName": "mig.nvidia.com", "selectors": _mig("3g.40gb")},
                    {"name": "whole", "deviceClassName": "gpu.nvidia.com"},
                ],
            }
        ]
    }
}  # fmt: skip
SPECS: Final[dict[str, tuple[Object, dict[str, int]]]] = {
    "gpu": (_spec(_request("gpu.example.com")), {"gpu.example.com": 1}),
    "two-gpus": (_spec(_request("gpu.example.com", count=2)), {"gpu.example.com": 2}),
    "share": (
        _spec(_request("gpu.example.com", capacity={"requests": {"memory": "30Gi", "compute": "30"}})),
        {"gpu.example.com": 1},
    ),
    "nic": (_spec(_request("net.example.com", capacity={"requests": {"ingressBandwidth": "40G"}})), {}),
    "part": (_spec(_request("mig.nvidia.com", selectors=_mig("1g.10gb"))), {"gpu.nvidia.com": 1}),
    "aligned": (_ALIGNED, {"gpu.nvidia.com": 1}),
    "either": (_EITHER, {"gpu.nvidia.com": 1}),
}  # fmt: skip
"""Specs of claims by the name of their template, and what of the budget they take."""


@dataclass(slots=True)
class Unit:
    """Objects that belong together, in the order of their creation: path of the collection, body."""

    sort: str
    objects: list[tuple[str, Object]]
    cost: dict[str, int]
    uids: dict[str, str] = field(default_factory=dict)
    """What exists of it, by path."""

    def paths(self, collection: str = "") -> list[str]:
        return [path for path in self.uids if path.startswith(collection)]


def _pod_spec(claims: list[Object], resources: Object | None = None, **more: object) -> Object:
    container: Object = {"name": "main", "image": "app", "resources": resources or {}}
    if claims:
        container["resources"] = {"claims": [{"name": claim["name"]} for claim in claims]}
    # A short grace period, so that nothing has to be waited for.
    return {
        "containers": [container],
        "resourceClaims": claims,
        "terminationGracePeriodSeconds": 1,
        **more,
    }


def _from(template: str) -> list[Object]:
    return [{"name": "devices", "resourceClaimTemplateName": template}]


class Load:
    """Creates and deletes units over the API."""

    def __init__(self, api: Api, chance: random.Random) -> None:
        self._api = api
        self._chance = chance
        self._count = 0
        self.units: list[Unit] = []
        self.evictions = False
        """Whether something happened since the last check that lets pods disappear."""
        self.nodes_down = False
        """Whether pods may have to wait for their node before they end."""

    def prepare(self) -> None:
        for name, (spec, _) in SPECS.items():
            self._api.create(TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": spec}})

    # --- Creating ---------------------------------------------------------------------------------

    def create(self) -> str:
        """Create a unit of a random sort. If there is no room for it, delete another one instead."""
        self._count += 1
        make = self._chance.choice(
            (self._pod, self._sharers, self._extended, self._short, self._job, self._deployment, self._set)
        )  # fmt: skip
        unit = make(f"{make.__name__.lstrip('_')}-{self._count}")
        for resource, most in BUDGET.items():
            taken = sum(each.cost.get(resource, 0) for each in self.units)
            if taken + unit.cost.get(resource, 0) > most:
                return self._delete_unit(self._chance.choice(self.units))
        self.units.append(unit)
        self._make(unit)
        return f"create {unit.sort}"

    def _make(self, unit: Unit) -> None:
        for collection, body in unit.objects:
            made = self._api.create(collection, body)
            unit.uids[f"{collection}/{body['metadata']['name']}"] = made["metadata"]["uid"]

    def _spec_name(self) -> str:
        return self._chance.choice(tuple(SPECS))

    def _pod(self, name: str) -> Unit:
        template = self._spec_name()
        claims = _from(template)
        cost = SPECS[template][1]
        if self._chance.random() < 0.3:
            claims.append({"name": "nic", "resourceClaimTemplateName": "nic"})
            if "gpu.nvidia.com" in cost:  # no node has both
                claims.pop()
        return Unit(name, [(PODS, _object(name, _pod_spec(claims)))], cost)

    def _sharers(self, name: str) -> Unit:
        """A claim of its own that several pods use."""
        spec, cost = SPECS[self._spec_name()]
        pod = _pod_spec([{"name": "devices", "resourceClaimName": name}])
        count = self._chance.randint(1, 3)
        pods = [(PODS, _object(f"{name}-{number}", pod)) for number in range(count)]
        return Unit(name, [(CLAIMS, _object(name, spec)), *pods], cost)

    def _extended(self, name: str) -> Unit:
        limits = {"limits": {"example.com/gpu": "1"}}
        return Unit(name, [(PODS, _object(name, _pod_spec([], limits)))], {"gpu.example.com": 1})

    def _short(self, name: str) -> Unit:
        """A pod that ends by itself."""
        template = self._spec_name()
        pod = _object(name, _pod_spec(_from(template), restartPolicy="Never"))
        pod["metadata"]["annotations"] = {"drayman.dev/run-for": "300ms"}
        return Unit(name, [(PODS, pod)], SPECS[template][1])

    def _job(self, name: str) -> Unit:
        template = self._spec_name()
        disrupted = [{"type": "DisruptionTarget", "status": "True"}]
        spec: Object = {
            "parallelism": 2,
            "completions": 3,
            "backoffLimit": 100,
            # What faults do to a pod is not its own failure, and no reason to wait.
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": disrupted}]},
            "template": {
                "metadata": {"annotations": {"drayman.dev/run-for": "200ms"}},
                "spec": _pod_spec(_from(template), restartPolicy="Never"),
            },
        }
        cost = {resource: 2 * count for resource, count in SPECS[template][1].items()}
        return Unit(name, [(JOBS, _object(name, spec))], cost)

    def _deployment(self, name: str) -> Unit:
        return self._replicated(name, DEPLOYMENTS)

    def _set(self, name: str) -> Unit:
        """Its pods come back under the names of those that were deleted."""
        return self._replicated(name, SETS)

    def _replicated(self, name: str, collection: str) -> Unit:
        template = self._chance.choice(("gpu", "share", "nic", "part", "extended"))
        limits = {"limits": {"example.com/gpu": "1"}}
        pod = _pod_spec([], limits) if template == "extended" else _pod_spec(_from(template))
        spec: Object = {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        }
        cost = {"gpu.example.com": 1} if template == "extended" else SPECS[template][1]
        cost = {resource: 2 * count for resource, count in cost.items()}
        return Unit(name, [(collection, _object(name, spec))], cost)

    # --- Deleting ---------------------------------------------------------------------------------

    def delete(self) -> str:
        """Delete a unit, or disturb one."""
        if not self.units:
            return "nothing to delete"
        unit = self._chance.choice(self.units)
        act: Callable[[Unit], str] = self._chance.choice(
            (self._delete_unit, self._delete_unit, self._delete_pods, self._delete_claims, self._recreate)
        )  # fmt: skip
        return act(unit)

    def _delete_unit(self, unit: Unit) -> str:
        at_once = self._chance.random() < 0.4
        paths = unit.paths()
        self._chance.shuffle(paths)
        for path in paths:
            # Forgotten before, because a request without an answer may have been done.
            del unit.uids[path]
            self._api.delete(path, at_once=at_once and path.startswith(PODS))
        self.units.remove(unit)
        return f"delete {unit.sort}{' at once' if at_once else ''}"

    def _delete_pods(self, unit: Unit) -> str:
        """Delete pods of a unit. Deployments and sets make others."""
        at_once = self._chance.random() < 0.5
        if unit.paths(JOBS):  # its pods would count as failures
            return f"leave {unit.sort} alone"
        for pod in self._pods_of(unit):
            path = f"{PODS}/{pod['metadata']['name']}"
            unit.uids.pop(path, None)
            self._api.delete(path, at_once=at_once)
        return f"delete pods of {unit.sort}{' at once' if at_once else ''}"

    def _delete_claims(self, unit: Unit) -> str:
        """Delete the claims that were generated for a unit's pods: those in use stay until they are not, others come back."""
        for pod in self._pods_of(unit):
            for status in pod.get("status", {}).get("resourceClaimStatuses", ()):
                if status.get("resourceClaimName"):
                    self._api.delete(f"{CLAIMS}/{status['resourceClaimName']}")
        return f"delete generated claims of {unit.sort}"

    def _recreate(self, unit: Unit) -> str:
        """Delete a unit's pods and claims and create them again under the same names."""
        if unit.paths(JOBS) or unit.paths(DEPLOYMENTS) or unit.paths(SETS):
            return self._delete_pods(unit)
        at_once = self._chance.random() < 0.5 or self.nodes_down
        for path in unit.paths():
            del unit.uids[path]
            self._api.delete(path, at_once=at_once and path.startswith(PODS))
        self._make(unit)
        return f"delete {unit.sort} and create it again{' at once' if at_once else ''}"

    def _pods_of(self, unit: Unit) -> list[Object]:
        found = self._api.get(PODS)
        assert found is not None
        return [
            pod
            for pod in found["items"]
            if pod["metadata"].get("labels", {}).get("app") == unit.sort
            or f"{PODS}/{pod['metadata']['name']}" in unit.uids
        ]

    # --- Judging ----------------------------------------------------------------------------------

    def lost(self, now: Snapshot) -> list[str]:
        """What was acknowledged and is not there. Pods may be gone where faults evict them."""
        found = {
            item["metadata"]["uid"]
            for kind in (now.pods, now.claims, now.jobs, now.deployments, now.sets)
            for item in kind
        }
        lost = []
        for unit in self.units:
            for path, uid in tuple(unit.uids.items()):
                if uid in found:
                    continue
                del unit.uids[path]
                if not (self.evictions and path.startswith(PODS)):
                    lost.append(f"{path} is lost")
        return lost


def _object(name: str, spec: Object) -> Object:
    return {"metadata": {"name": name}, "spec": spec}
