"""Groups of pods and topologies of other schedulers: kinds that a cluster has only if their definitions are installed.

What the definition in a cluster allows is not known here: it may be an older or a newer one, or one that checks nothing. So the spec of an
object stays decoded JSON until it is read (`spec_of`), and an object that makes no sense is a fact about that object. If it were decoded
with the list in which it comes, it would hide all others.
"""

from __future__ import annotations

from typing import Final, TypeVar

from drayman.api import codec
from drayman.api.errors import DecodeError
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, Int32, Json, always

SCHEDULER_PLUGINS: Final = "scheduling.x-k8s.io"
KAI: Final = "scheduling.run.ai"
KAI_TOPOLOGIES: Final = "kai.scheduler"
KUEUE: Final = "kueue.x-k8s.io"

S = TypeVar("S", bound=ApiStruct)


class CustomObject(ApiStruct):
    """An object whose spec is not decoded yet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Json = None


class PluginPodGroup(CustomObject):
    """A group of the coscheduling plugin."""

    api_version: str = always(f"{SCHEDULER_PLUGINS}/v1alpha1")
    kind: str = always("PodGroup")


class PluginPodGroupSpec(ApiStruct):
    min_member: Int32 | None = None
    min_resources: dict[str, Quantity] | None = None
    schedule_timeout_seconds: Int32 | None = None


class KaiPodGroup(CustomObject):
    """A group of the KAI Scheduler."""

    api_version: str = always(f"{KAI}/v2alpha2")
    kind: str = always("PodGroup")


class KaiTopologyConstraint(ApiStruct):
    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


class KaiSubGroup(ApiStruct, merge_key=("name",)):
    name: str = ""
    parent: str | None = None
    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None
    topology_constraint: KaiTopologyConstraint | None = None


class KaiPodGroupSpec(ApiStruct):
    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None
    queue: str = ""
    priority_class_name: str = ""
    preemptibility: str = ""
    topology_constraint: KaiTopologyConstraint | None = None
    sub_groups: tuple[KaiSubGroup, ...] = ()
    preemption_delay: str | None = None
    staleness_grace_period: str | None = None


class KaiQueue(CustomObject):
    """A queue of the KAI Scheduler. Its status is kept as it is: what it says is counted, never read back."""

    api_version: str = always(f"{KAI}/v2")
    kind: str = always("Queue")
    status: Json = None


class KaiQueueResource(ApiStruct):
    """What a queue has of a resource. -1: without limit."""

    quota: float = 0.0
    limit: float = -1.0
    over_quota_weight: float = 1.0


class KaiQueueResources(ApiStruct):
    gpu: KaiQueueResource | None = None
    cpu: KaiQueueResource | None = None
    """In thousandths of a processor."""
    memory: KaiQueueResource | None = None
    """In megabytes."""


class KaiQueueSpec(ApiStruct):
    display_name: str = ""
    parent_queue: str = ""
    priority: Int32 | None = None
    resources: KaiQueueResources | None = None
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class KaiTopology(CustomObject):
    """Levels of nodes, as the KAI Scheduler has them."""

    api_version: str = always(f"{KAI_TOPOLOGIES}/v1alpha1")
    kind: str = always("Topology")


class KueueTopology(CustomObject):
    """Levels of nodes, as Kueue has them."""

    api_version: str = always(f"{KUEUE}/v1beta2")
    kind: str = always("Topology")


class TopologyLevel(ApiStruct):
    node_label: str = ""
    alias: str = ""
    """Another name for the level; KAI's only."""


class TopologySpec(ApiStruct):
    """From wide to narrow."""

    levels: tuple[TopologyLevel, ...] = ()


def spec_of(type_: type[S], value: CustomObject) -> S:
    """The spec of an object. Raises DecodeError, whose path begins with `spec`."""
    try:
        return codec.convert(type_, {} if value.spec is None else value.spec)
    except DecodeError as error:
        raise error.under("spec") from error
