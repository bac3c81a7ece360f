"""StatefulSets through the API: order, identity, claims, updates."""

from __future__ import annotations

import pytest

from controllers.workloads.stage import NAMESPACE, Stage, stage, template
from drayman.api.core import Pod
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import (
    CONTROLLER_REVISIONS,
    PODS,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    JsonObject,
)
from drayman.controllers.workloads.protection import VolumeClaimProtectionController
from drayman.controllers.workloads.stateful_sets import StatefulSetController
from drayman.workloads.revisions import POD_LABEL
from drayman.workloads.stateful_sets.identity import ordinal_of

CONTROLLERS = (StatefulSetController, VolumeClaimProtectionController)


def stateful_set(replicas: int = 3, **spec: object) -> JsonObject:
    selector = {"matchLabels": {"app": "db"}}
    body = {
        "replicas": replicas,
        "serviceName": "peers",
        "selector": selector,
        "template": template(app="db"),
        **spec,
    }
    return {"metadata": {"name": "db"}, "spec": body}


def claim_template() -> JsonObject:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"metadata": {"name": "data"}, "spec": spec}


def image(name: str) -> JsonObject:
    container = {"name": "main", "image": name}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


def names(pods: list[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


async def grow(place: Stage, count: int, first: int = 0) -> None:
    """Lets pods come up one after the other, each ready before the next is there."""
    for ordinal in range(first, count):
        pods = await place.until(PODS, lambda pods, o=ordinal: f"db-{o}" in names(pods))
        assert names(pods) == [f"db-{number}" for number in range(first, ordinal + 1)]
        await place.run_pod(pods[-1])


async def test_pods_come_up_in_order_with_an_identity() -> None:
    """Each is made when the one before is ready, with its name, labels, host name and subdomain."""
    async with stage(StatefulSetController) as place:
        await place.create(STATEFUL_SETS, stateful_set())
        await grow(place, 3)
        found = await place.until_one(STATEFUL_SETS, "db", lambda s: s.status.ready_replicas == 3)
        assert found.status.current_revision == found.status.update_revision
        raw = await place.client.get(PODS.as_values(), "db-1", NAMESPACE)
        assert raw["spec"]["hostname"] == "db-1"
        assert raw["spec"]["subdomain"] == "peers"
        labels = raw["metadata"]["labels"]
        assert labels["statefulset.kubernetes.io/pod-name"] == "db-1"
        assert labels["apps.kubernetes.io/pod-index"] == "1"
        assert labels[POD_LABEL] == found.status.update_revision


async def test_pods_go_in_reverse_order() -> None:
    """Scaled down, the highest goes first, and the next one only when that is gone."""
    async with stage(StatefulSetController) as place:
        await place.create(STATEFUL_SETS, stateful_set())
        await grow(place, 3)
        for pod in await place.pods():
            await place.client.bind(pod.metadata.name, NAMESPACE, "node-1")
        await place.scale(STATEFUL_SETS, "db", 0)
        for left in (2, 1, 0):
            pods = await place.until(
                PODS, lambda pods: any(p.metadata.deletion_timestamp for p in pods)
            )
            ending = [p for p in pods if p.metadata.deletion_timestamp]
            assert names(ending) == [f"db-{left}"]
            await place.remove_pod(ending[0])
            await place.until(PODS, lambda pods, n=left: len(pods) == n)


async def test_parallel_sets_do_not_wait() -> None:
    """All pods come at once, from the first ordinal that is asked for, and go at once."""
    async with stage(StatefulSetController) as place:
        await place.create(
            STATEFUL_SETS, stateful_set(podManagementPolicy="Parallel", ordinals={"start": 5})
        )
        pods = await place.until(PODS, lambda pods: len(pods) == 3)
        assert names(pods) == ["db-5", "db-6", "db-7"]
        await place.scale(STATEFUL_SETS, "db", 0)
        await place.until(PODS, lambda pods: not pods)


async def test_an_update_goes_from_the_highest_to_the_partition() -> None:
    """With a partition of one the first pod keeps its template; without, it follows, and the update ends."""
    async with stage(StatefulSetController) as place:
        await place.create(STATEFUL_SETS, stateful_set(2))
        await grow(place, 2)
        before = await place.until_one(STATEFUL_SETS, "db", lambda s: s.status.ready_replicas == 2)
        rolling = {"updateStrategy": {"rollingUpdate": {"partition": 1}}}
        await place.patch(STATEFUL_SETS, "db", {"spec": rolling})
        await place.patch(STATEFUL_SETS, "db", image("j"))
        await _replaced(place, "db-1", "j")
        await place.until_one(STATEFUL_SETS, "db", lambda s: s.status.updated_replicas == 1)
        half = await place.until_one(STATEFUL_SETS, "db", lambda s: s.status.ready_replicas == 2)
        assert half.status.current_revision == before.status.current_revision
        assert half.status.update_revision != before.status.update_revision
        assert (await place.get(PODS, "db-0")).spec.containers[0].image == "i"
        rolling["updateStrategy"]["rollingUpdate"]["partition"] = 0
        await place.patch(STATEFUL_SETS, "db", {"spec": rolling})
        await _replaced(place, "db-0", "j")
        done = await place.until_one(
            STATEFUL_SETS, "db", lambda s: s.status.current_revision == s.status.update_revision
        )
        assert done.status.update_revision == half.status.update_revision
        assert len((await place.client.list(CONTROLLER_REVISIONS, NAMESPACE)).items) == 2


async def _replaced(place: Stage, name: str, with_image: str) -> None:
    pod = await place.until_one(
        PODS, name, lambda p: p.spec.containers[0].image == with_image and not p.status.conditions
    )
    await place.run_pod(pod)


async def test_on_delete_leaves_replacing_to_others() -> None:
    """A new template only reaches a pod that somebody deletes."""
    async with stage(StatefulSetController) as place:
        await place.create(STATEFUL_SETS, stateful_set(1, updateStrategy={"type": "OnDelete"}))
        await grow(place, 1)
        await place.until_one(STATEFUL_SETS, "db", lambda s: s.status.current_replicas == 1)
        await place.patch(STATEFUL_SETS, "db", image("j"))
        await place.until_one(
            STATEFUL_SETS, "db", lambda s: s.status.update_revision != s.status.current_revision
        )
        (pod,) = await place.pods()
        assert pod.spec.containers[0].image == "i"
        await place.remove_pod(pod)
        await place.until_one(PODS, "db-0", lambda p: p.spec.containers[0].image == "j")


async def test_an_earlier_template_is_an_earlier_revision_again() -> None:
    """Undone, a change leads back to the revision that was there, which becomes the newest."""
    async with stage(StatefulSetController) as place:
        await place.create(STATEFUL_SETS, stateful_set(1))
        first = await place.until_one(STATEFUL_SETS, "db", lambda s: s.status.update_revision != "")
        await place.patch(STATEFUL_SETS, "db", image("j"))
        await place.until_one(
            STATEFUL_SETS,
            "db",
            lambda s: s.status.update_revision != first.status.update_revision,
        )
        await place.patch(STATEFUL_SETS, "db", image("i"))
        await place.until_one(
            STATEFUL_SETS,
            "db",
            lambda s: s.status.update_revision == first.status.update_revision,
        )
        kept = (await place.client.list(CONTROLLER_REVISIONS, NAMESPACE)).items
        assert {r.metadata.name: r.revision for r in kept}[first.status.update_revision] == 3


async def test_a_failed_pod_is_made_anew() -> None:
    """Under the same name, and with an event that says so."""
    async with stage(StatefulSetController) as place:
        await place.create(STATEFUL_SETS, stateful_set(1))
        (pod,) = await place.until(PODS, lambda pods: len(pods) == 1)
        await place.set_phase(pod, "Failed")
        await place.until_one(PODS, "db-0", lambda p: p.metadata.uid != pod.metadata.uid)
        await place.told("RecreatingFailedPod")


async def test_a_pod_waits_for_its_minimum_time() -> None:
    """The next pod is made when the one before has been ready for minReadySeconds."""
    async with stage(StatefulSetController) as place:
        await place.create(STATEFUL_SETS, stateful_set(2, minReadySeconds=100))
        (pod,) = await place.until(PODS, lambda pods: len(pods) == 1)
        await place.run_pod(pod)
        found = await place.until_one(STATEFUL_SETS, "db", lambda s: s.status.ready_replicas == 1)
        assert found.status.available_replicas == 0
        place.clock.ahead = 101.0
        await place.patch(STATEFUL_SETS, "db", {"metadata": {"annotations": {"look": "again"}}})
        await place.until(PODS, lambda pods: len(pods) == 2)


async def test_each_pod_has_claims_of_its_own_that_stay() -> None:
    """Made from the templates before the pod, used by it, and kept when it goes."""
    async with stage(*CONTROLLERS, collecting=True) as place:
        await place.create(STATEFUL_SETS, stateful_set(1, volumeClaimTemplates=[claim_template()]))
        await place.until(PODS, lambda pods: len(pods) == 1)
        (claim,) = await place.until(VOLUME_CLAIMS, lambda claims: len(claims) == 1)
        assert claim.metadata.name == "data-db-0"
        raw = await place.client.get(PODS.as_values(), "db-0", NAMESPACE)
        volume = next(v for v in raw["spec"]["volumes"] if v["name"] == "data")
        assert volume["persistentVolumeClaim"]["claimName"] == "data-db-0"
        await place.scale(STATEFUL_SETS, "db", 0)
        await place.until(PODS, lambda pods: not pods)
        assert (await place.get(VOLUME_CLAIMS, "data-db-0")).metadata.uid == claim.metadata.uid


async def test_claims_go_with_the_pod_or_the_set_where_that_is_asked_for() -> None:
    """whenScaled Delete removes the claim of a pod that is given up, whenDeleted Delete those of the set."""
    policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    async with stage(*CONTROLLERS, collecting=True) as place:
        await place.create(
            STATEFUL_SETS,
            stateful_set(
                2,
                volumeClaimTemplates=[claim_template()],
                podManagementPolicy="Parallel",
                persistentVolumeClaimRetentionPolicy=policy,
            ),
        )
        await place.until(VOLUME_CLAIMS, lambda claims: len(claims) == 2)
        await place.until(PODS, lambda pods: len(pods) == 2)
        await place.scale(STATEFUL_SETS, "db", 1)
        (left,) = await place.until(VOLUME_CLAIMS, lambda claims: len(claims) == 1)
        assert left.metadata.name == "data-db-0"
        options = DeleteOptions(propagation="Background")
        await place.client.delete(STATEFUL_SETS, "db", NAMESPACE, options=options)
        await place.until(VOLUME_CLAIMS, lambda claims: not claims)


ORDINALS = {
    "of the set": ("db", "db-12", 12),
    "of a set with a dash": ("db-a", "db-a-0", 0),
    "of a longer name": ("db", "db-a-0", None),
    "no number": ("db", "db-x", None),
    "a leading zero": ("db", "db-01", None),
    "of another": ("db", "web-0", None),
}


@pytest.mark.parametrize("case", ORDINALS)
def test_the_ordinal_is_in_the_name(case: str) -> None:
    """Only names that the set itself would give count."""
    set_name, pod_name, expected = ORDINALS[case]
    assert ordinal_of(set_name, pod_name) == expected
