"""How commands say that they cannot talk to a cluster: at once, which one it is, why, and what to do."""

from __future__ import annotations

import json
import os
import pty
import select
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from apiserver.e2e.driving import DRAYMAN, PATIENCE_S
from cluster.certificates import Authority
from drayman.cli.main import cli
from drayman.questions import which_cluster
from drayman.testing.ports import kept_port

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}]}\n"
CLAIM = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: a}\n"
AT_A_TIME = 4
"""Requests that a command may have under way when it notices that nobody answers."""
CONNECTIONS = 2
"""For each of them: a connection that is closed before an answer may have been an old one, so a second is opened."""


@dataclass(slots=True)
class Stranger:
    """Takes connections as a server does, and does with them what a test says."""

    meet: Callable[[socket.socket], None]
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    met: int = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.listener.getsockname()[1]}"

    def serve(self) -> None:
        while True:
            try:
                taken, _ = self.listener.accept()
            except OSError:  # the test is over
                return
            self.met += 1
            threading.Thread(target=self._meet, args=(taken,), daemon=True).start()

    def _meet(self, taken: socket.socket) -> None:
        with taken, suppress(OSError):  # whoever came may be gone first
            self.meet(taken)


def hang_up(taken: socket.socket) -> None:
    taken.close()


def listen(taken: socket.socket) -> None:
    """Hear everything and say nothing."""
    while taken.recv(1 << 16):
        pass


def answer(status: str) -> Callable[[socket.socket], None]:
    """Refuse every request, in the words of Kubernetes."""
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "message": status, "code": 0})
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"

    def meet(taken: socket.socket) -> None:
        while b"\r\n\r\n" in taken.recv(1 << 16):
            taken.sendall(f"{head}\r\n\r\n{body}".encode())

    return meet


Meeting = Callable[[Callable[[socket.socket], None]], Stranger]


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    """Starts strangers, who are gone when the test is over."""
    started: list[Stranger] = []

    def start(meet: Callable[[socket.socket], None]) -> Stranger:
        stranger = Stranger(meet)
        started.append(stranger)
        threading.Thread(target=stranger.serve, daemon=True).start()
        return stranger

    yield start
    for stranger in started:
        stranger.listener.shutdown(socket.SHUT_RDWR)
        stranger.listener.close()


