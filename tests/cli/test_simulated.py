"""`drayman profiles`, `node` and `device` say what they did, and what is wrong."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from apiserver.e2e.driving import DRAYMAN, Kubectl, Server, running
from drayman.cli.main import cli

Run = Callable[..., Result]


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), prog_name="drayman")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("simulated")
    with running(folder / "config", "--ephemeral", "--profile", "example=2") as server:
        yield server


@pytest.fixture
def on(server: Server) -> Run:
    """A command for the cluster of these tests."""
    return lambda *words: run(*words, "--kubeconfig", str(server.kubeconfig))


def device(on: Run, name: str) -> dict[str, object]:
    result = on("device", "list", "--driver", "gpu.example.com", "-o", "json")
    (found,) = [
        row
        for row in json.loads(result.stdout)["devices"]
        if f"{row['pool']}/{row['device']}" == name
    ]
    return dict(found)


def test_profiles_are_listed() -> None:
    """As a table, and as data."""
    assert "dgx-h100-mig" in run("profiles").stdout
    rows = {
        row["name"]: row for row in json.loads(run("profiles", "-o", "json").stdout)["profiles"]
    }
    assert rows["gb200-nvl72"]["nodes"] == 18


def test_a_profile_is_shown() -> None:
    """Its devices by driver; with -o the objects of one node."""
    text = run("profiles", "dgx-h100-mig").stdout
    assert "208 devices in 9 slices" in text
    assert "8 devices in 1 slice, such as" in text
    listed = text.partition("  classes: ")[2].partition("  node: ")[0].splitlines()
    assert len(listed) > 1
    assert all(line.startswith(" " * len("  classes: ")) for line in listed[1:])
    items = yaml.safe_load(run("profiles", "dgx-h100", "-o", "yaml").stdout)["items"]
    kinds = [item["kind"] for item in items]
    assert kinds.count("ResourceSlice") == 4
    assert kinds.count("Node") == 1
    assert "CustomResourceDefinition" in kinds


def test_an_unknown_profile_is_refused() -> None:
    """With what it may have meant."""
    result = run("profiles", "dgx-h10")
    assert result.exit_code == 1
    assert "did you mean dgx-h100" in result.stderr


def test_taints_come_and_go(on: Run) -> None:
    """A taint shows in the list until it is taken back; what is not there cannot be taken back."""
    tainted = on("device", "taint", "example-0/gpu-3", "example.com/bad=1:NoSchedule")
    assert tainted.exit_code == 0
    assert tainted.stdout.startswith("cluster: context drayman (https://127.0.0.1:")
    assert device(on, "example-0/gpu-3")["taints"] == ["example.com/bad=1:NoSchedule"]
    assert device(on, "example-1/gpu-3")["taints"] == []
    assert on("device", "untaint", "example-0/gpu-3", "example.com/other").exit_code == 1
    assert on("device", "untaint", "example-0/gpu-3").exit_code == 0
    assert device(on, "example-0/gpu-3")["taints"] == []
    again = on("device", "untaint", "example-0/gpu-3")
    assert again.exit_code == 1
    assert "has no taint" in again.stderr


def test_a_removed_device_is_gone(on: Run) -> None:
    """It is no longer listed, and cannot be removed twice."""
    assert on("device", "remove", "gpu.example.com/example-1/gpu-7").exit_code == 0
    rows = json.loads(on("device", "list", "--node", "example-1", "-o", "json").stdout)["devices"]
    assert "gpu-7" not in [row["device"] for row in rows]
    assert on("device", "remove", "example-1/gpu-7").exit_code == 1


def test_nodes_are_added_and_removed_while_the_cluster_runs(
    server: Server, on: Run, tmp_path: Path
) -> None:
    """New ones are numbered after those that are there, run pods, and take their devices with them when they go."""
    added = on("node", "add", "example-shared=1,example=1")
    assert added.stdout.splitlines()[1:] == ["node/example-shared-0 added", "node/example-2 added"]
    kubectl = Kubectl(server, "default", tmp_path)
    spec = {"nodeName": "example-2", "containers": [{"name": "c", "image": "none"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": spec}
    kubectl("apply", "-f", "-", given=pod)
    kubectl("wait", "pod/new", "--for=condition=Ready")
    kubectl("delete", "pod", "new")
    removed = on("node", "remove", "example-2", "example-shared-0")
    assert removed.stdout.splitlines()[1:] == [
        "node/example-2 removed",
        "node/example-shared-0 removed",
    ]
    assert kubectl("get", "nodes", "-o", "name").split() == ["node/example-0", "node/example-1"]


WRONG = [
    (("node", "add", "exampel=1"), 1, "did you mean example"),
    (("node", "remove", "nowhere"), 1, "there is no node 'nowhere'"),
    (("device", "taint", "example-0/gpu-0", "no-effect"), 2, "write KEY[=VALUE]:EFFECT"),
    (("device", "taint", "gpu-0", "a.b/c:NoExecute"), 2, "write POOL/NAME or DRIVER/POOL/NAME"),
    (("device", "remove", "example-0/gpu-99"), 1, "there is no device 'example-0/gpu-99'; did you"),
    (("node", "fail", "nowhere"), 1, "there is no node 'nowhere'"),
]


@pytest.mark.parametrize(("words", "status", "message"), WRONG)
def test_mistakes_are_explained(words: tuple[str, ...], status: int, message: str, on: Run) -> None:
    """One line, and the exit status for a wrong command line or wrong input."""
    result = on(*words)
    assert result.exit_code == status
    assert message in result.stderr


@pytest.mark.parametrize("command", ["remove", "fail", "drain", "recover"])
def test_for_a_real_node_the_commands_of_kubectl_are_named(
    command: str, server: Server, on: Run, tmp_path: Path
) -> None:
    """These commands leave it alone, and say how it is emptied and removed."""
    kubectl = Kubectl(server, "default", tmp_path)
    name = f"real-{command}"
    node = tmp_path / "node.json"
    node.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}))
    kubectl("create", "-f", str(node))
    try:
        result = on("node", command, name)
    finally:
        kubectl("delete", "node", name)
    assert result.exit_code == 1
    assert f"node {name!r} is not simulated" in result.stderr
    assert f"kubectl drain {name} --ignore-daemonsets --force;" in result.stderr
    assert f"stop its agent, then kubectl delete node {name}" in result.stderr


def test_without_a_cluster_the_commands_say_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing runs on the data directory, and no kubeconfig is named."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    result = run("node", "fail", "n", "--data-dir", str(tmp_path))
    assert result.exit_code == 1
    assert "drayman up --profile" in result.stderr


def test_a_drain_names_the_pods_that_it_waits_for(server: Server, on: Run, tmp_path: Path) -> None:
    """And says, when it gives up or is interrupted, that the node stays cordoned."""
    kubectl = Kubectl(server, "default", tmp_path)
    labels = {"app": "kept"}
    meta = {"name": "kept", "labels": labels}
    container = {"name": "c", "image": "none"}
    spec = {"nodeName": "example-0", "containers": [container]}
    budget = {"minAvailable": 1, "selector": {"matchLabels": labels}}
    items = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": budget},
    ]  # fmt: skip
    kubectl("apply", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": items})
    kubectl("wait", "pod/kept", "--for=condition=Ready")
    still = "still cordoned: example-0; to undo it: drayman node recover example-0"
    result = on("node", "drain", "example-0", "--timeout", "1")
    assert result.exit_code == 1
    waiting, error, last = result.stderr.splitlines()
    assert waiting.startswith("waiting to evict pod default/kept: Cannot evict pod")
    assert error.startswith("error: pod default/kept stays: ")
    assert last == still
    command = [*DRAYMAN, "node", "drain", "example-0", "--kubeconfig", server.kubeconfig]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("waiting to evict pod default/kept")
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
    assert (process.returncode, said.strip()) == (130, still)
    kubectl("delete", "poddisruptionbudget/b", "pod/kept")
    assert on("node", "recover", "example-0").exit_code == 0


def test_seconds_that_are_no_number() -> None:
    """The message says what is expected."""
    result = run("down", "--timeout", "x")
    assert result.exit_code == 2
    assert "'x' is not a valid number of seconds." in result.stderr


def test_a_drained_node_has_no_pods_and_takes_none_until_it_recovers(on: Run) -> None:
    """It says on which cluster, and what it does, as kubectl does."""
    drained = on("node", "drain", "example-1").stdout.splitlines()
    assert drained[0].startswith("cluster: context drayman (https://127.0.0.1:")
    assert drained[1:] == ["node/example-1 cordoned", "node/example-1 drained"]
    recovered = on("node", "recover", "example-1").stdout.splitlines()
    assert recovered == [drained[0], "node/example-1 recovered"]


def test_nodes_of_a_cluster_that_simulates_none(tmp_path: Path) -> None:
    """The command simulates them until it is interrupted, together with those of later commands, and then removes all of them."""
    bound = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bound"},
        "spec": {"nodeName": "example-0", "containers": [{"name": "c", "image": "i"}]},
    }
    with running(tmp_path / "config", "--ephemeral", "--no-controllers") as server:
        kubectl = Kubectl(server, "default", tmp_path)
        where = ("--kubeconfig", str(server.kubeconfig))
        command = [*DRAYMAN, "node", "add", "example=1", *where]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline().startswith("cluster: ")
            assert process.stdout.readline() == "node/example-0 added\n"
            assert "this process simulates them" in process.stderr.readline()
            kubectl("apply", "-f", "-", given=bound)
            kubectl("wait", "pod/bound", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
            later = run("node", "add", "cpu=1", *where)
            assert later.exit_code == 0, later.stderr
            assert "node/cpu-0 added" in later.stdout
            kubectl("wait", "node/cpu-0", "--for=condition=Ready", "--timeout=60s")
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
            assert said.splitlines()[-1] == "stopped; the nodes are removed"
            assert process.returncode == 0
        finally:
            process.kill()
            process.communicate()
        assert kubectl("get", "nodes", "-o", "name") == ""


def test_nodes_that_cannot_be_simulated_are_removed_again(tmp_path: Path) -> None:
    """A user who may write nodes and no slices gets the error, and no nodes without devices."""
    every = ["get", "list", "watch", "create", "patch", "update", "delete"]
    kinds = {
        "": ["nodes", "nodes/status"],
        "apiextensions.k8s.io": ["customresourcedefinitions"],
        "coordination.k8s.io": ["leases"],
        "resource.k8s.io": ["deviceclasses"],
    }
    rules = [
        {"apiGroups": [group], "resources": names, "verbs": every} for group, names in kinds.items()
    ]
    rules.append(
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["list"]}
    )
    rules.append({"nonResourceURLs": ["/readyz/*"], "verbs": ["get"]})
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "builder"}}
    role = {**head, "kind": "ClusterRole", "rules": rules}
    group = "rbac.authorization.k8s.io"
    binding = {
        **head,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "builder"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "builder"}],
    }
    with running(tmp_path / "config", "--ephemeral", "--no-controllers") as server:
        kubectl = Kubectl(server, "default", tmp_path)
        kubectl("apply", "-f", "-", given=role)
        kubectl("apply", "-f", "-", given=binding)
        config = yaml.safe_load(server.kubeconfig.read_text())
        config["users"][0]["user"]["as"] = "builder"
        own = tmp_path / "builder.yaml"
        own.write_text(yaml.safe_dump(config))
        result = run("node", "add", "example=1", "--kubeconfig", str(own))
        assert result.exit_code == 1
        assert "resourceslices" in result.stderr
        assert kubectl("get", "nodes", "-o", "name") == ""
