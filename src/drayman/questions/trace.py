"""Traces in files, replayed under several policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from drayman.api.errors import DocumentError
from drayman.api.near_names import did_you_mean
from drayman.placement.prices import NO_PRICES, PriceTable
from drayman.questions.errors import QuestionError
from drayman.simulate.trace.replaying import as_recorded, at_random
from drayman.simulate.trace.report import Replay, TraceReport, summarised
from drayman.simulate.trace.tables import WHOLE, Trace, read_nodes, read_tasks

RANDOM: Final = "random"
RECORDED: Final = "recorded"
_NODES: Final = "node_list"
_TASKS: Final = "pod_list"
_USUAL: Final = "default"
_MOST_BYTES: Final = 1 << 28

Advance = Callable[[int, int], None]
"""Told how much is done, and of how much."""
_STEPS: Final = 1_000


class Replaying(Struct, frozen=True):
    """What is to be replayed."""

    folder: str
    policies: tuple[str, ...]
    workloads: tuple[str, ...] = ()
    """The usual one if none is named."""
    arrivals: str = RANDOM
    seeds: int = 1
    first_seed: int = 0
    load: float = 1.3
    prices: PriceTable = NO_PRICES


def replay(asked: Replaying, advance: Advance) -> TraceReport:
    """Replay what is asked for, one after the other. Raises QuestionError."""
    traces = tuple(_traces(asked.folder, asked.workloads))
    if asked.arrivals == RECORDED:
        for trace in traces:
            _refuse_timeless(trace)
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    turns = [
        (trace, policy, seed)
        for trace in traces
        for policy in asked.policies
        for seed in (seeds if asked.arrivals == RANDOM else seeds[:1])
    ]
    found: list[Replay] = []
    for number, (trace, policy, seed) in enumerate(turns):

        def step(part: float, done: int = number * _STEPS) -> None:
            advance(done + int(part * _STEPS), len(turns) * _STEPS)

        draw = Random(seed).randrange
        if asked.arrivals == RANDOM:
            args = (trace, policy, seed, draw, asked.load, asked.prices, step)
            found.append(at_random(*args))
        else:
            found.append(as_recorded(trace, policy, draw, asked.prices, step))
    return TraceReport(
        trace=asked.folder,
        nodes=len(traces[0].nodes),
        gpus=traces[0].gpu_milli // WHOLE,
        arrivals=asked.arrivals,
        load=asked.load if asked.arrivals == RANDOM else max(map(_peak, traces)),
        summaries=summarised(found),
        replays=tuple(found),
    )


def _peak(trace: Trace) -> float:
    """What was asked for at the busiest moment, if every task had started when it came."""
    changes: list[tuple[int, int]] = []
    for task in trace.tasks:
        if task.times is not None:
            changes.append((task.times.created, task.kind.total_milli))
            changes.append((task.times.created + task.times.runs_for, -task.kind.total_milli))
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most / trace.gpu_milli


def _refuse_timeless(trace: Trace) -> None:
    timeless = next((task.name for task in trace.tasks if task.times is None), None)
    if timeless is not None:
        raise QuestionError(
            f"workload {trace.workload}: task {timeless} has no creation_time or no deletion_time,"
            " so its arrivals cannot be replayed as recorded"
        )


def _traces(folder: str, workloads: Sequence[str]) -> Iterator[Trace]:
    tables = _tables(folder)
    nodes = [path for path in tables if _NODES in path.name]
    if len(nodes) != 1:
        text = f"has {len(nodes)} tables of nodes (*{_NODES}*.csv); expected one"
        raise QuestionError(f"{folder}: {text}")
    named = {_workload(path): path for path in tables if _TASKS in path.name}
    if not named:
        raise QuestionError(f"{folder}: has no tables of tasks (*{_TASKS}_WORKLOAD.csv)")
    wanted = workloads or ((_USUAL,) if _USUAL in named else tuple(named)[:1])
    try:
        known = read_nodes(str(nodes[0]), _text(nodes[0]))
        for name in wanted:
            if name not in named:
                meant = did_you_mean(name, named) or f"; there are: {', '.join(named)}"
                raise QuestionError(f"{folder}: has no workload {name}{meant}")
            yield Trace(name, known, read_tasks(str(named[name]), _text(named[name])))
    except DocumentError as error:
        raise QuestionError(str(error)) from error


def workloads_in(folder: str) -> list[str]:
    """The workloads of a trace. Raises QuestionError."""
    return [_workload(path) for path in _tables(folder) if _TASKS in path.name]


def _workload(path: Path) -> str:
    """What a table of tasks is called, as in `openb_pod_list_default.csv`."""
    return path.stem.rpartition(f"{_TASKS}_")[2] or _USUAL


def _tables(folder: str) -> list[Path]:
    try:
        return sorted(path for path in Path(folder).iterdir() if path.suffix == ".csv")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise QuestionError(f"{folder}: cannot be read: {why}") from error
    except ValueError as error:  # a null character
        raise QuestionError(f"{folder!r}: not the name of a folder: {error}") from error


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise QuestionError(f"{path}: is larger than {_MOST_BYTES >> 20} MiB")
        return data.decode("utf-8-sig")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise QuestionError(f"{path}: cannot be read: {why}") from error
    except UnicodeDecodeError as error:
        raise QuestionError(f"{path}: is not UTF-8: {error.reason} at {error.start}") from error
