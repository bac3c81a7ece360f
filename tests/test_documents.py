"""What the documents tell people to run can be run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE_S
from shell_blocks import (
    DOCUMENTS,
    ROOT,
    commands,
    files_of,
    is_there,
    mentioned,
    promised,
    python_of,
)

IDS = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
RUN = [path for path in DOCUMENTS if path.parent.name == "docs" and commands(path)]
STATUSES = {
    "drayman explain pod/third": 1,
    "kubectl drayman explain pod/third": 1,
    "drayman explain pod/third --snapshot cluster.yaml": 1,
    "drayman plan -f examples/plan/job.yaml": 1,
    "drayman plan -f examples/plan/job.yaml --prices examples/plan/prices.yaml": 1,
    "drayman plan -f examples/plan/job.yaml --times 200": 1,
    "drayman plan -f examples/plan/job.yaml --snapshot cluster.yaml": 1,
    "drayman plan -f examples/plan/mistyped.yaml": 2,
}
"""Of commands whose answer is another one than that all is well."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=IDS)
def test_commands_name_files_that_are_there(document: Path) -> None:
    """Each is in the repository, or an earlier command of the same page has made it."""
    made: list[str] = []
    missing = []
    for command in commands(document):
        for named in files_of(command):
            if named.is_made:
                made.append(named.path)
            elif not is_there(named.path) and not any(
                named.path == one or named.path.startswith(f"{one}/") for one in made
            ):
                missing.append(f"{named.path} in `{command}`")
    assert missing == []


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md"])
def test_maps_of_the_code_name_modules_that_are_there(page: str) -> None:
    """A page that tells where something is done names modules and packages that exist."""
    text = (ROOT / "docs" / page).read_text()
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+(?:\.py)?)`", text)
    missing = {path for path in named if not (ROOT / "src" / "drayman" / path).exists()}
    assert named
    assert missing - {"src/drayman"} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=IDS)
def test_commands_in_sentences_name_files_that_are_there(document: Path) -> None:
    """The same for commands that a sentence mentions."""
    made = {n.path for c in commands(document) for n in files_of(c) if n.is_made}
    missing = [
        f"{named.path} in `{command}`"
        for command in mentioned(document)
        for named in files_of(command)
        if not named.is_made and named.path not in made and not is_there(named.path)
    ]
    assert missing == []


@pytest.mark.parametrize("document", RUN, ids=[path.name for path in RUN])
def test_commands_of_a_page_work_one_after_the_other(document: Path, tmp_path: Path) -> None:
    """In a folder with the examples, on a machine where nothing else runs."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    lines = commands(document)
    program = python_of(document)
    if program:
        lines.insert(lines.index("drayman down"), shlex.join(["python", "-c", program]))
    lines = [f"{line} --port 0" if line.startswith("drayman up") else line for line in lines]
    script = "\n".join(
        f"{line}\nstatus=$?; [ $status = {STATUSES.get(line, 0)} ] || "
        f"{{ echo '#' failed with $status at line {at}; exit 1; }}"
        for at, line in enumerate(lines, 1)
    )
    done = _run(f"trap 'drayman down' EXIT\n{script}", tmp_path)
    assert done.returncode == 0, (lines, done.stdout, done.stderr)
    printed = iter(done.stdout.splitlines())
    assert [said for said in promised(program) if said not in printed] == [], done.stdout


def _run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    environment.pop("KUBECONFIG", None)
    environment.pop("DRAYMAN_DATA_DIR", None)
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_the_library_example_of_the_readme_works() -> None:
    """It is complete, it imports nothing of Drayman but what is public, and it prints what its comment says."""
    example = python_of(ROOT / "README.md")
    imports = [line for line in example.splitlines() if line.startswith(("import", "from"))]
    assert {line.split()[1] for line in imports} == {"drayman", "pathlib"}
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"print(each.claim.metadata.name, devices)  # {done.stdout.strip()}" in example
