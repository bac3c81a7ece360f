"""Who has what a pod needs, and how much of that is told."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert
from drayman.api.resource import ResourceClaim
from drayman.explain.holders import MOST_HOLDERS
from drayman.placement.lost_claims import CONDITION, LostClaim, message_of
from explain.town import Town
from oracle.build import capacity, claim, device, exactly, partitioned, shared, taint


def owned(kind: str, name: str) -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": "u", "controller": True}
    return {"ownerReferences": [owner]}


def test_a_holder_is_told_with_all_that_is_known_of_it() -> None:
    """Namespace, claim, pods, what made them, priority, and since when."""
    town = Town().node("n0", 2)
    town.holds("a", "n0", "d0", "d1", namespace="ml", priority=7, metadata=owned("Job", "training"))
    (holder,) = town.wants(claim(exactly("gpus", 1))).explain().holders
    assert holder.devices == ("gpu.example.com/n0/d0", "gpu.example.com/n0/d1")
    assert (holder.namespace, holder.claim, holder.pods) == ("ml", "a-claim", ("a",))
    assert (holder.workload, holder.priority) == ("Job/training", 7)
    assert (holder.since, holder.visible) == ("2026-01-01T00:00:00Z", True)


def test_holders_of_one_workload_are_told_together() -> None:
    """Ten pods of a job are one holder, with all their devices, the highest priority and the earliest time."""
    town = Town().node("n0", 12)
    for number in range(10):
        made = owned("Job", "sweep")
        town.holds(f"sweep-{number}", "n0", f"d{number}", priority=number, metadata=made)
    town.holds("alone", "n0", "d10").holds(
        "other", "n0", "d11", namespace="ml", metadata=owned("Job", "sweep")
    )
    found = town.wants(claim(exactly("gpus", 1))).explain()
    sweep, alone, other = found.holders
    assert (sweep.namespace, sweep.workload, sweep.count) == ("default", "Job/sweep", 10)
    assert (len(sweep.pods), len(sweep.devices), sweep.claim) == (10, 10, "")
    assert (sweep.priority, sweep.since) == (9, "2026-01-01T00:00:00Z")
    assert (alone.claim, alone.count) == ("alone-claim", 1)
    assert (other.namespace, other.workload, other.count) == ("ml", "Job/sweep", 1)
    assert found.nearest is not None
    assert found.nearest.blocked["gpu.example.com/n0/d3"] == "in use by default/sweep (Job)"


def test_a_deployment_is_known_by_its_own_name() -> None:
    """Not by that of the replica set that it has made."""
    town = Town().node("n0", 2)
    for number in range(2):
        made = owned("ReplicaSet", "web-5d4f") | {"labels": {"pod-template-hash": "5d4f"}}
        town.holds(f"web-5d4f-{number}", "n0", f"d{number}", metadata=made)
    (holder,) = town.wants(claim(exactly("gpus", 1))).explain().holders
    assert (holder.workload, holder.count) == ("Deployment/web", 2)


def test_pods_of_one_workload_hold_processors_together() -> None:
    """The same where a node is short of resources."""
    town = Town().node("n0")
    for number in range(4):
        town.runs(f"web-{number}", "n0", cpu=2, metadata=owned("StatefulSet", "web"))
    (holder,) = town.wants(cpu=2).explain().holders
    assert (holder.workload, holder.count, len(holder.pods)) == ("StatefulSet/web", 4, 4)


def test_workloads_count_once_among_those_that_are_named() -> None:
    """Many pods of one job do not crowd others out."""
    town = Town().node("n0", MOST_HOLDERS + 5)
    for number in range(MOST_HOLDERS + 4):
        town.holds(f"p{number}", "n0", f"d{number}", metadata=owned("Job", "sweep"))
    found = (
        town.holds("last", "n0", f"d{MOST_HOLDERS + 4}").wants(claim(exactly("gpus", 1))).explain()
    )
    assert [h.count for h in found.holders] == [MOST_HOLDERS + 4, 1]
    assert found.holders_left_out == 0


def test_holders_on_the_nearest_node_come_first() -> None:
    """The nearest node's holders lead, whatever the order of nodes."""
    town = Town().node("n0", 2).node("n1", 2)
    town.holds("a", "n0", "d0", "d1").holds("b", "n1", "d0")
    found = town.wants(claim(exactly("gpus", 2))).explain()
    assert found.nearest is not None
    assert found.nearest.node == "n1"
    assert [holder.claim for holder in found.holders] == ["b-claim", "a-claim"]


