"""Questions from Python get the answers of the command line, as data."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from apiserver.e2e.driving import Kubectl
from drayman import Cluster, ClusterError, QuestionError, capacity, explain, plan
from drayman.api.codec import to_dict
from drayman.api.struct import ApiStruct
from drayman.cli.main import cli

POD = """
apiVersion: v1
kind: Pod
metadata: {name: planned}
spec:
  containers: [{name: main, image: app, resources: {limits: {cpu: "1"}}}]
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: pair}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.example.com, count: 2}
"""
UNKNOWN_FIELD = POD.replace("spec:", "specification:")


@pytest.fixture
def running(full: Kubectl) -> Iterator[Cluster]:
    """Two nodes that are mostly taken, and pods that wait."""
    with Cluster.connect(full.server.kubeconfig) as cluster:
        yield cluster


@pytest.fixture
def saved(full: Kubectl, tmp_path: Path) -> Iterator[Cluster]:
    """The same cluster in a file."""
    path = tmp_path / "cluster.yaml"
    path.write_text(printed(full, "snapshot"))
    with Cluster.from_snapshot(path) as cluster:
        yield cluster


def printed(kubectl: Kubectl, *words: str) -> str:
    """What the command line says about the same cluster."""
    result = CliRunner().invoke(cli, [*words, "--kubeconfig", str(kubectl.server.kubeconfig)])
    assert result.exit_code in (0, 1), result.output
    return result.stdout


def data(answer: ApiStruct) -> dict[str, Any]:
    """An answer without the versions that it was read at: heartbeats change them."""
    return without_versions(to_dict(answer))


def without_versions(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "evidence"}


Ask = Callable[[Cluster], ApiStruct]

QUESTIONS: dict[str, tuple[Ask, tuple[str, ...], str]] = {
    "a pod that waits": (
        lambda cluster: explain(cluster, "pod/third", namespace="team-a"),
        ("explain", "pod/third", "-n", "team-a"),
        "",
    ),
    "a pod that runs": (
        lambda cluster: explain(cluster, "po/first", namespace="team-a"),
        ("explain", "po", "first", "-n", "team-a"),
        "",
    ),
    "a node": (
        lambda cluster: explain(cluster, "node/example-0"),
        ("explain", "node/example-0"),
        "",
    ),
    "all of a namespace": (
        lambda cluster: explain(cluster, namespace="team-a"),
        ("explain", "--all", "-n", "team-a"),
        "",
    ),
    "everything": (explain, ("explain", "--all"), ""),
    "a plan": (
        lambda cluster: plan(cluster, POD, namespace="team-a", times=3),
        ("plan", "-f", "-", "-n", "team-a", "--times", "3"),
        POD,
    ),
    "a capacity": (lambda cluster: capacity(cluster, CLAIM), ("capacity", "-f", "-"), CLAIM),
}


@pytest.mark.parametrize(("ask", "words", "given"), QUESTIONS.values(), ids=QUESTIONS)
def test_an_answer_is_what_the_command_prints_as_json(
    ask: Ask, words: tuple[str, ...], given: str, full: Kubectl, running: Cluster
) -> None:
    """The same fields and values, from one function below both."""
    where = ("--kubeconfig", str(full.server.kubeconfig))
    result = CliRunner().invoke(cli, [*words, "-o", "json", *where], input=given)
    assert result.exit_code in (0, 1), result.output
    assert data(ask(running)) == without_versions(json.loads(result.stdout))


@pytest.mark.parametrize("ask", [ask for ask, _, _ in QUESTIONS.values()], ids=QUESTIONS)
def test_a_cluster_in_a_file_gives_the_answers_of_the_one_that_runs(
    ask: Ask, running: Cluster, saved: Cluster
) -> None:
    """Also when it is asked the same thing again: a question leaves nothing behind."""
    assert data(ask(saved)) == data(ask(saved)) == data(ask(running))


async def test_questions_can_be_asked_where_an_event_loop_runs(saved: Cluster) -> None:
    """As in a notebook; and from a thread, so that the loop goes on meanwhile."""
    why = explain(saved, "pod/third", namespace="team-a")
    assert await asyncio.to_thread(explain, saved, "pod/third", namespace="team-a") == why


REFUSED: dict[str, tuple[Ask, str]] = {
    "no such pod": (
        lambda cluster: explain(cluster, "pod/fourth", namespace="team-a"),
        "there is no pod/fourth in namespace team-a",
    ),
    "one in another namespace": (
        lambda cluster: explain(cluster, "pod/third"),
        "there is no pod/third in namespace default; there is one in namespace team-a",
    ),
    "no kind": (lambda cluster: explain(cluster, "third"), "Say its kind too: pod/third"),
    "no such kind": (
        lambda cluster: explain(cluster, "service/a"),
        "is no kind that is known here",
    ),
    "a wrong field": (
        lambda cluster: plan(cluster, UNKNOWN_FIELD),
        "<text>:5: Pod planned: specification: unknown field",
    ),
    "no pods": (
        lambda cluster: plan(cluster, CLAIM),
        "<text>: nothing there would create pods now, only ResourceClaim",
    ),
    "nothing": (lambda cluster: plan(cluster, ""), "<text>: nothing there would create pods now"),
    "no such file": (
        lambda cluster: Cluster.from_snapshot("nope.yaml"),
        "nope.yaml: cannot be read: no such file or directory",
    ),
    "no claim": (lambda cluster: capacity(cluster, POD), "expected one"),
}


@pytest.mark.parametrize(("ask", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_answered_is_a_question_error(
    ask: Ask, sentence: str, saved: Cluster
) -> None:
    """It names the object and the field, and no option of a command."""
    with pytest.raises(QuestionError) as error:
        ask(saved)
    assert sentence in str(error.value)
    assert "--" not in str(error.value)


def test_a_cluster_is_found_by_the_rule_of_the_commands(
    full: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KUBECONFIG counts if nothing is named, and what is named and not there is no reason to take another."""
    monkeypatch.setenv("KUBECONFIG", str(full.server.kubeconfig))
    with Cluster.connect() as cluster:
        assert full.server.url in repr(cluster)
        assert cluster.namespace == "default"
    with pytest.raises(QuestionError, match="nothing runs on"):
        Cluster.connect(data_dir=tmp_path)
    with pytest.raises(QuestionError, match="nowhere"):
        Cluster.connect(tmp_path / "nowhere")


