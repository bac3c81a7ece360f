"""`--watch` shows each answer that differs from the one before, until it is interrupted."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apiserver.e2e.driving import DRAYMAN, PATIENCE_S, Kubectl
from cli.explain.manifests import listed, pod, template
from cli.terminal import FAULTS, Terminal, person


def words(kubectl: Kubectl, name: str, *options: str) -> list[str]:
    where = ("--kubeconfig", str(kubectl.server.kubeconfig), "--namespace", kubectl.namespace)
    return [*DRAYMAN, "explain", f"pod/{name}", "--watch", *where, *options]


def read_until(stream: int, condition: Callable[[str], bool], text: str = "") -> str:
    """What comes, until that is enough or its other end is closed."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition(text):
        assert time.monotonic() < deadline, f"there is only {text!r}"
        if select.select([stream], [], [], 0.1)[0]:
            more = os.read(stream, 65536).decode()
            if not more:
                return text
            text += more
    return text


@pytest.fixture
def gated(kubectl: Kubectl) -> Iterator[str]:
    """A pod that somebody holds back."""
    name = "gated"
    body = pod(name, "one")
    body["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
    kubectl("apply", "-f", "-", given=listed(template("one"), body))
    yield name
    kubectl("delete", "pod", name, "--ignore-not-found", "--now")


def open_gate(kubectl: Kubectl, name: str) -> None:
    change = [{"op": "remove", "path": "/spec/schedulingGates"}]
    kubectl("patch", "pod", name, "--type=json", "-p", json.dumps(change))


@contextmanager
def piped(*command: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process, process.stdout.fileno()
    finally:
        process.kill()
        process.communicate()


def test_it_ends_when_nobody_reads_any_more(kubectl: Kubectl, gated: str) -> None:
    """As in `drayman explain --watch ... | head -1`: also while nothing changes."""
    with piped(*words(kubectl, gated)) as (process, output):
        read_until(output, lambda text: "read: " in text)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""
        process.stdout = None


def test_answers_follow_one_another_through_a_pipe(kubectl: Kubectl, gated: str) -> None:
    """A blank line between two; an interrupt ends it with 130, and the end of the pod with 2."""
    with piped(*words(kubectl, gated)) as (process, output):
        text = read_until(output, lambda text: "read: " in text)
        assert text.startswith("Gated (held): ")
        open_gate(kubectl, gated)
        text = read_until(output, lambda text: "Runs: " in text, text)
        assert "\n\nRuns: " in text or "\n\nFits: " in text
        assert "\x1b" not in text
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130


def test_the_end_of_the_pod_ends_it(kubectl: Kubectl, gated: str) -> None:
    """What is gone cannot be explained: exit status 2."""
    with piped(*words(kubectl, gated, "-o", "yaml")) as (process, output):
        assert read_until(output, lambda text: "evidence" in text).startswith("---\n")
        kubectl("delete", "pod", gated, "--now")
        assert process.wait(PATIENCE_S) == 2
        assert process.stderr is not None
        assert b"there is no pod/gated" in process.stderr.read()


def test_a_terminal_is_drawn_anew(kubectl: Kubectl, gated: str, tmp_path: Path) -> None:
    """Over the last picture, with the cursor back in the end."""
    with Terminal(words(kubectl, gated), person(tmp_path)) as terminal:
        terminal.wait_for(r"^Gated \(held\)")
        open_gate(kubectl, gated)
        shown = terminal.wait_for("^Runs")
        assert "Gated (held)" not in shown
        assert terminal.interrupt() == 130
    assert terminal.raw.rstrip().endswith(b"\x1b[?25h")
    assert not FAULTS.search(terminal.text)


def test_nothing_is_said_where_nothing_changes(kubectl: Kubectl, gated: str) -> None:
    """A change elsewhere in the cluster gives no second answer."""
    with piped(*words(kubectl, gated)) as (process, output):
        text = read_until(output, lambda text: "read: " in text)
        kubectl("label", "namespace", "team-b", "touched=yes", "--overwrite")
        open_gate(kubectl, gated)
        text = read_until(output, lambda text: "Runs: " in text, text)
        assert text.count("Gated (held)") == 1
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
