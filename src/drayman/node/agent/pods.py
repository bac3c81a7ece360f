"""One pod on a node: a task that does what `steps` says, and reports what has become of it.

Everything that must not be forgotten is on disk before it is done: the folder of the pod, the attempts of its containers, and the claims
that are prepared for it. So a worker that begins where another was killed finds the same pod.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from drayman.api.codec import convert
from drayman.api.core import EventType, Pod
from drayman.api.meta import ObjectMeta
from drayman.api.pods import is_finished, is_leaving
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.options import DeleteOptions
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS, JsonObject
from drayman.node.agent.containers import Containers
from drayman.node.agent.devices.claims import cdi_ids
from drayman.node.agent.devices.device_status import device_statuses
from drayman.node.agent.devices.health import DeviceHealth
from drayman.node.agent.environment import OwnFacts, SourceError, environment
from drayman.node.agent.folders import Hidden
from drayman.node.agent.hindrances import reasons_of
from drayman.node.agent.images import ImageError, Images
from drayman.node.agent.launching import edits_for, launch_of
from drayman.node.agent.lifecycle import Lives
from drayman.node.agent.limiting import NodeLimits, cpus_of
from drayman.node.agent.processes.attempts import Isolation, Launch
from drayman.node.agent.reporting import StatusWriter, now
from drayman.node.agent.spec import Container, RunnablePod, ignored_changes, ignored_fields
from drayman.node.agent.status import status_of
from drayman.node.agent.steps import Steps, next_steps, phase_after, running
from drayman.node.agent.unusable import (
    refuse_hidden_volumes,
    refuse_unusable,
    refuse_unusable_volumes,
)
from drayman.node.agent.volumes.keeping import LOOK_AGAIN_S, PodVolumes
from drayman.node.cgroups.limits import pod_limits
from drayman.node.claims import ClaimsError, Devices, NodeClaims
from drayman.node.streams.finishing import cancelled, to_the_end
from drayman.plugins.errors import CdiError

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
    isolation: Isolation
    """What keeps containers apart. Where it permits mounts, they get a root of their own also if they mount nothing."""
    hidden: Hidden
    overlays: bool
    """Whether containers may change the roots of their images."""
    limits: NodeLimits
    health: DeviceHealth
    look_again_s: float = LOOK_AGAIN_S
    """How long a change of what is in volumes may go unnoticed."""


@dataclass(frozen=True, slots=True)
class End:
    """How a pod ends. Without a phase, that depends on how its containers do."""

    phase: str = ""
    reason: str = ""
    message: str = ""


_TOO_LATE: Final = End(
    "Failed", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
)


class PodWorker:
    """Runs one pod until it is gone."""

    def __init__(self, node: NodeContext, value: JsonObject) -> None:
        self._node = node
        self._take(value)
        self.folder = node.pods_dir / self.pod.metadata.uid
        self._wake = asyncio.Event()
        self.is_gone = False
        self._devices: Devices | None = None
        self._volumes = PodVolumes(
            self.folder / "volumes", node.client, node.facts, self._warn, node.look_again_s
        )
        self._retry_s = _FIRST_RETRY_S
        self._retry_at: float | None = None
        self._delayed: dict[str, int] = {}
        """Attempts of containers of which it was told that they are started again later."""
        self._status = StatusWriter(node.client, self.typed, self.removed)
        self.containers = Containers(
            self.folder / "containers", self.pod.spec.all_containers, self._wake.set
        )
        self._lives = Lives(
            self.pod,
            self.containers,
            node.facts.host_ip,
            grace_s=self._grace_s,
            record=self._tell,
            changed=self._wake.set,
        )

    def _take(self, value: JsonObject) -> None:
        self.value = value
        self.pod = convert(RunnablePod, value)
        self.typed = convert(Pod, value)

    def update(self, value: JsonObject) -> None:
        """The API has a newer version of the pod."""
        before = self.pod
        self._take(value)
        active = running(before.spec, self.containers.known())
        for ignored in ignored_changes(before.spec, self.pod.spec, active):
            self._warn("NotActedOn", ignored)
        if _told(self.pod.metadata) != _told(before.metadata):
            self._volumes.changed()
        if is_leaving(self.typed):
            self._lives.shorten(self._grace_s())
        self._wake.set()

    def devices_changed(self, driver: str) -> None:
        """Devices of a driver are not as they were."""
        if any(driver in held.drivers for held in self._node.claims.of_pod(self.pod.metadata.uid)):
            self._wake.set()

    def removed(self) -> None:
        """The API no longer has the pod: whatever still runs is ended at once."""
        self.is_gone = True
        self._lives.shorten(0.0)
        self._wake.set()

    async def run(self) -> None:
        """Returns when the pod is gone, here and from the API."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            end = None
            if not is_finished(self.typed):
                self._volumes.keep(lambda: self.pod, pod_limits(self.typed).memory)
                end = await self._run_containers()
            await self._stop_and_report()
            await self._lives.close()
            await self._volumes.close()
            await self._unprepare_and_report(end)
            if end is not None:
                await self._report_end(end)
            await self._await_deletion()
            await self.containers.clear()
            self.free_memory()
            await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
        finally:
            await self._lives.close()
            await self._volumes.close()
            self.containers.forget()

    # --- Running --------------------------------------------------------------------------------

    async def _run_containers(self) -> End:
        """Until no container will run again, or the pod is not wanted any more."""
        while True:
            self._wake.clear()
            self._tell_starts()  # before the next one takes the place of one that has ended
            steps = next_steps(self.pod.spec, self.containers.known(), time.time())
            if is_finished(self.typed):
                # Somebody else has ended it: a kubelet stops such pods, and leaves them as they were ended.
                return self._end_so_far()
            if self.is_gone or is_leaving(self.typed):
                return End(steps.phase if steps.is_over else "")
            if self._is_too_late():
                return _TOO_LATE
            if steps.is_over:
                return End(steps.phase)
            for name in steps.stop:
                await self._lives.stop(name, self._grace_s())
            if not steps.stop:
                await self._start_due(steps.start)
                self._observe()
                self._tell_delays(steps.delayed)
                await self._report(steps)
            await self._sleep(steps)

    async def _sleep(self, steps: Steps) -> None:
        """Until something happens or is due."""
        now = time.time()
        delays = [at - now for at in (steps.wait_until, self._deadline()) if at is not None]
        if self._retry_at is not None:
            delays.append(self._retry_at - time.monotonic())
        if self.containers.are_starting:
            delays.append(_OBSERVE_S)
        if steps.stop:
            return
        delay = max(0.0, min(delays)) if delays else None
        try:
            async with asyncio.timeout(delay):
                await self._wake.wait()
        except TimeoutError:
            return

    def _observe(self) -> None:
        self._tell_starts()
        self._lives.observe()

    def _tell_starts(self) -> None:
        for name, failure in self.containers.observe():
            if failure:
                self._warn("Failed", f"Error: {failure}")
            else:
                self._tell("Normal", "Started", f"Started container {name}")

    def _tell_delays(self, names: Iterable[str]) -> None:
        """Say once for each end of a container that it waits to be started again."""
        meta = self.pod.metadata
        for name in sorted(names):
            attempt = self.containers.seen[name].attempt
            if self._delayed.get(name) != attempt:
                self._delayed[name] = attempt
                where = f"{meta.name}_{meta.namespace}({meta.uid})"
                about = f"Back-off restarting failed container {name} in pod {where}"
                self._warn("BackOff", about)

    def _deadline(self) -> float | None:
        seconds = self.pod.spec.active_deadline_seconds
        if seconds is None:
            return None
        return datetime.fromisoformat(self._status.begun).timestamp() + seconds

    def _is_too_late(self) -> bool:
        deadline = self._deadline()
        return deadline is not None and time.time() >= deadline

    async def _start_due(self, names: Sequence[str]) -> None:
        """Start containers, unless the last attempt failed too recently."""
        if not names:
            self._retry_at = None
            return
        if self._retry_at is not None and time.monotonic() < self._retry_at:
            return
        if self._lives.awaits_hook:
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
            if self._lives.awaits_hook:
                break  # the next one comes when the hook has returned, as with a kubelet
        if not failed:
            self._retry_at, self._retry_s = None, _FIRST_RETRY_S

    def _hinder(self, names: Sequence[str], error: Exception) -> None:
        """Containers cannot be started: say why, and try again later."""
        reason, event = reasons_of(error)
        for name in names:
            self.containers.note(name, reason=reason, message=str(error))
        self._warn(event, str(error))
        self._retry_at = time.monotonic() + self._retry_s
        self._retry_s = min(2 * self._retry_s, _LONGEST_RETRY_S)

    async def _set_up(self) -> None:
        """What all containers need. Devices come last: they are what others wait for."""
        refuse_unusable_volumes(self.pod.spec.volumes)
        if self._node.isolation.mounts:
            refuse_hidden_volumes(self.pod.spec.volumes, self._node.hidden)
        await self._volumes.set_up(self.pod, pod_limits(self.typed).memory)
        if self._devices is None:
            self._devices = await self._node.claims.prepare(self.typed)

    def free_memory(self) -> None:
        """Give back what volumes hold in memory, once no container runs."""
        try:
            self._volumes.free_memory()
        except OSError as error:
            _log.warning("volumes of pod %s stay in memory: %s", self.pod.metadata.uid, error)

    def _launch(self, container: Container) -> Launch:
        assert self._devices is not None
        node = self._node
        argv = node.images.argv(container)
        env = environment(self.pod, container, self._volumes.sources, node.facts)
        ids = cdi_ids(self.typed, container.name, self._devices)
        edits = edits_for(ids, node.cdi_dirs)
        refuse_unusable(container, argv, env, edits.env)
        ignored = ignored_fields(self.pod, container)
        if ignored:
            fields = ", ".join(ignored)
            self._warn("NotActedOn", f"container {container.name}: this node ignores {fields}")
        if edits.hooks:
            paths = ", ".join(dict.fromkeys(hook.path for hook in edits.hooks))
            self._warn("DeviceHooksSkipped", f"container {container.name}: {paths} not run")
        image_root = node.images.root(container)
        launch = launch_of(
            self.pod,
            container,
            argv,
            env,
            self._volumes.paths,
            edits,
            own_root=node.isolation.mounts,
            hidden=node.hidden.paths,
            hides=node.isolation.hides,
            image_root=image_root,
            is_writable=self._may_write_root(container, image_root),
        )
        return self._confined(container.name, launch, cpus_of(edits.env))

    def _may_write_root(self, container: Container, image_root: str) -> bool:
        """Whether a container may change what it sees as its root. Warns if that is not as it says."""
        security = container.security_context
        is_refused = security is not None and security.read_only_root_filesystem
        about = f"container {container.name}"
        if is_refused and not image_root:
            ignored = (
                "this node ignores readOnlyRootFilesystem of containers that see its own files"
            )
            self._warn("NotActedOn", f"{about}: {ignored}")
        elif image_root and not is_refused and not self._node.overlays:
            self._warn(
                "RootReadOnly",
                f"{about}: its root is read-only, because this machine permits no overlays",
            )
        return self._node.overlays and not is_refused

    def _confined(self, name: str, launch: Launch, cpus: tuple[int, ...]) -> Launch:
        """What is to be started, within its limits."""
        limits = self._node.limits
        ignored = limits.not_enforced(self.typed, name)
        if ignored:
            self._warn("LimitsNotEnforced", ignored)
        own = limits.confine(self.typed, name, self.containers.next_number(name), cpus)
        return replace(launch, cgroups=own.groups, oom_file=own.oom_file, cpus=own.cpus)

    # --- Stopping -------------------------------------------------------------------------------

    def _grace_s(self) -> float:
        if self.is_gone:
            return 0.0
        told = self.typed.metadata.deletion_grace_period_seconds
        own = self.pod.spec.termination_grace_period_seconds
        return float(next((each for each in (told, own) if each is not None), _DEFAULT_GRACE_S))

    async def _stop_and_report(self) -> None:
        """Stop what runs. Meanwhile it is reported who has ended and who is ready."""
        self._lives.leave()
        stopping = asyncio.create_task(self._stop_containers())
        stopping.add_done_callback(lambda _: self._wake.set())
        try:
            while not stopping.done():
                self._wake.clear()
                self._observe()
                steps = next_steps(self.pod.spec, self.containers.known(), time.time())
                is_wanted = not (self.is_gone or steps.is_over or is_finished(self.typed))
                if is_wanted and self.containers.count_running():
                    await self._report(Steps(phase=steps.phase))
                await self._wake.wait()
            await stopping
        finally:
            await to_the_end(cancelled(stopping))

    async def _stop_containers(self) -> None:
        """The containers together, then sidecars one after the other, all within the grace period."""
        end = time.monotonic() + self._grace_s()
        left = running(self.pod.spec, self.containers.known())
        sidecars = [each.name for each in self.pod.spec.init_containers if each.is_sidecar]
        await asyncio.gather(
            *(self._lives.stop(name, self._grace_s()) for name in left if name not in sidecars)
        )
        for name in left:
            if name in sidecars:
                left_s = min(end - time.monotonic(), self._grace_s())
                await self._lives.stop(name, max(0.0, left_s))

    def _end_so_far(self) -> End:
        """How the pod is reported until its devices are given back: it goes on, unless somebody else has ended it."""
        status = self.typed.status
        if is_finished(self.typed):
            return End(status.phase, status.reason, status.message)
        return End("Running")

    async def _unprepare_and_report(self, end: End | None) -> None:
        """Give the devices back. A driver may take long, or be away: that the containers have ended is known meanwhile."""
        unpreparing = asyncio.create_task(self._unprepare())
        unpreparing.add_done_callback(lambda _: self._wake.set())
        try:
            while not unpreparing.done():
                self._wake.clear()
                is_held = bool(self._node.claims.of_pod(self.pod.metadata.uid))
                if is_held and end is not None and not self.is_gone:
                    so_far = self._end_so_far()
                    await self._report(Steps(phase=so_far.phase), so_far.reason, so_far.message)
                await self._wake.wait()
            await unpreparing
        finally:
            unpreparing.cancel()

    async def _unprepare(self) -> None:
        """Until a driver has taken the devices, the pod is not over."""
        delay = _FIRST_RETRY_S
        while self._node.claims.of_pod(self.pod.metadata.uid):
            try:
                await self._node.claims.unprepare(self.pod.metadata.uid)
            except (ClaimsError, OSError) as error:
                self._warn("FailedUnprepareDynamicResources", str(error))
                await asyncio.sleep(delay)
                delay = min(2 * delay, _LONGEST_RETRY_S)
        self._devices = None

    async def _report_end(self, end: End) -> None:
        """Returns when it is known how the pod has ended: others wait for that, and nothing else would say it."""
        phase = end.phase or phase_after(self.pod.spec, self.containers.known())
        delay = _FIRST_RETRY_S
        while not self.is_gone:
            if await self._report(Steps(phase=phase), end.reason, end.message):
                return
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LONGEST_RETRY_S)

    async def _await_deletion(self) -> None:
        """A pod that has ended stays, with its logs, until somebody deletes it."""
        while not self.is_gone:
            self._wake.clear()
            if is_leaving(self.typed):
                await self._delete()
            if not self.is_gone:
                await self._wake.wait()

    async def _delete(self) -> None:
        meta = self.pod.metadata
        options = DeleteOptions(grace_period_seconds=0, uid=meta.uid)
        try:
            await self._node.client.delete(PODS, meta.name, meta.namespace, options=options)
        except (NotFoundError, ConflictError):
            self.is_gone = True
        except ClusterError as error:
            _log.warning("pod %s/%s cannot be removed: %s", meta.namespace, meta.name, error)
            await asyncio.sleep(1.0)
            self._wake.set()

    # --- Reporting ------------------------------------------------------------------------------

    async def _report(self, steps: Steps, reason: str = "", message: str = "") -> bool:
        """Write the status if it has changed. What cannot be written now is written with the next change, or in a moment."""
        self._observe()
        status = status_of(
            self.pod,
            self.containers.seen,
            steps,
            begun=self._status.begun,
            host_ip=self._node.facts.host_ip,
            now=now(),
            since=self._status.since,
            devices=device_statuses(
                self.typed, self._node.claims.of_pod(self.pod.metadata.uid), self._node.health.of
            ),
            is_prepared=self._devices is not None or bool(self.containers.known()),
            gates={each.type_: each.status for each in self.typed.status.conditions},
            reason=reason,
            message=message,
        )
        if await self._status.write(status):
            return True
        asyncio.get_running_loop().call_later(1.0, self._wake.set)
        return False

    def _warn(self, reason: str, note: str) -> None:
        self._tell("Warning", reason, note)

    def _tell(self, type_: EventType, reason: str, note: str) -> None:
        reference = Reference.to(PODS, self.typed)
        self._node.recorder.record(reference, type_, reason, note, "Running")


def _told(meta: ObjectMeta) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What of a pod may change that its containers are told in files."""
    return meta.labels, meta.annotations
