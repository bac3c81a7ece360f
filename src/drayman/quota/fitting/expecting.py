"""The pods that a workload will have, before they exist.

They are made of the pod sets as they will be started, so with the labels and tolerations of their flavors. Pods that have a place in a
topology select the labels of its domain. What they are called is no name that a pod can have: nobody is to take them for real.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.kueue import PodTemplate
from drayman.api.meta import ObjectMeta
from drayman.quota.demands import Placement


class PodSetPods(Struct, frozen=True):
    """The pods of a set, all alike but for their domain."""

    name: str
    count: int
    template: PodTemplate
    """As it will be started."""
    placement: Placement | None = None


class WorkloadPods(Struct, frozen=True):
    """What a workload needs room for."""

    namespace: str
    name: str
    pod_sets: tuple[PodSetPods, ...]

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def count(self) -> int:
        return sum(each.count for each in self.pod_sets)


class ExpectedPod(Struct, frozen=True, eq=False):
    """A pod that does not exist yet."""

    pod_set: str
    number: int
    """Among those of its set."""
    pod: Pod


def expected_pods(workload: WorkloadPods) -> Iterator[ExpectedPod]:
    """The pods of a workload, set by set, and within a set in the order of their domains."""
    for pod_set in workload.pod_sets:
        selectors = _selectors(pod_set)
        for number in range(pod_set.count):
            yield ExpectedPod(
                pod_set.name, number, _pod(workload, pod_set, number, next(selectors, {}))
            )


def _selectors(pod_set: PodSetPods) -> Iterator[Mapping[str, str]]:
    """What each pod selects because of its domain."""
    placement = pod_set.placement
    if placement is None:
        return
    for domain, count in placement.domains:
        selector = dict(zip(placement.levels, domain, strict=True))
        for _ in range(count):
            yield selector


def _pod(
    workload: WorkloadPods, pod_set: PodSetPods, number: int, selector: Mapping[str, str]
) -> Pod:
    template = pod_set.template
    name = f"{workload.name}-{pod_set.name}-{number}"
    spec = template.spec
    if selector:
        spec = replace(spec, node_selector={**spec.node_selector, **selector})
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=workload.namespace,
            uid=f"<expected> {workload.key} {pod_set.name} {number}",
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
        ),
        spec=spec,
    )
