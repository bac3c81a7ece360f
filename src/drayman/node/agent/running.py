"""A node at work: follows its pods, has one worker for each, and clears up what nobody looks after."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import shutil
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Final, Self

import msgspec

from drayman.cluster.background import in_background, report_failure
from drayman.cluster.client import Client
from drayman.cluster.informer import Informer, Notice, Selection
from drayman.cluster.recording import PER_OBJECT, EventRecorder
from drayman.cluster.resources import PODS, JsonObject
from drayman.node.agent.api.answering import AgentApi
from drayman.node.agent.api.server import SOON_S, NodeServer, ServerOptions
from drayman.node.agent.devices.claims import ApiClaims, ClaimsFile, StateError
from drayman.node.agent.devices.health import DeviceHealth
from drayman.node.agent.devices.plugins import RegisteredPlugins
from drayman.node.agent.devices.wiping import SliceWiper
from drayman.node.agent.environment import OwnFacts
from drayman.node.agent.folders import Hidden, make_private
from drayman.node.agent.identity import AgentIdentity
from drayman.node.agent.images import Images
from drayman.node.agent.limiting import NodeLimits
from drayman.node.agent.machine import Machine
from drayman.node.agent.pods import NodeContext, PodWorker
from drayman.node.agent.processes.attempts import Isolation, may_overlay
from drayman.node.agent.registering import NodeTakenError, Registration
from drayman.node.agent.volumes.keeping import LOOK_AGAIN_S
from drayman.node.claims import ClaimsError, NodeClaims
from drayman.node.reporting import MANAGER
from drayman.node.streams.finishing import cancelled
from drayman.plugins.cdi.model import DYNAMIC_DIR, STATIC_DIR
from drayman.plugins.files import write_atomically
from drayman.plugins.registry import Registry

CLEAN_UP_S: Final = 60.0
ATTEND_AGAIN_S: Final = 10.0
"""Until a pod is tried again whose worker could not be made, or has failed."""
_END_S: Final = 30.0
"""How long the end of pods is awaited."""
_log: Final = logging.getLogger(__name__)


class AtEnd(Enum):
    """What becomes of containers when the agent ends."""

    LEAVE = auto()
    """They run on, for the next agent to find."""
    KILL = auto()
    """They end, as if the machine were switched off; the next agent finds their pods."""
    REMOVE = auto()
    """Nothing is left of the pods, and their devices are given back."""


class AgentError(Exception):
    """A node cannot be run here."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How a node is run."""

    name: str
    root: Path
    """Where everything is kept that has to outlive the agent. Short, because there are sockets below."""
    address: str = ""
    images: Images = field(default_factory=Images)
    registry_interval_s: float = 1.0
    clean_up_s: float = CLEAN_UP_S
    at_end: AtEnd = AtEnd.LEAVE
    authority: bytes | None = None
    """Who signs for the API server, in PEM: it is let in for logs and commands. None: these are not served."""
    port: int = 0
    """Where that is; 0 for any that is free."""
    approval_s: float = SOON_S
    """How long its start waits for the certificate; later, it serves as soon as that is approved."""
    attend_again_s: float = ATTEND_AGAIN_S
    look_again_s: float = LOOK_AGAIN_S
    """How long a change of a ConfigMap or a Secret may go unnoticed by volumes."""
    secrets: Sequence[Path] = ()
    """What containers do not see besides the root: a data directory, files with credentials."""
    pod_pids: int | None = None
    """How many processes and threads a pod may have; None for as many as it likes."""

    @property
    def registry_dir(self) -> Path:
        return self.root / "plugins_registry"

    @property
    def plugins_dir(self) -> Path:
        return self.root / "plugins"

    @property
    def cdi_dir(self) -> Path:
        return self.root / "cdi"

    @property
    def cdi_dirs(self) -> Sequence[Path]:
        return Path(STATIC_DIR), Path(DYNAMIC_DIR), self.cdi_dir

    @property
    def pods_dir(self) -> Path:
        return self.root / "pods"

    @property
    def hidden(self) -> Hidden:
        return Hidden.of(
            (self.root, *self.secrets), (self.plugins_dir, self.registry_dir, self.cdi_dir)
        )


