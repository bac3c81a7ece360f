"""Which hosts that pods of a workload were assigned to are lost to them.

A host is lost if its node is gone; if it is not ready and no pod of the workload goes on running there; if it has a taint that pods are
evicted for, and they do not tolerate it; or one that keeps pods away, where some have failed, are leaving or wait to go there. That a node
is not ready is shown by taints as well. Those do not count: pods tolerate them for a while, and the node may be back by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from drayman.api.core import Node, Pod, Taint, Toleration
from drayman.api.pods import is_active
from drayman.placement.fit.readiness import is_ready
from drayman.placement.fit.taints import is_tolerated
from drayman.quota.demands import Placement

HOST: Final = "kubernetes.io/hostname"
_READINESS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def lost_hosts(
    placement: Placement,
    nodes: Mapping[str, Node],
    tolerations: Sequence[Toleration],
    pods: Iterable[Pod],
) -> list[str]:
    """The hosts of a placement that are lost. `nodes` is by host; `pods` are those of the pod set. None if hosts were not assigned."""
    if placement.levels[-1:] != (HOST,):
        return []
    there: dict[str, list[Pod]] = {}
    for pod in pods:
        there.setdefault(_host_of(pod, nodes), []).append(pod)
    hosts = dict.fromkeys(domain[-1] for domain, _ in placement.domains)
    return [host for host in hosts if _is_lost(nodes.get(host), tolerations, there.get(host, ()))]


def _host_of(pod: Pod, nodes: Mapping[str, Node]) -> str:
    """The host that a pod is on, or was told to go to."""
    told = pod.spec.node_selector.get(HOST, "")
    if told or not pod.spec.node_name:
        return told
    return next(
        (host for host, node in nodes.items() if node.metadata.name == pod.spec.node_name), ""
    )


def _is_lost(node: Node | None, tolerations: Sequence[Toleration], pods: Sequence[Pod]) -> bool:
    if node is None:
        return True
    if not is_ready(node.status.conditions) and not any(map(_goes_on, pods)):
        return True
    taints = [each for each in node.spec.taints if each.key not in _READINESS]
    if any(_keeps_away(each, "NoExecute", tolerations) for each in taints):
        return True
    is_shunned = any(_keeps_away(each, "NoSchedule", tolerations) for each in taints)
    return is_shunned and any(not _goes_on(each) for each in pods)


def _goes_on(pod: Pod) -> bool:
    """Whether a pod is on a node and stays there, or ended well."""
    return pod.status.phase == "Succeeded" or (is_active(pod) and bool(pod.spec.node_name))


def _keeps_away(taint: Taint, effect: str, tolerations: Sequence[Toleration]) -> bool:
    return taint.effect == effect and not is_tolerated(taint, tolerations)
