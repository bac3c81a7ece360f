"""Remedies by which a pod asks for less: each is applied, and then it fits."""

from __future__ import annotations

from explain.remedies.cluster import ROOT, Cluster, asking, checked, gpus, report_on, request


def test_the_most_devices_that_fit() -> None:
    """A count is lowered to the largest that some node has free, not further."""
    cluster = Cluster().node("n1", 8).node("n2", 8)
    cluster.holder("a", "n1", "0 1 2 3 4").holder("b", "n2", "0 1")
    cluster.template("wanted", asking(count=8)).waiting()
    assert "Ask for 6 instead of 8 in request gpus of template wanted." in checked(cluster)


def test_all_requests_of_a_claim_together() -> None:
    """Where lowering one request is not enough, all of them are lowered to the same count."""
    cluster = Cluster().node("n1", 4)
    spec = asking(request("first", count=4), request("second", count=4))
    cluster.template("wanted", spec).waiting()
    want = "Ask for at most 2 in each of the requests first, second of template wanted."
    assert want in checked(cluster)


def test_a_number_instead_of_all() -> None:
    """A request for all devices of which one is in use asks for the number that is free."""
    cluster = Cluster().node("n1", 4).holder("a", "n1", "0", owner="DaemonSet")
    cluster.template("wanted", asking(allocationMode="All")).waiting()
    assert "Ask for 3 instead of all in request gpus of template wanted." in checked(cluster)


def test_the_most_capacity_that_is_left() -> None:
    """A capacity is lowered to the most that a device of some node can give."""
    cluster = Cluster().node("n1", gpus(1, allowMultipleAllocations=True))
    cluster.node(
        "n2", gpus(1, capacity={"memory": {"value": "40Gi"}}, allowMultipleAllocations=True)
    )
    cluster.template("wanted", asking(capacity={"requests": {"memory": "96Gi"}})).waiting()
    want = "Ask for 80Gi instead of 96Gi of memory in request gpus of template wanted."
    assert want in checked(cluster)


def test_fewer_devices_as_an_extended_resource() -> None:
    """A pod that asks for devices by resource name asks for fewer."""
    cluster = Cluster().node("n1", 2)
    cluster.device_class("accelerator", extendedResourceName="example.com/gpu")
    cluster.waiting(extended={"example.com/gpu": "4"})
    assert "Ask for 2 instead of 4 example.com/gpu in container main." in checked(cluster)


def test_less_cpu_and_memory() -> None:
    """What no node has left is lowered to what one has, the node with the least reduction; the rest stays."""
    cluster = Cluster().node("n1", cpu=4).node("n2", cpu=6)
    cluster.holder("a", "n2", cpu="1", owner="DaemonSet").waiting(cpu="12", memory="20Gi")
    want = (
        "Ask for 5 instead of 12 of cpu in container main"
        " and 16Gi instead of 20Gi of memory in container main."
    )
    assert want in checked(cluster)


def test_nothing_where_nothing_helps() -> None:
    """No remedy is named for a pod that no single change helps."""
    cluster = Cluster().node("n1", cpu=1)
    cluster.template("wanted", asking(count=2, match=(ROOT,))).waiting(cpu="2")
    assert checked(cluster) == []


def test_a_claim_by_its_name() -> None:
    """A claim that the pod names itself is told by that name."""
    cluster = Cluster().node("n1", 2).claim("own", asking(count=4))
    cluster.waiting(resourceClaims=[{"name": "gpus", "resourceClaimName": "own"}])
    assert checked(cluster) == ["Ask for 2 instead of 4 in request gpus of claim own."]


def test_a_claim_that_was_made_is_changed_with_its_template() -> None:
    """Where a claim was made from a template already, both are to be made anew."""
    cluster = Cluster().node("n1", 2).template("wanted", asking(count=4))
    cluster.claim("made", asking(count=4), owner="waiting").waiting(generated="made")
    assert checked(cluster) == ["Ask for 2 instead of 4 in request gpus of template wanted."]
    (remedy,) = report_on(cluster.world()).remedies
    assert [(o.kind, o.name, o.patch[0]["path"]) for o in remedy.operations] == [
        ("ResourceClaimTemplate", "wanted", "/spec/spec/devices/requests/0/exactly/count"),
        ("ResourceClaim", "made", "/spec/devices/requests/0/exactly/count"),
    ]


def test_two_claims_of_one_template_change_together() -> None:
    """A change of a template counts for each claim that the pod gets from it."""
    cluster = Cluster().node("n1", 5).template("wanted", asking(count=3))
    entries = [{"name": name, "resourceClaimTemplateName": "wanted"} for name in ("one", "two")]
    cluster.waiting(resourceClaims=entries)
    assert checked(cluster) == ["Ask for 2 instead of 3 in request gpus of template wanted."]


def test_alternatives_are_lowered_each_for_itself() -> None:
    """An alternative of a request is named with its request."""
    cluster = Cluster().node("n1", 3)
    subs = [
        {"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
        for name, count in (("many", 8), ("some", 4))
    ]
    spec = {"devices": {"requests": [{"name": "gpus", "firstAvailable": subs}]}}
    cluster.template("wanted", spec).waiting()
    assert checked(cluster) == [
        "Ask for 3 instead of 8 in request gpus/many of template wanted.",
        "Ask for 3 instead of 4 in request gpus/some of template wanted.",
    ]


def test_as_many_as_a_claim_may_have() -> None:
    """A claim for more devices than any claim can have asks for the most that it can."""
    cluster = Cluster().node("n1", 40).template("wanted", asking(count=36)).waiting()
    assert checked(cluster) == ["Ask for 32 instead of 36 in request gpus of template wanted."]
