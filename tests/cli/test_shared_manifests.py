"""Manifests that drivers ship are valid, but for two that really are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from drayman.cli.main import cli

MANIFESTS = Path(__file__).parents[3] / "shared" / "manifests"
FILES = sorted(MANIFESTS.glob("*/*.yaml"))

INVALID = {
    # The file begins without an apiVersion, which kubectl refuses too.
    "device-taints-tolerations__device-taint-pod-noschedule__4-pod-not-scheduled.yaml": (
        ":2: Pod basic-resourceclaimtemplate/pod-no-schedule: apiVersion: a text is required\n"
    ),
    # Kubernetes serves no claim templates as v1alpha3 any more.
    "nvidia-quickstart-v1beta1/gpu-test-vfiopci.yaml": (
        ":10: ResourceClaimTemplate gpu-test-vfio/single-gpu: apiVersion:"
        " there is no ResourceClaimTemplate in resource.k8s.io/v1alpha3;"
        " it is in resource.k8s.io/v1, resource.k8s.io/v1beta2, resource.k8s.io/v1beta1;"
        " `drayman migrate` rewrites manifests of older versions\n"
    ),
}

pytestmark = pytest.mark.skipif(not FILES, reason="../shared/manifests is not there")


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_manifests_of_drivers(file: Path) -> None:
    """Nothing is said about a manifest that an API server accepts."""
    expected = next((text for end, text in INVALID.items() if str(file).endswith(end)), "")
    result = CliRunner().invoke(cli, ["validate", str(file)])
    assert result.stdout == (f"{file}{expected}" if expected else "")
    assert result.exit_code == (1 if expected else 0)


def test_all_together() -> None:
    """Files that repeat the objects of others are no errors beyond those of each."""
    result = CliRunner().invoke(cli, ["validate", *map(str, FILES)])
    errors = [line for line in result.stdout.splitlines() if ": warning: " not in line]
    assert len(errors) == len(INVALID)
