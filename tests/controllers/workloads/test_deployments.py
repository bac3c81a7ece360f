"""Deployments through the API, with their replica sets and pods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from controllers.workloads.stage import NAMESPACE, Stage, stage, template
from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.api.workloads import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import DEPLOYMENTS, PODS, REPLICA_SETS, JsonObject
from drayman.controllers.workloads.deployments import DeploymentController
from drayman.controllers.workloads.replica_sets import ReplicaSetController
from drayman.workloads.deployments.lineage import HISTORY, REVISION
from drayman.workloads.deployments.sizes import (
    limits_of,
    scaled,
    size_of_new,
    sizes_of_old,
)
from drayman.workloads.template_hash import LABEL

CONTROLLERS = (ReplicaSetController, DeploymentController)


def deployment(name: str = "web", replicas: int = 3, **spec: object) -> JsonObject:
    selector = {"matchLabels": {"app": name}}
    body = {"replicas": replicas, "selector": selector, "template": template(app=name), **spec}
    return {"metadata": {"name": name}, "spec": body}


def image(name: str) -> JsonObject:
    container = {"name": "main", "image": name}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


@asynccontextmanager
async def kubelet(place: Stage) -> AsyncIterator[None]:
    """Lets every pod run and be ready as soon as it is there."""

    async def run() -> None:
        done: set[str] = set()
        while True:
            pods = await place.until(
                PODS, lambda pods: any(p.metadata.uid not in done for p in pods)
            )
            for pod in pods:
                if pod.metadata.uid not in done:
                    done.add(pod.metadata.uid)
                    with suppress(NotFoundError):
                        await place.run_pod(pod)

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


def rolled_out(found: Deployment) -> bool:
    """What `kubectl rollout status` waits for."""
    status = found.status
    return (
        status.observed_generation >= found.metadata.generation
        and status.updated_replicas == found.spec.replicas
        and status.replicas == status.updated_replicas
        and status.available_replicas == status.updated_replicas
    )


def conditions(found: Deployment) -> dict[str, tuple[str, str]]:
    return {c.type_: (c.status, c.reason) for c in found.status.conditions}


def images(pods: list[Pod]) -> set[str]:
    return {pod.spec.containers[0].image for pod in pods}


async def test_a_deployment_rolls_out_and_says_so() -> None:
    """A replica set with the hash label, pods, counts, conditions and the revision."""
    async with stage(*CONTROLLERS) as place, kubelet(place):
        await place.create(DEPLOYMENTS, deployment())
        found = await place.until_one(DEPLOYMENTS, "web", rolled_out)
        found = await place.until_one(
            DEPLOYMENTS,
            "web",
            lambda d: conditions(d).get("Progressing") == ("True", "NewReplicaSetAvailable"),
        )
        assert conditions(found)["Available"] == ("True", "MinimumReplicasAvailable")
        assert found.metadata.annotations[REVISION] == "1"
        (owned,) = (await place.client.list(REPLICA_SETS, NAMESPACE)).items
        name = owned.metadata.labels[LABEL]
        assert owned.metadata.name == f"web-{name}"
        assert {pod.metadata.labels[LABEL] for pod in await place.pods()} == {name}
        await place.told("ScalingReplicaSet")


async def test_a_rolling_update_never_leaves_its_limits() -> None:
    """Through the whole update there are at most surge pods too many and never too few that serve."""
    async with stage(*CONTROLLERS) as place, kubelet(place):
        strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
        await place.create(DEPLOYMENTS, deployment(replicas=5, strategy=strategy))
        await place.until_one(DEPLOYMENTS, "web", rolled_out)
        await place.patch(DEPLOYMENTS, "web", image("j"))
        most = 0

        def watch(pods: list[Pod]) -> bool:
            nonlocal most
            # As in Kubernetes, a pod that is going counts no more, though it may still be there when the next one is made.
            most = max(most, sum(pod.metadata.deletion_timestamp is None for pod in pods))
            return len(pods) == 5 and images(pods) == {"j"}

        await place.until(PODS, watch)
        await place.until_one(DEPLOYMENTS, "web", rolled_out)
        assert most <= 6
        sets = (await place.client.list(REPLICA_SETS, NAMESPACE)).items
        assert sorted((s.spec.replicas, s.metadata.annotations[REVISION]) for s in sets) == [
            (0, "1"),
            (5, "2"),
        ]


async def test_a_rollback_uses_the_old_replica_set_again() -> None:
    """The template of revision 1 becomes revision 3, on the same replica set, which remembers that it was 1."""
    async with stage(*CONTROLLERS) as place, kubelet(place):
        await place.create(DEPLOYMENTS, deployment())
        await place.until_one(DEPLOYMENTS, "web", rolled_out)
        (first,) = (await place.client.list(REPLICA_SETS, NAMESPACE)).items
        await place.patch(DEPLOYMENTS, "web", image("j"))
        await place.until(PODS, lambda pods: len(pods) == 3 and images(pods) == {"j"})
        await place.patch(DEPLOYMENTS, "web", image("i"))
        await place.until(PODS, lambda pods: len(pods) == 3 and images(pods) == {"i"})
        again = await place.until_one(
            REPLICA_SETS, first.metadata.name, lambda s: s.metadata.annotations[REVISION] == "3"
        )
        assert again.metadata.annotations[HISTORY] == "1"
        await place.until_one(DEPLOYMENTS, "web", lambda d: d.metadata.annotations[REVISION] == "3")
        assert len((await place.client.list(REPLICA_SETS, NAMESPACE)).items) == 2


async def test_recreate_waits_until_everything_old_is_gone() -> None:
    """No new pod is made while an old one, though it is ending, is still there."""
    async with stage(*CONTROLLERS) as place:
        await place.create(DEPLOYMENTS, deployment(replicas=2, strategy={"type": "Recreate"}))
        old = await place.until(PODS, lambda pods: len(pods) == 2)
        for pod in old:
            await place.client.bind(pod.metadata.name, NAMESPACE, "node-1")
            await place.run_pod(pod)
        await place.until_one(DEPLOYMENTS, "web", rolled_out)
        await place.patch(DEPLOYMENTS, "web", image("j"))
        ending = await place.until(
            PODS, lambda pods: all(p.metadata.deletion_timestamp is not None for p in pods)
        )
        assert images(ending) == {"i"}
        await place.remove_pod(ending[0])
        await place.until_one(DEPLOYMENTS, "web", lambda d: d.status.terminating_replicas == 1)
        assert images(await place.pods()) == {"i"}
        await place.remove_pod(ending[1])
        await place.until(PODS, lambda pods: len(pods) == 2 and images(pods) == {"j"})


async def test_history_is_kept_up_to_its_limit() -> None:
    """Of the old replica sets only the newest so many stay."""
    async with stage(*CONTROLLERS) as place, kubelet(place):
        await place.create(DEPLOYMENTS, deployment(replicas=1, revisionHistoryLimit=1))
        for name in ("j", "k", "l"):
            await place.until_one(DEPLOYMENTS, "web", rolled_out)
            await place.patch(DEPLOYMENTS, "web", image(name))
            await place.until(PODS, lambda pods, n=name: images(pods) == {n})
        sets = await place.until(REPLICA_SETS, lambda sets: len(sets) == 2)
        assert sorted(s.metadata.annotations[REVISION] for s in sets) == ["3", "4"]


async def test_a_paused_deployment_changes_its_size_but_not_its_template() -> None:
    """While paused the new template waits; after that it is rolled out."""
    async with stage(*CONTROLLERS) as place, kubelet(place):
        await place.create(DEPLOYMENTS, deployment(replicas=2))
        await place.until_one(DEPLOYMENTS, "web", rolled_out)
        await place.patch(DEPLOYMENTS, "web", {"spec": {"paused": True}})
        await place.until_one(
            DEPLOYMENTS,
            "web",
            lambda d: conditions(d)["Progressing"] == ("Unknown", "DeploymentPaused"),
        )
        await place.patch(DEPLOYMENTS, "web", image("j"))
        await place.scale(DEPLOYMENTS, "web", 4)
        pods = await place.until(PODS, lambda pods: len(pods) == 4)
        assert images(pods) == {"i"}
        await place.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
        await place.until(PODS, lambda pods: len(pods) == 4 and images(pods) == {"j"})


async def test_a_deployment_that_does_not_get_on_says_so() -> None:
    """Past its progress deadline Progressing is False, for kubectl rollout status to end."""
    async with stage(*CONTROLLERS) as place:
        await place.create(DEPLOYMENTS, deployment(progressDeadlineSeconds=60))
        await place.until_one(DEPLOYMENTS, "web", lambda d: d.status.updated_replicas == 3)
        place.clock.ahead = 120.0
        await place.patch(DEPLOYMENTS, "web", {"metadata": {"annotations": {"look": "again"}}})
        found = await place.until_one(
            DEPLOYMENTS,
            "web",
            lambda d: conditions(d)["Progressing"] == ("False", "ProgressDeadlineExceeded"),
        )
        assert conditions(found)["Available"] == ("False", "MinimumReplicasUnavailable")


async def test_a_large_deployment_comes_to_be() -> None:
    """Six hundred replicas, each once."""
    async with stage(*CONTROLLERS) as place:
        await place.create(DEPLOYMENTS, deployment(replicas=600))
        await place.until_one(DEPLOYMENTS, "web", lambda d: d.status.replicas == 600)
        assert len(await place.pods()) == 600


def _deployment(replicas: int, surge: object = "25%", unavailable: object = "25%") -> Deployment:
    rolling = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    strategy = DeploymentStrategy(type_="RollingUpdate", rolling_update=rolling)
    return Deployment(spec=DeploymentSpec(replicas=replicas, strategy=strategy))


def _set(name: str, size: int, available: int | None = None, most: int = 0) -> ReplicaSet:
    notes = {"deployment.kubernetes.io/max-replicas": str(most)} if most else {}
    have = size if available is None else available
    return ReplicaSet(
        metadata=ObjectMeta(name=name, annotations=notes),
        spec=ReplicaSetSpec(replicas=size),
        status=ReplicaSetStatus(replicas=size, available_replicas=have),
    )


LIMITS = {
    "a share of surge is rounded up, one of unavailable down": (10, "25%", "25%", (3, 2)),
    "numbers are taken as they are": (10, 4, 0, (4, 0)),
    "where both come out as nothing one may be missing": (1, 0, "25%", (0, 1)),
    "no more can be unavailable than there are": (2, 0, 5, (0, 2)),
}


@pytest.mark.parametrize("case", LIMITS)
def test_limits_of_a_rolling_update(case: str) -> None:
    """maxSurge and maxUnavailable as numbers."""
    replicas, surge, unavailable, expected = LIMITS[case]
    assert limits_of(_deployment(replicas, surge, unavailable)) == expected


GROWTH = {
    "the first grows to its full size": (4, None, [], 4),
    "beside an old one there is room for the surge": (4, _set("new", 0), [_set("old", 4)], 1),
    "no room is left": (4, _set("new", 1), [_set("old", 4)], 1),
    "the old one has made room": (4, _set("new", 1), [_set("old", 2)], 3),
    "too large for the deployment": (4, _set("new", 6), [], 4),
}


@pytest.mark.parametrize("case", GROWTH)
def test_the_new_replica_set_grows_into_the_room_there_is(case: str) -> None:
    """With a surge of a quarter."""
    replicas, new, old, expected = GROWTH[case]
    assert size_of_new(_deployment(replicas), new, old) == expected


SHRINKING = {
    "as many as may be missing": (4, _set("new", 1, 0), [_set("old", 4)], {"old": 3}),
    "none while the new ones do not serve": (4, _set("new", 2, 0), [_set("old", 3)], {}),
    "what does not serve goes first": (
        4,
        _set("new", 1, 1),
        [_set("older", 2, 2), _set("old", 2, 0)],
        {"old": 0},
    ),
    "all of them once the new one serves": (4, _set("new", 4), [_set("old", 1)], {"old": 0}),
}


@pytest.mark.parametrize("case", SHRINKING)
def test_old_replica_sets_shrink_by_what_may_be_missing(case: str) -> None:
    """With a quarter unavailable."""
    replicas, new, old, expected = SHRINKING[case]
    assert sizes_of_old(_deployment(replicas), new, old) == expected


SCALING = {
    "the only active one takes all": (7, _set("new", 3), [_set("old", 0)], {"new": 7}),
    "each grows by its share": (
        20,
        _set("new", 5, 2, most=13),
        [_set("old", 8, 8, most=13)],
        {"old": 15, "new": 10},
    ),
    "each shrinks by its share": (
        5,
        _set("new", 5, 2, most=13),
        [_set("old", 8, 8, most=13)],
        {"old": 4, "new": 3},
    ),
    "to nothing": (0, _set("new", 2, 1, most=5), [_set("old", 3, most=5)], {"old": 0, "new": 0}),
}


@pytest.mark.parametrize("case", SCALING)
def test_a_deployment_scaled_amid_a_rollout_keeps_its_proportions(case: str) -> None:
    """The total is what the deployment may have at most, its surge included."""
    replicas, new, old, expected = SCALING[case]
    assert scaled(_deployment(replicas), new, old) == expected
