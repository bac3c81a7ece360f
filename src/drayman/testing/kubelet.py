"""A node as drivers see it: it finds them in its registry, calls them, and deletes the slices of those that have gone.

It starts no containers. What one would get is worked out from the CDI files that are there, as a container runtime does it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Self

from drayman.api.resource import ResourceClaim
from drayman.cluster import Client
from drayman.drivers.kit.options import PluginOptions
from drayman.node.agent.devices.wiping import WIPE_AFTER_S, SliceWiper
from drayman.plugins.calling import CALL_S
from drayman.plugins.cdi import Container, Devices, merged
from drayman.plugins.model import ClaimRef, Failed, Ready, ReportedHealth
from drayman.plugins.registry import Registered, Registry


class FakeKubelet:
    """Use it in `async with`."""

    def __init__(
        self, client: Client, node: str, folder: Path, *, wipe_after_s: float = WIPE_AFTER_S
    ) -> None:
        """The folder holds the registry, the plugins' own folders and the CDI files; keep its path short, for sockets have little room."""
        self.node = node
        self.registry_dir = folder / "registry"
        self.cdi_dir = folder / "cdi"
        self.plugins_dir = folder / "plugins"
        self._wiper = SliceWiper(client, node, wipe_after_s)
        self.registry = Registry(self.registry_dir, interval_s=0.05, on_change=self._changed)

    def options(self, driver: str = "driver", *, instance: str = "") -> PluginOptions:
        """How a plugin is run on this node."""
        return PluginOptions(
            plugin_dir=self.plugins_dir / driver,
            registry_dir=self.registry_dir,
            cdi_dir=self.cdi_dir,
            instance=instance,
        )

    async def __aenter__(self) -> Self:
        await self.registry.__aenter__()
        return self

    async def __aexit__(self, *args: object) -> None:
        await self.registry.__aexit__(*args)
        await self._wiper.stop()

    async def registered(self, driver: str, instances: int = 1) -> Registered:
        """The latest instance of a driver, once there are so many of it."""
        await self.registry.wait_until(lambda now: len(now.instances(driver)) == instances)
        return self.registry.instances(driver)[-1]

    async def registered_after(self, before: Registered) -> Registered:
        """The next instance of the same driver, or the same one registered again."""
        driver, order = before.driver, before.order
        await self.registry.wait_until(
            lambda now: any(each.order > order for each in now.instances(driver))
        )
        return self.registry.instances(driver)[-1]

    async def deregistered(self, driver: str) -> None:
        """Returns when no instance of a driver is registered."""
        await self.registry.wait_until(lambda now: not now.instances(driver))

    async def _latest(self, driver: str) -> Registered:
        await self.registry.wait_until(lambda now: now.latest(driver) is not None)
        found = self.registry.latest(driver)
        assert found is not None
        return found

    async def prepare_all(
        self, driver: str, claims: Sequence[ResourceClaim | ClaimRef], timeout_s: float = CALL_S
    ) -> dict[str, Ready | Failed]:
        """One call for several claims. Raises CallError."""
        latest = await self._latest(driver)
        return await latest.client.prepare([_ref(claim) for claim in claims], timeout_s)

    async def unprepare_all(
        self, driver: str, claims: Sequence[ResourceClaim | ClaimRef], timeout_s: float = CALL_S
    ) -> dict[str, Failed | None]:
        """One call for several claims. Raises CallError."""
        latest = await self._latest(driver)
        return await latest.client.unprepare([_ref(claim) for claim in claims], timeout_s)

    async def prepare(self, driver: str, claim: ResourceClaim | ClaimRef) -> Ready | Failed:
        """Raises CallError."""
        return (await self.prepare_all(driver, [claim]))[_ref(claim).uid]

    async def unprepare(self, driver: str, claim: ResourceClaim | ClaimRef) -> Failed | None:
        """Raises CallError."""
        return (await self.unprepare_all(driver, [claim]))[_ref(claim).uid]

    async def health(self, driver: str) -> AsyncGenerator[tuple[ReportedHealth, ...], None]:
        """What a driver reports. Raises CallError."""
        latest = await self._latest(driver)
        async with aclosing(latest.client.health()) as stream:
            async for reports in stream:
                yield reports

    def container(self, answer: Ready | Failed | None, *requests: str) -> Container:
        """What a container gets that uses a prepared claim, or some requests of it. Raises CdiError."""
        assert isinstance(answer, Ready), f"the claim is not prepared: {answer}"
        ids = [
            name
            for device in answer.devices
            if not requests or not device.requests or set(requests) & set(device.requests)
            for name in device.cdi_ids
        ]
        return merged(Devices.load([self.cdi_dir]).edits(ids))

    def cdi_files(self) -> list[str]:
        """The names of the CDI files that are there."""
        return sorted(path.name for path in self.cdi_dir.glob("*"))

    def _changed(self, driver: str) -> None:
        self._wiper.changed(driver, bool(self.registry.instances(driver)))


def _ref(claim: ResourceClaim | ClaimRef) -> ClaimRef:
    if isinstance(claim, ClaimRef):
        return claim
    return ClaimRef(claim.metadata.namespace, claim.metadata.name, claim.metadata.uid)
