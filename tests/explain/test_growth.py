"""The work of an explanation grows with the cluster, and not with its square.

Work is counted in lines of our code that are run: at one size and at four times that size of everything a cluster can have many of.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

import pytest

from drayman.explain.claim import explain_claim
from drayman.explain.node import explain_node
from drayman.explain.overview import explain_all
from drayman.explain.pod import explain_pod
from drayman.explain.workload import explain_job
from drayman.placement.world import World
from explain.town import Town
from oracle.build import claim, device, device_class, exactly, taint

TIMES: Final = 4
MOST_GROWTH: Final = 6
"""More than four times as much for what has to be sorted, less than the sixteen of a square."""
FEW: Final = 12
_OURS: Final = "drayman"


@dataclass(slots=True)
class Work:
    """Lines that were run."""

    lines: int = 0


@contextmanager
def counted() -> Iterator[Work]:
    """The work that is done within."""
    work = Work()

    def on_line(frame: FrameType, what: str, _: Any) -> Any:
        if what == "line":
            work.lines += 1
        return on_line

    def on_call(frame: FrameType, what: str, _: Any) -> Any:
        return on_line if _OURS in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield work
    finally:
        sys.settrace(before)


# What there can be many of. Each cluster has a pod `pending` that waits, unless it is said otherwise.


def nodes(size: int) -> Town:
    """Nodes that differ in what is free there."""
    town = Town()
    for n in range(size):
        town.node(f"n{n}", 2).holds(f"p{n}", f"n{n}", "d0")
    return town.wants(claim(exactly("gpus", 2)))


def different_nodes(size: int) -> Town:
    """Nodes no two of which are alike."""
    town = Town()
    for n in range(size):
        town.node(f"n{n}", [device("d0", attrs={"serial": f"s{n}"})], labels={"number": str(n)})
    return town.wants(claim(exactly("gpus", 2)))


def full_nodes(size: int) -> Town:
    """Nodes without room for the pod, by what other pods use of them."""
    town = Town()
    for n in range(size):
        town.node(f"n{n}").runs(f"p{n}", f"n{n}", cpu=7)
    return town.wants(cpu=2)


def devices(size: int) -> Town:
    """Devices of one node, all in use by one pod each."""
    town = Town().node("n0", size, allocatable={"pods": "10000"})
    for n in range(size):
        town.holds(f"p{n}", "n0", f"d{n}")
    return town.wants(claim(exactly("gpus", 2)))


def different_devices(size: int) -> Town:
    """Devices with a value of their own, none of which is the one that is wanted."""
    made = [device(f"d{n}", attrs={"model": f"model-{n}"}) for n in range(size)]
    selector = "device.attributes['gpu.example.com'].model == 'modle-1'"
    return Town().node("n0", made).wants(claim(exactly("gpus", 1, select=[selector])))


def pods(size: int) -> Town:
    """Pods on one node, which is full."""
    town = Town().node("n0", allocatable={"cpu": str(size), "pods": "10000"})
    for n in range(size):
        town.runs(f"p{n}", "n0", cpu=1)
    return town.wants(cpu=1)


def waiting_pods(size: int) -> Town:
    """Pods that wait for the same."""
    town = Town().node("n0", 1).holds("p0", "n0", "d0")
    for n in range(size):
        town.wants(claim(exactly("gpus", 1)), name=f"waits-{n}")
    return town.wants(claim(exactly("gpus", 1)))


def different_waiting_pods(size: int) -> Town:
    """Pods no two of which ask for the same."""
    town = Town().node("n0", 1)
    for n in range(size):
        town.wants(claim(exactly("gpus", 2 + n)), name=f"waits-{n}")
    return town.wants(claim(exactly("gpus", 1)), cpu=99)


def claims(size: int) -> Town:
    """Claims of one pod."""
    town = Town().node("n0", 4)
    return town.wants(*(claim(exactly("gpus", 2)) for _ in range(size)))


def shared_claim(size: int) -> Town:
    """Pods that use one claim, and hold what is wanted together."""
    town = Town().node("n0", 1, allocatable={"pods": "10000"}).holds("p", "n0", "d0")
    for n in range(size):
        town.runs(f"p{n}", "n0", claim="p-claim")
        user = {"resource": "pods", "name": f"p{n}", "uid": f"uid-p{n}"}
        town.claims[0]["status"]["reservedFor"].append(user)
    return town.wants(claim(exactly("gpus", 1)))


def classes(size: int) -> Town:
    """Device classes, of which the wanted one is missing."""
    town = Town().node("n0", 1)
    town.classes += [device_class(f"class-{n}") for n in range(size)]
    return town.wants(claim(exactly("gpus", 1, cls="clas-1")))


def rules(size: int) -> Town:
    """Rules that taint devices."""
    town = Town().node("n0", 2)
    for n in range(size):
        spec = {"deviceSelector": {"pool": "n0"}, "taint": taint(f"key-{n}", "v", "NoSchedule")}
        town.rules.append({"metadata": {"name": f"rule-{n}"}, "spec": spec})
    return town.wants(claim(exactly("gpus", 1)))


def jobs(size: int) -> Town:
    """Jobs with two pods each, one of which waits."""
    town = Town().node("n0", size, allocatable={"pods": "10000"})
    for n in range(size):
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"j{n}", "uid": f"uid-j{n}"}
        owned = {"ownerReferences": [{**owner, "controller": True}]}
        town.jobs.append(
            {"metadata": {"name": f"j{n}", "namespace": "default", "uid": f"uid-j{n}"}}
        )
        town.holds(f"j{n}-0", "n0", f"d{n}", metadata=owned)
        town.wants(claim(exactly("gpus", 1)), name=f"j{n}-1", metadata=owned)
    return town


SIZES: Final[dict[str, Callable[[int], Town]]] = {
    each.__name__: each
    for each in (
        nodes, different_nodes, full_nodes, devices, different_devices, pods, waiting_pods,
        different_waiting_pods, claims, shared_claim, classes, rules, jobs,
    )
}  # fmt: skip
FEWEST: Final = {"claims": 60}
"""Remedies are searched for until that has taken a while. For claims, more than these make no difference."""


def of_the_pod(world: World) -> None:
    explain_pod(world, world.objects.pods[-1])


def without_remedies(world: World) -> None:
    explain_pod(world, world.objects.pods[-1], with_remedies=False)


def of_a_pod_that_runs(world: World) -> None:
    explain_pod(world, world.objects.pods[0])


def of_the_cluster(world: World) -> None:
    explain_all(world)


def of_a_node(world: World) -> None:
    explain_node(world, world.objects.nodes[0])


def of_a_job(world: World) -> None:
    for each in world.objects.jobs[:1]:
        explain_job(world, each)


def of_a_claim(world: World) -> None:
    for each in world.objects.claims[:1]:
        explain_claim(world, each)


QUESTIONS: Final[dict[str, Callable[[World], None]]] = {
    each.__name__: each
    for each in (
        of_the_pod,
        without_remedies,
        of_a_pod_that_runs,
        of_the_cluster,
        of_a_node,
        of_a_job,
        of_a_claim,
    )
}


def work_of(build: Callable[[int], Town], size: int, ask: Callable[[World], None]) -> int:
    """The state is built before, as for any question."""
    world = build(size).world()
    assert world.state is not None
    with counted() as work:
        ask(world)
    return work.lines


SAME: Final = {("claims", "of_a_pod_that_runs"), ("claims", "of_a_claim")}
"""There is one pod, whose explanation is asked for in any case."""
PAIRS: Final = [(many, ask) for many in SIZES for ask in QUESTIONS if (many, ask) not in SAME]


@pytest.mark.parametrize(("many", "question"), PAIRS)
def test_growth(many: str, question: str) -> None:
    """Four times as many take at most six times the work."""
    build, ask = SIZES[many], QUESTIONS[question]
    fewest = FEWEST.get(many, FEW)
    work_of(build, 1, ask)  # what is learned once, such as compiled selectors, is not counted
    few, more = (work_of(build, size, ask) for size in (fewest, fewest * TIMES))
    assert more <= MOST_GROWTH * few, f"{few} lines for {fewest}, {more} for {fewest * TIMES}"
