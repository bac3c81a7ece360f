"""`drayman top` and `drayman map` against a running cluster, with all rights and with few."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from apiserver.e2e.driving import DRAYMAN, PATIENCE_S, Kubectl, Lines, Server, running
from cli.terminal import Terminal, person
from cli.terminal import run as run_on_terminal
from drayman.cli.main import cli

EXAMPLES = Path(__file__).parents[3] / "examples"
PAUSE_S = 0.2
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A GPU in partitions and one that is shared, in use by the pods of two examples."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    folder = tmp_path_factory.mktemp("top")
    profiles = "dgx-h100-mig=1,example-shared=1"
    with running(folder / "config", "--ephemeral", "--profile", profiles) as server:
        kubectl = Kubectl(server, "default", folder)
        for name in ("2-mig-slices.yaml", "3-shared-gpu.yaml"):
            kubectl("apply", "-f", str(EXAMPLES / name))
        _wait_until_reserved(server, 3)
        yield server


def _wait_until_reserved(server: Server, number: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = data(run("top", "claims", "-o", "json", "--kubeconfig", str(server.kubeconfig)))
        if sum(claim["state"] == "allocated,reserved" for claim in found["claims"]) == number:
            return
        time.sleep(PAUSE_S)
    pytest.fail(f"after {PATIENCE_S} s not {number} claims are reserved: {found}")


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), prog_name="drayman")


def data(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def on(server: Server) -> Run:
    """A command for the cluster of these tests."""
    return lambda *words: run(*words, "--kubeconfig", str(server.kubeconfig))


@pytest.fixture(scope="module")
def kubectl(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(server, "default", tmp_path_factory.mktemp("home"))


def test_devices_say_who_has_them(on: Run) -> None:
    """Filters and orders hold for the table and for data alike."""
    words = ("top", "devices", "--node", "dgx-h100-mig-0", "--state", "used")
    rows = data(on(*words, "-o", "json"))["devices"]
    assert {row["holders"][0] for row in rows} == {"default/notebooks"}
    assert len(rows) == 3
    lines = on(*words).stdout.splitlines()[1:]
    assert lines[0].split() == ["NODE", "DRIVER", "DEVICE", "KIND", "STATE", "HOLDER"]
    assert len(lines) == 4


@pytest.mark.parametrize(
    "words", [("top", "devices"), ("top", "claims"), ("top", "pools"), ("map",)]
)
def test_the_cluster_is_named_first(server: Server, on: Run, words: tuple[str, ...]) -> None:
    """By its context and its address: in the first line, and as data."""
    assert on(*words).stdout.splitlines()[0] == f"cluster: context drayman ({server.url})"
    named = data(on(*words, "-o", "json"))["cluster"]
    assert named == {"name": "context drayman", "server": server.url}


def test_a_shared_device_says_what_is_left(on: Run) -> None:
    """Of each capacity, and who has the rest."""
    (row,) = data(on("top", "devices", "--state", "shared", "-o", "json"))["devices"]
    assert row["capacity"]["memory"] == {"total": "80Gi", "left": "32Gi"}
    assert sorted(row["holders"]) == ["default/serve-a", "default/serve-b"]
    assert "memory 32Gi/80Gi" in on("top", "devices", "--state", "shared").stdout


def test_pools_add_up(on: Run) -> None:
    """The states of a pool's devices add up to all of them; partitions are told from the GPU they divide."""
    rows = data(on("top", "pools", "-o", "json"))["pools"]
    for row in rows:
        counts = dict(row["devices"])
        assert counts.pop("total") == sum(counts.values())
        assert row["state"] == "usable"
    (gpus,) = [row for row in rows if row["driver"] == "gpu.nvidia.com"]
    assert (gpus["devices"]["used"], gpus["devices"]["partitioned"]) == (3, 1)
    first = on("top", "pools", "--sort-by", "used").stdout.splitlines()[2]
    assert first.startswith("gpu.nvidia.com")


