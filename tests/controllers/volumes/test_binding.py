"""Volume claims and volumes through the API: how they come together, and what becomes of the one when the other goes."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.workloads.stage import NAMESPACE, Stage, stage, template
from controllers.world import eventually
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.cluster.resources import (
    EVENTS,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    JsonObject,
)
from drayman.controllers.volumes import CONTROLLERS
from drayman.controllers.workloads.protection import (
    VolumeClaimProtectionController,
    VolumeProtectionController,
)

ALL = (*CONTROLLERS, VolumeClaimProtectionController, VolumeProtectionController)
SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
DEFAULT = "storageclass.kubernetes.io/is-default-class"
LAZY = "WaitForFirstConsumer"
NONE = "kubernetes.io/no-provisioner"


async def storage_class(place: Stage, name: str = "fast", **fields: Any) -> None:
    metadata = {"name": name, "annotations": fields.pop("annotations", {})}
    body = {"metadata": metadata, "provisioner": "ebs.csi.aws.com", **fields}
    await place.create(STORAGE_CLASSES, body)


async def claim(place: Stage, name: str = "data", **spec: Any) -> None:
    annotations = spec.pop("annotations", {})
    body: JsonObject = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
        **spec,
    }
    await place.create(
        VOLUME_CLAIMS, {"metadata": {"name": name, "annotations": annotations}, "spec": body}
    )


async def volume(place: Stage, name: str = "disk", size: str = "10Gi", **spec: Any) -> None:
    body = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "hostPath": {"path": "/mnt"},
        **spec,
    }
    await place.create(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": body})


async def bound(place: Stage, name: str = "data") -> PersistentVolumeClaim:
    found: PersistentVolumeClaim = await place.until_one(
        VOLUME_CLAIMS, name, lambda c: c.status.phase == "Bound"
    )
    return found


async def in_phase(place: Stage, phase: str, name: str = "disk") -> PersistentVolume:
    found: PersistentVolume = await place.until_one(
        PERSISTENT_VOLUMES, name, lambda v: v.status.phase == phase
    )
    return found


async def told(place: Stage, reason: str, name: str = "data", words: str = "") -> str:
    """What an event about an object says, once there is one with these words."""

    async def read() -> list[str]:
        return [
            event["note"]
            for event in (await place.client.list(EVENTS, NAMESPACE)).items
            if (event["regarding"]["name"], event["reason"]) == (name, reason)
            and words in event["note"]
        ]

    return (await eventually(read, bool))[0]


async def test_the_smallest_volume_that_fits() -> None:
    """Both name each other, and say what the claim has got."""
    async with stage(*ALL) as place:
        await volume(place, "large", "100Gi")
        await volume(place, "right", "20Gi")
        await volume(place, "small", "5Gi")
        for name in ("large", "right", "small"):
            await in_phase(place, "Available", name)
        await claim(place, storageClassName="")
        found = await bound(place)
        assert found.spec.volume_name == "right"
        assert found.metadata.annotations == {COMPLETED: "yes", BY_CONTROLLER: "yes"}
        assert found.status.access_modes == ("ReadWriteOnce", "ReadOnlyMany")
        assert str(found.status.capacity["storage"]) == "20Gi"
        taken = await in_phase(place, "Bound", "right")
        assert taken.spec.claim_ref is not None
        assert taken.spec.claim_ref.uid == found.metadata.uid
        assert taken.metadata.annotations == {BY_CONTROLLER: "yes"}


async def test_claims_do_not_share_a_volume() -> None:
    """The second claim waits, is told so, and gets the next volume that comes."""
    async with stage(*ALL) as place:
        await volume(place)
        await claim(place, "one", storageClassName="")
        await bound(place, "one")
        await claim(place, "two", storageClassName="")
        assert "no persistent volumes available" in await told(place, "FailedBinding", "two")
        await volume(place, "next")
        assert (await bound(place, "two")).spec.volume_name == "next"


async def test_a_volume_is_provisioned_at_once() -> None:
    """A class that waits for nobody has a volume made that all nodes reach."""
    async with stage(*ALL) as place:
        await storage_class(place, reclaimPolicy="Retain", mountOptions=["noatime"])
        await claim(place, storageClassName="fast")
        found = await bound(place)
        assert found.spec.volume_name == f"pvc-{found.metadata.uid}"
        provisioner = "volume.kubernetes.io/storage-provisioner"
        assert found.metadata.annotations[provisioner] == "ebs.csi.aws.com"
        made = await in_phase(place, "Bound", found.spec.volume_name)
        assert made.metadata.annotations == {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}
        assert made.spec.node_affinity is None
        assert made.spec.persistent_volume_reclaim_policy == "Retain"
        note = await told(place, "ProvisioningSucceeded")
        assert note == f"Successfully provisioned volume {found.spec.volume_name}"


async def test_a_claim_that_waits_for_a_pod() -> None:
    """Nothing is bound or made before a scheduler has chosen the node; then the volume is made for that node."""
    async with stage(*ALL) as place:
        await place.create(NODES, {"metadata": {"name": "n1", "labels": {"z": "a"}}})
        await storage_class(place, volumeBindingMode=LAZY)
        await volume(place, storageClassName="fast")
        await claim(place, storageClassName="fast")
        assert "first consumer" in await told(place, "WaitForFirstConsumer")
        await in_phase(place, "Available")
        await place.patch(VOLUME_CLAIMS, "data", {"metadata": {"annotations": {SELECTED: "n1"}}})
        found = await bound(place)
        made = await place.get(PERSISTENT_VOLUMES, found.spec.volume_name)
        assert made.spec.node_affinity is not None
        assert (await in_phase(place, "Available")).spec.claim_ref is None


async def test_a_claim_that_a_scheduler_has_entered_in_a_volume() -> None:
    """The binding that it has begun is completed."""
    async with stage(*ALL) as place:
        await storage_class(place, "local", provisioner=NONE, volumeBindingMode=LAZY)
        await volume(place, storageClassName="local")
        await claim(place, storageClassName="local")
        uid = (await place.get(VOLUME_CLAIMS, "data")).metadata.uid
        await in_phase(place, "Available")
        ref = {"kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": "data", "uid": uid}
        await place.patch(PERSISTENT_VOLUMES, "disk", {"spec": {"claimRef": ref}})
        assert (await bound(place)).spec.volume_name == "disk"
        await in_phase(place, "Bound")


async def test_a_node_that_is_gone_is_turned_down() -> None:
    """The claim loses the name of the node, so that the scheduler chooses another."""
    async with stage(*ALL) as place:
        await storage_class(place, volumeBindingMode=LAZY)
        await claim(place, storageClassName="fast", annotations={SELECTED: "n1"})
        await place.until_one(
            VOLUME_CLAIMS, "data", lambda c: SELECTED not in c.metadata.annotations
        )
        assert "n1" in await told(place, "ProvisioningFailed")


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        pytest.param({"storageClassName": "lost"}, '"lost" not found', id="no such class"),
        pytest.param(
            {"storageClassName": "local"},
            f"no volume plugin matched name: {NONE}",
            id="a class that provisions nothing",
        ),
        pytest.param(
            {"storageClassName": "fast", "selector": {"matchLabels": {"a": "b"}}},
            "claim Selector is not supported",
            id="a selector",
        ),
    ],
)
async def test_a_claim_that_gets_nothing_is_told_why(fields: JsonObject, note: str) -> None:
    """An event says what is wrong, in the words that people search for."""
    async with stage(*ALL) as place:
        await storage_class(place, "local", provisioner=NONE)
        await storage_class(place)
        await claim(place, **fields)
        await told(place, "ProvisioningFailed", words=note)
        assert (await place.get(VOLUME_CLAIMS, "data")).status.phase == "Pending"


async def test_the_default_class() -> None:
    """A claim that names no class has the default one from its creation, or gets it when there is one; an empty name means none."""
    async with stage(*ALL) as place:
        await claim(place, "early")
        await told(place, "FailedBinding", "early")
        await storage_class(place, annotations={DEFAULT: "true"})
        assert (await bound(place, "early")).spec.storage_class_name == "fast"
        await claim(place, "late")
        assert (await place.get(VOLUME_CLAIMS, "late")).spec.storage_class_name == "fast"
        await claim(place, "none", storageClassName="")
        await told(place, "FailedBinding", "none")
        assert (await place.get(VOLUME_CLAIMS, "none")).spec.storage_class_name == ""


async def test_what_people_have_chosen() -> None:
    """A claim may name its volume, and a volume its claim; the annotations do not say that a controller did."""
    async with stage(*ALL) as place:
        await volume(place, "a", claimRef={"namespace": NAMESPACE, "name": "one"})
        await volume(place, "b")
        await claim(place, "two", storageClassName="", volumeName="b")
        await claim(place, "one", storageClassName="")
        assert (await bound(place, "one")).spec.volume_name == "a"
        assert BY_CONTROLLER not in (await in_phase(place, "Bound", "a")).metadata.annotations
        assert BY_CONTROLLER not in (await bound(place, "two")).metadata.annotations
        await claim(place, "three", storageClassName="", volumeName="b")
        assert "different claim" in await told(place, "FailedBinding", "three")


@pytest.mark.parametrize("policy", ["Retain", "Recycle", "Delete"])
async def test_a_volume_whose_claim_is_deleted(policy: str) -> None:
    """It is kept as it is, made available to others, or deleted, as its policy says."""
    async with stage(*ALL) as place:
        await volume(place, persistentVolumeReclaimPolicy=policy)
        await claim(place, storageClassName="")
        await bound(place)
        await place.client.delete(VOLUME_CLAIMS, "data", NAMESPACE)
        if policy == "Delete":
            await place.until(PERSISTENT_VOLUMES, lambda volumes: not volumes)
            return
        phase = {"Retain": "Released", "Recycle": "Available"}[policy]
        left = await in_phase(place, phase)
        assert (left.spec.claim_ref is None) is (policy == "Recycle")


async def test_a_claim_whose_volume_is_lost() -> None:
    """Somebody takes a volume away by force: the claim says so, and a pod does not get it."""
    async with stage(*ALL) as place:
        await volume(place)
        await claim(place, storageClassName="")
        await bound(place)
        await place.client.delete(PERSISTENT_VOLUMES, "disk")
        await place.patch(PERSISTENT_VOLUMES, "disk", {"metadata": {"finalizers": None}})
        await place.until_one(VOLUME_CLAIMS, "data", lambda c: c.status.phase == "Lost")
        assert "lost" in await told(place, "ClaimLost")


async def test_controllers_that_start_late() -> None:
    """What has come while nobody was there is bound when they are back."""
    async with stage() as place:
        await storage_class(place)
        await volume(place)
        await claim(place, "one", storageClassName="")
        await claim(place, "two", storageClassName="fast")
        await place.start(*ALL)
        assert (await bound(place, "one")).spec.volume_name == "disk"
        await bound(place, "two")
        await place.crash()
        await place.client.delete(VOLUME_CLAIMS, "two", NAMESPACE)
        await place.start(*ALL)
        await place.until(PERSISTENT_VOLUMES, lambda volumes: len(volumes) == 1)


async def test_a_volume_that_lives_as_long_as_its_pod() -> None:
    """Its claim is made from the template in the pod, belongs to the pod and goes with it, with the volume; the next pod gets its own."""
    async with stage(*ALL, collecting=True) as place:
        await storage_class(place)
        spec = template()["spec"]
        wanted = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        }
        made_from = {"metadata": {"labels": {"a": "b"}}, "spec": wanted}
        spec["volumes"] = [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": made_from}}]
        await place.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
        found = await bound(place, "p-tmp")
        pod = await place.get(PODS, "p")
        (owner,) = found.metadata.owner_references
        assert (owner.uid, owner.controller) == (pod.metadata.uid, True)
        assert found.metadata.labels == {"a": "b"}
        await place.remove_pod(pod)
        await place.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
        again = await place.get(PODS, "p")
        await place.until_one(
            VOLUME_CLAIMS,
            "p-tmp",
            lambda c: c.metadata.owner_references[0].uid == again.metadata.uid,
        )
        assert (await bound(place, "p-tmp")).metadata.uid != found.metadata.uid
        await place.remove_pod(again)
        await place.until(VOLUME_CLAIMS, lambda claims: not claims)
        await place.until(PERSISTENT_VOLUMES, lambda volumes: not volumes)


async def test_a_claim_that_a_running_pod_uses_is_kept() -> None:
    """It goes when the pod has ended. A pod that has no node does not keep it: it could not begin to use it."""
    async with stage(*ALL) as place:
        await storage_class(place)
        await claim(place, storageClassName="fast")
        await bound(place)
        spec = template()["spec"]
        spec["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
        await place.create(PODS, {"metadata": {"name": "waits"}, "spec": spec})
        await place.create(PODS, {"metadata": {"name": "runs"}, "spec": {**spec, "nodeName": "n1"}})
        running = await place.get(PODS, "runs")
        await place.until(PODS, lambda pods: len(pods) == 2)
        await place.client.delete(VOLUME_CLAIMS, "data", NAMESPACE)
        kept = await place.until_one(
            VOLUME_CLAIMS, "data", lambda c: c.metadata.deletion_timestamp is not None
        )
        assert kept.metadata.finalizers
        await place.set_phase(running, "Succeeded")
        await place.until(VOLUME_CLAIMS, lambda claims: not claims)
