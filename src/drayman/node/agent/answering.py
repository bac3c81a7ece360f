"""What a node answers about its containers: their logs, and commands that run in them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress

from drayman.node.agent.attempts import Attempt
from drayman.node.agent.executing import command_inside
from drayman.node.agent.logs import read_log
from drayman.node.agent.pods import PodWorker
from drayman.node.streams.model import (
    ContainerName,
    LogOptions,
    NodeApiError,
    StreamOptions,
    Streams,
)

_PIECE = 32 * 1024


class AgentApi:
    """The containers of this node. `workers`: by uid of their pods."""

    def __init__(self, workers: Mapping[str, PodWorker]) -> None:
        self._workers = workers

    def find(self, namespace: str, pod: str, container: str) -> ContainerName:
        """A container by the names that requests have. Raises NodeApiError."""
        for uid, worker in self._workers.items():
            meta = worker.pod.metadata
            if (meta.namespace, meta.name) == (namespace, pod):
                if container in [each.name for each in worker.pod.spec.all_containers]:
                    return ContainerName(namespace, pod, uid, container)
                raise NodeApiError(404, f'container "{container}" not found in pod "{pod}"')
        raise NodeApiError(404, f'pod "{pod}" not found on this node')

    async def logs(self, name: ContainerName, options: LogOptions) -> AsyncIterator[bytes]:
        worker = self._workers[name.uid]
        attempt = worker.containers.attempt(name.container)
        about = f'container "{name.container}" in pod "{name.pod}"'
        if attempt is None:
            raise NodeApiError(400, f"{about} is waiting to start: ContainerCreating")
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

    async def execute(
        self,
        name: ContainerName,
        command: tuple[str, ...],
        options: StreamOptions,
        streams: Streams,
    ) -> int:
        """Run a command in a container. Its processes end with the session of the client."""
        if options.tty:
            raise NodeApiError(501, "this node has no terminals; leave out --tty")
        worker = self._workers[name.uid]
        attempt = worker.containers.attempt(name.container)
        if attempt is None or not worker.containers.seen[name.container].is_running:
            raise NodeApiError(400, f'container "{name.container}" is not running')
        pipe = asyncio.subprocess.PIPE
        try:
            argv, env = command_inside(attempt, command)
            process = await asyncio.create_subprocess_exec(
                *argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            raise NodeApiError(500, str(error)) from error
        feeding = asyncio.create_task(_feed(process, streams))
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            await asyncio.gather(
                _pass(process.stdout, streams.write), _pass(process.stderr, streams.write_error)
            )
            code = await process.wait()
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return code if code >= 0 else 128 - code

    async def attach(self, name: ContainerName, options: StreamOptions, streams: Streams) -> int:
        raise NodeApiError(501, "this node does not attach; `kubectl logs -f` follows a container")


async def _feed(process: asyncio.subprocess.Process, streams: Streams) -> None:
    assert process.stdin is not None
    with suppress(ConnectionError):  # a command need not read its input
        while data := await streams.read():
            process.stdin.write(data)
            await process.stdin.drain()
    process.stdin.close()


async def _pass(source: asyncio.StreamReader, write: Callable[[bytes], Awaitable[None]]) -> None:
    while data := await source.read(_PIECE):
        await write(data)
