"""The status of pods, and resizing: what may be written through these endpoints."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.kinds.circumstances import created, make_context, pod, refusals, resource_of
from drayman.apiserver.served.strategy import Object, Strategy

PODS = resource_of("", "Pod")
Causes = set[tuple[str, str]]
ENDED = {"terminated": {"exitCode": 0}}
RUNNING = {"running": {}}


def strategy_of(part: str) -> Strategy:
    return next(sub.strategy for sub in PODS.subresources if sub.name == part and sub.strategy)


def stored(**spec: Any) -> Object:
    return created(PODS, pod(**spec), make_context())


def refused(part: str, new: Object, old: Object) -> Causes:
    """The causes for which an update through an endpoint is refused."""
    strategy, context = strategy_of(part), make_context()
    new = copy.deepcopy(new)
    strategy.prepare_for_update(new, old, context)
    return refusals(strategy.validate_update(new, old, context))


ALLOCATABLE = "status.nodeAllocatableResourceClaimStatuses[0]"
STATUSES: dict[str, tuple[Object, Causes]] = {
    "condition of somebody else": ({"conditions": [{"type": "example.com/a"}]}, set()),
    "condition without a name": (
        {"conditions": [{"type": "a b", "observedGeneration": -1}]},
        {
            ("status.conditions[0].Type", "Invalid"),
            ("status.conditions[0].observedGeneration", "Invalid"),
        },
    ),
    "addresses of both families": (
        {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}]},
        set(),
    ),
    "two addresses of one family": (
        {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]},
        {("status.podIPs", "Invalid")},
    ),
    "address that is none": ({"podIPs": [{"ip": "x"}]}, {("status.podIPs[0]", "Invalid")}),
    "another host": (
        {"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]},
        {("status.hostIPs[0].ip", "Invalid")},
    ),
    "nothing taken from the node": (
        {"nodeAllocatableResourceClaimStatuses": [{"containers": ["main"]}]},
        {
            (f"{ALLOCATABLE}.resourceClaimName", "Required"),
            (f"{ALLOCATABLE}.resourceClaimName", "Invalid"),
            (f"{ALLOCATABLE}.resources", "Required"),
        },
    ),
}


@pytest.mark.parametrize(("status", "causes"), STATUSES.values(), ids=STATUSES.keys())
def test_a_status_is_refused_at_its_field(status: Object, causes: Causes) -> None:
    """Each broken rule of a status is reported at its field."""
    old = stored()
    new = {**old, "status": {**old["status"], **status}}
    assert refused("status", new, old) == causes


@pytest.mark.parametrize(
    ("policy", "code", "may"),
    [("Always", 0, True), ("Never", 1, False), ("OnFailure", 1, True), ("OnFailure", 0, False)],
)
def test_an_ended_container_starts_again_only_if_its_policy_says_so(
    policy: str, code: int, may: bool
) -> None:
    """A status cannot say that a container runs again which must not."""
    old = stored(restartPolicy=policy)
    old["status"]["containerStatuses"] = [
        {"name": "main", "state": {"terminated": {"exitCode": code}}}
    ]
    new = copy.deepcopy(old)
    new["status"]["containerStatuses"][0]["state"] = RUNNING
    causes = set() if may else {("status.containerStatuses[0].state", "Forbidden")}
    assert refused("status", new, old) == causes
    assert refused("status", old, old) == set()


def test_what_was_observed_of_a_condition_stays() -> None:
    """A client that does not know of a condition's generation does not clear it."""
    old = stored()
    old["status"] |= {
        "observedGeneration": 3,
        "conditions": [{"type": "Ready", "status": "False", "observedGeneration": 2}],
    }
    new = copy.deepcopy(old)
    new["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    del new["status"]["observedGeneration"]
    strategy_of("status").prepare_for_update(new, old, make_context())
    assert new["status"]["observedGeneration"] == 3
    assert new["status"]["conditions"][0]["observedGeneration"] == 2


MAIN = "spec.containers[0]"
RESIZES: dict[str, tuple[Object, Causes]] = {
    "more of it": (
        {"requests": {"cpu": "2", "example.com/x": "1"}, "limits": {"example.com/x": "1"}},
        set(),
    ),
    "a request less": (
        {"requests": {"example.com/x": "1"}, "limits": {"example.com/x": "1"}},
        {(f"{MAIN}.resources.requests", "Forbidden"), ("spec", "Invalid")},
    ),
    "more of something else": (
        {"requests": {"cpu": "1", "example.com/x": "2"}, "limits": {"example.com/x": "2"}},
        {("spec", "Forbidden")},
    ),
}


@pytest.mark.parametrize(("resources", "causes"), RESIZES.values(), ids=RESIZES.keys())
def test_only_processor_and_memory_are_resized(resources: Object, causes: Causes) -> None:
    """A resize changes amounts of processor and memory, takes none away and keeps the quality of service."""
    old = stored()
    old["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1", "example.com/x": "1"},
        "limits": {"example.com/x": "1"},
    }
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["resources"] = resources
    assert refused("resize", new, old) == causes


def test_a_resize_keeps_the_containers() -> None:
    """Containers are neither added nor renamed by a resize."""
    old = stored()
    new = copy.deepcopy(old)
    new["spec"]["containers"].append({"name": "b", "image": "i"})
    assert ("spec.containers", "Forbidden") in refused("resize", new, old)
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["name"] = "other"
    assert ("spec.containers[0].name", "Forbidden") in refused("resize", new, old)
