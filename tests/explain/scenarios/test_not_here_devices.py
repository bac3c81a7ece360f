"""Scenarios of devices that are free, and in the wrong places."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NUMA, NVIDIA, ROOT, Scene, gpus, numbered, rooted
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.build import claim, device, exactly
from oracle.selectors import GPU

DGX = "dgx-h100-0"
NIC = "nic.example.com"


def two_nodes_half_full() -> Scene:
    scene = Scene("dgx-h100=2").holds("a", DGX, numbered(4))
    scene.holds("b", "dgx-h100-1", "gpu-4 gpu-5 gpu-6 gpu-7")
    return scene.waits("trainer", {"eight": gpus(8, cls=NVIDIA)})


def one_left_on_each_node() -> Scene:
    scene = Scene()
    for number in range(3):
        scene.node(f"n{number}", 2).holds(f"web-{number}", f"n{number}", "gpu-0", priority=-number)
    return scene.waits("trainer", {"two": gpus(2)})


def two_on_each_numa_node() -> Scene:
    scene = Scene("dgx-h100=1").holds("a", DGX, "gpu-0 gpu-1")
    scene.holds("b", DGX, "gpu-4 gpu-5", priority=10)
    return scene.waits("trainer", {"near": claim(exactly("gpus", 4, cls=NVIDIA), match=[NUMA])})


def interface_of_other_gpus() -> Scene:
    scene = Scene().device_class("nic", f"device.driver == '{NIC}'")
    scene.node("n1", rooted("r0", "r0", "r1", "r1"))
    nics = [device("nic-0", attrs={ROOT: "r0"}), device("nic-1", attrs={ROOT: "r1"})]
    scene.slice(nics, pool="n1", driver=NIC, nodeName="n1")
    scene.holds("a", "n1", "gpu-0 gpu-1").holds("b", "n1", "nic-1", driver=NIC, cls="nic")
    wanted = claim(exactly("gpu", 1), exactly("nic", 1, cls="nic"), match=[ROOT])
    return scene.waits("trainer", {"pair": wanted})


def two_requests_for_the_last_gpu() -> Scene:
    scene = Scene().node("n1", [device(f"gpu-{n}", attrs={"memory": 80}) for n in range(3)])
    scene.holds("a", "n1", "gpu-0 gpu-1")
    large = [f"device.attributes['{GPU}'].memory >= 80"]
    wanted = claim(exactly("prefill", 1, select=large), exactly("decode", 1))
    return scene.waits("server", {"llm": wanted})


def two_claims_for_the_last_gpu() -> Scene:
    scene = Scene().node("n1", 2).holds("a", "n1", "gpu-0")
    return scene.waits("server", {"model": gpus(), "draft": gpus()})


SCENARIOS = (
    Scenario(
        name="eight GPUs are free, four on each of two nodes",
        scene=two_nodes_half_full,
        reason=Reason.FRAGMENTED,
        says="Claim eight, request gpus wants 8 devices on one node; 8 that match are free, but on 2 nodes, with at most 4 on one",
        funnels={"gpus": "node fit 2/40, class 2/16, free 2/8, taints 2/8, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim eight finds 4 of 8 devices (4 in use)",
            devices="gpu-4 gpu-5 gpu-6 gpu-7",
            missing=4,
            blocked={"gpu-0 gpu-1 gpu-2 gpu-3": "in use by default/a-claim (a)"},
        ),
        holders=(
            "default/a: gpu-0 gpu-1 gpu-2 gpu-3",
            "default/b: gpu-4 gpu-5 gpu-6 gpu-7",
        ),
        remedies=(
            "Ask for 4 instead of 8 in request gpus of claim eight.",
            "Delete pod default/a.",
        ),
    ),
    Scenario(
        name="one GPU is left on each of three nodes",
        scene=one_left_on_each_node,
        reason=Reason.FRAGMENTED,
        says="wants 2 devices on one node; 3 that match are free, but on 3 nodes, with at most 1 on one",
        funnels={"gpus": "node fit 3/6, class 3/6, free 3/3, taints 3/3, count 0/0"},
        nearest=Near(
            "n0",
            "request gpus of claim two finds 1 of 2 devices (1 in use)",
            devices="gpu-1",
            missing=1,
            blocked={"gpu-0": "in use by default/web-0-claim (web-0)"},
        ),
        holders=(
            "default/web-0: gpu-0",
            "default/web-1 priority -1: gpu-0",
            "default/web-2 priority -2: gpu-0",
        ),
        remedies=(
            "Ask for 1 instead of 2 in request gpus of claim two.",
            "Delete pod default/web-2.",
        ),
    ),
    Scenario(
        name="two GPUs are free on each NUMA node and four of one are wanted",
        scene=two_on_each_numa_node,
        reason=Reason.MISALIGNED,
        says=(
            "Claim near, request gpus wants 4 devices; 4 are free on node dgx-h100-0",
            "but at most 2 agree in resource.kubernetes.io/numaNode",
        ),
        funnels={
            "gpus": "node fit 1/20, class 1/8, free 1/4, taints 1/4, constraint 0/0, count 0/0"
        },
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim near finds 2 of 4 devices (4 in use, 2 apart in resource.kubernetes.io/numaNode)",
            devices="gpu-2 gpu-3",
            missing=2,
            blocked={
                "gpu-0 gpu-1": "in use by default/a-claim (a)",
                "gpu-4 gpu-5": "in use by default/b-claim (b)",
                "gpu-6 gpu-7": "resource.kubernetes.io/numaNode is 1",
            },
        ),
        holders=(
            "default/a: gpu-0 gpu-1",
            "default/b priority 10: gpu-4 gpu-5",
        ),
        remedies=(
            "Ask for 2 instead of 4 in request gpus of claim near.",
            "Delete pod default/a.",
            "Drop the constraint on equal numaNode of claim near.",
        ),
    ),
    Scenario(
        name="the free interface is at the PCIe root of GPUs in use",
        scene=interface_of_other_gpus,
        reason=Reason.MISALIGNED,
        says="Claim pair, request gpu wants 1 device; 2 are free on node n1, but not so that the requests together meet the constraints",
        funnels={
            "gpu": "node fit 1/6, class 1/4, free 1/2, taints 1/2, constraint 0/0, count 0/0",
            "nic": "node fit 1/6, class 1/2, free 1/1, taints 1/1, constraint 0/0, count 0/0",
        },
        nearest=Near(
            "n1",
            "request gpu of claim pair finds 0 of 1 device (2 in use, 2 apart in resource.kubernetes.io/pcieRoot)",
            devices="nic-0",
            missing=1,
            blocked={
                "gpu-0 gpu-1": "in use by default/a-claim (a)",
                "gpu-2 gpu-3": "resource.kubernetes.io/pcieRoot is r1",
                "nic-1": "in use by default/b-claim (b)",
            },
        ),
        holders=(
            "default/a: gpu-0 gpu-1",
            "default/b: nic-1",
        ),
        remedies=(
            "Delete pod default/b.",
            "Drop the constraint on equal pcieRoot of claim pair.",
        ),
    ),
    Scenario(
        name="two requests for the last GPU",
        scene=two_requests_for_the_last_gpu,
        reason=Reason.REQUESTS_COMPETE,
        says="The requests of claim llm (prefill, decode) could each be served on node n1, but compete for the same devices",
        funnels={
            "prefill": "node fit 1/3, class 1/3, selector 1/3, free 1/1, taints 1/1, count 1/1, together 0/0",
            "decode": "node fit 1/3, class 1/3, free 1/1, taints 1/1, count 1/1, together 0/0",
        },
        nearest=Near(
            "n1",
            "each request alone would find its devices, but not all of them together; 1 more device would be needed",
            devices="gpu-2",
            missing=1,
        ),
        holders=("default/a: gpu-0 gpu-1",),
        remedies=("Delete pod default/a.",),
    ),
    Scenario(
        name="two claims of one pod for the last GPU",
        scene=two_claims_for_the_last_gpu,
        reason=Reason.REQUESTS_COMPETE,
        says="The requests of claims model and draft (model/gpus, draft/gpus) could each be served on node n1",
        funnels={
            "model/gpus": "node fit 1/2, class 1/2, free 1/1, taints 1/1, count 1/1, together 0/0",
            "draft/gpus": "node fit 1/2, class 1/2, free 1/1, taints 1/1, count 1/1, together 0/0",
        },
        nearest=Near(
            "n1",
            "each request alone would find its devices, but not all of them together; 1 more device would be needed",
            devices="gpu-1",
            missing=1,
        ),
        holders=("default/a: gpu-0",),
        remedies=("Delete pod default/a.",),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
