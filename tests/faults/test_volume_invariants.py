"""The checker of volumes itself: small states of which it is known what is wrong with them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from faults.snapshot import Object, Snapshot
from faults.volumes import broken_volumes, leaked_volumes

COMPLETED: Final = {"pv.kubernetes.io/bind-completed": "yes"}


def metadata(name: str, **more: Any) -> Object:
    return {"name": name, "namespace": "default", "uid": f"uid-of-{name}", **more}


def claim(name: str = "pod-tmp", volume: str = "disk", **more: Any) -> Object:
    return {
        "metadata": metadata(name, annotations=COMPLETED, **more),
        "spec": {"volumeName": volume},
    }


def volume(claim_name: str = "pod-tmp", zone: str = "a") -> Object:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
    return {
        "metadata": {"name": "disk", "uid": "uid-of-disk"},
        "spec": {
            "claimRef": {"name": claim_name, "uid": f"uid-of-{claim_name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


def owned(pod: str) -> list[Object]:
    return [{"kind": "Pod", "name": pod, "uid": f"uid-of-{pod}"}]


POD: Final[Object] = {
    "metadata": metadata("pod"),
    "spec": {"nodeName": "node", "volumes": [{"name": "tmp", "ephemeral": {}}]},
    "status": {"phase": "Running"},
}
NODE: Final[Object] = {"metadata": {"name": "node", "labels": {"zone": "a"}}}


def snapshot(volumes: list[Object], claims: list[Object], *pods: Object) -> Snapshot:
    return Snapshot(pods=pods, nodes=(NODE,), volumes=volumes, volume_claims=claims)


CASES: Final = {
    "all is well": (snapshot([volume()], [claim(ownerReferences=owned("pod"))], POD), ""),
    "two claims of one volume": (snapshot([volume()], [claim(), claim("b")]), "has two claims"),
    "a volume that has another claim": (snapshot([volume("b")], [claim()]), "which has"),
    "a volume that does not exist": (snapshot([], [claim()]), "which has none"),
    "a pod without its volume": (snapshot([volume()], [], POD), "without its volume"),
    "a pod that does not reach it": (snapshot([volume(zone="b")], [claim()], POD), "cannot reach"),
}
LEAKS: Final = {
    "all is well": (snapshot([volume()], [claim(ownerReferences=owned("pod"))], POD), ""),
    "a volume whose claim is gone": (snapshot([volume()], []), "is left of claim pod-tmp"),
    "a claim whose pod is gone": (
        snapshot([volume()], [claim(ownerReferences=owned("pod"))]),
        "is left of pod pod",
    ),
}


@pytest.mark.parametrize(("now", "wrong"), CASES.values(), ids=CASES)
def test_contradictions_are_found(now: Snapshot, wrong: str) -> None:
    """Each state has the one thing wrong that is said, or nothing."""
    found = list(broken_volumes(now))
    assert (wrong in found[0]) if wrong else not found


@pytest.mark.parametrize(("now", "left"), LEAKS.values(), ids=LEAKS)
def test_leaks_are_found(now: Snapshot, left: str) -> None:
    """What is left over is named."""
    found = list(leaked_volumes(now))
    assert (left in found[0]) if left else not found
