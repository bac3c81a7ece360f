"""`drayman explain` of pods that start together: the pod, its group and its Job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from drayman.api.codec import convert
from drayman.api.custom_groups import KaiPodGroup, PluginPodGroup
from drayman.api.jobs import Job
from drayman.api.pod_groups import PodGroup
from drayman.cli.main import cli
from drayman.placement.world import World
from drayman.simulate.snapshot import snapshot
from simulate.cluster import claim, cluster, held, node, pod

RACK = "topology.kubernetes.io/rack"
METADATA = {"name": "ring", "namespace": "default", "uid": "ring"}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "train"}


def explain(folder: Path, world: World, *words: str) -> Result:
    file = folder / "cluster.yaml"
    file.write_bytes(b"".join(b"---\n%b\n" % text for text in snapshot(world)))
    return CliRunner().invoke(cli, ["explain", *words, "--snapshot", str(file)])


def racks(**objects: Any) -> World:
    """Two racks with two nodes each, of one device each."""
    names = {"node-a1": "a", "node-a2": "a", "node-b1": "b", "node-b2": "b"}
    nodes = tuple(node(name, labels={RACK: rack}) for name, rack in names.items())
    return cluster(dict.fromkeys(names, 1), nodes=nodes, **objects)


def in_one_rack(number: int) -> World:
    """A gang of so many pods that has to be in one rack."""
    spec = {
        "schedulingPolicy": {"gang": {"minCount": number}},
        "schedulingConstraints": {"topology": [{"key": RACK}]},
    }
    ring: dict[str, Any] = {"schedulingGroup": {"podGroupName": "ring"}}
    return racks(
        pods=tuple(pod(f"ring-{n}", claim=f"c{n}", **ring) for n in range(number)),
        claims=tuple(claim(f"c{n}") for n in range(number)),
        pod_groups=(convert(PodGroup, {"metadata": METADATA, "spec": spec}),),
    )


def test_a_pod_of_a_gang_without_room(tmp_path: Path) -> None:
    """The reason is that of the gang, with what each rack holds, what becomes of each member, and what would help."""
    result = explain(tmp_path, in_one_rack(3), "pod/ring-0")
    assert result.exit_code == 1
    assert result.stdout.startswith(
        "GangOversized (never): Pod group default/ring has to be in one"
    )
    lines = result.stdout.splitlines()
    start = lines.index("the gang (pod group default/ring)")
    assert lines[start : start + 9] == [
        "the gang (pod group default/ring)",
        "  3 pods start together: 2 would fit, 1 without room",
        "  domain  holds with nothing in use",
        "  rack a                     2 of 3",
        "  rack b                     2 of 3",
        "  pod                  node",
        "  ring-0  would go to  node-a1",
        "  ring-1  would go to  node-a2",
        "  ring-2  no room",
    ]
    assert "  1. Let 2 pods of pod group default/ring start together instead of 3." in lines
    assert max(map(len, lines)) <= 80


def test_the_group_says_the_same(tmp_path: Path) -> None:
    """The first line of the group is that of its pods, as text and as data."""
    world = in_one_rack(3)
    of_pod = explain(tmp_path, world, "pod/ring-1").stdout.partition("\npod ")[0]
    result = explain(tmp_path, world, "podgroup/ring")
    assert result.exit_code == 1
    assert result.stdout.partition("\npodgroup ")[0] == of_pod
    data = json.loads(explain(tmp_path, world, "podgroup", "ring", "-o", "json").stdout)
    assert data["gang"]["needs"] == 3
    assert [each["holds"] for each in data["gang"]["domains"]] == [[2], [2]]
    assert [each["state"] for each in data["gang"]["members"]] == ["fits", "fits", "no room"]


def test_a_gang_that_fits(tmp_path: Path) -> None:
    """A pod fits together with the others."""
    result = explain(tmp_path, in_one_rack(2), "pod/ring-0")
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert said.startswith(
        "Fits: The pod can go to node node-a1, together with 1 other pod of pod group default/ring."
    )
    whole = explain(tmp_path, in_one_rack(2), "podgroup/ring")
    assert whole.exit_code == 0
    assert whole.stdout.startswith("Fits: 2 pods of pod group default/ring can start.")


def test_a_job_whose_pods_are_a_gang(tmp_path: Path) -> None:
    """All of its pods wait, for one reason."""
    said = {"drayman.dev/gang": "5"}
    metadata = {"name": "train", "namespace": "default", "uid": "train", "annotations": said}
    owned = {"ownerReferences": [{**OWNER, "controller": True}], "annotations": said}
    world = racks(
        jobs=(convert(Job, {"metadata": metadata, "spec": {"parallelism": 5}}),),
        pods=tuple(pod(f"train-{n}", claim=f"c{n}", metadata=owned) for n in range(5)),
        claims=tuple(claim(f"c{n}") for n in range(5)),
    )
    result = explain(tmp_path, world, "job/train", "-o", "json")
    assert result.exit_code == 1, result.output
    data = json.loads(result.stdout)
    assert data["headline"]["reason"] == "GangOversized"
    assert data["headline"]["sentence"].startswith(
        "5 of 5 pods wait: Gang default/job/train: even with nothing in use, the cluster holds 4 of 5"
    )
    (part,) = data["parts"]
    assert (part["count"], part["gang"]["name"]) == (5, "gang default/job/train")


GROUPS = {
    "podgroups.scheduling.x-k8s.io/ring": "Pod group default/ring has 0 of the 4 pods",
    "podgroups.scheduling.run.ai/ring": "Pod group default/ring has 0 of the 3 pods",
    "podgroups.scheduling.k8s.io/ring": "The group is not a gang, and no pod is in it.",
    "podgroup/ring": "The group is not a gang, and no pod is in it.",
}


@pytest.mark.parametrize("words", GROUPS)
def test_groups_of_one_name(tmp_path: Path, words: str) -> None:
    """The API group says which of them is meant; Kubernetes' own comes first."""
    basic = {"schedulingPolicy": {"basic": {}}}
    world = racks(
        pod_groups=(convert(PodGroup, {"metadata": METADATA, "spec": basic}),),
        plugin_pod_groups=(convert(PluginPodGroup, {"metadata": METADATA, "spec": {"minMember": 4}}),),
        kai_pod_groups=(convert(KaiPodGroup, {"metadata": METADATA, "spec": {"minMember": 3}}),),
    )  # fmt: skip
    assert GROUPS[words] in " ".join(explain(tmp_path, world, words).stdout.split())