def test_claims_say_what_they_have(on: Run) -> None:
    """Where, how many devices, and for which pods; those with most devices first if asked."""
    lines = on("top", "claims", "-n", "default", "--sort-by", "devices").stdout.splitlines()
    words = lines[2].split()
    assert words[2:6] == ["reserved", "dgx-h100-mig-0", "3", "notebooks"]


def test_the_map_counts_gpus(on: Run) -> None:
    """Two nodes, sixteen GPUs, two of them in use in part."""
    found = data(on("map", "-o", "json"))
    assert found["devices"]["gpu"] == {"total": 16, "shared": 1, "partitioned": 1, "free": 14}
    assert "1 tainted" not in on("map").stdout


def test_the_map_of_a_node_has_its_holders(on: Run) -> None:
    """Boxes, data and the matrix name the pod."""
    assert "default/notebooks" in on("map", "dgx-h100-mig-0").stdout
    devices = data(on("map", "dgx-h100-mig-0", "-o", "json"))["devices"]
    held = [device for device in devices if device["holders"]]
    assert {device["locality"]["pcieRoot"] for device in held} == {"pci0000:15"}
    assert "  1  default/notebooks" in on("map", "dgx-h100-mig-0", "--matrix").stdout


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("map", "dgx-h100-mig-1"), 1, "did you mean dgx-h100-mig-0"),
        (("map", "--matrix"), 2, "--matrix is about one node"),
        (("map", "dgx-h100-mig-0", "--nodes"), 2, "for the map of all nodes"),
        (("top", "devices", "--state", "gone"), 2, "is not one of"),
        *(
            ((*words, "--node", "dgx-h100-mig-1"), 1, "did you mean dgx-h100-mig-0?")
            for words in (
                ("top", "devices"),
                ("top", "devices", "-o", "json"),
                ("top", "claims"),
                ("top", "pools"),
                ("device", "list"),
                ("device", "list", "-o", "json"),
            )
        ),
        (("map", "n", "--sort-by", "used"), 2, "--sort-by are for the map of all nodes"),
        (("device", "list", "--node", "q"), 1, "no node 'q'; `kubectl get nodes` lists them"),
    ],
)
def test_mistakes_are_explained(words: tuple[str, ...], status: int, message: str, on: Run) -> None:
    """With the exit status for wrong input or a wrong command line."""
    result = on(*words)
    assert result.exit_code == status
    assert message in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("top", "devices", "--driver", "gpu.nvidia.con"),
            "No devices found of driver gpu.nvidia.con; did you mean gpu.nvidia.com",
        ),
        (
            ("device", "list", "--driver", "gpu.nvidia.con"),
            "No devices found of driver gpu.nvidia.con; did you mean gpu.nvidia.com",
        ),
        (
            ("top", "devices", "--state", "unknown", "--node", "example-shared-0"),
            "No devices found that are unknown on node example-shared-0.",
        ),
        (
            ("device", "list", "--driver", "gpu.nvidia.com", "--node", "example-shared-0"),
            "No devices found of driver gpu.nvidia.com on node example-shared-0.",
        ),
        (
            ("top", "pools", "--driver", "nic.example.com"),
            "No pools found of driver nic.example.com; did you mean net.example.com",
        ),
        (("top", "claims", "-n", "nowhere"), "No claims found in namespace nowhere."),
    ],
)
def test_a_filter_that_matches_nothing_is_no_error(
    words: tuple[str, ...], said: str, on: Run
) -> None:
    """As kubectl has it: a sentence on standard error and no table, or an empty list as data."""
    result = on(*words)
    assert result.exit_code == 0
    assert "DRIVER" not in result.stdout
    assert "NAME" not in result.stdout
    assert said not in result.stdout
    assert result.stderr.startswith(said)
    assert len(result.stderr.splitlines()) == 1
    name = words[1] if words[0] == "top" else "devices"
    assert data(on(*words, "-o", "json"))[name] == []


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_the_list_of_devices_fits_on_a_terminal(
    server: Server, on: Run, columns: int, tmp_path: Path
) -> None:
    """Pools and devices are whole, to be typed again; claims and taints are, in one line or in several."""
    taint = "example.com/needs-a-person=yes:NoSchedule"
    assert on("device", "taint", "dgx-h100-mig-0/gpu-7", taint).exit_code == 0
    command = [*DRAYMAN, "device", "list", "--all", "--driver", "gpu.nvidia.com"]
    command += ["--kubeconfig", str(server.kubeconfig)]
    lines = run_on_terminal(command, person(tmp_path), columns=columns).lines
    assert on("device", "untaint", "dgx-h100-mig-0/gpu-7").exit_code == 0
    assert max(map(len, lines)) <= columns
    assert any("dgx-h100-mig-0  gpu-0-mig-3g40gb-9-4 " in line for line in lines)
    start = next(i for i, line in enumerate(lines) if "POOL" in line)
    lines = lines[start:]
    at = next(i for i, line in enumerate(lines) if "dgx-h100-mig-0  gpu-7 " in line)
    assert not any("~" in line[lines[0].index("POOL") :] for line in lines)
    assert lines[at].endswith(f" {taint}") or lines[at + 1].strip() == f"taints: {taint}"
    claims = json.loads(on("device", "list", "-o", "json").stdout)["devices"]
    names = {name for row in claims if row["driver"] == "gpu.nvidia.com" for name in row["claims"]}
    assert names
    assert names <= set(re.split(r"[\s,]+", "\n".join(lines)))


