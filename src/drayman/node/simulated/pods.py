"""The pods of all simulated nodes, driven by an agenda.

Each pod has one entry in the agenda at most: when something next happens to it. What is due together is written together. A status that is
refused is written again later, as it is by then; a pod that is gone is forgotten once its devices have been given back.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import containers_with, is_finished, is_leaving, used_claims
from drayman.api.resource import ResourceClaim
from drayman.api.times import moment_of, timestamp
from drayman.cluster.cache import Cache
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.options import DeleteOptions
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS
from drayman.cluster.together import Bundle
from drayman.cluster.writes import DeleteWrite, Parts, PartsWrite
from drayman.node.claims import ClaimsError, NodeClaims
from drayman.node.reporting import FAILED_PREPARE, MANAGER
from drayman.node.simulated.agenda import Agenda
from drayman.node.simulated.claim_status import devices_write, ready_devices
from drayman.node.simulated.model import Timing
from drayman.node.simulated.pod_status import Stage, status_of
from drayman.node.simulated.preparing import CachedClaims, NothingKept, SimulatedDrivers
from drayman.node.simulated.published import PublishedDevices
from drayman.node.simulated.runs import PodRun, Wishes, adopted
from drayman.plugins.model import ClaimRef

Entry = tuple[str, str]
"""What is due: a kind, and the uid or name of what it is about."""
POD: Final = "pod"
ADOPT: Final = "adopt"
REPORT: Final = "report"
UNPREPARE: Final = "unprepare"

_CONFLICT_DELAY: Final = 0.05
"""Seconds until a claim that another component has just written is known as it is now."""
_QUIET_ATTEMPTS: Final = 1
"""Attempts to prepare that may fail silently: pods and claims are followed separately, and one can be a little late."""


@dataclass(frozen=True, slots=True)
class PodRunContext:
    """What pods are run with."""

    claims: Cache[ResourceClaim]
    published: PublishedDevices
    recorder: EventRecorder
    agenda: Agenda[Entry]
    timing: Timing
    time: Callable[[], float]
    """The event loop's clock."""


