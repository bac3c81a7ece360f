"""What pods say about the price of their node."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.placement.spending import Leaning, is_otherwise, misstated, spending_of

COST, SPOT = "drayman.dev/cost", "drayman.dev/spot"
TOLERATION = {"key": "kubernetes.azure.com/scalesetpriority", "operator": "Equal", "value": "spot"}


def pod(*, labels: Any = None, annotations: Any = None, owner: str = "", **spec: Any) -> Pod:
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": True}]
    metadata = {
        "name": "p",
        "labels": labels or {},
        "annotations": annotations or {},
        "ownerReferences": owners if owner else [],
    }
    return convert(Pod, {"metadata": metadata, "spec": spec})


def required(key: str, operator: str, *values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    terms = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("given", "leaning"),
    [
        (pod(), Leaning.NONE),
        (pod(priority=0), Leaning.NONE),
        (pod(priority=-5), Leaning.NONE),
        (pod(priority=1), Leaning.PREMIUM),
        (pod(annotations={COST: "low"}), Leaning.CHEAP),
        (pod(labels={COST: "low"}), Leaning.CHEAP),
        (pod(annotations={COST: "low"}, priority=100), Leaning.CHEAP),
        (pod(annotations={COST: "high"}), Leaning.NONE),
        (pod(annotations={COST: "high"}, labels={COST: "low"}), Leaning.CHEAP),
    ],
)
def test_what_a_pod_leans_to(given: Pod, leaning: Leaning) -> None:
    """What it says counts more than its priority; what is not understood counts for nothing."""
    assert spending_of(given, wants_devices=True).leaning is leaning


def test_a_pod_without_devices_does_not_lean_to_dear_nodes() -> None:
    """However important it is: it only avoids spot nodes. One that is to cost little goes to cheap ones all the same."""
    assert spending_of(pod(priority=1), wants_devices=False).leaning is Leaning.LASTING
    thrifty = pod(annotations={COST: "low"}, priority=1)
    assert spending_of(thrifty, wants_devices=False).leaning is Leaning.CHEAP


@pytest.mark.parametrize(
    ("given", "takes"),
    [
        (pod(), False),
        (pod(annotations={SPOT: "true"}), True),
        (pod(labels={SPOT: "true"}), True),
        (pod(annotations={SPOT: "false"}, labels={SPOT: "true"}), False),
        (pod(tolerations=[TOLERATION]), True),
        (pod(tolerations=[{**TOLERATION, "effect": "NoExecute"}]), True),
        (pod(tolerations=[{**TOLERATION, "effect": "PreferNoSchedule"}]), False),
        (pod(tolerations=[{**TOLERATION, "value": "regular"}]), False),
        (pod(tolerations=[{"operator": "Exists"}]), True),
        (pod(tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]), False),
        (pod(tolerations=[{"key": SPOT, "operator": "Exists"}]), True),
        (pod(tolerations=[TOLERATION], annotations={SPOT: "false"}), False),
        (pod(nodeSelector={"karpenter.sh/capacity-type": "spot"}), True),
        (pod(nodeSelector={"disk": "ssd"}), False),
        (pod(affinity=required("cloud.google.com/gke-spot", "In", "true")), True),
        (pod(affinity=required("zone", "In", "a")), False),
        (pod(owner="DaemonSet"), True),
        (pod(owner="Job"), False),
    ],
)
def test_which_pods_accept_spot_nodes(given: Pod, takes: bool) -> None:
    """Those that say so, tolerate such a taint, select nodes by such a label, or are daemons."""
    assert spending_of(given, wants_devices=False).takes_spot is takes


def test_what_is_not_understood_is_named() -> None:
    """With where it stands, and what would have been right."""
    given = pod(annotations={COST: "high", SPOT: "true"}, labels={SPOT: "yes"})
    assert list(misstated(given)) == [
        "annotation drayman.dev/cost: 'high' is not \"low\", and is ignored",
        'label drayman.dev/spot: \'yes\' is not "true" or "false", and is ignored',
    ]


def test_a_pod_that_says_something_else_is_noticed() -> None:
    """Only what concerns prices matters."""
    before = pod(annotations={"note": "a"})
    assert not is_otherwise(before, pod(annotations={"note": "b"}))
    assert is_otherwise(before, pod(annotations={"note": "a", SPOT: "true"}))
    assert is_otherwise(pod(annotations={COST: "low"}), before)
