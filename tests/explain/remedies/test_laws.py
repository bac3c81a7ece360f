"""What holds for remedies of any pod on any cluster."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drayman.placement.decision.deciding import Decider
from drayman.placement.placing import Found
from drayman.placement.world import World
from explain.remedies.cluster import (
    NOW,
    NUMA,
    ROOT,
    Cluster,
    asking,
    checked,
    gpus,
    report_on,
    request,
)
from oracle.observed import seen_in
from oracle.selectors import GPU

_TAINT = {"key": "busy", "effect": "NoSchedule"}
_MODEL = f'device.attributes["{GPU}"].model == "H100"'


_TROUBLES = ("use", "jobs", "cordon", "taint", "ecc", "rule", "class", "selector", "label", "cpu")


@st.composite
def _nodes(draw: st.DrawFn, cluster: Cluster, troubles: frozenset[str]) -> None:
    """Up to three nodes with two to six GPUs; what is wrong with them is wrong with most."""
    for number in range(draw(st.integers(1, 3))):
        wrong = {trouble for trouble in sorted(troubles) if draw(st.integers(0, 9))}
        name, count = f"n{number}", draw(st.integers(2, 6))
        tainted = {"taints": [_TAINT]} if "ecc" in wrong else {}
        fields: dict[str, Any] = {"unschedulable": True} if "cordon" in wrong else {}
        fields |= {"taints": [_TAINT]} if "taint" in wrong else {}
        cluster.node(name, gpus(count, **tainted), cpu=4, labels={"pool": "a"}, **fields)
        free = list(range(count))
        while free and wrong & {"use", "jobs"}:
            taken = [free.pop() for _ in range(min(draw(st.integers(1, 3)), len(free)))]
            cluster.holder(
                f"{name}-{len(free)}",
                name,
                " ".join(map(str, taken)),
                job=f"j{draw(st.integers(0, 1))}" if "jobs" in wrong else "",
                cpu=str(draw(st.integers(0, 1))),
                priority=draw(st.integers(0, 2)),
            )
        if "rule" in wrong:
            cluster.taint_rule(f"rule-{name}", "broken", driver=GPU, pool=name)


@st.composite
def _clusters(draw: st.DrawFn) -> Cluster:
    """A small cluster, a pod that would fit or nearly so, and up to two things that are in its way."""
    cluster = Cluster().job("j0").job("j1").device_class("h100", _MODEL)
    troubles = draw(st.frozensets(st.sampled_from(_TROUBLES), max_size=2))
    draw(_nodes(cluster, troubles))
    requests = [
        request(
            f"r{number}",
            cls=draw(st.sampled_from(("gpu", "h100"))) + "s" * ("class" in troubles),
            count=draw(st.integers(1, 3)),
            select=(f"{_MODEL} && false",) if "selector" in troubles else (),
        )
        for number in range(draw(st.integers(1, 2)))
    ]
    match = draw(st.sampled_from(((), (), (ROOT,), (NUMA,), (ROOT, NUMA))))
    cluster.template("wanted", asking(*requests, match=match))
    fields: dict[str, Any] = {"nodeSelector": {"pool": "b" if "label" in troubles else "a"}}
    return cluster.waiting(cpu="6" if "cpu" in troubles else "1", **fields)


def _fits(world: World) -> bool:
    round_ = Decider(world.state).round(NOW)
    pod = world.pod("default", "waiting")
    assert pod is not None
    return isinstance(round_.find(round_.demand(pod)), Found)


def _seen(world: World) -> Any:
    nodes = {
        name: (node.node, node.usage.cpu, set(node.usage.pods))
        for name, node in world.state.nodes.items()
    }
    claims = {
        c.metadata.name: world.claim("default", c.metadata.name) for c in world.objects.claims
    }
    return nodes, claims, seen_in(world.state.ledger), dict(world.state.inventory.classes)


@given(_clusters())
def test_every_remedy_helps(cluster: Cluster) -> None:
    """Whatever is named makes the pod fit where it is said to, when it is done."""
    if not _fits(cluster.world()):
        checked(cluster)


@given(_clusters())
def test_trying_leaves_no_trace(cluster: Cluster) -> None:
    """Afterwards the world is as before, and so is what is said about it."""
    world = cluster.world()
    if _fits(world):
        return
    before = _seen(world)
    first = report_on(world)
    assert _seen(world) == before
    assert not _fits(world)
    assert report_on(world) == first
    assert report_on(cluster.world()) == first
