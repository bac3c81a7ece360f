"""`drayman plan`, `capacity` and `snapshot`: what they print, and how they end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from controllers.world import NAMESPACE, POD_VALUES
from drayman.cli.main import cli
from drayman.cluster.resources import generic
from drayman.simulate.snapshot import read_snapshot, snapshot
from scheduler.behaviour.stage import staged, wants
from simulate.cluster import cluster, held

SECRETS = generic("v1", "secrets", "Secret")
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      restartPolicy: Never
      resourceClaims:
      - name: gpu
        resourceClaimTemplateName: two
      containers:
      - name: main
        image: example.com/image:1
"""
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: pair
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu
        count: 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a snapshot of two nodes with four and two devices, one of them in use, a job and a claim."""
    monkeypatch.chdir(tmp_path)
    world = cluster({"node-a": 4, "node-b": 2}, claims=(held("c", "node-b", "gpu-0"),))
    (tmp_path / "cluster.yaml").write_bytes(b"".join(b"---\n%b\n" % t for t in snapshot(world)))
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "claim.yaml").write_text(CLAIM)
    return tmp_path


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin)


def planned(*arguments: str, stdin: str = "") -> Result:
    return run("plan", "--snapshot", "cluster.yaml", *arguments, stdin=stdin)


def test_a_plan_that_fits_exits_0(folder: Path) -> None:
    """The answer comes first, then a line for each pod with its node and devices."""
    result = planned("-f", "job.yaml")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "Fits: all 2 pods would run.",
        "",
        "where pods would go",
        "  pod      node    devices",
        "  train-1  node-a  gpu-0, gpu-1",
        "  train-2  node-a  gpu-2, gpu-3",
    ]


def test_a_plan_that_does_not_fit_exits_1(folder: Path) -> None:
    """What waits is told with the reason."""
    result = planned("-f", "-", stdin=JOB.replace(": 2\n", ": 3\n"))
    assert result.exit_code == 1
    assert result.output.startswith("Does not fit: 2 of 3 pods would run.\n\nwhat would wait\n")
    assert "  train-3\n    Fragmented (not here): " not in result.output.partition("Where")[2]
    assert "train-3" in result.output.partition("Where")[0]


def test_a_gang_fits_as_a_whole_or_not_at_all(folder: Path) -> None:
    """The pods of a Job that start together wait together, though there is room for some of them."""
    gang = JOB.replace("  name: train\n", "  name: train\n  annotations: {drayman.dev/gang: '3'}\n")
    result = planned("-f", "-", stdin=gang.replace(": 2\n", ": 3\n"))
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[:4] == [
        "Does not fit: 0 of 3 pods would run.",
        "",
        "what would wait",
        "  train-1, train-2 and train-3",
    ]
    said = " ".join(line.strip() for line in lines[4:])
    assert said.startswith(
        "GangTooLarge (not now): Gang default/job/train: 2 of 3 pods fit at once"
    )


def test_a_gang_in_a_group_of_the_files(folder: Path) -> None:
    """A group of another scheduler is read from the files, and each copy has its own."""
    group = "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 2}\n---\n"
    labels = (
        "    metadata: {labels: {scheduling.x-k8s.io/pod-group: g}}\n    spec:\n      restartPolicy"
    )
    gang = group + JOB.replace("    spec:\n      restartPolicy", labels)
    result = planned("-f", "-", "--times", "2", "-o", "json", stdin=gang)
    assert result.exit_code == 1, result.output
    found = {pod["name"]: pod for pod in json.loads(result.output)["pods"]}
    assert [found[name].get("node") for name in ("train-1", "train-2")] == ["node-a", "node-a"]
    assert "node" not in found["train-2-1"]
    assert "Pod group default/g-2" in found["train-2-1"]["waits"]["sentence"]


def test_copies_are_counted(folder: Path) -> None:
    """`--times` says how many of the copies fit with all their pods."""
    result = planned("-f", "job.yaml", "--times", "3")
    assert result.exit_code == 1
    assert result.output.startswith("1 of 3 copies fit: 2 of 6 pods would run.\n")


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_plan_is_data_too(folder: Path, form: str) -> None:
    """`-o` has every pod with node, devices and reason."""
    result = planned("-f", "job.yaml", "--times", "2", "-o", form)
    data = json.loads(result.output) if form == "json" else yaml.safe_load(result.output)
    assert (data["fits"], data["copies"], data["copiesFitting"]) == (False, 2, 1)
    first, *_, last = data["pods"]
    assert first["node"] == "node-a"
    assert [device["device"] for device in first["devices"]] == ["gpu-0", "gpu-1"]
    assert last["waits"]["kind"] in ("not now", "not here")


def test_what_waits_is_explained_once_for_each_kind(folder: Path) -> None:
    """`--explain` adds the explanation of one pod for all that wait for the same."""
    result = planned("-f", "job.yaml", "--times", "4", "--explain", "-o", "json")
    (explanation,) = json.loads(result.output)["explanations"]
    assert (
        explanation["headline"]["reason"]
        == json.loads(result.output)["pods"][-1]["waits"]["reason"]
    )
    text = planned("-f", "job.yaml", "--times", "4", "--explain").output
    assert "\nExplained with the planned pods in their places: " in text
    assert "pod at\n" not in text


def test_many_pods_are_cut_short_unless_all_are_wanted(folder: Path) -> None:
    """Forty lines, and how many are left out."""
    pods = JOB.replace(
        "      resourceClaims:\n      - name: gpu\n        resourceClaimTemplateName: two\n", ""
    )
    text = pods.replace(": 2\n", ": 60\n")
    assert "and 20 more; --all lists them" in planned("-f", "-", stdin=text).output
    assert "train-60" in planned("-f", "-", "--all", stdin=text).output


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "a file that is not there": (("-f", "nope.yaml"), "nope.yaml: cannot be read"),
    "a snapshot that is not there": (
        ("-f", "job.yaml", "--snapshot", "nope"),
        "nope: cannot be read",
    ),
    "a snapshot that is none": (
        ("-f", "job.yaml", "--snapshot", "job.yaml"),
        "is not a snapshot of a cluster",
    ),
    "nothing to plan": (
        ("-f", "claim.yaml"),
        "claim.yaml: nothing there would create pods now, only ResourceClaim",
    ),
    "a claim can be counted": (
        ("-f", "claim.yaml"),
        "; `drayman capacity -f FILE` says how often a claim fits",
    ),
    "nothing to plan now": (
        ("-f", "rc.yaml"),
        "rc.yaml: nothing there would create pods now; not planned: Rocket",
    ),
    "a manifest that is wrong": (("-f", "bad.yaml"), "bad.yaml:6: Job train: spec.parallelism: "),
    "two clusters": (("-f", "job.yaml", "--context", "x"), "--snapshot already names a cluster"),
    "more pods than anybody has": (
        ("-f", "billions.yaml"),
        "this amounts to more than 200,000 pods, which is too many to plan",
    ),
    "no times": (("-f", "job.yaml", "--times", "0"), "Invalid value"),
}


def test_what_is_true_of_every_copy_is_said_once(folder: Path) -> None:
    """A job that is suspended makes no pods, however often it is asked for."""
    text = JOB.replace("spec:\n  parallelism", "spec:\n  suspend: true\n  parallelism")
    result = planned("-f", "-", "--times", "3", stdin=text)
    assert result.output.count("job/train makes no pods: it is suspended.") == 1


def test_what_others_hold_unseen_is_not_said_to_be_free(folder: Path) -> None:
    """Answers are given as far as can be seen."""
    world = cluster({"node-a": 4})
    world.unseen = ("pods outside of namespace team-a",)
    (folder / "cluster.yaml").write_bytes(b"".join(b"---\n%b\n" % t for t in snapshot(world)))
    text = JOB.replace("resourceClaimTemplateName: two", "resourceClaimName: pair")
    result = planned("-f", "-", "-f", "claim.yaml", stdin=text)
    assert result.output.startswith("Fits, as far as you may see: all 2 pods would run.")
    result = run("capacity", "-f", "claim.yaml", "--snapshot", "cluster.yaml")
    assert "2 of claim pair fit now, as far as you may see, 2 with nothing in use." in result.output


def test_capacity_without_nodes_says_so(folder: Path) -> None:
    """As text and as data."""
    text = b"".join(b"---\n%b\n" % t for t in snapshot(cluster({})))
    (folder / "cluster.yaml").write_bytes(text)
    words = ("capacity", "-f", "claim.yaml", "--snapshot", "cluster.yaml")
    assert "NoNodes (never): The cluster has no nodes." in run(*words).output
    found = run(*words, "-o", "json")
    assert found.exit_code == 1
    assert json.loads(found.output)["runsOut"]["reason"] == "NoNodes"


@pytest.mark.parametrize("title", WRONG)
def test_what_is_wrong_exits_2(folder: Path, title: str) -> None:
    """With one line that says what, and nothing on standard output."""
    arguments, message = WRONG[title]
    (folder / "bad.yaml").write_text(JOB.replace("parallelism: 2", "parallelism: -1"))
    (folder / "billions.yaml").write_text(JOB.replace(": 2\n", ": 2000000000\n"))
    (folder / "rc.yaml").write_text("{apiVersion: example.com/v1, kind: Rocket}")
    result = planned(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_capacity_counts_copies(folder: Path) -> None:
    """Now, with nothing in use, what runs out first, and where."""
    result = run("capacity", "-f", "claim.yaml", "--snapshot", "cluster.yaml")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "2 of claim pair fit now, 3 with nothing in use."
    assert any(line.startswith("what runs out first (on ") for line in lines)
    assert [line.split()[:3] for line in lines[-2:]] == [["1", "2", "2"], ["1", "0", "1"]]


def test_capacity_of_a_claim_that_does_not_fit_exits_1(folder: Path) -> None:
    """As data, with the reason."""
    text = CLAIM.replace("count: 2", "count: 5")
    result = run("capacity", "-f", "-", "--snapshot", "cluster.yaml", "-o", "json", stdin=text)
    data = json.loads(result.output)
    assert (result.exit_code, data["now"], data["empty"]) == (1, 0, 0)
    assert data["runsOut"]["reason"] == "CountTooHigh"


def test_capacity_wants_one_claim(folder: Path) -> None:
    """A file with none, or several, is no question."""
    result = run("capacity", "-f", "job.yaml", "--snapshot", "cluster.yaml")
    assert result.exit_code == 2
    assert "has 0 ResourceClaims and ResourceClaimTemplates; expected one" in result.stderr


async def _cluster(folder: Path, work: Any) -> None:
    async with staged(folder) as stage:
        await stage.device_class()
        await stage.make_template("two", wants(count=2))
        await stage.node("node-a", "gpu-0", "gpu-1", "gpu-2")
        await stage.client.create(
            SECRETS, {"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}, NAMESPACE
        )
        container = {
            "name": "main",
            "image": "example.com/image:1",
            "env": [{"name": "PASSWORD", "value": "hunter2"}],
        }
        body = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
        await stage.create(POD_VALUES, body)
        await stage.bound("p")
        await asyncio.to_thread(work, str(folder / "drayman" / "kubeconfig"))


def test_a_running_cluster_is_read_and_saved(folder: Path) -> None:
    """A plan on the cluster and one on its snapshot say the same; the snapshot has no secrets."""

    def work(kubeconfig: str) -> None:
        live = run("plan", "-f", "job.yaml", "--kubeconfig", kubeconfig)
        assert live.output.startswith("Does not fit: 1 of 2 pods would run."), live.output
        for form in ("lines", "yaml", "json"):
            saved = run("snapshot", "--kubeconfig", kubeconfig, "-o", form)
            assert saved.exit_code == 0, saved.output
            assert "hunter2" not in saved.output
            world = read_snapshot("f", saved.output.encode(), now=0.0)
            assert [pod.metadata.name for pod in world.objects.pods] == ["p"]
            assert world.versions["pods"]
            (folder / "saved").write_text(saved.output)
            offline = run("plan", "-f", "job.yaml", "--snapshot", "saved")
            assert offline.output == live.output

    asyncio.run(_cluster(folder, work))


REFUSED = (
    CLAIM
    + """\
    config:
    - opaque:
        driver: gpu.nvidia.com
        parameters:
          apiVersion: resource.nvidia.com/v1beta1
          kind: GpuConfig
          sharing: {strategy: MPSS}
