"""What made a pod: what people know it by."""

from __future__ import annotations

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.meta import controller_of
from drayman.workloads.template_hash import LABEL


class Maker(Struct, frozen=True):
    """What replaces pods when they are gone."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def makers_of(pod: Pod) -> tuple[Maker, ...]:
    """What makes the pod, and what makes that: the controller that the pod names, and the Deployment whose ReplicaSet it is."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return ()
    nearest = Maker(owner.kind, owner.name)
    template = pod.metadata.labels.get(LABEL)
    deployment = owner.name.removesuffix(f"-{template}")
    if owner.kind == "ReplicaSet" and template and deployment != owner.name:
        return nearest, Maker("Deployment", deployment)
    return (nearest,)


def maker_of(pod: Pod) -> Maker | None:
    """What makes the pod. A ReplicaSet that a Deployment has made does not count: people did not write it."""
    makers = makers_of(pod)
    return makers[-1] if makers else None


def known_as(pod: Pod) -> Maker:
    """What makes the pod, or the pod itself if nothing does."""
    return maker_of(pod) or Maker("Pod", pod.metadata.name)
