"""Text that others chose cannot control the terminal of the person who reads it, whichever command shows it.

Control characters (those of ASCII and those from U+0080 to U+009F), and those that embed or override the direction of text, are spelt out
on a real terminal. In JSON and YAML they are escaped, so that the document is the same for programs.
"""

from __future__ import annotations

import ast
import json
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from apiserver.e2e.driving import Kubectl, Server, running
from cli.explain.manifests import Object, listed, pod, template
from cli.terminal import DRAYMAN, Terminal, person, run
from cli.test_connecting import Meeting, meeting, prod

__all__ = ["meeting"]

CLI: Final = Path(__file__).parents[2] / "src" / "drayman" / "cli"
ROOMS: Final = ("output.py", "errors.py", "progress.py", "completing.py")
"""Where it is known what is printed, and how."""

UNSEEN: Final = (
    "\x7f\x85\x9b\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
BAD: Final = f"[b]{UNSEEN}\x1b]0;t\x07"
"""Markup, what is not to be seen, and an attempt to give the window another title."""
MODEL: Final = f"m{UNSEEN}"
"""An attribute of a device may have 64 characters."""
IN_YAML: Final = UNSEEN[3:]
"""Other control characters are not allowed in YAML."""


def slice_(name: str, model: str) -> Object:
    attributes = {"model": {"string": model}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n0",
            "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "attributes": attributes}],
        },
    }


def node(message: str) -> Object:
    said = {"type": "Ready", "status": "False", "reason": "Broken", "message": message}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n0"},
        "status": {"conditions": [said], "allocatable": {"pods": "9"}},
    }


def device_class(expression: str) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.example.com"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


