"""Explanations made by hand: one with every part, one that runs, one of a workload, one with the longest of names."""

from __future__ import annotations

from typing import Final

import msgspec

from drayman.explain.answer import (
    Alternative,
    DeviceCount,
    Explanation,
    Funnel,
    Holder,
    Miss,
    Operation,
    Remedy,
    Spelling,
    Step,
    Value,
)
from drayman.reasons.reason import Headline, Reason

NOW: Final = 1_790_000_000.0
SELECTOR: Final = (
    "device.attributes['gpu.nvidia.com'].productName.contains('H100')"
    " && device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('75Gi'))"
)

_STEPS: Final = (
    Step(test="class", nodes=12, devices=96, detail="gpu.nvidia.com"),
    Step(test="selector", nodes=12, devices=96, detail=SELECTOR),
    Step(test="free", nodes=2, devices=5, lost={"in use": 91}),
    Step(test="taints", nodes=1, devices=3, lost={"example.com/hot=1:NoSchedule": 2}),
    Step(test="count", nodes=0, devices=0),
)

WAITS: Final = Explanation(
    kind="Pod",
    namespace="team-a",
    name="trainer-0",
    headline=Headline.of(
        Reason.DEVICES_IN_USE,
        "claim gpus, request gpu: 4 devices are wanted and no node has more than 3 free;"
        " 91 of 96 that would do are in use",
    ),
    nodes=14,
    node_fit=(
        Step(test="node fit", nodes=12, devices=0, lost={"cordoned": 1, "too little cpu": 1}),
    ),
    funnels=(Funnel(claim="gpus", request="gpu", wanted=4, steps=_STEPS),),
    nearest=Miss(
        node="dgx-h100-3",
        sentence="3 of the 4 GPUs are free on dgx-h100-3; one more would do",
        devices=("gpu-0", "gpu-1", "gpu-5"),
        missing=1,
        blocked={
            "gpu-2": "held by team-b/eval-0",
            "gpu-3": "held by team-b/eval-0",
            "gpu-4": "tainted example.com/hot=1:NoSchedule",
        },
    ),
    holders=(
        Holder(
            devices=("dgx-h100-3/gpu-2", "dgx-h100-3/gpu-3"),
            namespace="team-b",
            claim="eval-0-gpus-x7k2p",
            pods=("eval-0",),
            workload="job/eval",
            priority=0,
            since="2026-09-21T10:53:20Z",
        ),
        Holder(devices=("dgx-h100-3/gpu-6",), namespace="", visible=False),
    ),
    remedies=(
        Remedy(
            sentence="lower the count of request gpu to 3",
            operations=(Operation(verb="patch", kind="ResourceClaim", name="gpus"),),
            node="dgx-h100-3",
            devices=("gpu-0", "gpu-1", "gpu-5"),
        ),
        Remedy(
            sentence="remove the taint example.com/hot from device dgx-h100-3/gpu-4",
            operations=(Operation(verb="patch", kind="ResourceSlice", name="s"),),
            node="dgx-h100-3",
            devices=("gpu-0", "gpu-1", "gpu-4", "gpu-5"),
            commands=("drayman device untaint dgx-h100-3/gpu-4 example.com/hot:NoSchedule",),
        ),
        Remedy(
            sentence="wait for the end of job team-b/eval",
            operations=(Operation(verb="wait", kind="Job", name="eval", namespace="team-b"),),
            node="dgx-h100-3",
            devices=("gpu-0", "gpu-1", "gpu-2", "gpu-3"),
            commands=(
                "kubectl wait --for=condition=complete --timeout=-1s --namespace team-b job/eval",
            ),
        ),
    ),
    untried="freeing pods was tried on 32 of 120 nodes only",
    unseen=("pods outside of namespace team-a", "jobs.batch outside of namespace team-a"),
    evidence={"nodes": "4711", "pods": "4790", "resourceclaims": "4788", "resourceslices": "4502"},
)

MISSPELT: Final = Explanation(
    kind="ResourceClaim",
    namespace="default",
    name="gpus",
    headline=Headline.of(
        Reason.ATTRIBUTE_UNKNOWN, "request gpu: no device has the attribute prodcutName"
    ),
    nodes=2,
    funnels=(
        Funnel(
            claim="gpus",
            request="gpu",
            wanted=1,
            steps=(
                Step(test="class", nodes=2, devices=16, detail="gpu.nvidia.com"),
                Step(
                    test="selector",
                    nodes=0,
                    devices=0,
                    detail="device.attributes['gpu.nvidia.com'].prodcutName == 'H100'",
                ),
            ),
        ),
    ),
    spelling=(
        Spelling(
            claim="gpus",
            request="gpu",
            selector="device.attributes['gpu.nvidia.com'].prodcutName == 'H100'",
            attribute="gpu.nvidia.com/prodcutName",
            similar=(("gpu.nvidia.com/productName", 16), ("gpu.nvidia.com/brand", 16)),
        ),
    ),
    values=(
        Value(
            claim="gpus",
            request="part",
            selector="device.attributes['gpu.nvidia.com'].profile == '5g.50gb'",
            condition="device.attributes['gpu.nvidia.com'].profile == '5g.50gb'",
            what="attribute",
            name="gpu.nvidia.com/profile",
            wanted="== '5g.50gb'",
            among="matching",
            existing=(("4g.40gb", 8), ("7g.80gb", 1)),
            more=3,
        ),
    ),
)

