"""When a host is lost to the pods of a workload."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Node, Pod, Toleration
from drayman.quota.demands import Placement
from drayman.quota.topology.health import HOST, lost_hosts

PLACEMENT = Placement((HOST,), ((("h",), 2),))
TAINT = {"key": "broken", "effect": "NoExecute"}
SHUNNED = {"key": "broken", "effect": "NoSchedule"}
SILENT = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def node(*, ready: bool = True, taints: tuple[dict[str, str], ...] = ()) -> Node:
    conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
    value = {
        "metadata": {"name": "n", "labels": {HOST: "h"}},
        "spec": {"taints": list(taints)},
        "status": {"conditions": conditions},
    }
    return convert(Node, value)


def pod(phase: str = "Running", *, leaving: bool = False, bound: bool = True) -> Pod:
    metadata: dict[str, Any] = {"name": "p", "namespace": "default", "uid": "p"}
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: dict[str, Any] = {"nodeSelector": {HOST: "h"}, "containers": []}
    if bound:
        spec["nodeName"] = "n"
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


RUNS, LEAVES, WAITS, FAILED = (
    pod(),
    pod(leaving=True),
    pod("Pending", bound=False),
    pod("Failed"),
)


@pytest.mark.parametrize(
    ("there", "pods", "tolerated", "lost"),
    [
        (node(), (RUNS,), (), False),
        (None, (RUNS,), (), True),
        (node(ready=False, taints=(SILENT,)), (RUNS,), (), False),
        (node(ready=False, taints=(SILENT,)), (RUNS, LEAVES), (), False),
        (node(ready=False, taints=(SILENT,)), (LEAVES,), (), True),
        (node(ready=False), (), (), True),
        (node(taints=(TAINT,)), (RUNS,), (), True),
        (node(taints=(TAINT,)), (RUNS,), ("broken",), False),
        (node(taints=(SHUNNED,)), (RUNS,), (), False),
        (node(taints=(SHUNNED,)), (RUNS, LEAVES), (), True),
        (node(taints=(SHUNNED,)), (WAITS,), (), True),
        (node(taints=(SHUNNED,)), (FAILED,), (), True),
        (node(taints=(SHUNNED,)), (FAILED,), ("broken",), False),
    ],
    ids=[
        "all is well",
        "the node is gone",
        "not ready, and its pod may go on when it is back",
        "not ready, and one of two pods may go on",
        "not ready, and its pod is leaving",
        "not ready, and its pods are gone",
        "a taint that pods are evicted for",
        "which they tolerate",
        "a taint that keeps new pods away",
        "and a pod is leaving",
        "and a pod waits to go there",
        "and a pod has failed",
        "which it tolerates",
    ],
)
def test_a_host_is_lost(
    there: Node | None, pods: tuple[Pod, ...], tolerated: tuple[str, ...], lost: bool
) -> None:
    nodes = {} if there is None else {"h": there}
    tolerations = [Toleration(key=each, operator="Exists") for each in tolerated]
    assert lost_hosts(PLACEMENT, nodes, tolerations, pods) == (["h"] if lost else [])


def test_hosts_that_were_not_assigned_are_not_judged() -> None:
    """Where a topology ends with racks, pods find other nodes of their rack by themselves."""
    racks = Placement(("rack",), ((("r",), 2),))
    assert lost_hosts(racks, {}, (), (RUNS,)) == []