MODEL_IS: Final = "device.attributes['gpu.example.com'].model == '{}'"
OBJECTS: Final = listed(
    node(BAD),
    slice_("n0", MODEL),
    device_class("device.driver == 'gpu.example.com'"),
    template("one", selector=MODEL_IS.format(f"n{UNSEEN}")),
    pod("waits", "one"),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A cluster with such text in what there is to read about it."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    folder = tmp_path_factory.mktemp("hostile")
    with running(folder / "config", "--ephemeral") as server:
        kubectl = Kubectl(server, "default", folder)
        kubectl("apply", "-f", "-", given=OBJECTS)
        status = json.dumps({"status": node(BAD)["status"]})
        kubectl("patch", "node", "n0", "--subresource=status", "--type=merge", "-p", status)
        kubectl("wait", "pod/waits", "--for=condition=PodScheduled=False", "--timeout=60s")
        yield server


def harmless(raw: bytes) -> str:
    """What was written to the terminal, which must be its own control sequences and text that can be seen."""
    text = raw.decode()
    assert not set(UNSEEN) & set(text), ascii(text)
    assert "\x1b]" not in text, ascii(text)
    assert "\x07" not in text, ascii(text)
    return text.replace("\r\n", "\n")


def shown(server: Server, folder: Path, *words: str) -> str:
    where = ("--kubeconfig", str(server.kubeconfig))
    return harmless(run([*DRAYMAN, *words, *where], person(folder), columns=200).raw)


COMMANDS: Final = {
    "explain pod/waits": r"\x9b\u061c\u200e",
    "explain node/n0": r"\x9b\u061c\u200e",
    "explain --all": "NoSuchDevice",
    "map n0": "gpu-0",
    "map": "n0",
    "top devices": "gpu-0",
    "top claims": "waits",
    "device list": "gpu-0",
}


@pytest.mark.parametrize("line", COMMANDS)
def test_what_is_drawn(line: str, server: Server, tmp_path: Path) -> None:
    """What is in the cluster is shown as text."""
    assert COMMANDS[line] in shown(server, tmp_path, *line.split())


DOCUMENTS: Final = ("explain pod/waits -o {}", "explain node/n0 -o {}", "snapshot -o {}")


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("line", DOCUMENTS)
def test_a_document_is_the_same_document(
    line: str, form: str, server: Server, tmp_path: Path
) -> None:
    """What a terminal shows can be copied: it is what programs get, and it has the text that others chose."""
    read: Callable[[str], Any] = json.loads if form == "json" else _all_documents
    found = _lasting(read(shown(server, tmp_path, *line.format(form).split())))
    words = [*DRAYMAN, *line.format(form).split(), "--kubeconfig", str(server.kubeconfig)]
    piped = subprocess.run(words, env=person(tmp_path), capture_output=True, check=False).stdout
    assert found == _lasting(read(piped.decode()))
    assert UNSEEN in "".join(_strings(found))


def test_a_snapshot_of_one_object_a_line(server: Server, tmp_path: Path) -> None:
    """The form that is read fastest is the same list as the others."""
    lines = shown(server, tmp_path, "snapshot").split("---\n")[1:]
    listed_ = json.loads(shown(server, tmp_path, "snapshot", "-o", "json"))
    assert _lasting([json.loads(line) for line in lines]) == _lasting(listed_["items"])


_RENEWED: Final = ("Snapshot", "Lease")
"""Kinds that differ each time that they are read."""


def _lasting(value: Any) -> Any:
    """What does not change from one snapshot to the next."""
    items = value["items"] if isinstance(value, dict) and "items" in value else value
    if isinstance(items, list):
        return [_without_versions(each) for each in items if each["kind"] not in _RENEWED]
    return _without_versions(items)


def _without_versions(value: dict[str, Any]) -> dict[str, Any]:
    """A document without the versions of what it rests on: the server goes on meanwhile, as it renews leases."""
    return {name: member for name, member in value.items() if name != "evidence"}


def _all_documents(text: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


FILES: Final = {
    "validate {file}": 1,
    "validate {file} -o json": 1,
    "validate {file} -o yaml": 1,
    "migrate {file}": 0,
    "migrate {file} --diff": 0,
    "plan -f {file} --snapshot {file}": 2,
    "plan -f {missing}": 2,
    "explain {bad}": 2,
    "explain pod/{bad} --snapshot {file}": 2,
    "{bad}": 2,
    "top --{bad}": 2,
    "status --data-dir {missing}": 1,
    "profiles {bad}": 1,
    "cel -e {bad} --devices {file}": 1,
}
"""By command line: the exit status."""


@pytest.mark.parametrize("line", FILES)
def test_what_people_give(line: str, tmp_path: Path) -> None:
    """Names of files, arguments and contents of files, in errors and in results."""
    body = pod(f"p{BAD}", "one")
    body["metadata"]["annotations"] = {"note": BAD}
    file = tmp_path / f"a{UNSEEN}.yaml"
    file.write_text(f"# {IN_YAML}\n{yaml.safe_dump(body, allow_unicode=True)}")
    places = {"file": str(file), "missing": f"{tmp_path}/none{BAD.replace('/', '')}", "bad": BAD}
    words = [word.format(**places) for word in line.split()]
    environment = person(tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
    with Terminal([*DRAYMAN, *words], environment, columns=200) as terminal:
        assert terminal.end() == FILES[line], terminal.text
    harmless(terminal.raw)


def test_what_another_server_says(meeting: Meeting, tmp_path: Path) -> None:
    """The body of an error is not ours."""
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "message": BAD, "code": 403})
    head = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length:"

    def refuse(taken: socket.socket) -> None:
        while b"\r\n\r\n" in taken.recv(1 << 16):
            taken.sendall(f"{head} {len(body)}\r\n\r\n{body}".encode())

    stranger = meeting(refuse)
    where = str(prod(tmp_path, f"http://{stranger.address}"))
    for line in ("explain pod/a", "snapshot", "top devices", "node fail n0", "scheduler"):
        words = [*DRAYMAN, *line.split(), "--kubeconfig", where]
        assert "[b]\\x7f" in harmless(run(words, person(tmp_path), columns=200).raw), line


def test_log_lines(tmp_path: Path) -> None:
    """What is logged where nothing else takes it goes to the terminal, too."""
    program = (
        "import logging, sys\n"
        "from drayman.cli import main\n"
        "sys.argv = ['drayman', '--version']\n"
        "try:\n    main.main()\n"
        f"except SystemExit:\n    logging.getLogger('drayman').warning('%s', {BAD!a})\n"
    )
    terminal = run([DRAYMAN[0], "-c", program], person(tmp_path))
    assert "[b]\\x7f\\x85" in harmless(terminal.raw)


def test_only_a_few_modules_print() -> None:
    """Every command prints through `cli/output.py`, which spells out what is not printable."""
    for path in CLI.rglob("*.py"):
        if path.name in ROOMS:
            continue
        for found in ast.walk(ast.parse(path.read_text())):
            if isinstance(found, ast.Call) and isinstance(found.func, ast.Attribute):
                said = ast.unparse(found.func)
                assert said not in ("click.echo", "click.secho"), f"{path.name}:{found.lineno}"
