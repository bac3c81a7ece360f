"""Keeps the slices of a driver on its node as they should be, whoever deletes or changes them.

What is published is compared with what should be after every change on either side, and again after a failure. Of two instances of a
driver only the newer one publishes; otherwise they would overwrite each other for as long as an update takes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from drayman.api.core import Node
from drayman.api.resource import ResourceSlice
from drayman.cluster import Client
from drayman.cluster.backoff import Backoff
from drayman.cluster.errors import ClusterError, ForbiddenError, NotFoundError
from drayman.cluster.informer import Informer, Notice, Selection
from drayman.cluster.options import DeleteOptions, ListOptions, WriteOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import NODES, RESOURCE_SLICES
from drayman.drivers.kit.errors import PublishError
from drayman.drivers.kit.metrics import Metrics
from drayman.drivers.kit.model import Hardware
from drayman.drivers.kit.slices import Changes, Publisher, changes, contents_to_publish

_log: Final = logging.getLogger(__name__)


class Publication:
    """The slices of one driver on one node."""

    def __init__(
        self,
        client: Client,
        driver: str,
        node: str,
        *,
        metrics: Metrics,
        may_publish: Callable[[], bool],
        backoff: Backoff | None = None,
    ) -> None:
        """`may_publish` says whether it is up to this instance of the driver. It may raise OSError."""
        self._client = client
        self._driver = driver
        self._node = node
        self._metrics = metrics
        self._may_publish = may_publish
        self._backoff = backoff or Backoff(initial=0.1, cap=30.0)
        self._selector = f"spec.nodeName={node},spec.driver={driver}"
        self._wanted: Hardware | None = None
        self._wake = asyncio.Event()
        self._generation = 0
        self._options = WriteOptions(field_manager=driver)

    def want(self, hardware: Hardware) -> None:
        """What is to be published from now on."""
        self._wanted = hardware
        self._wake.set()

    async def run(self) -> None:
        """Publish, and publish again, until cancelled."""
        selection = Selection(RESOURCE_SLICES, field_selector=self._selector)
        failures = writes = 0
        told = ""
        async with Informer(self._client, selection) as informer:
            informer.add_handler(self._notice)
            while True:
                await self._wake.wait()
                self._wake.clear()
                try:
                    writes = writes + 1 if await self.publish() else 0
                    failures = 0
                    if told:
                        _log.info("slices of %s: written", self._driver)
                    told = ""
                except (ClusterError, PublishError, OSError) as error:
                    self._metrics.publish_failures.inc()
                    failures += 1
                    is_lasting = isinstance(error, PublishError)
                    level = logging.ERROR if is_lasting else logging.WARNING
                    problem = _problem(error)
                    if problem != told:
                        _log.log(level, "slices of %s: %s", self._driver, problem)
                    told = problem
                    if is_lasting:
                        continue  # it stays wrong until something else is discovered
                    self._wake.set()
                # Own writes come back as notices and find nothing to do. Writes again and again mean that somebody disagrees.
                if failures or writes > 1:
                    await asyncio.sleep(self._backoff.delay(max(failures, writes - 1)))

    def _notice(self, _notice: Notice[ResourceSlice]) -> None:
        self._wake.set()

    async def publish(self) -> bool:
        """Bring the slices up to date; returns whether there was anything to write. Raises ClusterError, PublishError, OSError."""
        hardware = self._wanted
        if hardware is None or not self._may_publish():
            return False
        node = await self._client.get(NODES, self._node)
        publisher = Publisher(self._driver, self._node, node.metadata.uid)
        contents = contents_to_publish(publisher, hardware)
        due = changes(publisher, await self._published(), contents, self._generation)
        await self._write(due)
        await self._label(node, hardware.labels)
        self._metrics.devices.set(len(hardware.devices))
        return bool(due.count)

    async def _published(self) -> tuple[ResourceSlice, ...]:
        """Read from the server: a cache may not have seen our own last writes."""
        options = ListOptions(field_selector=self._selector)
        return (await self._client.list_all(RESOURCE_SLICES, options=options)).items

    async def _write(self, due: Changes) -> None:
        for each in due.creates:
            await self._client.create(RESOURCE_SLICES, each, options=self._options)
        for each in due.updates:
            await self._client.update(RESOURCE_SLICES, each, options=self._options)
        for each in due.deletes:
            await self._delete(each)
        for each in (*due.creates, *due.updates):
            self._generation = max(self._generation, each.spec.pool.generation)

    async def _label(self, node: Node, labels: dict[str, str]) -> None:
        """Drivers beside a kubelet may lack the right, and devices are of use without labels."""
        missing = {
            name: value for name, value in labels.items() if node.metadata.labels.get(name) != value
        }
        if not missing:
            return
        patch = merge_patch({"metadata": {"labels": missing}})
        try:
            await self._client.patch(NODES, self._node, patch, options=self._options)
        except ForbiddenError as error:
            _log.warning("node %s is not labelled %s: %s", self._node, missing, error)

    async def _delete(self, found: ResourceSlice) -> None:
        options = DeleteOptions(uid=found.metadata.uid)
        try:
            await self._client.delete(RESOURCE_SLICES, found.metadata.name, options=options)
        except NotFoundError:
            return

    async def has_devices(self) -> bool:
        """Whether devices are published. Raises ClusterError."""
        return any(each.spec.devices for each in await self._published())

    async def wipe(self) -> None:
        """Delete the slices. Raises ClusterError."""
        for each in await self._published():
            await self._delete(each)


def _problem(error: Exception) -> str:
    """In the same words each time: a file that is being written has another name each time."""
    if isinstance(error, OSError):
        return f"whether this instance publishes them cannot be told: {error.strerror or error}"
    return str(error)
