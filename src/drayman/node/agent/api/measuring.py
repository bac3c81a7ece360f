"""What this machine and its containers use: by control groups, and from the processes themselves where there are none.

Of processes, only those in the session of a container's first process are known to be its own, and what has ended counts as far as
somebody has waited for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from drayman.node.agent.pods import PodWorker
from drayman.node.agent.processes.attempts import Attempt
from drayman.node.cgroups import use as counted
from drayman.node.streams.use import ContainerKey, NodeUse, Use

_TICKS_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_IDLE: Final = (3, 4, 8, 9)
"""Fields of the first line of /proc/stat that are no work (idle, iowait) or are counted elsewhere (guests)."""


class Measured(NamedTuple):
    cpu_s: float
    memory: int


def running_attempts(workers: Iterable[PodWorker]) -> dict[ContainerKey, Attempt]:
    """The containers that run now. They come and go with the event loop, so this is asked there."""
    found = {}
    for worker in workers:
        meta = worker.pod.metadata
        for name, seen in worker.containers.seen.items():
            attempt = worker.containers.attempt(name)
            if attempt is not None and seen.is_running:
                found[ContainerKey(meta.namespace, meta.name, name)] = attempt
    return found


def measure(running: Mapping[ContainerKey, Attempt]) -> NodeUse:
    """Everything, as of now. Reads many files, and is for a thread."""
    containers: dict[ContainerKey, Use] = {}
    sessions: dict[int, Measured] | None = None
    for key, attempt in running.items():
        found = _by_groups(attempt)
        if found is None:
            sessions = by_session() if sessions is None else sessions
            pid = attempt.pid
            found = None if pid is None else sessions.get(pid)
        if found is not None:
            containers[key] = _now(found)
    return NodeUse(_now(of_machine()), containers)


def _now(found: Measured) -> Use:
    return Use(found.cpu_s, found.memory, time.time_ns() // 1_000_000)


def _by_groups(attempt: Attempt) -> Measured | None:
    try:
        groups = attempt.launch().cgroups
        cpu, memory = counted.cpu_seconds(groups), counted.working_set(groups)
    except OSError:
        return None  # it has ended, or is about to: a group that is being removed answers ENODEV
    return None if cpu is None or memory is None else Measured(cpu, memory)


def by_session(proc: Path = Path("/proc")) -> dict[int, Measured]:
    """What the processes of each session use."""
    found: dict[int, Measured] = {}
    for process in proc.glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        session, resident = int(fields[3]), int(fields[21])
        ticks = sum(int(each) for each in fields[11:15])
        before = found.get(session, Measured(0.0, 0))
        found[session] = Measured(before.cpu_s + ticks / _TICKS_S, before.memory + resident * _PAGE)
    return found


def of_machine(proc: Path = Path("/proc")) -> Measured:
    ticks = [int(each) for each in (proc / "stat").read_text().splitlines()[0].split()[1:]]
    busy = sum(number for place, number in enumerate(ticks) if place not in _IDLE)
    lines = (line.split() for line in (proc / "meminfo").read_text().splitlines())
    memory = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines}
    used = memory["MemTotal"] - memory["MemFree"] - memory["Inactive(file)"]
    return Measured(busy / _TICKS_S, max(0, used))
