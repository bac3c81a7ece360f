"""Disruption budgets through the API, and the evictions that go by them."""

from __future__ import annotations

import pytest

from controllers.workloads.stage import NAMESPACE, stage, template
from drayman.api.workloads import PodDisruptionBudget, PodDisruptionBudgetSpec
from drayman.cluster.errors import TooManyRequestsError
from drayman.cluster.resources import (
    DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICE_ACCOUNTS,
    JsonObject,
)
from drayman.controllers.workloads.disruption import DisruptionController
from drayman.controllers.workloads.replica_sets import ReplicaSetController, ReplicationManager
from drayman.controllers.workloads.service_accounts import ServiceAccountController
from drayman.workloads.disruption import NoScaleError, expected


def budget(**spec: object) -> JsonObject:
    selector = {"matchLabels": {"app": "web"}}
    return {"metadata": {"name": "guard"}, "spec": {"selector": selector, **spec}}


def replica_set(replicas: int) -> JsonObject:
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(app="web"),
    }
    return {"metadata": {"name": "web"}, "spec": spec}


async def test_evictions_go_by_the_budget() -> None:
    """Of three pods one may be missing: the first eviction passes, the second waits until the pod is replaced."""
    async with stage(ReplicaSetController, DisruptionController) as place:
        await place.create(DISRUPTION_BUDGETS, budget(maxUnavailable=1))
        await place.create(REPLICA_SETS, replica_set(3))
        pods = await place.until(PODS, lambda pods: len(pods) == 3)
        for pod in pods:
            await place.run_pod(pod)
        found = await place.until_one(
            DISRUPTION_BUDGETS, "guard", lambda b: b.status.disruptions_allowed == 1
        )
        status = found.status
        assert (status.expected_pods, status.current_healthy, status.desired_healthy) == (3, 3, 2)
        assert status.conditions[0].reason == "SufficientPods"
        await place.client.evict(pods[0].metadata.name, NAMESPACE)
        with pytest.raises(TooManyRequestsError):
            await place.client.evict(pods[1].metadata.name, NAMESPACE)
        replaced = await place.until(
            PODS, lambda now: len(now) == 3 and pods[0].metadata.uid not in _uids(now)
        )
        await place.until_one(DISRUPTION_BUDGETS, "guard", lambda b: not b.status.disrupted_pods)
        fresh = next(p for p in replaced if not p.status.conditions)
        await place.run_pod(fresh)
        await place.until_one(
            DISRUPTION_BUDGETS, "guard", lambda b: b.status.disruptions_allowed == 1
        )
        await place.client.evict(pods[1].metadata.name, NAMESPACE)


async def test_a_new_size_changes_the_budget() -> None:
    """A share of the replicas follows their number."""
    async with stage(ReplicaSetController, DisruptionController) as place:
        await place.create(DISRUPTION_BUDGETS, budget(minAvailable="50%"))
        await place.create(REPLICA_SETS, replica_set(2))
        await place.until_one(DISRUPTION_BUDGETS, "guard", lambda b: b.status.desired_healthy == 1)
        await place.scale(REPLICA_SETS, "web", 5)
        await place.until_one(DISRUPTION_BUDGETS, "guard", lambda b: b.status.desired_healthy == 3)


async def test_pods_of_replication_controllers_have_a_number_too() -> None:
    """A share of their replicas can be protected."""
    async with stage(ReplicationManager, DisruptionController) as place:
        await place.create(DISRUPTION_BUDGETS, budget(minAvailable="50%"))
        body = {"replicas": 4, "template": template(app="web")}
        await place.create(REPLICATION_CONTROLLERS, {"metadata": {"name": "web"}, "spec": body})
        await place.until_one(DISRUPTION_BUDGETS, "guard", lambda b: b.status.desired_healthy == 2)


def _uids(pods: list) -> set[str]:
    return {pod.metadata.uid for pod in pods}


EXPECTED = {
    "a number that may be missing": ({"max_unavailable": 1}, {"a": 4}, (4, 3)),
    "a share that may be missing, rounded up": ({"max_unavailable": "30%"}, {"a": 4}, (4, 2)),
    "all may be missing": ({"max_unavailable": "100%"}, {"a": 4}, (4, 0)),
    "a number that must be there": ({"min_available": 2}, None, (0, 2)),
    "a share that must be there, rounded up": ({"min_available": "50%"}, {"a": 2, "b": 3}, (5, 3)),
    "nothing is asked for": ({}, None, (0, 0)),
}


@pytest.mark.parametrize("case", EXPECTED)
def test_how_many_pods_must_be_healthy(case: str) -> None:
    """By number or by share of the replicas that the controllers should have."""
    spec, scales, wanted = EXPECTED[case]
    given = PodDisruptionBudget(spec=PodDisruptionBudgetSpec(**spec))
    assert expected(given, [], scales) == wanted


def test_a_share_of_nobody_knows_what_is_refused() -> None:
    """Where a controller has no size the budget says so instead of allowing everything."""
    given = PodDisruptionBudget(spec=PodDisruptionBudgetSpec(max_unavailable="30%"))
    with pytest.raises(NoScaleError):
        expected(given, [], None)


async def test_every_namespace_has_a_default_account() -> None:
    """Made for namespaces that are there and made again when it is deleted."""
    async with stage(ServiceAccountController) as place:
        await place.client.delete(SERVICE_ACCOUNTS, "default", NAMESPACE)
        await place.until(SERVICE_ACCOUNTS, lambda accounts: len(accounts) == 1)
        page = await place.client.list(SERVICE_ACCOUNTS)
        assert {"kube-system", NAMESPACE} <= {a.metadata.namespace for a in page.items}
