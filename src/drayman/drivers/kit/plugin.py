"""A driver at work on a node: everything that the kit does for it, put together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Final, Self
from wsgiref.simple_server import WSGIServer

from prometheus_client import start_http_server

from drayman.api.resource import Device
from drayman.cluster import Client
from drayman.cluster.background import in_background
from drayman.cluster.backoff import Backoff
from drayman.cluster.errors import ClusterError
from drayman.drivers.kit.attributes import with_attributes
from drayman.drivers.kit.checkpoint import Checkpoint, this_boot
from drayman.drivers.kit.claims import DeviceKey, require_readable
from drayman.drivers.kit.driver import Discovered, Driver
from drayman.drivers.kit.errors import KitError, words_of
from drayman.drivers.kit.health import HealthMonitor, tainted
from drayman.drivers.kit.instances import Instances
from drayman.drivers.kit.locks import Locks
from drayman.drivers.kit.metadata import MetadataFiles
from drayman.drivers.kit.metrics import Metrics
from drayman.drivers.kit.model import Hardware
from drayman.drivers.kit.naming import require_name
from drayman.drivers.kit.options import PluginOptions
from drayman.drivers.kit.preparing import Preparer
from drayman.drivers.kit.publishing import Publication
from drayman.drivers.kit.threads import Threads, driver_errors
from drayman.plugins.model import Answers, ClaimRef, Removals, ReportedHealth
from drayman.plugins.serving import PluginServer
from drayman.plugins.sockets import Sockets, remove_dead

_log: Final = logging.getLogger(__name__)
_RELEASE_EVERY_S: Final = 600.0
_FIRST_REPORT_S: Final = 10.0
"""How long devices are not published for want of a report about their health."""


class Plugin:
    """One instance of a driver. Use it in `async with`, which starts and stops it."""

    def __init__(
        self, driver: Driver, client: Client, options: PluginOptions | None = None
    ) -> None:
        """Raises KitError for a name or a configuration that no driver may have, SocketError, OSError."""
        self.driver = driver
        self.options = options or PluginOptions()
        require_name(driver.name)
        require_readable(driver)
        self.folder = self.options.folder_of(driver.name)
        driver.folder, driver.runs_hooks = self.folder, self.options.runs_hooks
        self.metrics = Metrics(driver.name)
        sockets = Sockets.of(
            driver.name, self.options.registry_dir, self.folder, self.options.instance
        )
        self._client = client
        self._boot_id = self.options.boot_id or this_boot()
        self._checkpoint = Checkpoint(self.folder / "claims", self._boot_id)
        self._instances = Instances(self.folder, sockets.services)
        self.server = PluginServer(driver.name, sockets, self, reports_health=driver.reports_health)
        self._publication = Publication(
            client,
            driver.name,
            driver.node,
            metrics=self.metrics,
            may_publish=self._instances.is_newest,
        )
        self._hardware = Hardware()
        self._is_late = False
        self._rediscover = asyncio.Event()
        self._backoff = Backoff(initial=0.5, cap=driver.discover_every_s)
        self._background: list[asyncio.Task[None]] = []
        self._end = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Returns when the node can find the driver. Raises CheckpointError, SocketError, OSError."""
        async with AsyncExitStack() as end:
            await self._start(end)
            self._end = end.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end.aclose()

    async def _start(self, end: AsyncExitStack) -> None:
        driver, options = self.driver, self.options
        self._threads = Threads(driver.name)
        locks = Locks(self.folder / "lock")
        end.callback(locks.close)
        self._preparer = Preparer(
            driver,
            self._client,
            checkpoint=self._checkpoint,
            locks=locks,
            cdi_dir=options.cdi_dir,
            devices=self.devices,
            counters=lambda: self._hardware.counters,
            threads=self._threads,
            metrics=self.metrics,
            boot_id=self._boot_id,
            files=MetadataFiles(driver.name, self.folder),
            describes=options.device_metadata,
        )
        end.push_async_callback(self._preparer.settle)
        await asyncio.to_thread(self._recover)
        await self._preparer.recover()
        loop = asyncio.get_running_loop()

        def rediscover() -> None:
            loop.call_soon_threadsafe(self._rediscover.set)

        driver.on_change(rediscover)
        driver.prepared_claims = self._preparer.claims
        self.health = HealthMonitor(driver, self._threads, self._want)
        await self.discover()
        if options.metrics_port is not None:
            server, _ = start_http_server(options.metrics_port, registry=self.metrics.registry)
            end.push_async_callback(asyncio.to_thread, _stop_serving, server)
        remove_dead(driver.name, options.registry_dir, self.folder)
        if options.wipe_on_exit:
            end.push_async_callback(self._wipe)
        end.push_async_callback(self.server.stop)
        await self.server.start()
        self._instances.enter()
        parts = {
            "publication": self._publication.run(),
            "discovery": self._discover_again(),
            "clean-up": self._release_again(),
            "follower": self._follow(),
        }
        if driver.reports_health:
            parts["health"] = self.health.run()
            end.callback(loop.call_later(_FIRST_REPORT_S, self._do_without_health).cancel)
        for name, work in parts.items():
            task = in_background(work, f"the {name} of driver {driver.name}", _log)
            self._background.append(task)
            end.push_async_callback(_cancel, task)

    async def run(self) -> None:
        """Returns when it is cancelled. Raises what ended a part of it that should never end."""
        done, _ = await asyncio.wait(self._background, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
        raise KitError(f"driver {self.driver.name} has stopped working")

    def _recover(self) -> None:
        """Take in what an earlier run has prepared."""
        for record in self._checkpoint.load():
            self._preparer.forget_files(record.uid)
            meta = record.claim.metadata
            _log.info("claim %s/%s is from before the last boot", meta.namespace, meta.name)
        self.metrics.prepared.set(len(self._checkpoint))

    async def prepare(self, claims: Sequence[ClaimRef]) -> Answers:
        return await self._preparer.prepare(claims)

    async def unprepare(self, claims: Sequence[ClaimRef]) -> Removals:
        return await self._preparer.unprepare(claims)

    async def release_gone(self) -> None:
        """Give back the devices of claims that no longer exist. Raises ClusterError."""
        await self._preparer.release_gone()

    def watch_health(self) -> AsyncIterator[Sequence[ReportedHealth]]:
        return self.health.watch(self._watched)

    def _watched(self) -> list[DeviceKey]:
        """The devices that are known, and those that the driver reports about though it does not find them any more."""
        reported = [(self.driver.node, each.device) for each in self.health.reports]
        return list(dict.fromkeys([*self.devices(), *reported]))

    def devices(self) -> dict[DeviceKey, Device]:
        """The devices that are known, by pool and name."""
        return {(self.driver.node, device.name): device for device in self._hardware.devices}

    async def discover(self) -> bool:
        """Ask the driver for its devices. What it had stays if it fails, or finds nothing while some are in use."""
        try:
            found = _hardware_of(await self._threads.call(self.driver.discover))
            is_doubtful = not found.devices and len(self._checkpoint) > 0
            if is_doubtful and not self._hardware.devices:
                is_doubtful = await self._publication.has_devices()
        except Exception as error:
            self.metrics.discovery_failures.inc()
            _log.error(
                "driver %s cannot discover its devices: %s",
                self.driver.name,
                words_of(error),
                exc_info=None if isinstance(error, KitError) else error,
            )
            return False
        if is_doubtful:
            self.metrics.discovery_failures.inc()
            _log.error(
                "driver %s finds no devices, and %d claims are prepared; the ones known stay published",
                self.driver.name,
                len(self._checkpoint),
            )
            return False
        self._hardware = found
        self._want()
        return True

    def _want(self) -> None:
        """Have what is known published, with the taints of devices that are not healthy.

        The first report is waited for: a driver that is started again must not clear the taint of a device that is still broken.
        """
        if self.driver.reports_health and not (self.health.is_known or self._is_late):
            return
        hardware = tainted(self.driver.name, self._hardware, self.health.reports)
        unhealthy = {each.device for each in self.health.reports if each.healthy is False}
        self.metrics.unhealthy.set(len(unhealthy))
        self._publication.want(hardware)

    def _do_without_health(self) -> None:
        if not self.health.is_known:
            _log.warning("driver %s has not said how its devices are", self.driver.name)
            self._is_late = True
            self._want()

    async def _discover_again(self) -> None:
        failures = 0
        while True:
            wait = self._backoff.delay(failures) if failures else self.driver.discover_every_s
            try:
                async with asyncio.timeout(wait):
                    await self._rediscover.wait()
            except TimeoutError:
                pass
            self._rediscover.clear()
            failures = 0 if await self.discover() else failures + 1

    async def _follow(self) -> None:
        """A driver that does not hear of changes is still asked for its devices now and then."""
        try:
            with driver_errors():
                following = self.driver.follow()
                if following is not None:
                    await following
        except Exception as error:
            _log.error("driver %s cannot follow its devices", self.driver.name, exc_info=error)
        await asyncio.Event().wait()

    async def _release_again(self) -> None:
        while True:
            try:
                await self.release_gone()
            except (ClusterError, KitError, OSError) as error:
                _log.warning("claims that are gone cannot be looked for: %s", error)
            await asyncio.sleep(_RELEASE_EVERY_S)

    async def _wipe(self) -> None:
        if self._instances.is_newest():
            await self._publication.wipe()


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _stop_serving(server: WSGIServer) -> None:
    """Returns when the server accepts nothing any more, which takes it a moment to notice."""
    server.shutdown()
    server.server_close()


def _hardware_of(found: Discovered) -> Hardware:
    """Raises PublishError."""
    return with_attributes(found if isinstance(found, Hardware) else Hardware.of(found))
