"""What a pod asks for, added up."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.placement.fit.requests import requests_of
from placement.fit.objects import container, make_pod, needs

MI = 1024 * 1024


def sidecar(requests: dict[str, str]) -> dict[str, Any]:
    return container(requests, restartPolicy="Always")


CASES: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "nothing": ({}, {}),
    "containers add up": (
        {"containers": [container({"cpu": "100m"}), container({"cpu": "1", "memory": "1Mi"})]},
        {"cpu": 1100, "memory": MI},
    ),
    "the largest init container counts": (
        {
            "containers": [container({"cpu": "1"})],
            "initContainers": [container({"cpu": "3"}), container({"cpu": "2"})],
        },
        {"cpu": 3000},
    ),
    "an init container smaller than the containers does not count": (
        {"containers": [container({"cpu": "2"})], "initContainers": [container({"cpu": "1"})]},
        {"cpu": 2000},
    ),
    "sidecars add to the containers": (
        {"containers": [container({"cpu": "2"})], "initContainers": [sidecar({"cpu": "1"})]},
        {"cpu": 3000},
    ),
    "an init container runs with the sidecars before it": (
        {
            "containers": [container({"cpu": "1"})],
            "initContainers": [sidecar({"cpu": "1"}), container({"cpu": "5"})],
        },
        {"cpu": 6000},
    ),
    "an init container does not run with the sidecars after it": (
        {
            "containers": [container({"cpu": "1"})],
            "initContainers": [container({"cpu": "5"}), sidecar({"cpu": "1"})],
        },
        {"cpu": 5000},
    ),
    "overhead comes on top": (
        {"containers": [container({"cpu": "1"})], "overhead": {"cpu": "250m", "memory": "1Mi"}},
        {"cpu": 1250, "memory": MI},
    ),
    "the pod's own requests replace the sum": (
        {
            "containers": [container({"cpu": "1", "memory": "1Mi"})],
            "resources": {"requests": {"cpu": "3"}},
            "overhead": {"cpu": "1"},
        },
        {"cpu": 4000, "memory": MI},
    ),
    "a pod cannot ask for extended resources as a whole": (
        {
            "containers": [container({"example.com/gpu": "1"})],
            "resources": {"requests": {"example.com/gpu": "9", "hugepages-2Mi": "4Mi"}},
        },
        {"example.com/gpu": 1, "hugepages-2Mi": 4 * MI},
    ),
    "fractions are rounded up after adding": (
        {"containers": [container({"cpu": "500u"}), container({"cpu": "500u"})]},
        {"cpu": 1},
    ),
    "half a byte is one": ({"containers": [container({"memory": "500m"})]}, {"memory": 1}),
    "what claims took of the node counts": (
        {
            "containers": [container({"cpu": "1"})],
            "status": {
                "nodeAllocatableResourceClaimStatuses": [
                    {"resourceClaimName": "c", "resources": {"cpu": "2"}}
                ]
            },
        },
        {"cpu": 3000},
    ),
}


@pytest.mark.parametrize(("fields", "want"), CASES.values(), ids=CASES)
def test_sums(fields: dict[str, Any], want: dict[str, int]) -> None:
    """The requests of a pod are what Kubernetes holds it to."""
    assert requests_of(make_pod(**fields)).amounts == want


SCORING: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "a container that says nothing": ({}, (100, 200 * MI)),
    "each container that says nothing": (
        {"containers": [container(), container({"cpu": "1"})]},
        (1100, 400 * MI),
    ),
    "a zero is said": ({"containers": [container({"cpu": "0"})]}, (0, 200 * MI)),
    "a pod that says all itself": (
        {"resources": {"requests": {"cpu": "1", "memory": "5Mi"}}},
        (1000, 5 * MI),
    ),
    "a pod that says half itself": ({"resources": {"requests": {"cpu": "1"}}}, (1000, 200 * MI)),
    "a pod that leaves the other half to one container": (
        {
            "containers": [container({"memory": "5Mi"}), container()],
            "resources": {"requests": {"cpu": "1"}},
        },
        (1000, 5 * MI),
    ),
}


@pytest.mark.parametrize(("fields", "want"), SCORING.values(), ids=SCORING)
def test_scoring_sums(fields: dict[str, Any], want: tuple[int, int]) -> None:
    """For scoring, containers that say nothing count with a usual size."""
    requests = requests_of(make_pod(**fields))
    assert (requests.scoring_cpu, requests.scoring_memory) == want


def test_only_countable_resources_are_held_against_nodes() -> None:
    """Extended resources and huge pages count; names that no node can offer do not."""
    shape = needs({"example.com/gpu": "2", "hugepages-1Gi": "1Gi", "nonsense": "1"}).shape
    assert shape.extended == (("example.com/gpu", 2), ("hugepages-1Gi", 1024**3))


def test_more_from_devices() -> None:
    """What devices take of the node adds to the pod, but for what the pod says as a whole."""
    plain = needs({"cpu": "1"}).plus({"cpu": 500, "memory": 7, "example.com/x": 1}).shape
    assert (plain.cpu, plain.memory, plain.extended) == (1500, 7, (("example.com/x", 1),))
    whole = needs(resources={"requests": {"cpu": "2"}}).plus({"cpu": 500, "memory": 7}).shape
    assert (whole.cpu, whole.memory) == (2000, 7)
