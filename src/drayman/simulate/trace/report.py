"""What replays of a trace come to."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from msgspec import Struct

from drayman.api.struct import ApiStruct


class CurvePoint(ApiStruct, frozen=True):
    """The cluster at one moment of a replay."""

    at: float
    """What was asked for so far, as a part of the GPUs; with recorded arrivals, seconds from the beginning."""
    allocated: float
    """Of the GPUs."""
    fragmented: float
    """Of the GPUs: free, but of no use to the mean task."""
    waiting: int = 0
    cost_per_hour: float | None = None
    """Of the nodes in use."""


class WaitingTimes(ApiStruct, frozen=True):
    """In seconds."""

    mean: float
    median: float
    p95: float
    most: float
    never_started: int


class ReplayCost(ApiStruct, frozen=True):
    """Of the nodes in use, as far as they have prices."""

    per_hour: float
    """At the end; with recorded arrivals, the mean over time."""
    per_gpu_hour: float | None
    """Of allocated GPUs."""
    total: float | None = None
    """With recorded arrivals."""
    currency: str = ""


class Replay(ApiStruct, frozen=True):
    """A workload, under one policy, with one order of arrivals."""

    workload: str
    policy: str
    seed: int | None
    tasks: int
    placed: int
    allocated: float
    """Of the GPUs: at the end; with recorded arrivals, the mean over time."""
    lost: dict[str, float]
    """Of the GPUs, when the last task has come: what is not allocated, by cause."""
    aligned: float | None
    """Of tasks with several GPUs, those on as few NUMA nodes as can be; None where the trace does not say where GPUs are."""
    nodes_in_use: int
    """In the end; with recorded arrivals, the most at a time."""
    cost: ReplayCost | None
    waiting: WaitingTimes | None
    curve: tuple[CurvePoint, ...]


class PolicySummary(ApiStruct, frozen=True):
    """The means of all replays of a workload under a policy."""

    workload: str
    policy: str
    seeds: int
    allocated: float
    lowest: float
    highest: float
    fragmented: float
    """At the end."""
    lost: dict[str, float]
    placed: float
    """Of the tasks."""
    aligned: float | None
    cost_per_hour: float | None
    cost_per_gpu_hour: float | None
    waiting_mean: float | None
    waiting_p95: float | None


class TraceReport(ApiStruct, frozen=True):
    trace: str
    nodes: int
    gpus: int
    arrivals: str
    load: float
    """What is asked for, as a part of the GPUs; with recorded arrivals, what was asked for at the busiest moment."""
    summaries: tuple[PolicySummary, ...]
    replays: tuple[Replay, ...]


class _Key(Struct, frozen=True):
    workload: str
    policy: str


def summarised(replays: Sequence[Replay]) -> tuple[PolicySummary, ...]:
    """One summary for each workload and policy, in the order in which they come."""
    groups: dict[_Key, list[Replay]] = {}
    for replay in replays:
        groups.setdefault(_Key(replay.workload, replay.policy), []).append(replay)
    return tuple(_summary(key, found) for key, found in groups.items())


def _summary(key: _Key, found: Sequence[Replay]) -> PolicySummary:
    shares = [replay.allocated for replay in found]
    costs = [replay.cost for replay in found if replay.cost is not None]
    waiting = [replay.waiting for replay in found if replay.waiting is not None]
    return PolicySummary(
        workload=key.workload,
        policy=key.policy,
        seeds=len(found),
        allocated=fmean(shares),
        lowest=min(shares),
        highest=max(shares),
        fragmented=fmean(replay.curve[-1].fragmented for replay in found),
        lost={cause: fmean(r.lost[cause] for r in found) for cause in found[0].lost},
        placed=sum(r.placed for r in found) / max(1, sum(r.tasks for r in found)),
        aligned=_mean([replay.aligned for replay in found]),
        cost_per_hour=_mean([cost.per_hour for cost in costs]),
        cost_per_gpu_hour=_mean([cost.per_gpu_hour for cost in costs]),
        waiting_mean=_mean([each.mean for each in waiting]),
        waiting_p95=_mean([each.p95 for each in waiting]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
