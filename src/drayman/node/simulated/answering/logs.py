"""The log of a simulated container: what was started, with which devices, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from drayman.api.times import moment_of
from drayman.node.simulated.answering.sight import SeenDevice
from drayman.node.streams.model import LogOptions, NodeApiError


@dataclass(frozen=True, slots=True)
class Line:
    moment: str
    text: str

    def shown(self, timestamps: bool) -> bytes:
        text = (
            f"{self.moment.removesuffix('Z')}.000000000Z {self.text}" if timestamps else self.text
        )
        return f"{text}\n".encode()


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container, from its start to its end."""

    started: str
    ended: str = ""
    exit_code: int = 0
    is_ready: bool = False


def run_to_show(container: str, pod: str, status: dict[str, Any], previous: bool) -> Run:
    """The run whose log is meant, from the container's status. Raises NodeApiError with the words of a kubelet."""
    last = (status.get("lastState") or {}).get("terminated")
    state = status["state"]
    if previous:
        if last is None:
            raise NodeApiError(
                400, f'previous terminated container "{container}" in pod "{pod}" not found'
            )
        return _ended(last)
    if "running" in state:
        return Run(state["running"]["startedAt"], is_ready=bool(status.get("ready")))
    if "terminated" in state:
        return _ended(state["terminated"])
    if last is not None:
        return _ended(last)
    why = state["waiting"]["reason"]
    raise NodeApiError(400, f'container "{container}" in pod "{pod}" is waiting to start: {why}')


def _ended(terminated: dict[str, Any]) -> Run:
    return Run(terminated["startedAt"], terminated["finishedAt"], terminated["exitCode"])


def lines(run: Run, node: str, image: str, devices: Iterable[SeenDevice]) -> Iterator[Line]:
    """Lines are added as the run goes on; none of them changes."""
    yield Line(run.started, f"simulated: started {image} on node {node}; nothing is executed")
    for device in devices:
        yield Line(run.started, f"simulated: claim {device.claim} gives {device}")
    if run.is_ready or run.ended:
        yield Line(run.started, "simulated: running")
    if run.ended:
        yield Line(run.ended, f"simulated: ended with exit code {run.exit_code}")


def chosen(found: Sequence[Line], options: LogOptions, now: datetime) -> Sequence[Line]:
    """The lines that are asked for, of those that are there at first."""
    since = options.since
    if options.since_seconds is not None:
        since = now - timedelta(seconds=options.since_seconds)
    if since is not None:
        found = [line for line in found if moment_of(line.moment) >= since]
    if options.tail is not None:
        found = found[max(0, len(found) - options.tail) :]
    return found
