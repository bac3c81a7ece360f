"""Every command on a real terminal, narrow and wide: it does what it is there for, nothing breaks, and text fits."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from cli.small_trace import write_trace
from cli.terminal import DRAYMAN, FAULTS, PATIENCE_S, Terminal, person, run
from drayman.cli.main import cli
from drayman.placement.world import World
from drayman.simulate.snapshot import snapshot
from explain.hall import Hall

ROOT: Final = Path(__file__).parents[2]
PROFILES: Final = "dgx-h100=1,dgx-h100-mig=1,example-shared=1,example=4"
"""The nodes of the examples, and some that are there to be broken, each by one command."""
WIDTHS: Final = (80, 200)
REMOVED: Final = {80: "gpu-2", 200: "gpu-3"}
"""What can be done once only is done to another device, or in another directory, at each width."""
PENDING: Final = 1
INTERRUPTED: Final = 130

CLAIM: Final = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: claim
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
"""
PLUGIN_POD: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: old
spec:
  nodeSelector:
    nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
  containers:
  - name: c
    image: none
    resources:
      limits:
        nvidia.com/gpu: 2
"""
QUEUED: Final = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: two-gpus
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.nvidia.com
          count: 2
---
apiVersion: batch/v1
kind: Job
metadata:
  name: queued
spec:
  parallelism: 3
  suspend: true
  template:
    spec:
      restartPolicy: Never
      resourceClaims:
      - name: gpus
        resourceClaimTemplateName: two-gpus
      containers:
      - name: c
        image: none
"""
KUEUE: Final = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources:
  deviceClassMappings:
  - name: example.com/gpus
    deviceClassNames:
    - gpu.nvidia.com
"""
DOUBLED: Final = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources:
  transformations:
  - input: cpu
    strategy: Replace
    outputs:
      cpu: 2
"""
WAITING: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: waiting
  labels:
    kueue.x-k8s.io/queue-name: lq-team-a
spec:
  containers:
  - name: c
    image: none
    resources:
      requests:
        cpu: 100
