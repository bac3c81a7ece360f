"""The manifests that drivers ship do on simulated hardware what their authors say."""

from __future__ import annotations

from pathlib import Path

import pytest

from manifests.conftest import Clusters
from manifests.playing import Play, Step, play

MANIFESTS = Path(__file__).parents[3] / "shared" / "manifests"
TAINTS = "device-taints-tolerations__device-taint"
TAINTED = "basic-resourceclaimtemplate"
SHARING = "podgroup-resourceclaimtemplate"

pytestmark = pytest.mark.skipif(not MANIFESTS.exists(), reason="../shared/manifests is not there")


def simple(name: str, *pods: str, profiles: str = "example=1", **more: dict[str, str]) -> Play:
    """An example whose namespace has its name, and whose pods all run."""
    running = [f"{name}/{pod}" for pod in pods or ("pod0",)]
    return Play(name, profiles, [Step(f"{name}__{name}.yaml", running=running)], **more)


EXAMPLE_DRIVER = [
    simple("admin-access"),
    simple("basic-multiple-requests"),
    simple("basic-resourceclaim-opaque-config"),
    simple("basic-resourceclaimtemplate", "pod0", "pod1"),
    simple("basic-shared-claim-across-containers"),
    simple("basic-shared-claim-across-pods", "pod0", "pod1"),
    simple("binding-conditions", profiles="example-binding-conditions=1"),
    simple("cel-selector"),
    simple("gpu-allow-multiple-allocations", "pod0", "pod1", profiles="example-shared=1"),
    simple(
        "gpu-allow-multiple-allocations-partitionable",
        "pod0",
        "pod1",
        profiles="example-shared-partitions=1",
    ),
    simple("initcontainer-shared-gpu"),
    simple("native-resource-request"),
    simple("net-consumable-capacity", "pod0", "pod1"),
    simple("partitionable-devices", profiles="example-partitions=1"),
    Play(
        "podgroup-resourceclaimtemplate",
        "example=1",
        [Step(f"{SHARING}__{SHARING}.yaml", available=[f"{SHARING}/group-{n}" for n in (1, 2)])],
        consumers={SHARING: ["podgroups/group-1", "podgroups/group-2"]},
    ),
    simple(
        "prioritized-alternatives",
        "pod0",
        "pod1",
        requests={
            "prioritized-alternatives/pod0": "gpu/older-gpu",
            "prioritized-alternatives/pod1": "gpu/latest-gpu",
        },
    ),
    Play(
        "taint with configurable eviction time",
        "example=1",
        [
            Step(
                f"{TAINTS}-configurable-pod-eviction-time__1-basic-resourceclaimtemplate.yaml",
                running=[
                    f"{TAINTED}/pod-no-toleration",
                    f"{TAINTED}/pod-with-toleration",
                    f"{TAINTED}/pod-with-300s-toleration",
                ],
            ),
            Step(
                f"{TAINTS}-configurable-pod-eviction-time__2-device-taint-rule.yaml",
                gone=[f"{TAINTED}/pod-no-toleration"],
                running=[f"{TAINTED}/pod-with-toleration", f"{TAINTED}/pod-with-300s-toleration"],
            ),
        ],
    ),
    Play(
        "taint NoExecute",
        "example=1",
        [
            Step(f"{TAINTS}-pod-noexecute__1-basic-resourceclaimtemplate.yaml"),
            Step(
                f"{TAINTS}-pod-noexecute__2-pod-to-be-evicted.yaml",
                running=[f"{TAINTED}/pod-to-be-evicted"],
            ),
            Step(
                f"{TAINTS}-pod-noexecute__3-device-taint-rule.yaml",
                gone=[f"{TAINTED}/pod-to-be-evicted"],
            ),
            # The authors expect it to be scheduled and evicted; since 1.35 NoExecute keeps it from being scheduled.
            Step(
                f"{TAINTS}-pod-noexecute__4-pod-no-execute.yaml",
                pending=[f"{TAINTED}/pod-no-execute"],
            ),
        ],
    ),
    Play(
        "taint NoSchedule",
        "example=1",
        [
            Step(f"{TAINTS}-pod-noschedule__1-basic-resourceclaimtemplate.yaml"),
            Step(
                f"{TAINTS}-pod-noschedule__2-pod-keeps-running.yaml",
                running=[f"{TAINTED}/pod-keeps-running"],
            ),
            Step(
                f"{TAINTS}-pod-noschedule__3-device-taint-rule.yaml",
                running=[f"{TAINTED}/pod-keeps-running"],
            ),
            # The file has no apiVersion.
            Step(
                f"{TAINTS}-pod-noschedule__4-pod-not-scheduled.yaml", refused="apiVersion not set"
            ),
        ],
    ),
    Play(
        "taint with toleration",
        "example=1",
        [
            Step(f"{TAINTS}-pod-toleration__1-device-taint-rule.yaml"),
            Step(
                f"{TAINTS}-pod-toleration__2-basic-resourceclaimtemplate.yaml",
                running=[f"{TAINTED}/pod-with-toleration"],
                pending=[f"{TAINTED}/pod-without-toleration"],
            ),
        ],
    ),
]


