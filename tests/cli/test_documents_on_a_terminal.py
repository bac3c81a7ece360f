"""What README.md and examples/README.md tell people to type works as it is written there, in one shell, command by command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cli.shell import Shell
from cli.terminal import DRAYMAN, FAULTS, person
from shell_blocks import ROOT, commands

DOCUMENTS: Final = ("README.md", "examples/README.md")

INSTEAD: Final = {
    # What `make` runs once everything is set up, which it is where tests run.
    "make demo": ".venv/bin/drayman demo",
    # This is a part of it.
    "make test": "true",
}
WAITS: Final = 1
"""How `explain` and `plan` end where something has to wait."""
STATUSES: Final = {
    "drayman explain pod/waits": WAITS,
    "drayman explain --all": WAITS,
    "drayman defrag": WAITS,
    "kubectl drayman explain pod/waits -o json": WAITS,
    "drayman plan -f examples/plan/job.yaml --times 20": WAITS,
}
INTERRUPTED: Final = 130


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A checkout after `make venv`, which is also the home directory; nothing runs there afterwards."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    yield tmp_path
    for record in tmp_path.rglob("instance.json"):  # of a cluster that was not stopped
        down = [*DRAYMAN, "down", "--data-dir", record.parent]
        subprocess.run(down, env=person(tmp_path), capture_output=True, check=False)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_flow_of_a_document(name: str, folder: Path) -> None:
    """Each command ends as it should, and none shows a fault; one that watches goes on until Ctrl-C."""
    lines = commands(ROOT / name)
    assert len(lines) > 5
    with Shell(person(folder, TMPDIR=str(folder)), folder) as shell:
        for line in lines:
            seen = len(shell.raw)
            wanted = STATUSES.get(line, 0)
            if "--watch" in line:
                wanted, status = INTERRUPTED, shell.type_and_interrupt(line)
            else:
                status = shell.type(on_this_machine(line))
            assert status == wanted, shell.text
            assert not FAULTS.search(shell.shown_since(seen)), shell.text


def on_this_machine(line: str) -> str:
    """The command with a port that is surely free, and what stands for it where it is not itself to be run."""
    if line.startswith("drayman up"):
        return f"{line} --port 0"
    return INSTEAD.get(line, line)


def test_every_exception_is_about_a_command_of_the_documents() -> None:
    """None is left over from a command that is no longer there."""
    written = {line for name in DOCUMENTS for line in commands(ROOT / name)}
    assert {*INSTEAD, *STATUSES} <= written
