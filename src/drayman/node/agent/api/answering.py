"""What a node answers about its containers: their logs, and commands that run in them."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from drayman.cluster.breaks import Turnstile
from drayman.node.agent.api.measuring import measure, running_attempts
from drayman.node.agent.api.ports import connect
from drayman.node.agent.pods import PodWorker
from drayman.node.agent.processes.attaching import MOST_CLIENTS
from drayman.node.agent.processes.attempts import Attempt
from drayman.node.agent.processes.conversing import run_on_pipes, run_on_terminal
from drayman.node.agent.processes.executing import command_inside
from drayman.node.agent.processes.joining import join_container
from drayman.node.agent.processes.logs import read_log
from drayman.node.agent.status import waiting_reason
from drayman.node.streams.model import (
    Connection,
    ContainerName,
    LogOptions,
    NodeApiError,
    PodName,
    StreamOptions,
    Streams,
)
from drayman.node.streams.use import NodeUse


class AgentApi:
    """The containers of this node. `workers`: by uid of their pods."""

    def __init__(self, workers: Mapping[str, PodWorker]) -> None:
        self._workers = workers
        self._starting = Turnstile()
        """Starting a process takes some milliseconds, during which this process does nothing else."""
        self._attached: Counter[Path] = Counter()
        """How many clients each attempt has, by its folder. The shim would hang up on more of them without a word."""

    def find(self, namespace: str, pod: str, container: str) -> ContainerName:
        """A container by the names that requests have. Raises NodeApiError."""
        uid = self.find_pod(namespace, pod).uid
        if container in [each.name for each in self._workers[uid].pod.spec.all_containers]:
            return ContainerName(namespace, pod, uid, container)
        raise NodeApiError(404, f'container "{container}" not found in pod "{pod}"')

    def find_pod(self, namespace: str, name: str) -> PodName:
        """The pod that has a name now: of one that is gone, a driver may still have devices. Raises NodeApiError."""
        for uid, worker in self._workers.items():
            meta = worker.pod.metadata
            if (meta.namespace, meta.name) == (namespace, name) and not worker.is_gone:
                return PodName(namespace, name, uid)
        raise NodeApiError(404, f'pod "{name}" not found on this node')

    def _worker(self, name: ContainerName) -> PodWorker:
        """Raises NodeApiError for a pod that this node does not have, or has not seen yet."""
        worker = self._workers.get(name.uid)
        if worker is None:
            raise NodeApiError(404, f'pod "{name.pod}" not found on this node')
        return worker

    async def logs(self, name: ContainerName, options: LogOptions) -> AsyncGenerator[bytes, None]:
        worker = self._worker(name)
        attempt = worker.containers.attempt(name.container)
        about = f'container "{name.container}" in pod "{name.pod}"'
        if attempt is None:
            why = waiting_reason(worker.pod.spec, name.container, worker.containers.seen)
            raise NodeApiError(400, f"{about} is waiting to start: {why}")
        if options.previous:
            attempt = Attempt(attempt.folder.with_name(str(attempt.number - 1)))
            if not attempt.folder.exists():
                raise NodeApiError(400, f"previous terminated {about} not found")
        found = attempt

        def is_over() -> bool:
            now = worker.containers.attempt(name.container)
            seen = worker.containers.seen[name.container]
            return now is None or now.number != found.number or not seen.is_running

        return read_log(found.log, options, is_over)

    async def use(self) -> NodeUse:
        """What this machine and its containers have used by now."""
        return await asyncio.to_thread(measure, running_attempts(self._workers.values()))

    async def execute(
        self,
        name: ContainerName,
        command: tuple[str, ...],
        options: StreamOptions,
        streams: Streams,
    ) -> int:
        """Run a command in a container. Its processes end with the session of the client."""
        for number, word in enumerate(command):
            if "\0" in word:
                why = f"command[{number}] has a NUL character, which no program can be given"
                raise NodeApiError(400, why)
        await self._starting.enter()
        attempt = self._running(name)
        try:
            if options.tty:
                return await run_on_terminal(partial(command_inside, attempt, command), streams)
            return await run_on_pipes(*command_inside(attempt, command), streams)
        except OSError as error:
            raise NodeApiError(500, str(error)) from error

    def _running(self, name: ContainerName) -> Attempt:
        """Raises NodeApiError."""
        worker = self._worker(name)
        attempt = worker.containers.attempt(name.container)
        if attempt is None or not worker.containers.seen[name.container].is_running:
            raise NodeApiError(400, f'container "{name.container}" is not running')
        return attempt

    async def attach(self, name: ContainerName, options: StreamOptions, streams: Streams) -> int:
        """Returns when the container ends. Its exit code is in its status, and is none of this session."""
        attempt = self._running(name)
        try:
            with self._among_clients(attempt, name.container):
                await join_container(attempt.folder, options, streams)
        except FileNotFoundError:
            why = (
                f'container "{name.container}" cannot be attached to: an earlier version started it'
            )
            raise NodeApiError(400, why) from None
        except ConnectionRefusedError as error:  # it has ended, and the agent is about to learn it
            raise NodeApiError(400, str(error)) from error
        except OSError as error:
            raise NodeApiError(500, str(error)) from error
        return 0

    @contextmanager
    def _among_clients(self, attempt: Attempt, container: str) -> Iterator[None]:
        """Raises NodeApiError if there is no room for another one."""
        folder = attempt.folder
        if self._attached[folder] >= MOST_CLIENTS:
            why = f'container "{container}" has {MOST_CLIENTS} clients already, and takes no more'
            raise NodeApiError(400, why)
        self._attached[folder] += 1
        try:
            yield
        finally:
            self._attached[folder] -= 1
            self._attached += Counter()  # which forgets those that have none

    async def forward(self, pod: PodName, port: int) -> Connection:
        about = f"error forwarding port {port} to pod {pod.name}, uid {pod.uid}"
        worker = self._workers.get(pod.uid)
        if worker is None or not worker.containers.count_running():
            raise NodeApiError(400, f"{about}: the pod is not running")
        try:
            return await connect(port)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise NodeApiError(500, f"{about}: {why}") from error
