"""One cluster of simulated nodes for all the tests here, and people who may see only some of it."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver.e2e.driving import PATIENCE_S, Kubectl, Server, running
from cli.explain.manifests import FULL, WAITING
from cli.explain.people import Person

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two nodes of the example driver, with a scheduler and controllers."""
    folder = tmp_path_factory.mktemp("explain")
    with running(folder / "config", "--ephemeral", "--profile", "example=2") as server:
        yield server


@pytest.fixture(scope="session")
def kubectl(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """As the administrator, in the namespace `team-a`."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    found = Kubectl(server, "team-a", tmp_path_factory.mktemp("home"))
    for name in ("team-a", "team-b"):
        found("create", "namespace", name)
    return found


@pytest.fixture(scope="session")
def full(kubectl: Kubectl) -> Kubectl:
    """With pods that take most of both nodes, and others that wait."""
    kubectl("apply", "-f", "-", given=FULL)
    pods = ("pod/first", "pod/second")
    kubectl("wait", "--for=condition=Ready", *pods, f"--timeout={PATIENCE_S:.0f}s")
    kubectl("apply", "-f", "-", given=WAITING)
    made = "--for=jsonpath={.status.active}=2"
    kubectl("wait", made, "job/sweep", f"--timeout={PATIENCE_S:.0f}s")
    return kubectl


@pytest.fixture
def person(kubectl: Kubectl, tmp_path: Path) -> Person:
    """The kubeconfig of somebody who may list some things in `team-a` and some in the whole cluster."""

    def make(in_namespace: str, in_cluster: str) -> Path:
        name = f"person-{next(_numbers)}"
        account = f"--serviceaccount=team-a:{name}"
        verbs = "--verb=get,list,watch"
        kubectl("create", "serviceaccount", name)
        kubectl("create", "role", name, verbs, f"--resource={in_namespace}")
        kubectl("create", "rolebinding", name, f"--role={name}", account)
        kubectl("create", "clusterrole", name, verbs, f"--resource={in_cluster}")
        kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", account)
        config = json.loads(kubectl.server.kubeconfig.read_bytes())
        token = kubectl("create", "token", name, "--duration=10m").strip()
        config["users"][0]["user"] = {"token": token}
        config["contexts"][0]["context"]["namespace"] = "team-a"
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(config))
        return path

    return make
