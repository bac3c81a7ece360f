"""Pods for two nodes with eight GPUs each: six for the first, six for the second, and none of that left for the third."""

from __future__ import annotations

from typing import Any, Final

Object = dict[str, Any]


def template(name: str, count: int = 1, selector: str = "") -> Object:
    exactly: Object = {"deviceClassName": "gpu.example.com", "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    devices = {"requests": [{"name": "gpu", "exactly": exactly}]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": devices}},
    }


def pod_spec(template_name: str) -> Object:
    return {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template_name}],
        "containers": [
            {"name": "main", "image": "app", "resources": {"claims": [{"name": "gpu"}]}}
        ],
    }


def pod(name: str, template_name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": pod_spec(template_name),
    }


def job(name: str, template_name: str, pods: int) -> Object:
    spec = {**pod_spec(template_name), "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": spec}},
    }


def deployment(name: str, spec: Object, replicas: int) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def listed(*objects: Object) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


SELECTOR: Final = "device.attributes['gpu.example.com'].modle == 'x'"
FULL: Final = listed(template("six", 6), pod("first", "six"), pod("second", "six"))
"""What takes six of the eight GPUs of each node."""
WAITING: Final = listed(
    template("misspelt", selector=SELECTOR),
    pod("third", "six"),
    pod("misspelt", "misspelt"),
    job("sweep", "six", pods=2),
)
