"""`drayman migrate` on the command line."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from drayman.cli.main import run
from migrate.plugin_cases import PLUGINS

POD = PLUGINS[0]
SHARED = next(case for case in PLUGINS if case.name == "shares, networks and what is unknown")


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """A file with a pod that asks a plugin for devices."""
    path = tmp_path / "pod.yaml"
    path.write_text(POD.before)
    return path


def test_prints_the_new_text(pod: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without options the result goes to standard output, and the file stays."""
    assert run(["migrate", str(pod)]) == 0
    assert capsys.readouterr() == (POD.after, "")
    assert pod.read_text() == POD.before


def test_several_files_are_one_stream(pod: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts of files are separated as documents are."""
    other = pod.with_name("other.yaml")
    other.write_text("kind: Namespace\napiVersion: v1\n")
    assert run(["migrate", str(pod), str(other)]) == 0
    assert capsys.readouterr().out == f"{POD.after}---\n{other.read_text()}"


def test_an_empty_file(pod: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said to be empty, as nothing is printed of it."""
    empty = pod.with_name("empty.yaml")
    empty.write_text("\n")
    assert run(["migrate", str(empty)]) == 0
    assert capsys.readouterr() == ("\n", f"{empty} is empty: nothing to migrate\n")


def test_shows_what_would_change(pod: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A unified diff names the file and leaves it alone."""
    assert run(["migrate", "--diff", str(pod)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"--- {pod}\n+++ {pod}\n@@ ")
    assert "-                      nvidia.com/gpu: 2   # both on one node\n" not in shown
    assert "-              nvidia.com/gpu: 2   # both on one node\n" in shown
    assert pod.read_text() == POD.before


def test_rewrites_files(pod: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that changes is replaced and keeps its permissions; the second time there is nothing to do."""
    pod.chmod(0o600)
    assert run(["migrate", "--write", str(pod)]) == 0
    assert (pod.read_text(), pod.stat().st_mode & 0o777) == (POD.after, 0o600)
    assert capsys.readouterr().out == f"{pod} rewritten\n"
    for option in ("--write", "--diff"):
        assert run(["migrate", option, str(pod)]) == 0
        assert capsys.readouterr() == ("", "nothing to change\n")


def test_says_what_is_lost(pod: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What could not be carried over is on standard error with its line, and the exit status is 1."""
    pod.write_text(SHARED.before)
    assert run(["migrate", str(pod)]) == 1
    out, err = capsys.readouterr()
    assert out == SHARED.before
    assert (
        f"{pod}:10: Pod p: spec.containers[0].resources.limits[nvidia.com/gpu.shared]: left" in err
    )
    assert f"note: {pod}:12: Pod p: " in err


def test_data(pod: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`-o json` has the text and the remarks."""
    pod.write_text(SHARED.before)
    assert run(["migrate", "-o", "json", str(pod)]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["complete"] is False
    assert data["files"] == [{"file": str(pod), "changed": False, "text": SHARED.before}]
    assert [each["line"] for each in data["remarks"]] == [10, 11, 12]


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-` reads standard input."""
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(POD.before.encode())))
    assert run(["migrate", "-"]) == 0
    assert capsys.readouterr().out == POD.after


WRONG = {
    "a file that is not there": (["missing.yaml"], "missing.yaml: cannot be read"),
    "no file": ([], "Missing argument"),
    "two ways to answer": (["--diff", "--write", "x"], "Only one of"),
    "files and nodes": (["--nodes", "x"], "takes no files"),
    "writing to standard input": (["--write", "-"], "standard input cannot be rewritten"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_wrong_use(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be done ends with status 2 and one line."""
    assert run(["migrate", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_files_that_are_no_text(pod: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes that are no UTF-8, and YAML that is none, are errors with the line."""
    pod.write_bytes(b"a: 1\nb: \xff\n")
    assert run(["migrate", str(pod)]) == 2
    assert f"{pod}:2: not valid UTF-8" in capsys.readouterr().err
    pod.write_text("a: 1\n---\nb: {\n")
    assert run(["migrate", str(pod)]) == 2
    assert f"error: {pod}:3: not valid YAML" in capsys.readouterr().err
