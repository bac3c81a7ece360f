"""Scenarios of devices that are there, and never together as they are wanted."""

from __future__ import annotations

import pytest

from drayman.explain.pod import explain_pod
from drayman.reasons.reason import Reason
from explain.scenarios.scene import NUMA, NVIDIA, ROOT, Scene, gpus, numbered
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.build import claim, device, everything, exactly
from oracle.selectors import GPU

AMD = "gpu.amd.com"
NICS = (
    "pci-0000-18-00-0 pci-0000-40-00-0 pci-0000-4f-00-0 pci-0000-5e-00-0"
    " pci-0000-9a-00-0 pci-0000-c0-00-0 pci-0000-ce-00-0 pci-0000-dc-00-0"
)
"""The network interfaces of a DGX."""


def four_at_one_root() -> Scene:
    wanted = claim(exactly("gpus", 4, cls=NVIDIA), match=[ROOT])
    return Scene("dgx-h100=2").waits("trainer", {"close": wanted})


def two_gpus_and_an_interface() -> Scene:
    wanted = claim(exactly("gpus", 2, cls=NVIDIA), exactly("nic", 1, cls="rdma"), match=[ROOT])
    return Scene("dgx-h100=1").waits("trainer", {"pair": wanted})


def three_different_numa_nodes() -> Scene:
    wanted = claim(exactly("gpus", 3, cls=NVIDIA), distinct=[NUMA])
    return Scene("dgx-h100=1").waits("trainer", {"apart": wanted})


def attribute_that_is_not_published() -> Scene:
    wanted = claim(exactly("gpus", 2), match=[ROOT])
    return Scene().node("n1", 4).waits("trainer", {"close": wanted})


def constraint_misspelt() -> Scene:
    pair = (exactly("gpu", 1, cls=NVIDIA), exactly("nic", 1, cls="rdma"))
    wanted = claim(*pair, match=["resource.kubernetes.io/pciRoot"])
    return Scene("dgx-h100=1").waits("trainer", {"pair": wanted})


def two_requests_for_one_gpu() -> Scene:
    sizes = ("large", "small", "small")
    scene = Scene().node("n1", [device(f"gpu-{n}", attrs={"size": s}) for n, s in enumerate(sizes)])
    large = [f"device.attributes['{GPU}'].size == 'large'"]
    wanted = claim(exactly("prefill", 1, select=large), exactly("decode", 1, select=large))
    return scene.waits("server", {"both": wanted})


def all_of_them_and_one_more() -> Scene:
    wanted = claim(everything("all", cls=NVIDIA), exactly("monitor", 1, cls=NVIDIA))
    return Scene("dgx-h100=1").waits("trainer", {"greedy": wanted})


def all_of_sixty_four_partitions() -> Scene:
    return Scene("mi300x-cpx=1").waits("trainer", {"node": claim(everything("gpus", cls=AMD))})


def forty_partitions() -> Scene:
    return Scene("mi300x-cpx=1").waits("trainer", {"many": gpus(40, cls=AMD)})


def constraint_that_compares_nothing() -> Scene:
    wanted = gpus(2)
    wanted["spec"]["devices"]["constraints"] = [{"requests": ["gpus"]}]
    return Scene().node("n1", 2).waits("trainer", {"odd": wanted})


def on_different_nodes() -> Scene:
    """GPUs of two makers, each on nodes of its own."""
    both = claim(exactly("nvidia", 1, cls=NVIDIA), exactly("amd", 1, cls=AMD))
    return Scene("dgx-h100=1", "mi300x=1").waits("mixed", {"both": both})


def enough_of_one_without_the_other() -> Scene:
    """The node that has enough GPUs has no interface, and the one with the interface has too few GPUs."""
    scene = Scene().device_class("nic", "device.driver == 'nic.example.com'")
    scene.node("small", 2).slice(["nic-0"], pool="nics", driver="nic.example.com", nodeName="small")
    scene.node("large", 4)
    return scene.waits("trainer", {"both": claim(exactly("gpus", 3), exactly("nic", cls="nic"))})


def one_request_is_served_nowhere() -> Scene:
    """Two requests are served on different nodes, and a third, behind them, on none: that is what is wrong."""
    scene = Scene().device_class("nic", "device.driver == 'nic.example.com'")
    scene.device_class("tpu", "device.driver == 'tpu.example.com'")
    scene.node("a", 2).node("b", ["nic-0"], driver="nic.example.com")
    wanted = claim(exactly("gpus"), exactly("nic", cls="nic"), exactly("tpu", cls="tpu"))
    return scene.waits("trainer", {"all": wanted})


