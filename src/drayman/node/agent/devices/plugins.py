"""Drivers as this node knows them: by the sockets in its registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drayman.node.preparing import NotRegisteredError
from drayman.plugins.calling import PluginClient
from drayman.plugins.model import Answers, ClaimRef, Removals
from drayman.plugins.registry import Registry


@dataclass(frozen=True, slots=True)
class RegisteredPlugins:
    """Calls the latest instance of each driver."""

    registry: Registry

    async def prepare(self, driver: str, claims: Sequence[ClaimRef]) -> Answers:
        return await self._client(driver).prepare(claims)

    async def unprepare(self, driver: str, claims: Sequence[ClaimRef]) -> Removals:
        return await self._client(driver).unprepare(claims)

    def _client(self, driver: str) -> PluginClient:
        latest = self.registry.latest(driver)
        if latest is None:
            raise NotRegisteredError(f"driver {driver} is not registered on this node")
        return latest.client