RUNS: Final = Explanation(
    kind="Pod",
    namespace="default",
    name="trainer",
    headline=Headline.of(Reason.RUNS, "it runs on dgx-h100-0 since 10:20"),
    node="dgx-h100-0",
    devices=("gpu-0", "pci-0000-18-00-0"),
    alternatives=(
        Alternative(
            node="dgx-h100-0",
            chosen=True,
            preference=100,
            quality={"pcieRoots": 1, "splitPcieRoots": 0, "lostParts": 0},
            balance=40,
        ),
        Alternative(
            node="dgx-h100-1",
            preference=100,
            quality={"pcieRoots": 3, "splitPcieRoots": 1, "lostParts": 0},
            balance=80,
        ),
        Alternative(node="dgx-h100-2", refusal="claim gpus: all 8 devices of gpu are in use"),
    ),
    evidence={"nodes": "12", "pods": "34"},
)

JOB: Final = Explanation(
    kind="Job",
    namespace="default",
    name="sweep",
    headline=Headline.of(Reason.DEVICES_IN_USE, "3 of its 5 pods wait, 2 run"),
    parts=(
        Explanation(
            kind="Pod",
            namespace="default",
            name="sweep-2",
            headline=Headline.of(Reason.DEVICES_IN_USE, "no node has a GPU free"),
            funnels=WAITS.funnels,
            count=3,
        ),
        Explanation(
            kind="Pod",
            namespace="default",
            name="sweep-0",
            headline=Headline.of(Reason.RUNS, "it runs"),
            node="dgx-h100-0",
            count=2,
        ),
    ),
)

_LONG: Final = "a-name-as-long-as-names-may-be-" * 8
LONGEST: Final = Explanation(
    kind="Pod",
    namespace="n" * 63,
    name=_LONG,
    headline=Headline.of(Reason.MISALIGNED, f"claim {_LONG}: \x1b[31mred\x1b[0m [bold]markup[/]"),
    nodes=5_000,
    node_fit=(Step(test="node fit", nodes=4_999, devices=0, lost={"x" * 100: 1}),),
    funnels=(
        Funnel(
            claim=_LONG,
            request="r" * 63,
            wanted=1_000_000,
            steps=(Step(test="class", nodes=4_999, devices=1_234_567, detail=_LONG),),
        ),
    ),
    nearest=Miss(
        node=_LONG,
        sentence="nearly",
        devices=tuple(f"device-{number}" for number in range(100)),
        blocked={_LONG: _LONG},
    ),
    holders=tuple(
        Holder(devices=(_LONG,), namespace="n" * 63, pods=(_LONG,), priority=2_000_000_000)
        for _ in range(30)
    ),
    remedies=(
        Remedy(
            sentence=_LONG,
            operations=(),
            commands=(f"kubectl delete pod --namespace {'n' * 30} first second third fourth",),
        ),
    ),
    alternatives=(Alternative(node=_LONG, chosen=True, preference=1, refusal=_LONG),),
    evidence={f"resource-{number}": "12345678" for number in range(13)},
)
NAMESPACE: Final = Explanation(
    kind="Namespace",
    name="team-a",
    headline=Headline.of(Reason.DEVICES_IN_USE, "3 objects wait in namespace team-a"),
    parts=(
        msgspec.structs.replace(JOB, parts=(), count=25),
        msgspec.structs.replace(LONGEST, holders=(), count=1),
        *(
            Explanation(
                kind="Pod",
                namespace="team-a",
                name=f"pod-{number}",
                headline=Headline.of(Reason.NODES_FULL, "2 nodes do not have enough cpu left"),
            )
            for number in range(30)
        ),
    ),
    evidence={"pods": "1"},
)
CLUSTER: Final = msgspec.structs.replace(NAMESPACE, kind="Cluster", name="")
NODE: Final = Explanation(
    kind="Node",
    name="dgx-h100-0",
    headline=Headline.of(Reason.NODES_CORDONED, "Node dgx-h100-0 is cordoned"),
    taints=("node.kubernetes.io/unschedulable:NoSchedule", f"{_LONG}:NoSchedule"),
    counts=(
        DeviceCount(driver="gpu.nvidia.com", total=8, states={"used": 6, "unavailable": 2}),
        DeviceCount(driver=_LONG, total=4096, states={"free": 4096}),
    ),
    holders=WAITS.holders,
    parts=NAMESPACE.parts,
    evidence={"pods": "1"},
)

ALL: Final = {
    "namespace": NAMESPACE,
    "cluster": CLUSTER,
    "node": NODE,
    "waits": WAITS,
    "misspelt": MISSPELT,
    "runs": RUNS,
    "job": JOB,
    "longest": LONGEST,
}
