"""Who acts on each kind that is served: the one place that says so, from which warnings and docs/kinds.md follow.

A built-in kind without an entry cannot be served: whoever adds a kind has to say here what becomes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.served.acting import UNKNOWN, Acting, Gap, Part
from drayman.apiserver.served.strategy import Object

SERVER, CONTROLLERS, SCHEDULER, NODES = (
    Part.SERVER,
    Part.CONTROLLERS,
    Part.SCHEDULER,
    Part.NODES,
)


def _data(purpose: str) -> Acting:
    """A kind that nobody has to act on."""
    return Acting(effect=purpose)


def _by(*parts: Part, effect: str, gap: Gap | None = None) -> Acting:
    return Acting(parts, effect, gap)


def _nobody(consequence: str, part: Part = CONTROLLERS) -> Acting:
    return Acting(gap=Gap(part, consequence))


def _is_gang(group: Object) -> bool:
    policy: Json = (group.get("spec") or {}).get("schedulingPolicy") or {}
    return bool(policy.get("gang"))


_ANSWERED: Final = _by(SERVER, effect="is answered; nothing is kept")
_RIGHTS: Final = _by(SERVER, effect="rights are granted by it")
_KUEUE: Final = _nobody(
    "Drayman does not act on it: unless Kueue runs beside, no workload is queued or admitted by it"
)
_PLACED_ONE_BY_ONE: Final = Gap(
    SCHEDULER, "its pods are placed one by one: nothing waits until all of them fit"
)
_NO_PROXY: Final = "no proxy runs here: nothing is routed to its addresses"
_STORAGE: Final = "no storage driver runs here, and nothing reads it"

ACTORS: Final[Mapping[str, Acting]] = {
    # The core group
    "bindings": _by(SERVER, effect="the pod gets its node"),
    "configmaps": _data("data for pods; simulated nodes do not read it"),
    "endpoints": _nobody(_NO_PROXY),
    "events": _data("what happened, for people to read"),
    "limitranges": _by(SERVER, effect="what new pods and volume claims ask for is filled in and bounded"),
    "namespaces": _by(CONTROLLERS, effect="a deleted one ends with everything in it"),
    "nodes": _by(
        SCHEDULER, CONTROLLERS, NODES, effect="pods are placed on it; silent ones are tainted and emptied; simulated ones send heartbeats"
    ),
    "persistentvolumeclaims": _by(
        SERVER,
        SCHEDULER,
        CONTROLLERS,
        effect="gets the default class; a volume is bound to it or simulated for it, and pods are placed where that can be reached",
    ),
    "persistentvolumes": _by(
        SCHEDULER,
        CONTROLLERS,
        effect="is bound to a claim and reclaimed by its policy; pods are placed where it can be reached",
    ),
    "pods": _by(
        SCHEDULER, CONTROLLERS, NODES, effect="gets a node, claims and devices, and runs in name only"
    ),
    "podtemplates": _data("a template for whoever reads it"),
    "replicationcontrollers": _by(CONTROLLERS, effect="its number of pods is kept"),
    "resourcequotas": _nobody("nothing counts or enforces quotas here: it limits nothing"),
    "secrets": _data("data for pods; simulated nodes do not read it"),
    "serviceaccounts": _by(
        SERVER, CONTROLLERS, effect="tokens are issued for it; every namespace gets a default one"
    ),
    "services": _by(
        SERVER,
        effect="gets its address and ports",
        gap=Gap(CONTROLLERS, "nothing serves it here: it gets no EndpointSlices, no name in DNS and no traffic"),
    ),
    # Workloads
    "controllerrevisions.apps": _by(CONTROLLERS, effect="the history of StatefulSets and DaemonSets is kept in it"),
    "daemonsets.apps": _by(CONTROLLERS, effect="a pod is kept on each of its nodes"),
    "deployments.apps": _by(CONTROLLERS, effect="is rolled out through ReplicaSets"),
    "replicasets.apps": _by(CONTROLLERS, effect="its number of pods is kept"),
    "statefulsets.apps": _by(CONTROLLERS, effect="its pods and their volume claims are kept, in order"),
    "horizontalpodautoscalers.autoscaling": _nobody("no autoscaler runs here: it scales nothing"),
    "cronjobs.batch": _nobody("no CronJob controller runs here: it starts no Jobs"),
    "jobs.batch": _by(CONTROLLERS, effect="its pods are run to completion"),
    # Devices
    "deviceclasses.resource.k8s.io": _by(SCHEDULER, effect="devices are chosen by it"),
    "devicetaintrules.resource.k8s.io": _by(
        SCHEDULER, CONTROLLERS, effect="tainted devices are avoided, and pods evicted from them"
    ),
    "resourceclaims.resource.k8s.io": _by(
        SCHEDULER, CONTROLLERS, NODES, effect="devices are allocated, reserved, prepared in name only, and released"
    ),
    "resourceclaimtemplates.resource.k8s.io": _by(
        SCHEDULER, CONTROLLERS, effect="the claims of pods are made from it"
    ),
    "resourcepoolstatusrequests.resource.k8s.io": _nobody(
        "no controller answers it here: its status stays empty"
    ),
    "resourceslices.resource.k8s.io": _by(
        SCHEDULER, NODES, effect="its devices are allocated; simulated hardware publishes its own"
    ),
    # Scheduling and disruption
    "poddisruptionbudgets.policy": _by(
        SERVER, CONTROLLERS, SCHEDULER, effect="evictions are refused by it, its status is kept, and preemption spares its pods"
    ),
    "podgroups.scheduling.k8s.io": Acting(
        (SCHEDULER, CONTROLLERS),
        "claims that the group shares are reserved for it; it is not removed while in use",
        replace(_PLACED_ONE_BY_ONE, concerns=_is_gang, case="of a gang"),
    ),
    "priorityclasses.scheduling.k8s.io": _by(
        SERVER, SCHEDULER, effect="pods get their priority from it, and are ordered and preempted by that"
    ),
    "workloads.scheduling.k8s.io": _nobody(
        "no controller makes PodGroups of its templates here"
    ),
    # Certificates, addresses, nodes, rights
    "certificatesigningrequests.certificates.k8s.io": _nobody(
        "no approver and no signer run here: no certificate is issued for it"
    ),
    "endpointslices.discovery.k8s.io": _nobody(_NO_PROXY),
    "events.events.k8s.io": _data("what happened, for people to read"),
    "ipaddresses.networking.k8s.io": _nobody(
        "Services get their addresses without it here: it reserves nothing"
    ),
    "leases.coordination.k8s.io": _by(
        CONTROLLERS, NODES, effect="those of nodes tell that they are alive; others are data"
    ),
    "runtimeclasses.node.k8s.io": _by(
        SERVER, effect="its overhead, node selector and tolerations are added to pods; simulated nodes ignore its handler"
    ),
    "servicecidrs.networking.k8s.io": _nobody(
        "Services get their addresses from one fixed range here: it adds none"
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": _RIGHTS,
    "clusterroles.rbac.authorization.k8s.io": _RIGHTS,
    "rolebindings.rbac.authorization.k8s.io": _RIGHTS,
    "roles.rbac.authorization.k8s.io": _RIGHTS,
    # Storage
    "csidrivers.storage.k8s.io": _by(
        SCHEDULER, effect="tells whether the storage that is left counts when a node is chosen"
    ),
    "csinodes.storage.k8s.io": _nobody(_STORAGE),
    "csistoragecapacities.storage.k8s.io": _by(
        SCHEDULER, effect="nodes are chosen by the storage that is left"
    ),
    "storageclasses.storage.k8s.io": _by(
        SERVER,
        SCHEDULER,
        CONTROLLERS,
        effect="claims get it by default, nodes are chosen by its topologies, and volumes are simulated by it",
    ),
    "volumeattachments.storage.k8s.io": _nobody(_STORAGE),
    "volumeattributesclasses.storage.k8s.io": _nobody(_STORAGE),
    # The server itself
    "customresourcedefinitions.apiextensions.k8s.io": _by(SERVER, effect="the kind that it defines is served"),
    "localsubjectaccessreviews.authorization.k8s.io": _ANSWERED,
    "selfsubjectaccessreviews.authorization.k8s.io": _ANSWERED,
    "selfsubjectreviews.authentication.k8s.io": _ANSWERED,
    "selfsubjectrulesreviews.authorization.k8s.io": _ANSWERED,
    "subjectaccessreviews.authorization.k8s.io": _ANSWERED,
    "tokenreviews.authentication.k8s.io": _ANSWERED,
}  # fmt: skip
"""By plural and group."""

CUSTOM_ACTORS: Final[Mapping[str, Acting]] = {
    "podgroups.scheduling.x-k8s.io": Acting(gap=_PLACED_ONE_BY_ONE),
    "computedomains.resource.nvidia.com": _by(NODES, effect="its claim template is made, and its status tells when it is ready"),
}  # fmt: skip
"""Kinds that definitions bring and about which something is known."""

CUSTOM_GROUPS: Final[Mapping[str, Acting]] = {
    "kueue.x-k8s.io": _KUEUE,
    "scheduling.run.ai": _nobody(
        "Drayman does not act on it: unless KAI Scheduler runs beside, nothing is scheduled by it",
        SCHEDULER,
    ),
}
"""Whole groups of them."""


def acting_on_custom(group: str, plural: str) -> Acting:
    """Who acts on a kind that a definition brings; nobody knows for most of them."""
    known = CUSTOM_ACTORS.get(f"{plural}.{group}")
    return known or CUSTOM_GROUPS.get(group, UNKNOWN)
