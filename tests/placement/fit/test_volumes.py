"""Volumes that tie pods to nodes."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from drayman.placement.fit import FITS, Cause, volume_check
from placement.fit.objects import facts, needs

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
