"""Pods in a table: how ready they are and, in one word, their state."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from drayman.api.pods import FINISHED
from drayman.api.struct import Json
from drayman.apiserver.kinds.reading import at, items_at, number_at, text_at
from drayman.apiserver.kinds.tables import AGE, NAME, NONE, column, human_duration, moment_of, text
from drayman.apiserver.served.strategy import Object


@dataclass(slots=True)
class Summary:
    """A summary of the containers of a pod."""

    status: str = ""
    ready: int = 0
    restarts: int = 0
    last_restart: datetime | None = None

    def count_restarts(self, container: Json) -> None:
        self.restarts += number_at(container, "restartCount")
        ended = moment_of(at(container, "lastState", "terminated", "finishedAt"))
        if ended is not None and (self.last_restart is None or ended > self.last_restart):
            self.last_restart = ended


def has_condition(obj: Json, kind: str) -> bool:
    return any(
        text_at(condition, "type") == kind and text_at(condition, "status") == "True"
        for condition in items_at(obj, "status", "conditions")
    )


def summary(pod: Object) -> Summary:
    """The state of a pod according to its containers; the first unfinished init container takes precedence."""
    found = Summary(text_at(pod, "status", "reason") or text_at(pod, "status", "phase"))
    if any(
        text_at(c, "reason") == "SchedulingGated" for c in items_at(pod, "status", "conditions")
    ):
        found.status = "SchedulingGated"
    initializing = _initialisation(pod, found)
    if not initializing or has_condition(pod, "Initialized"):
        found.restarts, found.last_restart = 0, None
        sidecars = _sidecars(pod)
        for container in items_at(pod, "status", "initContainerStatuses"):
            if text_at(container, "name") in sidecars:
                found.count_restarts(container)
        _running(pod, found)
    if at(pod, "metadata", "deletionTimestamp") is not None:
        if text_at(pod, "status", "reason") == "NodeLost":
            found.status = "Unknown"
        elif text_at(pod, "status", "phase") not in FINISHED:
            found.status = "Terminating"
    return found


def _sidecars(pod: Object) -> set[str]:
    return {
        text_at(container, "name")
        for container in items_at(pod, "spec", "initContainers")
        if text_at(container, "restartPolicy") == "Always"
    }


def _initialisation(pod: Object, found: Summary) -> bool:
    """Whether an init container is still under way, or has failed."""
    sidecars, total = _sidecars(pod), len(items_at(pod, "spec", "initContainers"))
    for index, container in enumerate(items_at(pod, "status", "initContainerStatuses")):
        found.count_restarts(container)
        ended = at(container, "state", "terminated")
        if ended is not None and not number_at(ended, "exitCode"):
            continue
        if text_at(container, "name") in sidecars and at(container, "started"):
            found.ready += bool(at(container, "ready"))
            continue
        waiting = text_at(container, "state", "waiting", "reason")
        if ended is not None:
            found.status = f"Init:{_end(ended)}"
        elif waiting and waiting != "PodInitializing":
            found.status = f"Init:{waiting}"
        else:
            found.status = f"Init:{index}/{total}"
        return True
    return False


def _running(pod: Object, found: Summary) -> None:
    runs, failure = False, ""
    for container in reversed(items_at(pod, "status", "containerStatuses")):
        found.count_restarts(container)
        waiting, ended = (
            text_at(container, "state", "waiting", "reason"),
            at(container, "state", "terminated"),
        )
        if waiting:
            found.status = waiting
        elif ended is not None:
            found.status = _end(ended)
            failure = found.status if number_at(ended, "exitCode") else failure
        elif at(container, "ready") and at(container, "state", "running") is not None:
            runs = True
            found.ready += 1
    if found.status == "Completed":
        if runs and has_condition(pod, "Ready"):
            found.status = "Running"
        elif failure or runs:
            found.status = failure or "NotReady"


def _end(terminated: Json) -> str:
    if reason := text_at(terminated, "reason"):
        return reason
    if signal := number_at(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number_at(terminated, 'exitCode')}"


def _ready(pod: Object, _now: datetime) -> str:
    total = len(items_at(pod, "spec", "containers")) + len(_sidecars(pod))
    return f"{summary(pod).ready}/{total}"


def _restarts(pod: Object, now: datetime) -> str:
    found = summary(pod)
    if not found.restarts or found.last_restart is None:
        return str(found.restarts)
    return f"{found.restarts} ({human_duration((now - found.last_restart).total_seconds())} ago)"


def _readiness_gates(pod: Object, _now: datetime) -> str:
    gates = items_at(pod, "spec", "readinessGates")
    conditions = items_at(pod, "status", "conditions") if gates else []
    true = {text_at(one, "type") for one in conditions if text_at(one, "status") == "True"}
    met = sum(text_at(gate, "conditionType") in true for gate in gates)
    return f"{met}/{len(gates)}" if gates else NONE


def _address(pod: Object, _now: datetime) -> str:
    return text_at(next(iter(items_at(pod, "status", "podIPs")), None), "ip") or NONE


COLUMNS: Final = (
    NAME,
    column("Ready", _ready),
    column("Status", lambda pod, _now: summary(pod).status),
    column("Restarts", _restarts),
    AGE,
    column("IP", _address, wide=True),
    column("Node", text("spec", "nodeName", missing=NONE), wide=True),
    column("Nominated Node", text("status", "nominatedNodeName", missing=NONE), wide=True),
    column("Readiness Gates", _readiness_gates, wide=True),
)
