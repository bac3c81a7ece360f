"""One pod on a node: a task that does what `steps` says, and reports what has become of it.

Everything that must not be forgotten is on disk before it is done: the folder of the pod, the attempts of its containers, and the claims
that are prepared for it. So a worker that begins where another was killed finds the same pod.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.pods import is_finished, is_leaving
from drayman.api.struct import Json
from drayman.api.times import timestamp
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.options import DeleteOptions, WriteOptions
from drayman.cluster.patches import strategic_merge_patch
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS, JsonObject
from drayman.node.agent.attempts import Launch
from drayman.node.agent.claims import ClaimsError, Devices, NodeClaims, cdi_ids
from drayman.node.agent.containers import Containers
from drayman.node.agent.environment import OwnFacts, SourceError, Sources, environment
from drayman.node.agent.executing import run_inside
from drayman.node.agent.images import ImageError, Images
from drayman.node.agent.launching import edits_for, launch_of
from drayman.node.agent.reading import read_sources, read_tokens
from drayman.node.agent.spec import Container, RunnablePod
from drayman.node.agent.status import status_of
from drayman.node.agent.steps import Steps, next_steps, running
from drayman.node.agent.volumes import files_of, set_up
from drayman.node.kubernetes import MANAGER
from drayman.plugins.errors import CdiError

_POD_VALUES: Final = PODS.as_values()
_OPTIONS: Final = WriteOptions(field_manager=MANAGER)
_DEFAULT_GRACE_S: Final = 30
_FIRST_RETRY_S: Final = 0.5
_LONGEST_RETRY_S: Final = 30.0
_OBSERVE_S: Final = 0.05
"""Until a container that was started is looked at again, while its process is being made."""
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What the pods of a node are run with."""

    client: Client
    recorder: EventRecorder
    claims: NodeClaims
    images: Images
    facts: OwnFacts
    pods_dir: Path
    cdi_dirs: Sequence[Path]
    own_root: bool
    """Whether containers get a root of their own also where they mount nothing."""


