"""Objects that every Kubernetes API server takes."""

from __future__ import annotations

from drayman.api.meta import ObjectMeta
from drayman.api.resource import DeviceClass, ResourceClaim
from drayman.api.struct import Json
from drayman.cluster.resources import JsonObject, generic

DEPLOYMENTS = generic("apps/v1", "deployments", "Deployment")
POD_VALUES = generic("v1", "pods", "Pod")


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> JsonObject:
    metadata: dict[str, Json] = {"name": name}
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata, "data": data}


def pod(name: str, **metadata: Json) -> JsonObject:
    """A pod that waits for somebody to place it."""
    return {
        "metadata": {"name": name, **metadata},
        "spec": {
            # Not the default scheduler, so that a cluster that has one leaves the pod alone.
            "schedulerName": "nobody",
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "example.com/image:1"}],
        },
    }


def deployment(name: str, replicas: int) -> JsonObject:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod("unused")["spec"]}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def claim(name: str, namespace: str) -> ResourceClaim:
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace=namespace))


def device_class(name: str) -> DeviceClass:
    return DeviceClass(metadata=ObjectMeta(name=name))
