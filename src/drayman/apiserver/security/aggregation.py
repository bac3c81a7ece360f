"""Aggregated cluster roles: their rules are those of all cluster roles with certain labels.

Runs alongside the server. Roles are few and change rarely, so after a change to any of them every aggregated role is worked out
again, and written if its rules differ.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import closing
from typing import Final

from drayman.api.codec import convert
from drayman.api.labels import matches
from drayman.api.meta import LabelSelector
from drayman.api.struct import Json
from drayman.apiserver.kinds.access_control import GROUP
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.requests.calls import own_call
from drayman.apiserver.security.rbac import CLUSTER_ROLES
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.core import Core
from drayman.apiserver.verbs.updating import replace
from drayman.cluster.embedded import Key, Store, StoreError, TooOldError
from drayman.cluster.options import WriteOptions

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
_MANAGER: Final = "clusterrole-aggregation-controller"


def aggregated_rules(role: Object, roles: Iterable[Object]) -> list[Json]:
    """The rules an aggregated role has: those of every role that one of its selectors selects, by name, each once."""
    by_name = sorted(roles, key=lambda one: one["metadata"]["name"])
    found: dict[str, Json] = {}
    for selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        wanted = convert(LabelSelector, selector)
        for one in by_name:
            is_other = one["metadata"]["name"] != role["metadata"]["name"]
            if is_other and matches(wanted, one["metadata"].get("labels") or {}):
                found |= {repr(rule): rule for rule in one.get("rules") or ()}
    return list(found.values())


class RoleAggregation:
    """Runs alongside a server, until it is stopped."""

    def __init__(self, core: Core) -> None:
        assert isinstance(core.store, Store), "it follows a store, not a batch"
        self._core = core
        self._store = core.store
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="role-aggregation")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        while True:
            try:
                with closing(
                    self._store.watch(CLUSTER_ROLES, since=self._store.revision)
                ) as changes:
                    await self._aggregate()
                    while not changes.closed:
                        if await changes.next():
                            await self._aggregate()
                return  # the store is closed
            except TooOldError as error:
                log.info("%s; looking at all cluster roles again", error)
            except (StatusError, StoreError) as error:
                log.warning("cluster roles could not be aggregated: %s; trying again", error)
                await asyncio.sleep(RETRY_S)
            except Exception:
                # A bug must not leave every aggregated role as it is for good.
                log.exception("cluster roles could not be aggregated; trying again")
                await asyncio.sleep(RETRY_S)

    async def _aggregate(self) -> None:
        """Write the aggregated roles whose rules have changed. Raises StatusError and StoreError."""
        roles = self._core.objects.list(CLUSTER_ROLES)
        for role in roles:
            if role.get("aggregationRule"):
                rules = aggregated_rules(role, roles)
                if rules != (role.get("rules") or []):
                    await self._write(role["metadata"]["name"], rules)

    async def _write(self, name: str, rules: list[Json]) -> None:
        resource = self._core.resources.named(GROUP, "clusterroles")
        assert resource is not None
        call = own_call(self._core, resource, "update", Key(CLUSTER_ROLES, "", name))
        call.write = WriteOptions(field_manager=_MANAGER)
        existing = self._store.latest(call.key)
        if existing is not None:
            await replace(call, existing, lambda _, role: {**role, "rules": rules})
