"""Pod Security Standards with kubectl: what is refused, what is warned of, and what a file exempts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from apiserver.e2e.driving import DRAYMAN, Kubectl, running
from patience import PATIENCE_S

POD = """
apiVersion: v1
kind: Pod
metadata: {name: x}
spec:
  containers: [{name: c, image: busybox, securityContext: {privileged: true}}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  template:
    spec:
      restartPolicy: Never
      hostPID: true
      containers: [{name: c, image: busybox}]
"""
WHY = 'privileged (container "c" must not set securityContext.privileged=true)'
CONFIGURATION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline}
    exemptions: {namespaces: [kube-system]}
"""


def test_levels_of_a_namespace(kubectl: Kubectl) -> None:
    """A label takes effect at once: for pods a refusal in the words of Kubernetes, for a Job a warning, and an event for its pods."""
    kubectl("label", "namespace", kubectl.namespace, "pod-security.kubernetes.io/enforce=baseline")
    said = kubectl.refused("apply", "-f", "-", given=POD)
    assert f'pods "x" is forbidden: violates PodSecurity "baseline:latest": {WHY}' in said
    done = kubectl.attempt("apply", "-f", "-", given=JOB)
    warned = 'Warning: would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)'
    assert (done.returncode, warned in done.stderr) == (0, True)
    with kubectl.streaming("get", "events", "--watch", "-o", "custom-columns=M:message") as events:
        while "PodSecurity" not in events.next():
            pass
    wrong = f"namespace/{kubectl.namespace}", "pod-security.kubernetes.io/enforce=high"
    assert "must be one of privileged, baseline, restricted" in kubectl.refused(
        "label", "--overwrite", *wrong
    )


def test_a_file_sets_defaults_and_exemptions(tmp_path: Path, kubectl_home: Path) -> None:
    """`--admission-control-config-file` gives namespaces without labels a level, and leaves the exempt ones alone."""
    path = tmp_path / "admission.yaml"
    path.write_text(CONFIGURATION)
    option = ("--admission-control-config-file", path)
    with running(tmp_path / "config", "--ephemeral", *option) as server:
        assert WHY in Kubectl(server, "default", kubectl_home).refused(
            "apply", "-f", "-", given=POD
        )
        Kubectl(server, "kube-system", kubectl_home)("apply", "-f", "-", given=POD)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        (("enforce: baseline", "enforce: base"), "plugins[0].configuration.defaults.enforce"),
        (("namespaces:", "namespace:"), "plugins[0].configuration.exemptions.namespace: unknown"),
        (("PodSecurity\n", "Other\n"), 'plugins[0].name: Unsupported value: "Other"'),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, change: tuple[str, str], want: str) -> None:
    """The server does not start with a file that makes no sense, and the error names file and field."""
    path = tmp_path / "admission.yaml"
    path.write_text(CONFIGURATION.replace(*change))
    option = ["--admission-control-config-file", str(path)]
    done = subprocess.run(
        [*DRAYMAN, "up", "--ephemeral", "--port", "0", *option],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode != 0
    assert f"{path}: {want}" in done.stderr
