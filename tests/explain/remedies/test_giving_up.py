"""Remedies by which a pod gives up something that it asked for: each is applied, and then it fits."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.explain.conditions import conditions_of
from explain.remedies.cluster import NUMA, ROOT, Cluster, asking, checked, gpus, request
from oracle.selectors import GPU

MODEL = f'device.attributes["{GPU}"].model'
MEMORY = f'device.capacity["{GPU}"].memory'
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_one_condition_of_a_selector() -> None:
    """Of conditions that are joined, the one that is in the way is left out and the others stay."""
    cluster = Cluster().node("n1", 2)
    large = f'{MEMORY}.compareTo(quantity("141Gi")) >= 0'
    cluster.template("wanted", asking(select=(f'{MODEL} == "H100" && {large}',))).waiting()
    assert checked(cluster) == [
        'Write "80Gi" instead of "141Gi" in the selector of request gpus of template wanted.',
        f"Leave `{large}` out of the selector of request gpus of template wanted.",
    ]


def test_a_whole_selector() -> None:
    """A selector with a single condition is dropped."""
    cluster = Cluster().node("n1", 2)
    cluster.template("wanted", asking(select=(f'{MODEL} == "A100"', "true"))).waiting()
    assert checked(cluster) == [
        'Write "H100" instead of "A100" in the selector of request gpus of template wanted.',
        f'Drop the selector `{MODEL} == "A100"` of request gpus of template wanted.',
    ]


def test_all_selectors_where_one_is_not_enough() -> None:
    """Two selectors that are both in the way are dropped together."""
    cluster = Cluster().node("n1", 2)
    cluster.template("wanted", asking(select=(f'{MODEL} == "A100"', "false"))).waiting()
    assert checked(cluster) == ["Drop all 2 selectors of request gpus of template wanted."]


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("a && b", ("a", "b")),
        ("a && (b && c) && d[0 ]", ("a", "(b && c)", "d[0 ]")),
        ('a == "x && y" && b', ('a == "x && y"', "b")),
        ("a && b || c", ("a && b || c",)),
        ("a ? b && c : d", ("a ? b && c : d",)),
        ("has(a) && a.exists(x, x && y)", ("has(a)", "a.exists(x, x && y)")),
        ("a && `b", ("a && `b",)),
        ("a", ("a",)),
    ],
)
def test_conjuncts(expression: str, want: tuple[str, ...]) -> None:
    """An expression is cut at the `&&` that bind least, and only where nothing binds less."""
    assert tuple(part.text for part in conditions_of(expression)) == want


def test_a_looser_constraint() -> None:
    """Devices that cannot be at one PCIe root can be at one NUMA node; without the constraint they fit anyway."""
    cluster = Cluster().node("n1", 8)
    cluster.template("wanted", asking(count=4, match=(ROOT,))).waiting()
    assert checked(cluster) == [
        "Match numaNode instead of pcieRoot in template wanted.",
        "Ask for 2 instead of 4 in request gpus of template wanted.",
        "Drop the constraint on equal pcieRoot of template wanted.",
    ]


def test_all_constraints_where_one_is_not_enough() -> None:
    """Two constraints that are both in the way are dropped together."""
    cluster = Cluster().node("n1", 8)
    cluster.template("wanted", asking(count=8, match=(NUMA, "no.example.com/such"))).waiting()
    assert "Drop all 2 constraints of template wanted." in checked(cluster)


def test_another_class_of_the_same_driver() -> None:
    """A class whose devices are of the same driver is named; one of another driver is not."""
    cluster = Cluster().node("n1", 2)
    cluster.device_class("gpu-large", f'device.driver == "{GPU}" && {MODEL} == "B200"')
    cluster.device_class("gpu-h100", f'device.driver == "{GPU}" && {MODEL} == "H100"')
    cluster.device_class("nic", 'device.driver == "nic.example.com"')
    cluster.node("n2", gpus(1, attributes={"model": {"string": "B200"}}))
    cluster.holder("a", "n2", "0", owner="DaemonSet")
    cluster.template("wanted", asking(cls="gpu-large")).waiting()
    assert checked(cluster) == [
        "Ask for class gpu instead of gpu-large in request gpus of template wanted.",
        "Ask for class gpu-h100 instead of gpu-large in request gpus of template wanted.",
    ]


def test_a_class_of_a_similar_name() -> None:
    """A class that does not exist is replaced by one with nearly its name."""
    cluster = Cluster().node("n1", 2).device_class("nic")
    cluster.template("wanted", asking(cls="gpus")).waiting()
    assert checked(cluster) == [
        "Ask for class gpu instead of gpus in request gpus of template wanted."
    ]


def test_a_label_that_nodes_are_selected_by() -> None:
    """The label in the way is dropped, or given to a node that has none of that key."""
    cluster = Cluster().node("n1", labels={"pool": "a"}).node("n2", labels={"disk": "ssd"})
    cluster.waiting(nodeSelector={"pool": "b", "disk": "ssd"})
    assert checked(cluster) == [
        "Drop pool=b from the pod's node selector.",
        "Label node n2 with pool=b.",
    ]


def test_a_whole_node_selector() -> None:
    """Labels that are all in the way are dropped together; those that Kubernetes gives are not given by hand."""
    cluster = Cluster().node("n1")
    labels = {"kubernetes.io/arch": "arm64", "topology.kubernetes.io/zone": "b"}
    cluster.waiting(nodeSelector=labels)
    assert checked(cluster) == ["Drop the pod's node selector."]


def node_affinity(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = [{"matchExpressions": list(expressions)}]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def test_a_condition_of_node_affinity() -> None:
    """Of several conditions the one in the way is dropped."""
    cluster = Cluster().node("n1", labels={"disk": "ssd"})
    disk = {"key": "disk", "operator": "In", "values": ["ssd"]}
    pool = {"key": "pool", "operator": "Exists"}
    cluster.waiting(affinity=node_affinity(disk, pool))
    assert checked(cluster) == ["Drop `pool Exists` from the pod's node affinity."]


def test_node_affinity_as_a_whole() -> None:
    """A single condition is dropped with the affinity that it is."""
    cluster = Cluster().node("n1")
    cluster.waiting(affinity=node_affinity({"key": "pool", "operator": "Exists"}))
    assert checked(cluster) == ["Drop the pod's required node affinity."]


def pod_term(app: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    return {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}


def test_pod_affinity() -> None:
    """A pod that wants to be with one that does not exist fits without that."""
    cluster = Cluster().node("n1", labels={"kubernetes.io/hostname": "n1"})
    cluster.waiting(affinity={"podAffinity": {REQUIRED: [pod_term("db")]}})
    assert checked(cluster) == ["Drop the pod's required pod affinity."]


def test_spreading() -> None:
    """A constraint that leaves no domain becomes a wish."""
    cluster = Cluster().node("n1", labels={"zone": "a"}).node("n2", labels={"zone": "b"})
    spread = {
        "maxSkew": 1,
        "topologyKey": "rack",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    cluster.waiting(labels={"app": "web"}, topologySpreadConstraints=[spread])
    assert checked(cluster) == [
        "Let the pod be spread over rack only where possible (ScheduleAnyway)."
    ]


def test_a_port_of_the_node() -> None:
    """A host port that is taken everywhere can be done without, or its user can go."""
    cluster = Cluster().node("n1").holder("a", "n1", host_port=8080).waiting(host_port=8080)
    assert checked(cluster) == [
        "Delete pod default/a.",
        "Do without host port 8080 in container main.",
    ]


def test_requests_that_compete() -> None:
    """Two requests for the same device fit if one may have another."""
    cluster = Cluster().node("n1", [*gpus(1), {**gpus(2)[1], "attributes": {}}])
    only = f'"model" in device.attributes["{GPU}"]'
    spec = asking(request("one", select=(only,)), request("two", select=(only,)))
    cluster.template("wanted", spec).waiting()
    assert checked(cluster) == [
        f"Drop the selector `{only}` of request one of template wanted.",
        f"Drop the selector `{only}` of request two of template wanted.",
    ]