"""
)


def as_validated(folder: Path) -> str:
    """What `drayman validate` says about the claim, in `refused.yaml`."""
    (folder / "refused.yaml").write_text(REFUSED)
    (line,) = run("validate", "refused.yaml").stdout.splitlines()
    assert ": warning: ResourceClaim pair: spec.devices.config[0].opaque.parameters: " in line
    return line


def test_claims_alone_are_warned_about_as_by_validate(folder: Path) -> None:
    """There is nothing to plan, but what a driver will refuse is told all the same."""
    warning = as_validated(folder)
    result = planned("-f", "refused.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[1:] == [warning]


def test_claims_that_no_planned_pod_uses_are_warned_about(folder: Path) -> None:
    """What a pod uses is told with the pod, and once."""
    warning = as_validated(folder)
    beside = planned("-f", "job.yaml", "-f", "refused.yaml", "-o", "json")
    assert json.loads(beside.output)["warnings"] == [warning]
    text = JOB.replace("resourceClaimTemplateName: two", "resourceClaimName: pair")
    used = json.loads(planned("-f", "-", "-f", "refused.yaml", "-o", "json", stdin=text).output)
    assert "warnings" not in used
    assert used["pods"][0]["refusedConfigs"][0].startswith("claim pair: driver gpu.nvidia.com")
    drawn = " ".join(planned("-f", "job.yaml", "-f", "refused.yaml").output.split())
    assert warning in drawn


def test_capacity_warns_as_validate_does(folder: Path) -> None:
    """Such claims fit, and the pods that use them do not start."""
    warning = as_validated(folder)
    asked = ("capacity", "--snapshot", "cluster.yaml", "-f", "refused.yaml")
    result = run(*asked)
    assert result.exit_code == 0
    assert warning in " ".join(result.output.split())
    assert json.loads(run(*asked, "-o", "json").output)["warnings"] == [warning]
    right = run("capacity", "--snapshot", "cluster.yaml", "-f", "claim.yaml", "-o", "json")
    assert "warnings" not in json.loads(right.output)


def test_a_claim_of_the_same_name_elsewhere_is_warned_about(folder: Path) -> None:
    """The pod that is told what its claim has wrong says nothing about that of another namespace."""
    as_validated(folder)
    other = REFUSED.replace("  name: pair\n", "  name: pair\n  namespace: other\n", 1)
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: other\n---\n"
    (folder / "other.yaml").write_text(namespace + other)
    text = JOB.replace("resourceClaimTemplateName: two", "resourceClaimName: pair")
    files = ("-f", "-", "-f", "refused.yaml", "-f", "other.yaml")
    result = planned(*files, "-o", "json", stdin=text)
    (warning,) = json.loads(result.output)["warnings"]
    assert warning.startswith("other.yaml:")
