"""Real servers and real clients: `drayman up` in a process of its own, and kubectl against it."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from patience import PATIENCE_S

DRAYMAN: Final = (sys.executable, "-m", "drayman")


@dataclass(slots=True)
class Server:
    """A running `drayman up`."""

    process: subprocess.Popen[str]
    url: str
    kubeconfig: Path

    def kill(self) -> None:
        """End it without any warning."""
        self.process.kill()
        self.process.communicate()

    def stop(self) -> int:
        """End it politely; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


def spawn(*options: str | Path) -> subprocess.Popen[str]:
    """`drayman up` in a process of its own, on any free port."""
    return subprocess.Popen(
        [*DRAYMAN, "up", "--port", "0", *map(str, options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_ready(process: subprocess.Popen[str], kubeconfig: Path) -> Server:
    """The server, once it says that it serves."""
    assert process.stdout is not None
    said = process.stdout.readline()
    if not said.startswith("Kubernetes API"):
        process.kill()
        pytest.fail(f"the server did not start: {said}{process.communicate()[0]}")
    return Server(process, said.split()[2], kubeconfig)


@contextmanager
def running(kubeconfig: Path, *options: str | Path) -> Iterator[Server]:
    """A server for the time of a test."""
    server = wait_ready(spawn("--kubeconfig", kubeconfig, *options), kubeconfig)
    try:
        yield server
    finally:
        server.stop()


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl against a server, in one namespace, with a home directory of its own."""

    server: Server
    namespace: str
    home: Path
    path: str = field(default_factory=lambda: shutil.which("kubectl") or "kubectl")

    def __call__(self, *words: str, given: str | dict[str, Any] | None = None) -> str:
        """What a command prints; it has to succeed."""
        done = self.attempt(*words, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def refused(self, *words: str, given: str | dict[str, Any] | None = None) -> str:
        """What a command says when it fails; it has to."""
        done = self.attempt(*words, given=given)
        assert done.returncode != 0, f"kubectl {' '.join(words)} succeeds\n{done.stdout}"
        return done.stderr

    def object(self, *words: str) -> dict[str, Any]:
        """What `get -o json` prints."""
        found: dict[str, Any] = json.loads(self("get", *words, "-o", "json"))
        return found

    def attempt(
        self, *words: str, given: str | dict[str, Any] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._arguments(words),
            input=json.dumps(given) if isinstance(given, dict) else given,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    @contextmanager
    def streaming(self, *words: str) -> Iterator[Lines]:
        """A command that goes on, line by line."""
        process = subprocess.Popen(
            self._arguments(words),
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield Lines(process)
        finally:
            process.terminate()
            process.wait()

    def _arguments(self, words: Sequence[str]) -> list[str]:
        where = ["--kubeconfig", str(self.server.kubeconfig), "--namespace", self.namespace]
        # After the words, because `--` ends the options of kubectl itself.
        cut = words.index("--") if "--" in words else len(words)
        return [self.path, *words[:cut], *where, *words[cut:]]

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), "KUBECTL_EXTERNAL_DIFF": "diff -u -N"}


class Lines:
    """The lines a process prints, each waited for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                self._lines.put(line)
        self._lines.put(None)

    def next(self) -> list[str]:
        """The words of the next line."""
        line = self._lines.get(timeout=PATIENCE_S)
        assert line is not None, "the command ended"
        return line.split()
