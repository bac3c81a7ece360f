"""`drayman explain` on a real cluster: the answer, its exit status, and who may have it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from apiserver.e2e.driving import DRAYMAN, PATIENCE_S, Kubectl
from cli.explain.manifests import deployment
from cli.explain.people import HARDWARE, OWN, Person
from drayman.cli.main import cli

Explain = Callable[..., Result]


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["explain", *words], prog_name="drayman")


@pytest.fixture
def explain(full: Kubectl) -> Explain:
    """The command as the administrator, in the namespace of these tests."""
    where = ("--kubeconfig", str(full.server.kubeconfig), "--namespace", full.namespace)
    return lambda *words: run(*words, *where)


def data(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_what_runs(explain: Explain) -> None:
    """Exit status 0, its node and devices, and the nodes that were in question."""
    result = explain("pod/first")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Runs: ")
    assert "why here" in result.stdout
    found = data(explain("pod/first", "-o", "json"))
    assert found["node"] in ("example-0", "example-1")
    assert len(found["devices"]) == 6
    assert [each["node"] for each in found["alternatives"] if each.get("chosen")] == [found["node"]]


def test_what_waits(explain: Explain) -> None:
    """Exit status 1, the reason first, then the grounds and what would help."""
    result = explain("pod/third")
    assert result.exit_code == 1, result.stderr
    assert result.stdout.startswith("DevicesInUse (not now): ")
    for heading in ("what is left", "nearest miss", "who holds it", "what would help", "read: "):
        assert heading in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "\x1b" not in result.stdout


def test_the_same_as_data(explain: Explain) -> None:
    """JSON and YAML hold what the text is made from, with the same exit status."""
    result = explain("pod", "third", "-o", "json")
    assert result.exit_code == 1
    found = data(result)
    assert (found["kind"], found["namespace"], found["name"]) == ("Pod", "team-a", "third")
    assert (found["headline"]["reason"], found["headline"]["kind"]) == ("DevicesInUse", "not now")
    (funnel,) = found["funnels"]
    assert funnel["wanted"] == 6
    free = next(step for step in funnel["steps"] if step["test"] == "free")
    assert (free["nodes"], free["devices"]) == (2, 4)
    assert {holder["pods"][0] for holder in found["holders"]} == {"first", "second"}
    assert any(op["verb"] == "delete" for each in found["remedies"] for op in each["operations"])
    again = yaml.safe_load(explain("pod/third", "-o", "yaml").stdout)
    assert again["funnels"] == found["funnels"]


def test_a_misspelt_attribute(explain: Explain) -> None:
    """The nearest existing names, and on how many devices they are."""
    result = explain("pod/misspelt")
    assert result.exit_code == 1
    assert result.stdout.startswith("AttributeUnknown (never): ")
    assert "gpu.example.com/model is on 16 devices" in result.stdout


def test_a_job(explain: Explain) -> None:
    """Its pods by their reason, one for all that have the same."""
    result = explain("job/sweep", "-o", "json")
    assert result.exit_code == 1, result.stderr
    found = data(result)
    assert found["headline"]["reason"] == "DevicesInUse"
    (part,) = found["parts"]
    assert part["count"] == 2
    assert "and 1 more like it" in explain("job/sweep").stdout


def test_a_deployment(full: Kubectl, explain: Explain) -> None:
    """How many of its pods wait and for what, with the remedies of the pod; by kubectl's short name too."""
    containers = [{"name": "main", "image": "app"}]
    spec = {"nodeSelector": {"disk": "ssd"}, "containers": containers}
    made = deployment("picky", spec, replicas=2)
    full("apply", "-f", "-", given=made)
    full("wait", "--for=jsonpath={.status.replicas}=2", "deployment/picky", f"--timeout={PATIENCE_S:.0f}s")  # fmt: skip
    result = explain("deploy", "picky")
    assert result.exit_code == 1, result.stderr
    assert result.stdout.startswith("NodeMismatch (never): 2 of 2 pods wait: ")
    assert "and 1 more like it" in result.stdout
    found = data(explain("deployment/picky", "-o", "json"))
    assert found["remedies"] == found["parts"][0]["remedies"]
    assert found["remedies"]
    full("delete", "deployment/picky")