def test_nodes_that_are_too_small_have_nothing_that_is_needed() -> None:
    """Who holds devices where there never are enough is not in the way."""
    town = Town().node("small", 1).node("large", 2)
    town.holds("a", "small", "d0").holds("b", "large", "d0")
    found = town.wants(claim(exactly("gpus", 2))).explain()
    assert [holder.claim for holder in found.holders] == ["b-claim"]


def test_shares_and_counters_have_holders_too() -> None:
    """Capacity is held by those who have shares of a device, counters by those who have other parts of it."""
    town = Town().node("n0", [shared("d0", {"memory": capacity("80Gi")})])
    town.holds("a", "n0", shares={"d0": "50Gi"})
    (holder,) = town.wants(claim(exactly("gpus", 1, asks={"memory": "60Gi"}))).explain().holders
    assert (holder.claim, holder.devices) == ("a-claim", ("gpu.example.com/n0/d0",))

    parts = [device(f"d{i}", spends={"card": {"units": 3}}) for i in range(2)]
    town = Town().node("n0")
    town.slices += partitioned(parts, {"card": {"units": 4}}, pool="n0", nodeName="n0")
    town.holds("a", "n0", "d0")
    (holder,) = town.wants(claim(exactly("gpus", 1))).explain().holders
    assert (holder.claim, holder.devices) == ("a-claim", ("gpu.example.com/n0/d0",))


def test_tainted_devices_are_not_needed_from_their_holders() -> None:
    """Somebody who has a device that the pod could not have anyway is not in its way."""
    town = Town().node("n0", ["d0", device("d1", taints=[taint("broken")])])
    town.holds("a", "n0", "d0").holds("b", "n0", "d1")
    found = town.wants(claim(exactly("gpus", 1))).explain()
    assert [holder.claim for holder in found.holders] == ["a-claim"]


def test_pods_hold_the_processors_of_a_node() -> None:
    """Where a node is short of resources, its pods are named, the least important first."""
    town = Town().node("n0").runs("high", "n0", cpu=4, priority=9).runs("low", "n0", cpu=3)
    found = town.wants(cpu=2).explain()
    assert [(h.pods, h.priority) for h in found.holders] == [(("low",), 0), (("high",), 9)]


def test_only_so_many_are_named() -> None:
    """The rest is a number."""
    town = Town().node("n0", MOST_HOLDERS + 5)
    for number in range(MOST_HOLDERS + 5):
        town.holds(f"p{number}", "n0", f"d{number}")
    found = town.wants(claim(exactly("gpus", 1))).explain()
    assert (len(found.holders), found.holders_left_out) == (MOST_HOLDERS, 5)


def test_nobody_is_named_where_use_is_not_the_reason() -> None:
    """If the hardware could never do it, it does not matter who has it."""
    town = Town().node("n0", 2).holds("a", "n0", "d0")
    assert town.wants(claim(exactly("gpus", 3))).explain().holders == ()


def test_a_pod_whose_claim_was_deleted_is_named_with_it() -> None:
    """Its devices are not free, though no claim has them."""
    town = Town().node("n0", 1).holds("a", "n0", "d0", namespace="ml", priority=7)
    lost = LostClaim.of(convert(ResourceClaim, town.claims.pop()), "deleted")
    condition = {"type": CONDITION, "status": "True", "message": message_of([lost])}
    town.pods[-1].setdefault("status", {})["conditions"] = [condition]
    found = town.wants(claim(exactly("gpus", 1))).explain()
    (holder,) = found.holders
    assert (holder.namespace, holder.claim, holder.pods) == ("ml", "a-claim", ("a",))
    assert (holder.lost, holder.priority, holder.visible) == ("deleted", 7, True)
    assert found.nearest is not None
    said = "in use by ml/a, whose claim a-claim was deleted"
    assert found.nearest.blocked["gpu.example.com/n0/d0"] == said


def test_a_pod_whose_claim_was_deleted_says_so() -> None:
    """It still runs, with the devices that it keeps."""
    town = Town().node("n0", 1).holds("a", "n0", "d0")
    lost = LostClaim.of(convert(ResourceClaim, town.claims.pop()), "deleted")
    condition = {"type": CONDITION, "status": "True", "message": message_of([lost])}
    town.pods[-1].setdefault("status", {})["conditions"] = [condition]
    found = town.explain("a")
    assert str(found.headline) == (
        "Runs: The pod is on node n0. Its claim a-claim was deleted, but it keeps"
        " gpu.example.com/n0/d0 until it has ended."
    )
    assert found.devices == ("gpu.example.com/n0/d0",)
