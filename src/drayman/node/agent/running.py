"""A node at work: follows its pods, has one worker for each, and clears up what nobody looks after."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from drayman.cluster.client import Client
from drayman.cluster.informer import Informer, Notice, Selection
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS, JsonObject
from drayman.node.agent.answering import AgentApi
from drayman.node.agent.attempts import may_mount
from drayman.node.agent.claims import ClaimsError, NodeClaims, StateError
from drayman.node.agent.environment import OwnFacts
from drayman.node.agent.images import Images
from drayman.node.agent.machine import Machine
from drayman.node.agent.plugins import RegisteredPlugins
from drayman.node.agent.pods import NodeContext, PodWorker
from drayman.node.agent.registering import Registration
from drayman.node.agent.serving import ServingCertificates, serving
from drayman.node.agent.wiping import SliceWiper
from drayman.node.kubernetes import MANAGER
from drayman.plugins.cdi.model import DYNAMIC_DIR, STATIC_DIR
from drayman.plugins.files import write_atomically
from drayman.plugins.registry import Registry

CLEAN_UP_S: Final = 60.0
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
    certificates: ServingCertificates | None = None
    """With which logs and commands are served to the API server; None: they are not."""
    port: int = 0
    """Where that is; 0 for any that is free."""

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


class NodeAgent:
    """Use it in `async with`, which registers the node and begins."""

    def __init__(self, client: Client, options: AgentOptions) -> None:
        self.options = options
        self.client = client
        self.port = 0
        self.workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._background: list[asyncio.Task[Any]] = []
        self._end = AsyncExitStack()
        self._context: NodeContext | None = None
        self._registration: Registration | None = None
        self._machine: Machine | None = None

    @property
    def claims(self) -> NodeClaims:
        assert self._context is not None, "the agent has not been started"
        return self._context.claims

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
        except OSError as error:
            raise AgentError(f"{error.filename or options.root}: {error.strerror}") from error
        self._registration = Registration(
            self.client, options.name, self._machine, lambda: self.port
        )
        await self._registration.register()

    async def __aenter__(self) -> Self:
        """Raises AgentError, ClusterError and SimulatedNodeError."""
        async with AsyncExitStack() as end:
            await self._start(end)
            self._end = end.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end.aclose()

    async def _start(self, end: AsyncExitStack) -> None:
        options = self.options
        self._prepare_root(end)
        if self._registration is None:
            await self.register()
        registration, machine = self._registration, self._machine
        assert registration is not None
        assert machine is not None
        recorder = await end.enter_async_context(EventRecorder(self.client, MANAGER))
        wiper = SliceWiper(self.client, options.name)
        registry = Registry(
            options.registry_dir,
            interval_s=options.registry_interval_s,
            on_change=lambda driver: wiper.changed(driver, bool(registry.instances(driver))),
        )
        await end.enter_async_context(registry)
        end.push_async_callback(wiper.stop)
        await wiper.begin()
        try:
            path = options.root / "claims.json"
            claims = NodeClaims(path, self.client, RegisteredPlugins(registry))
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
            await asyncio.to_thread(may_mount),
        )
        if options.certificates is not None:
            await self._serve(options.certificates, machine.address, end)
            await registration.report()
        end.push_async_callback(self._stop_workers)
        await self._follow(end)
        for work in (registration.keep(), self._clean_up_again()):
            task = asyncio.create_task(work)
            self._background.append(task)
            end.push_async_callback(_cancel, task)

    async def _serve(
        self, certificates: ServingCertificates, address: str, end: AsyncExitStack
    ) -> None:
        """Raises AgentError."""
        api = AgentApi(self.workers)
        try:
            served = serving(api, address, self.options.port, certificates)
            self.port = await end.enter_async_context(served)
        except OSError as error:
            raise AgentError(f"cannot serve at {address}: {error.strerror or error}") from error

    def _prepare_root(self, end: AsyncExitStack) -> None:
        """Raises AgentError."""
        root = self.options.root
        try:
            for folder in (root, self.options.pods_dir, self.options.cdi_dir):
                folder.mkdir(parents=True, exist_ok=True)
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
        if notice.type == "DELETED":
            if worker is not None:
                worker.removed()
        elif worker is not None:
            worker.update(notice.object)
        else:
            self._begin(notice.object)

    def _begin(self, value: JsonObject, *, is_gone: bool = False) -> None:
        assert self._context is not None
        uid = value["metadata"]["uid"]
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
        del self.workers[uid], self._tasks[uid]
        if not task.cancelled() and task.exception() is not None:
            _log.error("the worker of pod %s has failed", uid, exc_info=task.exception())

    def _adopt_leftovers(self) -> None:
        """Pods that were deleted while no agent ran: what is left of them is ended as if it had happened now."""
        for folder in self.options.pods_dir.iterdir():
            if folder.name in self.workers:
                continue
            try:
                value = msgspec.json.decode((folder / "pod.json").read_bytes())
            except (OSError, msgspec.DecodeError):
                shutil.rmtree(folder, ignore_errors=True)  # made a moment before a crash
                continue
            self._begin(value, is_gone=True)

    async def _clean_up_again(self) -> None:
        while True:
            await self.clean_up()
            await asyncio.sleep(self.options.clean_up_s)

    async def clean_up(self) -> None:
        """Take down claims of pods that nobody looks after."""
        for held in self.claims.held:
            for pod in held.pods:
                if pod in self.workers:
                    continue
                try:
                    await self.claims.unprepare(pod)
                except ClaimsError as error:
                    _log.warning("claim %s/%s stays: %s", held.namespace, held.name, error)

    async def _stop_workers(self) -> None:
        workers, tasks = list(self.workers.values()), list(self._tasks.values())
        if self.options.at_end is AtEnd.REMOVE and tasks:
            for worker in workers:
                worker.removed()
            await asyncio.wait(tasks, timeout=_END_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.options.at_end is not AtEnd.LEAVE:
            await asyncio.gather(*(worker.containers.kill_all() for worker in workers))


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
