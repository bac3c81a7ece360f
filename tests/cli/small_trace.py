"""A trace of a few nodes, made up."""

from __future__ import annotations

from pathlib import Path

NODES = """\
sn,cpu_milli,memory_mib,gpu,model,price,numa
big-0,32000,131072,8,A,8,2
big-1,32000,131072,8,A,8,2
small-0,8000,32768,2,B,1,1
small-1,8000,32768,2,B,1,1
"""
TASKS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time
whole,4000,8192,1,1000,,0,100,0
half,1000,4096,1,500,,5,90,5
third,3000,2048,1,300,B,10,400,12
pair,6000,8192,2,1000,A|B,20,220,20
eight,16000,65536,8,1000,A,30,130,30
none,2000,4096,0,0,,40,140,40
"""


def write_trace(folder: Path) -> None:
    """The tables of the trace, with the workload `small`."""
    folder.mkdir()
    (folder / "our_node_list.csv").write_text(NODES)
    (folder / "our_pod_list_small.csv").write_text(TASKS)
