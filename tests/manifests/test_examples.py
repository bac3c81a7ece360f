"""The examples of this repository do what their comments say."""

from __future__ import annotations

from pathlib import Path

import pytest

from manifests.conftest import Clusters
from manifests.playing import Play, Step, play

EXAMPLES = Path(__file__).parents[2] / "examples"
HARDWARE = "dgx-h100=1,dgx-h100-mig=1,example-shared=1"
OWN = f"{EXAMPLES / 'profiles' / 'acme.yaml'}=1"

PLAYS = [
    Play(
        "a GPU with an aligned NIC",
        HARDWARE,
        [Step("1-gpu-with-nic.yaml", running=["default/trainer"])],
        {"default/trainer": "gpu nic"},
    ),
    Play(
        "MIG slices",
        HARDWARE,
        [Step("2-mig-slices.yaml", running=["default/notebooks"])],
        {"default/notebooks": "small small large"},
    ),
    Play(
        "a GPU shared by capacity",
        HARDWARE,
        [Step("3-shared-gpu.yaml", running=["default/serve-a", "default/serve-b"])],
    ),
    Play(
        "first available",
        HARDWARE,
        [Step("4-first-available.yaml", running=["default/tuner"])],
        {"default/tuner": "gpu/halves gpu/halves"},
    ),
    Play(
        "an extended resource",
        HARDWARE,
        [Step("5-extended-resource.yaml", running=["default/classic"])],
    ),
    Play("one that cannot run", HARDWARE, [Step("6-cannot-run.yaml", pending=["default/waits"])]),
]


@pytest.mark.parametrize("scenario", PLAYS, ids=lambda scenario: scenario.name)
def test_examples(scenario: Play, clusters: Clusters) -> None:
    """Each pod gets where its comment says."""
    play(clusters(scenario.profiles), EXAMPLES, scenario)


def test_every_example_is_played() -> None:
    """No manifest is left out of the table above."""
    played = {step.file for scenario in PLAYS for step in scenario.steps}
    assert played == {path.name for path in EXAMPLES.glob("*.yaml")}


def test_hardware_of_ones_own(clusters: Clusters) -> None:
    """The profile among the examples makes a node whose devices can be claimed."""
    kubectl = clusters(OWN)
    request = {"name": "acc", "exactly": {"deviceClassName": "acc.acme.com", "count": 4}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "four"},
        "spec": {"devices": {"requests": [request]}},
    }
    kubectl("apply", "-f", "-", given=claim)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "resourceClaims": [{"name": "acc", "resourceClaimName": "four"}],
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "acc"}]}}],
        },
    }
    kubectl("apply", "-f", "-", given=pod)
    kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=150s")
    assert kubectl.object("pod", "p")["spec"]["nodeName"] == "acme-0"
