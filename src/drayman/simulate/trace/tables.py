"""A trace as text: a table of nodes and tables of tasks, in the CSV form in which Alibaba published its GPU cluster of 2023.

    sn,cpu_milli,memory_mib,gpu,model
    name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,...,creation_time,deletion_time,scheduled_time

A task with one GPU may ask for a part of it, in thousandths (`gpu_milli`); `gpu_spec` lists the models that it accepts, separated by `|`.
Two more columns of nodes are read where they exist: `price`, for an hour of the node, and `numa`, on how many NUMA nodes its GPUs are.
Unknown columns are skipped.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Final

from msgspec import Struct

from drayman.api.errors import DocumentError

WHOLE: Final = 1_000
"""A GPU in thousandths."""
_MOST_ROWS: Final = 1_000_000


class TraceNode(Struct, frozen=True):
    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str
    price: str = ""
    """By the hour; empty if it is not known."""
    numa: int = 0
    """On how many NUMA nodes its GPUs are; 0 if that is not known."""


class TaskKind(Struct, frozen=True):
    """What tasks ask for. Thousands of tasks are of a few kinds."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    """Of each GPU."""
    models: tuple[str, ...] = ()
    """Those it accepts; any if there are none."""

    @property
    def total_milli(self) -> int:
        return self.gpus * self.gpu_milli


class Times(Struct, frozen=True):
    """In seconds from some beginning."""

    created: int
    runs_for: int


class TraceTask(Struct, frozen=True):
    name: str
    kind: TaskKind
    times: Times | None = None
    """None if the trace does not say when it came and how long it ran."""


class Trace(Struct, frozen=True):
    """Nodes, and tasks of one workload."""

    workload: str
    nodes: tuple[TraceNode, ...]
    tasks: tuple[TraceTask, ...]

    @property
    def gpu_milli(self) -> int:
        """All GPUs together."""
        return WHOLE * sum(node.gpus for node in self.nodes)


def read_nodes(file: str, text: str) -> tuple[TraceNode, ...]:
    """The nodes of a table. Raises DocumentError, which names the line and the column."""
    found: dict[str, TraceNode] = {}
    for row in _rows(file, text, ("sn", "cpu_milli", "memory_mib", "gpu", "model")):
        node = TraceNode(
            name=row.text("sn"),
            cpu_milli=row.number("cpu_milli"),
            memory_mib=row.number("memory_mib"),
            gpus=row.number("gpu"),
            model=row.get("model"),
            price=row.get("price"),
            numa=row.number("numa") if row.get("numa") else 0,
        )
        if node.name in found:
            raise row.error("sn", f"node {node.name} is listed twice")
        if node.gpus and not node.model:
            raise row.error("model", "is empty, but the node has GPUs")
        if node.numa and node.gpus % node.numa:
            raise row.error("numa", f"{node.gpus} GPUs are not divided equally by {node.numa}")
        found[node.name] = node
    if not any(node.gpus for node in found.values()):
        raise DocumentError(file, 0, "no node has a GPU")
    return tuple(found.values())


def read_tasks(file: str, text: str) -> tuple[TraceTask, ...]:
    """The tasks of a table. Raises DocumentError, which names the line and the column."""
    found = [
        _task(row) for row in _rows(file, text, ("name", "cpu_milli", "memory_mib", "num_gpu"))
    ]
    if not any(task.kind.gpus for task in found):
        raise DocumentError(file, 0, "no task asks for a GPU")
    return tuple(found)


def _task(row: _Row) -> TraceTask:
    gpus = row.number("num_gpu")
    part = row.number("gpu_milli") if gpus and row.get("gpu_milli") else WHOLE
    if gpus and not 0 < part <= WHOLE:
        raise row.error("gpu_milli", f"must be from 1 to {WHOLE}, not {part}")
    if gpus > 1 and part != WHOLE:
        raise row.error("gpu_milli", f"must be {WHOLE} for a task with {gpus} GPUs, not {part}")
    models = dict.fromkeys(model for model in row.get("gpu_spec").split("|") if model)
    kind = TaskKind(
        cpu_milli=row.number("cpu_milli"),
        memory_mib=row.number("memory_mib"),
        gpus=gpus,
        gpu_milli=part if gpus else 0,
        models=tuple(models) if gpus else (),
    )
    return TraceTask(row.text("name"), kind, _times(row))


def _times(row: _Row) -> Times | None:
    if not row.get("creation_time") or not row.get("deletion_time"):
        return None
    created, ended = row.number("creation_time"), row.number("deletion_time")
    started = row.number("scheduled_time") if row.get("scheduled_time") else created
    if ended < started:
        raise row.error("deletion_time", f"{ended} is before the task was started ({started})")
    return Times(created, ended - started)


class _Row:
    """A line of a table."""

    def __init__(self, file: str, line: int, values: Mapping[str, str | None]) -> None:
        self._file = file
        self._line = line
        self._values = values

    def get(self, column: str) -> str:
        """Empty if there is nothing."""
        return (self._values.get(column) or "").strip()

    def text(self, column: str) -> str:
        found = self.get(column)
        if not found:
            raise self.error(column, "is empty")
        return found

    def number(self, column: str) -> int:
        """Some tables write whole numbers with a point."""
        text = self.text(column)
        whole, point, rest = text.partition(".")
        if not whole.isdecimal() or (point and rest.strip("0")):
            raise self.error(column, f"must be a whole number that is not negative, not {text!r}")
        return int(whole)

    def error(self, column: str, problem: str) -> DocumentError:
        return DocumentError(self._file, self._line, f"{column}: {problem}")


def _rows(file: str, text: str, needed: tuple[str, ...]) -> Iterator[_Row]:
    reader = csv.DictReader(StringIO(text), strict=True)
    try:
        columns = [name.strip() for name in reader.fieldnames or ()]
        missing = [name for name in needed if name not in columns]
        if missing:
            raise DocumentError(file, 1, f"column {missing[0]} is missing")
        reader.fieldnames = columns
        for number, values in enumerate(reader, 1):
            if number > _MOST_ROWS:
                raise DocumentError(file, reader.line_num, f"there are more than {_MOST_ROWS} rows")
            yield _Row(file, reader.line_num, values)
    except csv.Error as error:
        raise DocumentError(file, reader.line_num, str(error)) from error
