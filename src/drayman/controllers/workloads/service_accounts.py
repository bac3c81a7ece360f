"""Gives every namespace the account that its pods run as unless they name another."""

from __future__ import annotations

from typing import Final

from drayman.api.core import Namespace
from drayman.api.workloads import ServiceAccount
from drayman.cluster.errors import AlreadyExistsError, ClusterError
from drayman.cluster.informer import Notice
from drayman.cluster.resources import NAMESPACES, SERVICE_ACCOUNTS
from drayman.controllers.workloads.owning_pods import is_namespace_ending
from drayman.controllers.workloads.reconciling import Key, Reconciler

_NAME: Final = "default"


class ServiceAccountController(Reconciler[Namespace]):
    """Keeps the account `default` in each namespace."""

    resource = NAMESPACES
    component = "serviceaccount-controller"
    workers = 1

    def follow_others(self) -> None:
        self._accounts = self.follow(SERVICE_ACCOUNTS, self._account_changed)

    async def reconcile(self, key: Key) -> None:
        namespace = self.find(key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return
        name = namespace.metadata.name
        if self._accounts.get(_NAME, name) is not None:
            return
        try:
            await self.client.create(
                SERVICE_ACCOUNTS.as_values(), {"metadata": {"name": _NAME}}, name
            )
        except AlreadyExistsError:
            return
        except ClusterError as error:
            if not is_namespace_ending(error):
                raise

    def _account_changed(self, notice: Notice[ServiceAccount]) -> None:
        if notice.type == "DELETED" and notice.object.metadata.name == _NAME:
            self.queue.add(("", notice.object.metadata.namespace))