def test_room_in_the_wrong_places(tmp_path: Path) -> None:
    """The command that looks for pods to move is named, for what was asked about."""
    ring: dict[str, Any] = {"schedulingGroup": {"podGroupName": "ring"}}
    holders = {"h": "node-a1", "i": "node-b1"}
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "schedulingConstraints": {"topology": [{"key": RACK}]},
    }
    world = racks(
        pods=(
            *(pod(f"p-{name}", nodeName=place, claim=name) for name, place in holders.items()),
            *(pod(f"ring-{n}", claim=f"c{n}", **ring) for n in range(2)),
        ),
        claims=(
            *(held(name, place, "gpu-0") for name, place in holders.items()),
            *(claim(f"c{n}") for n in range(2)),
        ),
        pod_groups=(convert(PodGroup, {"metadata": METADATA, "spec": spec}),),
    )
    for subject in ("podgroup/ring", "pod/ring-1"):
        result = explain(tmp_path, world, subject)
        assert result.stdout.startswith("GangScattered (not here)")
        assert (
            f"which pods to move (if that makes room)\n  drayman defrag --for {subject} -n default\n"
            in result.stdout
        )


def test_an_annotation_that_makes_no_sense_needs_no_remedy(tmp_path: Path) -> None:
    """The sentence says what to change."""
    stated = {"annotations": {"drayman.dev/gang": "two", "drayman.dev/gang-name": "g"}}
    result = explain(tmp_path, racks(pods=(pod("p", "one", metadata=stated),)), "pod/p")
    assert result.stdout.startswith("GangInvalid (never)")
    assert "what would help" not in result.stdout