class SimulatedPods:
    """Every pod that is bound to a simulated node, by uid."""

    def __init__(self, context: PodRunContext) -> None:
        self._context = context
        self._runs: dict[str, PodRun] = {}
        self._attempts: dict[str, int] = {}
        self._waiting: dict[tuple[str, str], set[str]] = {}
        self.drivers = SimulatedDrivers(
            context.claims,
            context.published.find,
            self._is_leaving,
            self._held_twice,
            self._programs,
        )
        self.claims = NodeClaims(NothingKept(), CachedClaims(context.claims), self.drivers)
        self.violations = 0
        """Devices that were found allocated to two claims at once."""

    def __len__(self) -> int:
        return len(self._runs)

    def run_of(self, uid: str) -> PodRun | None:
        return self._runs.get(uid)

    def node_of(self, uid: str) -> str | None:
        run = self._runs.get(uid)
        return None if run is None else run.pod.spec.node_name

    # --- What the API reports ------------------------------------------------------------------

    def seen(self, pod: Pod) -> None:
        """A pod of a simulated node, new or changed."""
        uid = pod.metadata.uid
        run = self._runs.get(uid)
        if run is None:
            run = self._adopt(pod)
            self._runs[uid] = run
        elif not _is_older(pod, run.pod):
            run.pod = pod
        if is_finished(pod) and not run.is_over:
            # Another component has given it up, and its claims with it.
            run.stopped(_now())
            self._leave(run)
        if run.progress.is_ready and _is_doubted(pod):
            self._context.agenda.put_earlier((REPORT, uid), self._context.time())
        if is_leaving(pod) and not run.is_leaving:
            run.is_leaving = True
            self._soon(uid, run.stop(self._context.timing))

    def removed(self, pod: Pod) -> None:
        """A pod that the API no longer has. If its end was not awaited, its containers are still to be stopped."""
        run = self._runs.get(pod.metadata.uid)
        if run is not None:
            run.is_gone = True
            if run.is_over:
                self._leave(run)
            elif not run.is_leaving:
                self._soon(pod.metadata.uid, run.stop(self._context.timing))

    def claim_changed(self, claim: ResourceClaim) -> None:
        """Pods that wait for a claim look at it again."""
        for uid in self._waiting.pop((claim.metadata.namespace, claim.metadata.name), ()):
            self._soon(uid, 0.0)

    def forget_node(self, name: str) -> None:
        """A node is permanently gone, and with it what was prepared there."""
        for uid, run in tuple(self._runs.items()):
            if run.pod.spec.node_name == name:
                self._forget(uid)
                self._context.agenda.put((UNPREPARE, uid), self._context.time())

    # --- What is due ---------------------------------------------------------------------------

    async def unprepare(self, uid: str) -> None:
        """A pod's devices are given back."""
        await self.claims.unprepare(uid)
        run = self._runs.get(uid)
        if run is not None:
            run.claims = ()
            if run.is_gone:
                self._forget(uid)

    async def adopt(self, uid: str) -> None:
        """A pod that ran before this process began has its claims. What is wrong with them does not end it."""
        run = self._runs.get(uid)
        if run is not None and not run.is_over:
            with suppress(ClaimsError):
                await self._claim(run)

    async def advance(self, uid: str) -> Bundle | None:
        """The next step of a pod, and what has to be written for it."""
        run = self._runs.get(uid)
        if run is None:
            return None
        if run.is_gone or run.is_leaving:
            return self._finish(run)
        time = self._context.time()
        match run.stage:
            case Stage.PREPARING:
                return await self._prepare(run)
            case Stage.INITIALISING:
                return self._step(run, run.initialised(self._context.timing))
            case Stage.STARTING | Stage.WAITING:
                return self._step(run, run.start(_now(), time))
            case Stage.RUNNING:
                return self._run(run, time)
            case _:
                return self._report(run)

    def report_again(self, uid: str) -> Bundle | None:
        """The status that was refused before, as it is now."""
        run = self._runs.get(uid)
        if run is None or run.is_gone:
            return None
        if run.is_leaving and run.is_over:
            return self._finish(run)
        return self._report(run, *(self._ready_writes(run) if run.claims else ()))

    def _run(self, run: PodRun, time: float) -> Bundle:
        """A running pod becomes ready, or ends."""
        if run.ends_at is not None and run.ends_at <= time:
            delay = run.end(_now(), self._context.timing)
            if run.is_over:
                self._leave(run)
            return self._step(run, delay)
        run.progress.is_ready = True
        return self._step(run, run.next_change(time))

    def _adopt(self, pod: Pod) -> PodRun:
        """Takes over a pod. One that already runs keeps its claims."""
        timing, now = self._context.timing, datetime.now(UTC)
        try:
            run = adopted(pod, timestamp(now), self._context.time(), _age(pod, now))
        except ValueError as error:
            self._warn(pod, "FailedSimulation", str(error))
            run = PodRun(pod, Wishes())
            run.progress.begun = timestamp(now)
        if run.stage is Stage.RUNNING:
            self._context.agenda.put((ADOPT, pod.metadata.uid), self._context.time())
            if run.ends_at is not None:
                self._soon(pod.metadata.uid, run.ends_at - self._context.time())
        elif not run.is_over:
            self._soon(pod.metadata.uid, timing.prepare)
        return run

    async def _prepare(self, run: PodRun) -> Bundle:
        """Prepares the claims of a pod. One that cannot be stays Pending and says why."""
        uid = run.pod.metadata.uid
        writes: list[PartsWrite[ResourceClaim]] = []
        try:
            writes = await self._claim(run)
        except ClaimsError as error:
            problem = str(error)
            attempts = self._attempts[uid] = self._attempts.get(uid, 0) + 1
            if attempts > _QUIET_ATTEMPTS:
                self._warn(run.pod, FAILED_PREPARE, problem)
            run.progress.problem = problem
            for name in used_claims(run.pod):
                self._waiting.setdefault((run.pod.metadata.namespace, name), set()).add(uid)
            self._soon(uid, self._context.timing.retry)
        else:
            self._attempts.pop(uid, None)
            self._soon(uid, run.prepared(self._context.timing))
        return self._report(run, *writes)

    async def _claim(self, run: PodRun) -> list[PartsWrite[ResourceClaim]]:
        """Prepares the claims of a pod; what drivers write into them. Raises ClaimsError."""
        await self.claims.prepare(run.pod)
        run.claims = tuple(held.uid for held in self.claims.of_pod(run.pod.metadata.uid))
        namespace = run.pod.metadata.namespace
        found = (self._context.claims.get(name, namespace) for name in used_claims(run.pod))
        run.held = tuple(claim for claim in found if claim is not None)
        return self._ready_writes(run) if run.claims else []

    def _ready_writes(self, run: PodRun) -> list[PartsWrite[ResourceClaim]]:
        """What drivers write into the claims that are prepared for a pod, where it is not there yet."""
        now = _now()
        writes = []
        for name in used_claims(run.pod):
            claim = self._context.claims.get(name, run.pod.metadata.namespace)
            if claim is not None and claim.metadata.uid in run.claims:
                devices = ready_devices(claim, self._context.published.find, now)
                if devices != claim.status.devices:
                    writes.append(devices_write(claim, devices))
        return writes

    def _is_leaving(self, claim: str) -> bool:
        """Whether every pod of a claim has ended, or is gone."""
        runs = (self._runs.get(pod) for pod in self.claims.pods_of(claim))
        return all(run is None or run.is_gone or run.is_over for run in runs)

    def _programs(self, claim: ResourceClaim, request: str) -> int:
        """The containers that use the devices of a request, of the pods that the claim is reserved for."""
        counts = []
        for consumer in claim.status.reserved_for:
            run = self._runs.get(consumer.uid)
            if run is None:
                counts.append(1)
            elif not run.is_over:
                counts.append(max(1, containers_with(run.pod, claim.metadata.name, request)))
        return max(1, sum(counts))

    def _held_twice(self, claim: ClaimRef, problem: str) -> None:
        self.violations += 1
        for pod in self.claims.pods_of(claim.uid):
            run = self._runs.get(pod)
            if run is not None:
                self._warn(run.pod, "DeviceHeldTwice", f"claim {claim.name}: {problem}")

    def _finish(self, run: PodRun) -> Bundle | None:
        """The containers of a deleted pod have ended: report it, let the API remove the pod, and give its devices back."""
        run.stopped(_now())
        self._leave(run)
        if run.is_gone:
            return None
        meta = run.pod.metadata
        options = DeleteOptions(grace_period_seconds=0, uid=meta.uid)
        return self._report(run, DeleteWrite(PODS, meta.name, meta.namespace, options))

    def _leave(self, run: PodRun) -> None:
        entry = (UNPREPARE, run.pod.metadata.uid)
        self._context.agenda.put_earlier(
            entry, self._context.time() + self._context.timing.unprepare
        )

    def _step(self, run: PodRun, delay: float | None) -> Bundle:
        if delay is not None:
            self._soon(run.pod.metadata.uid, delay)
        return self._report(run)

    def _report(self, run: PodRun, *more: PartsWrite[ResourceClaim] | DeleteWrite[Pod]) -> Bundle:
        """Writes the status of a pod, and what goes with it."""
        meta = run.pod.metadata
        parts: Parts = {
            ("status", name): part for name, part in status_of(run.pod, run.progress).items()
        }
        # For the pod as it is known: its conditions are written as a whole, and others write some of them.
        status = PartsWrite.of(PODS, run.pod, parts, field_manager=MANAGER)
        return Bundle(
            (status, *more),
            lambda error: self._refused(meta.uid, error),
            lambda answers: self._written(meta.uid, answers[0]),
        )

    def _written(self, uid: str, answer: object) -> None:
        """The next write is for the version that this one produced, which informers report a little later."""
        run = self._runs.get(uid)
        if run is not None and isinstance(answer, Pod) and not _is_older(answer, run.pod):
            run.pod = answer

    def _refused(self, uid: str, error: ClusterError) -> None:
        """A pod that is not there needs no status; in all other cases it is written again later."""
        run = self._runs.get(uid)
        if run is None:
            return
        if isinstance(error, NotFoundError) and not run.is_gone:
            return  # its removal is about to be reported
        delay = _CONFLICT_DELAY if isinstance(error, ConflictError) else self._context.timing.retry
        self._context.agenda.put((REPORT, uid), self._context.time() + delay)

    def _soon(self, uid: str, delay: float) -> None:
        self._context.agenda.put((POD, uid), self._context.time() + delay)

    def _forget(self, uid: str) -> None:
        self._runs.pop(uid, None)
        self._attempts.pop(uid, None)
        for kind in (POD, ADOPT, REPORT, UNPREPARE):
            self._context.agenda.discard((kind, uid))

    def _warn(self, pod: Pod, reason: str, note: str) -> None:
        self._context.recorder.record(Reference.to(PODS, pod), "Warning", reason, note, "Preparing")


def _is_older(pod: Pod, than: Pod) -> bool:
    """Versions count upwards on every server; where they are not numbers, the last one received is the newest."""
    one, other = pod.metadata.resource_version, than.metadata.resource_version
    return one.isdecimal() and other.isdecimal() and int(one) < int(other)


def _is_doubted(pod: Pod) -> bool:
    """Whether another component has said that a pod is not ready, as when its node counted as lost."""
    said = {condition.type_: condition.status for condition in pod.status.conditions}
    return said.get("ContainersReady") == "True" and said.get("Ready") == "False"


def _now() -> str:
    return timestamp(datetime.now(UTC))


def _age(pod: Pod, now: datetime) -> float:
    """How long a pod has been on its node, as far as is known: the clock may have been set back since."""
    begun = pod.status.start_time
    return 0.0 if begun is None else max(0.0, (now - moment_of(begun)).total_seconds())
