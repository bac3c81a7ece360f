"""Quota together with places in a topology: whoever has no place waits, drives others out, or is told that there never will be one."""

from __future__ import annotations

from typing import Any

from quota.queues import Object, Story, flavor, pods, queue, workload

RACK, HOST = "example.com/rack", "kubernetes.io/hostname"


def node(name: str, rack: str, cpu: int, **status: Any) -> Object:
    conditions = [{"type": "Ready", "status": "True", **status}]
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kind": "placed", RACK: rack, HOST: name}},
        "status": {"allocatable": {"cpu": str(cpu), "pods": "10"}, "conditions": conditions},
    }


def topology() -> Object:
    levels = [{"nodeLabel": RACK}, {"nodeLabel": HOST}]
    return {"kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": levels}}


def placed() -> Object:
    return flavor("placed", nodeLabels={"kind": "placed"}, topologyName="t")


def together(count: int, cpu: int, level: str = RACK) -> Object:
    """Pods that have to be in one domain."""
    return {**pods(count=count, cpu=cpu), "topologyRequest": {"required": level}}


def scene(*more: Any, cpu: int = 100, **policies: Any) -> Story:
    return Story(
        topology(),
        placed(),
        queue("q", quota={"placed": {"cpu": cpu}}, **policies),
        node("a1", "a", 2),
        node("a2", "a", 2),
        node("b1", "b", 3),
        *more,
    )


def domains(story: Story, name: str) -> dict[str, int]:
    """How many pods each node gets."""
    found = story.settle()["workloads"][f"default/{name}"]
    shown = found["podSets"][0]["topology"]["domains"]
    return {values[-1]: count for values, count in shown}


def test_quota_alone_is_not_enough() -> None:
    """Five pods of one cpu do not fit into any rack, though there is quota; nobody is driven out for them."""
    story = scene(workload("small", "q", together(1, 1), priority=-1), within="LowerPriority")
    assert story.admitted() == {"small"}
    story.create(workload("w", "q", together(5, 1)))
    assert story.victims("w") == {}
    assert story.reason("w") == "TopologyPlacementFailed"


def test_who_is_in_the_way_is_driven_out() -> None:
    """There is quota for both, and one rack that holds the second."""
    story = scene(workload("low", "q", together(4, 1), priority=-1), within="LowerPriority")
    assert domains(story, "low") == {"a1": 2, "a2": 2}
    story.create(workload("w", "q", together(4, 1)))
    assert story.victims("w") == {"low": "InClusterQueue"}
    assert domains(story, "w") == {"a1": 2, "a2": 2}


def test_g29_places_that_another_took_in_the_same_cycle_are_found_elsewhere() -> None:
    """Both are admitted, each in a rack of its own."""
    story = Story(
        topology(),
        placed(),
        queue("p", quota={"placed": {"cpu": 10}}),
        queue("q", quota={"placed": {"cpu": 10}}),
        node("a1", "a", 3),
        node("b1", "b", 3),
        workload("one", "p", together(3, 1)),
        workload("two", "q", together(3, 1)),
    )
    checkpoint = story.settle()
    reserved = [e["cycle"] for e in checkpoint["events"] if e["type"] == "reserved"]
    assert len(set(reserved)) == 1
    assert {*domains(story, "one"), *domains(story, "two")} == {"a1", "b1"}


def test_a_topology_that_is_not_there_makes_a_queue_inactive() -> None:
    """It is named as the reason, and all goes on when it appears."""
    story = Story(
        placed(),
        queue("q", quota={"placed": {"cpu": 10}}),
        node("a1", "a", 3),
        workload("w", "q", together(1, 1)),
    )
    assert story.admitted() == set()
    assert story.run.state.books.queues["q"].inactive == "TopologyNotFound"
    story.create(topology())
    assert story.admitted() == {"w"}


def test_a_node_that_appears_wakes_who_waits_for_a_place() -> None:
    """That a node is still ready does not."""
    story = scene(workload("w", "q", together(5, 1)))
    assert story.admitted() == set()
    story.create(node("b1", "b", 3, reason="KubeletReady"))
    state = story.run.state
    state.cycle(9e9)
    assert state.cycle(9e9) == ()
    story.create(node("b2", "b", 2))
    assert story.admitted() == {"w"}
