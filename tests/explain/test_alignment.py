"""What is said about stated alignments: the level that is reached, its score, what else there is, and what is wrong."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from drayman.api.alignment import ALIGN
from drayman.cli.explain.drawing import Drawing
from drayman.explain.answer import Explanation
from drayman.explain.claim import explain_claim
from drayman.explain.pod import explain_pod
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.placements import Placement
from drayman.reasons.reason import Reason
from explain.town import NIC, ROOT, Town
from oracle.build import claim, device, exactly

NUMA = "resource.kubernetes.io/numaNode"


def town(**nodes: tuple[tuple[str, int], tuple[str, int]]) -> Town:
    """Nodes with a GPU and a network card each, by root and NUMA node."""
    made = Town()
    for name, ((gpu_root, gpu_numa), (nic_root, nic_numa)) in nodes.items():
        made.node(name, [device("gpu", attrs={ROOT: gpu_root, NUMA: gpu_numa})])
        made.slice(
            [device("nic", attrs={ROOT: nic_root, NUMA: nic_numa})],
            driver=NIC,
            pool=name,
            nodeName=name,
        )
    return made


NEAR, SAME_NUMA, FAR = (
    (("r0", 0), ("r0", 0)),
    (("r0", 0), ("r1", 0)),
    (("r0", 0), ("r1", 1)),
)


def pair(**fields: Any) -> Any:
    return claim(exactly("gpu", cls="gpu"), exactly("nic", cls="nic"), **fields)


def test_the_level_that_would_be_reached_and_the_others() -> None:
    """A pod that fits says which level, with what score, and on how many nodes each level is the best."""
    made = town(a=FAR, b=SAME_NUMA, c=SAME_NUMA)
    found = made.wants(pair(align="pcieRoot > numaNode > any")).explain()
    assert found.node == "b"
    (stated,) = found.alignment
    assert (stated.claim, stated.requests) == ("c0", ("gpu", "nic"))
    assert (stated.level, stated.score, stated.wanted_by) == ("numaNode", 50, "claim")
    assert [(c.level, c.score, c.nodes) for c in stated.choices] == [
        ("pcieRoot", 100, 0),
        ("numaNode", 50, 2),
        ("any", 0, 1),
    ]
    assert [item.quality["alignment"] for item in found.alternatives] == [1, 1, 2]


def test_what_a_running_pod_has_reached() -> None:
    """From the annotation of its claim, written with the devices; beside it what nodes would offer now."""
    made = town(a=NEAR, b=FAR).wants(pair(align="pcieRoot > any"))
    world = made.world()
    pod = world.pod("default", "pending")
    assert pod is not None
    placement = Decider(world.state).round(world.now).decide(pod)
    assert isinstance(placement, Placement)
    written = placement.claims[0]
    made.claims[0]["metadata"]["annotations"] = dict(written.metadata.annotations)
    allocation = {"devices": {"results": _results("a")}, "nodeSelector": None}
    user = {"resource": "pods", "name": "pending", "uid": "uid-pending"}
    made.claims[0]["status"] = {"allocation": allocation, "reservedFor": [user]}
    made.pods[0]["spec"]["nodeName"] = "a"
    world = made.world()
    pod = world.pod("default", "pending")
    assert pod is not None
    (stated,) = explain_pod(world, pod).alignment
    assert (stated.level, stated.score) == ("pcieRoot", 100)
    assert [choice.nodes for choice in stated.choices] == [1, 1]
    (held,) = world.objects.claims
    of_claim = explain_claim(world, held)
    assert [(s.level, s.requests) for s in of_claim.alignment] == [("pcieRoot", ("gpu", "nic"))]
    assert "pcieRoot, score 100 of 100" in _text(of_claim)


def _results(node: str) -> list[dict[str, str]]:
    return [
        {"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": "gpu"},
        {"request": "nic", "driver": NIC, "pool": node, "device": "nic"},
    ]


def _text(found: Explanation) -> str:
    console = Console(file=StringIO(), width=120)
    console.print(Drawing(found, 0.0))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_level_that_is_free_nowhere_is_not_here() -> None:
    """Each request could be served, but not so close together: waiting helps if the node could, and never if none can."""
    made = town(a=FAR).wants(pair(align="numaNode")).explain()
    assert made.headline.reason is Reason.CONSTRAINT_UNMEETABLE
    assert "aligned at numaNode" in made.headline.sentence
    mixed = Town().node("a", [device(f"g{n}", attrs={ROOT: f"r{n}", NUMA: n}) for n in (0, 1)])
    cards = [device(f"n{n}", attrs={ROOT: f"r{n}", NUMA: n}) for n in (0, 1)]
    mixed.slice(cards, driver=NIC, pool="a", nodeName="a").holds("x", "a", "g0")
    mixed.holds("y", "a", "n1", driver=NIC)
    found = mixed.wants(pair(align="numaNode")).explain()
    assert found.headline.reason is Reason.MISALIGNED
    assert "no choice of them is aligned at numaNode" in found.headline.sentence


@pytest.mark.parametrize(
    ("align", "why"),
    [
        ("numa", "the pod's annotation drayman.dev/align has 'numa', which is not a level"),
        ("x: any", "names x, which is not one of its claims"),
        ("c0/tpu: any", "names c0/tpu, and the claim has no such request"),
    ],
)
def test_a_pod_says_what_is_wrong_with_its_statement(align: str, why: str) -> None:
    """An API server that knows nothing of it accepts any text."""
    annotated = {"annotations": {ALIGN: align}}
    found = town(a=NEAR).wants(pair(), metadata=annotated).explain()
    assert found.headline.reason is Reason.CLAIM_INVALID
    assert why in found.headline.sentence


def test_a_claim_says_what_is_wrong_with_its_statement() -> None:
    """Likewise, with the field."""
    found = town(a=NEAR).wants(pair(align="gpus: any")).explain()
    assert found.headline.reason is Reason.CLAIM_INVALID
    assert "annotation drayman.dev/align names gpus, which is not a request" in (
        found.headline.sentence
    )


PARAMETERS = {"apiVersion": "drayman.dev/v1alpha1", "kind": "AlignmentPolicy"}
CONFIG = {"opaque": {"driver": "drayman.dev", "parameters": {**PARAMETERS, "levels": ["pcieRoot"]}}}


@pytest.mark.parametrize(
    ("claim_fields", "pod_fields", "sentence", "patch"),
    [
        pytest.param(
            {"align": "gpu, nic: pcieRoot; gpu: numaNode > any"},
            {},
            "Let drayman.dev/align of claim c0 end in any, so that it is only preferred.",
            {
                "path": "/metadata/annotations/drayman.dev~1align",
                "value": "gpu, nic: pcieRoot > any; gpu: numaNode > any",
            },
            id="claim",
        ),
        pytest.param(
            {},
            {"metadata": {"annotations": {ALIGN: "c0: numaNode"}}},
            "Let drayman.dev/align of the pod end in any, so that it is only preferred.",
            {"path": "/metadata/annotations/drayman.dev~1align", "value": "c0: numaNode > any"},
            id="pod",
        ),
        pytest.param(
            {"config": [CONFIG]},
            {},
            "Add any to the levels of AlignmentPolicy in claim c0.",
            {"path": "/spec/devices/config/0/opaque/parameters/levels/1", "value": "any"},
            id="configuration",
        ),
    ],
)
def test_a_requirement_may_become_a_wish(
    claim_fields: Any, pod_fields: Any, sentence: str, patch: dict[str, str]
) -> None:
    """The first remedy for a level that cannot be reached: tried by a search, and exact enough for a program."""
    world = town(a=FAR).wants(pair(**claim_fields), **pod_fields).world()
    pod = world.pod("default", "pending")
    assert pod is not None
    found = explain_pod(world, pod)
    assert found.headline.reason is Reason.CONSTRAINT_UNMEETABLE
    first = found.remedies[0]
    assert (first.sentence, first.node) == (sentence, "a")
    (operation,) = first.operations
    assert operation.patch == ({"op": "add", **patch},)
