"""The server is killed at random moments, again and again, while clients write: no promise is broken and nothing is half there."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from apiserver.e2e.driving import Server, spawn, wait_ready
from apiserver.e2e.writing import Connection, Object, Writer, write_together

ROUNDS: Final = 500 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 10
MOST_WRITES: Final = 150
STARTS_CUT_SHORT: Final = 0.2


def found_by(writer: Writer, connection: Connection) -> dict[str, Object]:
    """The objects of a writer that the server has."""
    status, page = connection.request("GET", writer.path)
    assert status == 200, page
    of_list = {"kind": page["kind"].removesuffix("List"), "apiVersion": page["apiVersion"]}
    names = ((item["metadata"]["name"], item) for item in page["items"])
    return {
        name: {**of_list, **item} for name, item in names if name.rpartition("-")[0] == writer.name
    }


def settle(writer: Writer, found: dict[str, Object]) -> None:
    """Find out what became of the request that had no answer: it was done entirely or not at all."""
    unknown, writer.unknown = writer.unknown, None
    if unknown is None:
        return
    now, before = found.get(unknown.name), writer.promised.get(unknown.name)
    if now == before:
        return
    if unknown.outcome is None:
        assert now is None, f"half of a deletion of {unknown.name}"
        del writer.promised[unknown.name]
        return
    assert now is not None, f"{unknown.name} is gone"
    wanted = unknown.outcome["metadata"]["annotations"]
    assert now["metadata"]["annotations"] == wanted, f"half of a write of {unknown.name}"
    writer.promised[unknown.name] = now


def check(writers: list[Writer], kubeconfig: Path) -> None:
    """Every writer finds what it was promised, and nothing else."""
    connection = Connection(kubeconfig)
    try:
        for writer in writers:
            found = found_by(writer, connection)
            settle(writer, found)
            assert found == writer.promised, writer.name
        _, page = connection.request("GET", "/api/v1/namespaces/default/configmaps?limit=1")
        newest = max(writer.newest for writer in writers)
        assert int(page["metadata"]["resourceVersion"]) >= newest
    finally:
        connection.close()


def killer(server: Server, writes: int) -> Callable[[], None]:
    """Kills a server once so many writes are acknowledged, while others are under way."""
    left, lock = [writes], threading.Lock()

    def acknowledged() -> None:
        with lock:
            left[0] -= 1
            if left[0] == 0:
                server.process.kill()

    return acknowledged


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    """After each restart on the same directory every acknowledged write is there, deletions too, and all else is whole or absent."""
    rng = random.Random(9)
    folder, kubeconfig = tmp_path / "data", tmp_path / "config"
    options = ("--data-dir", folder, "--kubeconfig", kubeconfig, "--no-controllers")
    kinds = ("configmaps", "pods", "configmaps", "secrets")
    writers = [
        Writer(f"writer{number}", plural, random.Random(number))
        for number, plural in enumerate(kinds)
    ]
    for _ in range(ROUNDS):
        if rng.random() < STARTS_CUT_SHORT:
            cut_short(*options, after=rng.uniform(0.0, 1.0))
        server = wait_ready(spawn(*options), kubeconfig)
        try:
            check(writers, kubeconfig)
            write_together(writers, kubeconfig, killer(server, rng.randint(1, MOST_WRITES)))
        finally:
            server.kill()
    server = wait_ready(spawn(*options), kubeconfig)
    try:
        check(writers, kubeconfig)
    finally:
        server.stop()
    assert sum(writer.writes for writer in writers) >= ROUNDS
    assert all(writer.promised for writer in writers)


def cut_short(*options: str | Path, after: float) -> None:
    """A start that is killed somewhere on its way."""
    process = spawn(*options)
    timer = threading.Timer(after, process.kill)
    timer.start()
    process.communicate()
    timer.join()


def test_the_check_can_fail(tmp_path: Path) -> None:
    """A server that lost an object, or kept a deleted one, is found out."""
    kubeconfig = tmp_path / "config"
    writer = Writer("writer", "configmaps", random.Random(1))
    server = wait_ready(spawn("--ephemeral", "--kubeconfig", kubeconfig), kubeconfig)
    try:
        connection = Connection(kubeconfig)
        body: Object = {"metadata": {"name": "writer-1"}}
        _, made = connection.request("POST", writer.path, body)
        connection.close()
        with pytest.raises(AssertionError):
            check([writer], kubeconfig)
        writer.promised["writer-1"] = made
        check([writer], kubeconfig)
        writer.promised["writer-2"] = made
        with pytest.raises(AssertionError):
            check([writer], kubeconfig)
    finally:
        server.stop()