class PodWorker:
    """Runs one pod until it is gone."""

    def __init__(self, node: NodeContext, value: JsonObject) -> None:
        self._node = node
        self._take(value)
        self.folder = node.pods_dir / self.pod.metadata.uid
        self._wake = asyncio.Event()
        self._is_gone = False
        self._begun = self.typed.status.start_time or _now()
        self._devices: Devices | None = None
        self._sources = Sources()
        self._volumes: dict[str, Path] | None = None
        self._retry_s = _FIRST_RETRY_S
        self._retry_at: float | None = None
        self._reported: dict[str, Json] = {}
        self._since = {
            c.type_: (c.status, c.last_transition_time or self._begun)
            for c in self.typed.status.conditions
        }
        names = [each.name for each in self.pod.spec.all_containers]
        self.containers = Containers(self.folder / "containers", names, self._wake.set)

    def _take(self, value: JsonObject) -> None:
        self.value = value
        self.pod = convert(RunnablePod, value)
        self.typed = convert(Pod, value)

    def update(self, value: JsonObject) -> None:
        """The API has a newer version of the pod."""
        self._take(value)
        self._wake.set()

    def removed(self) -> None:
        """The API no longer has the pod: whatever still runs is ended at once."""
        self._is_gone = True
        self._wake.set()

    async def run(self) -> None:
        """Returns when the pod is gone, here and from the API."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            reason, message, steps = "", "", None
            if not is_finished(self.typed):
                steps, reason, message = await self._run_containers()
            await self._stop_containers()
            await self._unprepare()
            if steps is not None and not self._is_gone:
                await self._report(steps, reason, message)
            await self._await_deletion()
            await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
        finally:
            self.containers.forget()

    # --- Running --------------------------------------------------------------------------------

    async def _run_containers(self) -> tuple[Steps, str, str]:
        """Until no container will run again, or the pod is not wanted any more. Returns how it ended."""
        while True:
            self._wake.clear()
            steps = next_steps(self.pod.spec, self.containers.known(), time.time())
            if self._is_gone or is_leaving(self.typed):
                phase = steps.phase if steps.is_over else "Failed"
                return Steps(phase=phase), "", ""
            if self._is_too_late():
                return (
                    Steps(phase="Failed"),
                    "DeadlineExceeded",
                    "Pod was active on the node longer than the specified deadline",
                )
            if steps.is_over:
                return steps, "", ""
            for name in steps.stop:
                await self._stop_one(name, self._grace_s())
            if not steps.stop:
                await self._start_due(steps.start)
                self._observe()
                await self._report(steps)
            await self._sleep(steps)

    async def _sleep(self, steps: Steps) -> None:
        """Until something happens or is due."""
        due = [at for at in (steps.wait_until, self._retry_at, self._deadline()) if at is not None]
        if any(seen.is_running and not seen.began for seen in self.containers.seen.values()):
            due.append(time.time() + _OBSERVE_S)
        if steps.stop:
            return
        delay = max(0.0, min(due) - time.time()) if due else None
        try:
            async with asyncio.timeout(delay):
                await self._wake.wait()
        except TimeoutError:
            return

    def _observe(self) -> None:
        self.containers.observe()
        for name, seen in self.containers.seen.items():
            if seen.is_running and seen.began and not seen.has_started:
                self.containers.note(name, has_started=True, is_ready=True)
                self._wake.set()

    def _deadline(self) -> float | None:
        seconds = self.pod.spec.active_deadline_seconds
        if seconds is None:
            return None
        return datetime.fromisoformat(self._begun).timestamp() + seconds

    def _is_too_late(self) -> bool:
        deadline = self._deadline()
        return deadline is not None and time.time() >= deadline

    async def _start_due(self, names: Sequence[str]) -> None:
        """Start containers, unless the last attempt failed too recently."""
        if not names:
            self._retry_at = None
            return
        if self._retry_at is not None and time.time() < self._retry_at:
            return
        try:
            await self._set_up()
        except (ClaimsError, SourceError, ClusterError, OSError) as error:
            self._hinder(names, error)
            return
        failed = False
        for name in names:
            container = next(c for c in self.pod.spec.all_containers if c.name == name)
            try:
                await self.containers.start(name, self._launch(container))
            except (ImageError, SourceError, CdiError, OSError) as error:
                self._hinder([name], error)
                failed = True
        if not failed:
            self._retry_at, self._retry_s = None, _FIRST_RETRY_S

    def _hinder(self, names: Sequence[str], error: Exception) -> None:
        """Containers cannot be started: say why, and try again later."""
        reason, event = _reasons(error)
        for name in names:
            self.containers.note(name, reason=reason, message=str(error))
        self._warn(event, str(error))
        self._retry_at = time.time() + self._retry_s
        self._retry_s = min(2 * self._retry_s, _LONGEST_RETRY_S)

    async def _set_up(self) -> None:
        """What all containers need. Devices come last: they are what others wait for."""
        node, pod = self._node, self.pod
        if self._volumes is None:
            self._sources = await read_sources(node.client, pod)
            tokens = await read_tokens(node.client, pod)
            made = {}
            for volume in pod.spec.volumes:
                files = files_of(pod, volume, self._sources, tokens, node.facts)
                made[volume.name] = set_up(self.folder / "volumes" / volume.name, volume, files)
            self._volumes = made
        if self._devices is None:
            self._devices = await node.claims.prepare(self.typed)

    def _launch(self, container: Container) -> Launch:
        assert self._volumes is not None
        assert self._devices is not None
        node = self._node
        argv = node.images.argv(container)
        env = environment(self.pod, container, self._sources, node.facts)
        ids = cdi_ids(self.typed, container.name, self._devices)
        edits = edits_for(ids, node.cdi_dirs)
        if container.not_acted_on:
            fields = ", ".join(container.not_acted_on)
            self._warn("NotActedOn", f"container {container.name}: this node ignores {fields}")
        if edits.hooks:
            paths = ", ".join(dict.fromkeys(hook.path for hook in edits.hooks))
            self._warn("DeviceHooksSkipped", f"container {container.name}: {paths} not run")
        return launch_of(
            self.pod, container, argv, env, self._volumes, edits, own_root=node.own_root
        )

    # --- Stopping -------------------------------------------------------------------------------

    def _grace_s(self) -> float:
        if self._is_gone:
            return 0.0
        told = self.typed.metadata.deletion_grace_period_seconds
        own = self.pod.spec.termination_grace_period_seconds
        return float(next((each for each in (told, own) if each is not None), _DEFAULT_GRACE_S))

    async def _stop_containers(self) -> None:
        """Stop what runs: the containers together, then sidecars one after the other, all within the grace period."""
        end = time.monotonic() + self._grace_s()
        left = running(self.pod.spec, self.containers.known())
        sidecars = [each.name for each in self.pod.spec.init_containers if each.is_sidecar]
        await asyncio.gather(
            *(self._stop_one(name, self._grace_s()) for name in left if name not in sidecars)
        )
        for name in left:
            if name in sidecars:
                await self._stop_one(name, max(0.0, end - time.monotonic()))

    async def _stop_one(self, name: str, grace_s: float) -> None:
        """Ask a container to end, and end it when its time is up."""
        if grace_s > 0:
            stopping = asyncio.create_task(self._stop_gently(name))
            gone = asyncio.create_task(self._gone())
            await asyncio.wait(
                (stopping, gone), timeout=grace_s, return_when=asyncio.FIRST_COMPLETED
            )
            for task in (stopping, gone):
                task.cancel()
            await asyncio.gather(stopping, gone, return_exceptions=True)
        await self.containers.kill(name)

    async def _gone(self) -> None:
        """Returns when there is no reason to wait any longer: the pod was deleted by force."""
        while not self._is_gone and self._grace_s() > 0:
            self._wake.clear()
            await self._wake.wait()

    async def _stop_gently(self, name: str) -> None:
        container = next(c for c in self.pod.spec.all_containers if c.name == name)
        before = container.lifecycle.pre_stop if container.lifecycle else None
        attempt = self.containers.attempt(name)
        if before is not None and attempt is not None:
            if before.exec_ is not None:
                result = await run_inside(attempt, before.exec_.command)
                if result.code:
                    self._warn("FailedPreStopHook", f"container {name}: {result.text}")
            elif before.sleep is not None:
                await asyncio.sleep(before.sleep.seconds)
            else:
                self._warn(
                    "FailedPreStopHook", f"container {name}: this node runs exec and sleep only"
                )
        while self.containers.seen[name].is_running:
            self.containers.signal(name, signal.SIGTERM)
            if attempt is not None and attempt.pid is not None:
                await self.containers.ended(name)
                return
            await asyncio.sleep(_OBSERVE_S)

    async def _unprepare(self) -> None:
        """Give the devices back. Until a driver has taken them, the pod is not over."""
        delay = _FIRST_RETRY_S
        while self._node.claims.of_pod(self.pod.metadata.uid):
            try:
                await self._node.claims.unprepare(self.pod.metadata.uid)
            except ClaimsError as error:
                self._warn("FailedUnprepareDynamicResources", str(error))
                await asyncio.sleep(delay)
                delay = min(2 * delay, _LONGEST_RETRY_S)
        self._devices = None

    async def _await_deletion(self) -> None:
        """A pod that has ended stays, with its logs, until somebody deletes it."""
        while not self._is_gone:
            self._wake.clear()
            if is_leaving(self.typed):
                await self._delete()
            if not self._is_gone:
                await self._wake.wait()

    async def _delete(self) -> None:
        meta = self.pod.metadata
        options = DeleteOptions(grace_period_seconds=0, uid=meta.uid)
        try:
            await self._node.client.delete(PODS, meta.name, meta.namespace, options=options)
        except (NotFoundError, ConflictError):
            self._is_gone = True
        except ClusterError as error:
            _log.warning("pod %s/%s cannot be removed: %s", meta.namespace, meta.name, error)
            await asyncio.sleep(1.0)
            self._wake.set()

    # --- Reporting ------------------------------------------------------------------------------

    async def _report(self, steps: Steps, reason: str = "", message: str = "") -> None:
        """Write the status if it has changed. What cannot be written now is written with the next change."""
        self.containers.observe()
        now = _now()
        status = status_of(
            self.pod,
            self.containers.seen,
            steps,
            begun=self._begun,
            host_ip=self._node.facts.host_ip,
            now=now,
            since=self._since,
            is_prepared=self._devices is not None or bool(self.containers.known()),
            reason=reason,
            message=message,
        )
        if status == self._reported:
            return
        meta = self.pod.metadata
        patch = strategic_merge_patch({"metadata": {"uid": meta.uid}, "status": status})
        try:
            await self._node.client.patch(
                _POD_VALUES,
                meta.name,
                patch,
                meta.namespace,
                subresource="status",
                options=_OPTIONS,
            )
        except NotFoundError:
            self._is_gone = True
        except ClusterError as error:
            _log.warning("the status of %s/%s was refused: %s", meta.namespace, meta.name, error)
            self._wake_later()
        else:
            self._reported = status
            self._since = {
                c["type"]: (c["status"], c["lastTransitionTime"]) for c in status["conditions"]
            }

    def _wake_later(self) -> None:
        asyncio.get_running_loop().call_later(1.0, self._wake.set)

    def _warn(self, reason: str, note: str) -> None:
        reference = Reference.to(PODS, self.typed)
        self._node.recorder.record(reference, "Warning", reason, note, "Running")


def _reasons(error: Exception) -> tuple[str, str]:
    """The reason in the container's status, and that of the event."""
    match error:
        case ClaimsError():
            return "ContainerCreating", "FailedPrepareDynamicResources"
        case ImageError():
            return error.reason, "Failed"
        case SourceError():
            return "CreateContainerConfigError", "Failed"
        case _:
            return "CreateContainerError", "Failed"


def _now() -> str:
    return timestamp(datetime.now(UTC))
