"""Tables of a trace are read, and what is wrong in them is named."""

from __future__ import annotations

import pytest

from cli.small_trace import NODES, TASKS
from drayman.api.errors import DocumentError
from drayman.simulate.trace.tables import (
    TaskKind,
    Times,
    TraceNode,
    TraceTask,
    read_nodes,
    read_tasks,
)

NODE = "sn,cpu_milli,memory_mib,gpu,model\n"
TASK = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"


def test_nodes() -> None:
    """Columns are found by their names, and prices and NUMA nodes only where they are given."""
    nodes = read_nodes("n.csv", NODES)
    assert nodes[0] == TraceNode("big-0", 32_000, 131_072, 8, "A", "8", 2)
    plain = read_nodes("n.csv", "model,gpu,sn,memory_mib,cpu_milli,extra\nT4,2,x,10,20,?\n")
    assert plain == (TraceNode("x", 20, 10, 2, "T4"),)


def test_tasks() -> None:
    """Run times count from the start, not from the arrival; tasks without GPUs have neither parts nor models."""
    tasks = {task.name: task for task in read_tasks("t.csv", TASKS)}
    assert tasks["third"].kind == TaskKind(3_000, 2_048, 1, 300, ("B",))
    assert tasks["third"].times == Times(10, 388)
    assert tasks["pair"].kind.models == ("A", "B")
    assert tasks["none"].kind == TaskKind(2_000, 4_096, 0, 0)
    (timeless,) = read_tasks("t.csv", "name,cpu_milli,memory_mib,num_gpu\nx,1,2,3\n")
    assert timeless == TraceTask("x", TaskKind(1, 2, 3, 1_000))


BAD_NODES = {
    "a column is missing": ("sn,cpu_milli,memory_mib,gpu\n", "n.csv:1: column model is missing"),
    "a number is not one": (NODE + "a,x,1,1,T4\n", "n.csv:2: cpu_milli: must be a whole number"),
    "a number is negative": (NODE + "a,1,1,-1,T4\n", "n.csv:2: gpu: must be a whole number"),
    "a number is a part": (NODE + "a,1.5,1,1,T4\n", "n.csv:2: cpu_milli: must be a whole number"),
    "a name is empty": (NODE + ",1,1,1,T4\n", "n.csv:2: sn: is empty"),
    "a name comes twice": (
        NODE + "a,1,1,1,T4\na,1,1,1,T4\n",
        "n.csv:3: sn: node a is listed twice",
    ),
    "a model is missing": (NODE + "a,1,1,1,\n", "n.csv:2: model: is empty"),
    "no GPUs": (NODE + "a,1,1,0,\n", "n.csv: no node has a GPU"),
    "uneven NUMA nodes": (
        "sn,cpu_milli,memory_mib,gpu,model,numa\na,1,1,3,T4,2\n",
        "n.csv:2: numa: 3 GPUs are not divided equally by 2",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_NODES.values(), ids=BAD_NODES)
def test_bad_nodes(text: str, message: str) -> None:
    """The error names file, line and column."""
    with pytest.raises(DocumentError) as caught:
        read_nodes("n.csv", text)
    assert str(caught.value).startswith(message)


BAD_TASKS = {
    "a part is too large": (
        TASK + "a,1,1,1,1001,,,\n",
        "t.csv:2: gpu_milli: must be from 1 to 1000",
    ),
    "a part is nothing": (TASK + "a,1,1,1,0,,,\n", "t.csv:2: gpu_milli: must be from 1 to 1000"),
    "parts of several": (TASK + "a,1,1,2,500,,,\n", "t.csv:2: gpu_milli: must be 1000 for a task"),
    "it ends too early": (
        TASK + "a,1,1,1,1,,9,8\n",
        "t.csv:2: deletion_time: 8 is before the task",
    ),
    "nobody wants GPUs": (TASK + "a,1,1,0,,,,\n", "t.csv: no task asks for a GPU"),
    "a quote is open": (TASK + '"a,1,1,1,1,,,\n', "t.csv:1: unexpected end of data"),
}


@pytest.mark.parametrize(("text", "message"), BAD_TASKS.values(), ids=BAD_TASKS)
def test_bad_tasks(text: str, message: str) -> None:
    """The error names file, line and column."""
    with pytest.raises(DocumentError) as caught:
        read_tasks("t.csv", text)
    assert str(caught.value).startswith(message)
