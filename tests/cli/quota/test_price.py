"""`drayman quota price`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from drayman.cli.main import cli

CONFIGURATION: Final = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources:
  deviceClassMappings:
  - name: example.com/gpus
    deviceClassNames: [gpu.example.com]
"""
POD: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  resourceClaims:
  - {name: own, resourceClaimTemplateName: two}
  - {name: all, resourceClaimName: shared}
  containers:
  - name: main
    image: example.com/image:1
    resources:
      limits: {example.com/nic: 1}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu.example.com, count: 2}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.example.com}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: nic.example.com}
spec: {extendedResourceName: example.com/nic}
"""
TEXT: Final = """\
pod/trainer in namespace default
  pod set main, 1 pod
    RESOURCE          EACH POD  SHARED  TOTAL
    example.com/gpus         2       1      3
    example.com/nic          1       0      1
    - template two, request gpu (class gpu.example.com): 2 example.com/gpus; 2
      devices
    - claim shared, request gpu (class gpu.example.com): 1 example.com/gpus; 1
      device, once for all pods
    - resource example.com/nic, request container-0-request-0 (class
      nic.example.com): 1 example.com/nic; 1 device
    - charged as devices, not as such: example.com/nic
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "kueue.yaml").write_text(CONFIGURATION)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(
        cli, ["quota", "price", "-f", "pod.yaml", *arguments], prog_name="drayman"
    )


def test_a_price_is_a_table_and_the_reasons_for_it(folder: Path) -> None:
    """What each pod costs, what is shared, what requests that comes from, and which of them are not counted as such."""
    result = asked("--offline", "--config", "kueue.yaml")
    assert (result.exit_code, result.output) == (0, TEXT)


def test_a_price_as_data(folder: Path) -> None:
    """The same as JSON."""
    result = asked("--offline", "--config", "kueue.yaml", "-o", "json")
    (workload,) = json.loads(result.output)["workloads"]
    (pods,) = workload["podSets"]
    assert pods["resources"][0] == {
        "name": "example.com/gpus",
        "each": "2",
        "once": "1",
        "total": "3",
    }
    assert pods["replaced"] == ["example.com/nic"]


def test_no_price_is_an_answer_of_its_own(folder: Path) -> None:
    """With the reason, and status 1."""
    result = asked("--offline")
    assert result.exit_code == 1
    assert "ClassUnmapped" in result.output
    by_kueue = asked("--offline", "--config", "kueue.yaml", "--as-kueue", "-o", "json")
    assert by_kueue.exit_code == 1
    (workload,) = json.loads(by_kueue.output)["workloads"]
    assert workload["noPrice"]["field"].endswith("resourceClaims[1].resourceClaimName")


ERRORS: Final = {
    "a file that is not there": (("--config", "none.yaml"), "none.yaml: cannot be read"),
    "no Configuration": (("--config", "pod.yaml"), "pod.yaml: has no Configuration"),
    "mappings that make no sense": (
        ("--config", "wrong.yaml"),
        "wrong.yaml: resources.deviceClassMappings[0].deviceClassNames: Required value",
    ),
    "a cluster to be left out": (("--snapshot", "s.yaml"), "--offline reads no cluster"),
    "no flavors": (("--by-flavor",), "there are no ResourceFlavors"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_end_with_status_2(name: str, folder: Path) -> None:
    """And name the file and the field, or the option."""
    (folder / "wrong.yaml").write_text(CONFIGURATION.replace("[gpu.example.com]", "[]"))
    arguments, message = ERRORS[name]
    result = asked("--offline", *arguments)
    assert result.exit_code == 2
    assert message in result.output