def prod(folder: Path, server: str) -> Path:
    """A kubeconfig whose context is called prod."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "prod",
    }
    path = folder / "config"
    path.write_text(json.dumps(content))
    return path


def run(folder: Path, server: str, words: str) -> Result:
    (folder / "pod.yaml").write_text(POD)
    (folder / "claim.yaml").write_text(CLAIM)
    given = [str(folder / word) if word.endswith(".yaml") else word for word in words.split()]
    return CliRunner().invoke(cli, [*given, "--kubeconfig", str(prod(folder, server))])


COMMANDS = {
    "explain pod/a": 2,
    "explain pod/a --watch": 2,
    "plan -f pod.yaml": 2,
    "capacity -f claim.yaml": 2,
    "migrate --nodes": 2,
    "snapshot": 1,
    "map": 1,
    "map --watch": 1,
    "top devices": 1,
    "top claims": 1,
    "top pools": 1,
    "node fail a": 1,
    "node recover a": 1,
    "node drain a": 1,
    "device list": 1,
    "device taint a/b c/d:NoSchedule": 1,
    "device untaint a/b": 1,
    "device remove a/b": 1,
    "scheduler": 1,
    "bench schedule --workload FirstAvailable/fast --backend kubeconfig": 1,
}


@pytest.mark.parametrize(("words", "status"), COMMANDS.items(), ids=COMMANDS)
def test_every_command_asks_once(words: str, status: int, tmp_path: Path, meeting: Meeting) -> None:
    """Then it says in one line which cluster does not answer. The exit status is that of wrong input, or of no answer."""
    nobody = meeting(hang_up)
    result = run(tmp_path, f"http://{nobody.address}", words)
    assert result.exit_code == status, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: cannot reach context prod (http://{nobody.address}): ")
    assert result.stdout == ""
    assert nobody.met <= AT_A_TIME * CONNECTIONS


def test_a_refused_connection(tmp_path: Path) -> None:
    """On this machine it may be the embedded cluster that does not run."""
    with kept_port() as port:
        address = f"127.0.0.1:{port}"
        result = run(tmp_path, f"https://{address}", "map")
    assert result.stderr == (
        f"error: cannot reach context prod (https://{address}): connection refused; is it running?"
        " `drayman up` starts the embedded one; or name another cluster with --kubeconfig or --context\n"
    )


def test_a_name_that_nobody_knows(tmp_path: Path) -> None:
    """The address in the kubeconfig may be wrong, or the network the wrong one."""
    result = run(tmp_path, "https://nowhere.invalid:6443", "map")
    assert "cannot reach context prod (https://nowhere.invalid:6443): " in result.stderr
    assert "is the address right, and are you on its network?" in result.stderr


def test_a_certificate_of_somebody_else(tmp_path: Path, meeting: Meeting) -> None:
    """The kubeconfig does not belong to the cluster that answers there."""
    tls = Authority().server(tmp_path, "127.0.0.1")

    def meet(taken: socket.socket) -> None:
        tls.wrap_socket(taken, server_side=True).close()

    stranger = meeting(meet)
    result = run(tmp_path, f"https://{stranger.address}", "map")
    assert f"cannot reach context prod (https://{stranger.address}): " in result.stderr
    assert "the kubeconfig may be for a cluster that has been recreated" in result.stderr


def test_a_server_that_says_nothing(
    tmp_path: Path, meeting: Meeting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while it is given up, and what was left to ask with it."""
    monkeypatch.setattr(which_cluster, "SILENT_S", 0.5)
    silent = meeting(listen)
    result = run(tmp_path, f"http://{silent.address}", "explain pod/a")
    assert result.exit_code == 2
    assert (
        "no answer within 0.5 s; it takes connections but is stuck or overloaded" in result.stderr
    )
    assert silent.met <= AT_A_TIME


REFUSALS = {
    "unknown": ("401 Unauthorized", "map", "context prod ({}) does not accept the credentials"),
    "may not look": ("403 Forbidden", "map", "this needs the permission to list "),
    "may not change": (
        "403 Forbidden",
        "node fail a",
        "context prod ({}) does not allow this: 403",
    ),
}


@pytest.mark.parametrize(("status", "words", "sentence"), REFUSALS.values(), ids=REFUSALS)
def test_a_server_that_refuses(
    status: str, words: str, sentence: str, tmp_path: Path, meeting: Meeting
) -> None:
    """Whoever is not known, or may not, is told so."""
    server = f"http://{meeting(answer(status)).address}"
    result = run(tmp_path, server, words)
    assert result.exit_code == 1
    assert sentence.format(server) in result.stderr


def test_a_long_wait_is_shown_on_a_terminal(tmp_path: Path, meeting: Meeting) -> None:
    """With the cluster that is waited for. The line is gone when the answer has come."""
    may_answer = threading.Event()
    refuse = answer("401 Unauthorized")

    def meet(taken: socket.socket) -> None:
        may_answer.wait(PATIENCE_S)
        refuse(taken)

    server = f"http://{meeting(meet).address}"
    ours, theirs = pty.openpty()
    command = [*DRAYMAN, "map", "--kubeconfig", str(prod(tmp_path, server))]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        shown = read_until(ours, b"waiting for context prod")
        assert b"error" not in shown
        may_answer.set()
        shown += read_until(ours, b"does not accept the credentials")
        assert process.wait(PATIENCE_S) == 1
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert shown.index(b"\r\x1b[K") < shown.index(b"error: ")


def read_until(descriptor: int, wanted: bytes) -> bytes:
    """What a terminal shows, up to the words that are waited for."""
    shown = b""
    while wanted not in shown:
        ready, _, _ = select.select([descriptor], [], [], PATIENCE_S)
        assert ready, f"{wanted!r} was not shown: {shown!r}"
        shown += os.read(descriptor, 65_536)
    return shown