def selected_node_has_too_few() -> Scene:
    scene = Scene().node("small", 2, labels={"size": "s"}).node("large", 4, labels={"size": "l"})
    return scene.waits("trainer", {"three": gpus(3)}, nodeSelector={"size": "s"})


SCENARIOS = (
    Scenario(
        name="GPUs of two makers that are on different nodes",
        scene=on_different_nodes,
        reason=Reason.REQUESTS_CONFLICT,
        says="The requests of claim both could each be served alone, but no node serves all of them together",
        funnels={
            "nvidia": "node fit 2/38, class 1/8, free 1/8, taints 1/8, count 1/8, together 0/0",
            "amd": "node fit 2/38, class 1/8, free 1/8, taints 1/8, count 1/8, together 0/0",
        },
        nearest=Near(
            "dgx-h100-0",
            "request amd of claim both finds 0 of 1 device (20 not of the class)",
            devices=numbered(8),
            missing=1,
        ),
    ),
    Scenario(
        name="no node has both enough GPUs and the interface",
        scene=enough_of_one_without_the_other,
        reason=Reason.REQUESTS_CONFLICT,
        says="no node serves all of them together",
        funnels={
            "gpus": "node fit 2/7, class 2/6, free 2/6, taints 2/6, count 1/4, together 0/0",
            "nic": "node fit 2/7, class 1/1, free 1/1, taints 1/1, count 1/1, together 0/0",
        },
        nearest=Near(
            "small",
            "request gpus of claim both finds 2 of 3 devices",
            devices="gpu-0 gpu-1 nic-0",
            missing=1,
        ),
        remedies=("Ask for 2 instead of 3 in request gpus of claim both.",),
    ),
    Scenario(
        name="the last of three requests is served nowhere",
        scene=one_request_is_served_nowhere,
        reason=Reason.NO_SUCH_DEVICE,
        says="Claim all, request tpu wants 1 device; none on any node passes the selectors",
        funnels={
            "gpus": "node fit 2/3, class 1/2, free 1/2, taints 1/2, count 1/2",
            "nic": "node fit 2/3, class 1/1, free 1/1, taints 1/1, count 1/1",
            "tpu": "node fit 2/3, class 0/0, free 0/0, taints 0/0, count 0/0",
        },
        nearest=Near(
            "a",
            "request tpu of claim all finds 0 of 1 device (2 not of the class)",
            devices="gpu-0 gpu-1",
            missing=2,
        ),
        values=("driver == 'tpu.example.com': gpu.example.com 2",),
    ),
    Scenario(
        name="the node that the pod selects has too few, and another has enough",
        scene=selected_node_has_too_few,
        reason=Reason.COUNT_TOO_HIGH,
        says="no node that the pod may go to has more than 2 that match",
        fit="node selector 1",
        funnels={"gpus": "node fit 1/2, class 1/2, free 1/2, taints 1/2, count 0/0"},
        nearest=Near(
            "large",
            "it does not match the pod's node selector or affinity; its devices would do",
            devices=numbered(4),
        ),
        remedies=(
            "Ask for 2 instead of 3 in request gpus of claim three.",
            "Drop size=s from the pod's node selector.",
        ),
    ),
    Scenario(
        name="four GPUs at one PCIe root where each has its own",
        scene=four_at_one_root,
        reason=Reason.CONSTRAINT_UNMEETABLE,
        says="Claim close, request gpus wants 4 devices: no two agree in resource.kubernetes.io/pcieRoot",
        funnels={
            "gpus": "node fit 2/40, class 2/16, free 2/16, taints 2/16, constraint 0/0, count 0/0"
        },
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim close finds 1 of 4 devices even if nothing were in use (7 apart in resource.kubernetes.io/pcieRoot)",
            devices="gpu-0",
            missing=3,
            blocked={
                "gpu-1": "resource.kubernetes.io/pcieRoot is pci0000:37",
                "gpu-2": "resource.kubernetes.io/pcieRoot is pci0000:48",
                "gpu-3": "resource.kubernetes.io/pcieRoot is pci0000:59",
                "gpu-4": "resource.kubernetes.io/pcieRoot is pci0000:97",
                "gpu-5": "resource.kubernetes.io/pcieRoot is pci0000:b7",
                "gpu-6": "resource.kubernetes.io/pcieRoot is pci0000:c7",
                "gpu-7": "resource.kubernetes.io/pcieRoot is pci0000:d7",
            },
        ),
        remedies=(
            "Match numaNode instead of pcieRoot in claim close.",
            "Ask for 1 instead of 4 in request gpus of claim close.",
            "Drop the constraint on equal pcieRoot of claim close.",
        ),
    ),
    Scenario(
        name="two GPUs and an interface at one PCIe root where there are pairs",
        scene=two_gpus_and_an_interface,
        reason=Reason.CONSTRAINT_UNMEETABLE,
        says="Claim pair, request gpus wants 2 devices: no two agree in resource.kubernetes.io/pcieRoot",
        funnels={
            "gpus": "node fit 1/20, class 1/8, free 1/8, taints 1/8, constraint 0/0, count 0/0",
            "nic": "node fit 1/20, class 1/8, free 1/8, taints 1/8, constraint 0/0, count 0/0",
        },
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim pair finds 1 of 2 devices even if nothing were in use (7 apart in resource.kubernetes.io/pcieRoot)",
            devices="gpu-0 pci-0000-18-00-0",
            missing=1,
            blocked={
                "gpu-1 pci-0000-40-00-0": "resource.kubernetes.io/pcieRoot is pci0000:37",
                "gpu-2 pci-0000-4f-00-0": "resource.kubernetes.io/pcieRoot is pci0000:48",
                "gpu-3 pci-0000-5e-00-0": "resource.kubernetes.io/pcieRoot is pci0000:59",
                "gpu-4 pci-0000-9a-00-0": "resource.kubernetes.io/pcieRoot is pci0000:97",
                "gpu-5 pci-0000-c0-00-0": "resource.kubernetes.io/pcieRoot is pci0000:b7",
                "gpu-6 pci-0000-ce-00-0": "resource.kubernetes.io/pcieRoot is pci0000:c7",
                "gpu-7 pci-0000-dc-00-0": "resource.kubernetes.io/pcieRoot is pci0000:d7",
            },
        ),
        remedies=(
            "Match numaNode instead of pcieRoot in claim pair.",
            "Ask for 1 instead of 2 in request gpus of claim pair.",
            "Drop the constraint on equal pcieRoot of claim pair.",
        ),
    ),
    Scenario(
        name="three GPUs on different NUMA nodes of two",
        scene=three_different_numa_nodes,
        reason=Reason.CONSTRAINT_UNMEETABLE,
        says="Claim apart, request gpus wants 3 devices: only 2 different values of resource.kubernetes.io/numaNode",
        funnels={
            "gpus": "node fit 1/20, class 1/8, free 1/8, taints 1/8, constraint 0/0, count 0/0"
        },
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim apart finds 2 of 3 devices even if nothing were in use (6 apart in resource.kubernetes.io/numaNode)",
            devices="gpu-0 gpu-4",
            missing=1,
            blocked={
                "gpu-1 gpu-2 gpu-3": "resource.kubernetes.io/numaNode is 0",
                "gpu-5 gpu-6 gpu-7": "resource.kubernetes.io/numaNode is 1",
            },
        ),
        remedies=(
            "Ask for 2 instead of 3 in request gpus of claim apart.",
            "Drop the constraint on different numaNode of claim apart.",
        ),
    ),
    Scenario(
        name="a constraint on an attribute that the driver does not publish",
        scene=attribute_that_is_not_published,
        reason=Reason.CONSTRAINT_UNMEETABLE,
        says="all 4 that match on a node lack resource.kubernetes.io/pcieRoot, which a constraint compares",
        funnels={
            "gpus": "node fit 1/4, class 1/4, free 1/4, taints 1/4, constraint 0/0, count 0/0"
        },
        nearest=Near(
            "n1",
            "request gpus of claim close finds 0 of 2 devices even if nothing were in use (4 without resource.kubernetes.io/pcieRoot)",
            missing=2,
            blocked={"gpu-0 gpu-1 gpu-2 gpu-3": "has no resource.kubernetes.io/pcieRoot"},
        ),
        spelling=("resource.kubernetes.io/pcieRoot: ",),
        remedies=("Drop the constraint on equal pcieRoot of claim close.",),
    ),
    Scenario(
        name="a constraint on an attribute that is misspelt",
        scene=constraint_misspelt,
        reason=Reason.CONSTRAINT_UNMEETABLE,
        says="all 8 that match on a node lack resource.kubernetes.io/pciRoot, which a constraint compares",
        funnels={
            "gpu": "node fit 1/20, class 1/8, free 1/8, taints 1/8, constraint 0/0, count 0/0",
            "nic": "node fit 1/20, class 1/8, free 1/8, taints 1/8, constraint 0/0, count 0/0",
        },
        nearest=Near(
            "dgx-h100-0",
            "request gpu of claim pair finds 0 of 1 device even if nothing were in use"
            " (8 without resource.kubernetes.io/pciRoot); request nic of claim pair finds 0 of 1",
            missing=2,
            blocked={
                f"{numbered(8)} {NICS}": "has no resource.kubernetes.io/pciRoot",
            },
        ),
        spelling=("resource.kubernetes.io/pciRoot: resource.kubernetes.io/pcieRoot 16",),
        remedies=(
            "Write pcieRoot instead of pciRoot in a constraint of claim pair.",
            "Drop the constraint on equal pciRoot of claim pair.",
        ),
    ),
    Scenario(
        name="two requests for the only large GPU",
        scene=two_requests_for_one_gpu,
        reason=Reason.REQUESTS_CONFLICT,
        says="The requests of claim both could each be served alone, but no node serves all of them together, even when it is empty",
        funnels={
            "prefill": "node fit 1/3, class 1/3, selector 1/1, free 1/1, taints 1/1, count 1/1, together 0/0",
            "decode": "node fit 1/3, class 1/3, selector 1/1, free 1/1, taints 1/1, count 1/1, together 0/0",
        },
        nearest=Near(
            "n1",
            "each request alone would find its devices, but not all of them together; 1 more device would be needed",
            devices="gpu-0",
            missing=1,
        ),
        remedies=(
            "Drop the selector `device.attributes['gpu.example.com'].size == 'large'` of request prefill of claim both.",
            "Drop the selector `device.attributes['gpu.example.com'].size == 'large'` of request decode of claim both.",
        ),
    ),
    Scenario(
        name="all GPUs of a node and one more",
        scene=all_of_them_and_one_more,
        reason=Reason.REQUESTS_CONFLICT,
        says="The requests of claim greedy could each be served alone",
        funnels={
            "all": "node fit 1/20, class 1/8, free 1/8, taints 1/8, count 1/8, together 0/0",
            "monitor": "node fit 1/20, class 1/8, free 1/8, taints 1/8, count 1/8, together 0/0",
        },
        nearest=Near(
            "dgx-h100-0",
            "each request alone would find its devices, but not all of them together; 1 more device would be needed",
            devices=numbered(8),
            missing=1,
        ),
        remedies=("Ask for 7 instead of all in request all of claim greedy.",),
    ),
    Scenario(
        name="all of sixty-four partitions in one claim",
        scene=all_of_sixty_four_partitions,
        reason=Reason.CLAIM_TOO_LARGE,
        says="Claim node needs 64 devices, a claim may have 32",
        funnels={"gpus": "node fit 1/74, class 1/64, free 1/64, taints 1/64, count 0/0"},
        nearest=Near(
            "mi300x-cpx-0",
            "request gpus of claim node finds 64 of all 64 devices, but a claim may have no more than 32",
            devices="64 devices",
        ),
        remedies=("Ask for 32 instead of all in request gpus of claim node.",),
    ),
    Scenario(
        name="forty partitions in one claim",
        scene=forty_partitions,
        reason=Reason.CLAIM_TOO_LARGE,
        says="Claim many needs 40 devices, a claim may have 32",
        funnels={"gpus": "node fit 1/74, class 1/64, free 1/64, taints 1/64, count 0/0"},
        nearest=Near(
            "mi300x-cpx-0",
            "request gpus of claim many finds 40 of 40 devices, but a claim may have no more than 32",
            devices="64 devices",
        ),
        remedies=("Ask for 32 instead of 40 in request gpus of claim many.",),
    ),
    Scenario(
        name="a claim whose constraint compares nothing",
        scene=constraint_that_compares_nothing,
        reason=Reason.CLAIM_INVALID,
        says="Claim odd: constraint #0: no attribute is compared",
        funnels={"gpus": "node fit 1/2, class 1/2, free 1/2, taints 1/2, count 1/2, together 0/0"},
        nearest=Near(
            "n1",
            "its devices would do, but the pod cannot have any as it is",
            devices="gpu-0 gpu-1",
        ),
        remedies=("Drop the constraint that compares nothing between gpus of claim odd.",),
        plays=False,
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)


def test_capacity_is_that_of_nodes_that_the_pod_may_go_to() -> None:
    """A node that the pod does not select may have more."""
    sizes = {"small": "40Gi", "large": "80Gi"}
    scene = Scene()
    for name, memory in sizes.items():
        one = device("gpu-0", capacity={"memory": {"value": memory}}, allowMultipleAllocations=True)
        scene.node(name, [one], labels={"size": name})
    wanted = claim(exactly("gpus", capacity={"requests": {"memory": "60Gi"}}))
    world = scene.waits("p", {"c": wanted}, nodeSelector={"size": "small"}).world()
    assert str(explain_pod(world, world.objects.pods[0]).headline) == (
        "CapacityTooHigh (never): Claim c, request gpus wants 1 device with 60Gi of memory,"
        " more than any that match have on nodes that the pod may go to, even when unused."
    )
