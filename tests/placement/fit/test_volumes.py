"""Volumes that tie pods to nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from drayman.placement.fit import FITS, Cause, Verdict, VolumeChoice, volume_check
from drayman.placement.volumes import Volumes
from placement.fit.objects import facts, needs
from placement.fit.storage import HOST, ZONE, capacity, driver, meant_for
from placement.fit.storage import claim as make_claim
from placement.fit.storage import storage_class as make_class
from placement.fit.storage import volume as make_volume

BOUND = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}


class Storage:
    """One claim named `data`, perhaps with a volume named `disk`, and one class that waits for a pod."""

    def __init__(
        self, claim: dict[str, Any] | None, volume: dict[str, Any] | None, used: bool = False
    ) -> None:
        self._claim = claim
        self._volume = volume
        self._used = used

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        if self._claim is None or (namespace, name) not in (
            ("default", "data"),
            ("default", "p-v"),
        ):
            return None
        metadata = {"name": name, **self._claim.get("metadata", {})}
        return convert(PersistentVolumeClaim, {**self._claim, "metadata": metadata})

    def volume(self, name: str) -> PersistentVolume | None:
        if self._volume is None or name != "disk":
            return None
        return convert(PersistentVolume, self._volume)

    def storage_class(self, name: str) -> StorageClass | None:
        modes = {"lazy": "WaitForFirstConsumer", "eager": "Immediate"}
        return StorageClass(volume_binding_mode=modes[name]) if name in modes else None

    def of_class(self, _name: str) -> Iterable[PersistentVolume]:
        return ()

    def capacities(self, _storage_class: StorageClass) -> None:
        return None

    def in_use(self, namespace: str, name: str) -> bool:
        return self._used


def claim(spec: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"spec": spec, **fields}


def only_on(zone: str) -> dict[str, Any]:
    expression = {"key": "zone", "operator": "In", "values": [zone]}
    return {
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    }


DISK = {"volumeName": "disk"}
PLAIN = {"spec": {}}
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"

CASES: dict[str, tuple[Storage, str]] = {
    "a volume that is everywhere": (Storage(claim(DISK, **BOUND), PLAIN), ""),
    "a volume of the node's zone": (Storage(claim(DISK, **BOUND), {"spec": only_on("a")}), ""),
    "a volume of another zone": (
        Storage(claim(DISK, **BOUND), {"spec": only_on("b")}),
        "node(s) didn't match PersistentVolume's node affinity",
    ),
    "a volume with labels of another zone": (
        Storage(
            claim(DISK, **BOUND),
            {"metadata": {"labels": {"topology.kubernetes.io/zone": "z2__z3"}}},
        ),
        "node(s) had no available volume zone",
    ),
    "a volume with old labels of the node's zone": (
        Storage(
            claim(DISK, **BOUND),
            {"metadata": {"labels": {"failure-domain.beta.kubernetes.io/zone": "z1__z2"}}},
        ),
        "",
    ),
    "no claim": (Storage(None, None), 'persistentvolumeclaim "data" not found'),
    "not bound": (Storage(claim({"storageClassName": "eager"}), None), UNBOUND),
    "not bound, without a class": (Storage(claim({}), None), UNBOUND),
    "not bound completely": (Storage(claim(DISK), PLAIN), UNBOUND),
    "waiting for the pod": (
        Storage(claim({"storageClassName": "lazy"}), None),
        "node(s) didn't find available persistent volumes to bind",
    ),
    "the volume is gone": (
        Storage(claim(DISK, **BOUND), None),
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    ),
    "lost": (
        Storage(claim(DISK, status={"phase": "Lost"}), None),
        'persistentvolumeclaim "data" bound to non-existent persistentvolume "disk"',
    ),
    "deleted": (
        Storage(claim(DISK, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), None),
        'persistentvolumeclaim "data" is being deleted',
    ),
}


@pytest.mark.parametrize(("storage", "reason"), CASES.values(), ids=CASES)
def test_volumes(storage: Storage, reason: str) -> None:
    """A pod goes where its volumes can be reached; one without a volume yet is told so."""
    pod = needs(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    node = facts(labels={"zone": "a", "topology.kubernetes.io/zone": "z1"})
    verdict = volume_check(pod, storage).verdict(node)
    assert verdict.reasons == ((reason,) if reason else ())
    assert verdict.fits is not bool(reason)
    elsewhere = verdict.cause is Cause.VOLUME_ELSEWHERE
    assert elsewhere == ("node affinity" in reason or "zone" in reason)


def test_a_claim_for_one_pod_only() -> None:
    """A claim that one pod may use is refused to the second, which preemption could help."""
    pod = needs(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    spec = {**DISK, "accessModes": ["ReadWriteOncePod"]}
    free, taken = (Storage(claim(spec, **BOUND), PLAIN, used=used) for used in (False, True))
    assert volume_check(pod, free).refusal is FITS
    assert volume_check(pod, taken).refusal.resolvable


def test_claims_made_for_the_pod() -> None:
    """The claim of an ephemeral volume is named after pod and volume and must belong to the pod."""
    pod = needs(name="p", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}])
    absent = volume_check(pod, Storage(None, None)).refusal
    assert absent.reasons == (
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"',
    )
    foreign = volume_check(pod, Storage(claim(DISK, **BOUND), PLAIN)).refusal
    assert foreign.reasons == (
        "PVC default/p-v was not created for pod default/p (pod is not owner)",
    )
    owner = {"uid": pod.uid, "controller": True}
    owned = {"metadata": {**BOUND["metadata"], "ownerReferences": [owner]}}
    assert volume_check(pod, Storage(claim(DISK, **owned), PLAIN)).refusal is FITS


# Claims that get their volume together with the pod.

POD = needs(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
TWO = needs(
    volumes=[
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "w", "persistentVolumeClaim": {"claimName": "logs"}},
    ]
)
N1 = facts("n1", labels={HOST: "n1", ZONE: "a"})
N2 = facts("n2", labels={HOST: "n2", ZONE: "b"})
FAST = make_class("fast", "ebs.csi.aws.com")
SELECTED = "volume.kubernetes.io/selected-node"
NOTHING = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"


def storage(*objects: Any) -> Volumes:
    volumes = Volumes()
    put = {
        "PersistentVolume": volumes.set_volume,
        "PersistentVolumeClaim": volumes.set_claim,
        "StorageClass": volumes.set_class,
        "CSIDriver": volumes.set_driver,
        "CSIStorageCapacity": volumes.set_capacity,
    }
    for each in objects:
        put[each.kind](each)
    return volumes


def only_in(zone: str) -> dict[str, Any]:
    return {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]}


FAST_CLAIM = make_claim(storageClassName="fast")
OPEN: dict[str, tuple[Volumes, str, str]] = {
    "a disk of one node": (
        storage(make_class(), make_claim(), make_volume(host="n1")),
        "v",
        NOTHING,
    ),
    "no disk": (storage(make_class(), make_claim()), NOTHING, NOTHING),
    "a disk each": (
        storage(
            make_class(), make_claim(), make_volume("v1", host="n1"), make_volume("v2", host="n2")
        ),
        "v1",
        "v2",
    ),
    "set aside on one node": (
        storage(
            make_class(),
            make_claim(),
            make_volume("v1", host="n1", claimRef=meant_for("data")),
            make_volume("v2", host="n2"),
        ),
        "v1",
        NOTHING,
    ),
    "set aside, of a class that provisions": (
        storage(
            FAST,
            FAST_CLAIM,
            make_volume(host="n1", storageClassName="fast", claimRef=meant_for("data")),
        ),
        "v",
        NOTHING,
    ),
    "provisioned anywhere": (storage(FAST, FAST_CLAIM), "new", "new"),
    "a volume that exists comes first": (
        storage(FAST, FAST_CLAIM, make_volume(host="n1", storageClassName="fast")),
        "v",
        "new",
    ),
    "provisioned in one zone": (
        storage(make_class("fast", "ebs.csi.aws.com", **only_in("b")), FAST_CLAIM),
        NOTHING,
        "new",
    ),
    "being provisioned for one node": (
        storage(FAST, make_claim(storageClassName="fast", annotations={SELECTED: "n2"})),
        NOTHING,
        "new",
    ),
    "storage left in one zone": (
        storage(
            FAST,
            FAST_CLAIM,
            driver("ebs.csi.aws.com"),
            capacity("c1", "a", capacity="10Gi"),
            capacity("c2", "b", capacity="9Gi"),
        ),
        "new",
        NO_SPACE,
    ),
    "the largest single volume counts": (
        storage(
            FAST,
            FAST_CLAIM,
            driver("ebs.csi.aws.com"),
            capacity("c1", "a", capacity="1Ti", maximumVolumeSize="5Gi"),
            capacity("c2", "b", capacity="5Gi", maximumVolumeSize="10Gi"),
        ),
        NO_SPACE,
        "new",
    ),
    "a driver that does not tell what is left": (
        storage(FAST, FAST_CLAIM, driver("ebs.csi.aws.com", tells_capacity=False)),
        "new",
        "new",
    ),
}


def outcome(found: VolumeChoice | Verdict) -> str:
    """The volume that the claim gets, `new` for one that is made, or the reason."""
    if isinstance(found, Verdict):
        return found.reasons[0]
    return found.bindings[0][1].metadata.name if found.bindings else "new"


@pytest.mark.parametrize(("volumes", "on_n1", "on_n2"), OPEN.values(), ids=OPEN)
def test_a_claim_gets_its_volume_with_the_node(volumes: Volumes, on_n1: str, on_n2: str) -> None:
    """A node will do if a volume for the claim is to be had there, or can be made."""
    check = volume_check(POD, volumes)
    assert (outcome(check.choose(N1)), outcome(check.choose(N2))) == (on_n1, on_n2)
    for node, expected in ((N1, on_n1), (N2, on_n2)):
        refused = expected in (NOTHING, NO_SPACE)
        assert check.verdict(node).reasons == ((expected,) if refused else ())


def test_two_claims_of_a_pod_get_two_volumes() -> None:
    """The smaller claim takes the smaller volume and leaves the larger one; with one volume there is none for both."""
    claims = (make_claim("data", "50Gi"), make_claim("logs", "1Gi"))
    large, small = make_volume("large", "100Gi"), make_volume("small", "10Gi")
    found = volume_check(TWO, storage(make_class(), *claims, large, small)).choose(N1)
    assert isinstance(found, VolumeChoice)
    names = {c.metadata.name: v.metadata.name for c, v in found.bindings}
    assert names == {"data": "large", "logs": "small"}
    alone = volume_check(TWO, storage(make_class(), *claims, large))
    assert outcome(alone.choose(N1)) == NOTHING


def test_volumes_that_all_nodes_reach_tie_a_pod_to_none() -> None:
    """Only a volume with a place, or one that is still to be had, makes nodes differ."""
    bound = {"annotations": BOUND["metadata"]["annotations"], "volumeName": "v"}
    everywhere = storage(make_claim(**bound), make_volume())
    assert volume_check(POD, everywhere).is_indifferent
    assert not volume_check(
        POD, storage(make_claim(**bound), make_volume(host="n1"))
    ).is_indifferent
    labelled = make_volume(labels={ZONE: "a"})
    assert not volume_check(POD, storage(make_claim(**bound), labelled)).is_indifferent
    assert not volume_check(POD, storage(FAST, FAST_CLAIM)).is_indifferent
