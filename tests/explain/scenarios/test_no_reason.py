"""Scenarios of pods that need not wait: they fit, they run, or they have run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, ROOT, Scene
from explain.scenarios.telling import Scenario, check, explain, named
from oracle.build import claim, exactly, first_available


def pair_on_a_switch() -> Scene:
    scene = Scene("dgx-h100=2").holds("bert", "dgx-h100-0", "gpu-0 gpu-1 gpu-2 gpu-3 gpu-4 gpu-5")
    asked = claim(exactly("gpu", cls=NVIDIA), exactly("nic", cls="rdma"), match=[ROOT])
    return scene.waits("sender", {"pair": asked})


def second_choice() -> Scene:
    large = exactly("eight", 8, cls=NVIDIA)
    small = exactly("four", 4, cls=NVIDIA)
    scene = Scene("dgx-h100=1").holds("bert", "dgx-h100-0", "gpu-0 gpu-1 gpu-2")
    return scene.waits("llama", {"gpus": claim(first_available("gpus", large, small))})


def nothing_but_a_processor() -> Scene:
    return Scene("cpu=1", "dgx-h100=1").waits(
        "etl", cpu=4, memory="8Gi", nodeSelector={"kubernetes.io/hostname": "cpu-0"}
    )


def device_plugin_style() -> Scene:
    scene = Scene().device_class("plain", extendedResourceName="example.com/gpu")
    return (
        scene.node("node-a", 1).node("node-b", 4).waits("legacy", extended={"example.com/gpu": 2})
    )


def claim_with_room() -> Scene:
    scene = Scene("dgx-h100=2").holds("reader-0", "dgx-h100-1", "gpu-2")
    return scene.waits("reader-1", {"reader-0-claim": None})


def training() -> Scene:
    scene = Scene("dgx-h100=2").holds("bert", "dgx-h100-0", "gpu-0 gpu-1 gpu-2 gpu-3")
    return scene.holds("llama", "dgx-h100-1", "gpu-0 gpu-1 gpu-2 gpu-3")


def cordoned_since() -> Scene:
    scene = Scene("dgx-h100=2").holds("llama", "dgx-h100-1", "gpu-0 gpu-1")
    scene.objects["nodes"][1].setdefault("spec", {})["unschedulable"] = True
    return scene


def has_succeeded() -> Scene:
    scene = Scene("dgx-h100=1").holds("llama", "dgx-h100-0", "gpu-0 gpu-1")
    scene.objects["pods"][-1]["status"]["phase"] = "Succeeded"
    return scene


def has_failed() -> Scene:
    scene = Scene("dgx-h100=1").runs("llama", "dgx-h100-0", cpu=2)
    ends = [
        {
            "name": "main",
            "state": {"terminated": {"exitCode": 137, "signal": 9, "reason": "Error"}},
        },
        {"name": "log", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
        {"name": "web", "state": {"terminated": {"exitCode": 3, "message": "no data.\n"}}},
    ]
    scene.objects["pods"][-1]["status"] = {"phase": "Failed", "containerStatuses": ends}
    return scene


def was_evicted() -> Scene:
    scene = Scene("dgx-h100=1").runs("llama", "dgx-h100-0", cpu=2)
    why = {"reason": "Evicted", "message": "The node was low on resource: memory."}
    scene.objects["pods"][-1]["status"] = {"phase": "Failed", **why}
    return scene


def failed_without_a_word() -> Scene:
    scene = Scene("dgx-h100=1").runs("llama", "dgx-h100-0", cpu=2)
    scene.objects["pods"][-1]["status"] = {"phase": "Failed"}
    return scene


def failed_without_a_node() -> Scene:
    scene = Scene("dgx-h100=1").waits("llama", cpu=2)
    scene.objects["pods"][-1]["status"] = {"phase": "Failed", "reason": "Shutdown"}
    return scene


SCENARIOS = (
    Scenario(
        name="a GPU and the NIC of its switch are free",
        scene=pair_on_a_switch,
        reason=Reason.FITS,
        says=("node dgx-h100-0", "gpu-6", "pci-0000-ce-00-0"),
        funnels={
            "gpu": "node fit 2/40, class 2/16, free 2/10, taints 2/10, constraint 2/10, count 2/10",
            "nic": "node fit 2/40, class 2/16, free 2/16, taints 2/16, constraint 2/10, count 2/10",
        },
    ),
    Scenario(
        name="the second choice fits",
        scene=second_choice,
        reason=Reason.FITS,
        says=("node dgx-h100-0", "gpu-4", "gpu-5", "gpu-6 and 1 more"),
        funnels={
            "gpus/eight": "node fit 1/20, class 1/8, free 1/5, taints 1/5, count 0/0",
            "gpus/four": "node fit 1/20, class 1/8, free 1/5, taints 1/5, count 1/5",
        },
    ),
    Scenario(
        name="a pod without devices fits",
        scene=nothing_but_a_processor,
        reason=Reason.FITS,
        says="The pod can go to node cpu-0.",
        fit="node selector 1",
    ),
    Scenario(
        name="extended resources are served by devices",
        scene=device_plugin_style,
        reason=Reason.FITS,
        says=("node node-b", "gpu-0", "gpu-1"),
        funnels={
            "container-0-request-0": "node fit 2/5, class 2/5, free 2/5, taints 2/5, count 1/4"
        },
    ),
    Scenario(
        name="a claim that another pod uses takes one more",
        scene=claim_with_room,
        reason=Reason.FITS,
        says="The pod can go to node dgx-h100-1.",
        fit="allocated claims 1",
    ),
    Scenario(
        name="a training runs beside another",
        scene=training,
        reason=Reason.RUNS,
        says="The pod is on node dgx-h100-1.",
    ),
    Scenario(
        name="the node was cordoned after the pod got it",
        scene=cordoned_since,
        reason=Reason.RUNS,
        says="The pod is on node dgx-h100-1.",
    ),
    Scenario(
        name="the pod has succeeded",
        scene=has_succeeded,
        reason=Reason.RUNS,
        says="The pod has finished: Succeeded.",
    ),
    Scenario(
        name="the pod has failed",
        scene=has_failed,
        reason=Reason.FAILED,
        says="The pod has failed on node dgx-h100-0: container main ended with signal 9 (Error);"
        " container web ended with exit code 3: no data.",
    ),
    Scenario(
        name="the pod was evicted by its node",
        scene=was_evicted,
        reason=Reason.FAILED,
        says="The pod has failed on node dgx-h100-0 (Evicted): The node was low on resource: memory.",
    ),
    Scenario(
        name="the pod has failed and does not say why",
        scene=failed_without_a_word,
        reason=Reason.FAILED,
        says="The pod has failed on node dgx-h100-0. Its status does not say why; its events may:"
        " kubectl describe pod llama -n default.",
    ),
    Scenario(
        name="the pod has failed before it had a node",
        scene=failed_without_a_node,
        reason=Reason.FAILED,
        says="The pod has failed (Shutdown).",
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)


PLACES: list[tuple[Callable[[], Scene], str, str, tuple[str, ...]]] = [
    (pair_on_a_switch, "dgx-h100-0", "gpu-6 pci-0000-ce-00-0", ("dgx-h100-0 *", "dgx-h100-1")),
    (second_choice, "dgx-h100-0", "gpu-4 gpu-5 gpu-6 gpu-7", ("dgx-h100-0 *",)),
    (nothing_but_a_processor, "cpu-0", "", ("cpu-0 *",)),
    (device_plugin_style, "node-b", "gpu-0 gpu-1", ("node-b *",)),
    (claim_with_room, "dgx-h100-1", "", ("dgx-h100-1 *",)),
    (training, "dgx-h100-1", "gpu-0 gpu-1 gpu-2 gpu-3", ("dgx-h100-0", "dgx-h100-1 *")),
    (cordoned_since, "dgx-h100-1", "gpu-0 gpu-1", ("dgx-h100-0", "dgx-h100-1 * cordoned")),
    (has_succeeded, "dgx-h100-0", "", ()),
    (has_failed, "dgx-h100-0", "", ()),
    (was_evicted, "dgx-h100-0", "", ()),
    (failed_without_a_word, "dgx-h100-0", "", ()),
    (failed_without_a_node, "", "", ()),
]
"""By scene: the node of the pod, its devices, and the nodes it could have, the best first; the star is at its own."""


@pytest.mark.parametrize(
    ("scene", "node", "devices", "nodes"), PLACES, ids=[place[0].__name__ for place in PLACES]
)
def test_where_it_is_and_could_be(
    scene: Callable[[], Scene], node: str, devices: str, nodes: tuple[str, ...]
) -> None:
    """For what fits or runs: where, with what, and what the other nodes would have to offer."""
    found = explain(scene().world(), "pod")
    assert (found.node, short(found.devices)) == (node, devices)
    others = [
        f"{each.node}{' *' if each.chosen else ''} {each.refusal}".rstrip()
        for each in found.alternatives
    ]
    assert tuple(others) == nodes


def test_every_scenario_says_where() -> None:
    """The table above has a line for each scenario."""
    assert [place[0] for place in PLACES] == [scenario.scene for scenario in SCENARIOS]


def short(devices: Iterable[str]) -> str:
    return " ".join(device.rpartition("/")[2] for device in devices)
