"""`drayman up` as a person has it before them: a status that lives, and a server that does not depend on it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

import pytest

from cli.terminal import DRAYMAN, FAULTS, PATIENCE_S, Terminal, person
from drayman.apiserver.instance.folder import is_alive
from drayman.cluster.embedded import Key, Put, Store

CLAIM: Final = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpus"},
    "spec": {
        "devices": {
            "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]
        }
    },
}
CTRL_S: Final = b"\x13"
CTRL_Q: Final = b"\x11"


def up(home: Path, *options: str | Path, columns: int = 80, **settings: str) -> Terminal:
    """`drayman up` on a terminal, with its state below the home directory."""
    words = (*DRAYMAN, "up", "--port", "0", *options)
    return Terminal(words, person(home, **settings), columns=columns)


def drawn_again(terminal: Terminal) -> bool:
    """Whether the status was drawn three times, each over the one before."""
    return terminal.raw.count(b"requests/s") >= 3


def url_of(terminal: Terminal) -> str:
    found = re.search(r"https://[0-9.]+:[0-9]+", terminal.text)
    assert found is not None, terminal.text
    return found[0]


def answers(url: str) -> bool:
    unchecked = ssl._create_unverified_context()
    with urllib.request.urlopen(f"{url}/healthz", context=unchecked, timeout=PATIENCE_S) as answer:
        return bool(answer.read() == b"ok")


def data_of(home: Path) -> Path:
    return home / ".local" / "state" / "drayman"


def kubectl(home: Path, *words: str, given: dict[str, Any] | None = None) -> str:
    """What kubectl prints, against the cluster of this home directory; it has to succeed."""
    done = subprocess.run(
        ["kubectl", "--kubeconfig", str(data_of(home) / "kubeconfig"), *words],
        input=None if given is None else json.dumps(given),
        env=person(home),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("ending", ["Ctrl-C", signal.SIGTERM], ids=["interrupt", "term"])
def test_the_status_is_redrawn_and_ends_cleanly(tmp_path: Path, ending: Any) -> None:
    """It is drawn again and again in its place; its end has status 0, the cursor back and a last word."""
    with up(tmp_path, "--ephemeral") as terminal:
        terminal.read_until(drawn_again)
        if ending != "Ctrl-C":
            terminal.send(ending)
        assert (terminal.end() if ending != "Ctrl-C" else terminal.interrupt()) == 0
    assert sum("requests/s" in line for line in terminal.lines) == 1
    assert terminal.lines[-1].endswith("stopped")
    assert terminal.raw.rstrip().endswith(b"\x1b[?25hstopped")
    assert not FAULTS.search(terminal.text)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_claims_are_counted_and_harm_nobody(tmp_path: Path) -> None:
    """Claims that are made while it runs are in the status, so are those that were there before; kubectl is answered all the time."""
    with up(tmp_path, "--profile", "example=1") as terminal:
        terminal.wait_for(r"^claims +0$")
        kubectl(tmp_path, "create", "-f", "-", given=CLAIM)
        terminal.wait_for(r"^claims +1$")
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "user"},
            "spec": {
                "containers": [{"name": "c", "image": "none"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpus"}],
            },
        }
        kubectl(tmp_path, "create", "-f", "-", given=pod)
        terminal.wait_for(r"^claims +1: 1 allocated$")
        terminal.wait_for(r"^pods +1: 1 Running$")
        assert kubectl(tmp_path, "get", "resourceclaims", "-o", "name").count("gpus") == 1
        assert terminal.interrupt() == 0
    with up(tmp_path) as again:
        again.read_until(drawn_again)
        assert re.search(r"^claims +1: 1 allocated$", again.text, re.MULTILINE)
        assert "gpus" in kubectl(tmp_path, "get", "resourceclaims")
        assert again.interrupt() == 0
    for shown in (terminal, again):
        assert not FAULTS.search(shown.text)
        assert max(map(len, shown.lines)) <= 80


def test_a_status_that_fails_ends_nothing_but_itself(tmp_path: Path) -> None:
    """An object that cannot be counted is told in one line, once; the server goes on, and ends as ever."""
    data = data_of(tmp_path)
    data.mkdir(parents=True)

    async def damage() -> None:
        with Store.open(data / "store.db") as store:
            odd = b'{"status": {"phase": ["neither", "here", "nor", "there"]}}'
            await store.write([Put(Key("pods", "default", "odd"), lambda _: odd)])

    asyncio.run(damage())
    with up(tmp_path, "--no-controllers") as terminal:
        terminal.wait_for("the live status has ended")
        url = url_of(terminal)
        for _ in range(3):
            assert answers(url)
        assert terminal.interrupt() == 0
    assert terminal.text.count("the live status has ended") == 1
    assert f"{url} is still served" in " ".join(terminal.lines)
    assert terminal.lines[-1].endswith("stopped")
    assert not FAULTS.search(terminal.text)


@pytest.mark.parametrize(
    ("columns", "settings"),
    [
        (80, {"TERM": "dumb"}),
        (80, {"TERM": "unknown"}),
        (80, {"NO_COLOR": "1"}),
        (20, {}),
        (80, {"COLUMNS": "20"}),
        (0, {}),
        (500, {"TERM": "vt100"}),
    ],
    ids=["dumb", "unknown", "no-color", "narrow", "says-narrow", "no-size", "wide"],
)
def test_odd_terminals(tmp_path: Path, columns: int, settings: dict[str, str]) -> None:
    """Whatever the terminal is like, the server serves and says where, and Ctrl-C ends it with status 0."""
    with up(tmp_path, "--profile", "example=1", columns=columns, **settings) as terminal:
        terminal.wait_for("^Kubernetes API")
        url = json.loads((data_of(tmp_path) / "instance.json").read_bytes())["url"]
        assert answers(url)
        assert terminal.interrupt() == 0
    assert url in "".join(terminal.text.split())
    assert terminal.lines[-1].endswith("stopped")
    assert not FAULTS.search(terminal.text)


def test_a_window_that_changes_its_size(tmp_path: Path) -> None:
    """The status goes on, in the new size, and so does the server."""
    with up(tmp_path, "--ephemeral") as terminal:
        terminal.wait_for("requests/s")
        url = url_of(terminal)
        for columns, rows in ((20, 5), (200, 60), (1, 1), (80, 24)):
            terminal.resize(columns, rows)
            seen = len(terminal.raw)
            terminal.read_until(lambda t, seen=seen: len(t.raw) > seen + 10)
            assert answers(url)
        assert terminal.interrupt() == 0
    assert not FAULTS.search(terminal.text)


@pytest.mark.parametrize(("columns", "rows"), [(60, 40), (100, 24), (80, 30)])
def test_no_line_of_an_earlier_status_stays_after_a_change_of_size(
    tmp_path: Path, columns: int, rows: int
) -> None:
    """A terminal may wrap the lines of the last status in its own way: the next one is drawn on an empty screen."""
    with up(tmp_path, "--ephemeral") as terminal:
        terminal.wait_for("requests/s")
        terminal.resize(columns, rows)
        cleared = b"\x1b[H\x1b[2J"
        terminal.read_until(
            lambda t: cleared in t.raw and b"requests/s" in t.raw.split(cleared)[-1]
        )
        assert terminal.raw.count(cleared) == 1
        lines = [line for line in terminal.lines if line.startswith("Kubernetes API")]
        assert len(lines) == 1
        assert terminal.interrupt() == 0


def test_a_terminal_that_is_held_up_holds_up_nobody_else(tmp_path: Path) -> None:
    """After Ctrl-S the API goes on answering, and a signal still ends it; Ctrl-Q shows the rest."""
    with up(tmp_path, "--ephemeral") as terminal:
        terminal.wait_for("requests/s")
        url = url_of(terminal)
        terminal.press(CTRL_S)
        for _ in range(4):
            time.sleep(0.5)  # the next picture is due in between
            assert answers(url)
        terminal.send(signal.SIGTERM)
        wait_until_nobody_listens(url)
        terminal.press(CTRL_Q)
        assert terminal.end() == 0
    assert terminal.lines[-1].endswith("stopped")


def wait_until_nobody_listens(url: str) -> None:
    host, _, port = url.removeprefix("https://").rpartition(":")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=PATIENCE_S).close()
        except ConnectionRefusedError:
            return
        assert time.monotonic() < deadline, f"{url} is still served"
        time.sleep(0.05)


def test_a_window_that_is_closed_ends_it_in_good_order(tmp_path: Path) -> None:
    """The end of the terminal is a reason to stop, and none to fail: exit status 0, and no record of it is left."""
    with up(tmp_path) as terminal:
        terminal.wait_for("requests/s")
        terminal.hang_up()
        assert terminal.process.wait(PATIENCE_S) == 0
    assert not (data_of(tmp_path) / "instance.json").exists()


def test_who_ignores_the_end_of_the_terminal_serves_on(tmp_path: Path) -> None:
    """Where hanging up is to be ignored, the server outlives a terminal that can be drawn on no more."""
    command = shlex.join([*DRAYMAN, "up", "--port", "0"])
    words = ("sh", "-c", f"trap '' HUP; exec {command}")
    with Terminal(words, person(tmp_path)) as terminal:
        terminal.wait_for("requests/s")
        url = url_of(terminal)
        terminal.hang_up()
        for _ in range(4):
            time.sleep(0.5)  # a picture is due in between, which nobody can see
            assert answers(url)
        terminal.send(signal.SIGTERM)
        assert terminal.process.wait(PATIENCE_S) == 0


def test_plain_lines_on_request(tmp_path: Path) -> None:
    """With --no-color nothing is redrawn and there are no control sequences."""
    with up(tmp_path, "--ephemeral", "--no-color") as terminal:
        terminal.wait_for("^try ")
        assert terminal.interrupt() == 0
    assert b"\x1b" not in terminal.raw
    assert terminal.text.startswith("Kubernetes API")


def test_a_start_can_be_interrupted(tmp_path: Path) -> None:
    """Ctrl-C while the hardware is being published is an orderly end: status 0, and nothing says that it runs."""
    with up(tmp_path, "--profile", "example=1000") as terminal:
        wait_until_written(data_of(tmp_path) / "instance.json", terminal)
        assert terminal.interrupt() == 0
    assert terminal.lines[-1].endswith("stopped")
    assert not FAULTS.search(terminal.text)
    assert not (data_of(tmp_path) / "instance.json").exists()


def test_a_start_in_the_background_can_be_interrupted(tmp_path: Path) -> None:
    """Ctrl-C while --detach waits ends what it has started, in good order: nothing says that it runs, nor does it."""
    record = data_of(tmp_path) / "instance.json"
    with up(tmp_path, "--detach", "--profile", "example=1000") as terminal:
        process = json.loads(wait_until_written(record, terminal))["pid"]
        assert terminal.interrupt() == 130
    deadline = time.monotonic() + PATIENCE_S
    while record.exists() or is_alive(process):
        assert time.monotonic() < deadline, "the process in the background goes on"
    log = (data_of(tmp_path) / "drayman.log").read_text().splitlines()
    assert log[-1] == "stopped"
    assert all(" info " in line for line in log[:-1])


def test_a_start_in_the_background_outlives_its_terminal(tmp_path: Path) -> None:
    """Also where the terminal is closed before it is ready."""
    record = data_of(tmp_path) / "instance.json"
    with up(tmp_path, "--detach", "--profile", "example=300") as terminal:
        process = json.loads(wait_until_written(record, terminal))["pid"]
        terminal.hang_up()
        terminal.process.wait(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while not json.loads(record.read_bytes())["ready"]:
            assert time.monotonic() < deadline, "it does not become ready"
        os.kill(process, signal.SIGTERM)
        while record.exists():
            assert time.monotonic() < deadline, "it does not end"


def wait_until_written(path: Path, terminal: Terminal) -> bytes:
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < deadline
        assert terminal.process.poll() is None, terminal.end()
    return path.read_bytes()


WORK: Final = """
import sys
from drayman.cli.progress import gauged
with gauged("starting") as gauge:
    for done in (0, 40, 100):
        gauge.update(done, 100)
        sys.stdin.readline()
print("done")
"""


def test_work_that_takes_long_is_shown(tmp_path: Path) -> None:
    """A bar appears by and by, moves with the work, fits the terminal, and stays when the work is done."""
    with Terminal((sys.executable, "-c", WORK), person(tmp_path)) as terminal:
        terminal.wait_for(r"^starting +\[-+\] +0%")
        terminal.press(b"\n")
        terminal.wait_for(r"starting +\[#+-+\] +40%")
        terminal.press(b"\n")
        terminal.wait_for(r"starting +\[#+\] +100%")
        terminal.press(b"\n")
        assert terminal.end() == 0
    assert terminal.lines[-1] == "done"
    assert max(map(len, terminal.lines)) <= 80


@pytest.mark.parametrize("where", ["", "2>&-"], ids=["pipe", "closed"])
def test_work_is_not_shown_where_nobody_sits(tmp_path: Path, where: str) -> None:
    """Through a pipe there is no bar, nor where standard error is closed."""
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join([sys.executable, '-c', WORK])} {where}"],
        input="\n\n\n",
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