"""
PROBLEM: Final = {"name": "p", "node": {"metadata": {"name": "n"}}, "claims": []}
QUEUES: Final = {
    "name": "s",
    "nodes": [{"name": "n", "gpus": 1}],
    "queues": [{"name": "q"}],
    "podGroups": [{"name": "g", "queue": "q", "pods": [{"name": "g-0", "gpus": 1}]}],
}


def hall() -> World:
    """Queues in a cohort, one of which borrows."""
    found = Hall().flavor("h100").queue("team-a", "all", h100=4).queue("team-b", "all", h100=4)
    found.workload("train", "team-a", 6, has="h100", runs="2h").workload("next", "team-a", 4)
    return found.world()


@dataclass(frozen=True, slots=True)
class Case:
    """A command line, and what is true of what it shows."""

    line: str
    shows: str
    """Matches a line of the screen."""
    status: int = 0
    until: str = ""
    """For a command that goes on: when this is seen somebody presses Ctrl-C."""
    before: tuple[str, ...] = ()
    """Commands that have to succeed first."""
    is_data: bool = False
    """What it prints is for programs, or names paths and addresses, and is as long as it is."""


QUOTA_SCENARIO: Final = {
    "name": "one workload",
    "steps": [
        {
            "create": [
                {"kind": "ResourceFlavor", "metadata": {"name": "f"}},
                {
                    "kind": "ClusterQueue",
                    "metadata": {"name": "q"},
                    "spec": {
                        "namespaceSelector": {},
                        "resourceGroups": [
                            {
                                "coveredResources": ["cpu"],
                                "flavors": [
                                    {
                                        "name": "f",
                                        "resources": [{"name": "cpu", "nominalQuota": "1"}],
                                    }
                                ],
                            }
                        ],
                    },
                },
                {
                    "kind": "LocalQueue",
                    "metadata": {"namespace": "default", "name": "l"},
                    "spec": {"clusterQueue": "q"},
                },
                {
                    "kind": "Workload",
                    "metadata": {"namespace": "default", "name": "w"},
                    "spec": {"queueName": "l", "podSets": [{"name": "main", "count": 1}]},
                },
            ]
        },
        {"settle": "a"},
    ],
}

CASES: Final = {
    "no command": Case("", "^Usage: drayman", status=2),
    "an unknown command": Case("nonsense", "there is no command", status=2),
    "version": Case("--version", r"^drayman \d"),
    "up": Case("up --ephemeral --port 0 --profile example=1", "^ *Ctrl-C ends it", until="1 ready"),
    "up, plainly": Case(
        "up --ephemeral --port 0 --no-color", "^stopped|^.Cstopped", until="^try", is_data=True
    ),
    "up in the background": Case(
        "up --detach --port 0 --data-dir {width}", "^Kubernetes API  https://", is_data=True
    ),
    "up twice": Case("up --port 0", r"^error: .* in\s+use\s+by\s+process", status=1, is_data=True),
    "down": Case(
        "down --data-dir two",
        "^stopped process",
        before=("up --detach --port 0 --no-controllers --data-dir two",),
        is_data=True,
    ),
    "down, nothing runs": Case("down --data-dir none", "^error: nothing runs", 1, is_data=True),
    "status": Case("status", "^ready +yes", is_data=True),
    "logs": Case("logs scheduler --tail 1", "^[0-9TZ:-]+ scheduler info pod ", is_data=True),
    "logs, nothing ran": Case("logs --data-dir none", r"^error: there is no\b", 1, is_data=True),
    "status as data": Case("status -o json", '"ready": true', is_data=True),
    "kubeconfig": Case("kubeconfig", '"current-context"', is_data=True),
    "kubeconfig --path": Case("kubeconfig --path", "kubeconfig$", is_data=True),
    "explain what waits": Case("explain pod/waits", "^ConstraintUnmeetable", PENDING),
    "explain what runs": Case("explain pod/trainer", "^Runs"),
    "explain what is not there": Case("explain pod/none", "^error: there is no pod/none", 2),
    "explain --watch": Case(
        "explain pod/waits --watch", "^what would help", INTERRUPTED, "^ *1. Match numaNode"
    ),
    "explain as data": Case("explain pod/trainer -o json", '"headline"', is_data=True),
    "plan": Case("plan -f examples/1-gpu-with-nic.yaml", "trainer"),
    "plan what does not fit": Case("plan -f many.yaml", "many", PENDING),
    "plan copies": Case("plan -f old.yaml --times 50", "old", PENDING),
    "queues": Case("queues --snapshot hall.yaml", "^ +team-a +h100 +cpu .* 6 +4 +2"),
    "queues -o wide": Case("queues --snapshot hall.yaml -o wide", "^ +team-a +h100"),
    "queues of the cluster": Case("queues", "^There are no ClusterQueues"),
    "queue": Case("queue team-a --snapshot hall.yaml", "^ +1. default/next"),
    "queue that is not there": Case(
        "queue team-x --snapshot hall.yaml", "^error: there is no ClusterQueue team-x", 2
    ),
    "explain a workload": Case(
        "explain workload/next --snapshot hall.yaml", "^QuotaInUse", PENDING
    ),
    "quota price": Case(
        "quota price -f queued.yaml --config kueue.yaml", "^ +example.com/gpus +2 +6"
    ),
    "quota diff": Case(
        "quota diff --snapshot hall.yaml --config doubled.yaml", "^1 pending and 1 admitted of 2", 1
    ),
    "quota price of what has none": Case("quota price -f queued.yaml", "ClassUnmapped", 1),
    "capacity": Case("capacity -f claim.yaml", "of claim claim fit now"),
    "simulate": Case("simulate --trace traces --seeds 2", "^small +best"),
    "simulate a trace that is not there": Case(
        "simulate --trace none", "^error: none: cannot be read", 1
    ),
    "defrag": Case("defrag", "^Does not fit: no moves make room", PENDING),
    "defrag for a pod": Case("defrag --for pod/trainer", "^Nothing to do: pod/trainer has no pods"),
    "map": Case("map", "dgx-h100-0"),
    "map of a node": Case("map dgx-h100-0", "NUMA node 1"),
    "map of a node as a matrix": Case("map dgx-h100-0 --matrix", "NV18"),
    "map --watch": Case("map --watch", "dgx-h100-0", INTERRUPTED, "dgx-h100-mig-0"),
    "top devices": Case("top devices", "^NODE|^DEVICE"),
    "top devices --watch": Case(
        "top devices --node dgx-h100-0 --watch", "gpu-0", INTERRUPTED, "gpu-7"
    ),
    "top claims": Case("top claims", "trainer"),
    "top claims --watch": Case("top claims --watch", "trainer", INTERRUPTED, "notebooks"),
    "top pools": Case("top pools", "dgx-h100-mig-0"),
    "top owners": Case("top owners", "trainer"),
    "top owners by queue": Case("top owners --by queue", "no queue"),
    "plan what is queued": Case(
        "plan -f waiting.yaml --snapshot hall.yaml", "^ +QuotaTooSmall", PENDING
    ),
    "snapshot": Case("snapshot", '"kind":"Snapshot"', is_data=True),
    "migrate": Case("migrate old.yaml", "kind: Pod", is_data=True),
    "migrate --diff": Case("migrate --diff old.yaml", r"^-.*nvidia.com/gpu", is_data=True),
    "migrate --nodes": Case("migrate --nodes", "."),
    "validate": Case("validate claim.yaml examples", "."),
    "validate what is wrong": Case("validate wrong.yaml", "^wrong.yaml:", 1, is_data=True),
    "profiles": Case("profiles", "^gb200-nvl72"),
    "profiles of one": Case("profiles dgx-h100-mig", "gpu.nvidia.com"),
    "node add": Case("node add example=1", "^node/example-[0-9]+ added"),
    "node remove": Case(
        "node remove example-9", "^node/example-9 removed", before=("node add example=9",)
    ),
    "node fail": Case("node fail example-0", "^node/example-0 failed"),
    "node recover": Case(
        "node recover example-1", "^node/example-1 recovered", before=("node fail example-1",)
    ),
    "node drain": Case("node drain example-2", "^node/example-2 drained"),
    "node run": Case("node run --name {width}", "stopped", until="^node/.* runs", is_data=True),
    "node kubeconfig": Case("node kubeconfig node-1", '"current-context"', is_data=True),
    "node kubeconfig of an impossible name": Case(
        "node kubeconfig Node_1", "^error: 'Node_1' cannot be the name of a node", 1
    ),
    "node kubeconfig with an address": Case(
        "node kubeconfig node-1 --server https://10.0.0.5:6443", "https://10.0.0.5", is_data=True
    ),
    "device list": Case("device list", "gpu-0"),
    "device taint": Case("device taint example-1/{gpu} example.com/b=yes:NoExecute", "tainted"),
    "device untaint": Case(
        "device untaint example-3/gpu-1",
        "untainted",
        before=("device taint example-3/gpu-1 example.com/b:NoSchedule",),
    ),
    "driver list": Case("driver list", "^gpu.nvidia.com +GPUs of NVIDIA"),
    "driver new without a domain": Case("driver new sensor", "^error: 'sensor' has no domain", 1),
    "driver new": Case("driver new sensor.example.com --to {width}", "^wrote .*sensor_driver.py"),
    "driver classes": Case(
        "driver classes gpu.nvidia.com", "^ +extendedResourceName: nvidia.com/gpu", is_data=True
    ),
    "driver classes of nobody": Case(
        "driver classes nonsense", "^error: there is no driver 'nonsense'", 1
    ),
    "driver run": Case("driver run nonsense --node n", "^error: there is no driver 'nonsense'", 1),
    "driver run beside no node": Case(
        "driver run gpu.example.com --node n --node-dir .", "plugins_registry in it", 1
    ),
    "device remove": Case("device remove example-3/{gpu}", "removed"),
    "scheduler": Case(
        "scheduler --kubeconfig .local/state/drayman/kubeconfig",
        "stopped",
        until="^scheduling pods of drayman",
        is_data=True,
    ),
    "bench gangs": Case("bench gangs --scene gang --nodes 2", "^gang +4 pods"),
    "bench quota": Case("bench quota --suite baseline --part 250", "^baseline +60 workloads"),
    "bench schedule --list": Case("bench schedule --list", "nodes +[0-9]+ pods"),
    "bench schedule": Case(
        "bench schedule --workload FirstAvailable/fast --nodes 2", "^throughput"
    ),
    "demo": Case("demo", "^6  Two GPUs and two NICs"),
    "completion": Case("completion bash", "complete .*drayman", is_data=True),
    "allocate": Case("allocate --problems problems.jsonl --results -", '"p"', is_data=True),
    "cel": Case(
        "cel --devices slices.json -e \"device.driver == 'gpu.nvidia.com'\"", "gpu-7 +match"
    ),
    "replay quota": Case(
        "replay quota --scenarios quota.jsonl --results -", '"default/w":.*"admitted"', is_data=True
    ),
    "replay queues": Case(
        "replay queues --scenarios queues.jsonl --results -", '"g-0":"n"', is_data=True
    ),
}


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of every command that does something, with those of its groups."""
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


