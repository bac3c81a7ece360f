"""A pod on its simulated node: what happens next, and when.

Pure: the clock and the claims are passed in, and what is to be written is returned. The states are those of `Stage`:
preparing -> (initialising) -> starting -> running -> ended, or -> waiting -> running where a restart policy says so; from any of
them -> stopping when the pod is deleted. Containers end together; those that are not started again stay as they ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from drayman.api.core import Pod
from drayman.api.pods import is_finished
from drayman.api.resource import ResourceClaim
from drayman.api.times import parse_duration
from drayman.node.restarting import backoff, crashes_after, restarts
from drayman.node.simulated.model import EXIT_CODE, READY_AFTER, RUN_FOR, Timing
from drayman.node.simulated.pod_status import SIGTERM_STATUS, Ending, PodProgress, Stage


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the annotations of a pod ask for."""

    run_for: float | None = None
    exit_code: int = 0
    ready_after: float = 0.0

    @classmethod
    def of(cls, pod: Pod) -> Wishes:
        """Raises ValueError, naming the annotation."""
        found = pod.metadata.annotations
        try:
            run_for = parse_duration(found[RUN_FOR]) if RUN_FOR in found else None
            ready_after = parse_duration(found[READY_AFTER]) if READY_AFTER in found else 0.0
            code = found.get(EXIT_CODE, "0")
            if not code.isascii() or not code.isdigit() or int(code) > 255:
                raise ValueError(f"{code!r} is not an exit code; write a number from 0 to 255")
        except ValueError as error:
            raise ValueError(f"annotations drayman.dev/*: {error}") from error
        return cls(run_for, int(code), ready_after)


@dataclass(slots=True)
class PodRun:
    """One pod on a node, from its arrival until its devices are given back."""

    pod: Pod
    wishes: Wishes = Wishes()
    progress: PodProgress = field(default_factory=PodProgress)
    claims: tuple[str, ...] = ()
    """Uids of the claims that are prepared for it."""
    held: tuple[ResourceClaim, ...] = ()
    """The claims as they were when they were prepared: what its containers saw, also after they have ended."""
    is_leaving: bool = False
    """Whether it is being stopped."""
    is_gone: bool = False
    """Whether the API no longer has the pod."""
    ends_at: float | None = None
    """When its containers end by themselves, in the event loop's time."""
    crashes: int = 0
    """How often they have ended without running for long."""

    @property
    def stage(self) -> Stage:
        return self.progress.stage

    @property
    def is_over(self) -> bool:
        return self.stage is Stage.ENDED

    def prepared(self, timing: Timing) -> float:
        """Its claims are prepared. How long the next step takes."""
        self.progress.problem = ""
        count = len(self.pod.spec.init_containers)
        self.progress.stage = Stage.INITIALISING if count else Stage.STARTING
        return timing.start * max(1, count)

    def initialised(self, timing: Timing) -> float:
        """Its init containers have ended. How long the start of the others takes."""
        self.progress.stage = Stage.STARTING
        return timing.start

    def start(self, now: str, time: float) -> float | None:
        """Its containers run. How long until something happens by itself, if ever."""
        progress = self.progress
        progress.restarts += progress.stage is Stage.WAITING
        progress.stage = Stage.RUNNING
        progress.started = now
        progress.is_ready = self.wishes.ready_after == 0
        if self.wishes.run_for is not None:
            self.ends_at = time + self.wishes.run_for
        return self.next_change(time)

    def next_change(self, time: float) -> float | None:
        """Seconds until a running pod becomes ready or ends."""
        ends = None if self.ends_at is None else max(0.0, self.ends_at - time)
        if self.progress.is_ready:
            return ends
        ready = self.wishes.ready_after
        return ready if ends is None else min(ready, ends)

    def end(self, now: str, timing: Timing) -> float | None:
        """Its containers have ended by themselves. How long until they are started again, or None if they are not."""
        progress = self.progress
        progress.ended, progress.is_ready = now, False
        progress.exit_code = self.wishes.exit_code
        self.ends_at = None
        over = self._ended_for_good()
        if len(over) == len(self.pod.spec.containers):
            progress.stage = Stage.ENDED
            return None
        ending = Ending(progress.started, now, progress.exit_code)
        progress.over = {name: progress.over.get(name, ending) for name in over}
        progress.stage = Stage.WAITING
        self.crashes = crashes_after(self.crashes, self.wishes.run_for or 0.0)
        delay = backoff(self.crashes - 1, timing.crash, timing.longest_crash)
        progress.backs_off = delay > 0
        return delay

    def _ended_for_good(self) -> list[str]:
        """The containers that are not started again after they have ended as the pod wishes."""
        has_succeeded = self.wishes.exit_code == 0
        usual = self.pod.spec.restart_policy or "Always"
        return [
            container.name
            for container in self.pod.spec.containers
            if not restarts(container.restart_policy or usual, has_succeeded=has_succeeded)
        ]

    def stop(self, timing: Timing) -> float:
        """It is deleted. How long its containers take to end."""
        if self.stage not in (Stage.RUNNING, Stage.STOPPING):
            return 0.0
        self.progress.stage = Stage.STOPPING
        grace = self.pod.metadata.deletion_grace_period_seconds
        return timing.stop if grace is None else min(timing.stop, float(grace))

    def stopped(self, now: str) -> None:
        """Its containers have been ended."""
        if self.is_over:
            return
        # A pod that was stopped did not succeed, whether or not it ever started.
        self.progress.exit_code = SIGTERM_STATUS
        self.progress.ended = now
        self.progress.is_ready = False
        self.progress.stage = Stage.ENDED


def adopted(pod: Pod, now: str, time: float, age: float) -> PodRun:
    """A pod that was bound before this process began. One that runs goes on; its containers have run for `age` seconds."""
    run = PodRun(pod, Wishes.of(pod))
    begun = pod.status.start_time or now
    run.progress.begun = begun
    if is_finished(pod):
        run.progress.stage = Stage.ENDED
    elif pod.status.phase == "Running":
        run.progress.stage = Stage.RUNNING
        run.progress.started = begun
        run.progress.is_ready = True
        if run.wishes.run_for is not None:
            run.ends_at = time + max(0.0, run.wishes.run_for - age)
    return run