def test_watching_a_pipe_prints_what_is_new(server: Server, on: Run) -> None:
    """A blank line, then the next picture; an interrupt ends it."""
    command = [*DRAYMAN, "map", "--watch", "--kubeconfig", str(server.kubeconfig)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = Lines(process)
        until(lines, "14 free of 16")
        tainted = on("device", "taint", "example-shared-0/gpu-7", "example.com/bad:NoSchedule")
        assert tainted.exit_code == 0
        until(lines, "1 tainted, 13 free of 16")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    finally:
        process.kill()
        process.wait()
    assert on("device", "untaint", "example-shared-0/gpu-7").exit_code == 0


def until(lines: Lines, text: str) -> None:
    """Read until a line has the text. Each line is waited for with patience, and a command that ends is an error."""
    while text not in " ".join(lines.next()):
        pass


# --- Somebody with few rights ---------------------------------------------------------------------


@pytest.fixture
def jane(server: Server, kubectl: Kubectl, tmp_path: Path) -> Iterator[Callable[..., Result]]:
    """A command as somebody who may list what is named, in the cluster or (`name@namespace`) in one namespace."""
    made: list[tuple[str, ...]] = []

    def create(kind: str, name: str, *words: str) -> None:
        kubectl("create", kind, name, *words)
        made.append((kind, name))

    def may(*resources: str) -> Path:
        for number, resource in enumerate(resources):
            what, _, where = resource.partition("@")
            role, binding = ("role", "rolebinding") if where else ("clusterrole", "clusterrolebinding")  # fmt: skip
            create(role, f"jane-{number}", "--verb=list", f"--resource={what}")
            create(binding, f"jane-{number}", f"--{role}=jane-{number}", "--user=jane")
        settings = yaml.safe_load(server.kubeconfig.read_text())
        settings["users"][0]["user"]["as"] = "jane"
        path = tmp_path / "jane"
        path.write_text(yaml.safe_dump(settings))
        return path

    yield lambda rights, *words: run(*words, "--kubeconfig", str(may(*rights)))
    for kind, name in reversed(made):
        kubectl("delete", kind, name)


HARDWARE = ("nodes", "resourceslices.resource.k8s.io")


def test_slices_must_be_readable(jane: Run) -> None:
    """The error names the permission that is missing."""
    result = jane(("nodes",), "top", "devices")
    assert result.exit_code == 1
    assert "the permission to list resourceslices.resource.k8s.io" in result.stderr


def test_without_claims_nothing_is_said_to_be_free(jane: Run) -> None:
    """Devices are there, and who has them is not the asker's to see."""
    result = jane(HARDWARE, "top", "devices", "--driver", "gpu.example.com")
    assert "you may not list resourceclaims" in result.stderr
    lines = result.stdout.splitlines()[2:]
    assert len(lines) == 8
    assert all("unknown" in line and "(hidden from you)" in line for line in lines)


def test_what_is_left_of_a_device_is_unknown_with_its_holder(jane: Run) -> None:
    """As data, with the notes that a terminal gets."""
    words = ("top", "devices", "--driver", "gpu.example.com", "-o", "json")
    found = json.loads(jane(HARDWARE, *words).stdout)
    assert {device["state"] for device in found["devices"]} == {"unknown"}
    assert all(not device["capacity"] for device in found["devices"])
    assert any("you may not list resourceclaims" in note for note in found["notes"])


def test_claims_that_may_not_be_listed_are_not_said_to_be_none(jane: Run) -> None:
    """The error names the permission, and the option that may help."""
    result = jane(HARDWARE, "top", "claims")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "permission to list resourceclaims.resource.k8s.io in namespace default" in result.stderr
    assert "--namespace" in result.stderr


def test_credentials_that_are_not_accepted(server: Server, tmp_path: Path) -> None:
    """It is said what is wrong with the request, and where to look."""
    settings = yaml.safe_load(server.kubeconfig.read_text())
    settings["users"][0]["user"] = {"token": "expired"}
    path = tmp_path / "expired"
    path.write_text(yaml.safe_dump(settings))
    result = run("map", "--kubeconfig", str(path))
    assert result.exit_code == 1
    assert "does not accept the credentials in the kubeconfig" in result.stderr


@pytest.mark.parametrize("command", [("map",), ("top", "pools"), ("migrate", "--nodes")])
def test_a_context_can_be_named(server: Server, command: tuple[str, ...]) -> None:
    """One that there is not is no cluster."""
    words = (*command, "--kubeconfig", str(server.kubeconfig), "--context")
    assert run(*words, "drayman").exit_code == 0
    assert "has no context 'nope'" in run(*words, "nope").stderr


def test_claims_of_ones_own_namespace_are_seen(jane: Run) -> None:
    """What they have is used; the rest may be somebody else's."""
    rights = (*HARDWARE, "resourceclaims.resource.k8s.io@default")
    result = jane(rights, "map", "-o", "json")
    assert "in namespace default only" in result.stderr
    counts = json.loads(result.stdout)["devices"]["gpu"]
    assert (counts["shared"], counts["partitioned"]) == (1, 1)
    assert "free" not in counts


def test_rules_that_may_not_be_read_are_mentioned(jane: Run) -> None:
    """The answer is given without them."""
    result = jane((*HARDWARE, "resourceclaims.resource.k8s.io"), "top", "pools")
    assert result.exit_code == 0
    assert "devicetaintrules" in result.stderr


def test_a_terminal_is_redrawn(server: Server, tmp_path: Path) -> None:
    """A table on a terminal has colours and fits; with --watch it is drawn again in place."""
    words = [*DRAYMAN, "top", "claims", "--watch", "--kubeconfig", str(server.kubeconfig)]
    with Terminal(words, person(tmp_path)) as terminal:
        terminal.read_until(lambda shown: b"\x1b[2K" in shown.raw)
        assert terminal.interrupt() == 130
    assert sum(line.startswith("NAME") for line in terminal.lines) == 1
    assert "notebooks" in terminal.text
    assert max(map(len, terminal.lines)) <= 80


@pytest.mark.parametrize("name", ["dumb", "unknown"])
def test_a_terminal_that_cannot_redraw_gets_what_is_new(
    server: Server, tmp_path: Path, name: str
) -> None:
    """The first picture at once, and no control sequence ever."""
    words = [*DRAYMAN, "top", "claims", "--watch", "--kubeconfig", str(server.kubeconfig)]
    with Terminal(words, person(tmp_path, TERM=name)) as terminal:
        terminal.wait_for("notebooks")
        assert terminal.interrupt() == 130
    assert b"\x1b" not in terminal.raw
