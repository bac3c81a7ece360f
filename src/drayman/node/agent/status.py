"""The status of a pod as its node reports it: a function of what is known about its containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from drayman.api.struct import Json
from drayman.node.agent.attempts import Ended
from drayman.node.agent.spec import Container, RunnablePod
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

    @property
    def is_running(self) -> bool:
        return self.attempt >= 0 and self.ended is None

    @property
    def has_run(self) -> bool:
        return bool(self.began or self.ended or self.previous)


UNSEEN: Final = Seen()
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
    reason: str = "",
    message: str = "",
) -> dict[str, Json]:
    """The parts of a pod's status that belong to its node. Times are such as `2026-01-01T00:00:00Z`."""
    spec = pod.spec
    phase = "Failed" if reason else steps.phase
    is_initialised = phase != "Pending"
    status: dict[str, Json] = {
        "phase": _phase(phase, spec.containers, seen),
        "startTime": begun,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": host_ip,
        "podIPs": [{"ip": host_ip}],
        "containerStatuses": [
            _container(pod, each, seen, steps, is_initialised) for each in spec.containers
        ],
    }
    if spec.init_containers:
        status["initContainerStatuses"] = [
            _container(pod, each, seen, steps, is_initialised, is_init=True)
            for each in spec.init_containers
        ]
    if reason:
        status |= {"reason": reason, "message": message}
    needed = (*(each for each in spec.init_containers if each.is_sidecar), *spec.containers)
    unready = [each.name for each in needed if not seen.get(each.name, UNSEEN).is_ready]
    status["conditions"] = [
        _with_time(condition, since, now)
        for condition in _conditions(phase, is_prepared, is_initialised, unready)
    ]
    return status


def _phase(phase: str, containers: tuple[Container, ...], seen: Mapping[str, Seen]) -> str:
    """A pod is pending until the first of its containers has been started."""
    if phase == "Running" and not any(seen.get(c.name, UNSEEN).has_run for c in containers):
        return "Pending"
    return phase


def _conditions(
    phase: str, is_prepared: bool, is_initialised: bool, unready: list[str]
) -> list[dict[str, Json]]:
    done = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    why = done or "ContainersNotReady"
    about = "" if done else f"containers with unready status: [{' '.join(unready)}]"
    is_ready = not unready and not done
    return [
        _condition("PodReadyToStartContainers", is_prepared and not done),
        _condition("Initialized", is_initialised, "ContainersNotInitialized"),
        _condition("ContainersReady", is_ready, why, about),
        _condition("Ready", is_ready, why, about),
    ]


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
    if known.attempt >= 0:
        status["containerID"] = _id(pod, container, known)
    done = known.ended is not None and known.ended.code == 0
    status["ready"] = done if is_init and not container.is_sidecar else known.is_ready
    last = known.previous
    if known.is_running and known.began:
        status["state"] = {"running": {"startedAt": known.began}}
    elif known.ended is not None and container.name in steps.delayed:
        waiting = f"back-off restarting failed container={container.name} pod={pod.metadata.name}"
        status["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": waiting}}
        last = known.ended
    elif known.ended is not None and not known.reason:
        status["state"] = {"terminated": _terminated(known.ended, _id(pod, container, known))}
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


def _id(pod: RunnablePod, container: Container, known: Seen) -> str:
    return f"{RUNTIME}://{pod.metadata.uid}/{container.name}/{known.attempt}"


def _terminated(ended: Ended, container_id: str) -> dict[str, Json]:
    reason = "Error" if ended.code else "Completed"
    if ended.failure:
        reason = "StartError" if ended.signal == 0 else "ContainerStatusUnknown"
    found: dict[str, Json] = {
        "exitCode": ended.code,
        "signal": ended.signal,
        "reason": reason,
        "message": ended.failure,
        "startedAt": to_seconds(ended.began),
        "finishedAt": to_seconds(ended.ended),
        "containerID": container_id,
    }
    return {name: value for name, value in found.items() if value or name == "exitCode"}


def to_seconds(stamp: str) -> str:
    """A time without its fraction, as the API has it; empty stays empty."""
    return f"{stamp.partition('.')[0]}Z" if "." in stamp else stamp
