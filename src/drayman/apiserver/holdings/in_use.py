"""A claim that a running pod uses keeps its devices, whoever edits it.

Kubernetes leaves this to a finalizer and to convention: a user who may edit claims can strip the finalizer, the reservation or the
allocation, and the devices are given to another pod while the first one still computes on them. Here such a write is refused. The
devices are released when the pod has ended on its node, or is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaimConsumerReference
from drayman.apiserver.holdings.exclusive import CLAIMS
from drayman.apiserver.kinds.reading import at, items_at
from drayman.apiserver.protocol.errors import forbidden
from drayman.apiserver.served.strategy import Context, Object
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted
from drayman.placement.claims import FINALIZER, resource_of, runs_with


class ClaimsInUse(AdmissionPlugin):
    """Refuses to take a claim away from a pod that runs with it."""

    def validate(self, write: Admitted) -> None:
        old = write.old
        if write.resource.storage_name != CLAIMS or old is None:
            return
        if not at(old, "status", "allocation"):
            return
        for consumer in _deprived(write.new, old):
            for pod in _users(consumer, write.namespace, write.context):
                why = (
                    f'pod "{pod.metadata.name}" on node "{pod.spec.node_name}" uses its devices, '
                    "which stay with it until the pod has ended"
                )
                raise forbidden(write.resource.subject(write.name), why)


def _deprived(new: Object | None, old: Object) -> Iterable[Object]:
    """The consumers for which a write ends the claim, or leaves it to the next deletion."""
    consumers = items_at(old, "status", "reservedFor")
    if new is None:
        return () if items_at(old, "metadata", "finalizers") else consumers
    is_unprotected = _is_protected(old) and not _is_protected(new)
    if is_unprotected or at(new, "status", "allocation") != at(old, "status", "allocation"):
        return consumers
    kept = {consumer.get("uid") for consumer in items_at(new, "status", "reservedFor")}
    return (consumer for consumer in consumers if consumer.get("uid") not in kept)


def _is_protected(claim: Object) -> bool:
    return FINALIZER in items_at(claim, "metadata", "finalizers")


def _users(consumer: Object, namespace: str, context: Context) -> Iterator[Pod]:
    """The pods of a consumer that run, as far as is known."""
    reference = convert(ResourceClaimConsumerReference, consumer)
    if resource_of(reference) == "pods":
        found = context.objects.get("pods", namespace, reference.name)
        pods = [] if found is None else [found]
    else:
        pods = context.objects.list("pods", namespace)
    for obj in pods:
        pod = convert(Pod, obj)
        if runs_with(pod, namespace, reference):
            yield pod