LEAVES: Final = tuple(leaves(cli))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home directory of somebody who runs the examples on a cluster in the background, and is in that directory."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(ROOT / "examples", home / "examples")
    (home / "claim.yaml").write_text(CLAIM)
    (home / "wrong.yaml").write_text(CLAIM.replace("exactly", "exact"))
    (home / "old.yaml").write_text(PLUGIN_POD)
    (home / "queued.yaml").write_text(QUEUED)
    (home / "kueue.yaml").write_text(KUEUE)
    (home / "doubled.yaml").write_text(DOUBLED)
    (home / "waiting.yaml").write_text(WAITING)
    (home / "hall.yaml").write_bytes(b"".join(b"---\n%b\n" % each for each in snapshot(hall())))
    write_trace(home / "traces")
    (home / "many.yaml").write_text(PLUGIN_POD.replace("old", "many").replace("2", "9"))
    (home / "problems.jsonl").write_text(json.dumps(PROBLEM))
    (home / "quota.jsonl").write_text(json.dumps(QUOTA_SCENARIO))
    (home / "queues.jsonl").write_text(json.dumps(QUEUES))
    succeed(home, *DRAYMAN, "up", "--detach", "--port", "0", "--profile", PROFILES)
    try:
        kubectl = ("kubectl", "--kubeconfig", ".local/state/drayman/kubeconfig")
        succeed(home, *kubectl, "apply", "-f", "examples")
        pods = ("trainer", "notebooks", "serve-a", "serve-b", "tuner", "classic")
        running = ("--for", "jsonpath={.status.phase}=Running", "--timeout", f"{PATIENCE_S:.0f}s")
        succeed(home, *kubectl, "wait", *running, *(f"pod/{name}" for name in pods))
        slices = succeed(home, *kubectl, "get", "resourceslices", "-o", "json")
        (home / "slices.json").write_text(slices)
        yield home
    finally:
        for data in (*map(str, WIDTHS), "two", ".local/state/drayman"):
            subprocess.run(
                [*DRAYMAN, "down", "--data-dir", data],
                cwd=home,
                env=person(home),
                capture_output=True,
                check=False,
            )