def test_a_cluster_that_does_not_answer_is_a_cluster_error(full: Kubectl, tmp_path: Path) -> None:
    """It is noticed with the first question."""
    config = json.loads(full.server.kubeconfig.read_bytes())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = tmp_path / "config"
    path.write_text(json.dumps(config))
    with Cluster.connect(path) as cluster, pytest.raises(ClusterError):
        explain(cluster)


INTERRUPTED = """
import signal
from drayman import Cluster, explain

cluster = Cluster.connect()
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    while True:
        explain(cluster)
except KeyboardInterrupt:
    print(explain(cluster).kind)
"""


def test_an_interrupt_ends_a_question_and_the_end_of_the_program_the_cluster(full: Kubectl) -> None:
    """The next question is answered, and a cluster that nobody closed causes no complaint."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        env={**os.environ, "KUBECONFIG": str(full.server.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("Cluster\n", "")


def test_a_cluster_that_is_closed_answers_no_more(saved: Cluster) -> None:
    """To close it twice does no harm."""
    saved.close()
    saved.close()
    with pytest.raises(ValueError, match="closed"):
        explain(saved)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda c: plan(c, POD, times=0), QuestionError, "from 1 to 100000"),
        (lambda c: plan(c, POD, times=-1), QuestionError, "from 1 to 100000"),
        (lambda c: plan(c, POD, times=100_001), QuestionError, "from 1 to 100000"),
        (lambda c: plan(c, POD, times=1.5), TypeError, "times must be a whole number"),
        (lambda c: plan(c, POD, times=True), TypeError, "times must be a whole number"),
        (lambda c: plan(c, "\ud800"), QuestionError, "manifests are not text"),
        (lambda c: plan(c, Path("job.yaml")), TypeError, "pass its read_text()"),
        (lambda c: plan(c, None), TypeError, "must be YAML or JSON text, not None"),
        (lambda c: capacity(c, 5), TypeError, "not an object of type int"),
        (lambda c: capacity(c, CLAIM, namespace=5), TypeError, "namespace must be text"),
        (lambda c: explain(c, 5), TypeError, "what must be text"),
        (lambda c: explain(c, "pod/" + "a" * 100_000), QuestionError, "too long"),
        (lambda c: explain(None), TypeError, "cluster must be a Cluster"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(
    saved: Cluster, ask: Callable[[Any], object], error: type[Exception], words: str
) -> None:
    """Arguments of a wrong type or out of bounds are mistakes of the caller, and the message says which and is short."""
    with pytest.raises(error, match=re.escape(words)) as caught:
        ask(saved)
    assert len(str(caught.value)) < 200


def test_an_object_can_be_named_with_a_space(saved: Cluster) -> None:
    """KIND NAME is KIND/NAME, as on the command line."""
    with pytest.raises(QuestionError, match="nowhere"):
        explain(saved, "pod nowhere")
