"""The permissions that a scheduler needs in a cluster that it talks to from outside.

Everything that it follows, reads and writes, and nothing more. The stock role `system:kube-scheduler` is not enough: it only allows holding
the lease of kube-scheduler, and does not include Jobs and the groups of other schedulers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from drayman.api.catalog import kind_of_type
from drayman.api.core import Pod
from drayman.api.resource import DeviceTaintRule, ResourceClaim
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.api.struct import ApiStruct
from drayman.cluster.rights import FOLLOW, Right
from drayman.placement.followed import FOLLOWED
from drayman.placement.schedulers import LEASE_NAMESPACE, lease_of

_WRITES: Final[Mapping[type[ApiStruct], tuple[str, ...]]] = {
    Pod: ("delete",),
    PersistentVolume: ("patch",),
    PersistentVolumeClaim: ("patch",),
    ResourceClaim: ("create", "patch", "delete"),
    # For devices that two claims hold.
    DeviceTaintRule: ("create", "delete"),
}
"""What is done with objects of the kinds that are followed."""

_BESIDES: Final = (
    Right("", "pods/binding", ("create",)),
    Right("", "pods/status", ("patch",)),
    # A claim for extended resources is owned by its pod, and some clusters require this for setting the owner.
    Right("", "pods/finalizers", ("update",)),
    # Where the pods of admitted workloads go.
    Right("kueue.x-k8s.io", "workloads", FOLLOW),
    Right("policy", "poddisruptionbudgets", FOLLOW),
    Right("resource.k8s.io", "resourceclaims/status", ("patch",)),
    # From 1.36 on, changing an allocation or a reservation also requires this.
    Right("resource.k8s.io", "resourceclaims/binding", ("patch",)),
    Right("events.k8s.io", "events", ("create", "patch")),
    Right("scheduling.k8s.io", "podgroups/status", ("patch",)),
    Right("scheduling.run.ai", "queues/status", ("patch",)),
)


def _rights() -> Iterator[Right]:
    for followed in FOLLOWED:
        # Outside the cluster's own process, its controller makes the claims from templates.
        if not followed.for_drafts:
            kind = kind_of_type(followed.type)
            verbs = (*FOLLOW, *_WRITES.get(followed.type, ()))
            yield Right(kind.group, kind.plural, verbs)
    yield from _BESIDES


RIGHTS: Final = tuple(sorted(_rights(), key=lambda right: (right.group, right.resource)))
"""In the whole cluster."""


def leading(names: Iterable[str]) -> tuple[Right, ...]:
    """For leader election among the schedulers of these names."""
    group = "coordination.k8s.io"
    return (
        # Creation cannot be restricted to a name.
        Right(group, "leases", ("create",), namespace=LEASE_NAMESPACE),
        *(
            Right(group, "leases", ("get", "update"), lease_of(name), LEASE_NAMESPACE)
            for name in sorted(names)
        ),
    )