@pytest.mark.parametrize("scenario", EXAMPLE_DRIVER, ids=lambda scenario: scenario.name)
def test_example_driver(scenario: Play, clusters: Clusters) -> None:
    """Pods run, wait or are evicted as the example driver's documentation says."""
    play(clusters(scenario.profiles), MANIFESTS / "example-driver", scenario)


NVIDIA = [
    Play("gpu-test1", "dgx-h100=1", [Step("gpu-test1.yaml", running=["gpu-test1/pod1", "gpu-test1/pod2"])]),
    Play("gpu-test2", "dgx-h100=1", [Step("gpu-test2.yaml", running=["gpu-test2/pod"])]),
    Play("gpu-test3", "dgx-h100=1", [Step("gpu-test3.yaml", running=["gpu-test3/pod1", "gpu-test3/pod2"])]),
    Play("gpu-test4", "dgx-a100-mig=1", [Step("gpu-test4.yaml", available=["gpu-test4/pod"])]),
    Play("gpu-test5", "dgx-h100=1", [Step("gpu-test5.yaml", running=["gpu-test5/pod0"])]),
    Play("gpu-test6", "dgx-a100=1", [Step("gpu-test6.yaml", available=["gpu-test6/pod"])]),
    Play("gpu-test-mps", "dgx-h100=1", [Step("gpu-test-mps.yaml", running=["gpu-test-mps/test-pod"])]),
    Play(
        "imex-test1",
        "gb200-nvl72=1",
        [Step("imex-test1.yaml", available=[f"imex-test1/deployment{n}" for n in range(4)])],
    ),
]  # fmt: skip
ONLY_V1 = [
    Play("gpu-test-vfiopci", "dgx-h100-vfio=1", [Step("gpu-test-vfiopci.yaml", running=["gpu-test-vfio/pod1"])]),
    # Its pod is in a namespace that the file does not create.
    Play(
        "gpu-test-vfio-config",
        "dgx-h100-vfio=1",
        [Step("gpu-test-vfio-config.yaml", refused='namespaces "gpu-test-vfiopci" not found')],
    ),
]  # fmt: skip
ONLY_V1BETA1 = [
    # Its template is of a version that is no longer served.
    Play("gpu-test-vfiopci", "dgx-h100-vfio=1", [Step("gpu-test-vfiopci.yaml", refused="no matches for kind")]),
]  # fmt: skip


@pytest.mark.parametrize("scenario", [*NVIDIA, *ONLY_V1], ids=lambda scenario: scenario.name)
def test_nvidia_quick_start(scenario: Play, clusters: Clusters) -> None:
    """Pods and deployments of the quick start run."""
    play(clusters(scenario.profiles), MANIFESTS / "nvidia-quickstart", scenario)


@pytest.mark.parametrize("scenario", [*NVIDIA, *ONLY_V1BETA1], ids=lambda scenario: scenario.name)
def test_nvidia_quick_start_v1beta1(scenario: Play, clusters: Clusters) -> None:
    """The same in the version before."""
    play(clusters(scenario.profiles), MANIFESTS / "nvidia-quickstart-v1beta1", scenario)
