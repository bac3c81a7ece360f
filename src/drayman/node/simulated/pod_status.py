"""The status that a kubelet reports of a pod, as a function of how far the pod has come.

It can be written again at any time: nothing in it depends on what was written before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final
from zlib import crc32

from drayman.api.codec import to_dict
from drayman.api.core import Container, Pod
from drayman.api.pods import is_sidecar
from drayman.api.struct import Json

SIGTERM_STATUS: Final = 143
"""The exit code of a container that is stopped: 128 plus the number of the signal."""


_OWN: Final = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


class Stage(Enum):
    """How far a pod has come on its node."""

    PREPARING = auto()
    """Its claims are being prepared."""
    INITIALISING = auto()
    STARTING = auto()
    RUNNING = auto()
    WAITING = auto()
    """Its containers have ended and are to be started again."""
    ENDED = auto()
    STOPPING = auto()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run of a container ended."""

    started: str
    ended: str
    exit_code: int

    def state(self) -> dict[str, Json]:
        return {
            "terminated": {
                "exitCode": self.exit_code,
                "reason": "Error" if self.exit_code else "Completed",
                "startedAt": self.started,
                "finishedAt": self.ended,
            }
        }


@dataclass(slots=True)
class PodProgress:
    """What the status is made of, besides the pod itself."""

    stage: Stage = Stage.PREPARING
    begun: str = ""
    """When the node took the pod."""
    started: str = ""
    """When the containers were last started."""
    ended: str = ""
    exit_code: int = 0
    restarts: int = 0
    backs_off: bool = False
    """Whether they are left waiting before they are started again."""
    over: dict[str, Ending] = field(default_factory=dict)
    """Containers that stay as they have ended while others are started again."""
    is_ready: bool = False
    """Whether all containers that run are."""
    problem: str = field(default="")
    """Why it makes no progress."""

    @property
    def is_all_ready(self) -> bool:
        """Whether the pod is: a container that has ended is missing."""
        return self.is_ready and not self.over


def status_of(pod: Pod, progress: PodProgress) -> dict[str, Json]:
    """The part of a pod's status that its node owns."""
    host = node_address(pod.spec.node_name)
    stage = progress.stage
    status: dict[str, Json] = {
        "phase": _phase(progress),
        "startTime": progress.begun,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "conditions": [*_foreign_conditions(pod), *_conditions(progress)],
        "containerStatuses": [_container(c, progress, pod) for c in pod.spec.containers],
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = [
            _init_container(c, progress, pod) for c in pod.spec.init_containers
        ]
    if stage is not Stage.PREPARING:
        address = pod_address(pod.metadata.uid)
        status["podIP"] = address
        status["podIPs"] = [{"ip": address}]
    return status


def node_address(name: str) -> str:
    number = crc32(name.encode())
    return f"172.{16 + number % 16}.{number >> 8 & 255}.{1 + (number >> 16) % 254}"


def pod_address(uid: str) -> str:
    number = crc32(uid.encode())
    return f"10.{number & 127}.{number >> 8 & 255}.{1 + (number >> 16) % 254}"


def _phase(progress: PodProgress) -> str:
    match progress.stage:
        case Stage.PREPARING | Stage.INITIALISING | Stage.STARTING:
            return "Pending"
        case Stage.ENDED:
            return "Failed" if progress.exit_code else "Succeeded"
        case _:
            return "Running"


def _conditions(progress: PodProgress) -> list[dict[str, Json]]:
    stage = progress.stage
    is_initialised = stage not in (Stage.PREPARING, Stage.INITIALISING)
    why = ""
    if stage is Stage.ENDED:
        why = "PodFailed" if progress.exit_code else "PodCompleted"
    elif not progress.is_all_ready:
        why = "ContainersNotReady"
    return [
        _condition("PodReadyToStartContainers", stage is not Stage.PREPARING, progress.begun),
        _condition(
            "Initialized",
            is_initialised,
            progress.begun,
            "" if is_initialised else "ContainersNotInitialized",
        ),
        _condition(
            "ContainersReady", progress.is_all_ready, _since(progress), why, progress.problem
        ),
        _condition("Ready", progress.is_all_ready, _since(progress), why, progress.problem),
    ]


def _foreign_conditions(pod: Pod) -> list[dict[str, Json]]:
    """The conditions that others write, as they are."""
    return [to_dict(c) for c in pod.status.conditions if c.type_ not in _OWN]


def _since(progress: PodProgress) -> str:
    return progress.ended or progress.started or progress.begun


def _condition(
    kind: str, holds: bool, since: str, reason: str = "", message: str = ""
) -> dict[str, Json]:
    condition: dict[str, Json] = {
        "type": kind,
        "status": "True" if holds else "False",
        "lastProbeTime": None,
        "lastTransitionTime": since,
    }
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    return condition


def _container(container: Container, progress: PodProgress, pod: Pod) -> dict[str, Json]:
    status = _named(container, pod)
    if over := progress.over.get(container.name):
        return {**status, "state": over.state(), "started": False, "ready": False}
    status["restartCount"] = progress.restarts
    ended = Ending(progress.started, progress.ended, progress.exit_code).state()
    state: dict[str, Json]
    match progress.stage:
        case Stage.PREPARING | Stage.STARTING:
            state = _being_created(progress)
            if pod.spec.init_containers and progress.stage is Stage.PREPARING:
                state = {"waiting": {"reason": "PodInitializing"}}
        case Stage.INITIALISING:
            state = {"waiting": {"reason": "PodInitializing"}}
        case Stage.RUNNING | Stage.STOPPING:
            state = {"running": {"startedAt": progress.started}}
            if progress.restarts and progress.ended:
                status["lastState"] = ended
        case Stage.WAITING if progress.backs_off:
            state = {"waiting": {"reason": "CrashLoopBackOff"}}
            status["lastState"] = ended
        case Stage.WAITING:
            state = ended
        case Stage.ENDED:
            # A container that never ran has nothing to report about its end.
            state = ended if progress.started else {"waiting": {"reason": "ContainerCreating"}}
    runs = "running" in state
    status.update(state=state, started=runs, ready=runs and progress.is_ready)
    return status


def _being_created(progress: PodProgress) -> dict[str, Json]:
    """Of a container that is to be started next, with what keeps the node from that, as real nodes of ours say it."""
    message = {"message": progress.problem} if progress.problem else {}
    return {"waiting": {"reason": "ContainerCreating", **message}}


def _init_container(container: Container, progress: PodProgress, pod: Pod) -> dict[str, Json]:
    status = _named(container, pod)
    stays = is_sidecar(container)
    stage = progress.stage
    state: dict[str, Json]
    if stage is Stage.PREPARING and progress.problem:
        state = _being_created(progress)
    elif stage in (Stage.PREPARING, Stage.INITIALISING):
        state = {"waiting": {"reason": "PodInitializing"}}
    elif stays and stage is not Stage.ENDED:
        state = {"running": {"startedAt": progress.begun}}
    else:
        times = {"startedAt": progress.begun, "finishedAt": progress.started or progress.begun}
        state = {"terminated": {"exitCode": 0, "reason": "Completed", **times}}
    done = "terminated" in state and not stays
    status.update(state=state, started="running" in state, ready=done or "running" in state)
    return status


def _named(container: Container, pod: Pod) -> dict[str, Json]:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "containerID": f"simulated://{pod.metadata.uid}/{container.name}",
        "restartCount": 0,
    }