def test_a_node(explain: Explain) -> None:
    """Its devices, who has them, and who waits and does not go there."""
    result = explain("no", "example-0")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Runs: Node example-0 is ready and takes pods.")
    for words in ("devices", "gpu.example.com", "who holds it", "who waits", "team-a job/sweep"):
        assert words in result.stdout
    found = data(explain("node/example-0", "-o", "json"))
    gpus = next(each for each in found["counts"] if each["driver"] == "gpu.example.com")
    assert (gpus["states"]["used"], len(found["holders"])) == (6, 1)
    assert "sweep" in {part["name"] for part in found["parts"]}


def test_a_cordoned_node(full: Kubectl, explain: Explain) -> None:
    """It takes no pods, and neither the explanation nor the map has anything free there."""
    full("cordon", "example-1")
    try:
        result = explain("node/example-1", "-o", "json")
        where = ("--kubeconfig", str(full.server.kubeconfig), "-o", "json")
        shown = CliRunner().invoke(cli, ["map", *where], prog_name="drayman")
    finally:
        full("uncordon", "example-1")
    assert result.exit_code == 1, result.stderr
    found = data(result)
    assert found["headline"]["reason"] == "NodesCordoned"
    assert all("free" not in each["states"] for each in found["counts"])
    nodes = [node for rack in data(shown)["racks"] for node in rack["nodes"]]
    (cordoned,) = [node for node in nodes if node["name"] == "example-1"]
    assert cordoned["closed"] == ["cordoned"]
    assert all("free" not in counts for counts in cordoned["devices"].values())


@pytest.mark.parametrize("words", [["--all"], ["namespace/team-a"], ["ns", "team-a"]])
def test_all_that_waits(explain: Explain, words: list[str]) -> None:
    """By reason, each workload once with its pods; the exit status says whether anything does."""
    result = explain(*words)
    assert result.exit_code == 1, result.stderr
    assert "job/sweep (2 pods)" in result.stdout
    assert "pod/third" in result.stdout
    assert "pod/first" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    found = data(explain(*words, "-o", "json"))
    told = {
        (part["headline"]["reason"], part["name"], part.get("count", 1)) for part in found["parts"]
    }
    assert {("DevicesInUse", "sweep", 2), ("AttributeUnknown", "misspelt", 1)} <= told


def test_all_that_waits_in_the_cluster(full: Kubectl) -> None:
    """Without a namespace it is all of them."""
    where = ("--kubeconfig", str(full.server.kubeconfig))
    found = data(run("--all", "-o", "json", *where))
    assert found["kind"] == "Cluster"
    assert {part["namespace"] for part in found["parts"]} == {"team-a"}
    assert "team-a job/sweep (2 pods)" in run("--all", *where).stdout
    assert run("--all", *where, "--namespace", "team-b").exit_code == 0


