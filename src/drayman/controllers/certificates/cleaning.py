"""Removes requests that are over, and those that nobody decides about, after the times that Kubernetes gives them.

Who asked for a certificate has fetched it by then, and nodes ask again and again.
"""

from __future__ import annotations

from typing import Final

from drayman.api.certificates import APPROVED, DENIED, FAILED, CertificateSigningRequest
from drayman.api.times import seconds_of
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import SIGNING_REQUESTS
from drayman.controllers.workloads.reconciling import Key, Reconciler

DECIDED_S: Final = 3600.0
UNDECIDED_S: Final = 24 * 3600.0


class CertificateCleaner(Reconciler[CertificateSigningRequest]):
    """Deletes requests when their time is over."""

    resource = SIGNING_REQUESTS
    component = "certificate-cleaner"
    workers = 1

    async def reconcile(self, key: Key) -> None:
        request = self.find(key)
        if request is None:
            return
        left = ends_at(request) - self.clock()
        if left > 0:
            self.queue.add_after(key, left)
            return
        meta = request.metadata
        options = DeleteOptions(uid=meta.uid, resource_version=meta.resource_version)
        await self.client.delete(SIGNING_REQUESTS, meta.name, options=options)


def ends_at(request: CertificateSigningRequest) -> float:
    """When a request has been there for long enough, in seconds since the epoch."""
    decided = [
        seconds_of(since)
        for kind in (APPROVED, DENIED, FAILED)
        if (found := request.status.condition(kind)) is not None
        if (since := found.last_update_time) is not None
    ]
    if decided:
        return max(decided) + DECIDED_S
    created = request.metadata.creation_timestamp
    return UNDECIDED_S + (0.0 if created is None else seconds_of(created))