class NodeAgent:
    """Use it in `async with`, which registers the node and begins."""

    def __init__(self, client: Client, options: AgentOptions) -> None:
        self.options = options
        self.client = client
        self.server: NodeServer | None = None
        """Its own, for logs and commands."""
        self.workers: dict[str, PodWorker] = {}
        self.api = AgentApi(self.workers)
        """Logs and commands of its containers."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._unattended: dict[str, tuple[JsonObject, bool]] = {}
        """Pods whose worker could not be made or has failed, and whether the API does not have them any more."""
        self._is_ending = False
        self._end = AsyncExitStack()
        self._registry: Registry | None = None
        self._context: NodeContext | None = None
        self._registration: Registration | None = None
        self._machine: Machine | None = None

    @property
    def claims(self) -> NodeClaims:
        assert self._context is not None, "the agent has not been started"
        return self._context.claims

    @property
    def port(self) -> int:
        """Where it serves; 0 as long as it does not."""
        return 0 if self.server is None else self.server.port

    @property
    def running_containers(self) -> int:
        """How many containers run."""
        return sum(worker.containers.count_running() for worker in self.workers.values())

    async def register(self) -> None:
        """Make the node known, which drivers that run beside it have to see. Raises AgentError, ClusterError and SimulatedNodeError."""
        options = self.options
        try:
            options.root.mkdir(parents=True, exist_ok=True)
            self._machine = Machine.here(options.root, options.address)
            identity = AgentIdentity.here(options.root)
        except OSError as error:
            raise AgentError(f"{error.filename or options.root}: {error.strerror}") from error
        self._registration = Registration(
            self.client, options.name, self._machine, identity, lambda: self.port
        )
        try:
            await self._registration.register()
        except NodeTakenError as error:
            raise AgentError(str(error)) from error

    async def __aenter__(self) -> Self:
        """Raises AgentError, ClusterError and SimulatedNodeError."""
        async with AsyncExitStack() as end:
            await self._start(end)
            self._end = end.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end.aclose()

    async def has_registered(self, drivers: Collection[str]) -> None:
        """Returns when pods can have devices of all these drivers."""
        assert self._registry is not None
        await self._registry.wait_until(lambda registry: all(map(registry.latest, drivers)))

    async def _start(self, end: AsyncExitStack) -> None:
        options = self.options
        self._prepare_root(end)
        if self._registration is None:
            await self.register()
        registration, machine = self._registration, self._machine
        assert registration is not None
        assert machine is not None
        end.push_async_callback(registration.release)
        recorder = await end.enter_async_context(
            EventRecorder(self.client, MANAGER, per_object=PER_OBJECT)
        )
        wiper = SliceWiper(self.client, options.name)
        health = DeviceHealth(self._devices_changed)

        def driver_changed(driver: str) -> None:
            latest = registry.latest(driver)
            wiper.changed(driver, latest is not None)
            health.follow(driver, None if latest is None else latest.client)

        registry = Registry(
            options.registry_dir,
            interval_s=options.registry_interval_s,
            on_change=driver_changed,
        )
        end.push_async_callback(health.stop)
        end.push_async_callback(wiper.stop)
        await wiper.begin()
        await end.enter_async_context(registry)
        self._registry = registry
        try:
            records = ClaimsFile(options.root / "claims.json")
            claims = NodeClaims(records, ApiClaims(self.client), RegisteredPlugins(registry))
        except StateError as error:
            raise AgentError(str(error)) from error
        self._context = NodeContext(
            self.client,
            recorder,
            claims,
            options.images,
            OwnFacts(options.name, machine.address, machine.allocatable),
            options.pods_dir,
            options.cdi_dirs,
            await self._isolation(),
            options.hidden,
            options.images.have_roots and await asyncio.to_thread(may_overlay, options.root),
            self._limits(end),
            health,
            options.look_again_s,
        )
        end.push_async_callback(self._stop_workers)
        await self._follow(end)
        if options.authority is not None:
            await self._serve(options.authority, machine.address, recorder, registration, end)
        again = {
            "heartbeat": registration.keep(),
            "Node": registration.follow(),
            "clean-up": self._clean_up_again(),
        }
        for name, work in again.items():
            task = in_background(work, f"the {name} of the node", _log)
            end.push_async_callback(cancelled, task)

    async def _isolation(self) -> Isolation:
        found = await asyncio.to_thread(Isolation.here)
        if found.exposed:
            _log.warning("%s", found.exposed)
        return found

    def _devices_changed(self, driver: str) -> None:
        for worker in self.workers.values():
            worker.devices_changed(driver)

    def _limits(self, end: AsyncExitStack) -> NodeLimits:
        limits = NodeLimits.here(self.options.pod_pids)
        if limits.why_not:
            _log.warning("limits of containers are not enforced: %s", limits.why_not)
        end.callback(limits.leave)
        return limits

    async def _serve(
        self,
        authority: bytes,
        address: str,
        recorder: EventRecorder,
        registration: Registration,
        end: AsyncExitStack,
    ) -> None:
        """Begin to serve. Returns when it does, or when somebody has to approve its certificate first. Raises AgentError."""
        options = self.options
        where = ServerOptions(
            options.name, address, options.port, options.root, authority, options.approval_s
        )
        server = NodeServer(self.client, recorder, where, self.api, registration.report)
        self.server = server
        task = asyncio.create_task(server.run(), name="the server of the node")
        end.push_async_callback(cancelled, task)
        serves = asyncio.create_task(server.serves.wait())
        end.push_async_callback(cancelled, serves)
        await asyncio.wait(
            (task, serves), timeout=options.approval_s, return_when=asyncio.FIRST_COMPLETED
        )
        if not task.done():
            report_failure(task, _log)
            return
        try:
            await task
        except OSError as error:
            raise AgentError(f"cannot serve at {address}: {error.strerror or error}") from error

    def _prepare_root(self, end: AsyncExitStack) -> None:
        """Raises AgentError."""
        root = self.options.root
        try:
            for folder in (root, self.options.cdi_dir):
                folder.mkdir(parents=True, exist_ok=True)
            make_private(self.options.pods_dir)
            lock = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            end.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AgentError(f"{root} is in use by another agent") from None
        except OSError as error:
            raise AgentError(f"{error.filename or root}: {error.strerror}") from error

    async def _follow(self, end: AsyncExitStack) -> None:
        selector = f"spec.nodeName={self.options.name}"
        informer = Informer(self.client, Selection(PODS.as_values(), field_selector=selector))
        informer.add_handler(self._pod_changed)
        await end.enter_async_context(informer)
        await informer.wait_synced()
        self._adopt_leftovers()

    # --- Pods -----------------------------------------------------------------------------------

    def _pod_changed(self, notice: Notice[JsonObject]) -> None:
        uid = notice.object["metadata"]["uid"]
        worker = self.workers.get(uid)
        is_gone = notice.type == "DELETED"
        if worker is None:
            if uid in self._unattended or not is_gone:
                self._attend(notice.object, is_gone=is_gone)
        elif is_gone:
            worker.removed()
        else:
            worker.update(notice.object)

    def _attend(self, value: JsonObject, *, is_gone: bool = False) -> None:
        """Have a worker for a pod, sooner or later: whatever is wrong with one pod, the node goes on with the others."""
        uid = value["metadata"]["uid"]
        try:
            self._begin(uid, value, is_gone=is_gone)
        except Exception as error:
            _log.error("pod %s has no worker", uid, exc_info=error)
            self._attend_later(uid, value, is_gone=is_gone)
        else:
            self._unattended.pop(uid, None)

    def _attend_later(self, uid: str, value: JsonObject, *, is_gone: bool) -> None:
        if not self._is_ending:
            self._unattended[uid] = (value, is_gone)
            asyncio.get_running_loop().call_later(
                self.options.attend_again_s, self._attend_again, uid
            )

    def _attend_again(self, uid: str) -> None:
        if uid in self._unattended and uid not in self.workers and not self._is_ending:
            value, is_gone = self._unattended[uid]
            self._attend(value, is_gone=is_gone)

    def _begin(self, uid: str, value: JsonObject, *, is_gone: bool) -> None:
        assert self._context is not None
        folder = self.options.pods_dir / uid
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "pod.json", msgspec.json.encode(value), 0o600)
        worker = PodWorker(self._context, value)
        if is_gone:
            worker.removed()
        self.workers[uid] = worker
        task = asyncio.create_task(worker.run(), name=f"pod {uid}")
        self._tasks[uid] = task
        task.add_done_callback(lambda done: self._ended(uid, done))

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        worker = self.workers.pop(uid)
        del self._tasks[uid]
        if not task.cancelled() and task.exception() is not None:
            _log.error("the worker of pod %s has failed", uid, exc_info=task.exception())
            self._attend_later(uid, worker.value, is_gone=worker.is_gone)

    def _adopt_leftovers(self) -> None:
        """Pods that were deleted while no agent ran: what is left of them is ended as if it had happened now."""
        for folder in self.options.pods_dir.iterdir():
            if folder.name in self.workers:
                continue
            try:
                value = msgspec.json.decode((folder / "pod.json").read_bytes())
            except (FileNotFoundError, msgspec.DecodeError):
                shutil.rmtree(folder, ignore_errors=True)  # made a moment before a crash
                continue
            except OSError as error:  # something of it may run, which would not be found any more
                _log.warning("what is left of pod %s cannot be read: %s", folder.name, error)
                continue
            self._attend(value, is_gone=True)

    async def _clean_up_again(self) -> None:
        while True:
            await self.clean_up()
            await asyncio.sleep(self.options.clean_up_s)

    async def clean_up(self) -> None:
        """Take down claims of pods that are gone. As long as a pod has a folder here, something of it may run."""
        for held in self.claims.held:
            for pod in held.pods:
                if (self.options.pods_dir / pod).exists():
                    continue
                try:
                    await self.claims.unprepare(pod)
                except (ClaimsError, OSError) as error:
                    _log.warning("claim %s/%s stays: %s", held.namespace, held.name, error)

    async def _stop_workers(self) -> None:
        self._is_ending = True
        workers, tasks = list(self.workers.values()), list(self._tasks.values())
        if self.options.at_end is AtEnd.REMOVE and tasks:
            for worker in workers:
                worker.removed()
            await asyncio.wait(tasks, timeout=_END_S)
        await cancelled(*tasks)
        if self.options.at_end is not AtEnd.LEAVE:
            await asyncio.gather(*(worker.containers.kill_all() for worker in workers))
            for worker in workers:
                worker.free_memory()
