"""Pods and nodes from the few words that a case is about."""

from __future__ import annotations

from itertools import count
from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.placement.fit import NodeFacts, PodNeeds

_numbers = count()

ROOMY = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def container(requests: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    return {"name": f"c{next(_numbers)}", "resources": {"requests": requests or {}}, **fields}


def make_pod(
    requests: dict[str, str] | None = None,
    *,
    name: str = "",
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    deleted: bool = False,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """A pod; `requests` are those of its one container unless containers are given."""
    number = next(_numbers)
    metadata: dict[str, Any] = {
        "name": name or f"pod-{number}",
        "namespace": namespace,
        "uid": f"uid-{number}",
        "labels": labels or {},
    }
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec.setdefault("containers", [container(requests)])
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": status or {}})


def needs(requests: dict[str, str] | None = None, **fields: Any) -> PodNeeds:
    return PodNeeds.of(make_pod(requests, **fields))


def make_node(
    name: str = "node-a",
    *,
    labels: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    **spec: Any,
) -> Node:
    return convert(
        Node,
        {
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            },
            "spec": spec,
            "status": {"allocatable": ROOMY if allocatable is None else allocatable},
        },
    )


def facts(name: str = "node-a", **fields: Any) -> NodeFacts:
    return NodeFacts.of(make_node(name, **fields))


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def selects(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


def near(selector: dict[str, Any] | None, topology: str = "zone", **fields: Any) -> dict[str, Any]:
    """A term about the pods that a selector matches, in a domain of a topology."""
    term = {"topologyKey": topology, **fields}
    return term if selector is None else {"labelSelector": selector, **term}


def required(*terms: dict[str, Any], anti: bool = False) -> dict[str, Any]:
    field = "podAntiAffinity" if anti else "podAffinity"
    return {field: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def preferred(weight: int, term: dict[str, Any], *, anti: bool = False) -> dict[str, Any]:
    field = "podAntiAffinity" if anti else "podAffinity"
    weighed = [{"weight": weight, "podAffinityTerm": term}]
    return {field: {"preferredDuringSchedulingIgnoredDuringExecution": weighed}}


def spread(
    selector: dict[str, Any] | None,
    topology: str = "zone",
    *,
    skew: int = 1,
    hard: bool = True,
    **fields: Any,
) -> dict[str, Any]:
    constraint = {
        "maxSkew": skew,
        "topologyKey": topology,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        **fields,
    }
    return constraint if selector is None else {"labelSelector": selector, **constraint}
