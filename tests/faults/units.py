"""What a random workload is made of: claims of every sort, and pods that use them, alone, together or as part of something larger."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from faults.snapshot import Object

NAMESPACE: Final = "default"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS: Final = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
TEMPLATES: Final = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaimtemplates"
JOBS: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
NAMESPACES: Final = "/api/v1/namespaces"
SETS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"

GANG: Final = "drayman.dev/gang"
GANG_NAME: Final = "drayman.dev/gang-name"
GANG_SIZE: Final = 3

OTHER_SCHEDULER: Final = "other"
SCHEDULERS: Final = ("default-scheduler", OTHER_SCHEDULER)
"""Both run all the time, on the same devices."""


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

    name: str
    objects: list[tuple[str, Object]]
    cost: dict[str, int]
    uids: dict[str, str] = field(default_factory=dict)
    """What exists of it, by path."""
    is_one: bool = False
    """Whether one scheduler has to start all of its pods."""

    def paths(self, collection: str = "") -> list[str]:
        return [path for path in self.uids if path.startswith(collection)]


def pod_spec(claims: list[Object], resources: Object | None = None, **more: object) -> Object:
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


def from_template(template: str) -> list[Object]:
    return [{"name": "devices", "resourceClaimTemplateName": template}]


def as_object(name: str, spec: Object) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


class Maker:
    """Makes units of a random sort."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._count = 0

    def make(self, others: Sequence[Callable[[str], Unit]] = ()) -> Unit:
        """A unit of any sort: every other one is from `others`, where there are some."""
        self._count += 1
        if others and self._rng.random() < 0.5:
            return self._finished(self._rng.choice(others))
        make: Callable[[str], Unit] = self._rng.choice(
            (
                self._pod,
                self._sharers,
                self._extended,
                self._short,
                self._job,
                self._deployment,
                self._set,
                self._scratch,
                self._tenant,
                self._gang,
            )
        )
        return self._finished(make)

    def _finished(self, make: Callable[[str], Unit]) -> Unit:
        unit = make(f"{make.__name__.lstrip('_').replace('_', '-')}-{self._count}")
        scheduler = self._rng.choice(SCHEDULERS) if unit.is_one else ""
        unit.objects = [
            (path, self._assigned(path, body, scheduler or self._rng.choice(SCHEDULERS)))
            for path, body in unit.objects
        ]
        return unit

    def _assigned(self, collection: str, body: Object, scheduler: str) -> Object:
        """With one of the schedulers for the pods that it is or makes."""
        spec = body.get("spec", {})
        if collection in (JOBS, DEPLOYMENTS, SETS):
            template = spec["template"]
            template = {**template, "spec": {**template["spec"], "schedulerName": scheduler}}
            return {**body, "spec": {**spec, "template": template}}
        if collection.endswith("/pods"):
            return {**body, "spec": {**spec, "schedulerName": scheduler}}
        return body

    def _spec_name(self) -> str:
        return self._rng.choice(tuple(SPECS))

    def _pod(self, name: str) -> Unit:
        template = self._spec_name()
        claims = from_template(template)
        cost = SPECS[template][1]
        if self._rng.random() < 0.3:
            claims.append({"name": "nic", "resourceClaimTemplateName": "nic"})
            if "gpu.nvidia.com" in cost:  # no node has both
                claims.pop()
        return Unit(name, [(PODS, as_object(name, pod_spec(claims)))], cost)

    def _sharers(self, name: str) -> Unit:
        """A claim of its own that several pods use."""
        spec, cost = SPECS[self._spec_name()]
        pod = pod_spec([{"name": "devices", "resourceClaimName": name}])
        count = self._rng.randint(1, 3)
        pods = [(PODS, as_object(f"{name}-{number}", pod)) for number in range(count)]
        return Unit(name, [(CLAIMS, as_object(name, spec)), *pods], cost)

    def _extended(self, name: str) -> Unit:
        limits = {"limits": {"example.com/gpu": "1"}}
        return Unit(name, [(PODS, as_object(name, pod_spec([], limits)))], {"gpu.example.com": 1})

    def _scratch(self, name: str) -> Unit:
        """A pod with a volume that is made for it and goes with it."""
        template = self._spec_name()
        wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        scratch = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": wanted}}}
        pod = as_object(name, pod_spec(from_template(template), volumes=[scratch]))
        return Unit(name, [(PODS, pod)], SPECS[template][1])

    def _short(self, name: str) -> Unit:
        """A pod that ends by itself."""
        template = self._spec_name()
        pod = as_object(name, pod_spec(from_template(template), restartPolicy="Never"))
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
                "spec": pod_spec(from_template(template), restartPolicy="Never"),
            },
        }
        cost = {resource: 2 * count for resource, count in SPECS[template][1].items()}
        return Unit(name, [(JOBS, as_object(name, spec))], cost)

    def _deployment(self, name: str) -> Unit:
        return self._replicated(name, DEPLOYMENTS)

    def _set(self, name: str) -> Unit:
        """Its pods come back under the names of those that were deleted."""
        return self._replicated(name, SETS)

    def _replicated(self, name: str, collection: str) -> Unit:
        template = self._rng.choice(("gpu", "share", "nic", "part", "extended"))
        limits = {"limits": {"example.com/gpu": "1"}}
        pod = pod_spec([], limits) if template == "extended" else pod_spec(from_template(template))
        spec: Object = {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        }
        cost = {"gpu.example.com": 1} if template == "extended" else SPECS[template][1]
        cost = {resource: 2 * count for resource, count in cost.items()}
        return Unit(name, [(collection, as_object(name, spec))], cost)

    def _gang(self, name: str) -> Unit:
        """Pods that start together."""
        template = self._rng.choice(("gpu", "share", "part"))
        stated = {GANG: str(GANG_SIZE), GANG_NAME: name}
        pods = []
        for number in range(GANG_SIZE):
            pod = as_object(f"{name}-{number}", pod_spec(from_template(template)))
            pod["metadata"]["annotations"] = stated
            pods.append((PODS, pod))
        cost = {resource: GANG_SIZE * count for resource, count in SPECS[template][1].items()}
        return Unit(name, pods, cost, is_one=True)

    def _tenant(self, name: str) -> Unit:
        """A namespace with all that is in it."""
        template = self._spec_name()
        spec, cost = SPECS[template]
        pods, templates, claims = (
            path.replace(f"/namespaces/{NAMESPACE}/", f"/namespaces/{name}/")
            for path in (PODS, TEMPLATES, CLAIMS)
        )
        shared = [{"name": "devices", "resourceClaimName": "shared"}]
        objects = [
            (NAMESPACES, {"metadata": {"name": name}}),
            (templates, as_object(template, {"spec": spec})),
            (claims, as_object("shared", spec)),
            (pods, as_object("own", pod_spec(from_template(template)))),
            (pods, as_object("sharing", pod_spec(shared))),
        ]
        return Unit(name, objects, {resource: 2 * count for resource, count in cost.items()})
