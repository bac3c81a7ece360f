"""The status of a pod as its node reports it: a function of what is known about its containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from drayman.api.struct import Json
from drayman.node.agent.processes.attempts import Ended
from drayman.node.agent.spec import NO_EPHEMERAL, Container, EphemeralContainer, RunnablePod, Spec
from drayman.node.agent.steps import Steps

RUNTIME: Final = "drayman"


@dataclass(frozen=True, slots=True)
class Seen:
    """A container as it is reported."""

    attempt: int = -1
    """The number of the current or last attempt; -1 before the first."""
    began: str = ""
    ended: Ended | None = None
    previous: Ended | None = None
    has_started: bool = False
    is_ready: bool = False
    reason: str = ""
    """Why it does not run, if something is in the way."""
    message: str = ""
    pid: int = 0
    awaits_hook: bool = False
    """Whether its postStart hook has not returned. Until then it does not count as running for those who look."""
    has_failed: bool = False
    """Whether it is or was ended because of its probe or hook."""

    @property
    def is_running(self) -> bool:
        return self.attempt >= 0 and self.ended is None

    @property
    def has_run(self) -> bool:
        return self.is_shown_running or bool(self.ended or self.previous)

    @property
    def is_shown_running(self) -> bool:
        return self.is_running and bool(self.began) and not self.awaits_hook


UNSEEN: Final = Seen()
NO_GATES: Final[Mapping[str, str]] = MappingProxyType({})
Since = Mapping[str, tuple[str, str]]
"""The status of each condition, and since when it has it."""


def status_of(
    pod: RunnablePod,
    seen: Mapping[str, Seen],
    steps: Steps,
    *,
    begun: str,
    host_ip: str,
    now: str,
    since: Since,
    is_prepared: bool,
    devices: Mapping[str, list[Json]],
    gates: Mapping[str, str] = NO_GATES,
    reason: str = "",
    message: str = "",
) -> dict[str, Json]:
    """The parts of a pod's status that belong to its node. Times are such as `2026-01-01T00:00:00Z`.

    `devices`: how those of its containers are, by container.
    `gates`: the status of conditions that others report.
    """
    spec = pod.spec
    phase = "Failed" if reason else steps.phase
    incomplete = [] if phase == "Succeeded" else _incomplete(spec, seen)
    is_initialised = not incomplete
    status: dict[str, Json] = {
        "phase": _phase(phase, spec.containers, seen),
        "startTime": begun,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": host_ip,
        "podIPs": [{"ip": host_ip}],
        "containerStatuses": [
            _container(pod, each, seen, steps, is_initialised) | _devices(devices, each.name)
            for each in spec.containers
        ],
    }
    if spec.init_containers:
        status["initContainerStatuses"] = [
            _container(pod, each, seen, steps, is_initialised, is_init=True)
            for each in spec.init_containers
        ]
    if spec.ephemeral_containers:
        status["ephemeralContainerStatuses"] = [
            _not_run(each) for each in spec.ephemeral_containers
        ]
    if reason:
        status |= {"reason": reason, "message": message}
    needed = (*(each for each in spec.init_containers if each.is_sidecar), *spec.containers)
    unready = [each.name for each in needed if not seen.get(each.name, UNSEEN).is_ready]
    status["conditions"] = [
        _with_time(condition, since, now)
        for condition in _conditions(
            phase, is_prepared, incomplete, unready, closed_gates(spec, gates)
        )
    ]
    return status


def _incomplete(spec: Spec, seen: Mapping[str, Seen]) -> list[str]:
    """The init containers that keep the others from being started."""
    if any(seen.get(each.name, UNSEEN).attempt >= 0 for each in spec.containers):
        return []
    found = []
    for each in spec.init_containers:
        known = seen.get(each.name, UNSEEN)
        has_ended_well = known.ended is not None and known.ended.code == 0
        if not (known.has_started if each.is_sidecar else has_ended_well):
            found.append(each.name)
    return found


def waiting_reason(spec: Spec, name: str, seen: Mapping[str, Seen]) -> str:
    """Why a container has not been started yet."""
    is_init = name in [each.name for each in spec.init_containers]
    usual = "ContainerCreating" if is_init or not _incomplete(spec, seen) else "PodInitializing"
    return seen.get(name, UNSEEN).reason or usual


def _phase(phase: str, containers: tuple[Container, ...], seen: Mapping[str, Seen]) -> str:
    """A pod is pending until the first of its containers has been started."""
    if phase == "Running" and not any(seen.get(c.name, UNSEEN).has_run for c in containers):
        return "Pending"
    return phase


def _conditions(
    phase: str, is_prepared: bool, incomplete: list[str], unready: list[str], closed: list[str]
) -> list[dict[str, Json]]:
    done = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    why = done or "ContainersNotReady"
    about = "" if done else f"containers with unready status: [{' '.join(unready)}]"
    is_ready = not unready and not done
    ready = _condition("Ready", is_ready, why, about)
    if is_ready and closed:
        ready = _condition("Ready", False, "ReadinessGatesNotReady", ", ".join(closed))
    return [
        _condition("PodReadyToStartContainers", is_prepared and not done),
        _condition(
            "Initialized",
            not incomplete,
            "ContainersNotInitialized",
            f"containers with incomplete status: [{' '.join(incomplete)}]",
        ),
        _condition("ContainersReady", is_ready, why, about),
        ready,
    ]


def closed_gates(spec: Spec, reported: Mapping[str, str]) -> list[str]:
    """What keeps a pod from being ready though its containers are."""
    found = []
    for gate in spec.readiness_gates:
        kind = gate.condition_type
        if kind not in reported:
            found.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif reported[kind] != "True":
            about = f'the status of pod readiness gate "{kind}" is not "True", but {reported[kind]}'
            found.append(about)
    return found


def _condition(kind: str, holds: bool, reason: str = "", message: str = "") -> dict[str, Json]:
    found: dict[str, Json] = {"type": kind, "status": "True" if holds else "False"}
    found |= {} if holds else {"reason": reason, "message": message}
    return {name: value for name, value in found.items() if value}


def _with_time(condition: dict[str, Json], since: Since, now: str) -> dict[str, Json]:
    known = since.get(condition["type"])
    same = known is not None and known[0] == condition["status"]
    when = known[1] if same and known is not None else now
    # Patches merge conditions, so what is no longer said has to be taken back.
    return {"reason": None, "message": None, "lastTransitionTime": when, **condition}


def _container(
    pod: RunnablePod,
    container: Container,
    seen: Mapping[str, Seen],
    steps: Steps,
    is_initialised: bool,
    *,
    is_init: bool = False,
) -> dict[str, Json]:
    known = seen.get(container.name, UNSEEN)
    status: dict[str, Json] = {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "restartCount": max(0, known.attempt),
        "started": known.is_running and known.has_started,
    }
    own_id = container_id(pod, container.name, known.attempt)
    if known.attempt >= 0:
        status["containerID"] = own_id
    done = known.ended is not None and known.ended.code == 0
    status["ready"] = done if is_init and not container.is_sidecar else known.is_ready
    last = known.previous
    if known.is_shown_running:
        status["state"] = {"running": {"startedAt": known.began}}
    elif known.ended is not None and container.name in steps.delayed:
        waiting = f"back-off restarting failed container={container.name} pod={pod.metadata.name}"
        status["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": waiting}}
        last = known.ended
    elif known.ended is not None and not known.reason:
        status["state"] = {"terminated": _terminated(known.ended, own_id)}
    else:
        reason = known.reason or (
            "ContainerCreating" if is_init or is_initialised else "PodInitializing"
        )
        state = {"reason": reason, "message": known.message}
        status["state"] = {"waiting": {name: text for name, text in state.items() if text}}
        last = known.ended or last
    if last is not None:
        status["lastState"] = {"terminated": _terminated(last, "")}
    return status


def _not_run(container: EphemeralContainer) -> dict[str, Json]:
    """An ephemeral container. Whoever waits for it, as `kubectl debug` does, need not any more."""
    end = {"exitCode": 128, "reason": "StartError", "message": NO_EPHEMERAL}
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "restartCount": 0,
        "ready": False,
        "state": {"terminated": end},
    }


def _devices(devices: Mapping[str, list[Json]], container: str) -> dict[str, Json]:
    found = devices.get(container)
    return {"allocatedResourcesStatus": found} if found else {}


def container_id(pod: RunnablePod, name: str, attempt: int) -> str:
    return f"{RUNTIME}://{pod.metadata.uid}/{name}/{attempt}"


def _terminated(ended: Ended, container_id: str) -> dict[str, Json]:
    reason = "Error" if ended.code else "Completed"
    if ended.failure:
        reason = "StartError" if ended.is_start_error else "ContainerStatusUnknown"
    elif ended.out_of_memory and ended.code:
        reason = "OOMKilled"
    found: dict[str, Json] = {
        "exitCode": ended.code,
        "signal": ended.signal,
        "reason": reason,
        "message": ended.failure or ended.message,
        "startedAt": to_seconds(ended.began),
        "finishedAt": to_seconds(ended.ended),
        "containerID": container_id,
    }
    return {name: value for name, value in found.items() if value or name == "exitCode"}


def to_seconds(stamp: str) -> str:
    """A time without its fraction, as the API has it; empty stays empty."""
    return f"{stamp.partition('.')[0]}Z" if "." in stamp else stamp
