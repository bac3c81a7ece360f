"""The containers of all simulated nodes, as those who ask for logs and run commands reach them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Final

from drayman.api.core import Container, Pod
from drayman.cluster.client import Client
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import PODS
from drayman.node.simulated.answering.environment import variables_of
from drayman.node.simulated.answering.logs import Line, chosen, lines, run_to_show
from drayman.node.simulated.answering.programs import SHELLS, marked, run
from drayman.node.simulated.answering.prompt import converse
from drayman.node.simulated.answering.sight import SeenDevice, Sight, devices_of
from drayman.node.simulated.pod_status import status_of
from drayman.node.simulated.published import PublishedDevices
from drayman.node.simulated.runs import PodRun
from drayman.node.streams.kubelet import PORT
from drayman.node.streams.model import (
    Connection,
    ContainerName,
    LogOptions,
    NodeApiError,
    PodName,
    StreamOptions,
    Streams,
)

KILLED: Final = 137
"""The exit code of a command whose container is taken away: 128 plus the number of the signal."""
_POD_VALUES: Final = PODS.as_values()


class SimulatedContainers:
    """A `NodeApi` for every simulated node of the process."""

    def __init__(
        self,
        client: Client,
        published: PublishedDevices,
        find_run: Callable[[str], PodRun | None],
        answers: Callable[[str], bool],
    ) -> None:
        """`find_run` has the pod of a uid; `answers`: whether the node of this name is not silent."""
        self._client = client
        self._published = published
        self._find_run = find_run
        self._answers = answers
        self._followers: dict[str, set[asyncio.Event]] = {}

    def changed(self, uid: str) -> None:
        """Something is new about a pod. Those who follow it look again."""
        for event in self._followers.get(uid, ()):
            event.set()

    def all_changed(self) -> None:
        """A node is gone, and with it some of the pods."""
        for uid in self._followers:
            self.changed(uid)

    # --- What clients ask for ------------------------------------------------------------------

    async def logs(self, name: ContainerName, options: LogOptions) -> AsyncIterator[bytes]:
        found = self._run(name, "containerLogs")
        status = _status(found, name.container)
        run_to_show(name.container, name.pod, status, options.previous)
        return _limited(self._log(name, options), options.limit_bytes)

    async def _log(self, name: ContainerName, options: LogOptions) -> AsyncIterator[bytes]:
        count = 0
        with _following(self._followers, name.uid) as event:
            while (found := self._find_run(name.uid)) is not None:
                written = self._lines(found, name, options)
                if written is None:
                    return
                new: Sequence[Line] = written[count:]
                if not count:
                    new = chosen(new, options, datetime.now(UTC))
                count = max(count, len(written))
                if new:
                    yield b"".join(line.shown(options.timestamps) for line in new)
                if not options.follow or not _is_running(found, name.container):
                    return
                await event.wait()
                event.clear()

    def _lines(self, found: PodRun, name: ContainerName, options: LogOptions) -> list[Line] | None:
        """What the log has so far; None if the container is to be started again, and its log is over."""
        status = _status(found, name.container)
        try:
            shown = run_to_show(name.container, name.pod, status, options.previous)
        except NodeApiError:
            return None
        container = _container(found.pod, name.container)
        devices = self._devices(found, container)
        return list(lines(shown, found.pod.spec.node_name, container.image, devices))

    async def execute(
        self,
        name: ContainerName,
        command: tuple[str, ...],
        options: StreamOptions,
        streams: Streams,
    ) -> int:
        found = self._running(name, "exec")
        sight = await self._sight(found, name)
        if options.stdin and len(command) == 1 and PurePosixPath(command[0]).name in SHELLS:
            return await self._while_running(name, converse(sight, streams, tty=options.tty))
        output = run(sight, command)
        newline = "\r\n" if options.tty else "\n"
        for text in (marked(sight), output.error):
            await streams.write_error(text.replace("\n", newline).encode())
        await streams.write(output.text.replace("\n", newline).encode())
        return output.code

    async def attach(self, name: ContainerName, options: StreamOptions, streams: Streams) -> int:
        """Shows what the log will have, until the container ends. There is nothing that reads input."""
        found = self._running(name, "attach")
        newline = "\r\n" if options.tty else "\n"
        note = (
            f"simulated: attached to {name.container} on node {found.pod.spec.node_name}{newline}"
        )
        await streams.write(note.encode())
        async for data in self._log(name, LogOptions(follow=True, tail=0)):
            await streams.write(data.replace(b"\n", newline.encode()))
        last = self._find_run(name.uid)
        return KILLED if last is None else last.progress.exit_code

    async def forward(self, pod: PodName, port: int) -> Connection:
        found = self._find_run(pod.uid)
        where = "" if found is None else f" on node {found.pod.spec.node_name}"
        raise NodeApiError(
            500, f"simulated: nothing listens on port {port} of pod {pod.name}{where}"
        )

    async def _while_running(self, name: ContainerName, work: Coroutine[Any, Any, int]) -> int:
        """Work in a container, which ends with it."""
        working = asyncio.create_task(work)
        ending = asyncio.create_task(self._ended(name))
        try:
            await asyncio.wait((working, ending), return_when=asyncio.FIRST_COMPLETED)
            return await working if working.done() else KILLED
        finally:
            for task in (working, ending):
                task.cancel()
            await asyncio.gather(working, ending, return_exceptions=True)

    async def _ended(self, name: ContainerName) -> None:
        with _following(self._followers, name.uid) as event:
            while (found := self._find_run(name.uid)) is not None:
                if not _is_running(found, name.container):
                    return
                await event.wait()
                event.clear()

    # --- What is there -------------------------------------------------------------------------

    def _run(self, name: ContainerName, verb: str) -> PodRun:
        """Raises NodeApiError."""
        found = self._find_run(name.uid)
        if found is None:
            raise NodeApiError(404, f'pod "{name.pod}" not found')
        node = found.pod.spec.node_name
        if not self._answers(node):
            place = f"{name.namespace}/{name.pod}/{name.container}"
            raise NodeApiError(500, f'Get "https://{node}:{PORT}/{verb}/{place}": {node} is silent')
        return found

    def _running(self, name: ContainerName, verb: str) -> PodRun:
        """Raises NodeApiError."""
        found = self._run(name, verb)
        if not _is_running(found, name.container):
            raise NodeApiError(
                404, f'unable to upgrade connection: container not found ("{name.container}")'
            )
        return found

    async def _sight(self, found: PodRun, name: ContainerName) -> Sight:
        pod = found.pod
        try:
            value = await self._client.get(_POD_VALUES, name.pod, name.namespace)
        except NotFoundError as error:
            raise NodeApiError(404, f'pod "{name.pod}" not found') from error
        variables, unknown = variables_of(value, name.container)
        return Sight(
            name.namespace,
            name.pod,
            pod.spec.node_name,
            name.container,
            tuple(self._devices(found, _container(pod, name.container))),
            variables,
            unknown,
        )

    def _devices(self, found: PodRun, container: Container) -> Iterator[SeenDevice]:
        return devices_of(found.pod, container, found.held, self._published.find)


@contextmanager
def _following(followers: dict[str, set[asyncio.Event]], uid: str) -> Iterator[asyncio.Event]:
    """An event that is set when a pod changes, while the context is open."""
    event = asyncio.Event()
    followers.setdefault(uid, set()).add(event)
    try:
        yield event
    finally:
        followers[uid].discard(event)
        if not followers[uid]:
            del followers[uid]


async def _limited(chunks: AsyncIterator[bytes], most: int | None) -> AsyncIterator[bytes]:
    left = most
    async for chunk in chunks:
        if left is None:
            yield chunk
            continue
        yield chunk[:left]
        left -= len(chunk)
        if left <= 0:
            return


def _container(pod: Pod, name: str) -> Container:
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if container.name == name:
            return container
    return Container(name=name)  # an ephemeral one, which nodes here do not start


def _status(found: PodRun, container: str) -> dict[str, Any]:
    """The status of a container as the node has it now. Raises NodeApiError."""
    status = status_of(found.pod, found.progress)
    for each in (*status["containerStatuses"], *status.get("initContainerStatuses", ())):
        if each["name"] == container:
            return dict(each)
    pod = found.pod.metadata.name
    raise NodeApiError(400, f'container "{container}" in pod "{pod}" is not available')


def _is_running(found: PodRun, container: str) -> bool:
    return not found.is_gone and "running" in _status(found, container)["state"]
