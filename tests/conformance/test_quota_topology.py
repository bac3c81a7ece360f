"""The recorded scenarios of topology-aware placement: the places themselves, with the recorded order of events.

Who is admitted when is not decided here. Each recorded reservation is placed on top of those before it and has to get the recorded domains;
each workload that was refused for its topology has to be refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from conformance.records import REFERENCE
from drayman.api import codec
from drayman.api.core import Node, Pod
from drayman.api.kueue import pod_template_of
from drayman.api.kueue_workload import WorkloadSpec
from drayman.placement.fit.requests import requests_of
from drayman.quota.demands import NotPlaced, Placement, TopologyDemand
from drayman.quota.topology.flavor import FlavorTopology
from drayman.quota.topology.usage import DomainUsage

FILE = REFERENCE / "quota" / "scenarios.jsonl"
FAMILY = "topology"


def scenarios() -> list[dict[str, Any]]:
    if not FILE.is_file():
        return []
    found = map(json.loads, FILE.read_text().splitlines())
    return [scenario for scenario in found if scenario["family"] == FAMILY]


class Story:
    """A scenario as it goes on."""

    def __init__(self) -> None:
        self.topology: FlavorTopology | None = None
        self.nodes: list[Node] = []
        self.levels: list[str] = []
        self.used = DomainUsage()
        self.specs: dict[str, WorkloadSpec] = {}
        self.held: dict[str, list[tuple[str, Placement, TopologyDemand]]] = {}

    def create(self, document: dict[str, Any]) -> None:
        match document["kind"]:
            case "Topology":
                self.levels = [level["nodeLabel"] for level in document["spec"]["levels"]]
            case "Node":
                self.nodes.append(codec.convert(Node, document))
            case "ResourceFlavor":
                labels = document["spec"]["nodeLabels"]
                self.topology = FlavorTopology("t", self.levels, labels)
                for node in self.nodes:
                    self.topology.set_node(node, {})
            case "Workload":
                key = f"{document['metadata']['namespace']}/{document['metadata']['name']}"
                self.specs[key] = codec.convert(WorkloadSpec, document["spec"])

    def place(self, key: str) -> list[tuple[str, Placement, TopologyDemand]] | NotPlaced:
        assert self.topology is not None
        found: list[tuple[str, Placement, TopologyDemand]] = []
        with self.used.trial():
            for pod_set in self.specs[key].pod_sets:
                pod = Pod(spec=pod_template_of(pod_set.template).spec)
                assert pod_set.topology_request is not None
                asked = TopologyDemand(
                    pod_set.name,
                    pod_set.count,
                    requests_of(pod).amounts,
                    {},
                    None,
                    (),
                    pod_set.topology_request,
                )
                result = self.topology.place([asked], self.used)
                if isinstance(result, NotPlaced):
                    return result
                self.used.add(result[pod_set.name], asked.per_pod)
                found.append((pod_set.name, result[pod_set.name], asked))
        return found

    def reserve(self, key: str) -> None:
        found = self.place(key)
        assert not isinstance(found, NotPlaced), f"{key}: {found.message}"
        self.held[key] = found
        for _, placement, asked in found:
            self.used.add(placement, asked.per_pod)

    def release(self, key: str) -> None:
        for _, placement, asked in self.held.pop(key, []):
            self.used.remove(placement, asked.per_pod)


def recorded(workload: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {
        each["name"]: sorted([values, count] for values, count in each["topology"]["domains"])
        for each in workload["podSets"]
    }


def compare(story: Story, checkpoint: dict[str, Any]) -> None:
    for event in checkpoint["events"]:
        story.release(event["workload"])
        if event["type"] == "reserved":
            story.reserve(event["workload"])
    for key, workload in checkpoint["workloads"].items():
        if workload["status"] == "admitted":
            given = {
                name: sorted([list(domain), count] for domain, count in placement.domains)
                for name, placement, _ in story.held[key]
            }
            assert given == recorded(workload), key
        elif workload.get("conditions", {}).get("QuotaReserved") == [
            "False",
            "TopologyPlacementFailed",
        ]:
            assert isinstance(story.place(key), NotPlaced), key


@pytest.mark.skipif(not FILE.is_file(), reason="../shared/conformance/quota is not there")
@pytest.mark.parametrize("scenario", [pytest.param(s, id=s["name"]) for s in scenarios()])
def test_places_are_the_recorded_ones(scenario: dict[str, Any]) -> None:
    """Every pod set gets the recorded number of pods in each recorded domain."""
    story = Story()
    checkpoints = iter(scenario["outcomes"][0])
    for step in scenario["steps"]:
        for document in step.get("create", ()):
            story.create(document)
        if "finish" in step:
            story.release(f"{step['finish']['namespace']}/{step['finish']['name']}")
        if "settle" in step:
            compare(story, next(checkpoints))
