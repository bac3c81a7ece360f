"""Volumes with kubectl, on a cluster of simulated nodes: applied, bound where the pods run, and gone with their claims."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.e2e.driving import Kubectl, running

CLASSES = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: ebs.csi.aws.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
"""

POD = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 5Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: busybox, volumeMounts: [{name: d, mountPath: /d}]}]
  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]
"""

DISK = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 100Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  local: {path: /mnt/disk}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [example-1]}]
"""

SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: busybox, volumeMounts: [{name: d, mountPath: /d}]}]
  volumeClaimTemplates:
  - metadata: {name: d}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


@pytest.fixture(scope="module")
def volumes(tmp_path_factory: pytest.TempPathFactory, kubectl_home: Path) -> Iterator[Kubectl]:
    """kubectl on a cluster with two nodes."""
    folder = tmp_path_factory.mktemp("volumes")
    options = ("--data-dir", folder / "data", "--profile", "example=2")
    with running(folder / "config", *options) as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        kubectl("apply", "-f", "-", given=CLASSES)
        yield kubectl


def wait(kubectl: Kubectl, what: str, condition: str) -> dict[str, Any]:
    kubectl("wait", what, f"--for={condition}", "--timeout=150s")
    return kubectl.object(what)


def test_a_pod_with_a_volume_of_a_class_that_waits_for_it(volumes: Kubectl) -> None:
    """The pod runs, its claim is bound to a volume that was made for its node, and the volume goes with the claim."""
    volumes("apply", "-f", "-", given=POD)
    pod = wait(volumes, "pod/reader", "jsonpath={.status.phase}=Running")
    claim = volumes.object("pvc/data")
    assert claim["status"]["phase"] == "Bound"
    assert (
        claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
        == (pod["spec"]["nodeName"])
    )
    name = claim["spec"]["volumeName"]
    volume = volumes.object(f"pv/{name}")
    assert (volume["status"]["phase"], volume["spec"]["capacity"]) == ("Bound", {"storage": "5Gi"})
    volumes("delete", "pod/reader", "pvc/data")
    volumes("wait", f"pv/{name}", "--for=delete", "--timeout=150s")


def test_a_pod_follows_the_disk(volumes: Kubectl) -> None:
    """A claim gets the disk of a node, and its pod that node; the disk is kept when both are gone."""
    volumes("apply", "-f", "-", given=DISK)
    volumes("apply", "-f", "-", given=POD.replace("fast", "local"))
    pod = wait(volumes, "pod/reader", "jsonpath={.status.phase}=Running")
    assert pod["spec"]["nodeName"] == "example-1"
    assert volumes.object("pvc/data")["spec"]["volumeName"] == "disk"
    volumes("delete", "pod/reader", "pvc/data")
    wait(volumes, "pv/disk", "jsonpath={.status.phase}=Released")


def test_a_stateful_set_with_volumes(volumes: Kubectl) -> None:
    """Each pod has a volume of its own, of the class that is there from the beginning."""
    assert "standard (default)" in volumes("get", "storageclass")
    volumes("apply", "-f", "-", given=SET)
    volumes("rollout", "status", "statefulset/db", "--timeout=150s")
    claims = [volumes.object(f"pvc/d-db-{number}") for number in range(2)]
    assert {claim["spec"]["storageClassName"] for claim in claims} == {"standard"}
    assert len({claim["spec"]["volumeName"] for claim in claims}) == 2