def succeed(home: Path, *words: str) -> str:
    done = subprocess.run(
        words, cwd=home, env=person(home), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize(
    ("name", "width"),
    [(name, w) for name, case in CASES.items() for w in (WIDTHS[:1] if case.is_data else WIDTHS)],
)
def test_commands(home: Path, name: str, width: int) -> None:
    """Exit status and text are right, no fault shows, and tables and prose fit the terminal."""
    case = CASES[name]
    for line in case.before:
        succeed(home, *DRAYMAN, *shlex.split(line))
    words = [*DRAYMAN, *shlex.split(case.line.format(width=width, gpu=REMOVED[width]))]
    with Terminal(words, person(home), columns=width, folder=home) as terminal:
        if case.until:
            terminal.wait_for(case.until)
            status = terminal.interrupt()
        else:
            status = terminal.end()
    assert status == case.status, terminal.text
    assert re.search(case.shows, terminal.text, re.MULTILINE), terminal.text
    assert not FAULTS.search(terminal.text), terminal.text
    if not case.is_data:
        assert [line for line in terminal.lines if len(line) > width] == []


def test_every_command_has_a_case() -> None:
    """Also one that is new."""
    lines = [tuple(shlex.split(case.line)) for case in CASES.values()]
    missing = [leaf for leaf in LEAVES if not any(line[: len(leaf)] == leaf for line in lines)]
    assert missing == []


@pytest.mark.parametrize("words", [(), *LEAVES], ids=" ".join)
def test_help(words: tuple[str, ...]) -> None:
    """The help of every command fits 80 columns, and has examples."""
    found = CliRunner(env={"COLUMNS": "80"}).invoke(cli, [*words, "--help"])
    assert found.exit_code == 0
    assert "Examples:" in found.output
    assert [line for line in found.output.splitlines() if len(line) > 80] == []


def test_help_on_a_terminal(tmp_path: Path) -> None:
    """The same for somebody who sits at one: no fault shows, and it fits."""
    terminal = run((*DRAYMAN, "--help"), person(tmp_path))
    assert terminal.process.returncode == 0
    assert "Examples:" in terminal.text
    assert not FAULTS.search(terminal.text)
    assert [line for line in terminal.lines if len(line) > 80] == []


@pytest.mark.parametrize("columns", [40, 80])
def test_errors_are_wrapped_between_words(tmp_path: Path, columns: int) -> None:
    """Nothing is lost, and no word is broken, however narrow the terminal is. In a pipe, an error is one line."""
    for words in (("explain", "pod/a"), ("explain", "pod/a", "pod/b"), ("down",)):
        environment = person(tmp_path)
        piped = subprocess.run(
            [*DRAYMAN, *words], env=environment, capture_output=True, text=True, check=False
        )
        (whole,) = [line for line in piped.stderr.splitlines() if "rror: " in line]
        with Terminal([*DRAYMAN, *words], environment, columns=columns) as terminal:
            assert terminal.end() == piped.returncode
        shown = terminal.text[terminal.text.index(whole.split()[0]) :]
        assert shown.split() == whole.split()
        assert all(len(line) <= columns or " " not in line.strip() for line in shown.splitlines())


def test_status_and_down_are_wrapped_between_words(tmp_path: Path) -> None:
    """Where a line has no room, a path or an address has one of its own."""
    environment = person(tmp_path)
    succeed(tmp_path, *DRAYMAN, "up", "--detach", "--port", "0", "--no-controllers")
    try:
        whole = succeed(tmp_path, *DRAYMAN, "status")
        status = run((*DRAYMAN, "status"), environment, columns=40)
    finally:
        down = run((*DRAYMAN, "down"), environment, columns=40)
    assert status.text.split() == whole.split()
    assert re.search("^state kept", down.text, re.MULTILINE)
    for line in (*status.lines, *down.lines):
        assert len(line) <= 40 or " " not in line.strip()
