"""What a scheduler that talks to a cluster from outside has to be allowed there.

Everything that it follows, reads and writes, and nothing more. The stock role `system:kube-scheduler` is not enough: it lets nobody hold a
lease but that of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from drayman.api.catalog import kind_of_type
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.api.struct import ApiStruct
from drayman.placement.followed import FOLLOWED

LEASE: Final = "drayman-scheduler"
LEASE_NAMESPACE: Final = "kube-system"

_FOLLOW: Final = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on a resource, perhaps on a subresource, perhaps on one object alone."""

    group: str
    resource: str
    """With the subresource after a slash."""
    verbs: tuple[str, ...]
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        """As in `get, update leases.coordination.k8s.io drayman-scheduler in kube-system`."""
        plural, slash, subresource = self.resource.partition("/")
        group = f".{self.group}" if self.group else ""
        name = f" {self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{', '.join(self.verbs)} {plural}{group}{slash}{subresource}{name}{where}"


_WRITES: Final[Mapping[type[ApiStruct], tuple[str, ...]]] = {
    Pod: ("delete",),
    PersistentVolume: ("patch",),
    PersistentVolumeClaim: ("patch",),
    ResourceClaim: ("create", "patch", "delete"),
}
"""What is done with objects of the kinds that are followed."""

_BESIDES: Final = (
    Right("", "pods/binding", ("create",)),
    Right("", "pods/status", ("patch",)),
    # A claim for extended resources is owned by its pod, and some clusters ask whoever says so for this.
    Right("", "pods/finalizers", ("update",)),
    Right("policy", "poddisruptionbudgets", _FOLLOW),
    Right("resource.k8s.io", "resourceclaims/status", ("patch",)),
    # From 1.36 on, whoever changes an allocation or a reservation needs this besides.
    Right("resource.k8s.io", "resourceclaims/binding", ("patch",)),
    Right("events.k8s.io", "events", ("create", "patch")),
)


def _rights() -> Iterator[Right]:
    for followed in FOLLOWED:
        # Outside of the cluster's own process, claims are made from templates by its controller.
        if not followed.for_drafts:
            kind = kind_of_type(followed.type)
            verbs = (*_FOLLOW, *_WRITES.get(followed.type, ()))
            yield Right(kind.group, kind.plural, verbs)
    yield from _BESIDES


RIGHTS: Final = tuple(sorted(_rights(), key=lambda right: (right.group, right.resource)))
"""In the whole cluster."""

LEADING: Final = (
    # Whoever creates an object may not be held to a name.
    Right("coordination.k8s.io", "leases", ("create",), namespace=LEASE_NAMESPACE),
    Right("coordination.k8s.io", "leases", ("get", "update"), LEASE, LEASE_NAMESPACE),
)
"""For leader election."""
