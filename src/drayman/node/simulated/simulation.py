"""Simulated nodes at work: follows the cluster, does what is due, writes it in batches, and keeps the heartbeats going.

A node that is to fail is silent: its lease is not renewed and whatever would be due on it waits until it recovers. What a person or
another process wants of a node is given by an annotation of the Node object, so that it outlives this process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceClass, ResourceClaim
from drayman.api.struct import Json
from drayman.api.times import timestamp
from drayman.cluster.background import in_background
from drayman.cluster.breaks import Breaks
from drayman.cluster.cache import Cache
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, JsonObject
from drayman.cluster.together import Bundle, write_together
from drayman.node.reporting import MANAGER, SIMULATED
from drayman.node.simulated.agenda import Agenda
from drayman.node.simulated.answering.containers import SimulatedContainers
from drayman.node.simulated.claim_status import awaits_binding, bound_devices, devices_write
from drayman.node.simulated.compute_domains import DEFINITION, DOMAINS, domain_changes, domain_of
from drayman.node.simulated.heartbeats import Heartbeats
from drayman.node.simulated.model import BINDING, SimulatedNode, Timing, is_failed
from drayman.node.simulated.pods import (
    ADOPT,
    POD,
    REPORT,
    UNPREPARE,
    Entry,
    PodRunContext,
    SimulatedPods,
)
from drayman.node.simulated.publication import Report
from drayman.node.simulated.published import PublishedDevices
from drayman.node.simulated.registering import is_defined, ready_write, register
from drayman.placement.fit.readiness import is_ready

_log: Final = logging.getLogger(__name__)
NODE: Final = "node"
CLAIM: Final = "claim"
DOMAIN: Final = "domain"
INDEX: Final = "node of a simulated pod"
MOST_AT_ONCE: Final = 500
"""What is decided before it is written. What is due together is written together, but a decision must not be old by then."""


def _by_node(pod: Pod) -> tuple[str, ...]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


class SimulatedNodes:
    """Simulates nodes between `start` and `stop`: those it is given, and those it made before."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        nodes: Sequence[SimulatedNode] = (),
        *,
        classes: Sequence[DeviceClass] = (),
        definitions: Sequence[dict[str, Json]] = (),
        timing: Timing = Timing(),  # noqa: B008 - frozen
        recorder: EventRecorder | None = None,
    ) -> None:
        self._client = client
        self._informers = informers
        self._nodes = tuple(nodes)
        self._classes = tuple(classes)
        self._definitions = tuple(definitions)
        self._timing = timing
        self._owns_recorder = recorder is None
        self._recorder = EventRecorder(client, MANAGER) if recorder is None else recorder
        self._agenda: Agenda[Entry] = Agenda()
        self._pod_cache = informers.informer(PODS, indexers={INDEX: _by_node}).cache
        self._claim_cache = informers.informer(RESOURCE_CLAIMS).cache
        self._node_cache = informers.informer(NODES).cache
        self._published = PublishedDevices()
        self._pods = SimulatedPods(
            PodRunContext(
                self._claim_cache, self._published, self._recorder, self._agenda, timing, _time
            )
        )
        self.containers = SimulatedContainers(
            client, self._published, self._pods.run_of, lambda name: name in self._living
        )
        """Logs of the pods, and commands in them."""
        self._domains: Cache[JsonObject] = Cache({})
        self._living: set[str] = set()
        self._frozen: dict[str, set[Entry]] = {}
        """Failed nodes, and what would have been due on them."""
        self._awaiting: dict[str, set[Entry]] = {}
        """Claims with devices that cannot be made ready before their node answers, by the name of the pool, which is that of the node."""
        self._follows_domains = False
        self._looking: asyncio.Task[None] | None = None
        """Looks whether a node that was added has brought compute domains."""
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def violations(self) -> int:
        """How often a device was found in use by two claims."""
        return self._pods.violations

    @property
    def pods(self) -> int:
        """How many pods are on the nodes, including those whose devices are yet to be given back."""
        return len(self._pods)

    @property
    def count(self) -> int:
        """How many nodes it was given."""
        return len(self._nodes)

    @property
    def living(self) -> tuple[str, ...]:
        """The nodes that answer."""
        return tuple(self._living)

    async def start(self, report: Report | None = None) -> None:
        """Registers the nodes and begins. Handlers of the same informers have been notified of them when it returns.

        Raises ClusterError if they cannot be registered.
        """
        written = await register(
            self._client, self._nodes, self._classes, self._definitions, report
        )
        slices = self._informers.informer(RESOURCE_SLICES)
        await self._informers.start()
        await self._informers.wait_synced()
        await self._informers.wait_seen(written)
        if self._owns_recorder:
            self._recorder.start()
        slices.add_handler(self._published.handle)
        self._informers.informer(NODES).add_handler(self._node_changed)
        self._informers.informer(RESOURCE_CLAIMS).add_handler(self._claim_changed)
        self._informers.informer(PODS).add_handler(self._pod_changed)
        await self._follow_domains()
        heartbeats = Heartbeats(self._client, lambda: self.living, self._timing.heartbeat)
        self._tasks = [
            in_background(self._work(), "the work of simulated nodes", _log),
            in_background(heartbeats.run(), "the heartbeat of simulated nodes", _log),
        ]

    async def _follow_domains(self) -> None:
        """From when they are defined: a node that is added may be the first to bring them."""
        if self._follows_domains or not await is_defined(self._client, DEFINITION):
            return
        self._follows_domains = True
        domains = self._informers.informer(DOMAINS)
        await self._informers.start()
        await domains.wait_synced()
        self._domains = domains.cache
        domains.add_handler(self._domain_changed)

    def _look_for_domains(self) -> None:
        """A node has come while the others are at work."""
        is_looking = self._looking is not None and not self._looking.done()
        if self._tasks and not self._follows_domains and not is_looking:
            self._looking = in_background(
                self._follow_domains(), "looking for compute domains", _log
            )

    async def stop(self) -> None:
        tasks = [*self._tasks, *filter(None, (self._looking,))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks, self._looking = [], None
        if self._owns_recorder:
            await self._recorder.stop()

    # --- What the API reports ------------------------------------------------------------------

    def _node_changed(self, notice: Notice[Node]) -> None:
        node = notice.object
        name = node.metadata.name
        if node.metadata.labels.get(SIMULATED) != "true":
            return
        if notice.type == "DELETED":
            self._living.discard(name)
            self._frozen.pop(name, None)
            self._pods.forget_node(name)
            self.containers.all_changed()
            return
        if is_failed(node):
            self._living.discard(name)
            self._frozen.setdefault(name, set())
            return
        is_new = name not in self._living
        self._living.add(name)
        for entry in (*self._frozen.pop(name, ()), *self._awaiting.pop(name, ())):
            self._agenda.put(entry, _time())
        if is_new:
            self._look_for_domains()
            for pod in self._pod_cache.by_index(INDEX, name):
                self._pods.seen(pod)
        if not is_ready(node.status.conditions):
            self._agenda.put((NODE, name), _time())

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        if pod.spec.node_name not in self._living and pod.spec.node_name not in self._frozen:
            return
        if notice.type == "DELETED":
            self._pods.removed(pod)
        else:
            self._pods.seen(pod)
        self.containers.changed(pod.metadata.uid)

    def _claim_changed(self, notice: Notice[ResourceClaim]) -> None:
        claim = notice.object
        self._pods.claim_changed(claim)
        if notice.type != "DELETED" and awaits_binding(claim):
            entry = (CLAIM, f"{claim.metadata.namespace}/{claim.metadata.name}")
            self._agenda.put_earlier(entry, _time() + self._timing.bind)
        if domain := domain_of(claim):
            self._agenda.put_earlier((DOMAIN, domain), _time() + self._timing.prepare)

    def _domain_changed(self, notice: Notice[JsonObject]) -> None:
        if notice.type != "DELETED":
            self._agenda.put_earlier((DOMAIN, notice.object["metadata"]["uid"]), _time())

    # --- What is due ---------------------------------------------------------------------------

    async def _work(self) -> None:
        breaks = Breaks()
        while True:
            await self._agenda.wait()
            await asyncio.sleep(0)  # however much is due, informers must make progress
            changes: list[Bundle] = []
            for entry in self._agenda.due(_time(), MOST_AT_ONCE):
                changes += await self._changes(entry)
                await breaks.between()
            try:
                await write_together(self._client, changes)
            except ClusterError:
                _log.exception("simulated nodes could not write")

    async def _changes(self, entry: Entry) -> Iterable[Bundle]:
        if entry[0] != DOMAIN:
            change = await self._change(entry)
            return () if change is None else (change,)
        return [
            change
            for domain in self._domains
            if domain["metadata"]["uid"] == entry[1]
            for change in domain_changes(domain, self._claim_cache)
        ]

    async def _change(self, entry: Entry) -> Bundle | None:
        kind, about = entry
        if kind == CLAIM:
            return self._bind_devices(about)
        if kind == NODE:
            return self._say_ready(about)
        node = self._pods.node_of(about)
        if node is not None and node in self._frozen:
            self._frozen[node].add(entry)
            return None
        if kind == POD:
            return await self._pods.advance(about)
        if kind == REPORT:
            return self._pods.report_again(about)
        if kind == ADOPT:
            await self._pods.adopt(about)
        else:
            assert kind == UNPREPARE
            await self._pods.unprepare(about)
        return None

    def _say_ready(self, name: str) -> Bundle | None:
        """A node that counts as lost, but answers."""
        node = self._node_cache.get(name)
        if node is None or name not in self._living or is_ready(node.status.conditions):
            return None
        write = ready_write(name, timestamp(datetime.now(UTC)))
        later = _time() + self._timing.retry
        return Bundle((write,), lambda _error: self._agenda.put((NODE, name), later))

    def _bind_devices(self, key: str) -> Bundle | None:
        """Devices that must be made ready before binding report that they are, or that they cannot be."""
        namespace, _, name = key.partition("/")
        claim = self._claim_cache.get(name, namespace)
        if claim is None or not awaits_binding(claim):
            return None
        pools = {result.pool for result in claim.status.results}
        if not pools & self._living:
            for pool in pools:
                self._awaiting.setdefault(pool, set()).add((CLAIM, key))
            return None
        wish = claim.metadata.annotations.get(BINDING, "")
        if wish == "never":
            return None
        now = timestamp(datetime.now(UTC))
        devices = bound_devices(claim, fails=wish == "fail", now=now)
        if devices == claim.status.devices:
            return None
        later = _time() + self._timing.retry
        return Bundle(
            (devices_write(claim, devices),),
            lambda _error: self._agenda.put((CLAIM, key), later),
        )


def _time() -> float:
    return asyncio.get_running_loop().time()
