"""What was left undone is done after a restart: deletions that the API alone could only mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.e2e.driving import Kubectl, running
from apiserver.e2e.manifests import Object, config_map, owned_by


def make_family(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "owner")
    owner: Object = kubectl.object("configmap", "owner")
    for name in ("a-dependent", "z-dependent"):
        kubectl("create", "-f", "-", given=config_map(name, ownerReferences=owned_by(owner)))


@pytest.mark.parametrize(
    ("cascade", "before", "after"),
    [
        ("background", "a-dependent z-dependent", ""),
        ("foreground", "a-dependent owner z-dependent", ""),
        ("orphan", "a-dependent owner z-dependent", "a-dependent z-dependent"),
    ],
)
def test_cascades_go_on(
    tmp_path: Path, kubectl_home: Path, cascade: str, before: str, after: str
) -> None:
    """Without controllers a deletion waits; with them it ends as it was asked for."""
    names = ("get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}")
    config, options = tmp_path / "config", ("--data-dir", tmp_path / "data")
    with running(config, *options, "--no-controllers") as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        make_family(kubectl)
        kubectl("delete", "configmap", "owner", f"--cascade={cascade}", "--wait=false")
        assert kubectl(*names) == before
    with running(config, *options) as server:
        kubectl = Kubectl(server, "default", kubectl_home)
        going = {*before.split()} - {*after.split()}
        kubectl("wait", "--for=delete", *(f"configmap/{name}" for name in going), "--timeout=150s")
        assert kubectl(*names) == after
        owners = "jsonpath={.items[*].metadata.ownerReferences}"
        assert kubectl("get", "configmaps", "-o", owners) == ""


def test_the_end_of_a_namespace_goes_on(tmp_path: Path, kubectl_home: Path) -> None:
    """A namespace that was being deleted is emptied and goes."""
    config, options = tmp_path / "config", ("--data-dir", tmp_path / "data")
    with running(config, *options, "--no-controllers") as server:
        kubectl = Kubectl(server, "old", kubectl_home)
        kubectl("create", "namespace", "old")
        kubectl("create", "configmap", "settings")
        kubectl("delete", "namespace", "old", "--wait=false")
        assert kubectl("get", "namespace", "old", "--no-headers").split()[1] == "Terminating"
        assert kubectl("get", "configmaps", "-o", "name") == "configmap/settings\n"
    with running(config, *options) as server:
        kubectl = Kubectl(server, "old", kubectl_home)
        kubectl("wait", "--for=delete", "namespace/old", "--timeout=150s")
        assert kubectl("get", "configmaps", "-o", "name") == ""