def test_a_claim(full: Kubectl, explain: Explain) -> None:
    """One that has its devices is no reason to wait."""
    (name,) = [
        claim["metadata"]["name"]
        for claim in full.object("resourceclaims")["items"]
        if claim["metadata"]["ownerReferences"][0]["name"] == "first"
    ]
    result = explain(f"resourceclaim/{name}")
    assert result.exit_code == 0
    assert result.stdout.startswith("Allocated: ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["pod/nobody"], "there is no pod/nobody in namespace team-a"),
        (["claim/nobody"], "there is no resourceclaim/nobody in namespace team-a"),
        (["job", "nobody"], "there is no job/nobody in namespace team-a"),
        (["deploy/nobody"], "there is no deployment/nobody in namespace team-a"),
        (["node/nobody"], "there is no node/nobody"),
        (["ns", "nobody"], "there is no namespace/nobody; `kubectl get namespaces` lists them"),
        (["pod/frist"], "there is no pod/frist in namespace team-a; did you mean first?"),
        (["node/example-9"], "there is no node/example-9; did you mean example-1 or example-0"),
        (["ns/team-q"], "there is no namespace/team-q; did you mean team-"),
        (["service/first"], "is no kind that is known here"),
        (["pod/first", "--all"], "leave out KIND/NAME"),
        ([], "what should be explained?"),
        (["pod/first", "--context", "nowhere"], "has no context 'nowhere'"),
    ],
)
def test_what_there_is_no_answer_to(explain: Explain, words: list[str], sentence: str) -> None:
    """Exit status 2, with one sentence on standard error."""
    result = explain(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("namespace", "sentence"),
    [
        ("tema-a", "because there is no namespace tema-a; did you mean team-a"),
        ("default", "in namespace default; there is one in namespace team-a: name it with"),
    ],
)
def test_a_pod_of_another_namespace(full: Kubectl, namespace: str, sentence: str) -> None:
    """What is wrong is said: the namespace does not exist, or the pod is in another."""
    where = ("--kubeconfig", str(full.server.kubeconfig))
    result = run("pod/first", *where, "--namespace", namespace)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in " ".join(result.stderr.split())


def test_no_cluster_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that does not run, or that nobody wrote down, is no verdict on the pod."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    result = run("pod/first", "--data-dir", str(tmp_path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "nothing runs on" in result.stderr
    result = run("pod/first", "--kubeconfig", str(tmp_path / "missing"))
    assert result.exit_code == 2


def test_an_answer_that_cannot_be_written_is_none(full: Kubectl) -> None:
    """A full disk must not look like a verdict."""
    where = ("--kubeconfig", str(full.server.kubeconfig), "--namespace", full.namespace)
    with open("/dev/full", "w") as disk:
        done = subprocess.run(
            [*DRAYMAN, "explain", "pod/first", *where],
            stdout=disk,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 2
    assert done.stderr == "error: output cannot be written: no space left on device\n"


def test_a_snapshot_is_explained_as_the_cluster_is(full: Kubectl, tmp_path: Path) -> None:
    """The same reason and funnel, from a file; but nothing to watch there."""
    config = str(full.server.kubeconfig)
    saved = CliRunner().invoke(cli, ["snapshot", "--kubeconfig", config], prog_name="drayman")
    assert saved.exit_code == 0, saved.stderr
    path = tmp_path / "cluster.yaml"
    path.write_text(saved.stdout)
    words = ("pod/third", "--namespace", "team-a", "-o", "json")
    from_file = run(*words, "--snapshot", str(path))
    assert from_file.exit_code == 1, from_file.stderr
    live = data(run(*words, "--kubeconfig", config))
    assert data(from_file)["headline"] == live["headline"]
    assert data(from_file)["funnels"] == live["funnels"]
    assert run(*words, "--snapshot", str(path), "--watch").exit_code == 2
    listed = run("--all", "-o", "json", "--snapshot", str(path))
    assert "sweep" in {part["name"] for part in data(listed)["parts"]}


def test_others_stay_hidden(full: Kubectl, person: Person) -> None:
    """Somebody with one namespace, that of their kubeconfig, is told what could not be looked at."""
    result = run("pod/third", "-o", "json", "--kubeconfig", str(person(OWN, HARDWARE)))
    assert result.exit_code == 1, result.stderr
    assert "pods outside of namespace team-a" in data(result)["unseen"]
    assert "team-b" not in result.stdout
    missing = run("deploy/web", "--kubeconfig", str(person(OWN, HARDWARE)))
    assert missing.exit_code == 2
    assert "permission to list deployments.apps in team-a" in missing.stderr
    refused = run("pod/third", "--kubeconfig", str(person("resourceclaims", HARDWARE)))
    assert refused.exit_code == 2
    assert "permission to list pods in namespace team-a" in refused.stderr
