"""Lets deleted groups of pods go once their pods have ended.

The server gives each a finalizer: the claims that a group shares are reserved for it, and must not be taken from under running pods.
"""

from __future__ import annotations

import time
from typing import Final

from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import group_key, is_finished
from drayman.cluster.client import Client
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.resources import POD_GROUPS, PODS
from drayman.controllers.workloads.protection import Protection, is_leaving
from drayman.controllers.workloads.reconciling import Clock, Key

_PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"


class PodGroupProtectionController(Protection[PodGroup]):
    """Lets groups go when the last of their pods has ended."""

    resource = POD_GROUPS
    component = "podgroup-protection-controller"
    workers = 1

    def __init__(self, client: Client, informers: Informers, *, clock: Clock = time.time) -> None:
        super().__init__(client, informers, clock=clock)
        self._pods = informers.informer(PODS)
        self._pods.add_handler(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        group = self.find(key)
        if group is None or not is_leaving(group, _PROTECTION):
            return
        # Deleted groups are rare, so no index is kept for them.
        if not any(group_key(pod) == key and not is_finished(pod) for pod in self._pods.cache):
            await self.unprotect(group, _PROTECTION)

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        group = group_key(pod)
        if group is not None and (notice.type == "DELETED" or is_finished(pod)):
            self.queue.add(group)
