"""What a scheduler that talks to a cluster from outside has to be allowed there.

Everything that it follows, reads and writes, and nothing more. The stock role `system:kube-scheduler` is not enough: it lets nobody hold a
lease but that of kube-scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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


RIGHTS: Final = (
    Right("", "namespaces", _FOLLOW),
    Right("", "nodes", _FOLLOW),
    Right("", "pods", (*_FOLLOW, "delete")),
    Right("", "pods/binding", ("create",)),
    Right("", "pods/status", ("patch",)),
    # A claim for extended resources is owned by its pod, and some clusters ask whoever says so for this.
    Right("", "pods/finalizers", ("update",)),
    Right("", "persistentvolumes", (*_FOLLOW, "patch")),
    Right("", "persistentvolumeclaims", (*_FOLLOW, "patch")),
    Right("storage.k8s.io", "storageclasses", _FOLLOW),
    Right("storage.k8s.io", "csidrivers", _FOLLOW),
    Right("storage.k8s.io", "csistoragecapacities", _FOLLOW),
    Right("policy", "poddisruptionbudgets", _FOLLOW),
    Right("resource.k8s.io", "deviceclasses", _FOLLOW),
    Right("resource.k8s.io", "devicetaintrules", _FOLLOW),
    Right("resource.k8s.io", "resourceslices", _FOLLOW),
    Right("resource.k8s.io", "resourceclaims", (*_FOLLOW, "create", "patch", "delete")),
    Right("resource.k8s.io", "resourceclaims/status", ("patch",)),
    # From 1.36 on, whoever changes an allocation or a reservation needs this besides.
    Right("resource.k8s.io", "resourceclaims/binding", ("patch",)),
    Right("scheduling.k8s.io", "podgroups", _FOLLOW),
    Right("events.k8s.io", "events", ("create", "patch")),
)
"""In the whole cluster."""

LEADING: Final = (
    # Whoever creates an object may not be held to a name.
    Right("coordination.k8s.io", "leases", ("create",), namespace=LEASE_NAMESPACE),
    Right("coordination.k8s.io", "leases", ("get", "update"), LEASE, LEASE_NAMESPACE),
)
"""For leader election."""
