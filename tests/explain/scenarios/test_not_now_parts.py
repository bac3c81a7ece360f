"""Scenarios of devices of which others use a part: shares of their memory, or partitions of the same hardware."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene, gpus
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.build import capacity, device, partitioned, shared
from oracle.selectors import GPU


def memory_of_shared_gpus() -> Scene:
    memory = {"memory": capacity("80Gi")}
    scene = Scene().node("n1", [shared("gpu-0", memory), shared("gpu-1", memory)])
    scene.holds("llm", "n1", shares={"gpu-0": "60Gi"}).holds("asr", "n1", shares={"gpu-1": "70Gi"})
    return scene.waits("ocr", {"share": gpus(asks={"memory": "30Gi"})})


def shared_gpus_of_two_nodes() -> Scene:
    memory = {"memory": capacity("80Gi")}
    scene = Scene().node("n1", [shared("gpu-0", memory)]).node("n2", [shared("gpu-0", memory)])
    scene.holds("llm", "n1", shares={"gpu-0": "75Gi"}).holds("asr", "n2", shares={"gpu-0": "79Gi"})
    return scene.waits("ocr", {"share": gpus(asks={"memory": "40Gi"})})


def notebooks_on_every_gpu() -> Scene:
    scene = Scene("dgx-h100-mig=1")
    for n in range(8):
        slice_ = f"gpu-{n}-mig-1g10gb-19-0"
        scene.holds(f"notebook-{n}", "dgx-h100-mig-0", slice_, cls="mig.nvidia.com", priority=n)
    return scene.waits("trainer", {"whole": gpus(cls=NVIDIA)})


def part_of_the_only_gpu() -> Scene:
    whole = device("whole", attrs={"type": "gpu"}, spends={"gpu-0": {"slices": 7}})
    parts = [
        device(f"part-{n}", attrs={"type": "mig"}, spends={"gpu-0": {"slices": 1}})
        for n in range(7)
    ]
    pool = partitioned([whole, *parts], {"gpu-0": {"slices": 7}}, pool="n1", nodeName="n1")
    scene = Scene().node("n1").add("slices", *pool).holds("notebook", "n1", "part-3")
    scene.device_class("whole", f"device.attributes['{GPU}'].type == 'gpu'")
    return scene.waits("trainer", {"one": gpus(cls="whole")})


def partitions_at_once() -> Scene:
    parts = [device(f"part-{n}", spends={"gpu-0": {"slices": 2}}) for n in range(4)]
    pool = partitioned(parts, {"gpu-0": {"slices": 7}}, pool="n1", nodeName="n1")
    scene = Scene().node("n1").add("slices", *pool).holds("notebook", "n1", "part-3")
    return scene.waits("servers", {"three": gpus(3)})


SCENARIOS = (
    Scenario(
        name="the memory of shared GPUs is given away",
        scene=memory_of_shared_gpus,
        reason=Reason.CAPACITY_IN_USE,
        says="Claim share, request gpus wants 1 device; both that match are short of capacity",
        funnels={"gpus": "node fit 1/2, class 1/2, free 1/2, taints 1/2, capacity 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "request gpus of claim share finds 0 of 1 device (2 without the capacity)",
            missing=1,
            blocked={
                "gpu-0": "memory: 30Gi wanted, 20Gi left",
                "gpu-1": "memory: 30Gi wanted, 10Gi left",
            },
        ),
        holders=(
            "default/llm: gpu-0",
            "default/asr: gpu-1",
        ),
        remedies=(
            "Ask for 20Gi instead of 30Gi of memory in request gpus of claim share.",
            "Delete pod default/asr.",
        ),
    ),
    Scenario(
        name="one shared GPU on each of two nodes, and none has enough left",
        scene=shared_gpus_of_two_nodes,
        reason=Reason.CAPACITY_IN_USE,
        says="Claim share, request gpus wants 1 device; both that match are short of capacity",
        funnels={"gpus": "node fit 2/2, class 2/2, free 2/2, taints 2/2, capacity 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "request gpus of claim share finds 0 of 1 device (1 without the capacity)",
            missing=1,
            blocked={"gpu-0": "memory: 40Gi wanted, 5Gi left"},
        ),
        holders=(
            "default/llm: gpu-0",
            "default/asr: gpu-0",
        ),
        remedies=(
            "Ask for 5Gi instead of 40Gi of memory in request gpus of claim share.",
            "Delete pod default/llm.",
        ),
    ),
    Scenario(
        name="a notebook on a MIG slice of each GPU keeps all of them from being used whole",
        scene=notebooks_on_every_gpu,
        reason=Reason.COUNTERS_IN_USE,
        says="Claim whole, request gpus wants 1 device; all 8 that match are blocked by other partitions of the same hardware",
        funnels={
            "gpus": "node fit 1/220, class 1/8, free 1/8, taints 1/8, counters 0/0, count 0/0"
        },
        nearest=Near(
            "dgx-h100-mig-0",
            "request gpus of claim whole finds 0 of 1 device (8 without counters left)",
            missing=1,
            blocked={
                "gpu-0": "gpu-0-counter-set/memory: 81152Mi wanted, 71168Mi left (default/notebook-0-claim (notebook-0))",
                "gpu-1": "gpu-1-counter-set/memory: 81152Mi wanted, 71168Mi left (default/notebook-1-claim (notebook-1))",
                "gpu-2": "gpu-2-counter-set/memory: 81152Mi wanted, 71168Mi left (default/notebook-2-claim (notebook-2))",
                "gpu-3": "gpu-3-counter-set/memory: 81152Mi wanted, 71168Mi left (default/notebook-3-claim (notebook-3))",
                "gpu-4": "gpu-4-counter-set/memory: 81152Mi wanted, 71168Mi left (default/notebook-4-claim (notebook-4))",
                "gpu-5": "gpu-5-counter-set/memory: 81152Mi wanted, 71168Mi left (default/notebook-5-claim (notebook-5))",
                "gpu-6": "gpu-6-counter-set/memory: 81152Mi wanted, 71168Mi left (default/notebook-6-claim (notebook-6))",
                "gpu-7": "gpu-7-counter-set/memory: 81152Mi wanted, 71168Mi left (default/notebook-7-claim (notebook-7))",
            },
        ),
        holders=(
            "default/notebook-0: gpu-0-mig-1g10gb-19-0",
            "default/notebook-1 priority 1: gpu-1-mig-1g10gb-19-0",
            "default/notebook-2 priority 2: gpu-2-mig-1g10gb-19-0",
            "default/notebook-3 priority 3: gpu-3-mig-1g10gb-19-0",
            "default/notebook-4 priority 4: gpu-4-mig-1g10gb-19-0",
            "default/notebook-5 priority 5: gpu-5-mig-1g10gb-19-0",
            "default/notebook-6 priority 6: gpu-6-mig-1g10gb-19-0",
            "default/notebook-7 priority 7: gpu-7-mig-1g10gb-19-0",
        ),
        remedies=(
            "Delete pod default/notebook-0.",
            "Ask for class mig.nvidia.com instead of gpu.nvidia.com in request gpus of claim whole.",
        ),
    ),
    Scenario(
        name="a whole GPU of which a part is in use",
        scene=part_of_the_only_gpu,
        reason=Reason.COUNTERS_IN_USE,
        says="the only one that matches is blocked by other partitions of the same hardware",
        funnels={"gpus": "node fit 1/8, class 1/1, free 1/1, taints 1/1, counters 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "request gpus of claim one finds 0 of 1 device (1 without counters left)",
            missing=1,
            blocked={"whole": "gpu-0/slices: 7 wanted, 6 left (default/notebook-claim (notebook))"},
        ),
        holders=("default/notebook: part-3",),
        remedies=(
            "Delete pod default/notebook.",
            "Ask for class gpu instead of whole in request gpus of claim one.",
        ),
    ),
    Scenario(
        name="three free partitions of which only two can be had",
        scene=partitions_at_once,
        reason=Reason.COUNTERS_IN_USE,
        says="3 are free on node n1, but not that many at once",
        funnels={"gpus": "node fit 1/4, class 1/4, free 1/3, taints 1/3, count 1/3, together 0/0"},
        nearest=Near("n1", "3 would do, but not 3 devices at once", devices="part-0 part-1 part-2"),
        holders=("default/notebook: part-3",),
        remedies=(
            "Ask for 2 instead of 3 in request gpus of claim three.",
            "Delete pod default/notebook.",
        ),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
