"""Where simulated volumes are."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.storage import PersistentVolume
from drayman.placement.fit.volume_matching import reaches
from drayman.workloads.volumes.provisioning import simulated_volume
from placement.fit.objects import facts
from placement.fit.storage import HOST, ZONE, claim, storage_class

RACK = "example.com/rack"
NODES = {
    "n1": {HOST: "n1", ZONE: "a", RACK: "r1"},
    "n2": {HOST: "n2", ZONE: "a", RACK: "r2"},
    "n3": {HOST: "n3", ZONE: "b", RACK: "r1"},
}


def allowed(**places: tuple[str, ...]) -> dict[str, Any]:
    keys = {"zone": ZONE, "rack": RACK}
    expressions = [{"key": keys[name], "values": list(v)} for name, v in places.items()]
    return {"allowedTopologies": [{"matchLabelExpressions": expressions}]}


CASES: dict[str, tuple[dict[str, Any], str, set[str]]] = {
    "for a node, in its zone": ({}, "n1", {"n1", "n2"}),
    "for a node, by what the class allows": (allowed(rack=("r1", "r2")), "n1", {"n1", "n3"}),
    "for a node, by all that the class allows": (
        allowed(rack=("r1",), zone=("a", "b")),
        "n3",
        {"n3"},
    ),
    "for nobody": ({}, "", {"n1", "n2", "n3"}),
    "for nobody, where the class allows": (allowed(zone=("b",)), "", {"n3"}),
}


@pytest.mark.parametrize(("fields", "node", "reached"), CASES.values(), ids=CASES)
def test_from_where_a_volume_can_be_reached(
    fields: dict[str, Any], node: str, reached: set[str]
) -> None:
    """A volume that was made for a node is where the node is; another is where its class allows."""
    found = made(fields, {"name": node, "labels": NODES[node]} if node else None)
    assert {n for n, labels in NODES.items() if reaches(found, facts(n, labels=labels))} == reached


def test_a_node_without_a_zone_has_a_volume_of_its_own() -> None:
    """Its name stands for the host where even that label is missing."""
    for labels in ({HOST: "n1"}, {}):
        found = made({}, {"name": "n1", "labels": labels})
        assert reaches(found, facts("n1", labels={HOST: "n1"}))
        assert not reaches(found, facts("n2", labels={HOST: "n2"}))


def made(fields: dict[str, Any], metadata: dict[str, Any] | None) -> PersistentVolume:
    node = None if metadata is None else convert(Node, {"metadata": metadata})
    of_class = storage_class("fast", "ebs.csi.aws.com", **fields)
    return convert(PersistentVolume, simulated_volume(claim(), of_class, node))
