"""Shapes: what makes pods, and nodes, the same to scheduling."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.placement.fit import PodNeeds
from placement.fit.objects import container, facts, make_pod, near, needs, required, selects, taint

SAME_PODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "names, uids and labels": ({"name": "a", "labels": {"x": "1"}}, {"name": "b"}),
    "another way to write a quantity": (
        {"requests": {"cpu": "1", "memory": "1Gi"}},
        {"requests": {"memory": "1024Mi", "cpu": "1000m"}},
    ),
    "claims": ({"resourceClaims": [{"name": "a"}]}, {}),
    "priority": ({"priority": 5}, {}),
    "how long a taint is tolerated": (
        {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 3}]},
        {"tolerations": [{"key": "a", "operator": "Exists"}]},
    ),
    "volumes that tie to no node": ({"volumes": [{"name": "a", "emptyDir": {}}]}, {}),
}
OTHER_PODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "resources": ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}),
    "ports": ({"containers": [container(ports=[{"hostPort": 1}])]}, {}),
    "tolerations": ({"tolerations": [{"operator": "Exists"}]}, {}),
    "selectors": ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "c"}}),
    "affinity": ({"affinity": required(near(selects(a="b")))}, {}),
    "anti-affinity": (
        {"affinity": required(near(selects(a="b")))},
        {"affinity": required(near(selects(a="b")), anti=True)},
    ),
    "claims of volumes": (
        {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "x"}}]},
        {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "y"}}]},
    ),
    "node names": ({"nodeName": "a"}, {}),
}


@pytest.mark.parametrize(("one", "two"), SAME_PODS.values(), ids=SAME_PODS)
def test_pods_of_one_shape(one: dict[str, Any], two: dict[str, Any]) -> None:
    """What scheduling does not look at is not in the key."""
    assert needs(**one).key is needs(**two).key


@pytest.mark.parametrize(("one", "two"), OTHER_PODS.values(), ids=OTHER_PODS)
def test_pods_of_other_shapes(one: dict[str, Any], two: dict[str, Any]) -> None:
    """What scheduling looks at is in the key."""
    assert needs(**one).key is not needs(**two).key


def test_social_keys() -> None:
    """To other pods, labels and namespace make a difference."""
    one, two = needs(labels={"a": "b"}), needs(labels={"a": "b"})
    assert one.neighbour_key == two.neighbour_key
    assert one.neighbour_key != needs(labels={"a": "c"}).neighbour_key
    assert one.neighbour_key != needs(labels={"a": "b"}, namespace="other").neighbour_key


def test_shapes_that_look_at_names() -> None:
    """A shape knows whether nodes that differ only in name differ for it."""
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    terms = {"nodeSelectorTerms": [field]}
    by_field = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert needs(nodeName="a").shape.by_name
    assert needs(nodeSelector={"kubernetes.io/hostname": "a"}).shape.by_name
    assert needs(affinity=by_field).shape.by_name
    assert not needs(nodeSelector={"zone": "a"}).shape.by_name


def test_a_pod_that_changes_gets_its_new_shape() -> None:
    """Needs follow the pod: a changed spec is another shape, the former one again the former shape."""
    before = make_pod({"cpu": "1"})
    after = make_pod({"cpu": "2"})
    first = PodNeeds.of(before).shape
    assert PodNeeds.of(after).shape is not first
    assert PodNeeds.of(before).shape is first


def test_node_keys() -> None:
    """Nodes of one make have one key, whatever their names; a label, a taint or an amount makes another."""
    key = facts("a", labels={"zone": "a"}).shape
    assert facts("b", labels={"zone": "a"}).shape is key
    others = [
        facts("b", labels={"zone": "b"}),
        facts("b", labels={"zone": "a"}, taints=[taint("x")]),
        facts("b", labels={"zone": "a"}, unschedulable=True),
        facts("b", labels={"zone": "a"}, allocatable={"cpu": "1"}),
    ]
    assert all(other.shape is not key for other in others)
